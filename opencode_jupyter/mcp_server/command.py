"""``python -m opencode_jupyter mcp``: its options, and the server's process from start to end.

Light at the top: ``--help`` must not load the tool system.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import os
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import ServeOptions

if TYPE_CHECKING:
    import anyio

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

log = logging.getLogger(__name__)

ABOUT = """\
Serve this project's tools to another agent as an MCP server on standard input and output. Calls go by the same rules
as a model's calls in a notebook: permissions from opencode.json, approvals, limits on output.
"""
EXAMPLE = """\
in a client's configuration:
  {"mcpServers": {"project": {"command": "python",
    "args": ["-m", "opencode_jupyter", "mcp", "--directory", "/path/to/project"]}}}
"""
NESTED = "OPENCODE_JUPYTER_MCP"
"""Set in this process and what it starts. A server that finds it set was started by one, perhaps since the project's
configuration names this very server: it then starts no MCP servers itself, or each would start the next."""


def add_command(commands: Commands) -> None:
    """Add ``mcp`` to the sub-commands."""
    mcp = commands.add_parser(
        "mcp",
        help="serve this project's tools as an MCP server",
        description=ABOUT,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mcp.add_argument(
        "--directory", type=_folder, default=Path.cwd(), metavar="DIR", help="where calls run (default: here)"
    )
    mcp.add_argument("--agent", metavar="NAME", help="whose rules hold (default: the project's default agent)")
    mcp.add_argument("--model", metavar="PROVIDER/MODEL", help="choose and describe the tools as for this model")
    mcp.add_argument(
        "--tools",
        type=_names,
        default=(),
        metavar="LIST",
        help="which tools are available: names or patterns separated by commas, -NAME removes one, "
        "+NAME adds one to the defaults (write --tools=-bash). Default: the tools a model has",
    )
    mcp.add_argument(
        "--ask",
        choices=("elicit", "deny"),
        default="elicit",
        help="when a call needs permission: ask the person through the client (elicitation), or refuse. A client "
        "without elicitation gets the refusal too, with the rule that would allow the call (default: elicit)",
    )
    mcp.add_argument(
        "--allow",
        type=_rule,
        action="append",
        default=[],
        metavar="PERMISSION[:PATTERN]",
        help='allow this while the server runs, such as "bash:git status *" or "edit"; may be repeated; does not '
        "overrule a rule of the configuration that denies",
    )
    mcp.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="how long a call may take (default: no limit)")
    mcp.add_argument("--data-dir", type=Path, metavar="DIR", help="where saved outputs go (default: your data folder)")
    mcp.add_argument("--verbose", action="store_true", help="log more on standard error")
    mcp.set_defaults(run=_run)


def _folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return path


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name for part in text.split(",") if (name := part.strip()))
    if not names or any(name in ("-", "+") for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} names no tools; write names with commas, such as read,grep")
    return names


def _rule(text: str) -> tuple[str, str]:
    permission, _, pattern = text.partition(":")
    if not permission.strip():
        raise argparse.ArgumentTypeError(f'{text!r} names no permission; write "bash:git status *" or "edit"')
    return permission.strip(), pattern.strip() or "*"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


# ---------------------------------------------------------------------- the process


def _run(parsed: argparse.Namespace) -> int:
    """Serve until the client closes its end or a signal ends the process; the exit status, 2 if it could not start."""
    from ..mcp.errors import missing_sdk

    if reason := missing_sdk():
        return _failed(reason)
    if os.isatty(0):
        sys.stderr.write("A client's messages are awaited on standard input; Ctrl-C ends this.\n")
    level = logging.INFO if parsed.verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(name)s: %(message)s")
    options = ServeOptions(**{option.name: getattr(parsed, option.name) for option in fields(ServeOptions)})
    asyncio.run(_serve(options))
    return 0


async def _serve(options: ServeOptions) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    # From here on the protocol alone has standard input and output; what anything prints goes to standard error.
    async with stdio_server() as (messages, answers):
        status = 0
        try:
            with anyio.CancelScope() as scope:
                _cancel_on_signals(scope)
                status = await _serve_streams(options, messages, answers)
            ended = status == 0 and not scope.cancelled_caught
        except asyncio.CancelledError:  # the client reads no more
            ended = False
        if not ended:
            # The SDK's thread that reads standard input can't be interrupted, and leaving would wait for it.
            logging.shutdown()
            os._exit(status)


async def _serve_streams(options: ServeOptions, messages: Any, answers: Any) -> int:
    import anyio

    from ..core.errors import ToolError
    from ..workspace import Workspace
    from .server import ToolServer

    nested = bool(os.environ.get(NESTED))
    os.environ[NESTED] = "1"
    try:
        workspace = Workspace(options.directory, _without_servers(options) if nested else None, options.data_dir)
        await workspace.__aenter__()
        try:
            served = ToolServer(workspace, options)
            await served.server.run(messages, answers, served.initialization)
        finally:
            with anyio.CancelScope(shield=True):  # all its calls end too
                await workspace.aclose()
    except (ToolError, NotADirectoryError) as error:
        return _failed(str(error))
    except Exception:
        log.exception("the server failed")
        return 1
    return 0


def _failed(reason: str) -> int:
    sys.stderr.write(f"opencode_jupyter mcp: {reason}\n")
    return 2


def _without_servers(options: ServeOptions) -> dict[str, Any]:
    """Configuration that switches off the MCP servers that the project's files name."""
    from ..core.config import load_config
    from ..core.paths import find_worktree
    from ..mcp.configuration import configured

    worktree = find_worktree(options.directory)
    names = list(configured(load_config(options.directory, worktree), options.directory, worktree))
    if names:
        log.warning("started by another server of this kind: its MCP servers are not used here (%s)", ", ".join(names))
    return {"mcp": {name: {"enabled": False} for name in names}}


def _cancel_on_signals(scope: anyio.CancelScope) -> None:
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        # one that was ignored before (nohup) stays so; on Windows the process just ends
        if number is not None and sys.platform != "win32" and signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, scope.cancel)
