"""The line of ``%%agent``: its options, read and checked before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InvalidArgumentsError
from .commands import AGENT_OPTIONS
from .line_syntax import line_error, lookup, next_word
from .option_reader import read_option

BELOW = "The request itself goes below this line."


@dataclass(slots=True)
class AgentRequest:
    """What ``%%agent`` is asked to do; see `AGENT_OPTIONS`.

    Attributes:
        text: the request, the notebook's values filled in.
    """

    text: str = ""
    model: str | None = None
    agent: str | None = None
    session: str | None = None
    new: bool = False
    max_steps: int | None = None
    format: Any = None
    mode: str | None = None
    record: Path | None = None
    output: str | None = None
    quiet: bool = False
    background: bool = False


def parse(line: str, variables: Mapping[str, Any]) -> AgentRequest:
    """Read the line.

    Args:
        line: what stands behind ``%%agent``.
        variables: the names that ``--json`` and ``--type`` may use.

    Raises:
        InvalidArgumentsError: an option is not known, or its value makes no sense; it points at the place.
    """
    request, position, seen = AgentRequest(), 0, set()
    while (word := next_word(line, position)) is not None:
        if not word.raw.startswith("-"):
            raise line_error(f"%%agent takes options only. {BELOW}", line, word.start)
        option, value, start, position = read_option(AGENT_OPTIONS, line, word.start, BELOW)
        if option.name in seen:
            raise line_error(f"{option.name} is given twice.", line, word.start)
        seen.add(option.name)
        try:
            setattr(request, option.field, _value(option.name, value, variables))
        except InvalidArgumentsError as error:
            raise line_error(str(error), line, start) from None
    if request.new and request.session:
        raise line_error("--new and --session cannot be combined.", line, 0)
    if {"--json", "--type"} <= seen:
        raise line_error("--json and --type cannot be combined: both set the form of the answer.", line, 0)
    return request


def _value(name: str, value: Any, variables: Mapping[str, Any]) -> Any:
    if name == "--json" and isinstance(value, str):
        return _schema(value, variables)
    if name == "--type":
        return lookup_type(value, variables)
    return Path(value).expanduser() if name == "--record" else value


def _schema(value: str, variables: Mapping[str, Any]) -> Any:
    if value.endswith(".json"):
        try:
            schema = json.loads(Path(value).expanduser().read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentsError(f"--json: {value} can't be read ({error.strerror}).") from None
        except ValueError as error:
            raise InvalidArgumentsError(f"--json: {value} is not JSON ({error}).") from None
    else:
        schema = lookup("--json", value, variables)
    if not isinstance(schema, dict):
        raise InvalidArgumentsError(f"--json needs a JSON schema (a dict), and {value} is {type(schema).__name__}.")
    return schema


def lookup_type(value: str, variables: Mapping[str, Any]) -> Any:
    """The type that ``--type`` names: a variable, an attribute of one, or one of Python's own.

    Raises:
        InvalidArgumentsError: there is none of that name.
    """
    plain = {"int": int, "float": float, "str": str, "bool": bool, "dict": dict, "list": list}
    if value in plain and value not in variables:
        return plain[value]
    type_ = lookup("--type", value, variables)
    if isinstance(type_, (str, int, float, bytes)) or type_ is None:
        raise InvalidArgumentsError(f"--type needs a type, and {value} is {type(type_).__name__}.")
    return type_
