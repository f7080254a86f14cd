"""Completion in the lines of the magics.

IPython's matcher and the page's requests (`editor_requests`) use it. It sees the line up to the cursor and answers
alone, so that Python names do not mix into tool arguments.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion

from ...core.permission import ACTIONS
from ...core.repair import correct_name
from .commands import MCP, PERMISSIONS, SESSIONS, TOOL_OPTIONS, TOOLS, MagicCommands
from .parameters import Field, Spec, spec_of
from .tool_preparation import prepare_in_background
from .word_help import KEY, open_fields, tool_at, typed_words
from .words import quote

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

MAX_PATHS = 500
"""Entries of a folder that are offered."""
MAX_SESSIONS = 50
"""Sessions that are offered: the ones changed last."""
_MAGICS = {commands.magic[1:]: commands for commands in (TOOLS, PERMISSIONS, MCP, SESSIONS)}
_LINE = re.compile(
    r"\s*(?:[A-Za-z_][\w.,\s\[\]'\"*]*=\s*)?%(tools|permissions|mcp|sessions|agent|tool_awaited|tool)(?=\s)"
)
_CELL = re.compile(r"%%(tool|agent)(?=\s)")
_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*)?$")

Choice = tuple[str, str]
"""A completion and its type, as a front end shows it."""


def complete(
    notebook: Notebook, user_ns: Mapping[str, Any], full_text: str, cursor_line: int, until: str, *, follow: bool = True
) -> dict[str, Any]:
    """IPython's matcher result for a place in a cell.

    Args:
        notebook: whose tools and folder.
        user_ns: variables for ``--from`` and ``-o``.
        full_text: the cell.
        cursor_line: 0-based line of the cursor.
        until: that line up to the cursor.
        follow: take the workspace to the kernel's folder first; False while a cell may run, whose call that would move.
    """
    match = _LINE.match(until)
    if match is None and cursor_line == 0 and full_text.startswith("%%"):
        match = _CELL.match(until)
    if match is None and cursor_line and full_text.startswith("%%agent"):
        return _request(user_ns, until)
    if match is None:
        return {"completions": []}
    if follow or notebook.workspace.directory == _folder(notebook):
        prepare_in_background(notebook)
    *before, word = typed_words(until[match.end() :])
    completer = _Completer(notebook, user_ns, before, word)
    command = match.group(1)
    if command in _MAGICS:
        choices, fragment = completer.subcommand(_MAGICS[command]), word
    elif command == "agent":
        from .agent_completion import choices_of as agents_of

        cell = until.startswith("%%")
        choices, fragment = agents_of(notebook, user_ns, before, word, completer.paths, cell=cell)
    else:
        choices, fragment = completer.tool()
    return _matched(choices, fragment, until)


def _request(user_ns: Mapping[str, Any], until: str) -> dict[str, Any]:
    """A place in what ``%%agent`` is asked: prose, but for what stands in braces."""
    from .agent_completion import in_body

    found = in_body(user_ns, until)
    return _matched(*(found or ([], "")), until)


def _matched(choices: list[Choice], fragment: str, until: str) -> dict[str, Any]:
    if not choices:  # IPython lets Python names in then: what is there stands for itself
        fragment = fragment or until[-1:]
        choices = [(fragment, "text")] if fragment else []
    completions = [SimpleCompletion(text=text, type=kind) for text, kind in choices]
    return {"completions": completions, "matched_fragment": fragment, "suppress": True, "ordered": True}


class _Completer:
    """Choices for one place: the words before the cursor's, and the word under it."""

    def __init__(self, notebook: Notebook, user_ns: Mapping[str, Any], before: list[str], word: str) -> None:
        self.notebook = notebook
        self.workspace = notebook.workspace
        self.folder = _folder(notebook)
        self.user_ns = user_ns
        self.before = before
        self.word = word

    def tool(self) -> tuple[list[Choice], str]:
        last = self.before[-1] if self.before else ""
        if last == "--from":
            return self._variables(usable=True), self.word
        if last in ("-o", "--output"):
            return self._variables(usable=False), self.word
        if last == "--agent":
            agents = [name for name, agent in self.workspace.agents.items() if not agent.hidden]
            return self._starting(agents, "agent"), self.word
        if last == "--timeout":
            return self._starting(("10", "60", "600"), "value"), self.word
        at = tool_at(self.before)
        if at is None:
            names = self._starting(self._names(), "tool")
            return [*names, *self._options(self.before)], self.word
        name, given = self.before[at], self.before[at + 1 :]
        tool = self.workspace.registry.get(correct_name(self.workspace.registry, name))
        if tool is None:
            return [], self.word
        try:
            spec = spec_of(tool, self.workspace.registry)
        except Exception:  # it can't describe itself; its call says why
            return [], self.word
        return self._arguments(spec, given)

    def _names(self) -> list[str]:
        """The tools that can be called, and those that could be if a person trusted them."""
        registry = self.workspace.registry
        others = [one.id for one in registry.unavailable() if not one.id.endswith("*")]
        return list(dict.fromkeys([*registry.names(), *others]))

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
            return self._option_values(rest[-1])
        if self.word.startswith("-"):
            return self._starting(options, "option")
        given = [
            word for i, word in enumerate(rest) if not word.startswith("-") and not (i and options.get(rest[i - 1]))
        ]
        values = {TOOLS: self._tools_values, PERMISSIONS: self._permission_values, MCP: self._servers}
        return values.get(magic, self._session_values)(name, given)

    def _option_values(self, option: str) -> list[Choice]:
        return _sessions(self.notebook, self.word) if option == "--session" else []

    def _tools_values(self, command: str, given: list[str]) -> list[Choice]:
        if command != "trust":
            return []
        waiting = [tool.id for tool in self.workspace.registry.unavailable() if not tool.id.endswith("*")]
        return self._starting(dict.fromkeys(waiting), "tool")

    def _permission_values(self, command: str, given: list[str]) -> list[Choice]:
        if command == "mode" and not given:
            from ...core.permission.modes import MODES

            return self._starting(MODES, "keyword")
        if command == "sandbox" and not given:
            from .permissions import SANDBOX_PROFILES

            return self._starting(SANDBOX_PROFILES, "keyword")
        if command not in (*ACTIONS, "test", "revoke"):
            return []
        if not given:
            from .rule_changes import permission_names

            return self._starting(dict.fromkeys(permission_names(self.workspace)), "keyword")
        return self.paths(self.word) if given[0] in ("edit", "read", "external_directory") else []

    def _servers(self, command: str, given: list[str]) -> list[Choice]:
        """Names of MCP servers; asks no server anything."""
        if command in ("list", "add") or given:
            return []
        from ...mcp import McpServers

        mark = "/" if command == "prompt" else ""
        names = self.workspace.service(McpServers).specs()
        return [(name + mark, "module") for name in names if name.startswith(self.word)]

    def _session_values(self, command: str, given: list[str]) -> list[Choice]:
        if command == "import":
            return [] if given else self.paths(self.word)
        if command == "list" or (given and command not in ("delete", "export")):
            return []
        files = self.paths(self.word) if command == "export" else []
        return [*files, *(_sessions(self.notebook, self.word) if command == "delete" or not given else [])]

    # ------------------------------------------------------------------ a tool's arguments

    def _arguments(self, spec: Spec, given: list[str]) -> tuple[list[Choice], str]:
        if self.word.startswith("-"):
            return self._options(given), self.word
        key = KEY.match(self.word)
        if not spec.raw and "{" in self.word:
            from .agent_completion import in_body

            variables = in_body(self.user_ns, self.word)
            if variables is not None:
                return variables
        if key is not None:
            field, value = spec.find(key.group(1)), self.word[key.end() :]
            return (self._values(spec, field, value, key.group(2)) if field else []), value
        places = open_fields(spec, given) or []
        if spec.raw:  # in front of the command its other parameters may stand
            front = all(KEY.match(word) or word.startswith("-") for word in given)
            places = [f for f in places if f != spec.body] if front else []
        named = [f for f in spec.fields if f in places and f.name.lower().startswith(self.word.lower())]
        names = [(f"{f.name}=", "param") for f in named]
        values = self._values(spec, places[0], self.word, "=") if places else []
        if spec.raw and spec.body is not None and spec.body.name == "code":
            return self._code(names)
        if spec.raw:
            return [*names, *self.paths(self.word)], self.word
        found = [*values, *names] if self.word or not values else [*names, *values]
        return found or ([] if self.word else self._options(given)), self.word

    def _code(self, names: list[Choice]) -> tuple[list[Choice], str]:
        """A place in a line of Python: variables, and in front of it the other parameters."""
        match = _NAME.search(self.word)
        if match is None:
            return [], ""
        word = match.group()
        found = sorted(n for n in self.user_ns if n.startswith(word) and (word.startswith("_") or n[0] != "_"))
        return [*names, *((name, "variable") for name in found)], word

    def _values(self, spec: Spec, field: Field, value: str, operator: str) -> list[Choice]:
        texts = [c if isinstance(c, str) and operator == "=" else _json(c) for c in field.choices]
        if texts:
            return [(t, "value") for t in texts if t.lower().startswith(value.lower())]
        known = self._known(spec, field)
        if known:
            plain = value.lstrip("'\"").lower()
            shown = quote if operator == "=" else _json
            return [(shown(name), "value") for name in known if name.lower().startswith(plain)]
        return self.paths(value) if field.is_path and operator == "=" else []

    def _known(self, spec: Spec, field: Field) -> list[str]:
        """The values that the tool itself names for a parameter, as they are now."""
        if spec.tool.completions is None:
            return []
        try:
            return [name for name in spec.tool.completions(self.workspace, field.name) if name.isprintable()]
        except Exception:
            log.debug("the completions of %s failed", spec.tool.id, exc_info=True)
            return []

    def _options(self, given: list[str]) -> list[Choice]:
        return [
            (option.name, "option")
            for option in TOOL_OPTIONS.all
            if option.name not in given and option.name.startswith(self.word)
        ]

    # ------------------------------------------------------------------ names, variables, paths

    def _starting(self, names: Iterable[str], kind: str) -> list[Choice]:
        return [(name, kind) for name in names if name.lower().startswith(self.word.lower())]

    def _variables(self, *, usable: bool) -> list[Choice]:
        found = [n for n in self.user_ns if n.startswith(self.word) and (self.word.startswith("_") or n[0] != "_")]
        if usable:
            found = [n for n in found if _holds_arguments(self.user_ns[n])]
        else:
            found = [n for n in found if not callable(self.user_ns[n])]
        return [(name, "variable") for name in sorted(found)]

    def paths(self, typed: str) -> list[Choice]:
        """Entries of a folder of the workspace, in the way the word was begun (with its quote)."""
        mark = typed[:1] if typed[:1] in ("'", '"') else ""
        plain = typed[1:] if mark else re.sub(r"\\(.)", r"\1", typed)
        folder, _, prefix = plain.rpartition("/")
        head = f"{folder}/" if folder or plain.startswith("/") else ""
        where = Path(os.path.join(self.folder, os.path.expanduser(head)))
        out: list[Choice] = []
        for name, is_folder in _entries(where, prefix):
            path = head + name + ("/" if is_folder else "")
            if mark and mark not in path:
                shown = mark + path + ("" if is_folder else mark)
            elif mark:
                shown = quote(path)
            else:
                shown = quote(path)
                shown = shown[:-1] if is_folder and shown != path else shown  # an open quote, to go on in the folder
            out.append((shown, "path"))
        return out


def _folder(notebook: Notebook) -> Path:
    """Where the next call will run: the workspace follows the kernel's own folder."""
    try:
        return Path.cwd()
    except OSError:
        return notebook.workspace.directory


def _entries(folder: Path, prefix: str) -> list[tuple[str, bool]]:
    """Names in a folder that begin with `prefix`, folders first; hidden ones only when a dot was typed."""
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if not name.startswith(prefix) or (name.startswith(".") and not prefix.startswith(".")):
                    continue
                if not name.isprintable():
                    continue  # a newline can't stand on a line
                found.append((name, entry.is_dir()))
                if len(found) >= MAX_PATHS:
                    break
    except (OSError, ValueError):
        return []
    return sorted(found, key=lambda e: (not e[1], e[0]))


def _sessions(notebook: Notebook, word: str) -> list[Choice]:
    """Titles, and ids where some of one is typed or a title is there twice."""
    workspace = notebook.workspace
    if workspace.store is None:
        return []
    try:
        sessions = notebook.on_engine(workspace.store.listed, str(workspace.directory), MAX_SESSIONS)
    except Exception:
        log.debug("sessions could not be listed for completion", exc_info=True)
        return []
    infos = [session["info"] for session in sessions]
    titles = [str(info.get("title") or "") for info in infos]
    typed = word.lstrip("'\"").lower()
    choices: list[Choice] = []
    for info, title in zip(infos, titles, strict=True):
        usable = title.isprintable() and title and titles.count(title) == 1 and not title.isdigit()
        if usable and title.lower().startswith(typed):
            choices.append((quote(title), "session"))
        elif info["id"].startswith(word) and (word or not usable):
            choices.append((info["id"], "session"))
    return choices


def _holds_arguments(value: Any) -> bool:
    if isinstance(value, type) or callable(value):
        return False
    return isinstance(value, (str, Mapping)) or hasattr(value, "model_dump") or hasattr(value, "__dataclass_fields__")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
