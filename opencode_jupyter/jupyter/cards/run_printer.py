"""A run in a terminal: the model's text as it arrives, a line for each call that has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...text.visible import readable
from .run_json import call_json
from .run_mimebundle import call_lines

if TYPE_CHECKING:
    from ...agent.run import Run
    from ...core.call import Call


class RunPrinter:
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
