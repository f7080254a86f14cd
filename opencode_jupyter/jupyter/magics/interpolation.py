"""The body of ``%%agent``: ``{expr}`` puts a value of the notebook into the request, in a form that a model can read.

``{{`` and ``}}`` are braces. Braces that hold no Python expression (JSON, CSS, a set of numbers) stay as they are, so
does text in a fenced block (three backticks), and so does ``${NAME}``.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean
from ..tools import pandas_numpy
from ..tools.describe import describe
from ..tools.short_values import is_secret
from ..tools.type_inspection import type_name

TEXT_CHARS = 20_000
"""Most characters of a text in a request; of a longer one its beginning and end."""
REPR_CHARS = 4_000
"""Most characters of another value's ``repr``."""
ITEMS = 200
"""A container with more items is described, not written out."""
MOST_BRACES = 20
"""Closing braces of a line that are tried for an opening one."""
ROWS = 5
"""Rows of a table that a model is shown."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_CONVERTED = re.compile(r"^(?P<expr>.+?)(?P<how>!r|!s|!a)?(?P<spec>:(?![\s=])[^:{}]*)?$", re.DOTALL)
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda value: value, "!r": repr, "!s": str, "!a": ascii}
_SPEC = re.compile(r"(?:.?[<>=^])?[ +-]?z?#?0?\d*[,_]?(?:\.\d+)?[a-zA-Z%]?|(?:[%\w][-%\w.,/: ]*)")


def fill(body: str, variables: Mapping[str, Any]) -> str:
    """A request with the notebook's values in it.

    Args:
        body: the typed text.
        variables: the variables it may use.

    Raises:
        InvalidArgumentsError: a name in braces does not exist, or the expression can't be evaluated; it shows the
            place and says how to write plain braces.
    """
    if "{" not in body and "}" not in body:
        return body
    out: list[str] = []
    text: list[str] = []
    fence = ""
    for line in body.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            out.append(_fill("".join(text), variables))
            text, fence = [], mark[1]
            out.append(line)
        elif fence:
            out.append(line)
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            text.append(line)
    return "".join([*out, _fill("".join(text), variables)])


def _fill(text: str, variables: Mapping[str, Any]) -> str:
    out: list[str] = []
    opened: list[bool] = []  # the braces that are open: True for a doubled one
    at = 0
    while at < len(text):
        char = text[at]
        pair = text[at : at + 2]
        if pair == "{{":
            out.append("{")
            opened.append(True)
            at += 2
        elif char == "{":
            expression = _expression_at(text, at) if text[at - 1 : at] != "$" else None
            if expression is None:
                out.append(char)
                opened.append(False)
                at += 1
            else:
                out.append(_value(expression, variables))
                at += len(expression.shown)
        elif char == "}":
            doubled = pair == "}}" and (not opened or opened[-1])
            if opened:
                opened.pop()
            out.append("}")
            at += 2 if doubled else 1
        else:
            out.append(char)
            at += 1
    return "".join(out)


class _Expression(NamedTuple):
    """An expression in braces.

    Attributes:
        shown: as typed, with the braces.
        tree: the expression.
        conversion: ``!r``, ``!s``, ``!a`` or nothing.
        spec: how it is formatted.
    """

    shown: str
    tree: ast.Expression
    conversion: str
    spec: str


def _expression_at(text: str, start: int) -> _Expression | None:
    """The expression in the braces that open at `start`; None if there is none on this line."""
    line_end = text.find("\n", start)
    line = text[start : line_end if line_end >= 0 else len(text)]
    for end in (match.start() for match in islice(re.finditer("}", line), MOST_BRACES)):
        expression = _expression(line[: end + 1])
        if expression is not None:
            return expression
    return None


def _expression(shown: str) -> _Expression | None:
    inside = shown[1:-1]
    match = _CONVERTED.match(inside.strip())
    forms = [(inside, "", "")]
    if match is not None:
        forms.append((match["expr"], match["how"] or "", (match["spec"] or "").removeprefix(":")))
    for source, how, spec in forms:
        if not source.strip() or (spec and not _SPEC.fullmatch(spec)):
            continue
        try:
            tree = ast.parse(source.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        plain = isinstance(tree.body, (ast.Tuple, ast.Constant, ast.Starred, ast.NamedExpr))
        if plain or not any(isinstance(node, ast.Name) for node in ast.walk(tree)):
            return None
        return _Expression(shown, tree, how, spec)
    return None


def _value(expression: _Expression, variables: Mapping[str, Any]) -> str:
    shown, tree, conversion, spec = expression
    source = ast.unparse(tree)
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and node.id not in variables
            and not hasattr(builtins, node.id)
            and node.id not in bound
        ):
            hint = did_you_mean(node.id, [name for name in variables if not name.startswith("_")])
            raise InvalidArgumentsError(
                f"There is no variable {node.id} for {shown} in the request.{hint} "
                f"For braces as they are, double them: {{{shown}}}. Nothing was sent."
            )
    name = source.rpartition(".")[2].rpartition("[")[2].strip("]'\" ") or source
    try:
        # The user's own expression in the user's own cell: the same as in an f-string.
        value = eval(compile(tree, "<%%agent>", "eval"), dict(variables))  # noqa: S307
        text = format(_CONVERSIONS[conversion](value), spec) if conversion or spec else model_text(source, value)
    except Exception as error:
        raise InvalidArgumentsError(
            f"{shown} in the request can't be evaluated: {type(error).__name__}: {error}. "
            f"For braces as they are, double them: {{{shown}}}. Nothing was sent."
        ) from error
    if is_secret(name, value):
        raise InvalidArgumentsError(
            f"{shown} was not put into the request: its name looks like a secret's, and a request goes to a "
            "model's provider. If it is not a secret, rename it. Nothing was sent."
        )
    return text


def model_text(name: str, value: Any) -> str:
    """A value as a model can read it, bounded: a text as it is, a table as its head and schema, others by their repr.

    Args:
        name: its name, where that helps.
        value: the value.
    """
    if isinstance(value, str):
        return cut_middle(str(value), TEXT_CHARS)
    is_container = type(value) in (dict, list, tuple, set, frozenset)
    if pandas_numpy.is_known_type(type(value)) or (is_container and len(value) > ITEMS):
        return _described(name, value)
    text = repr(value)
    return _described(name, value) if is_container and len(text) > REPR_CHARS else cut_middle(text, REPR_CHARS)


def _described(name: str, value: Any) -> str:
    description = describe(value, name=name, rows=ROWS)
    size = f" ({description.size})" if description.size else ""
    body = cut_middle("\n".join(description.lines), REPR_CHARS * 2)
    return f"{name}: {type_name(type(value))}{size}\n{body}"


def cut_middle(text: str, most: int) -> str:
    """`text`, or its beginning and end with a note of how much is left out between."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    omitted = len(text) - head - tail
    return f"{text[:head]}\n[… {omitted:,} of {len(text):,} characters omitted …]\n{text[-tail:]}"
