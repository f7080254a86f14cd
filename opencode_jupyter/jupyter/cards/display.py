"""Displays of a cell: live while work is running and plain output when it has ended, and values that display theirs.

A live widget is replaced through its ``display_id`` when the work ends, so it is never what a notebook saves. After its
display only the engine's thread writes to the widget; showing and settling happen on the thread that waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ...core.result import ToolResult
from ..kernel.ipykernel_compat import expect_late_messages
from ..kernel.waiting import interrupts_held
from .approval_json import RequestView

if TYPE_CHECKING:
    from ...agent.run import Run
    from ..kernel.waiting import Waiter
    from ..tools.capture import Capture

log = logging.getLogger(__name__)

Bundle = tuple[dict[str, Any], dict[str, Any]]
KEPT = 50
"""Cards kept, the last ones; each of a call has at most some 200 KB."""
CHARS = 20_000_000
"""Most characters of them together, by their HTML: a run's card can have some MB."""
LIVE_AFTER = 0.15
"""Seconds after which running work is shown live; quicker work shows only its settled form."""
LATE = 1.0
"""Seconds after which a page that draws a display may have lost updates (anywidget drops those of a slow model)."""

CAPTURE: contextvars.ContextVar[Capture | None] = contextvars.ContextVar("opencode_capture", default=None)
"""The run of code that captures the output of this context."""


@contextlib.contextmanager
def outside_capture() -> Iterator[None]:
    """Output inside is the cell's: the cards and questions of a call that captured code makes."""
    token = CAPTURE.set(None)
    try:
        yield
    finally:
        CAPTURE.reset(token)


def show_bundle(bundle: Bundle, *, display_id: str | None = None, update: bool = False) -> None:
    """Display a MIME bundle as it is, or put it in the place of the display with this id."""
    from IPython.display import display

    data, metadata = bundle
    options: dict[str, Any] = {"display_id": display_id, "update": update} if display_id else {}
    display(data, metadata=metadata, raw=True, **options)  # type: ignore[no-untyped-call]


def show_object(value: Any, display_id: str) -> None:
    """Display an object that can be replaced later."""
    from IPython.display import display

    display(value, display_id=display_id)  # type: ignore[no-untyped-call]


class LiveDisplay(ABC):
    """The base of a call's card and a run's.

    Args:
        key: the id of the call or run.
        waiter: the cell that waits; None for work in the background.
        on_message: receives every message of the widget: ``(comm id, data, route)``.
        quiet: show nothing unless the work requests approval.
        kernel_id: for the front end's control channel.
        live: whether live widgets can be shown here at all.
        live_after: seconds after which it goes live.
        durations: whether its text form has the duration.
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
        self.waiter = waiter
        self.quiet = quiet
        self.display_id = f"opencode-{uuid.uuid4().hex}"
        self.comm_id = ""
        self.requests: dict[str, list[RequestView]] = {}
        """Pending requests, oldest first, by the id of their call."""
        self.hello_after: float | None = None
        """Seconds until a front end first reported that it shows the display; None while none has."""
        self.can_live = live
        self.durations = durations
        self.may_be_unseen: Callable[[], bool] = lambda: False
        """Whether the front end may be one without widgets, which ignores updates of a display."""
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

    # ------------------------------------------------------------------ what calls and runs implement

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether the work has ended."""

    @abstractmethod
    def find(self, call_id: Any) -> Any:
        """The call or run that a page means by `call_id`, which has an `abort`; None if there is none."""

    @abstractmethod
    def show_requests(self) -> None:
        """Show `requests`, which have changed. On the engine's thread."""

    @abstractmethod
    def _make_widget(self) -> Any | None:
        """The widget as it is now; None where none can be made."""

    @abstractmethod
    def _settled_bundle(self) -> Bundle:
        """The plain output in the widget's place."""

    @abstractmethod
    def _summary(self) -> str:
        """The work's end in a line, where its card cannot be rendered."""

    @abstractmethod
    def _resend(self, late: bool) -> None:
        """Send a page that has drawn the widget what it may have missed if it was `late`; on any thread."""

    def before_prompt(self) -> None:  # noqa: B027 - only a run prints
        """End what is printed, before a terminal's prompt."""

    # ------------------------------------------------------------------ on the engine's thread

    def start(self) -> None:
        """Start: go live in a moment, unless the work has ended by then."""
        if not self.quiet:
            asyncio.get_running_loop().call_later(self._live_after, self.go_live)

    def go_live(self) -> None:
        """Show the live widget, if the work is running and none is shown."""
        if self._wanted or self._settled or not self.can_live or self.is_over:
            return
        self._wanted = True
        if self.waiter is not None:
            self.waiter.submit(self.show)

    def set_requests(self, requests: dict[str, list[RequestView]]) -> None:
        """Replace the pending requests; of each call the oldest is shown."""
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
        """Note that a front end shows the display; on any thread."""
        if self.hello_after is None:
            self.hello_after = time.monotonic() - self._shown_at

    def note_drawn(self) -> None:
        """Note that a front end has drawn it; on any thread. A slow one is sent what it may have missed."""
        now = time.monotonic()
        self.note_shown()
        late = now - self._shown_at > LATE and now - self._drawn_at > LATE
        self._drawn_at = now  # the same message arrives by two routes
        self._resend(late)

    @property
    def is_shown(self) -> bool:
        """Whether the live widget is on display."""
        return self._widget is not None

    def settle(self) -> None:
        """Replace the widget by plain output: the work has ended. Only the first call does something."""
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
        """The settled form's MIME bundle. Never raises: a card that can't be rendered must not cost the result."""
        if self._bundle is None:
            try:
                self._bundle = self._settled_bundle()
            except Exception:
                log.exception("the card of %s could not be drawn", self.key)
                self._bundle = {"text/plain": f"{self._summary()}; its card could not be rendered"}, {}
        return self._bundle


class CellValue:
    """What a magic returned.

    As the last value of the cell that made it, it displays nothing (the card is there); later it displays its card.
    """

    cell: int
    bundle: Bundle

    def __await__(self) -> Generator[Any, None, Self]:
        """Give the value itself, so that ``await run_line_magic("tool", ...)`` works where the magic has blocked."""
        yield from ()
        return self

    def is_displayed_by_cell(self) -> bool:
        """Whether the cell that runs now has displayed its card."""
        from IPython import get_ipython

        shell = get_ipython()
        return shell is not None and shell.execution_count == self.cell

    def _ipython_display_(self) -> None:
        if not self.is_displayed_by_cell():
            show_bundle(self.bundle if self.bundle[0] else ({"text/plain": repr(self)}, {}))


@dataclass(repr=False)
class CellResult(CellValue, ToolResult):
    """A `ToolResult` that a magic returned."""

    tool: str = ""
    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))

    def __repr__(self) -> str:
        size = f"{self.output.count(chr(10)) + 1} lines" if self.output else "no output"
        rows = f", {type(self.value).__name__}" if self.value is not None else ""  # rows of a frame would take long
        if self.value is None and self.records is not None:
            rows = f", {len(self.records)} records"
        cut = ", cut" if self.truncated else ""
        return f"<{self.tool} result: {self.title or 'untitled'} ({size}{rows}{cut})>"


class SettledCards:
    """The MIME bundles that replaced live cards, by the id of their call.

    A reloaded page shows a live card, but not what takes its place; when it finds the live card gone, it requests that
    on the control channel.
    """

    def __init__(self) -> None:
        self._cards: dict[str, Bundle] = {}

    def keep(self, call_id: str, bundle: Bundle) -> None:
        """Keep a card's MIME bundle; the oldest goes."""
        self._cards[call_id] = bundle
        while len(self._cards) > 1 and (len(self._cards) > KEPT or self._size() > CHARS):
            del self._cards[next(iter(self._cards))]

    def _size(self) -> int:
        return sum(len(str(data.get("text/html", ""))) for data, _ in self._cards.values())

    def on_message(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a page: ``cards`` (MIME bundles by call id) of those that are kept, and their ``metadata``.

        On the control thread.
        """
        call_ids = request.get("callIDs")
        names = [name for name in call_ids if isinstance(name, str)] if isinstance(call_ids, list) else []
        cards = {name: self._cards[name] for name in names if name in self._cards}
        return {
            "cards": {name: data for name, (data, _) in cards.items()},
            "metadata": {name: metadata for name, (_, metadata) in cards.items()},
        }
