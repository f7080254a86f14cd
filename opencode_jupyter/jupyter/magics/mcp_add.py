"""``%mcp add`` and ``%mcp remove``: servers for this session, or kept in a config file."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from ...core.config.save import ConfigFiles, Place
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.secrets import is_secret_name
from ..tables import Message, Table
from .mcp import one, shown_file
from .mcp_request import Request, said

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_ENV = re.compile(r"\{env:([^}]+)\}")
_USAGE = "%mcp add NAME URL, or %mcp add NAME -- COMMAND ARGS..."


def add(request: Request) -> Table:
    """``%mcp add NAME URL|-- COMMAND ...``: add a server, connect it, and keep it if that is asked for."""
    place = _place(request)
    name, entry = _entry(request)
    before = request.servers.specs().get(name)
    notes = [f"Replaces the one from {shown_file(request.workspace, before.source)}."] if before is not None else []
    if place is None:
        # the session's entry is used as it is; a file's is filled in when it is read
        status = request.wait(request.servers.add(name, _filled(entry)))
        notes.append("Until the kernel ends; --save keeps it in this project, --global for you everywhere.")
        return one(request, name, status, tuple(notes))
    entry["type"] = "local" if "command" in entry else "remote"  # the file's reader tries both ways to reach one
    path = request.notebook.on_engine(_save, request, name, entry, place)
    notes.append(f"Saved in {shown_file(request.workspace, str(path))}.")
    notes += [f"It holds {what} as text; {hint}" for what, hint in _secrets(entry)]
    status = request.wait(request.servers.connect(name))
    return one(request, name, status, tuple(notes))


def remove(request: Request) -> Message:
    """``%mcp remove NAME [--save]``: one that was added here, or with ``--save`` one of a file."""
    usage = "%mcp remove NAME [--save]"
    keep = not (request.flag("--save") | request.flag("--global"))
    name = request.name(usage)
    request.end(usage)
    spec = request.spec(name)
    request.wait(_end_login(request, name))
    if request.wait(request.servers.remove(name)):
        left = request.servers.specs().get(name)
        if left is None:
            return Message(f"Removed {name}.")
        if keep:
            return Message(
                f"Removed {name} as it was added here; {shown_file(request.workspace, left.source)} still defines it."
            )
        spec = left
    source = shown_file(request.workspace, spec.source)
    if keep:
        raise ToolError(
            f"{name} comes from {source}. To remove it there: %mcp remove {name} --save; to stop it until the kernel "
            f"ends: %mcp disconnect {name}"
        )
    path = Path(spec.source)
    if not path.is_absolute() or path.suffix not in (".json", ".jsonc") or path.parent.name == ".vscode":
        raise ToolError(f"{name} comes from {source}, which is not rewritten; remove it there by hand.")
    if not request.notebook.on_engine(_take_out, request, name, path):
        raise ToolError(f"{source} has no {name} under mcp; remove it by hand where it is set.")
    left = request.servers.specs().get(name)
    more = f" {shown_file(request.workspace, left.source)} still defines it." if left is not None else ""
    return Message(f"Removed {name}, also from {source}.{more}")


async def _end_login(request: Request, name: str) -> None:
    if request.spec(name).url:
        from ...mcp.logins import Logins

        await request.workspace.service(Logins).give_up(name)


def _place(request: Request) -> Place | None:
    save, everywhere = request.flag("--save"), request.flag("--global")
    return "user" if everywhere else "project" if save else None


def _entry(request: Request) -> tuple[str, dict[str, Any]]:
    """The name, and what would stand under it in a config file."""
    sse = request.flag("--sse")
    headers = _pairs(request, "--header")
    variables = _pairs(request, "--env")
    timeout = request.option("--timeout")
    argv = _command(request)
    if not request.rest:
        raise InvalidArgumentsError(f"Which server? {_USAGE}")
    name = said(request.rest.pop(0))
    if not _NAME.fullmatch(name):
        raise InvalidArgumentsError(
            f"{name} is no name for a server: letters, digits, _, - and . are. Its tools will be NAME_tool. {_USAGE}"
        )
    entry: dict[str, Any]
    if argv is not None:
        request.end(_USAGE)
        _none("--header and --sse are for a server with a URL", headers or sse)
        entry = {"type": "local", "command": argv, **({"environment": variables} if variables else {})}
    else:
        url = said(request.rest.pop(0)) if request.rest else ""
        if not url.startswith(("http://", "https://")):
            given = " ".join([url, *map(said, request.rest)]).strip()
            near = f" Did you mean: %mcp add {name} -- {given}" if given else f" {_USAGE}"
            raise InvalidArgumentsError(f"{given or 'Nothing'} is not a URL.{near}")
        request.end(_USAGE)
        _none("--env is for a server that is a command; a URL takes --header", variables)
        entry = {"type": "sse" if sse else "remote", "url": url, **({"headers": headers} if headers else {})}
    if timeout is not None:
        entry["timeout"] = _milliseconds(timeout)
    return name, entry


def _command(request: Request) -> list[str] | None:
    """The words behind ``--``; None if there is no ``--``."""
    _, dashes, tail = request.line.partition(" -- ")
    if not dashes and not any(word.text == "--" and not word.quoted for word in request.rest):
        return None
    try:
        argv = shlex.split(tail)
    except ValueError as error:
        raise InvalidArgumentsError(f"The command can't be read: {str(error).lower()}.") from None
    if not argv:
        raise InvalidArgumentsError(f"Give a command after --. {_USAGE}")
    request.rest = [word for word in request.rest if word.text != "--"]
    return argv


def _pairs(request: Request, option: str) -> dict[str, str]:
    """The values of an option that may come several times: ``K=V``, or for headers ``'K: V'``."""
    found: dict[str, str] = {}
    while (value := request.option(option)) is not None:
        mark = ":" if option == "--header" and ":" in value.partition("=")[0] else "="
        key, given, text = value.partition(mark)
        if not given or not key.strip():
            raise InvalidArgumentsError(f"{option} needs KEY=VALUE, not {key.strip() or 'nothing'}.")
        if any(c in value for c in "\r\n\0"):
            raise InvalidArgumentsError(f"{option} {key.strip()}: its value goes over several lines.")
        found[key.strip()] = text.strip()
    return found


def _milliseconds(text: str) -> int:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise InvalidArgumentsError(f"--timeout needs a number of seconds above 0, not {text}.")
    return max(1, round(seconds * 1000))


def _none(why: str, given: Any) -> None:
    if given:
        raise InvalidArgumentsError(f"{why}. {_USAGE}")


def _filled(value: Any) -> Any:
    """What a file's reader does: ``{env:NAME}`` filled in."""
    if isinstance(value, str):
        return _ENV.sub(_variable, value)
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return {key: _filled(item) for key, item in value.items()} if isinstance(value, dict) else value


def _variable(found: re.Match[str]) -> str:
    if found[1] not in os.environ:
        raise InvalidArgumentsError(f"The variable {found[1]} of {found[0]} is not set in this kernel.")
    return os.environ[found[1]]


def _files(request: Request) -> ConfigFiles:
    workspace = request.workspace
    return ConfigFiles(workspace.directory, workspace.worktree, workspace.overrides)


def _save(request: Request, name: str, entry: dict[str, Any], place: Place) -> Path:
    """Write it down and read it again. Whoever typed it need not be asked whether to trust it."""
    path = _files(request).save_server(name, entry, place)
    request.workspace.reload_config()
    spec = request.servers.specs().get(name)
    if spec is not None and not spec.own and Path(spec.source) == path:
        request.workspace.trust.grant(spec.subject())
    return path


def _take_out(request: Request, name: str, path: Path) -> bool:
    done = _files(request).remove_server(name, path)
    if done:
        request.workspace.reload_config()
    return done


def _secrets(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Names of values that look like secrets and stand in the file as they are, with what to do."""
    pairs = [*entry.get("headers", {}).items(), *entry.get("environment", {}).items()]
    names = [key for key, value in pairs if is_secret_name(key) and "{env:" not in value and "{file:" not in value]
    return [(name, f"{{env:{re.sub(r'[^A-Z0-9]+', '_', name.upper())}}} in its place keeps it out.") for name in names]
