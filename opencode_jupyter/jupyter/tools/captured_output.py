"""The output of a run of code as it grows, and as the result has it in the end."""

from __future__ import annotations

from typing import Any

from ...core.context import ToolContext
from ...core.result import PRINTED, TABLES, ToolResult
from ...core.spill import Spill, Spilled
from .capture import Capture

PREVIEW = 30_000
"""Characters of output that the card shows while the code runs."""
LINE = 64 * 1024
"""Characters of a line that may still be overwritten (by a carriage return)."""


class LiveOutput:
    """Reads captured output: shows its end while the code runs, keeps the whole in a spill file if it is long.

    Lines that a progress bar writes over and over (with carriage returns) are kept as they last stood.
    """

    def __init__(self, ctx: ToolContext, capture: Capture, description: str | None) -> None:
        self._ctx = ctx
        self._capture = capture
        self._more: dict[str, Any] = {"description": description} if description else {}
        self._sink = Spill(ctx.workspace.truncation)
        self._line = ""
        self._shown = ""
        self._last: dict[str, Any] = {}

    def update(self, message: str | None = None) -> None:
        """Show the output so far. `message` says why there is none yet."""
        self._take()
        metadata = dict(self._more)
        text = self._text()
        if message is not None:
            metadata["progress"] = {"message": message}
        if text:
            metadata["output"] = text
        if self._sink.path is not None:
            metadata["outputPath"] = self._sink.path
        if metadata != self._last:
            self._last = metadata
            self._ctx.metadata(metadata=metadata)

    def abandon(self, note: str | None) -> None:
        """Keep the output so far on the running part: the call was stopped."""
        self._take()
        text = "\n".join(filter(None, [self._text().rstrip("\n"), note]))
        self._ctx.metadata(metadata={**self._more, **({"output": text} if text else {})})

    def finish(self) -> Spilled:
        """End, and return the whole output, cut to the limits."""
        self._capture.finish()
        self._take()
        self._feed(self._line.rstrip("\r"))
        self._line = ""
        return self._sink.finish(self._ctx.workspace.agents.get(self._ctx.agent))

    def result(self, title: str, note: str, value: Any = None) -> ToolResult:
        """The result of the run; `value` is that of its last expression."""
        spilled = self.finish()
        pictures = self._capture.attachments
        output = "\n".join(filter(None, [spilled.text.removesuffix("\n"), note]))
        metadata = {**self._more, "output": output[-PREVIEW:], **spilled.metadata()}
        if pictures:
            metadata["pictures"] = len(pictures)
        if self._capture.tables:
            metadata[TABLES] = self._capture.tables
        if (self._capture.described or (pictures and not output)) and not spilled.truncated:
            metadata[PRINTED] = _remove_blocks(output, self._capture.described)
        return ToolResult(title, output or "(no output)", metadata, list(pictures), value=value)

    def close(self) -> None:
        """Close the spill file."""
        self._capture.finish()
        self._sink.close()

    def _text(self) -> str:
        head = self._sink.live(PREVIEW) if self._sink.bytes else ""
        return head + self._line[-PREVIEW:]

    def _take(self) -> None:
        text = self._capture.take()
        if not text:
            return
        lines, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            if "\r" in lines:
                lines = "\n".join(map(_last_state, lines.split("\n")))
            self._feed(lines + "\n")
        if "\r" in self._line:
            self._line = _last_state(self._line, more=True)
        if len(self._line) > LINE:
            self._feed(self._line)
            self._line = ""

    def _feed(self, text: str) -> None:
        if text:
            self._sink.feed(text.encode("utf-8", "replace"))


def _remove_blocks(output: str, texts: list[str]) -> str:
    """`output` without these blocks of lines, which stand in it in this order."""
    before_texts, rest = "", f"\n{output}\n"
    for text in texts:
        before, match, after = rest.partition(f"\n{text}\n")
        if match:
            before_texts, rest = before_texts + before, f"\n{after}"
    return (before_texts + rest).strip("\n")


def _last_state(line: str, *, more: bool = False) -> str:
    """A line as it stands after its carriage returns; with `more`, one at its end still waits for what comes."""
    body = line.rstrip("\r")
    last = body.rpartition("\r")[2]
    return last + "\r" if more and body != line else last
