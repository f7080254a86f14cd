"""One call of a JavaScript tool: its context, its permission requests, its metadata, its result or error."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidArgumentsError, PermissionCorrectedError, ToolError
from ..core.result import ToolResult, attachments_of
from ..core.validation_issues import sentences_of_json
from .worker import Worker, WorkerEndedError

if TYPE_CHECKING:
    from ..core.context import ToolContext

_NAMES = {
    "PermissionRejectedError": "RejectedError",
    "PermissionCorrectedError": "CorrectedError",
    "PermissionDeniedError": "DeniedError",
}
"""Our errors by the names that OpenCode has for them (docs/opencode/core.md 10.8)."""
NEEDS_BUN = (
    'it needs Bun: pip install "opencode-jupyter[bun]" (or install it from https://bun.com), or write the file with '
    "node:child_process and node:fs in place of what only Bun has"
)
_NO_BUN = re.compile(r"\bBun is not defined\b")


class JavaScriptError(ToolError):
    """A tool threw an error.

    Attributes:
        name: the error's name in JavaScript (``TypeError``).
        stack: its stack, with the file and line that threw it.
    """

    def __init__(self, name: str, message: str, stack: str = "") -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.name = name
        self.stack = stack


async def call(
    worker: Worker, path: Path, id: str, export: str, arguments: dict[str, Any], ctx: ToolContext
) -> ToolResult:
    """Run a tool in a worker that has its file loaded.

    Args:
        worker: the process; this runs on its event loop.
        path: the tool's file.
        id: the tool's id, for errors.
        export: its export's name.
        arguments: the original ones; the file's own types check them.
        ctx: of the call; its loop may be another.

    Raises:
        InvalidArgumentsError: the arguments do not fit.
        JavaScriptError: the tool threw an error.
        WorkerEndedError: the process ended meanwhile.
        ToolError: a person or a rule refused what the tool asked for, and it did not catch that.
        TypeError: it returned something that is no result.
    """
    refused: dict[int, ToolError] = {}
    asks: set[asyncio.Task[None]] = set()

    def on_event(message: dict[str, Any]) -> None:
        if message["event"] == "metadata":
            metadata = message.get("metadata")
            ctx.metadata(message.get("title"), metadata if isinstance(metadata, dict) else None)
        else:
            task = asyncio.ensure_future(_ask(worker, message, ctx, refused))
            asks.add(task)
            task.add_done_callback(asks.discard)

    request = {"method": "call", "path": str(path), "export": export, "args": arguments, "context": _context(ctx)}
    try:
        reply = await worker.request(request, on_event)
    finally:
        for task in tuple(asks):
            task.cancel()
    if "issues" in reply:
        raise InvalidArgumentsError(
            f"The {id} tool was called with invalid arguments: {reply['issues']}.\n"
            "Please rewrite the input so it satisfies the expected schema.",
            tool=id,
            cause=JavaScriptError("ZodError", reply["issues"]),
            for_person=sentences_of_json(id, reply["issues"]),
        )
    error = reply.get("error")
    if error is not None:
        raise refused.get(error.get("ask")) or _error_of_call(id, error)
    return _result(id, reply["result"])


async def _ask(worker: Worker, message: dict[str, Any], ctx: ToolContext, refused: dict[int, ToolError]) -> None:
    """Make a tool's permission request and send it the outcome."""
    answer: dict[str, Any] = {"method": "answer", "call": message["id"], "ask": message["ask"]}
    try:
        metadata = message["metadata"] if isinstance(message["metadata"], dict) else {}
        patterns, always = ([str(pattern) for pattern in message[name]] for name in ("patterns", "always"))
        await ctx.ask(message["permission"], patterns, always, metadata)
    except Exception as error:
        if isinstance(error, ToolError):
            refused[message["ask"]] = error
        name = type(error).__name__
        answer["error"] = {"name": _NAMES.get(name, name), "message": str(error)}
        if isinstance(error, PermissionCorrectedError):
            answer["error"]["feedback"] = error.feedback
    with contextlib.suppress(WorkerEndedError):
        worker.send(answer)


def _context(ctx: ToolContext) -> dict[str, Any]:
    """A call's context for its tool (docs/opencode/core.md 20)."""
    return {
        "sessionID": ctx.session_id,
        "messageID": ctx.message_id,
        "callID": ctx.call_id,
        "agent": ctx.agent,
        "directory": str(ctx.directory),
        "worktree": str(ctx.worktree),
    }


def _result(id: str, returned: dict[str, Any]) -> ToolResult:
    """A tool's result.

    Raises:
        TypeError: its metadata or attachments are not what OpenCode takes.
    """
    metadata, attachments = returned.get("metadata") or {}, returned.get("attachments") or []
    if not isinstance(metadata, dict) or not isinstance(attachments, list):
        raise TypeError(f"The {id} tool must return metadata as an object and attachments as a list")
    title = returned.get("title")
    return ToolResult("" if title is None else str(title), returned["output"], metadata, attachments_of(attachments))


def _error_of_call(tool: str, error: dict[str, Any]) -> ToolError:
    """The error that a call's tool threw."""
    name, message = str(error.get("name") or "Error"), str(error.get("message") or "")
    if name == "ExitError":
        return ToolError(f"The {tool} tool failed: {message}")
    if name == "ReferenceError" and _NO_BUN.search(message):
        return ToolError(f"The {tool} tool can't run here: {NEEDS_BUN}")
    return JavaScriptError(name, message, str(error.get("stack") or ""))
