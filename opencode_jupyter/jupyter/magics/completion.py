"""Completion in ``%tool``, ``%%tool``, ``%tools``, ``%permissions`` and ``%mcp``: names, options, parameters, values.

One matcher for IPython's completer. It sees the line up to the cursor and answers alone, so that Python names do not
mix into tool arguments.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion

from ...core.permission import ACTIONS
from ...core.repair import correct_name
from .arguments import OPTIONS
from .parameters import Field, Spec, spec_of
from .tool_preparation import in_background
from .words import BLANK, quote

if TYPE_CHECKING:
    from ..notebook import Notebook

log = logging.getLogger(__name__)

TOOLS_COMMANDS = ("list", "history", "doctor", "undo", "clean", "trust", "reload")
PERMISSIONS_COMMANDS = (*ACTIONS, "revoke", "mode", "sandbox", "test", "history", "log")
PERMISSIONS = (
    "bash",
    "edit",
    "read",
    "glob",
    "grep",
    "list",
    "webfetch",
    "external_directory",
    "doom_loop",
    "task",
    "sandbox",
)
"""Permission keys that are offered; the tools' own names are added."""
MAX_PATHS = 500
"""Entries of a folder that are offered."""
_TOOLS_OPTIONS = {
    "history": ("--project", "--all"),
    "undo": ("--force",),
    "clean": ("--days", "--all"),
    "trust": ("--project", "--all", "--list", "--revoke"),
    "": (),
}
_LINE = re.compile(
    r"\s*(?:[A-Za-z_][\w.,\s\[\]'\"*]*=\s*)?%(tools|permissions|mcp|sessions|agent|tool_awaited|tool)(?=\s)"
)
_CELL = re.compile(r"%%(tool|agent)(?=\s)")
_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*)?$")
_KEY = re.compile(r"([A-Za-z_]\w*)(:?=)")
VALUED = ("-o", "--output", "--timeout", "--agent", "--from", "--days")

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
        in_background(notebook)
    *before, word = typed_words(until[match.end() :])
    completer = _Completer(notebook, user_ns, before, word)
    command = match.group(1)
    if command == "tools":
        choices, fragment = completer.tools()
    elif command == "permissions":
        choices, fragment = completer.permissions()
    elif command == "mcp":
        from .completion_mcp import choices_of

        choices, fragment = choices_of(notebook, before, word), word
    elif command == "sessions":
        from .completion_sessions import choices_of as sessions_of

        choices, fragment = sessions_of(notebook, before, word, completer._paths), word
    elif command == "agent":
        from ..agent.completion import choices_of as agents_of

        cell = until.startswith("%%")
        choices, fragment = agents_of(notebook, user_ns, before, word, completer._paths, cell=cell)
    else:
        choices, fragment = completer.tool()
    return _matched(choices, fragment, until)


def _request(user_ns: Mapping[str, Any], until: str) -> dict[str, Any]:
    """A place in what ``%%agent`` is asked: prose, but for what stands in braces."""
    from ..agent.completion import in_body

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
        self.workspace = notebook.workspace
        self.folder = _folder(notebook)
        self.user_ns = user_ns
        self.before = before
        self.word = word

    # ------------------------------------------------------------------ the three commands

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
        name, given = self._split()
        if name is None:
            names = self._starting(self._names(), "tool")
            return [*names, *self._options(given)], self.word
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

    def tools(self) -> tuple[list[Choice], str]:
        if not self.before:
            return self._starting(TOOLS_COMMANDS, "keyword"), self.word
        if self.before[0] == "trust" and not self.word.startswith("-"):
            waiting = [one.id for one in self.workspace.registry.unavailable() if not one.id.endswith("*")]
            return self._starting(dict.fromkeys(waiting), "tool"), self.word
        return self._starting(_TOOLS_OPTIONS.get(self.before[0], ()), "option"), self.word

    def permissions(self) -> tuple[list[Choice], str]:
        if not self.before:
            return self._starting(PERMISSIONS_COMMANDS, "keyword"), self.word
        command, position = self.before[0], len(self.before)
        if command == "mode" and position == 1:
            from ...core.permission.modes import MODES

            return self._starting(MODES, "keyword"), self.word
        if command == "sandbox":
            from .sandbox import OPTIONS, WORDS

            return self._starting((*WORDS, *OPTIONS) if position == 1 else OPTIONS, "keyword"), self.word
        if command in ACTIONS and self.word.startswith("-"):
            return self._starting(("--project",), "option"), self.word
        if command in (*ACTIONS, "test", "revoke"):
            if position == 1:
                from .help import permission_of

                names = [*PERMISSIONS, *map(permission_of, self.workspace.registry.names())]
                return self._starting(dict.fromkeys(names), "keyword"), self.word
            if self.before[1] in ("edit", "read", "external_directory"):
                return self._paths(self.word), self.word
        return [], self.word

    # ------------------------------------------------------------------ a tool's arguments

    def _split(self) -> tuple[str | None, list[str]]:
        """The tool's name and the words behind it; None and the options if it is not there yet."""
        words = iter(enumerate(self.before))
        for i, word in words:
            if word in VALUED:
                next(words, None)
            elif not word.startswith("-"):
                return word, self.before[i + 1 :]
        return None, self.before

    def _arguments(self, spec: Spec, given: list[str]) -> tuple[list[Choice], str]:
        if self.word.startswith("-"):
            return self._options(given), self.word
        key = _KEY.match(self.word)
        if not spec.raw and "{" in self.word:
            from ..agent.completion import in_body

            variables = in_body(self.user_ns, self.word)
            if variables is not None:
                return variables
        if key is not None:
            field, value = spec.find(key.group(1)), self.word[key.end() :]
            return (self._values(spec, field, value, key.group(2)) if field else []), value
        used = {k.group(1) for k in map(_KEY.match, given) if k}
        places = self._places(spec, given, used)
        if spec.raw:  # in front of the command its other parameters may stand
            front = all(_KEY.match(word) or word.startswith("-") for word in given)
            places = [f for f in places if f != spec.body] if front else []
        named = [f for f in spec.fields if f in places and f.name.lower().startswith(self.word.lower())]
        names = [(f"{f.name}=", "param") for f in named]
        values = self._values(spec, places[0], self.word, "=") if places else []
        if spec.raw and spec.body is not None and spec.body.name == "code":
            return self._code(names)
        if spec.raw:
            return [*names, *self._paths(self.word)], self.word
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

    def _places(self, spec: Spec, given: list[str], used: set[str]) -> list[Field]:
        """The fields that are still open; the word under the cursor would fill the first."""
        count, skip = 0, False
        for word in given:
            if skip or word in VALUED:
                skip = not skip
            elif not word.startswith("-") and _KEY.match(word) is None:
                count += 1
        return [f for f in spec.positional if f.name not in used][count:]

    def _values(self, spec: Spec, field: Field, value: str, operator: str) -> list[Choice]:
        texts = [c if isinstance(c, str) and operator == "=" else _json(c) for c in field.choices]
        if texts:
            return [(t, "value") for t in texts if t.lower().startswith(value.lower())]
        known = self._known(spec, field)
        if known:
            plain = value.lstrip("'\"").lower()
            shown = quote if operator == "=" else _json
            return [(shown(name), "value") for name in known if name.lower().startswith(plain)]
        return self._paths(value) if field.is_path and operator == "=" else []

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
        return [(name, "option") for name in OPTIONS if name not in given and name.startswith(self.word)]

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

    def _paths(self, typed: str) -> list[Choice]:
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


def typed_words(text: str) -> list[str]:
    """The words of an unfinished line as they are typed; the last is the one under the cursor, perhaps empty."""
    words = list(spans(text))
    under = bool(words) and words[-1][2] == len(text)
    return [word for word, _, _ in words] + ([] if under else [""])


def spans(line: str, position: int = 0) -> Iterator[tuple[str, int, int]]:
    """The words of an unfinished line as they are typed, from a place on, each with its begin and end."""
    begin, mark, escaped = None, "", False
    for at in range(position, len(line)):
        char = line[at]
        if char in BLANK and not mark and not escaped:
            if begin is not None:
                yield line[begin:at], begin, at
                begin = None
            continue
        begin = at if begin is None else begin
        if escaped:
            escaped = False
        elif char == "\\" and mark != "'":
            escaped = True
        elif mark:
            mark = "" if char == mark else mark
        elif char in "'\"":
            mark = char
    if begin is not None:
        yield line[begin:], begin, len(line)


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


def _holds_arguments(value: Any) -> bool:
    if isinstance(value, type) or callable(value):
        return False
    return isinstance(value, (str, Mapping)) or hasattr(value, "model_dump") or hasattr(value, "__dataclass_fields__")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
