"""Completion in lines of magics.

IPython's matcher and the page's requests (`editor_requests`) use it. It reads the line up to the cursor and answers
alone, so that Python names do not mix into tool arguments.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion

from ...core.permission import ACTIONS
from ...core.permission.modes import MODES
from ...core.repair import correct_name
from .commands import AGENT_OPTIONS, MCP, PERMISSIONS, SESSIONS, TOOL_OPTIONS, TOOLS, MagicCommands, MagicOptions
from .line_help import KEY, open_fields, tool_at, typed_words
from .line_syntax import quote
from .parameters import Field, Spec, spec_of
from .tool_preparation import prepare_in_background

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

MAX_PATHS = 500
"""Entries of a folder that are suggested."""
MAX_SESSIONS = 50
"""Sessions that are suggested: the ones changed last."""
_MAGICS = {commands.magic[1:]: commands for commands in (TOOLS, PERMISSIONS, MCP, SESSIONS)}
_LINE = re.compile(
    r"\s*(?:[A-Za-z_][\w.,\s\[\]'\"*]*=\s*)?%(tools|permissions|mcp|sessions|agent|tool_awaited|tool)(?=\s)"
)
_CELL = re.compile(r"%%(tool|agent)(?=\s)")
_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*)?$")
_BRACE = re.compile(r"(?<![{$])\{([A-Za-z_]\w*)?$")
_SCRIPTED = "scripted:"

Choice = tuple[str, str]
"""A completion and its type, as a front end shows it."""
Choices = tuple[list[Choice], str]
"""The suggestions, and the part of the line that they replace."""


def complete(
    notebook: Notebook, user_ns: Mapping[str, Any], full_text: str, cursor_line: int, until: str, *, follow: bool = True
) -> dict[str, Any]:
    """IPython's matcher result for a position in a cell.

    Args:
        notebook: whose tools and folder.
        user_ns: variables for ``--from`` and ``-o``.
        full_text: the cell.
        cursor_line: 0-based line of the cursor.
        until: that line up to the cursor.
        follow: move the workspace to the kernel's folder first; False while a cell may run, whose call that would move.
    """
    match = _LINE.match(until)
    if match is None and cursor_line == 0 and full_text.startswith("%%"):
        match = _CELL.match(until)
    if match is None and cursor_line and full_text.startswith("%%agent"):  # prose, except in braces
        return _matcher_result(*(_in_braces(user_ns, until) or ([], "")), until)
    if match is None:
        return {"completions": []}
    if follow or notebook.workspace.directory == _folder(notebook):
        prepare_in_background(notebook)
    *before, word = typed_words(until[match.end() :])
    completer = _Completer(notebook, user_ns, before, word)
    magic = match.group(1)
    if magic in _MAGICS:
        choices, fragment = completer.subcommand(_MAGICS[magic]), word
    elif magic == "agent":
        choices, fragment = completer.agent(is_cell=until.startswith("%%"))
    else:
        choices, fragment = completer.tool()
    return _matcher_result(choices, fragment, until)


def _matcher_result(choices: list[Choice], fragment: str, until: str) -> dict[str, Any]:
    if not choices:  # else IPython suggests Python names: suggest the typed text
        fragment = fragment or until[-1:]
        choices = [(fragment, "text")] if fragment else []
    completions = [SimpleCompletion(text=text, type=kind) for text, kind in choices]
    return {"completions": completions, "matched_fragment": fragment, "suppress": True, "ordered": True}


class _Completer:
    """Suggestions for one position: by the words before the cursor's, and the word under it."""

    def __init__(self, notebook: Notebook, user_ns: Mapping[str, Any], before: list[str], word: str) -> None:
        self.notebook = notebook
        self.workspace = notebook.workspace
        self.user_ns = user_ns
        self.before = before
        self.word = word
        self.last = before[-1] if before else ""

    # ------------------------------------------------------------------ options

    def _option_value(self, options: MagicOptions) -> Choices | None:
        """Values of the option before the cursor; None where there is none that takes a value."""
        if not options.takes_value(self.last):
            return None
        option = options.by_name[self.last]
        if option.value == "MODEL" and self.word.startswith(_SCRIPTED):
            path = self.word.removeprefix(_SCRIPTED)
            return self.paths(path), path
        by_value: dict[str, Callable[[], list[Choice]]] = {
            "SECONDS": lambda: self._starting(("10", "60", "600"), "value"),
            "N": lambda: self._starting(("5", "10", "50"), "value"),
            "MODEL": lambda: self._starting((*self._models(), _SCRIPTED), "module"),
            "AGENT": lambda: self._starting(self._agents(), "module"),
            "ID": lambda: self._starting((s.id for s in reversed(self.workspace.sessions.list())), "value"),
            "MODE": lambda: self._starting(MODES, "keyword"),
            "FILE": lambda: self.paths(self.word),
            "SCHEMA": lambda: self._variables(lambda value: isinstance(value, dict)),
            "NAME": lambda: self._variables(lambda value: isinstance(value, type)),
        }
        if option.name == "--agent":
            visible = [name for name, agent in self.workspace.agents.items() if not agent.hidden]
            return self._starting(visible, "agent"), self.word
        if option.value == "VAR":
            return self._variables(_holds_arguments if option.name == "--from" else _is_no_function), self.word
        return by_value[option.value](), self.word

    def _options(self, options: MagicOptions, present: list[str]) -> list[Choice]:
        names = (option.name for option in options.all if option.name not in present)
        return [(name, "option") for name in names if name.startswith(self.word)]

    def _models(self) -> list[str]:
        from .agent import known_models

        last = self.notebook.agent.last_model
        try:
            return list(dict.fromkeys([*filter(None, [last]), *(info.full for info in known_models(self.notebook))]))
        except Exception:
            log.debug("no models can be listed", exc_info=True)
            return [last] if last else []

    def _agents(self) -> list[str]:
        from .agent import primary_agents

        return primary_agents(self.notebook)

    # ------------------------------------------------------------------ %agent and %tool

    def agent(self, *, is_cell: bool) -> Choices:
        value = self._option_value(AGENT_OPTIONS) if is_cell or self.last in ("-m", "--model") else None
        if value is not None:
            return value
        if is_cell:
            return self._options(AGENT_OPTIONS, self.before), self.word
        if self.word.startswith("-"):
            return self._starting(("-m",), "option"), self.word
        return ([] if self.before else self._starting((*self._agents(), "models"), "keyword")), self.word

    def tool(self) -> Choices:
        value = self._option_value(TOOL_OPTIONS)
        if value is not None:
            return value
        registry = self.workspace.registry
        at = tool_at(self.before)
        if at is None:
            names = [*registry.names(), *self._untrusted_tools()]
            options = self._options(TOOL_OPTIONS, self.before)
            return [*self._starting(dict.fromkeys(names), "tool"), *options], self.word
        tool = registry.get(correct_name(registry, self.before[at]))
        if tool is None:
            return [], self.word
        try:
            spec = spec_of(tool, registry)
        except Exception:  # it can't describe itself; its call reports why
            return [], self.word
        return self._arguments(spec, self.before[at + 1 :])

    def _untrusted_tools(self) -> list[str]:
        """The tools that could be called if a person trusted them."""
        return [tool.id for tool in self.workspace.registry.unavailable() if not tool.id.endswith("*")]

    # ------------------------------------------------------------------ subcommands

    def subcommand(self, magic: MagicCommands) -> list[Choice]:
        if not self.before:
            return self._starting(magic.by_name, "keyword")
        name, rest = self.before[0], self.before[1:]
        command = magic.by_name.get(name)
        if command is None or (magic is MCP and "--" in rest):
            return []
        options = command.options
        if rest and options.get(rest[-1]):
            return self._sessions() if rest[-1] == "--session" else []
        if self.word.startswith("-"):
            return self._starting(options, "option")
        arguments = [
            word for i, word in enumerate(rest) if not word.startswith("-") and not (i and options.get(rest[i - 1]))
        ]
        values = {TOOLS: self._tools_values, PERMISSIONS: self._permission_values, MCP: self._servers}
        return values.get(magic, self._session_values)(name, arguments)

    def _tools_values(self, command: str, arguments: list[str]) -> list[Choice]:
        return self._starting(dict.fromkeys(self._untrusted_tools()), "tool") if command == "trust" else []

    def _permission_values(self, command: str, arguments: list[str]) -> list[Choice]:
        if arguments:
            from .rules import OF_PATHS

            is_path = command in (*ACTIONS, "test", "revoke") and arguments[0] in OF_PATHS
            return self.paths(self.word) if is_path else []
        if command == "mode":
            return self._starting(MODES, "keyword")
        if command == "sandbox":
            from .permissions import SANDBOX_PROFILES

            return self._starting(SANDBOX_PROFILES, "keyword")
        if command not in (*ACTIONS, "test", "revoke"):
            return []
        from .rules import permission_names

        return self._starting(dict.fromkeys(permission_names(self.workspace)), "keyword")

    def _servers(self, command: str, arguments: list[str]) -> list[Choice]:
        """Names of MCP servers; sends no request to any."""
        if command in ("list", "add") or arguments:
            return []
        from ...mcp import McpServers

        mark = "/" if command == "prompt" else ""
        names = self.workspace.service(McpServers).specs()
        return [(name + mark, "module") for name in names if name.startswith(self.word)]

    def _session_values(self, command: str, arguments: list[str]) -> list[Choice]:
        if command == "import":
            return [] if arguments else self.paths(self.word)
        if command == "list" or (arguments and command not in ("delete", "export")):
            return []
        files = self.paths(self.word) if command == "export" else []
        return [*files, *(self._sessions() if command == "delete" or not arguments else [])]

    # ------------------------------------------------------------------ a tool's arguments

    def _arguments(self, spec: Spec, words: list[str]) -> Choices:
        if self.word.startswith("-"):
            return self._options(TOOL_OPTIONS, words), self.word
        key = KEY.match(self.word)
        variables = _in_braces(self.user_ns, self.word) if not spec.raw else None
        if variables is not None:
            return variables
        if key is not None:
            field, value = spec.find(key.group(1)), self.word[key.end() :]
            return (self._values(spec, field, value, key.group(2)) if field else []), value
        fields = open_fields(spec, words) or []
        if spec.raw:  # its other parameters are allowed before the command
            in_front = all(KEY.match(word) or word.startswith("-") for word in words)
            fields = [f for f in fields if f != spec.body] if in_front else []
        named = [f for f in spec.fields if f in fields and f.name.lower().startswith(self.word.lower())]
        names = [(f"{f.name}=", "param") for f in named]
        if spec.code:
            return self._code(names)
        if spec.raw:
            return [*names, *self.paths(self.word)], self.word
        values = self._values(spec, fields[0], self.word, "=") if fields else []
        choices = [*values, *names] if self.word or not values else [*names, *values]
        return choices or ([] if self.word else self._options(TOOL_OPTIONS, words)), self.word

    def _code(self, names: list[Choice]) -> Choices:
        """A position in Python code: variables, and the other parameters."""
        match = _NAME.search(self.word)
        if match is None:
            return [], ""
        return [*names, *_variables(self.user_ns, match.group())], match.group()

    def _values(self, spec: Spec, field: Field, value: str, operator: str) -> list[Choice]:
        texts = [c if isinstance(c, str) and operator == "=" else _json(c) for c in field.choices]
        if texts:
            return [(t, "value") for t in texts if t.lower().startswith(value.lower())]
        known = self._known_values(spec, field)
        if known:
            plain = value.lstrip("'\"").lower()
            encode = quote if operator == "=" else _json
            return [(encode(name), "value") for name in known if name.lower().startswith(plain)]
        return self.paths(value) if field.is_path and operator == "=" else []

    def _known_values(self, spec: Spec, field: Field) -> list[str]:
        """The values that the tool itself suggests for a parameter now."""
        if spec.tool.completions is None:
            return []
        try:
            return [name for name in spec.tool.completions(self.workspace, field.name) if name.isprintable()]
        except Exception:
            log.debug("the completions of %s failed", spec.tool.id, exc_info=True)
            return []

    # ------------------------------------------------------------------ names, variables, sessions, paths

    def _starting(self, names: Iterable[str], kind: str) -> list[Choice]:
        return [(name, kind) for name in names if name.lower().startswith(self.word.lower())]

    def _variables(self, is_usable: Callable[[Any], bool]) -> list[Choice]:
        return _variables(self.user_ns, self.word, is_usable)

    def _sessions(self) -> list[Choice]:
        """Titles, and ids where one is typed or a title occurs twice."""
        store = self.workspace.store
        if store is None:
            return []
        try:
            sessions = self.notebook.on_engine(store.list_sessions, str(self.workspace.directory), MAX_SESSIONS)
        except Exception:
            log.debug("sessions could not be listed for completion", exc_info=True)
            return []
        infos = [session["info"] for session in sessions]
        titles = [str(info.get("title") or "") for info in infos]
        typed = self.word.lstrip("'\"").lower()
        choices: list[Choice] = []
        for info, title in zip(infos, titles, strict=True):
            is_usable = title.isprintable() and title and titles.count(title) == 1 and not title.isdigit()
            if is_usable and title.lower().startswith(typed):
                choices.append((quote(title), "session"))
            elif info["id"].startswith(self.word) and (self.word or not is_usable):
                choices.append((info["id"], "session"))
        return choices

    def paths(self, typed: str) -> list[Choice]:
        """Entries of a folder of the workspace, in the way the word was begun (with its quote)."""
        mark = typed[:1] if typed[:1] in ("'", '"') else ""
        plain = typed[1:] if mark else re.sub(r"\\(.)", r"\1", typed)
        folder, _, prefix = plain.rpartition("/")
        head = f"{folder}/" if folder or plain.startswith("/") else ""
        choices: list[Choice] = []
        for name, is_folder in _entries(Path(os.path.join(_folder(self.notebook), os.path.expanduser(head))), prefix):
            path = head + name + ("/" if is_folder else "")
            if mark and mark not in path:
                text = mark + path + ("" if is_folder else mark)
            else:
                text = quote(path)
                # an open quote, to go on in the folder
                text = text[:-1] if not mark and is_folder and text != path else text
            choices.append((text, "path"))
        return choices


def _folder(notebook: Notebook) -> Path:
    """Where the next call will run: the workspace follows the kernel's own folder."""
    try:
        return Path.cwd()
    except OSError:
        return notebook.workspace.directory


def _entries(folder: Path, prefix: str) -> list[tuple[str, bool]]:
    """Names in a folder that begin with `prefix`, folders first; hidden ones only when a dot was typed."""
    names: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                is_hidden = name.startswith(".") and not prefix.startswith(".")
                # a line can't contain a newline
                if name.startswith(prefix) and not is_hidden and name.isprintable():
                    names.append((name, entry.is_dir()))
                if len(names) >= MAX_PATHS:
                    break
    except (OSError, ValueError):
        return []
    return sorted(names, key=lambda e: (not e[1], e[0]))


def _in_braces(user_ns: Mapping[str, Any], until: str) -> Choices | None:
    """Variables, where a brace was opened; None elsewhere."""
    match = _BRACE.search(until)
    return None if match is None else (_variables(user_ns, match[1] or "", _is_no_function), match[1] or "")


def _variables(
    user_ns: Mapping[str, Any], word: str, is_usable: Callable[[Any], bool] = lambda value: True
) -> list[Choice]:
    names = sorted(n for n in user_ns if n.startswith(word) and (word.startswith("_") or n[0] != "_"))
    return [(name, "variable") for name in names if is_usable(user_ns[name])]


def _is_no_function(value: Any) -> bool:
    return not callable(value)


def _holds_arguments(value: Any) -> bool:
    if callable(value):
        return False
    return isinstance(value, (str, Mapping)) or hasattr(value, "model_dump") or hasattr(value, "__dataclass_fields__")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
