"""The command ``mcp``: its options. Light: ``--help`` must not load the tool system."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

AskMode = Literal["elicit", "deny"]

ABOUT = """\
Serve this project's tools to another agent as an MCP server on standard input and output. Calls go by the same rules
as a model's calls in a notebook: permissions from opencode.json, asks, limits on output.
"""
EXAMPLE = """\
in a client's configuration:
  {"mcpServers": {"project": {"command": "python",
    "args": ["-m", "opencode_jupyter", "mcp", "--directory", "/path/to/project"]}}}
"""


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve.

    Attributes:
        directory: where calls run.
        agent: whose rules hold; None for the project's default one.
        model: ``provider/model`` the tools are chosen for; None for no model in particular.
        tools: names and patterns of tools to offer, in the order of the command line; see `Offer`. Empty: what a model
            is offered.
        ask: ``elicit`` asks the person through the client, where it can; ``deny`` refuses whatever no rule allows.
        allow: rules to add, as ``(permission, pattern)``; what a rule of the configuration denies stays denied.
        timeout: seconds a call may take, waiting for a person not counted; None for no limit.
        data_dir: saved outputs and the store; None for the user's data folder.
    """

    directory: Path = field(default_factory=Path.cwd)
    agent: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    ask: AskMode = "elicit"
    allow: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    data_dir: Path | None = None


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


def _run(parsed: argparse.Namespace) -> int:
    from .process import run

    options = Options(
        directory=parsed.directory,
        agent=parsed.agent,
        model=parsed.model,
        tools=parsed.tools,
        ask=parsed.ask,
        allow=tuple(parsed.allow),
        timeout=parsed.timeout,
        data_dir=parsed.data_dir,
    )
    return run(options, verbose=parsed.verbose)


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
