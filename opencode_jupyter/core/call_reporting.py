"""How a call's state is stored and reported, from its first argument to its end."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from pydantic_core import from_json

from .call_state import ERROR_CODE, FOR_PERSON, Failed, Pending, Running, error_code, error_text, now_ms, outcome_of

if TYPE_CHECKING:
    from .call import Call
    from .call_state import State, ToolPart
    from .context import AbortSignal
    from .host import ToolHost

log = logging.getLogger(__name__)

UPDATE_INTERVAL = 0.05
"""Seconds between two updates of a running part: at most 20 a second."""
PARSE_INTERVAL = 0.1
"""Seconds between two parses of arguments that a model is still writing: each parses all that has come so far."""
PARSED_CHARS = 100_000
"""Characters of unfinished arguments that are parsed; longer ones are shown whole when they are complete."""


def cancel_scope() -> anyio.CancelScope:
    """An `anyio.CancelScope` on an asyncio event loop; `anyio.CancelScope()` detects the kind of loop each time."""
    return _scope_class()()


@functools.cache
def _scope_class() -> type[anyio.CancelScope]:
    return type(anyio.CancelScope())


def why_cancelled(parent: Call | None) -> str:
    """Why a cancel reached a call from outside: what ended a call that it is part of, else an interrupt."""
    while parent is not None:
        if parent.signal.reason is not None:
            return parent.signal.reason
        if parent.overdue:
            return "timeout"
        parent = parent.parent
    return "interrupted"


class Reporting:
    """The part of a `Call` that stores and reports its state."""

    __slots__ = (
        *("_last_parse", "_last_update", "_loop", "_pieces", "_timer", "_workspace"),
        *("dry_run", "error", "on_update", "parent", "part", "signal"),
    )
    _last_parse: float
    _last_update: float
    _loop: asyncio.AbstractEventLoop | None
    _pieces: list[str]
    _timer: asyncio.TimerHandle | None
    _workspace: ToolHost
    dry_run: bool
    error: BaseException | None
    on_update: Callable[[ToolPart], None] | None
    parent: Call | None
    part: ToolPart
    signal: AbortSignal

    def _set_state(self, state: State) -> None:
        """Set the state, secrets masked: nothing else of a call is stored, shown or sent."""
        masker = self._workspace.masker()
        self.part.state = state if masker is None else masker.value(state)

    def receive_arguments(self, text: str) -> None:
        """Add to the arguments, as JSON text; reported at most ten times a second."""
        self._pieces.append(text)
        now = asyncio.get_running_loop().time()
        if now - self._last_parse < PARSE_INTERVAL:
            return
        self._last_parse = now
        raw = self.raw
        if len(raw) > PARSED_CHARS:
            return
        try:
            arguments = from_json(raw, allow_partial="trailing-strings")
        except ValueError:
            arguments = None
        self._set_state(Pending(arguments if isinstance(arguments, dict) else self.part.state.input, raw))
        self._notify()

    @property
    def raw(self) -> str:
        """The text of the arguments so far."""
        return "".join(self._pieces)

    def report(self, title: str | None, metadata: dict[str, Any] | None) -> None:
        """Show the progress of the call (`ToolContext.metadata`); on its own loop only."""
        state = self.part.state
        if not isinstance(state, Running) or self._loop is None:
            return
        self._set_state(replace(state, title=title, metadata=metadata))
        if self._timer is not None:
            return
        delay = self._last_update + UPDATE_INTERVAL - self._loop.time()
        if delay <= 0:
            self._send_update()
        else:
            self._timer = self._loop.call_later(delay, self._send_update)

    def _send_update(self) -> None:
        self._timer = None
        if self._loop is not None:
            self._last_update = self._loop.time()
        self._publish_change()

    async def _report_end(self, error: BaseException | None = None) -> None:
        """Report the call's end once it is committed; a cancel does not cut the wait short."""
        store = self._workspace.store
        if self.dry_run:
            return
        try:
            if store is not None:
                store.put_part(self.part)
                try:
                    await store.committed()
                except asyncio.CancelledError:
                    with cancel_scope() as scope:
                        scope.shield = True
                        await store.committed()
                    if not isinstance(error, asyncio.CancelledError):
                        raise
        finally:
            self._announce()

    def _fail(self, error: BaseException) -> None:
        self.error = error
        if isinstance(error, asyncio.CancelledError) and not self.signal.aborted:
            self.signal.abort(why_cancelled(self.parent))
        part, state = self.part, self.part.state
        start = state.start if isinstance(state, Running) else now_ms()
        metadata = state.metadata if isinstance(state, Running) else None
        part.outcome = outcome_of(error, self.signal.reason)
        text, for_person = error_text(error), error_text(error, for_person=True)
        if for_person != text:
            metadata = {**(metadata or {}), FOR_PERSON: for_person}
        code = error_code(error)
        if code:
            metadata = {**(metadata or {}), ERROR_CODE: code}
        self._set_state(Failed(state.input, start, max(start, now_ms()), text, metadata))
        masker = self._workspace.masker()
        if masker is not None:
            masker.mask_error(error)

    def _notify(self) -> None:
        """Call `on_update` of this call and of those above it, inside which it is drawn."""
        if self.on_update is not None:
            try:
                self.on_update(self.part)
            except Exception:
                log.exception("a subscriber of a call failed")
        if self.parent is not None:
            self.parent._notify()

    def _publish_change(self) -> None:
        if self.dry_run:
            return
        if self._workspace.store is not None:
            self._workspace.store.put_part(self.part)
        self._announce()

    def _announce(self) -> None:
        workspace, part = self._workspace, self.part
        if workspace.bus.has_subscribers("message.part.updated"):
            workspace.bus.publish("message.part.updated", {"part": part.to_wire()})
        if self.on_update is not None or self.parent is not None:
            self._notify()
