"""The conversation as tools see it in ``ctx.messages``: made only when one looks (docs/opencode/core.md 2)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.messages import Message
    from ..core.sessions import Session


class LazyMessages(list[dict[str, Any]]):
    """The messages of a run's session so far, each ``{"info", "parts"}``.

    A list by type, since tools are promised one; its items are made at each look, so that calls that do not look cost
    nothing.
    """

    def __init__(self, workspace: ToolHost, session: Session) -> None:
        super().__init__()
        self._workspace = workspace
        self._session = session
        self._ids: set[str] | None = None
        self._wires: dict[str, tuple[Any, dict[str, Any]]] = {}

    def free_call_id(self, id: str) -> str:
        """The provider's id of a call, changed if another call of the session or a running one has it."""
        if self._ids is None:
            self._ids = {part.call_id for message in self._session.messages for part in message.calls}
        if not id:
            id = f"call_{uuid.uuid4().hex[:20]}"
        free, number = id, 1
        while free in self._ids or free in self._workspace.calls:
            number += 1
            free = f"{id}_{number}"
        self._ids.add(free)
        return free

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self._wire(message) for message in list(self._session.messages))

    def __len__(self) -> int:
        return len(self._session.messages)

    def __getitem__(self, index: Any) -> Any:
        messages = self._session.messages[index]
        return [self._wire(m) for m in messages] if isinstance(messages, list) else self._wire(messages)

    def _wire(self, message: Message) -> dict[str, Any]:
        """A message's wire form; kept as long as its turns are, which are made anew when it changes."""
        cached = self._wires.get(message.id)
        if cached is not None and message.turns is not None and cached[0] is message.turns:
            return cached[1]
        wire = message.to_wire()
        if message.turns is not None:
            self._wires[message.id] = (message.turns, wire)
        return wire

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None
