"""Which MCP servers a project has: OpenCode's ``mcp``, Claude's ``.mcp.json``, VS Code's ``.vscode/mcp.json``."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..core.config import Config
from ..core.config.files import upwards
from ..core.fingerprint import Fingerprint
from ..core.flags import flag
from ..core.secrets import hide, is_secret_name
from ..core.trust import Subject, digest
from .errors import McpError, missing_sdk

if TYPE_CHECKING:
    from ..core.host import ToolHost

CONNECT_LIMIT = 30.0
"""Seconds for connecting, and again for the first listing (docs/opencode/core.md 19.2)."""
RECHECK = 1.0
"""Seconds in which the files of other programs are not looked at again."""
UNTRUSTED = "not trusted yet; run %tools trust"
CALL_LIMIT = 60.0
"""Seconds a call may take without progress: the SDKs' documented default."""
FILES = (".vscode/mcp.json", ".mcp.json")
"""Files of other programs, in load order: the later overrides; OpenCode's own files override both."""
_PASSWORD = re.compile(r"(://[^/\s:@]*):[^/\s@]+@")
_DEFINING_KEYS = frozenset({"type", "command", "args", "environment", "env", "cwd", "url", "headers", "oauth"})
"""Keys that define what is started or reached; the others only switch it on or off."""


class ServerSpec(NamedTuple):
    """One server, as it is to be started or reached.

    Attributes:
        name: its name in the configuration.
        command: program and arguments of a local server; empty for a remote one.
        environment: set for a local server, over the kernel's own environment.
        cwd: where a local server runs; "" for the workspace's folder.
        url: of a remote server; "" for a local one.
        headers: sent with every request to a remote server.
        transport: ``http``, ``sse``, or "" to try the one, then the other.
        oauth: ``{clientId, clientSecret, scope}``, False for none, None to discover it.
        enabled: False: it is never connected.
        timeout: seconds for connecting, listing and calls; None for the defaults.
        source: the file that configures it.
        own: it comes from the user's own configuration, not from a file of the project.
        problem: why it can't be used as it is configured.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    transport: Literal["", "http", "sse"] = ""
    oauth: Any = None
    enabled: bool = True
    timeout: float | None = None
    source: str = ""
    own: bool = True
    problem: str = ""

    @property
    def is_local(self) -> bool:
        """True if it is a program on this machine."""
        return bool(self.command)

    @property
    def secrets(self) -> list[str]:
        """Values that are never shown: of headers, and of variables whose names say so."""
        secrets = [value for name, value in self.environment.items() if is_secret_name(name)]
        for value in self.headers.values():
            secrets += [value, value.rpartition(" ")[2]]
        if isinstance(self.oauth, Mapping) and isinstance(self.oauth.get("clientSecret"), str):
            secrets.append(self.oauth["clientSecret"])
        return [value for value in secrets if len(value) > 3]

    @property
    def target(self) -> str:
        """The command line or the address, without secrets."""
        return self._without_secrets(shlex.join(self.command) if self.is_local else self.url.partition("?")[0])

    def _without_secrets(self, text: str) -> str:
        text = hide(text, self.secrets)  # a configuration may have put one of the kernel's into the command line
        return _PASSWORD.sub(r"\1:***@", text)

    def subject(self) -> Subject:
        """What a person has to trust before the server is started or reached."""
        variables = {k: "" if is_secret_name(k) else v for k, v in self.environment.items()}
        identity = [self.command, sorted(variables.items()), self.cwd, self.url, sorted(self.headers)]
        shown: dict[str, Any] = {"server": self.name, "environment": sorted(self.environment)}
        if self.is_local:
            # variables too: LD_PRELOAD or NODE_OPTIONS change what a command does
            assigned = [
                f"{k}=***" if is_secret_name(k) else self._without_secrets(f"{k}={shlex.quote(v)}")
                for k, v in sorted(self.environment.items())
            ]
            shown["command"] = " ".join([*assigned, self.target])
        else:
            shown["url"] = self.target
            shown["content"] = "\n".join([f"connects to {self.target}", *(f"sends {name}" for name in self.headers)])
        return Subject("mcp server", f"{self.name} of {self.source}", digest(json.dumps(identity)), shown)


class ServerConfiguration:
    """The servers of a workspace: of its files, and those that were added or switched here."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._added: dict[str, ServerSpec] = {}
        self._off: set[str] = set()
        self._read: _ServersRead | None = None

    def specs(self) -> dict[str, ServerSpec]:
        """The servers that are configured or were added, by name."""
        workspace, read, now = self._workspace, self._read, time.monotonic()
        same = read is not None and read.config is workspace.config and read.directory == workspace.directory
        if read is None or not same or now >= read.until:
            if read is not None and same and read.files.matches():
                read = self._read = read._replace(until=now + RECHECK)
            else:
                files = Fingerprint(files_of_others(workspace.directory, workspace.worktree))
                specs = configured(workspace.config, workspace.directory, workspace.worktree)
                if specs and (reason := missing_sdk()):
                    specs = {name: spec._replace(problem=spec.problem or reason) for name, spec in specs.items()}
                read = self._read = _ServersRead(workspace.config, workspace.directory, files, specs, now + RECHECK)
        return {**read.specs, **self._added} if self._added else read.specs

    def spec(self, name: str) -> ServerSpec:
        """A server.

        Raises:
            McpError: there is no such server.
        """
        specs = self.specs()
        if name not in specs:
            names = ", ".join(specs) or "none; add one under mcp in opencode.json"
            raise McpError(name, f"there is no MCP server {name!r}; there are: {names}")
        return specs[name]

    def is_trusted(self, spec: ServerSpec) -> bool:
        """Return whether a server may be started without asking."""
        return spec.own or self._workspace.trust.known(spec.subject())

    def can_start(self, spec: ServerSpec) -> bool:
        """Return whether a server is configured well and switched on."""
        return spec.enabled and not spec.problem and spec.name not in self._off

    def switched_off(self, spec: ServerSpec) -> str:
        """How to start a server that is switched off; "" for another one."""
        is_off = not spec.problem and not self.can_start(spec)
        return f"{spec.name} is switched off; start it: %mcp connect {spec.name}" if is_off else ""

    def obstacle(self, spec: ServerSpec) -> str:
        """Why a server must not be started now; "" if it may."""
        if not spec.enabled or spec.name in self._off:
            return "disconnected"
        return "" if self.is_trusted(spec) else UNTRUSTED

    def add(self, spec: ServerSpec) -> None:
        """Add a server, in place of one of that name."""
        self._added[spec.name] = spec
        self._off.discard(spec.name)

    def remove(self, name: str) -> bool:
        """Forget a server that was added; False if only a file has it."""
        self._off.discard(name)
        return self._added.pop(name, None) is not None

    def switch_on(self, spec: ServerSpec) -> ServerSpec:
        """Let a server be started, whatever its file says."""
        self._off.discard(spec.name)
        if not spec.enabled:
            spec = self._added[spec.name] = spec._replace(enabled=True)
        return spec

    def switch_off(self, spec: ServerSpec) -> None:
        """Keep a server from being started."""
        self._off.add(spec.name)


class _ServersRead(NamedTuple):
    """The servers of the files as they were read last."""

    config: Config
    directory: Path
    files: Fingerprint
    specs: dict[str, ServerSpec]
    until: float


def spec_of(name: str, entry: Any, *, source: str = "", own: bool = True) -> ServerSpec:
    """One entry of a configuration as a `ServerSpec`; ``problem`` says what is wrong with it."""

    def invalid(problem: str) -> ServerSpec:
        return ServerSpec(name, source=source, own=own, problem=problem)

    if not isinstance(entry, Mapping):
        return invalid(f"mcp.{name} must be an object such as {{'type': 'local', 'command': ['npx', '...']}}")
    enabled = entry.get("enabled") is not False and entry.get("disabled") is not True
    command, url = entry.get("command"), entry.get("url")
    kind = entry.get("type") or ("local" if command else "remote" if url else None)
    common: dict[str, Any] = {"source": source, "own": own, "enabled": enabled, "timeout": _seconds(entry)}
    if kind is None:
        if not enabled:
            return ServerSpec(name, **common)
        return invalid(f'mcp.{name} has neither "command" nor "url", and no other file says what it is')
    if kind in ("local", "stdio"):
        program = [command] if isinstance(command, str) else command
        arguments = entry.get("args") or []
        if not isinstance(program, list) or not program or not isinstance(arguments, list):
            return invalid(f"mcp.{name}.command must be a list of texts: the program and its arguments")
        variables = _texts(entry.get("environment") or entry.get("env"))
        if variables is None:
            return invalid(f"mcp.{name}.environment must be an object of texts")
        argv = tuple(str(argument) for argument in (*program, *arguments))
        return ServerSpec(name, argv, variables, cwd=str(entry.get("cwd") or ""), **common)
    if kind in ("remote", "http", "streamable-http", "sse"):
        headers = _texts(entry.get("headers"))
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            return invalid(f"mcp.{name}.url must be an address that begins with https:// or http://")
        if headers is None:
            return invalid(f"mcp.{name}.headers must be an object of texts")
        transport: Literal["", "http", "sse"] = "sse" if kind == "sse" else "" if kind == "remote" else "http"
        return ServerSpec(name, url=url, headers=headers, transport=transport, oauth=entry.get("oauth"), **common)
    return invalid(f"mcp.{name}.type is {kind!r}; it should be local or remote")


def configured(config: Config, directory: Path, worktree: Path) -> dict[str, ServerSpec]:
    """The servers of a project, by name, in the order of the configuration."""
    specs: dict[str, ServerSpec] = {}
    if not flag("OPENCODE_DISABLE_PROJECT_CONFIG"):
        for path in files_of_others(directory, worktree):
            specs.update(_of_file(path, config.home))
    entries = config.get("mcp")
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        source, own = _origin(config, str(name))
        defined = specs.get(str(name))
        if defined is not None and isinstance(entry, Mapping) and not _DEFINING_KEYS & set(entry):
            # a switch for a server that another file defines
            merged = {**_entry_of(defined), **entry}
            specs[str(name)] = spec_of(str(name), merged, source=defined.source, own=defined.own)
        else:
            specs[str(name)] = spec_of(str(name), entry, source=source, own=own)
    return specs


def files_of_others(directory: Path, worktree: Path) -> list[Path]:
    """Where a project's files of other programs may be, in load order."""
    base, top = Path(os.path.realpath(directory)), Path(os.path.realpath(worktree))
    folders = list(upwards(base, top if top != Path(top.anchor) else base))[::-1]
    return [folder / name for name in FILES for folder in folders]


def _of_file(path: Path, home: Path) -> dict[str, ServerSpec]:
    """The servers of a file of Claude's or VS Code's form."""
    is_vs_code = path.parent.name == ".vscode"
    folder = path.parent.parent if is_vs_code else path.parent
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        return {path.name: ServerSpec(path.name, source=str(path), own=False, problem=f"{path} can't be read: {error}")}
    try:
        from ..core.config.parse import load_jsonc  # here: few projects have such a file

        data = load_jsonc(text)
    except ValueError as error:
        return {path.name: ServerSpec(path.name, source=str(path), own=False, problem=f"{path} is no JSON: {error}")}
    entries = data.get("servers" if is_vs_code else "mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        return {}
    specs = {}
    for name, entry in entries.items():
        try:
            specs[name] = spec_of(name, substitute(entry, folder, home), source=str(path), own=False)
        except UnsetVariableError as error:
            specs[name] = ServerSpec(name, source=str(path), own=False, problem=str(error))
    return specs


def _origin(config: Config, name: str) -> tuple[str, bool]:
    """The file that says what a server is, and whether every file that says so is the user's own."""
    source, own = "", True
    for path, data in config.sources:
        entries = data.get("mcp")
        entry = entries.get(name) if isinstance(entries, Mapping) else None
        if entry is None:
            continue
        defines = not isinstance(entry, Mapping) or bool(_DEFINING_KEYS & set(entry))
        if defines or not source:
            source = path
        if defines and path in config.project_sources:
            source, own = path, False
    return source, own


def _entry_of(spec: ServerSpec) -> dict[str, Any]:
    if spec.is_local:
        return {"command": list(spec.command), "environment": dict(spec.environment), "cwd": spec.cwd}
    if not spec.url:
        return {}
    return {"type": spec.transport or "remote", "url": spec.url, "headers": dict(spec.headers), "oauth": spec.oauth}


def _seconds(entry: Mapping[str, Any]) -> float | None:
    """OpenCode's ``timeout``, which is in milliseconds."""
    value = entry.get("timeout")
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return None
    return value / 1000


def _texts(value: Any) -> dict[str, str] | None:
    """An object of texts; numbers and booleans become texts. None if it is no such object."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or any(isinstance(v, dict | list) for v in value.values()):
        return None
    return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items() if v is not None}


_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w:./]*?)(?::-([^}]*))?\}")


class UnsetVariableError(ValueError):
    """A variable has no value here."""


def substitute(value: Any, folder: Path, home: Path, env: Mapping[str, str] | None = None) -> Any:
    """A JSON value with the variables in its texts replaced.

    Args:
        value: any JSON.
        folder: what ``${workspaceFolder}`` stands for.
        home: what ``${userHome}`` stands for.
        env: environment variables; the process's own if left out.

    Raises:
        UnsetVariableError: a variable is not set and has no other value.
    """
    variables = os.environ if env is None else env
    builtin = {
        "workspaceFolder": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": str(home),
        "pathSeparator": os.sep,
        "/": os.sep,
    }

    def value_of(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in builtin:
            return builtin[name]
        if name.startswith("input:"):
            raise UnsetVariableError(
                f"it requests an input ({match[0]}), which only VS Code supports; "
                "write ${env:NAME} there and set that variable"
            )
        name = name.removeprefix("env:")
        if name in variables and (variables[name] or default is None):
            return variables[name]
        if default is not None:
            return default
        raise UnsetVariableError(f"the environment variable {name} is not set; set it before the kernel starts")

    def walk(node: Any) -> Any:
        if isinstance(node, str):
            return _VARIABLE.sub(value_of, node)
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, dict):
            return {key: walk(item) for key, item in node.items()}
        return node

    return walk(value)
