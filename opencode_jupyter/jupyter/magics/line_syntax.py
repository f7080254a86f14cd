r"""A line's words, and the notebook's variables in them: ``{name}``, ``f"..."`` and ``--from VAR``.

Quotes are read as in a shell, beside ``key=value``, ``key:=json`` and ``f"..."`` values. ``$``, ``*`` and ``~`` stay as
they are typed. A backslash outside quotes escapes only a blank, a quote or a backslash, so that patterns like ``\d+``
need no quotes.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean

if TYPE_CHECKING:
    from ...tools.shell.syntax_tree import Position

_KEY = re.compile(r"([A-Za-z_][\w-]*)(:?=)")
_FSTRING = re.compile(r"[fF](['\"])")
BLANK = " \t\r\n"
_SHOWN = 100
"""Characters of a line that an error shows around the position it names."""

EXPRESSION = (
    r"(?P<expression>(?P<head>[A-Za-z_]\w*)"
    r"(?:\.[A-Za-z_]\w*|\[(?:-?\d+|[A-Za-z_]\w*|\"[^\"\\{}\n]*\"|'[^'\\{}\n]*')\])*)"
)
"""A variable, or attributes and items of one: ``name``, ``a.b``, ``a[0]``, ``a["k"]``."""
VARIABLE = re.compile(rf"\{{{EXPRESSION}\}}")
"""The same in braces."""


class LineWord(NamedTuple):
    """One word of a line.

    Attributes:
        text: its value, quotes and escapes undone; of ``key=value`` the value alone.
        raw: the value as it was typed.
        start: where the word begins in the line; `end` is the position after it.
        key: the name before ``=`` or ``:=``, if there is one outside quotes.
        value: what follows ``:=``, decoded; None for other words.
        kind: ``plain``, ``json``, ``fstring``, or ``variable`` (``:={name}``).
        quoted: the value begins with a quote, so it is never an option.
    """

    text: str
    raw: str
    start: int
    end: int
    key: str | None = None
    value: Any = None
    kind: str = "plain"
    quoted: bool = False


def line_error(message: str, line: str, position: int, tool: str = "") -> InvalidArgumentsError:
    """An error that shows the line and points at a position in it."""
    if not line.strip():
        return InvalidArgumentsError(message, tool=tool)
    first = max(0, position - _SHOWN // 2)
    shown = re.sub(r"\s", " ", line[first : first + _SHOWN])
    before = "..." if first else ""
    after = "..." if first + _SHOWN < len(line) else ""
    caret = " " * (len(before) + position - first) + "^"
    return InvalidArgumentsError(f"{message}\n  {before}{shown}{after}\n  {caret}", tool=tool)


def next_word(line: str, position: int = 0) -> LineWord | None:
    """The first word at or after `position`; None at the end of the line.

    Raises:
        InvalidArgumentsError: a quote or a JSON value has no end; the message points at its beginning.
    """
    start = skip_blanks(line, position)
    if start >= len(line):
        return None
    match = _KEY.match(line, start)
    if match is None:
        return _value(line, start, start, None)
    key = match.group(1)
    if match.group(2) == ":=":
        return _json(line, start, match.end(), key)
    return _value(line, start, match.end(), key)


def words(line: str, position: int = 0) -> list[LineWord]:
    """All words from `position` on; see `next_word`."""
    line_words = []
    word = next_word(line, position)
    while word is not None:
        line_words.append(word)
        word = next_word(line, word.end)
    return line_words


def skip_blanks(line: str, position: int) -> int:
    """Where the next word begins."""
    while position < len(line) and line[position] in BLANK:
        position += 1
    return position


def json_object(line: str, position: int) -> tuple[dict[str, Any], int]:
    """The JSON object that begins at `position`, and where it ends.

    Raises:
        InvalidArgumentsError: it is no JSON, or has no end; the message points at the place.
    """
    value, end = _decode(line, position)
    if not isinstance(value, dict):  # it begins with {, so this can't be
        raise line_error("Give a JSON object of names and values here.", line, position)
    return value, end


def quote(text: str) -> str:
    """`text` as one word that `next_word` reads back."""
    if text and _KEY.match(text) is None and not re.search(r"[\s'\"\\]", text) and text[0] not in "-{;":
        return text if not text.endswith((";", "?")) else f"'{text}'"
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(line: str, start: int, position: int, key: str | None) -> LineWord:
    fstring = _FSTRING.match(line, position)
    if fstring is not None:
        end = _end_of_quote(line, fstring.end() - 1, python=True)
        if end >= len(line) or line[end] in BLANK:
            raw = line[position:end]
            return LineWord(raw, raw, start, end, key, None, "fstring", quoted=True)
    pieces: list[str] = []
    at = position
    while at < len(line) and line[at] not in BLANK:
        char = line[at]
        variable = VARIABLE.match(line, at)
        if variable is not None:  # whole, with the quotes in {a["k"]}
            pieces.append(variable.group())
            at = variable.end()
        elif char in "'\"":
            end = _end_of_quote(line, at)
            inner = line[at + 1 : end - 1]
            pieces.append(inner if char == "'" else re.sub(r'\\(["\\])', r"\1", inner))
            at = end
        elif char == "\\" and at + 1 < len(line) and line[at + 1] in BLANK + "'\"\\":
            pieces.append(line[at + 1])
            at += 2
        else:
            pieces.append(char)
            at += 1
    return LineWord(
        "".join(pieces), line[position:at], start, at, key, quoted=line[position : position + 1] in ("'", '"')
    )


def _end_of_quote(line: str, position: int, *, python: bool = False) -> int:
    """The position after the quote that closes the one at `position`. Single quotes have escapes in Python only."""
    mark = line[position]
    stop = re.compile(rf"\\|{mark}" if mark == '"' or python else mark)
    match = stop.search(line, position + 1)
    while match is not None:
        if match.group() == mark:
            return match.end()
        match = stop.search(line, match.end() + 1)
    raise line_error(f"Unclosed quote: this {mark} has no partner.", line, position)


def _json(line: str, start: int, position: int, key: str) -> LineWord:
    if line[position : position + 1] == "'":  # JSON has no single quotes: they keep it together, as in a shell
        end = _end_of_quote(line, position)
        value, stop = _decode(line, position + 1, end - 1)
        if line[stop : end - 1].strip():
            raise line_error("The JSON value ends before this.", line, stop)
    else:
        if position >= len(line) or line[position] in BLANK:
            raise line_error(f"{key}:= needs a JSON value after it, such as {key}:=[1,2].", line, start)
        variable = VARIABLE.match(line, position)
        if variable is not None and line[variable.end() : variable.end() + 1] in ("", *BLANK):
            end = variable.end()  # {name} is no JSON: the user's variable
            return LineWord(variable["expression"], line[position:end], start, end, key, None, "variable", quoted=True)
        value, end = _decode(line, position)
        if end < len(line) and line[end] not in BLANK:
            raise line_error("The JSON value ends before this.", line, end)
    return LineWord(line[position:end], line[position:end], start, end, key, value, "json", quoted=True)


def _decode(line: str, position: int, end: int | None = None) -> tuple[Any, int]:
    try:
        value, stop = json.JSONDecoder(strict=False).raw_decode(line[:end], position)
    except json.JSONDecodeError as error:
        text = line[:end]
        at = min(error.pos, len(text))
        unclosed = at >= len(text.rstrip()) or "Unterminated" in error.msg
        problem = "Unclosed JSON" if unclosed else f"This is not JSON: {error.msg}"
        raise line_error(problem + _advice(text[at:]), line, at) from error
    except RecursionError:
        raise line_error("This JSON is nested too deeply.", line, position) from None
    return value, stop


def _advice(rest: str) -> str:
    for python, json_text in (("True", "true"), ("False", "false"), ("None", "null"), ("'", 'double quotes (")')):
        if rest.startswith(python):
            return f". Write {json_text} in JSON, not {python}."
    return "."


_BRACED = re.compile(rf"(?<![${{])(?P<open>{{+){EXPRESSION}(?P<raw>!s)?(?P<close>}}+)")
"""A variable in a command, in one pair of braces or several; ``${name}`` is the shell's."""
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_body"})
"""Where a shell expands nothing; here documents count too, as a `%%tool` cell's text."""
_UNQUOTABLE = frozenset({"expansion", "arithmetic_expansion", "subscript"})
"""Where quotes do not make a text one safe word."""


def _evaluated(expression: str, user_ns: Mapping[str, Any]) -> Any:
    """The value of an expression that the user typed in a cell of their own: the same as in Python's f-strings."""
    return eval(expression, dict(user_ns))  # noqa: S307


def evaluate(word: LineWord, line: str, user_ns: Mapping[str, Any]) -> str:
    """The text of an ``f"..."`` word.

    Args:
        word: the word.
        line: where it stands, for the error.
        user_ns: the variables it may name.

    Raises:
        InvalidArgumentsError: it is no f-string, or what it names can't be had.
    """
    try:
        if isinstance(ast.parse(word.raw, mode="eval").body, ast.JoinedStr):
            return str(_evaluated(word.raw, user_ns))
        problem = "it is not one f-string"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    raise line_error(f"This f-string cannot be evaluated ({problem}).", line, word.start)


def fill(text: str, user_ns: Mapping[str, Any]) -> str:
    """An unquoted word with the user's variables in it: ``a{i}.txt`` in a loop over ``i``.

    Only braces that hold a name (or attributes and items of one) that the user has are filled in, so file names and
    patterns with braces of their own (``*.{ts,tsx}``, ``{}``) stay as they are; see `check_filled`. Quoted words are
    never touched.
    """
    if "{" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        try:
            return str(_evaluated(match["expression"], user_ns)) if match["head"] in user_ns else match.group()
        except Exception:
            return match.group()

    return VARIABLE.sub(value, text)


def check_filled(word: LineWord, filled: str, line: str, user_ns: Mapping[str, Any]) -> None:
    """Check that `fill` has filled in every ``{name}`` of a word.

    Raises:
        InvalidArgumentsError: one is not; the message says how to keep the braces.
    """
    for match in VARIABLE.finditer(word.raw):
        if match.group() not in filled:
            continue
        try:
            _check_variable(match["head"], user_ns)
            _evaluated(match["expression"], user_ns)
        except InvalidArgumentsError as error:
            problem = str(error)
        except Exception as error:
            problem = f"{match.group()} cannot be filled in ({type(error).__name__}: {error})."
        else:
            continue
        advice = f"To keep the braces, put the text in quotes: '{word.raw}'"
        raise line_error(f"{problem} {advice}", line, word.end - len(word.raw) + match.start())


def calculate(expression: str, key: str, line: str, position: int, user_ns: Mapping[str, Any]) -> str:
    """The text of ``{expression}`` where a number or a truth value belongs: ``limit={n+1}``.

    Raises:
        InvalidArgumentsError: it cannot be evaluated; the message names the f-string that does the same.
    """
    try:
        return str(_evaluated(expression.strip(), user_ns))
    except Exception as error:
        message = f"{{{expression}}} cannot be evaluated ({type(error).__name__}: {error})."
    raise line_error(f'{message} As an f-string: {key}=f"{{{expression}}}"', line, position)


def fill_command(text: str, user_ns: Mapping[str, Any]) -> str:
    """A shell command with the user's variables in it: ``echo {name}``.

    ``{name}``, ``{a.b}``, ``{a[0]}`` and ``{a["k"]}`` become the value, quoted for the shell so that it is one word
    (a list or tuple: one word for each item); ``{name!s}`` becomes the value as it is, ``{{name}}`` gives ``{name}``.
    Braces with anything else in them, single quotes, comments and here documents stay as they are.

    Raises:
        InvalidArgumentsError: the attribute or item is missing, or the value cannot be quoted in this position.
    """
    matches = [match for match in _BRACED.finditer(text) if match["head"] in user_ns]
    if not matches:
        return text
    mark = "variable"
    while mark in text:
        mark += "e"
    out, masked, at = [], "", 0
    spans: list[int] = []
    for match in matches:
        masked += text[at : match.start()]
        spans.append(len(masked.encode()))
        masked += mark
        at = match.end()
    contexts = _contexts(masked + text[at:], spans)
    at = 0
    for match, context in zip(matches, contexts, strict=True):
        out += [text[at : match.start()], _in_command(match, context, user_ns)]
        at = match.end()
    return "".join([*out, text[at:]])


def _contexts(command: str, positions: list[int]) -> list[str]:
    """The context of each byte position for a shell: ``word``, ``string``, ``literal`` or ``unknown``."""
    from ...tools.shell.syntax_tree import parse, walk

    root = parse(command.encode())
    out = ["unknown"] * len(positions)
    if root is None:
        return out
    for leaf in walk(root):
        if leaf.node.children:
            continue
        for i, position in enumerate(positions):
            if leaf.node.start_byte <= position < leaf.node.end_byte:
                out[i] = _context(leaf, broken=root.has_error)
    return out


def _context(leaf: Position, *, broken: bool) -> str:
    if leaf.node.type in _LITERAL:
        return "literal"
    if broken or leaf.up is None:
        return "unknown"
    if leaf.node.type == "string_content":
        return "string"
    above = leaf.up
    while above.node.type == "concatenation" and above.up is not None:
        above = above.up
    return "word" if leaf.node.type == "word" and above.node.type not in _UNQUOTABLE else "unknown"


def _in_command(match: re.Match[str], context: str, user_ns: Mapping[str, Any]) -> str:
    if context == "literal":
        return match.group()
    pairs = min(len(match["open"]), len(match["close"]))
    head = match["open"][pairs:] + "{" * (pairs // 2)
    tail = "}" * (pairs // 2) + match["close"][pairs:]
    expression = match["expression"]
    if pairs % 2 == 0:
        return f"{head}{expression}{match['raw'] or ''}{tail}"
    try:
        value = _evaluated(expression, user_ns)
    except Exception as error:
        raise InvalidArgumentsError(
            f"{{{expression}}} cannot be filled in ({type(error).__name__}: {error}). "
            f"To pass the braces to the shell, double them: {{{{{expression}}}}}"
        ) from error
    if match["raw"]:
        return f"{head}{value!s}{tail}"
    items = [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]
    if context == "string":
        return head + re.sub(r'([\\$`"])', r"\\\1", " ".join(items)) + tail
    quoted = shlex.join(items)
    if context == "unknown" and quoted != items[0]:
        raise InvalidArgumentsError(
            f"The value of {{{expression}}} cannot be quoted safely at this position. Give it to the shell in a "
            f'variable first (x={{{expression}}}; then "$x"), or insert it unquoted with {{{expression}!s}}.'
        )
    return head + quoted + tail


def value_of(word: LineWord, line: str, user_ns: Mapping[str, Any]) -> Any:
    """The value of ``name:={variable}``, as it is.

    Raises:
        InvalidArgumentsError: there is no such variable, attribute or item.
    """
    try:
        _check_variable(re.split(r"[.\[]", word.text)[0], user_ns)
        return _evaluated(word.text, user_ns)
    except InvalidArgumentsError as error:
        raise line_error(f"{error} (JSON needs double quotes around names.)", line, word.start) from None
    except Exception as error:
        raise line_error(f"{word.text} cannot be read ({type(error).__name__}: {error}).", line, word.start) from error


def lookup(option: str, source: str, user_ns: Mapping[str, Any]) -> Any:
    """The value that an option names: a variable, or attributes of one.

    Raises:
        InvalidArgumentsError: there is no such variable or attribute.
    """
    try:
        name, *attributes = source.split(".")
        _check_variable(name, user_ns)
        return reduce(getattr, attributes, user_ns[name])
    except (InvalidArgumentsError, AttributeError) as error:
        raise InvalidArgumentsError(f"{option} {source}: {error}") from None


def _check_variable(name: str, user_ns: Mapping[str, Any]) -> None:
    if name not in user_ns:
        hint = did_you_mean(name, [known for known in user_ns if not known.startswith("_")])
        raise InvalidArgumentsError(f"There is no variable {name}.{hint}")


def mapping_of(source: str, value: Any) -> Mapping[Any, Any]:
    """Names and values from a dict, a pydantic model or a dataclass; None in a model means not set.

    Raises:
        InvalidArgumentsError: it is none of these.
    """
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump") and not isinstance(value, type):
        dumped: Mapping[str, Any] = value.model_dump(exclude_none=True, by_alias=True)
        return dumped
    if is_dataclass(value) and not isinstance(value, type):
        return {key: item for key, item in asdict(value).items() if item is not None}
    raise InvalidArgumentsError(
        f"--from {source} needs a dict, a model (model_dump), a dataclass or a string, not {type(value).__name__}"
    )
