"""The card of a run: the model's text and calls, live while it works, plain output when it has ended.

Only changes are sent (an item, a piece of text), some ten times a second at most; a timer makes the JSON,
not the run's report of a change. The whole is sent to a page that draws the card. In a terminal the text is
printed as it arrives, with a line for each call that has ended.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...core.call_state import now_ms
from ...core.threads import call_soon
from ...text.visible import readable
from .approval_json import RequestView
from .display import Bundle, LiveDisplay
from .run_json import RunItems, call_json
from .run_mimebundle import call_lines, end_text, live_text, lost_bundle, settled_bundle
from .widget import live_widget
from .wording import end_of

if TYPE_CHECKING:
    from ...agent.answer import Answer
    from ...agent.run import Run
    from ...core.call import Call
    from ..kernel.waiting import Waiter

VERSION = 1
"""Of the run's JSON."""

FLUSH_INTERVAL = 0.1
"""Seconds between two updates: ten a second keep a page and the IOPub limits (1 MB/s) at ease."""
WHOLE_AFTER = 0.05
"""Seconds after a page's hello, which arrives by several routes, until the whole is sent to it once."""
WHOLE_INTERVAL = 0.5
"""Seconds between two sendings of the whole."""


def _waited(calls: Iterable[Call]) -> float:
    """Seconds in which some call of a run waited for a person; simultaneous waits count once."""
    seconds, until = 0.0, 0.0
    for start, end in sorted(wait for call in calls for wait in call.waits):
        seconds += max(end - max(start, until), 0.0)
        until = max(until, end)
    return seconds


class RunCard(LiveDisplay):
    """The card of one run.

    Args:
        run: the run.
        waiter: the cell that waits; None for a run in the background.
        mode: the permission mode that the session is in now; "" for the usual one.
        prints: also print the run as it goes, as in a terminal, where a cell waits.
        **options: see `LiveDisplay`.
    """

    def __init__(
        self,
        run: Run,
        waiter: Waiter | None,
        *,
        mode: Callable[[], str] = str,
        prints: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(f"run_{uuid.uuid4().hex}", waiter, **options)
        self.run: Run = run
        self.answer: Answer | None = None
        self._printer = _RunPrinter(waiter.submit) if prints and waiter is not None else None
        self.items = RunItems(run, self._changed, self._printer.on_call if self._printer is not None else None)
        self._mode = mode
        self._started = now_ms()
        self._ended: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._whole_timer: asyncio.TimerHandle | None = None
        self._flushed = 0.0
        self._whole_at = 0.0
        run.on_change = self._on_change

    # ------------------------------------------------------------------ on the engine's thread

    def start(self) -> None:
        """Start with the run."""
        self._loop = asyncio.get_running_loop()
        self._started = now_ms()
        super().start()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self._ended is not None

    def end(self) -> None:
        """Note that the run has ended, with an answer or without."""
        self._ended = now_ms()
        self.before_prompt()
        for timer in (self._timer, self._whole_timer):
            if timer is not None:
                timer.cancel()

    def before_prompt(self) -> None:
        """End the printed line."""
        if self._printer is not None:
            self._printer.end()

    def _on_change(self, run: Run, kind: str, change: Any) -> None:
        self.items.on_change(run, kind, change)
        if self._printer is not None:
            self._printer.on_change(run, kind, change)

    def _changed(self) -> None:
        if self._timer is None and self._widget is not None and self._loop is not None and not self.is_over:
            wait = self._flushed + FLUSH_INTERVAL - time.monotonic()
            self._timer = self._loop.call_later(max(wait, 0.01), self._flush)

    def show_requests(self) -> None:
        """Show the pending requests at once."""
        if self._widget is not None:
            self._flush()

    def set_requests(self, requests: dict[str, list[RequestView]]) -> None:
        """Replace the pending requests."""
        self.items.note_requests(self.requests, requests)
        super().set_requests(requests)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._widget is None or self._settled:
            return
        self._flushed = time.monotonic()
        message = {"kind": "run", "head": self.head(), **self.items.changes(self.requests)}
        self._write(lambda widget: widget.send(message))

    def _send_whole(self) -> None:
        self._whole_timer = None
        if self._widget is None or self._settled:
            return
        self._whole_at = time.monotonic()
        message = {"kind": "whole", "run": self.json(live=True)}
        self._write(lambda widget: widget.send(message))

    def _send_whole_soon(self) -> None:
        if self._whole_timer is None and self._loop is not None and not self.is_over:
            wait = self._whole_at + WHOLE_INTERVAL - time.monotonic()
            self._whole_timer = self._loop.call_later(max(wait, WHOLE_AFTER), self._send_whole)

    # ------------------------------------------------------------------ its JSON

    def find(self, call_id: Any) -> Any:
        """The call of that id; the run itself if no id is given."""
        if not call_id or call_id == self.key:
            return self.run
        return next((call for call in self.items.calls() if call.part.call_id == call_id), None)

    def head(self) -> dict[str, Any]:
        """The run's JSON without its items."""
        run, session = self.run, self.run.session
        head: dict[str, Any] = {
            "v": VERSION,
            "id": self.key,
            "sessionID": session.id,
            "title": session.title,
            "agent": run.agent.name if hasattr(run, "agent") else run.options.agent or "",
            "model": model_name(run),
            "status": run.status,
            "step": run.step,
            "tokens": run.usage.whole,
            "started": self._started,
            "waited": round(_waited(run.calls) * 1000),
        }
        mode = self._mode()
        if mode:
            head["mode"] = mode
        if run.cost is not None:
            head["cost"] = run.cost
        if run.retry is not None:
            head["retry"] = dict(run.retry)
        return head

    def json(self, *, live: bool) -> dict[str, Any]:
        """The run's present JSON; in a settled one, running calls count as interrupted. Any thread."""
        fields = {**self.head(), "items": self.items.all_items(self.requests, live=live)}
        return fields if live else {**fields, **self._end_fields()}

    def _end_fields(self) -> dict[str, Any]:
        run = self.run
        status, reason = run.status, run.reason
        if status not in ("done", "rejected", "stopped", "failed"):
            status, reason = "stopped", "interrupted"  # the cell went on without it
        ending: dict[str, Any] = {"status": status, "ended": self._ended or now_ms()}
        if status == "stopped":
            ending["outcome"] = "interrupted" if reason == "interrupted" else "stopped"
        end = end_of(status, self.answer.ended if self.answer is not None else "", run.error, reason)
        if end is not None:
            ending["end"] = end
        return ending

    # ------------------------------------------------------------------ on the thread that waits

    def _make_widget(self) -> Any | None:
        made = live_widget("run", live_text, lost_bundle)
        if made is None:
            return None
        return made(run=self.json(live=True), kernel_id=self._kernel_id, comm_id=self.comm_id, model_id=self.comm_id)

    def _resend(self, late: bool) -> None:
        if self._loop is not None:
            call_soon(self._loop, self._send_whole_soon)

    def _settled_bundle(self) -> Bundle:
        bundle = settled_bundle(self.json(live=False))
        if self._printer is not None:  # the words were printed as they came
            bundle[0]["text/plain"] = end_text(self.json(live=False))
        return bundle

    def _summary(self) -> str:
        return f"the run ended ({self.run.status})"


def model_name(run: Run) -> str:
    """The model's name, as far as it is known before the run starts."""
    if hasattr(run, "model"):
        return run.model.info.full
    return run.options.model if isinstance(run.options.model, str) else ""


class _RunPrinter:
    """Prints what a run does.

    Args:
        submit: runs a function on the thread that waits.
    """

    def __init__(self, submit: Callable[[Callable[[], Any]], Any]) -> None:
        self._submit = submit
        self._midline = False
        self._part = ""

    def on_change(self, run: Run, kind: str, change: Any) -> None:
        """See `Run.on_change`."""
        if kind == "delta":
            part, text = change
            if part["type"] == "text" and not part.get("synthetic"):
                if part["id"] != self._part:
                    self._part = part["id"]
                    self._line("")
                self._midline = not text.endswith("\n")
                self._write(readable(text))
        elif kind == "status" and run.retry is not None:
            self._line(f"· retrying: {run.retry.get('message', '')}")
        elif kind == "status" and run.status == "compacting":
            self._line("· summarising the conversation")

    def on_call(self, call: Call) -> None:
        """Print a call that has ended."""
        for line in call_lines(call_json(call, {}, live=True)):
            self._line(line)

    def end(self) -> None:
        """End the line: the run has ended, or a prompt follows."""
        if self._midline:
            self._line("")

    def _line(self, text: str) -> None:
        head = "\n" if self._midline else ""
        self._midline = False
        if head or text:
            self._write(f"{head}{text}\n" if text else head)

    def _write(self, text: str) -> None:
        def write() -> None:
            sys.stdout.write(text)
            sys.stdout.flush()

        self._submit(write)
