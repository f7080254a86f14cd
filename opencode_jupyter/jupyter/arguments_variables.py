"""The user's variables in a magic's line: ``--from VAR`` ``f"..."`` words, and ``{name}`` in unquoted ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from typing import Any

from ..core.errors import InvalidArgumentsError
from .arguments_words import VARIABLE, Word, line_error


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
    raise line_error(f"This f-string can't be evaluated ({said}).", line, word.start)


def fill(text: str, user_ns: Mapping[str, Any]) -> str:
    """An unquoted word with the user's variables in it: ``a{i}.txt`` in a loop over ``i``.

    Only braces that hold a name (or attributes and items of one) that the user has are filled in, so file names and
    patterns with braces of their own (``*.{ts,tsx}``, ``{}``) stay as they are. Quoted words are never touched.
    """
    if "{" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        expression = match.group(1)
        if match.group(2) not in user_ns:
            return match.group()
        try:
            # A name the user has, in the user's own cell: the same as in an f-string.
            return str(eval(expression, dict(user_ns)))  # noqa: S307
        except Exception:
            return match.group()

    return VARIABLE.sub(value, text)


def value_of(word: Word, line: str, user_ns: Mapping[str, Any]) -> Any:
    """The value of ``name:={variable}``, as it is.

    Raises:
        InvalidArgumentsError: there is no such variable, or the attribute or item is not there.
    """
    name = word.text.partition(".")[0].partition("[")[0]
    if name not in user_ns:
        near = get_close_matches(name, [n for n in user_ns if not n.startswith("_")], n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise line_error(f"There is no variable {name}.{hint} (JSON names stand in double quotes.)", line, word.start)
    try:
        # A name the user has, in the user's own cell: the same as in an f-string.
        return eval(word.text, dict(user_ns))  # noqa: S307
    except Exception as error:
        raise line_error(f"{word.text} can't be had ({type(error).__name__}: {error}).", line, word.start) from error


def lookup(source: str, user_ns: Mapping[str, Any]) -> Any:
    """The value that ``--from`` names: a variable, or attributes of one.

    Raises:
        InvalidArgumentsError: there is no such variable or attribute.
    """
    name, *attributes = source.split(".")
    if name not in user_ns:
        near = get_close_matches(name, [n for n in user_ns if not n.startswith("_")], n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]}?" if near else ""
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
        f"--from {source} wants a dict, a model (model_dump), a dataclass or a string, not {type(value).__name__}"
    )
