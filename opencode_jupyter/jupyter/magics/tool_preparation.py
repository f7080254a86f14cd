"""Prepares a tool before its line is parsed by its schema: loads files, starts programs, requests trust.

Preparations that need trust are a call of their own, whose card requests it; others have no card. It is kept in the
history like any other. Then the line is read and its call made.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.call import Call
from ...core.context import ToolContext
from ...core.result import ToolResult
from ...core.tool import Definition, Manifest, Tool
from ...workspace import Workspace
from .tool_line import CallRequest, tool_of

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

NAME = "trust"
"""The name of the call that requests trust."""
LISTING = 5.0
"""Seconds that a list of tools waits for those that are not ready."""

_background: weakref.WeakKeyDictionary[Notebook, concurrent.futures.Future[None]] = weakref.WeakKeyDictionary()


def prepare(notebook: Notebook, line: str) -> None:
    """Prepare the tool that a ``%tool`` line names, or all of them for a line that names none; blocks.

    Raises:
        ToolError: a person denied the trust that it needs.
    """
    name, may_ask = _requested_tool(line)
    if not needs_preparation(notebook, name):
        return
    notebook.runner.wait(_prepare(notebook, name))
    if may_ask and name is not None and needs_preparation(notebook, name):
        notebook.runner.run_sync(notebook.call(_trust_request(name, line)))


async def prepare_async(notebook: Notebook, line: str) -> None:
    """`prepare`, awaited.

    Raises:
        ToolError: a person denied the trust that it needs.
    """
    name, may_ask = _requested_tool(line)
    if not needs_preparation(notebook, name):
        return
    await notebook.runner.wait_async(_prepare(notebook, name))
    if may_ask and name is not None and needs_preparation(notebook, name):
        await notebook.runner.run_async(notebook.call(_trust_request(name, line)))


def prepare_all(notebook: Notebook) -> None:
    """Prepare all tools that need no trust; blocks."""
    prepare(notebook, "")


def prepare_in_background(notebook: Notebook, then: Callable[[], None] | None = None) -> None:
    """Prepare all tools that need no trust in the background, unless that is running; `then` is called at its end."""
    running = _background.get(notebook)
    try:
        if (running is None or running.done()) and needs_preparation(notebook, None):
            future = notebook.engine.submit(notebook.workspace.registry.prepare(None))
            _background[notebook] = future
            if then is not None:
                future.add_done_callback(lambda _: then())
    except Exception:  # a config file that can't be read; the next call reports it
        log.debug("tools can't be prepared", exc_info=True)


def needs_preparation(notebook: Notebook, name: str | None) -> bool:
    """Whether there is anything to do for a tool (None: for all), in the folder where the next call runs."""
    notebook.follow_folder()
    registry = notebook.workspace.registry
    if name is not None:
        registry.invalidate()
    return not registry.is_fresh(name)


def _requested_tool(line: str) -> tuple[str | None, bool]:
    """The tool that a line names, and whether a person may be asked for it: not for help or a dry run."""
    name = tool_of(line)
    if name is None:
        return None, False
    words = set(line.split())
    is_help_or_dry_run = name.endswith("?") or bool(words & {"--help", "-h", "--dry-run"})
    return name.rstrip("?"), not is_help_or_dry_run


async def _prepare(notebook: Notebook, name: str | None) -> None:
    """Prepare a tool, or all for at most `LISTING`: slower ones continue, and the list shows what is missing."""
    preparing = asyncio.ensure_future(notebook.workspace.registry.prepare(name))
    try:
        ended, _ = await asyncio.wait({preparing}, timeout=LISTING if name is None else None)
    except asyncio.CancelledError:
        preparing.cancel()
        raise
    for task in ended:
        task.result()


def _trust_request(name: str, line: str) -> CallRequest:
    """A call that requests the trust that a tool needs."""

    def make(workspace: Workspace, request: CallRequest) -> Call:
        async def execute(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
            await workspace.registry.prepare(name, call)
            return ToolResult(title=", ".join(p for d in call.part.decisions for p in d.patterns))

        definition = Definition("Requests trust before code of a project runs.", {}, execute)
        trust_tool = Tool(NAME, definition, manifest=Manifest(builtin=True))
        call = workspace.start(request.tool, request.arguments, agent=request.agent, by="user", tool=trust_tool)
        return call

    return CallRequest(NAME, {"tool": name}, quiet=bool({"-q", "--quiet"} & set(line.split())), make=make)
