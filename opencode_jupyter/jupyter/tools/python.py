"""python: run code in the user's own namespace, on the kernel's main thread."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import Field

from ...core.context import ToolContext
from ...core.errors import ToolAbortedError, ToolError, ToolTimeoutError
from ...core.result import PRINTED, TABLES, ToolResult
from ...core.schema import Arguments
from ...core.spill import Spill, Spilled
from ...core.tool import Tool
from ...tools.builtin import builtin
from ..cards.display import LIVE_AFTER
from . import PYTHON_CARD
from .capture import Capture, current
from .code_run import CodeError, CodeOutcome, CodeRun
from .interrupts import interrupt_children

if TYPE_CHECKING:
    from ..notebook import Notebook

DEFAULT_TIMEOUT = 120.0
"""Seconds that code may run if nothing else is said."""
ATTEMPTS = 5
"""How often code is asked to end that does not."""
BETWEEN = 0.5
"""Seconds between two of these."""
INTERVAL = 0.1
"""Seconds between two looks at the output."""
REST = 0.3
"""Seconds to wait for what a child process may still write when the code is over."""
STEP = 0.005
"""Seconds between two looks whether they have."""
PREVIEW = 30_000
"""Characters of output that the card shows while the code runs."""
LINE = 64 * 1024
"""Characters of a line that may still be overwritten (by a carriage return)."""
STUBBORN = (
    "The code did not stop when it was interrupted: it catches KeyboardInterrupt, or is inside a C function. "
    "It still runs on the kernel's main thread; if it does not end, restart the kernel."
)
NO_THREAD = (
    "The code was not run: the main thread is not available, since no cell is waiting for it "
    "(in a terminal: use no --bg)."
)
NESTED = "The python tool can't be called by code that it runs. Run that code directly."
WAITING = "waiting for the kernel's main thread"


class Parameters(Arguments):
    """What to run, and how long."""

    code: str = Field(description="The Python code to run, as in a notebook cell")
    timeout: float = Field(
        default=DEFAULT_TIMEOUT, gt=0, le=1e9, description="Time limit in seconds, from when the code starts"
    )
    description: str | None = Field(default=None, description="What the code does, in 5 to 10 words")


def python_tool(notebook: Notebook) -> Tool:
    """The tool, for one notebook."""
    turn = asyncio.Lock()

    @builtin(
        "python",
        Parameters,
        group="run",
        body="code",
        effect="acts",
        example="%tool python sum(range(10))",
        card=PYTHON_CARD,
    )
    async def python(args: Parameters, ctx: ToolContext) -> ToolResult:
        """Run Python code in the kernel."""
        if "\0" in args.code:
            raise ToolError("The code has a NUL character, which Python source can't have; write \\0 in a string.")
        # A pattern over code would promise more than it could hold: the permission is for all code or for none.
        await ctx.ask("python", ["*"], ["*"], {"command": args.code})
        ctx.proceed()
        if current() is not None:  # it would wait for the code that calls it
            raise ToolError(NESTED)
        async with turn:
            return await _run(notebook, args, ctx)

    return python


async def _run(notebook: Notebook, args: Parameters, ctx: ToolContext) -> ToolResult:
    capture = Capture(notebook.shell, descriptors=notebook.kernel is not None)
    live = LiveOutput(ctx, capture, args.description)
    pulse = notebook.link.pump
    run = CodeRun(notebook.shell, args.code, capture, pulse)

    def cancel_unless_run(job: asyncio.Future[None]) -> None:
        if not job.cancelled() and isinstance(job.exception(), RuntimeError):
            run.finished.cancel()  # no thread took it

    job = asyncio.wrap_future(notebook.engine.on_main(ctx.call_id, run.begin))
    job.add_done_callback(cancel_unless_run)
    finished = asyncio.ensure_future(asyncio.wrap_future(run.finished))
    try:
        await _show_soon(notebook, ctx, run, finished)
        outcome = await _wait(run, finished, live, args.timeout, pulses=pulse is not None)
        if outcome is None:
            ended = await _stop(run, finished)
            ctx.abort.abort("timeout")
            raise await _timed_out(args.timeout, live, ended)
        await _wait_for_rest(capture)
        return _result(outcome, live, args, ctx, run.value)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            if not run.finished.cancelled():
                live.abandon(None if await _stop(run, finished) else STUBBORN)
        raise
    finally:
        live.close()


async def _show_soon(notebook: Notebook, ctx: ToolContext, run: CodeRun, finished: asyncio.Future[CodeOutcome]) -> None:
    """Show the card of code that takes its time: the main thread, which would, is busy with the code."""
    await asyncio.wait([finished], timeout=LIVE_AFTER)
    if run.began is not None and not finished.done():
        notebook.cards.show_call(ctx.call_id)


async def _wait(
    run: CodeRun, finished: asyncio.Future[CodeOutcome], live: LiveOutput, limit: float, *, pulses: bool
) -> CodeOutcome | None:
    """The run's end; None if its time is over."""
    next_stop = 0.0
    while True:
        seconds = INTERVAL if run.began is None else min(INTERVAL, run.began + limit - time.monotonic())
        if seconds <= 0:
            return None
        await asyncio.wait([finished], timeout=seconds)
        if finished.cancelled():
            raise ToolError(NO_THREAD)
        if finished.done():
            return finished.result()
        run.report_threads()
        live.update(WAITING if run.began is None else None)
        if run.is_half_interrupted and time.monotonic() >= next_stop:
            next_stop = time.monotonic() + BETWEEN
            run.stop()
        elif pulses:
            run.wake_main()


async def _stop(run: CodeRun, finished: asyncio.Future[CodeOutcome]) -> bool:
    """End the code; False if it continues."""
    for _ in range(ATTEMPTS):
        run.stop()
        if run.began is not None:
            await asyncio.to_thread(interrupt_children, run.other_children)
        await asyncio.wait([finished], timeout=BETWEEN)
        if finished.done():
            return True
    return False


async def _wait_for_rest(capture: Capture) -> None:
    """Wait for the last bytes of child processes."""
    for _ in range(round(REST / STEP)):
        if capture.is_drained:
            return
        await asyncio.sleep(STEP)


def _result(outcome: CodeOutcome, live: LiveOutput, args: Parameters, ctx: ToolContext, value: Any) -> ToolResult:
    title = args.description or next((line.strip() for line in args.code.splitlines() if line.strip()), "")[:120]
    match outcome.kind:
        case "interrupted":
            ctx.abort.abort("interrupted")
            raise ToolAbortedError(reason="interrupted")
        case "stopped":
            raise ToolAbortedError
        case "error" if outcome.traceback is not None:
            printed = live.finish()
            text = "\n".join(filter(None, [printed.text.rstrip("\n"), outcome.traceback.plain]))
            ctx.metadata(title, {"traceback": outcome.traceback.coloured, **printed.metadata()})
            raise CodeError(text, outcome.error)
    note = ""
    if outcome.kind == "exit":
        code = getattr(outcome.error, "code", None)
        note = f"[the code exited (SystemExit{'' if code is None else f': {code}'}); the kernel keeps running]"
        if code not in (None, 0):
            printed = live.finish()
            raise CodeError("\n".join(filter(None, [printed.text.rstrip("\n"), note])), outcome.error)
    return live.result(title, note, value)


async def _timed_out(seconds: float, live: LiveOutput, ended: bool) -> ToolTimeoutError:
    error = ToolTimeoutError("python", seconds)
    text = str(error)
    if not ended:
        text += " " + STUBBORN
    printed = live.finish().text.rstrip("\n")
    if printed:
        text += f"\nOutput until then:\n{printed}"
    error.args = (text,)
    return error


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
        self._last: dict[str, Any] = {}

    def update(self, message: str | None = None) -> None:
        """Show the output so far; `message` is the reason why there is none yet."""
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
