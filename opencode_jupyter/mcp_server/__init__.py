"""This project's tools served to other agents over MCP: ``python -m opencode_jupyter mcp``.

`command` is the command line and the process, `server` the protocol's requests and the tools a client sees, `calls` one
call and its result, `forms` what a person is asked through the client. Importing this package loads nothing of the MCP
SDK.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["ServeOptions"]


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How to serve.

    Attributes:
        directory: where calls run.
        agent: whose rules hold; None for the project's default one.
        model: ``provider/model`` the tools are chosen for; None for no model in particular.
        tools: names and patterns of the tools to list, in the order of the command line; see `ClientToolFilter`. Empty:
            the tools that a model gets.
        ask: ``elicit`` asks the person through the client, where it can; ``deny`` refuses whatever no rule allows.
        allow: rules to add, as ``(permission, pattern)``; what a rule of the configuration denies stays denied.
        timeout: seconds a call may take, waiting for a person not counted; None for no limit.
        data_dir: saved outputs and the store; None for the user's data folder.
    """

    directory: Path = field(default_factory=Path.cwd)
    agent: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    ask: Literal["elicit", "deny"] = "elicit"
    allow: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    data_dir: Path | None = None
