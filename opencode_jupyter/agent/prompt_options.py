"""Validation of a prompt's options before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.errors import InvalidArgumentsError
from ..core.option_checks import check_kind
from ..core.sessions import Session


def validate_options(model: Any, agent: Any, session: Any, system: Any, title: Any, record: Any) -> None:
    """Refuse options of the wrong kind before the prompt starts.

    Raises:
        InvalidArgumentsError: it says what is wanted.
    """
    if model is not None and not isinstance(model, str) and not hasattr(model, "stream"):
        raise InvalidArgumentsError(
            f"model must be a name, such as 'openai:gpt-5', or a model's object, not {type(model).__name__}"
        )
    for name, given in (("agent", agent), ("system", system), ("title", title)):
        if given is not None and not isinstance(given, str):
            raise InvalidArgumentsError(f"{name} must be a text, not {type(given).__name__}")
    if session is not None and not isinstance(session, str | Session):
        raise InvalidArgumentsError(f"session must be a Session or its id, not {type(session).__name__}")
    if record is not None and not isinstance(record, str | os.PathLike):
        raise InvalidArgumentsError(f"record must be a path, not {type(record).__name__}")


def listed(files: Any) -> list[Any]:
    """The files of a prompt. A single path is refused: it would be taken letter by letter."""
    if isinstance(files, str | os.PathLike):
        raise InvalidArgumentsError(f"files= takes a list of paths, such as [{str(files)!r}]")
    if not isinstance(files, Iterable):
        raise InvalidArgumentsError(f"files= takes a list of paths, not {type(files).__name__}")
    return list(files)


def switched(tools: Mapping[str, bool] | Iterable[str] | None) -> tuple[dict[str, bool], Sequence[str] | None]:
    """The ``tools`` of a prompt as switches, and the names of the only available tools if it lists them."""
    if tools is None:
        return {}, None
    if isinstance(tools, str):
        raise InvalidArgumentsError(f"tools= takes a list of names, such as [{tools!r}], or a dict of names")
    if isinstance(tools, Mapping):
        for name, wanted in tools.items():
            check_kind(name, str, "each name in tools=", "a tool's id")
            check_kind(wanted, bool, f"tools[{name!r}]", "True or False")
        return dict(tools), None
    if not isinstance(tools, Iterable):
        raise InvalidArgumentsError(f"tools= takes a list of names or a dict of names, not {type(tools).__name__}")
    names = list(tools)
    for name in names:
        check_kind(name, str, "each name in tools=", "a tool's id")
    return {}, names
