"""``%mcp``: the MCP servers there are and how they are; adding, connecting, logging in, what they offer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.config.files import display
from ...core.errors import InvalidArgumentsError
from ...text.visible import visible
from ..notebook import working_folder
from ..tables import Message, Table
from .help import summary
from .mcp_request import Request
from .tools import unknown
from .usage import pointer
from .words import words

if TYPE_CHECKING:
    from ...mcp import McpServers, ServerSpec
    from ...mcp.connection import Status
    from ...workspace import Workspace
    from ..notebook import Notebook

COLOURS = re.compile(r"\x1b\[[0-9;]*m")

LINES = 50
"""Lines that ``%mcp logs`` shows if it is not told how many."""
COLUMNS = ("server", "status", "tools", "transport", "target", "source", "trust", "note")
COMMANDS = (
    "list",
    "add",
    "remove",
    "connect",
    "disconnect",
    "auth",
    "logs",
    "tools",
    "prompts",
    "prompt",
    "resources",
    "read",
)


def run(notebook: Notebook, line: str) -> Any:
    """What a ``%mcp`` line asks for.

    Raises:
        ToolError: there is no such sub-command, or it can't be done.
    """
    found = words(line.partition(" -- ")[0])  # behind it stands a command, which is read as a shell reads it
    here = working_folder()
    if here != notebook.workspace.directory:
        notebook.on_engine(notebook.workspace.change_directory, here)
    command = found[0].text if found else "list"
    if command not in COMMANDS:
        raise unknown("%mcp", command, COMMANDS)
    return _commands()[command](Request(notebook, line, found[1:]))


def _commands() -> dict[str, Callable[[Request], Any]]:
    from . import mcp_add, mcp_login, mcp_offers

    return {
        "list": listed,
        "add": mcp_add.add,
        "remove": mcp_add.remove,
        "connect": connect,
        "disconnect": disconnect,
        "auth": mcp_login.auth,
        "logs": logs,
        "tools": tools,
        "prompts": mcp_offers.prompts,
        "prompt": mcp_offers.prompt,
        "resources": mcp_offers.resources,
        "read": mcp_offers.read,
    }


def listed(request: Request) -> Table:
    """``%mcp [list]``."""
    request.end("%mcp list shows the servers.")
    rows = [row(request, name, status) for name, status in request.servers.status().items()]
    empty = "No MCP server yet. %mcp add NAME URL, or %mcp add NAME -- COMMAND"
    return Table(rows, COLUMNS, notes=[pointer("%mcp")], empty=empty)


def connect(request: Request) -> Table:
    """``%mcp connect NAME``."""
    usage = "%mcp connect NAME starts a server."
    name = request.name(usage)
    request.end(usage)
    return one(request, name, request.wait(request.servers.connect(name)))


def disconnect(request: Request) -> Table:
    """``%mcp disconnect NAME``."""
    usage = "%mcp disconnect NAME stops a server."
    name = request.name(usage)
    request.end(usage)
    return one(request, name, request.wait(request.servers.disconnect(name)))


def logs(request: Request) -> Message:
    """``%mcp logs NAME [-n 50]``."""
    usage = "%mcp logs NAME [-n 50] shows a server's log."
    count = request.option("-n")
    name = request.name(usage)
    request.end(usage)
    limit = _number(count) if count is not None else LINES
    lines = [visible(COLOURS.sub("", line)) for line in request.servers.logs(name)]
    if not lines:
        return Message(f"The log of {name} is empty.")
    left = len(lines) - limit
    head = [f"({left} earlier lines: %mcp logs {name} -n {len(lines)})"] if left > 0 else []
    return Message("\n".join([*head, *lines[-limit:]]))


def tools(request: Request) -> Table:
    """``%mcp tools NAME``; connects the server if it is not yet."""
    usage = "%mcp tools NAME shows a server's tools."
    name = request.name(usage)
    request.end(usage)
    status = request.up(name)
    rows = [
        {"tool": tool.id, "description": summary(tool)}
        for tool in request.servers.tools()
        if tool.source == f"mcp: {name}"
    ]
    notes = [f"%tool {rows[0]['tool']}? shows its arguments."] if rows else []
    return Table(rows, ("tool", "description"), notes=notes, empty=f"{name}: {words_of(status) or 'it has no tools'}")


def one(request: Request, name: str, status: Status, notes: tuple[str, ...] = ()) -> Table:
    """The row of one server, and what to do about it."""
    more = list(notes)
    if status.state == "connected" and status.tools:
        more.append(f"Its tools: %mcp tools {name}")
    elif status.state == "needs_auth" and "%mcp auth" not in status.error:
        more.append(f"Log in: %mcp auth {name}")
    elif status.state == "failed":
        more.append(f"Log: %mcp logs {name}")
    return Table([row(request, name, status)], COLUMNS, notes=more)


def row(request: Request, name: str, status: Status) -> dict[str, Any]:
    """What a table says of one server."""
    return described(request.workspace, request.servers, request.spec(name), status)


def described(workspace: Workspace, servers: McpServers, spec: ServerSpec, status: Status) -> dict[str, Any]:
    """What people are told of one server."""
    trusted = "yours" if spec.own else "trusted" if servers.trusted(spec) else "not trusted"
    return {
        "server": spec.name,
        "status": status.state,
        "tools": status.tools if status.state == "connected" else None,
        "transport": ("stdio" if spec.local else spec.transport or "http or sse") if spec.local or spec.url else None,
        "target": status.target,
        "source": shown_file(workspace, status.source or spec.source),
        "trust": trusted,
        "note": words_of(status),
    }


def words_of(status: Status) -> str:
    """One line on a server that is not connected."""
    return "" if status.state == "connected" else " ".join(status.error.split())


def shown_file(workspace: Workspace, name: str) -> str:
    """A config file's name as short as it can be said from here."""
    path = Path(name)
    if not path.is_absolute():
        return name
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    return display(path, workspace.worktree if versioned else workspace.directory, workspace.config.home)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise InvalidArgumentsError(f"-n takes a whole number above 0, not {text}.")
    return int(text)
