"""``python -m opencode_jupyter``: what this package does outside a notebook."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ._version import __version__
from .mcp_server import command as mcp_command


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command each; each sets ``run``, which is given the parsed arguments."""
    made = argparse.ArgumentParser(
        prog="python -m opencode_jupyter", description="OpenCode's tool system, outside a notebook."
    )
    made.add_argument("--version", action="version", version=f"opencode_jupyter {__version__}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    mcp_command.add_command(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        arguments: without the program's name; the process's own if left out.

    Returns:
        The exit status.
    """
    parsed = parser().parse_args(arguments)
    return int(parsed.run(parsed))


if __name__ == "__main__":
    sys.exit(main())
