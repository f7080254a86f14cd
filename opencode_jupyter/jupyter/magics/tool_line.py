"""Reads the line and the body of ``%tool`` and ``%%tool`` into a call, by the tool's schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.card_spec import command_description
from ...core.errors import InvalidArgumentsError, UnknownToolError
from ...core.repair import correct_name
from ...core.suggestions import suggestion
from ..cards.labels import PATH_ARGUMENTS
from .command_line import read_option
from .commands import TOOL_OPTIONS
from .line_syntax import (
    LineWord,
    calculate,
    check_filled,
    evaluate,
    fill,
    fill_command,
    json_object,
    line_error,
    lookup,
    mapping_of,
    next_word,
    skip_blanks,
    value_of,
)
from .parameters import Field, Spec, check_arguments, from_text, kinds, spec_of

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.registry import Registry
    from ...workspace import Workspace

QUOTE = "Quote a value that starts with -, or put it after --."
_NO_TEXT = frozenset({"integer", "number", "boolean", "null"})
"""JSON types of which none can hold braces."""
_META = re.compile(r"[;|&<>()$`]")
"""In a word before a command these show that the command has begun."""


@dataclass
class CallRequest:
    """One call, as a cell requests it.

    Attributes:
        tool: the tool's id.
        arguments: by wire name.
        agent: whose rules apply; None for the default agent.
        timeout: seconds; None for no limit.
        quiet: show no card.
        output: the variable to bind the result to.
        dry_run: only show which approvals it needs.
        background: return a handle at once.
        line: as it was typed.
        help: describe the tool instead.
        hint: another line that the person may have meant.
        make: makes the call in place of `Workspace.start`.
    """

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    agent: str | None = None
    timeout: float | None = None
    quiet: bool = False
    output: str | None = None
    dry_run: bool = False
    background: bool = False
    line: str = ""
    help: bool = False
    hint: str = ""
    make: Callable[[Workspace, CallRequest], Call] | None = None


def tool_of(line: str) -> str | None:
    """The name of the tool as a line of ``%tool`` has it; None if it names none, or can't be read that far."""
    try:
        options = _OptionWords(line)
        options.read()
        word = next_word(line, options.at)
    except InvalidArgumentsError:
        return None
    return word.text or None if word is not None and _is_name(word) else None


def parse(line: str, cell: str | None, registry: Registry, user_ns: Mapping[str, Any]) -> CallRequest:
    """The call that a line (and a cell's body) of ``%tool`` requests.

    Args:
        line: all that follows ``%tool``.
        cell: the body of ``%%tool``; None for a line.
        registry: the tools there are.
        user_ns: the variables that ``--from`` and ``f"..."`` may name.

    Raises:
        UnknownToolError: no tool of that name.
        InvalidArgumentsError: the line can't be read, or the arguments do not fit the tool.
    """
    options = _OptionWords(line)
    options.read()
    request = options.request
    name = next_word(line, options.at)
    if name is None or not _is_name(name):
        if request.help:
            return request
        message = "Give the name of a tool: %tool NAME ... (%tool alone lists them)."
        raise line_error(message, line, name.start if name else len(line))
    options.at = name.end
    tool_name = name.text
    if tool_name.endswith("?") and registry.get(tool_name) is None:
        tool_name, request.help = tool_name.rstrip("?"), True
    tool_name = correct_name(registry, tool_name)
    tool = registry.get(tool_name)
    if tool is None:
        raise UnknownToolError(tool_name, registry.names(), registry.why_not(tool_name))
    request.tool = tool_name
    if not request.help:
        options.spec = spec_of(tool, registry, request.agent)
        _Arguments(options, cell, user_ns).read()
    return request


def _is_name(word: LineWord) -> bool:
    return word.key is None and not word.raw.startswith("{")


class _OptionWords:
    """The options among the words of a line, and the position up to which it is read.

    Attributes:
        line: the line.
        request: what the options set.
        at: where the next word begins.
        sources: the variables of ``--from``.
        spec: the tool's parameters, once its name was read.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.request = CallRequest("", line=line.strip())
        self.at = 0
        self.sources: list[str] = []
        self.spec: Spec | None = None
        self._are_over = False

    def read(self) -> None:
        """Read options up to the first other word."""
        while not self._are_over:
            start = skip_blanks(self.line, self.at)
            match = re.match(r"-\S*", self.line[start:])
            if match is None or re.match(r"-\.?\d", match.group()):
                return
            if match.group() == "--":
                self.at = start + 2
                self._are_over = True
                return
            self._refuse_parameter(match.group(), start)
            option, value, _, self.at = read_option(TOOL_OPTIONS, self.line, start, QUOTE)
            if option.field == "sources":
                self.sources.append(value)
            else:
                setattr(self.request, option.field, value)

    def _refuse_parameter(self, text: str, start: int) -> None:
        """Explain how to write a parameter that was written like an option."""
        name, _, value = text.partition("=")
        field = self.spec.find(name.lstrip("-")) if self.spec is not None and name not in TOOL_OPTIONS.by_name else None
        if field is not None:
            example = value or ("true" if field.schema.get("type") == "boolean" else "VALUE")
            raise line_error(f"{field.name} is a parameter, not an option: {field.name}={example}", self.line, start)


class _Arguments:
    """Reads a tool's arguments from the rest of the line, the cell's body and variables."""

    def __init__(self, options: _OptionWords, cell: str | None, user_ns: Mapping[str, Any]) -> None:
        assert options.spec is not None
        self.options = options
        self.line = options.line
        self.request = options.request
        self.spec = options.spec
        self.cell = cell
        self.user_ns = user_ns
        self.origins: dict[str, str] = {}
        """Where each field was set, for the error when it is set twice."""
        self.texts: set[str] = set()
        """Fields whose value was typed as plain text, which the schema may convert to a number."""

    def read(self) -> None:
        """Set the request's arguments, checked."""
        if self.spec.raw:
            self._read_command()
        else:
            self._read_words()
        request = self.request
        if request.help:
            return
        if request.background and request.dry_run:
            raise InvalidArgumentsError("--bg and --dry-run cannot be combined: a dry run ends at once.")
        if self.cell is not None:
            self._read_body(self.cell)
        for source in self.options.sources:
            self._read_variable(source)
        command = request.arguments.get("command")
        if self.spec.raw and self.spec.find("description") and isinstance(command, str):
            request.arguments.setdefault("description", command_description(command))  # a person need not write it
        request.arguments = check_arguments(self.spec, request.arguments, self.texts)

    # ------------------------------------------------------------------ the line

    def _read_command(self) -> None:
        """Read options and named parameters in front; then the command, verbatim."""
        self.options.read()
        body = self.spec.body or self.spec.find("command")
        assert body is not None
        while True:
            start = skip_blanks(self.line, self.options.at)
            match = re.match(r"([A-Za-z_]\w*):?=", self.line[start:])
            field = self.spec.find(match.group(1)) if match else None
            word = next_word(self.line, start) if field is not None else None
            if field is None or word is None:
                break
            if word.kind == "plain" and not word.quoted and _META.search(word.raw):
                break
            self._set_word(field, word, f"{field.name}=")
            self.options.at = word.end
            self.options.read()
        command = self.line[self.options.at :].strip()
        if not command or (command.startswith("{") and self._read_whole_json(command, body)):
            return
        self._set(body, command if self.spec.code else fill_command(command, self.user_ns), "the rest of the line")
        last = command.split()[-1]
        if last in ("--bg", "--background"):
            self.request.hint = f"{last} is a part of the command here: options go before it (%tool --bg ...)."

    def _read_whole_json(self, command: str, body: Field) -> bool:
        """A command may begin with ``{`` too: only an object with the command in it is taken for arguments."""
        try:
            values, end = json_object(command, 0)
        except InvalidArgumentsError:
            return False
        if command[end:].strip() or body.name not in values:
            return False
        self._set_all(values, "the JSON object")
        return True

    def _read_words(self) -> None:
        unnamed: list[LineWord] = []
        while True:
            self.options.read()
            start = skip_blanks(self.line, self.options.at)
            if not unnamed and re.compile(r"\{\s*(\"|\}|'|$)").match(self.line, start):
                values, self.options.at = json_object(self.line, start)
                self._set_all(values, "the JSON object")
                continue
            word = next_word(self.line, self.options.at)
            if word is None or self._is_comment(word, unnamed):
                break
            self.options.at = word.end
            word = self._without_semicolon(word)
            if word is None:
                continue
            if word.key is None:
                unnamed.append(word)
            else:
                field = self._field(word.key, word)
                self._set_word(field, self._with_blanks(field, word), f"{word.key}=")
        self._set_positional(unnamed)
        # in the order of the parameters: a card's title is made from the first ones
        order = {field.name: number for number, field in enumerate(self.spec.fields)}
        arguments = sorted(self.request.arguments.items(), key=lambda item: order.get(item[0], len(order)))
        self.request.arguments = dict(arguments)

    def _is_comment(self, word: LineWord, unnamed: list[LineWord]) -> bool:
        """Whether a comment begins here: ``# `` after an argument, or any ``#`` once all that is required is there."""
        if word.key is not None or word.quoted or not word.raw.startswith("#"):
            return False
        body = self._body_field() if self._has_body else None
        missing = [f for f in self.spec.fields if f.required and f.name not in self.origins and f is not body]
        return len(unnamed) >= len(missing) or (word.raw == "#" and bool(unnamed or self.origins))

    def _without_semicolon(self, word: LineWord) -> LineWord | None:
        """A notebook's habit: a ``;`` at the end of the line means "no echo" and is no part of the last word."""
        rest = self.line[word.end :].strip()
        if word.kind != "plain" or not word.raw.endswith(";") or (rest and not rest.startswith("#")):
            return word
        text, raw = word.text.removesuffix(";"), word.raw[:-1]
        return word._replace(text=text, raw=raw) if raw or word.key else None

    def _with_blanks(self, field: Field, word: LineWord) -> LineWord:
        """``limit={n + 1}``, which was cut at its blanks, as one word; other words as they are."""
        if not _is_calculated(field, word) or word.raw.endswith("}"):
            return word
        start = word.end - len(word.raw)
        end = self.line.find("}", start) + 1
        if end == 0:
            return word
        self.options.at = end
        return word._replace(text=self.line[start:end], raw=self.line[start:end], end=end)

    def _set_positional(self, unnamed: list[LineWord]) -> None:
        fields = [f for f in self.spec.positional if not self._has_body or f is not self.spec.body]
        # A list takes all the words that are left, unless a required one follows it.
        lists = [i for i, f in enumerate(fields) if f.takes("array") and not any(g.required for g in fields[i + 1 :])]
        last = lists[0] if lists else len(fields)
        for i, word in enumerate(unnamed):
            if min(i, last) >= len(fields):
                names = " ".join(f.name for f in fields) or "no arguments"
                raise self._error(
                    f"{self.spec.tool.id} takes {names}; this is one too many. Put text with spaces in quotes.", word
                )
            self._set_word(fields[min(i, last)], word, "a positional argument")

    # ------------------------------------------------------------------ values

    def _field(self, key: str, word: LineWord | None = None, origin: str = "") -> Field:
        """The field of a name.

        Raises:
            InvalidArgumentsError: there is none, and the tool takes no others.
        """
        field = self.spec.find(key)
        if field is not None:
            return field
        if self.spec.open:
            return Field(key, {}, False)
        hint = suggestion(self.spec.similar_fields(key))
        names = ", ".join(f.name for f in self.spec.fields) or "nothing"
        more = " Put text that contains = in quotes." if word is not None else f" (It stands in {origin}.)"
        raise self._error(f"{self.spec.tool.id} has no parameter {key}.{hint} It takes {names}.{more}", word)

    def _set_word(self, field: Field, word: LineWord, origin: str) -> None:
        if word.kind == "json":
            self._set(field, word.value, origin, word)
            return
        if word.kind == "variable":
            self._set(field, value_of(word, self.line, self.user_ns), origin, word)
            return
        if word.kind == "fstring":
            text = evaluate(word, self.line, self.user_ns)
        elif _is_calculated(field, word) and word.raw.endswith("}"):
            text = calculate(word.raw[1:-1], field.name, self.line, word.start, self.user_ns)
        elif word.raw == word.text:
            text = fill(word.text, self.user_ns)
            if field.name in PATH_ARGUMENTS and self.spec.tool.manifest.card.path and not os.path.lexists(text):
                check_filled(word, text, self.line, self.user_ns)
        else:
            text = word.text
        value = from_text(field, text, word.raw)
        if field.takes("array") and field.name in self.texts and isinstance(value, list):
            self.request.arguments[field.name] += value  # a repeated name, or more words for the last field
            return
        self._set(field, value, origin, word)
        self.texts.add(field.name)
        if word.raw.endswith("?") and field.name in PATH_ARGUMENTS and not os.path.lexists(text):
            tool = self.spec.tool.id
            self.request.hint = f"There is no file {text}. To see the help of {tool}: %tool {tool}?"

    def _set_all(self, values: Mapping[str, Any], origin: str) -> None:
        for key, value in values.items():
            self._set(self._field(str(key), origin=origin), value, origin)

    def _set(self, field: Field, value: Any, origin: str, word: LineWord | None = None) -> None:
        if field.name in self.origins:
            raise self._error(f"{field.name} is given twice: {self.origins[field.name]}, and {origin}.", word)
        self.origins[field.name] = origin
        self.request.arguments[field.name] = value

    def _error(self, message: str, word: LineWord | None = None) -> InvalidArgumentsError:
        if word is not None:
            return line_error(message, self.line, word.start, self.spec.tool.id)
        return InvalidArgumentsError(message, tool=self.spec.tool.id)

    # ------------------------------------------------------------------ the body and variables

    @property
    def _has_body(self) -> bool:
        return self.cell is not None and bool(self.cell.strip())

    def _body_field(self) -> Field | None:
        if self.spec.body is not None:
            return self.spec.body
        fields = [f for f in self.spec.fields if f.required and f.takes("string") and f.name not in self.origins]
        return fields[0] if len(fields) == 1 else None

    def _read_body(self, cell: str) -> None:
        field = self._body_field()
        is_empty = not self._has_body
        takes_json = field is not None and field.takes("array") and not field.takes("string")
        if cell.lstrip().startswith("{") and (field is None or takes_json):
            text = cell.strip()
            values, end = json_object(text, 0)
            if text[end:].strip():
                raise line_error("The JSON object ends before this.", text, end, self.spec.tool.id)
            self._set_all(values, "the cell's body")
        elif field is None:
            if not is_empty:
                names = ", ".join(f.name for f in self.spec.fields if f.takes("string")) or "none"
                raise self._error(
                    f"It is unclear which field the cell's body is for; text fields of {self.spec.tool.id}: {names}. "
                    "Give all but one of the required ones on the first line, or a JSON object as the body."
                )
        elif is_empty and (takes_json or field.name == "command" or field.name in self.origins):
            return
        elif takes_json:
            try:
                self._set(field, json.loads(cell), "the cell's body")
            except (ValueError, RecursionError) as error:
                raise self._error(
                    f"{self.spec.tool.id}: the cell's body is {field.name}, a {field.type} in JSON, and can't be read: "
                    f"{error}"
                ) from error
        else:
            # A file ends with a newline; a command or a piece of a file does not.
            self._set(field, cell if field.name == "content" else cell.removesuffix("\n"), "the cell's body")

    def _read_variable(self, source: str) -> None:
        value = lookup("--from", source, self.user_ns)
        if isinstance(value, str):
            field = self._body_field()
            if field is None:
                raise self._error(
                    f"--from {source}: {source} is a string and {self.spec.tool.id} has no body field; "
                    "use a dict of names and values."
                )
            self._set(field, value, f"--from {source}")
            return
        for key, item in mapping_of(source, value).items():
            field = self._field(str(key), origin=f"--from {source}")
            self.request.arguments.setdefault(field.name, item)  # the line takes precedence


def _is_calculated(field: Field, word: LineWord) -> bool:
    """Whether a word is an expression in braces for a field that holds no text."""
    types = kinds(field.schema)
    return word.kind == "plain" and word.raw.startswith("{") and bool(types) and types <= _NO_TEXT
