"""One call's card: nothing at first, a live widget if the call takes its time or asks, plain output at the end.

A quick call never makes a widget: its settled card is the only thing displayed. A live widget is replaced through
its ``display_id`` when the call ends, so it is never what a notebook saves. After its display only the engine's
thread writes to the widget; showing and settling happen on the thread that waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.state import Running, ToolPart
from ._show import show_bundle, show_object
from .card_script import packed
from .render import live_text, lost_bundle, settled_bundle
from .view import card_tree, ended, tail
from .view_asks import AskView
from .waiting import interrupts_held

if TYPE_CHECKING:
    from ..core.call import Call
    from .waiting import Waiter

log = logging.getLogger(__name__)

LIVE_AFTER = 0.15
"""Seconds that a call may take before its card goes live; quicker ones show only their settled card."""
TEXT_INTERVAL = 0.1
"""Seconds between two updates of live output: ten a second keep a page and the IOPub limits (1 MB/s) at ease."""
NESTED_INTERVAL = 0.2
"""Seconds between two updates of a card with calls inside; an ask or its answer is shown at once."""
WHOLE_INTERVAL = 1.0
"""Seconds between two whole updates while only the output grows (a reloaded page starts from one)."""
LATE = 1.0
"""Seconds after which a page that draws the card may have lost updates (anywidget drops those of a slow model)."""
ESM = Path(__file__).parent.parent / "static" / "card.js"

_widget_class: type[Any] | None = None


def widget_class() -> type[Any] | None:
    """The anywidget class of a live card; None when anywidget or its built module is missing."""
    global _widget_class
    if _widget_class is None:
        try:
            import anywidget
            import traitlets
        except ImportError:
            return None
        if not ESM.is_file():
            return None

        class LiveCard(anywidget.AnyWidget):
            """The widget of a call in progress."""

            _esm = packed(ESM.read_text(encoding="utf-8"))
            part = traitlets.Dict().tag(sync=True)
            kernel_id = traitlets.Unicode("").tag(sync=True)
            comm_id = traitlets.Unicode("").tag(sync=True)  # for answers that come by another way than the comm

            def _repr_mimebundle_(self, **options: Any) -> Any:
                bundle = super()._repr_mimebundle_(**options)
                data, metadata = bundle if bundle is not None else ({}, {})
                # What a front end without widgets shows, and what is left if the kernel dies in the middle.
                data["text/plain"] = live_text(dict(self.part))
                data.update(lost_bundle(dict(self.part)))
                return data, metadata

        _widget_class = LiveCard
    return _widget_class


class Card:
    """The card of one call.

    Args:
        call: what it shows.
        waiter: the cell that waits; None for a background call.
        on_message: told of every message of the widget: ``(comm id, data, route)``.
        quiet: show nothing unless the call asks.
        kernel_id: for the front end's control channel.
        live: whether live widgets can be shown here at all.
    """

    def __init__(
        self,
        call: Call,
        waiter: Waiter | None,
        *,
        on_message: Callable[[str, dict[str, Any], str], None],
        quiet: bool = False,
        kernel_id: str = "",
        live: bool = True,
        live_after: float = LIVE_AFTER,
    ) -> None:
        self.call = call
        self.waiter = waiter
        self.quiet = quiet
        self.display_id = f"opencode-{uuid.uuid4().hex}"
        self.comm_id = ""
        self.asks: dict[str, list[AskView]] = {}
        """What waits for a person, oldest first, by the id of the call that asks: this one, or one inside it."""
        self.heard: float | None = None
        """Seconds until a front end first said that it shows the card; None while none has."""
        self.can_live = live
        self._live_after = live_after
        self._on_message = on_message
        self._kernel_id = kernel_id
        self._widget: Any = None
        self._shown_at = 0.0
        self._wanted = False
        self._settled = False
        self._bundle: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._sent = 0.0
        self._sent_whole = 0.0
        self._later: asyncio.TimerHandle | None = None
        self._showing = threading.Lock()
        self._drawn_at = 0.0

    # ------------------------------------------------------------------ on the engine's thread

    def begin(self) -> None:
        """The call has begun: go live in a moment, unless it is over by then."""
        if not self.quiet:
            asyncio.get_running_loop().call_later(self._live_after, self.go_live)

    def go_live(self) -> None:
        """Show the live widget, if the call still runs and none is shown."""
        if self._wanted or self._settled or not self.can_live or self.call.part.outcome:
            return
        self._wanted = True
        if self.waiter is not None:
            self.waiter.submit(self.show)

    def set_asks(self, asks: dict[str, list[AskView]]) -> None:
        """What waits for a person has changed; of each call the oldest is shown."""
        self.asks = asks
        if asks:
            self.go_live()
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
        """The part, or one inside it, has changed; each call tells at most 20 times a second."""
        if self._widget is None or self._settled:
            return
        now = time.monotonic()
        state = part.state
        growing = isinstance(state, Running) and bool(state.metadata) and not self.asks
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
        metadata = state.metadata
        message: dict[str, Any] = {"kind": "tail", "text": tail(str(metadata.get("output", "")))}
        for name in ("lines", "bytes", "progress"):
            if name in metadata:
                message[name] = metadata[name]
        self._sent = time.monotonic()
        self._write(lambda widget: widget.send(message))

    def _send_whole(self) -> None:
        self._sent = self._sent_whole = time.monotonic()
        self._write(lambda widget: widget.set_trait("part", self.json(live=True)))

    def _write(self, write: Callable[[Any], None]) -> None:
        widget = self._widget
        if widget is None:
            return
        try:
            write(widget)
        except Exception:  # a front end that went away must not end the call
            log.debug("a card could not be updated", exc_info=True)

    def json(self, *, live: bool) -> dict[str, Any]:
        """The card's JSON as it stands."""
        return card_tree(self.call, self.asks, live=live)

    # ------------------------------------------------------------------ on the thread that waits

    def show(self) -> None:
        """Display the live widget. The engine may do it too, while the thread that waits does the call's own work."""
        made = widget_class()
        if made is None:
            return
        with interrupts_held(), self._showing:  # a widget half shown could never be settled
            if self._settled or self._widget is not None:
                return
            # Known before the widget opens its comm: a click may come while the rest of this is done.
            self.comm_id = uuid.uuid4().hex
            widget = made(
                part=self.json(live=True), kernel_id=self._kernel_id, comm_id=self.comm_id, model_id=self.comm_id
            )
            widget.on_msg(lambda _, content, buffers: self._on_message(self.comm_id, content, "widget"))
            self._shown_at = time.monotonic()
            show_object(widget, self.display_id)
            self._widget = widget

    def hello(self) -> None:
        """A front end shows the card, or somebody uses it; on any thread."""
        if self.heard is None:
            self.heard = time.monotonic() - self._shown_at

    def drawn(self) -> None:
        """A front end has drawn the card; on any thread. One that took its time is sent what it may have missed."""
        now = time.monotonic()
        self.hello()
        late = now - self._shown_at > LATE and now - self._drawn_at > LATE
        self._drawn_at = now  # the same word comes by two ways
        loop = self.call._loop
        if late and loop is not None:
            with contextlib.suppress(RuntimeError):  # the engine has ended
                loop.call_soon_threadsafe(self._write, lambda widget: widget.send_state("part"))

    @property
    def shown(self) -> bool:
        """Whether the live widget is on display."""
        return self._widget is not None

    def settle(self) -> None:
        """The call is over: plain output takes the widget's place. Only the first call does something."""
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
        finally:
            if widget is not None:
                layout = widget.layout  # a widget of its own, which nobody else would close
                widget.close()
                layout.close()

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settled card's MIME bundle. Never raises: a card that can't be drawn must not cost the call's result."""
        if self._bundle is not None:
            return self._bundle
        try:
            self._bundle = settled_bundle(self.json(live=False))
        except Exception:
            part = ended(self.call.part)
            log.exception("the card of %s could not be drawn", part.tool)
            self._bundle = ({"text/plain": f"{part.tool} ({part.outcome}); its card could not be drawn"}, {})
        return self._bundle
