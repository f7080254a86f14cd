"""``%mcp``: the MCP servers there are and how they are; adding, connecting, logging in, what they offer."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.config.parse import display
from ..core.errors import InvalidArgumentsError, ToolError
from ..text.visible import visible
from .arguments_words import Word, words
from .help import summary
from .magic_tools import unknown
from .notebook import working_folder
from .tables import Message, Table
from .waiting import Waiter

if TYPE_CHECKING:
    from ..core.workspace import Workspace
    from ..mcp import McpServers, ServerSpec
    from ..mcp.connection import Status
    from .notebook import Notebook

T = TypeVar("T")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

LINES = 50
"""Lines that ``%mcp logs`` shows if it is not told how many."""
COLUMNS = ("server", "status", "tools", "transport", "target", "source", "trust", "note")
USAGE = (
    "%mcp [list]                           the servers, and how each is",
    "%mcp add NAME -- COMMAND ARGS...      a program on this machine  [--env K=V]",
    "%mcp add NAME URL                     a remote server  [--header K=V] [--sse]",
    "          --save, --global            also keep it: in the project's configuration, in your own",
    "%mcp remove NAME [--save]             take it away; --save: out of the file as well",
    "%mcp connect | disconnect NAME        start it (anew), end it",
    "%mcp auth NAME                        log in  [--code ADDRESS] [--forget] [--no-wait]",
    "%mcp logs NAME [-n 50]                what it wrote",
    "%mcp tools NAME                       its tools",
    "%mcp prompts [NAME], prompt NAME/KEY k=v ...",
    "%mcp resources [NAME], read NAME URI",
)
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


class Request:
    """One ``%mcp`` line: its words, and what they are about.

    Attributes:
        notebook: whose servers.
        line: the line.
        rest: the words behind the sub-command.
    """

    def __init__(self, notebook: Notebook, line: str, rest: list[Word]) -> None:
        from ..mcp import McpServers

        self.notebook = notebook
        self.line = line
        self.rest = rest
        self.servers: McpServers = notebook.workspace.service(McpServers)

    @property
    def workspace(self) -> Workspace:
        """The notebook's workspace."""
        return self.notebook.workspace

    def flag(self, name: str) -> bool:
        """Whether an option without a value is given; it is taken out of the words."""
        found = [word for word in self.rest if word.text == name and not word.quoted]
        self.rest = [word for word in self.rest if word not in found]
        return bool(found)

    def option(self, name: str) -> str | None:
        """An option's value, ``--name VALUE`` or ``--name=VALUE``; both words are taken out.

        Raises:
            InvalidArgumentsError: it has no value.
        """
        for place, word in enumerate(self.rest):
            if word.quoted or word.key is not None:
                continue
            head, equals, value = word.text.partition("=")
            if head != name:
                continue
            if equals:
                del self.rest[place]
                return value
            if place + 1 >= len(self.rest):
                raise InvalidArgumentsError(f"{name} wants a value behind it.")
            given = self.rest[place + 1]
            del self.rest[place : place + 2]
            return said(given)
        return None

    def name(self, usage: str) -> str:
        """The server that the first word names; the word is taken out.

        Raises:
            InvalidArgumentsError: there is none, or no such server.
        """
        if not self.rest:
            raise InvalidArgumentsError(f"Which server? {usage}")
        return self.known(said(self.rest.pop(0)))

    def known(self, name: str) -> str:
        """A server's name.

        Raises:
            InvalidArgumentsError: there is no such server.
        """
        there = list(self.servers.specs())
        if name in there:
            return name
        near = get_close_matches(name, there, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else f" There are {', '.join(there)}." if there else ""
        add = "" if there else " There is none yet: %mcp add NAME URL, or %mcp add NAME -- COMMAND"
        raise InvalidArgumentsError(f"There is no MCP server {name}.{hint}{add}")

    def end(self, usage: str) -> None:
        """Refuse what is left of the line.

        Raises:
            InvalidArgumentsError: there is something.
        """
        if self.rest:
            left = " ".join(said(word) for word in self.rest)
            raise InvalidArgumentsError(f"{left} is not understood here. {usage}")

    def spec(self, name: str) -> ServerSpec:
        """A server's configuration."""
        return self.servers.specs()[name]

    def up(self, name: str) -> Status:
        """How a server is, connected if it can be. One that was switched off stays so.

        Raises:
            ToolError: it is switched off.
        """
        status = self.servers.status()[name]
        if status.state == "disabled" and not status.error:
            raise ToolError(f"{name} is switched off; start it: %mcp connect {name}")
        return status if status.state == "connected" else self.wait(self.servers.connect(name))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the engine and wait for it; an interrupt ends both."""
        future = self.notebook.engine.submit(work)
        try:
            return Waiter(lambda reason: _cancel(future), self.notebook.beat).wait(future)
        except KeyboardInterrupt as error:
            raise self.notebook.for_cell(error) from None


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
    from . import magic_mcp_add, magic_mcp_auth, magic_mcp_offers

    return {
        "list": listed,
        "add": magic_mcp_add.add,
        "remove": magic_mcp_add.remove,
        "connect": connect,
        "disconnect": disconnect,
        "auth": magic_mcp_auth.auth,
        "logs": logs,
        "tools": tools,
        "prompts": magic_mcp_offers.prompts,
        "prompt": magic_mcp_offers.prompt,
        "resources": magic_mcp_offers.resources,
        "read": magic_mcp_offers.read,
    }


def listed(request: Request) -> Table:
    """``%mcp [list]``."""
    request.end("%mcp list shows the servers.")
    rows = [row(request, name, status) for name, status in request.servers.status().items()]
    empty = "No MCP server yet. %mcp add NAME URL, or %mcp add NAME -- COMMAND"
    return Table(rows, COLUMNS, notes=USAGE, empty=empty)


def connect(request: Request) -> Table:
    """``%mcp connect NAME``."""
    usage = "%mcp connect NAME starts a server."
    name = request.name(usage)
    request.end(usage)
    return one(request, name, request.wait(request.servers.connect(name)))


def disconnect(request: Request) -> Table:
    """``%mcp disconnect NAME``."""
    usage = "%mcp disconnect NAME ends a server."
    name = request.name(usage)
    request.end(usage)
    return one(request, name, request.wait(request.servers.disconnect(name)))


def logs(request: Request) -> Message:
    """``%mcp logs NAME [-n 50]``."""
    usage = "%mcp logs NAME [-n 50] shows what a server wrote."
    count = request.option("-n")
    name = request.name(usage)
    request.end(usage)
    limit = _number(count) if count is not None else LINES
    lines = [visible(_COLOURS.sub("", line)) for line in request.servers.logs(name)]
    if not lines:
        return Message(f"{name} has written nothing.")
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
    notes = [f"%tool {rows[0]['tool']}? says what one takes."] if rows else []
    return Table(rows, ("tool", "description"), notes=notes, empty=f"{name}: {words_of(status) or 'it has no tools'}")


def one(request: Request, name: str, status: Status, notes: tuple[str, ...] = ()) -> Table:
    """The row of one server, and what to do about it."""
    more = list(notes)
    if status.state == "connected" and status.tools:
        more.append(f"Its tools: %mcp tools {name}")
    elif status.state == "needs_auth" and "%mcp auth" not in status.error:
        more.append(f"Log in: %mcp auth {name}")
    elif status.state == "failed":
        more.append(f"What it wrote: %mcp logs {name}")
    return Table([row(request, name, status)], COLUMNS, notes=more)


def row(request: Request, name: str, status: Status) -> dict[str, Any]:
    """What a table says of one server."""
    spec = request.spec(name)
    trusted = "yours" if spec.own else "trusted" if request.servers.trusted(spec) else "not trusted"
    return {
        "server": name,
        "status": status.state,
        "tools": status.tools if status.state == "connected" else None,
        "transport": ("stdio" if spec.local else spec.transport or "http or sse") if spec.local or spec.url else None,
        "target": status.target,
        "source": shown_file(request.workspace, status.source or spec.source),
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


def said(word: Word) -> str:
    """A word as it was meant; ``key=value`` whole."""
    return word.text if word.key is None else f"{word.key}={word.text}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise InvalidArgumentsError(f"-n wants a whole number above 0, not {text}.")
    return int(text)


def _cancel(future: Any) -> None:
    future.cancel()
