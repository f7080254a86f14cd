"""``%mcp``: the MCP servers and their states; adding, connecting, removing them, their tools, prompts and resources."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.config.files import display
from ...core.config.save import ConfigFiles, Scope
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.secrets import is_secret_name
from ...core.suggestions import did_you_mean
from ...text.visible import visible
from ..tables import Notice, Table
from .command_line import CommandLine, as_typed, positive_seconds
from .commands import MCP
from .help import summary

if TYPE_CHECKING:
    from ...mcp import McpServers, ServerSpec
    from ...mcp.status import ServerStatus
    from ...workspace import Workspace
    from ..notebook import Notebook

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LOG_LINES = 50
"""Lines that ``%mcp logs`` shows by default."""
COLUMNS = ("server", "status", "tools", "transport", "target", "source", "trust", "note")
_NO_SERVER = "No MCP server yet: %mcp add NAME URL, or %mcp add NAME -- COMMAND"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_ENV = re.compile(r"\{env:([^}]+)\}")


def run(notebook: Notebook, line: str) -> Any:
    """Run a ``%mcp`` line.

    Raises:
        ToolError: there is no such subcommand, or it cannot be done.
    """
    from . import mcp_resources as offers
    from .mcp_login import log_in

    others = {"auth": log_in, "prompts": offers.list_prompts, "prompt": offers.show_prompt}
    others |= {"resources": offers.list_resources, "read": offers.read_resource}
    return McpLine(notebook, line).run(_HANDLERS | others)


class McpLine(CommandLine):
    """One ``%mcp`` line and the servers."""

    def __init__(self, notebook: Notebook, line: str) -> None:
        from ...mcp import McpServers

        dashes = line.find(" -- ")  # a command follows, which is read as a shell reads it
        super().__init__(notebook, MCP, line, None if dashes < 0 else dashes)
        self.servers: McpServers = notebook.workspace.service(McpServers)

    def server(self) -> str:
        """The server that the next word names.

        Raises:
            InvalidArgumentsError: there is none, or no such server.
        """
        return self.server_name(self.next("Which server?"))

    def only_server(self) -> str:
        """The server that the one word left names; see `server`."""
        name = self.server()
        self.end()
        return name

    def server_name(self, name: str) -> str:
        """A server's name.

        Raises:
            InvalidArgumentsError: there is no such server.
        """
        names = list(self.servers.specs())
        if name in names:
            return name
        hint = did_you_mean(name, names) or (f" There are {', '.join(names)}." if names else f" {_NO_SERVER}")
        raise InvalidArgumentsError(f"There is no MCP server {name}.{hint}")

    def spec(self, name: str) -> ServerSpec:
        """A server's configuration."""
        return self.servers.specs()[name]

    def connect(self, name: str) -> ServerStatus:
        """A server's status, connected if it can be. One that was switched off stays so.

        Raises:
            ToolError: it is switched off.
        """
        off = self.servers.switched_off(self.spec(name))
        if off:
            raise ToolError(off)
        status = self.servers.status()[name]
        return status if status.state == "connected" else self.wait(self.servers.connect(name))


def _list(line: McpLine) -> Table:
    line.end()
    rows = [_row(line, name, status) for name, status in line.servers.status().items()]
    return Table(rows, COLUMNS, notes=[MCP.pointer], empty=_NO_SERVER)


def _connect(line: McpLine) -> Table:
    name = line.only_server()
    return server_table(line, name, line.wait(line.servers.connect(name)))


def _disconnect(line: McpLine) -> Table:
    name = line.only_server()
    return server_table(line, name, line.wait(line.servers.disconnect(name)))


def _logs(line: McpLine) -> Notice:
    limit, name = line.count(LOG_LINES), line.only_server()
    lines = [visible(COLOURS.sub("", text)) for text in line.servers.logs(name)]
    if not lines:
        return Notice(f"The log of {name} is empty.")
    earlier = len(lines) - limit
    head = [f"({earlier} earlier lines: %mcp logs {name} -n {len(lines)})"] if earlier > 0 else []
    return Notice("\n".join([*head, *lines[-limit:]]))


def _tools(line: McpLine) -> Table:
    name = line.only_server()
    status = line.connect(name)
    rows = [
        {"tool": tool.id, "description": summary(tool)}
        for tool in line.servers.tools()
        if tool.source == f"mcp: {name}"
    ]
    notes = [f"%tool {rows[0]['tool']}? shows its arguments."] if rows else []
    empty = f"{name}: {problem_of(status) or 'it has no tools'}"
    return Table(rows, ("tool", "description"), notes=notes, empty=empty)


def server_table(line: McpLine, name: str, status: ServerStatus, notes: tuple[str, ...] = ()) -> Table:
    """The row of one server, and what to do about it."""
    more = list(notes)
    if status.state == "connected" and status.tools:
        more.append(f"Its tools: %mcp tools {name}")
    elif status.state == "failed":
        more.append(f"Log: %mcp logs {name}")
    return Table([_row(line, name, status)], COLUMNS, notes=more)


def _row(line: McpLine, name: str, status: ServerStatus) -> dict[str, Any]:
    return describe_server(line.workspace, line.servers, line.spec(name), status)


def describe_server(
    workspace: Workspace, servers: McpServers, spec: ServerSpec, status: ServerStatus
) -> dict[str, Any]:
    """One server as a row for people."""
    trusted = "yours" if spec.own else "trusted" if servers.is_trusted(spec) else "not trusted"
    return {
        "server": spec.name,
        "status": status.state,
        "tools": status.tools if status.state == "connected" else None,
        "transport": ("stdio" if spec.is_local else spec.transport or "http or sse")
        if spec.is_local or spec.url
        else None,
        "target": status.target,
        "source": _file_name(workspace, status.source or spec.source),
        "trust": trusted,
        "note": problem_of(status),
    }


def problem_of(status: ServerStatus) -> str:
    """Why a server is not connected, in one line."""
    return "" if status.state == "connected" else " ".join(status.error.split())


def _file_name(workspace: Workspace, name: str) -> str:
    """A config file's name, relative where that is shorter."""
    path = Path(name)
    if not path.is_absolute():
        return name
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    return display(path, workspace.worktree if versioned else workspace.directory, workspace.config.home)


# ---------------------------------------------------------------------- adding and removing


def _add(line: McpLine) -> Table:
    scope = _scope_option(line)
    name, entry = _entry(line)
    before = line.servers.specs().get(name)
    notes = [f"Replaces the one from {_file_name(line.workspace, before.source)}."] if before is not None else []
    if scope is None:
        # the session's entry is used as it is; a file's is filled in when it is read
        status = line.wait(line.servers.add(name, _filled(entry)))
        notes.append("Until the kernel ends; --save keeps it in this project, --global for you everywhere.")
        return server_table(line, name, status, tuple(notes))
    entry["type"] = "local" if "command" in entry else "remote"  # the file's reader tries both ways to reach one
    path = line.notebook.on_engine(_save, line, name, entry, scope)
    notes.append(f"Saved in {_file_name(line.workspace, str(path))}.")
    notes += [f"It holds {what} as text; {hint}" for what, hint in _secrets(entry)]
    status = line.wait(line.servers.connect(name))
    return server_table(line, name, status, tuple(notes))


def _remove(line: McpLine) -> Notice:
    keep = not (line.flag("--save") | line.flag("--global"))
    name = line.only_server()
    spec = line.spec(name)
    line.wait(_end_login(line, name))
    if line.wait(line.servers.remove(name)):
        remaining = line.servers.specs().get(name)
        if remaining is None:
            return Notice(f"Removed {name}.")
        if keep:
            return Notice(
                f"Removed {name} as it was added here; {_file_name(line.workspace, remaining.source)} still defines it."
            )
        spec = remaining
    source = _file_name(line.workspace, spec.source)
    if keep:
        raise ToolError(
            f"{name} comes from {source}. To remove it there: %mcp remove {name} --save; to stop it until the kernel "
            f"ends: %mcp disconnect {name}"
        )
    path = Path(spec.source)
    if not path.is_absolute() or path.suffix not in (".json", ".jsonc") or path.parent.name == ".vscode":
        raise ToolError(f"{name} comes from {source}, which is not rewritten; remove it there by hand.")
    if not line.notebook.on_engine(_remove_saved, line, name, path):
        raise ToolError(f"{source} has no {name} under mcp; remove it by hand where it is set.")
    remaining = line.servers.specs().get(name)
    note = f" {_file_name(line.workspace, remaining.source)} still defines it." if remaining is not None else ""
    return Notice(f"Removed {name}, also from {source}.{note}")


async def _end_login(line: McpLine, name: str) -> None:
    if line.spec(name).url:
        from ...mcp.logins import Logins

        await line.workspace.service(Logins).cancel(name)


def _scope_option(line: McpLine) -> Scope | None:
    save, everywhere = line.flag("--save"), line.flag("--global")
    return "user" if everywhere else "project" if save else None


def _entry(line: McpLine) -> tuple[str, dict[str, Any]]:
    """The server's name, and its entry as in a config file."""
    sse = line.flag("--sse")
    headers = _pairs(line, "--header")
    variables = _pairs(line, "--env")
    timeout = line.option("--timeout")
    argv = _command(line)
    name = line.next("Which server?")
    if not _NAME.fullmatch(name):
        raise InvalidArgumentsError(
            f"{name} is no name for a server: letters, digits, _, - and . are. "
            f"Its tools will be NAME_tool. {line.usage}"
        )
    entry: dict[str, Any]
    if argv is not None:
        line.end()
        _none(line, "--header and --sse are for a server with a URL", headers or sse)
        entry = {"type": "local", "command": argv, **({"environment": variables} if variables else {})}
    else:
        url = line.next("") if line.rest else ""
        if not url.startswith(("http://", "https://")):
            text = " ".join([url, *map(as_typed, line.rest)]).strip()
            near = f" Did you mean: %mcp add {name} -- {text}" if text else f" {line.usage}"
            raise InvalidArgumentsError(f"{text or 'Nothing'} is not a URL.{near}")
        line.end()
        _none(line, "--env is for a server that is a command; a URL takes --header", variables)
        entry = {"type": "sse" if sse else "remote", "url": url, **({"headers": headers} if headers else {})}
    if timeout is not None:
        entry["timeout"] = max(1, round(positive_seconds("--timeout", timeout) * 1000))
    return name, entry


def _command(line: McpLine) -> list[str] | None:
    """The words after ``--``; None if there is no ``--``."""
    _, dashes, tail = line.line.partition(" -- ")
    if not dashes and not any(word.text == "--" and not word.quoted for word in line.rest):
        return None
    try:
        argv = shlex.split(tail)
    except ValueError as error:
        raise InvalidArgumentsError(f"The command can't be read: {str(error).lower()}.") from None
    if not argv:
        raise InvalidArgumentsError(f"Give a command after --. {line.usage}")
    line.rest = [word for word in line.rest if word.text != "--"]
    return argv


def _pairs(line: McpLine, option: str) -> dict[str, str]:
    """The values of an option that may come several times: ``K=V``, or for headers ``'K: V'``."""
    pairs: dict[str, str] = {}
    while (value := line.option(option)) is not None:
        mark = ":" if option == "--header" and ":" in value.partition("=")[0] else "="
        key, equals, text = value.partition(mark)
        if not equals or not key.strip():
            raise InvalidArgumentsError(f"{option} needs KEY=VALUE, not {key.strip() or 'nothing'}.")
        if any(c in value for c in "\r\n\0"):
            raise InvalidArgumentsError(f"{option} {key.strip()}: its value goes over several lines.")
        pairs[key.strip()] = text.strip()
    return pairs


def _none(line: McpLine, why: str, value: Any) -> None:
    if value:
        raise InvalidArgumentsError(f"{why}. {line.usage}")


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with the values of ``{env:NAME}``, as a file's reader fills them in."""

    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise InvalidArgumentsError(f"The variable {match[1]} of {match[0]} is not set in this kernel.")
        return json.dumps(os.environ[match[1]])[1:-1]

    filled: dict[str, Any] = json.loads(_ENV.sub(variable, json.dumps(entry)))
    return filled


def _files(line: McpLine) -> ConfigFiles:
    workspace = line.workspace
    return ConfigFiles(workspace.directory, workspace.worktree, workspace.overrides)


def _save(line: McpLine, name: str, entry: dict[str, Any], scope: Scope) -> Path:
    """Write it down and read it again. Whoever typed it need not be asked whether to trust it."""
    path = _files(line).save_server(name, entry, scope)
    line.workspace.reload_config()
    spec = line.servers.specs().get(name)
    if spec is not None and not spec.own and Path(spec.source) == path:
        line.workspace.trust.grant(spec.subject())
    return path


def _remove_saved(line: McpLine, name: str, path: Path) -> bool:
    is_removed = _files(line).remove_server(name, path)
    if is_removed:
        line.workspace.reload_config()
    return is_removed


def _secrets(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Names of values that look like secrets and are saved as plain text, with what to do."""
    pairs = [*entry.get("headers", {}).items(), *entry.get("environment", {}).items()]
    names = [key for key, value in pairs if is_secret_name(key) and "{env:" not in value and "{file:" not in value]
    return [(name, f"{{env:{re.sub(r'[^A-Z0-9]+', '_', name.upper())}}} in its place keeps it out.") for name in names]


_HANDLERS = {
    "list": _list,
    "add": _add,
    "remove": _remove,
    "connect": _connect,
    "disconnect": _disconnect,
    "logs": _logs,
    "tools": _tools,
}
