"""The user's variables in a magic's line: ``--from VAR`` and ``f"..."`` words. Nothing else looks at them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from typing import Any

from ..core.errors import InvalidArgumentsError
from .arguments_words import Word, line_error


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
