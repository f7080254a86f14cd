"""The line and the body of ``%tool`` and ``%%tool``, made into a call: names, types and places by the tool's schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.descriptions import command_description
from ...core.errors import InvalidArgumentsError, UnknownToolError
from ...core.repair import correct_name
from ...core.suggestions import suggestion
from ..cards.labels import PATH_ARGUMENTS
from .commands import TOOL_OPTIONS
from .option_reader import read_option
from .parameters import Field, Spec, checked, from_text, kinds, spec_of
from .words import (
    Word,
    calculate,
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

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.registry import Registry
    from ...workspace import Workspace

QUOTE = "Quote a value that starts with -, or put it after --."
_NO_TEXT = frozenset({"integer", "number", "boolean", "null"})
"""JSON types of which none can hold braces."""
_META = re.compile(r"[;|&<>()$`]")
"""In a word in front of a command these mean that the command has begun."""


@dataclass
class CallRequest:
    """One call, as a cell asks for it.

    Attributes:
        tool: the tool's id.
        arguments: by wire name.
        agent: whose rules apply; None for the default agent.
        timeout: seconds; None for no limit.
        quiet: show no card.
        output: the variable to bind the result to.
        dry_run: only say what would be asked.
        background: return a handle at once.
        line: as it was typed.
        help: describe the tool instead.
        hint: what the person may have meant instead.
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
    parser = _Parser(line, None, None, {})
    try:
        parser.read_options()
        word = next_word(line, parser.at)
    except InvalidArgumentsError:
        return None
    return None if word is None or word.key is not None or word.raw.startswith("{") else word.text or None


def parse(line: str, cell: str | None, registry: Registry, user_ns: Mapping[str, Any]) -> CallRequest:
    """What a line (and a cell's body) of ``%tool`` asks for.

    Args:
        line: all that stands behind ``%tool``.
        cell: the body of ``%%tool``; None for a line.
        registry: the tools there are.
        user_ns: the variables that ``--from`` and ``f"..."`` may name.

    Raises:
        UnknownToolError: no tool of that name.
        InvalidArgumentsError: the line can't be read, or the arguments do not fit the tool.
    """
    return _Parser(line, cell, registry, user_ns).parse()


class _Parser:
    registry: Registry
    spec: Spec
    """Known once the tool's name was read."""

    def __init__(self, line: str, cell: str | None, registry: Registry | None, user_ns: Mapping[str, Any]) -> None:
        self.line = line
        self.cell = cell
        if registry is not None:
            self.registry = registry
        self.user_ns = user_ns
        self.request = CallRequest("", line=line.strip())
        self.at = 0
        self.sources: list[str] = []
        self.options_over = False
        self.shown: dict[str, str] = {}
        """Field name to how it was given, for the error when it is given twice."""
        self.texts: set[str] = set()
        """Fields whose value was typed as plain text, so that the schema may make a number of it."""

    def parse(self) -> CallRequest:
        self.read_options()
        name = next_word(self.line, self.at)
        if name is None or name.key is not None or name.raw.startswith("{"):
            if self.request.help:
                return self.request
            said = "Give the name of a tool: %tool NAME ... (%tool alone lists them)."
            raise line_error(said, self.line, name.start if name else len(self.line))
        self.at = name.end
        wanted = name.text
        if wanted.endswith("?") and self.registry.get(wanted) is None:
            wanted, self.request.help = wanted.rstrip("?"), True
        wanted = correct_name(self.registry, wanted)
        tool = self.registry.get(wanted)
        if tool is None:
            raise UnknownToolError(wanted, self.registry.names(), self.registry.why_not(wanted))
        self.request.tool = wanted
        if not self.request.help:
            self.spec = spec_of(tool, self.registry, self.request.agent)
            self._arguments()
        return self.request

    def _arguments(self) -> None:
        if self.spec.raw:
            self._command()
        else:
            self._words()
        if not self.request.help:
            self._finish()

    # ------------------------------------------------------------------ options

    def read_options(self) -> None:
        """Options up to the first other word."""
        while not self.options_over:
            begin = skip_blanks(self.line, self.at)
            match = re.match(r"-\S*", self.line[begin:])
            if match is None or re.match(r"-\.?\d", match.group()):
                return
            self._option(begin, match.group())

    def _option(self, start: int, text: str) -> None:
        if text == "--":
            self.at = start + len(text)
            self.options_over = True
            return
        self._refuse_parameter(text, start)
        option, value, _, self.at = read_option(TOOL_OPTIONS, self.line, start, QUOTE)
        if option.field == "sources":
            self.sources.append(value)
        else:
            setattr(self.request, option.field, value)

    def _refuse_parameter(self, text: str, start: int) -> None:
        """Say how a parameter is written that somebody wrote like an option."""
        name, _, value = text.partition("=")
        is_known = bool(self.request.tool) and not self.request.help and name not in TOOL_OPTIONS.by_name
        field = self.spec.find(name.lstrip("-")) if is_known else None
        if field is not None:
            example = value or ("true" if field.schema.get("type") == "boolean" else "VALUE")
            raise line_error(f"{field.name} is a parameter, not an option: {field.name}={example}", self.line, start)

    # ------------------------------------------------------------------ arguments

    def _command(self) -> None:
        """Options and named parameters in front; then the command, as it stands."""
        self.read_options()
        body = self.spec.body or self.spec.find("command")
        assert body is not None
        while True:
            begin = skip_blanks(self.line, self.at)
            match = re.match(r"([A-Za-z_]\w*):?=", self.line[begin:])
            found = self.spec.find(match.group(1)) if match else None
            if found is None:
                break
            word = next_word(self.line, begin)
            assert word is not None
            if word.kind == "plain" and not word.quoted and _META.search(word.raw):
                break
            self._give(found, word, f"{found.name}=")
            self.at = word.end
            self.read_options()
        rest = self.line[self.at :].strip()
        if rest.startswith("{") and self._whole_json(rest, body):
            return
        if rest:
            if not self.spec.code:
                rest = fill_command(rest, self.user_ns)
            self._put(body, rest, "the rest of the line")
            last = rest.split()[-1]
            if last in ("--bg", "--background"):
                self.request.hint = f"{last} is a part of the command here: options go before it (%tool --bg ...)."

    def _whole_json(self, rest: str, body: Field) -> bool:
        """A command may begin with ``{`` too: only an object with the command in it is taken for arguments."""
        try:
            given, end = json_object(rest, 0)
        except InvalidArgumentsError:
            return False
        if rest[end:].strip() or body.name not in given:
            return False
        self._give_all(given, "the JSON object")
        return True

    def _words(self) -> None:
        loose: list[Word] = []
        while True:
            self.read_options()
            begin = skip_blanks(self.line, self.at)
            if self.line.startswith("{", begin) and not loose and self._looks_like_json(begin):
                given, self.at = json_object(self.line, begin)
                self._give_all(given, "the JSON object")
                continue
            word = next_word(self.line, self.at)
            if word is None:
                break
            if self._is_comment(word, loose):
                break
            self.at = word.end
            word = self._without_semicolon(word)
            if word is None:
                continue
            if word.key is None:
                loose.append(word)
            else:
                self._named(word)
        self._positional(loose)
        given = self.request.arguments  # in the order of the parameters: a card names the first that says something
        places = {one.name: place for place, one in enumerate(self.spec.fields)}
        self.request.arguments = dict(sorted(given.items(), key=lambda item: places.get(item[0], len(places))))

    def _is_comment(self, word: Word, loose: list[Word]) -> bool:
        """Whether a comment begins here: ``# `` after an argument, or any ``#`` once all that is required is there."""
        if word.key is not None or word.quoted or not word.raw.startswith("#"):
            return False
        body = self._body_field() if self.cell is not None and self.cell.strip() else None
        missing = [f for f in self.spec.fields if f.required and f.name not in self.shown and f is not body]
        return len(loose) >= len(missing) or (word.raw == "#" and bool(loose or self.shown))

    def _without_semicolon(self, word: Word) -> Word | None:
        """A notebook's habit: a ``;`` at the end of the line says "no echo" and is no part of the last word."""
        behind = self.line[word.end :].strip()
        if word.kind != "plain" or not word.raw.endswith(";") or (behind and not behind.startswith("#")):
            return word
        text, raw = word.text.removesuffix(";"), word.raw[:-1]
        return word._replace(text=text, raw=raw) if raw or word.key else None

    def _looks_like_json(self, begin: int) -> bool:
        return re.match(r"\{\s*(\"|\}|'|$)", self.line[begin:]) is not None

    def _named(self, word: Word) -> None:
        assert word.key is not None
        found = self.spec.find(word.key)
        if found is None:
            if not self.spec.open:
                said = self._unknown(word.key) + " Put text that contains = in quotes."
                raise line_error(said, self.line, word.start, self.spec.tool.id)
            found = Field(word.key, {}, False)
        self._give(found, self._with_blanks(found, word), f"{word.key}=")

    def _with_blanks(self, found: Field, word: Word) -> Word:
        """``limit={n + 1}``, which was cut at its blanks, as one word; other words as they are."""
        if not _calculated(found, word) or word.raw.endswith("}"):
            return word
        start = word.end - len(word.raw)
        end = self.line.find("}", start) + 1
        if end == 0:
            return word
        self.at = end
        raw = self.line[start:end]
        return word._replace(text=raw, raw=raw, end=end)

    def _positional(self, loose: list[Word]) -> None:
        body = self.spec.body if self.cell is not None and self.cell.strip() else None
        places = [f for f in self.spec.positional if f is not body]
        # A list takes all the words that are left, unless something required stands behind it.
        lists = [i for i, f in enumerate(places) if f.takes("array") and not any(g.required for g in places[i + 1 :])]
        last = lists[0] if lists else len(places)
        for i, word in enumerate(loose):
            if min(i, last) >= len(places):
                usage = " ".join(f.name for f in places) or "no arguments"
                raise line_error(
                    f"{self.spec.tool.id} takes {usage}; this is one too many. Put text with spaces in quotes.",
                    self.line,
                    word.start,
                    self.spec.tool.id,
                )
            self._give(places[min(i, last)], word, "a positional argument")

    def _give(self, found: Field, word: Word, how: str) -> None:
        if word.kind == "json":
            self._put(found, word.value, how, word)
            return
        if word.kind == "variable":
            self._put(found, value_of(word, self.line, self.user_ns), how, word)
            return
        if word.kind == "fstring":
            text = evaluate(word, self.line, self.user_ns)
        elif _calculated(found, word) and word.raw.endswith("}"):
            text = calculate(word.raw[1:-1], found.name, self.line, word.start, self.user_ns)
        else:
            text = fill(word.text, self.user_ns) if word.raw == word.text else word.text
        value = from_text(found, text, word.raw)
        if found.takes("array") and found.name in self.texts and isinstance(value, list):
            self.request.arguments[found.name] += value  # a repeated name, or more words for the last place
            return
        self._put(found, value, how, word)
        self.texts.add(found.name)
        if word.raw.endswith("?") and found.name in PATH_ARGUMENTS and not os.path.lexists(text):
            tool = self.spec.tool.id
            self.request.hint = f"There is no file {text}. To see the help of {tool}: %tool {tool}?"

    def _give_all(self, given: Mapping[str, Any], how: str) -> None:
        for key, value in given.items():
            found = self.spec.find(str(key))
            if found is None and not self.spec.open:
                raise InvalidArgumentsError(f"{self._unknown(str(key))} (It stands in {how}.)", tool=self.spec.tool.id)
            self._put(found or Field(str(key), {}, False), value, how)

    def _put(self, found: Field, value: Any, how: str, word: Word | None = None) -> None:
        if found.name in self.shown:
            text = f"{found.name} is given twice: {self.shown[found.name]}, and {how}."
            if word is not None:
                raise line_error(text, self.line, word.start, self.spec.tool.id)
            raise InvalidArgumentsError(text, tool=self.spec.tool.id)
        self.shown[found.name] = how
        self.request.arguments[found.name] = value

    def _unknown(self, key: str) -> str:
        hint = suggestion(self.spec.near(key))
        names = ", ".join(f.name for f in self.spec.fields) or "nothing"
        return f"{self.spec.tool.id} has no parameter {key}.{hint} It takes {names}."

    # ------------------------------------------------------------------ the rest

    def _body_field(self) -> Field | None:
        if self.spec.body is not None:
            return self.spec.body
        open_places = [f for f in self.spec.fields if f.required and f.takes("string") and f.name not in self.shown]
        return open_places[0] if len(open_places) == 1 else None

    def _finish(self) -> None:
        if self.request.background and self.request.dry_run:
            raise InvalidArgumentsError("--bg and --dry-run cannot be combined: a dry run ends at once.")
        if self.cell is not None:
            self._take_body(self.cell)
        for source in self.sources:
            self._take_variable(source)
        if self.spec.raw:
            self._describe()
        self.request.arguments = checked(self.spec, self.request.arguments, self.texts)

    def _take_body(self, cell: str) -> None:
        target = self._body_field()
        wants_json = target is not None and target.takes("array") and not target.takes("string")
        if target is None or (wants_json and cell.lstrip().startswith("{")):
            if not cell.strip():
                return
            if cell.lstrip().startswith("{"):
                text = cell.strip()
                given, end = json_object(text, 0)
                if text[end:].strip():
                    raise line_error("The JSON object ends before this.", text, end, self.spec.tool.id)
                self._give_all(given, "the cell's body")
                return
            names = ", ".join(f.name for f in self.spec.fields if f.takes("string")) or "none"
            raise InvalidArgumentsError(
                f"It is unclear which field the cell's body is for; text fields of {self.spec.tool.id}: {names}. "
                "Give all but one of the required ones on the first line, or a JSON object as the body.",
                tool=self.spec.tool.id,
            )
        if not cell.strip() and target.name in self.shown:
            return
        if target.name == "command" and not cell.strip():
            return
        if wants_json:
            try:
                if cell.strip():
                    self._put(target, json.loads(cell), "the cell's body")
            except (ValueError, RecursionError) as error:
                said = (
                    f"{self.spec.tool.id}: the cell's body is {target.name}, a {target.type} in JSON, and can't be read"
                )
                raise InvalidArgumentsError(f"{said}: {error}", tool=self.spec.tool.id) from error
            return
        # A file ends with a newline; a command or a piece of a file does not.
        text = cell if target.name == "content" else cell.removesuffix("\n")
        self._put(target, text, "the cell's body")

    def _take_variable(self, source: str) -> None:
        value = lookup("--from", source, self.user_ns)
        if isinstance(value, str):
            target = self._body_field()
            if target is None:
                raise InvalidArgumentsError(
                    f"--from {source}: {source} is a string and {self.spec.tool.id} has no body field; "
                    "use a dict of names and values.",
                    tool=self.spec.tool.id,
                )
            self._put(target, value, f"--from {source}")
            return
        for key, item in mapping_of(source, value).items():
            found = self.spec.find(str(key))
            if found is None and not self.spec.open:
                raise InvalidArgumentsError(f"--from {source}: {self._unknown(str(key))}", tool=self.spec.tool.id)
            name = found.name if found else str(key)
            self.request.arguments.setdefault(name, item)  # what stands on the line goes before

    def _describe(self) -> None:
        """The description that a model must write for a command; a person need not."""
        arguments = self.request.arguments
        command = arguments.get("command")
        if "description" not in arguments and self.spec.find("description") and isinstance(command, str):
            arguments["description"] = command_description(command)


def _calculated(found: Field, word: Word) -> bool:
    """Whether a word is an expression in braces for a field that holds no text."""
    wanted = kinds(found.schema)
    return word.kind == "plain" and word.raw.startswith("{") and bool(wanted) and wanted <= _NO_TEXT
