"""The server as a process of its own: from its start to its end, with nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import anyio

from .options import Options
from .wire import Lines, Out, claim

if TYPE_CHECKING:
    from ..core.workspace import Workspace

log = logging.getLogger(__name__)

WITHIN = "OPENCODE_JUPYTER_MCP"
"""Set in this process and what it starts. A server that finds it set was started by one, perhaps since the project's
configuration names this very server: it then starts no MCP servers itself, or each would start the next."""


def run(options: Options, *, verbose: bool = False) -> int:
    """Serve until the client closes its end or the process is told to end.

    Returns:
        The exit status: 0, or 2 if it could not be started.
    """
    from ..mcp.errors import missing_sdk

    if reason := missing_sdk():
        sys.stderr.write(f"opencode_jupyter mcp: {reason}\n")
        return 2
    if os.isatty(0):
        sys.stderr.write("A client's messages are awaited on standard input; Ctrl-C ends this.\n")
    descriptors = claim()
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO if verbose else logging.WARNING, format="%(name)s: %(message)s"
    )
    from ..core.errors import ToolError

    try:
        asyncio.run(_serve(options, *descriptors))
    except (ToolError, NotADirectoryError) as error:
        sys.stderr.write(f"opencode_jupyter mcp: {error}\n")
        return 2
    return 0


async def _serve(options: Options, reading: int, writing: int) -> None:
    from ..core.workspace import Workspace

    nested = bool(os.environ.get(WITHIN))
    os.environ[WITHIN] = "1"
    with anyio.CancelScope() as scope:
        _end_on_signals(scope)
        workspace = Workspace(options.directory, _without_servers(options) if nested else None, options.data_dir)
        async with _opened(workspace):
            workspace.agent(options.agent)  # says what is wrong before the SDK is loaded, which takes a second or two
            from mcp.server.stdio import stdio_server

            from .server import ToolServer

            served = ToolServer(workspace, options)
            lines = cast("Any", Lines(reading))
            out = cast("Any", Out(writing, scope.cancel))
            async with stdio_server(lines, out) as (messages, answers):
                await served.server.run(messages, answers, served.initialization)


@contextlib.asynccontextmanager
async def _opened(workspace: Workspace) -> AsyncIterator[None]:
    """The workspace, closed with all its calls even when this task is being cancelled."""
    await workspace.__aenter__()
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await workspace.aclose()


def _without_servers(options: Options) -> dict[str, Any]:
    """Configuration that switches off the MCP servers that the project's files name."""
    from ..core.config import load_config
    from ..core.workspace import find_worktree
    from ..mcp.servers import configured

    worktree = find_worktree(options.directory)
    names = list(configured(load_config(options.directory, worktree), options.directory, worktree))
    if names:
        log.warning("started by another server of this kind: its MCP servers are not used here (%s)", ", ".join(names))
    return {"mcp": {name: {"enabled": False} for name in names}}


def _end_on_signals(scope: anyio.CancelScope) -> None:
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        # one that was ignored before (nohup) stays so
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError):  # Windows: the process just ends
                loop.add_signal_handler(number, scope.cancel)
