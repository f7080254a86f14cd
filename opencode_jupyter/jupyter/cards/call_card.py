"""One call's card: nothing at first, a live widget if the call takes its time or asks, plain output at the end.

A quick call never makes a widget: its settled card is the only thing displayed. A line that is no valid call has a
finished card, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from ...core import ids
from ...core.call_approval import WAITING_FOR
from ...core.call_state import ERROR_CODE, CallOutcome, Failed, Running, ToolPart, error_code, now_ms
from ...core.errors import InvalidArgumentsError, ToolError, UnknownToolError, full_text
from ...core.threads import call_soon
from .call_json import card_part, card_tree, ended_part, tail_update
from .call_mimebundle import live_text, lost_bundle, settled_bundle
from .display import Bundle, LiveDisplay, show_bundle

if TYPE_CHECKING:
    from ...core.call import Call
    from ...workspace import Workspace
    from ..kernel.waiting import Waiter

log = logging.getLogger(__name__)

TEXT_INTERVAL = 0.1
"""Seconds between two updates of live output: ten a second keep a page and the IOPub limits (1 MB/s) at ease."""
NESTED_INTERVAL = 0.2
"""Seconds between two updates of a card with calls inside; a request or its reply is shown at once."""
WHOLE_INTERVAL = 1.0
"""Seconds between two whole updates while only the output grows (a reloaded page starts from one)."""


def widget_class() -> type[Any] | None:
    """The anywidget class of a live card; None when anywidget or its built module is missing."""
    from .widget import live_widget  # here: quick calls show no live card

    return live_widget("part", live_text, lost_bundle)


class CallCard(LiveDisplay):
    """The card of one call.

    Args:
        call: what it shows.
        waiter: the cell that waits; None for a background call.
        **options: see `LiveDisplay`.
    """

    def __init__(self, call: Call, waiter: Waiter | None, **options: Any) -> None:
        super().__init__(call.part.call_id, waiter, **options)
        self.call = call
        self._sent = 0.0
        self._sent_whole = 0.0
        self._held = False
        """Whether it waited for another call's change of its file at the last update."""
        self._later: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ on the engine's thread

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return bool(self.call.part.outcome)

    def show_requests(self) -> None:
        """Show the pending requests now."""
        self._send_whole()

    def find(self, call_id: Any) -> Call | None:
        """The call of that id on this card: its own, or one inside it; its own too if no id is given."""
        if not call_id:
            return self.call
        calls = [self.call]
        while calls:
            call = calls.pop()
            if call.part.call_id == call_id:
                return call
            calls += call.children
        return None

    def update(self, part: ToolPart) -> None:
        """Show a change of the part, or of one inside it; each call reports at most 20 a second."""
        if self._widget is None or self._settled:
            return
        now = time.monotonic()
        state = part.state
        held = isinstance(state, Running) and WAITING_FOR in (state.metadata or {})
        turned, self._held = held != self._held, held
        growing = isinstance(state, Running) and bool(state.metadata) and not self.requests and not turned
        if isinstance(state, Running) and self.call.children:
            wait = self._sent_whole + NESTED_INTERVAL - now
            if wait > 0:
                self._send_later(wait)
            else:
                self._send_whole()
        elif growing and now - self._sent_whole < WHOLE_INTERVAL:
            if now - self._sent < TEXT_INTERVAL:
                self._send_later(self._sent + TEXT_INTERVAL - now)
                return
            self._send_tail(part)
        else:
            self._send_whole()

    def _send_later(self, seconds: float) -> None:
        if self._later is None:

            def again() -> None:
                self._later = None
                self.update(self.call.part)

            self._later = asyncio.get_running_loop().call_later(seconds, again)

    def _send_tail(self, part: ToolPart) -> None:
        state = part.state
        if not isinstance(state, Running) or not state.metadata:
            return
        message = {"kind": "tail", **tail_update(state.metadata)}
        self._sent = time.monotonic()
        self._write(lambda widget: widget.send(message))

    def _send_whole(self) -> None:
        self._sent = self._sent_whole = time.monotonic()
        self._write(lambda widget: widget.set_trait("part", self.json(live=True)))

    def json(self, *, live: bool) -> dict[str, Any]:
        """The card's JSON as it stands."""
        return card_tree(self.call, self.requests, live=live)

    # ------------------------------------------------------------------ on the thread that waits

    def _make_widget(self) -> Any | None:
        made = widget_class()
        if made is None:
            return None
        return made(part=self.json(live=True), kernel_id=self._kernel_id, comm_id=self.comm_id, model_id=self.comm_id)

    def _resend(self, late: bool) -> None:
        loop = self.call._loop
        if late and loop is not None:
            call_soon(loop, self._write, lambda widget: widget.send_state("part"))

    def _settled_bundle(self) -> Bundle:
        return settled_bundle(self.json(live=False), durations=self.durations)

    def _summary(self) -> str:
        part = ended_part(self.call.part)
        return f"{part.tool} ({part.outcome})"


def show_invalid_line(workspace: Workspace, line: str, error: ToolError) -> bool:
    """Display a finished card with the ``%tool`` line that is no valid call, and the error. Never raises.

    Returns:
        Whether it is displayed.
    """
    name = error.name if isinstance(error, UnknownToolError) else getattr(error, "tool", "")
    outcome = CallOutcome.INVALID_ARGUMENTS if isinstance(error, InvalidArgumentsError) else CallOutcome.FAILED
    typed = line.strip()
    tool = name or (typed.split() or ["tool"])[0]
    rest = typed.removeprefix(tool).strip()
    now = now_ms()
    text, code = full_text(error, for_person=True), {ERROR_CODE: error_code(error)}
    part_id = ids.create("part")
    session = workspace.sessions.default
    part = ToolPart(
        part_id,
        session.id,
        session.message_id or ids.create("message"),
        part_id,
        tool,
        workspace.masked(Failed({"line": rest} if rest else {}, now, now, text, code)),
        outcome=outcome,
    )
    try:
        show_bundle(settled_bundle(card_part(part)))
    except Exception:  # the error itself is on its way to the cell
        log.debug("the card of an invalid line could not be shown", exc_info=True)
        return False
    return True
