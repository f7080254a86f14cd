"""The user's variables in a magic's line: ``--from VAR``, ``f"..."`` words, and ``{name}`` in words and commands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean
from .words import EXPRESSION, VARIABLE, Word, line_error

if TYPE_CHECKING:
    from ...tools.shell.tree import Place

_BRACED = re.compile(rf"(?<![${{])(?P<open>{{+){EXPRESSION}(?P<raw>!s)?(?P<close>}}+)")
"""A variable in a command, in one pair of braces or several; ``${name}`` is the shell's."""
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment", "heredoc_body"})
"""Where a shell fills in nothing; here documents count too, as a `%%tool` cell's text."""
_UNQUOTABLE = frozenset({"expansion", "arithmetic_expansion", "subscript"})
"""Where quotes do not make a text one harmless word."""


def evaluate(word: Word, line: str, user_ns: Mapping[str, Any]) -> str:
    """The text of an ``f"..."`` word.

    Args:
        word: the word.
        line: where it stands, for the error.
        user_ns: the variables it may name.

    Raises:
        InvalidArgumentsError: it is no f-string, or what it names can't be had.
    """
    try:
        tree = ast.parse(word.raw, mode="eval")
        if isinstance(tree.body, ast.JoinedStr):
            # It is the user's own expression, typed in the user's own cell: the same as an f-string in Python.
            return str(eval(compile(tree, "<%tool>", "eval"), dict(user_ns)))  # noqa: S307
        said = "it is not one f-string"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    raise line_error(f"This f-string cannot be evaluated ({said}).", line, word.start)


def fill(text: str, user_ns: Mapping[str, Any]) -> str:
    """An unquoted word with the user's variables in it: ``a{i}.txt`` in a loop over ``i``.

    Only braces that hold a name (or attributes and items of one) that the user has are filled in, so file names and
    patterns with braces of their own (``*.{ts,tsx}``, ``{}``) stay as they are. Quoted words are never touched.
    """
    if "{" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        expression = match["expression"]
        if match["head"] not in user_ns:
            return match.group()
        try:
            # A name the user has, in the user's own cell: the same as in an f-string.
            return str(eval(expression, dict(user_ns)))  # noqa: S307
        except Exception:
            return match.group()

    return VARIABLE.sub(value, text)


def calculate(expression: str, key: str, line: str, position: int, user_ns: Mapping[str, Any]) -> str:
    """The text of ``{expression}`` where a number or a truth value belongs: ``limit={n+1}``.

    Raises:
        InvalidArgumentsError: it cannot be evaluated; the message names the f-string that does the same.
    """
    try:
        # It is the user's own expression, typed in the user's own cell: the same as an f-string in Python.
        return str(eval(expression.strip(), dict(user_ns)))  # noqa: S307
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
    """What a shell reads at each byte position: ``word``, ``string``, ``literal`` or ``unknown``."""
    from ...tools.shell.tree import parse, places

    root = parse(command.encode())
    out = ["unknown"] * len(positions)
    if root is None:
        return out
    for leaf in places(root):
        if leaf.node.children:
            continue
        for i, position in enumerate(positions):
            if leaf.node.start_byte <= position < leaf.node.end_byte:
                out[i] = _context(leaf, broken=root.has_error)
    return out


def _context(leaf: Place, *, broken: bool) -> str:
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
        # A name the user has, in the user's own cell: the same as in an f-string.
        value = eval(expression, dict(user_ns))  # noqa: S307
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


def value_of(word: Word, line: str, user_ns: Mapping[str, Any]) -> Any:
    """The value of ``name:={variable}``, as it is.

    Raises:
        InvalidArgumentsError: there is no such variable, or the attribute or item is not there.
    """
    name = word.text.partition(".")[0].partition("[")[0]
    if name not in user_ns:
        hint = did_you_mean(name, [known for known in user_ns if not known.startswith("_")])
        raise line_error(
            f"There is no variable {name}.{hint} (JSON needs double quotes around names.)", line, word.start
        )
    try:
        # A name the user has, in the user's own cell: the same as in an f-string.
        return eval(word.text, dict(user_ns))  # noqa: S307
    except Exception as error:
        raise line_error(f"{word.text} cannot be read ({type(error).__name__}: {error}).", line, word.start) from error


def lookup(source: str, user_ns: Mapping[str, Any]) -> Any:
    """The value that ``--from`` names: a variable, or attributes of one.

    Raises:
        InvalidArgumentsError: there is no such variable or attribute.
    """
    name, *attributes = source.split(".")
    if name not in user_ns:
        hint = did_you_mean(name, [known for known in user_ns if not known.startswith("_")])
        raise InvalidArgumentsError(f"--from {source}: there is no variable {name}.{hint}")
    value = user_ns[name]
    for attribute in attributes:
        if not hasattr(value, attribute):
            raise InvalidArgumentsError(f"--from {source}: {type(value).__name__} has no attribute {attribute}")
        value = getattr(value, attribute)
    return value


def mapping_of(source: str, value: Any) -> Mapping[Any, Any]:
    """Names and values from a dict, a pydantic model or a dataclass; what is None in a model was not given.

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
