"""The line of ``%%agent``: its options, read and checked before anything is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean
from .words import json_object, line_error, lookup, next_word, skip_blanks

OPTIONS = {
    "-m": "MODEL  the model: provider:model, provider/model or scripted:FILE; by default that of the last request",
    "-a": "AGENT  the agent: build, plan, or one of yours",
    "--session": "ID  continue this session (its id or title)",
    "--new": "start a new session",
    "--max-steps": "N  the most steps of the model",
    "--json": "SCHEMA  the answer must fit this JSON schema: {...}, a variable, or a .json file; it becomes r.value",
    "--type": "NAME  the same with a type: a pydantic model, a dataclass, list[int] in a variable",
    "--mode": "MODE  the session's permission mode: default, ask, accept-edits, plan, bypass",
    "--record": "FILE  keep the conversation as a script that scripted:FILE replays",
    "-o": "VAR  put the answer into this variable",
    "-q": "show no card (a request for approval is still shown)",
    "--bg": "continue in the background; the value is a handle",
}
"""Options of ``%%agent`` with the name of their value, and what they do."""
_LONG = {"--model": "-m", "--agent": "-a", "--output": "-o", "--quiet": "-q", "--background": "--bg"}
VALUED = ("-m", "-a", "--session", "--max-steps", "--json", "--type", "--mode", "--record", "-o")


@dataclass(slots=True)
class AgentRequest:
    """What ``%%agent`` is asked to do; see `OPTIONS`.

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
        name, inline = word.text, None
        if word.key is not None or (word.raw.startswith("--") and "=" in word.raw):
            name, _, inline = line[word.start : word.end].partition("=")
        name = _LONG.get(name, name)
        if name not in OPTIONS:
            hint = did_you_mean(name, [*OPTIONS, *_LONG]) or " The request itself goes below this line."
            raise line_error(f"%%agent has no option {name}.{hint}", line, word.start)
        if name in seen:
            raise line_error(f"{name} is given twice.", line, word.start)
        seen.add(name)
        position = word.end
        if name not in VALUED:
            _flag(request, name)
            continue
        if inline is None:
            start = skip_blanks(line, position)
            if name == "--json" and line[start : start + 1] == "{":
                request.format, position = json_object(line, start)
                continue
            value = next_word(line, position)
            if value is None or (value.text.startswith("-") and not value.quoted):
                what = OPTIONS[name].partition("  ")[0]
                raise line_error(f"{name} needs a value: {name} {what}.", line, start)
            inline, position, start = line[value.start : value.end] if value.key else value.text, value.end, value.start
        else:
            start = word.start
        try:
            _set(request, name, inline, variables)
        except InvalidArgumentsError as error:
            raise line_error(str(error), line, start) from None
    if request.new and request.session:
        raise line_error("--new and --session cannot be combined.", line, 0)
    if "--json" in seen and "--type" in seen:
        raise line_error("--json and --type cannot be combined: both set the form of the answer.", line, 0)
    return request


def _flag(request: AgentRequest, name: str) -> None:
    if name == "--new":
        request.new = True
    elif name == "-q":
        request.quiet = True
    else:
        request.background = True


def _set(request: AgentRequest, name: str, value: str, variables: Mapping[str, Any]) -> None:
    match name:
        case "-m":
            request.model = value
        case "-a":
            request.agent = value
        case "--session":
            request.session = value
        case "--max-steps":
            if not re.fullmatch(r"[1-9]\d{0,5}", value):
                raise InvalidArgumentsError(f"--max-steps takes a whole number above 0, not {value}.")
            request.max_steps = int(value)
        case "--json":
            request.format = _schema(value, variables)
        case "--type":
            request.format = lookup_type(value, variables)
        case "--mode":
            request.mode = value
        case "--record":
            request.record = Path(value).expanduser()
        case _:
            if not value.isidentifier():
                raise InvalidArgumentsError(f"-o needs a variable's name, not {value}.")
            request.output = value


def _schema(value: str, variables: Mapping[str, Any]) -> Any:
    if value.endswith(".json"):
        try:
            found = json.loads(Path(value).expanduser().read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentsError(f"--json: {value} can't be read ({error.strerror}).") from None
        except ValueError as error:
            raise InvalidArgumentsError(f"--json: {value} is not JSON ({error}).") from None
    else:
        found = _looked_up("--json", value, variables)
    if not isinstance(found, dict):
        raise InvalidArgumentsError(f"--json needs a JSON schema (a dict), and {value} is {type(found).__name__}.")
    return found


def lookup_type(value: str, variables: Mapping[str, Any]) -> Any:
    """The type that ``--type`` names: a variable, an attribute of one, or one of Python's own.

    Raises:
        InvalidArgumentsError: there is none of that name.
    """
    plain = {"int": int, "float": float, "str": str, "bool": bool, "dict": dict, "list": list}
    if value in plain and value not in variables:
        return plain[value]
    found = _looked_up("--type", value, variables)
    if isinstance(found, (str, int, float, bytes)) or found is None:
        raise InvalidArgumentsError(f"--type needs a type, and {value} is {type(found).__name__}.")
    return found


def _looked_up(option: str, value: str, variables: Mapping[str, Any]) -> Any:
    try:
        return lookup(value, variables)
    except InvalidArgumentsError as error:
        raise InvalidArgumentsError(str(error).replace("--from", option)) from None
