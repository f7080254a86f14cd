"""The conversation as tools see it in ``ctx.messages``: made only when one looks (reference: core.md 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .run import Run


class Transcript(list[dict[str, Any]]):
    """The messages of a run's session so far, each ``{"info", "parts"}``.

    A list by type, since tools are promised one; its items are made at each look, so that calls that do not look cost
    nothing.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._ids: set[str] | None = None

    @property
    def call_ids(self) -> set[str]:
        """The ids of all calls of the session."""
        if self._ids is None:
            self._ids = {part.call_id for message in self._run.session.messages for part in message.calls}
        return self._ids

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (message.to_wire() for message in list(self._run.session.messages))

    def __len__(self) -> int:
        return len(self._run.session.messages)

    def __bool__(self) -> bool:
        return bool(self._run.session.messages)

    def __getitem__(self, index: Any) -> Any:
        messages = self._run.session.messages[index]
        return [m.to_wire() for m in messages] if isinstance(messages, list) else messages.to_wire()

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None
