"""A display that is live while work goes on and plain output when it is over.

A live widget is replaced through its ``display_id`` when the work ends, so it is never what a notebook saves. After its
display only the engine's thread writes to the widget; showing and settling happen on the thread that waits.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..kernel.ipykernel_compat import expect_late_messages
from ..kernel.waiting import interrupts_held
from .approval_json import RequestView
from .display import Bundle, show_bundle, show_object

if TYPE_CHECKING:
    from ...agent.run import Run
    from ..kernel.waiting import Waiter
    from .run_printer import Printer

log = logging.getLogger(__name__)

LIVE_AFTER = 0.15
"""Seconds that work may take before it is shown live; what is quicker shows only its settled form."""
LATE = 1.0
"""Seconds after which a page that draws a display may have lost updates (anywidget drops those of a slow model)."""


class LiveDisplay(ABC):
    """What a card of a call and that of a model's run have in common.

    Args:
        key: what its work goes by: the id of the call or run.
        waiter: the cell that waits; None for work in the background.
        on_message: told of every message of the widget: ``(comm id, data, route)``.
        quiet: show nothing unless the work asks.
        kernel_id: for the front end's control channel.
        live: whether live widgets can be shown here at all.
        live_after: seconds after which it goes live.
        durations: whether its text form says how long the work took.
    """

    def __init__(
        self,
        key: str,
        waiter: Waiter | None,
        *,
        on_message: Callable[[str, dict[str, Any], str], None],
        quiet: bool = False,
        kernel_id: str = "",
        live: bool = True,
        live_after: float = LIVE_AFTER,
        durations: bool = False,
    ) -> None:
        self.key = key
        self.run: Run | None = None
        """The run whose calls it shows; None for a card of one call."""
        self.printer: Printer | None = None
        """Shows a run in a terminal, as it goes."""
        self.waiter = waiter
        self.quiet = quiet
        self.display_id = f"opencode-{uuid.uuid4().hex}"
        self.comm_id = ""
        self.requests: dict[str, list[RequestView]] = {}
        """What waits for a person, oldest first, by the id of the call that asks."""
        self.hello_after: float | None = None
        """Seconds until a front end first said that it shows the display; None while none has."""
        self.can_live = live
        self.durations = durations
        self.may_be_unseen: Callable[[], bool] = lambda: False
        """Whether the front end may be one without widgets, which passes over what replaces a display."""
        self._live_after = live_after
        self._on_message = on_message
        self._kernel_id = kernel_id
        self._widget: Any = None
        self._shown_at = 0.0
        self._wanted = False
        self._settled = False
        self._bundle: Bundle | None = None
        self._showing = threading.Lock()
        self._drawn_at = 0.0

    # ------------------------------------------------------------------ what each kind gives

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether the work has ended."""

    @abstractmethod
    def find(self, call_id: Any) -> Any:
        """What of the work a page means by `call_id`, to be stopped by its `abort`; None if there is no such thing."""

    @abstractmethod
    def show_requests(self) -> None:
        """`requests` has changed. On the engine's thread."""

    @abstractmethod
    def _make_widget(self) -> Any | None:
        """The widget as it is now; None where none can be made."""

    @abstractmethod
    def _settled_bundle(self) -> Bundle:
        """The plain output in the widget's place."""

    @abstractmethod
    def _summary(self) -> str:
        """How the work ended, where its card cannot be drawn."""

    @abstractmethod
    def _resend(self, late: bool) -> None:
        """A page has drawn the widget, `late` if it may have missed updates; on any thread."""

    def before_prompt(self) -> None:
        """A terminal is about to ask: what was printed must end with a line break."""
        if self.printer is not None:
            self.printer.end()

    # ------------------------------------------------------------------ on the engine's thread

    def start(self) -> None:
        """The work has begun: go live in a moment, unless it is over by then."""
        if not self.quiet:
            asyncio.get_running_loop().call_later(self._live_after, self.go_live)

    def go_live(self) -> None:
        """Show the live widget, if the work goes on and none is shown."""
        if self._wanted or self._settled or not self.can_live or self.is_over:
            return
        self._wanted = True
        if self.waiter is not None:
            self.waiter.submit(self.show)

    def set_requests(self, requests: dict[str, list[RequestView]]) -> None:
        """What waits for a person has changed; of each call the oldest is shown."""
        self.requests = requests
        if requests:
            self.go_live()
        self.show_requests()

    def _write(self, write: Callable[[Any], None]) -> None:
        widget = self._widget
        if widget is None:
            return
        try:
            write(widget)
        except Exception:  # a front end that went away must not end the work
            log.debug("a card could not be updated", exc_info=True)

    # ------------------------------------------------------------------ on the thread that waits

    def show(self) -> None:
        """Display the live widget. The engine may do it too, while the thread that waits does the work itself."""
        with interrupts_held(), self._showing:  # a widget half shown could never be settled
            if self._settled or self._widget is not None:
                return
            # Known before the widget opens its comm: a click may come while the rest of this is done.
            self.comm_id = uuid.uuid4().hex
            widget = self._make_widget()
            if widget is None:
                return
            widget.on_msg(lambda _, content, buffers: self._on_message(self.comm_id, content, "widget"))
            self._shown_at = time.monotonic()
            show_object(widget, self.display_id)
            self._widget = widget

    def note_shown(self) -> None:
        """A front end shows the display, or somebody uses it; on any thread."""
        if self.hello_after is None:
            self.hello_after = time.monotonic() - self._shown_at

    def note_drawn(self) -> None:
        """A front end has drawn it; on any thread. One that took its time is sent what it may have missed."""
        now = time.monotonic()
        self.note_shown()
        late = now - self._shown_at > LATE and now - self._drawn_at > LATE
        self._drawn_at = now  # the same word comes by two ways
        self._resend(late)

    @property
    def is_shown(self) -> bool:
        """Whether the live widget is on display."""
        return self._widget is not None

    def settle(self) -> None:
        """The work is over: plain output takes the widget's place. Only the first call does something."""
        with interrupts_held():
            self._settle()

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        widget, self._widget = self._widget, None
        if widget is None and self.quiet:
            return
        try:
            show_bundle(self.bundle(), display_id=self.display_id, update=widget is not None)
            if widget is not None and self.hello_after is None and self.may_be_unseen():
                show_bundle(({"text/plain": self.bundle()[0]["text/plain"]}, {}))
        finally:
            if widget is not None:
                layout = widget.layout  # a widget of its own, which nobody else would close
                expect_late_messages(widget.model_id or "", layout.model_id or "")
                widget.close()
                layout.close()

    def bundle(self) -> Bundle:
        """The settled form's MIME bundle. Never raises: what can't be drawn must not cost the work's result."""
        if self._bundle is None:
            try:
                self._bundle = self._settled_bundle()
            except Exception:
                log.exception("the card of %s could not be drawn", self.key)
                self._bundle = {"text/plain": f"{self._summary()}; its card could not be rendered"}, {}
        return self._bundle
