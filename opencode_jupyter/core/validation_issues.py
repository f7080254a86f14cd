"""What is wrong with a call's arguments, as OpenCode prints it (docs/opencode/core.md 1.2, 25) and as sentences.

It prints a JSON array of its schema library's (Zod 4) issues, which models know. Each has ``code``, ``path`` and
``message``, and what belongs to the code: an expected type, the possible values, a bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from .errors import short_repr
from .suggestions import did_you_mean

_EXPECTED = {
    "string": "string_type string_sub_type string_unicode",
    "number": "int_type float_type int_parsing float_parsing int_parsing_size",
    "boolean": "bool_type bool_parsing",
    "array": "list_type tuple_type set_type frozen_set_type sequence_str iterable_type",
    "object": "dict_type mapping_type model_type model_attributes_type dataclass_type",
}
EXPECTED = {kind: expected for expected, kinds in _EXPECTED.items() for kind in kinds.split()}
"""pydantic's kind of a wrong type to the type that was expected."""
BOUNDS = {
    "greater_than_equal": ("number", "minimum", "ge", ">="),
    "greater_than": ("number", "minimum", "gt", ">"),
    "less_than_equal": ("number", "maximum", "le", "<="),
    "less_than": ("number", "maximum", "lt", "<"),
    "too_short": ("array", "minimum", "min_length", ">="),
    "too_long": ("array", "maximum", "max_length", "<="),
    "string_too_short": ("string", "minimum", "min_length", ">="),
    "string_too_long": ("string", "maximum", "max_length", "<="),
}
"""pydantic's kind of a broken bound to: what it measures, which bound, its name in pydantic's context, its sign."""
UNITS = {"array": " items", "string": " characters", "number": ""}
SHOWN = 80
"""Characters of a value that are shown where only the value tells what is wrong."""
UNDEFINED = "undefined"
"""JavaScript's type of a missing value."""


MOST_LEVELS = 200
"""How deep arguments may be nested: beyond, JSON encoders, copies and front ends fail one by one."""
_CONTAINERS = frozenset({dict, list, tuple})
SCALARS = frozenset({str, int, float, bool, type(None)})


def is_nested_too_deeply(value: Any) -> bool:
    """Return whether lists and dicts are nested more than `MOST_LEVELS` deep, or in a circle."""
    level = [value]
    for _ in range(MOST_LEVELS):
        inner: dict[int, Any] = {}  # by identity: what is referred to twice counts once
        for container in level:
            for child in container.values() if type(container) is dict else container:
                if type(child) in _CONTAINERS:
                    inner[id(child)] = child
        if not inner:
            return False
        level = list(inner.values())
    return True


class Issue(dict[str, Any]):
    """An issue in OpenCode's form.

    Attributes:
        received: the type of the wrong value, in JavaScript's terms; OpenCode has it in its message alone.
    """

    received = ""


def as_json(issues: Sequence[Mapping[str, Any]]) -> str:
    """Issues as OpenCode prints them: a JSON array, indented by 2."""
    return json.dumps(issues, indent=2, ensure_ascii=False, default=str)


def list_issues(error: ValidationError, schema: Mapping[str, Any] | None = None) -> list[Issue]:
    """A validation error as a list of issues.

    Args:
        error: pydantic's error.
        schema: the arguments' JSON schema, without references; it tells the type that a missing value should have.
    """
    return [issue(item, *_locate(schema, item["loc"])) for item in error.errors(include_url=False)]


def issue(item: Mapping[str, Any], path: list[str | int], node: Mapping[str, Any] | None) -> Issue:
    """One issue.

    Args:
        item: an error as pydantic lists it: ``type``, ``ctx``, ``input``, ``msg``.
        path: where the value is among the arguments.
        node: the JSON schema of the value, if known.
    """
    kind, context = item["type"], item.get("ctx") or {}
    values = _allowed_values(node)
    if values and kind in ("missing", "literal_error", "enum"):
        return Issue(code="invalid_value", values=values, path=path, message=_options(values))
    if kind == "missing":
        expected = _type(node)
        if expected:
            return wrong_type(expected, UNDEFINED, path)
        missing = Issue(code="invalid_type", path=path, message="Required")
        missing.received = UNDEFINED
        return missing
    if kind in EXPECTED:
        return wrong_type(EXPECTED[kind], javascript_type(item["input"]), path)
    if kind == "int_from_float":
        return wrong_type("int", "number", path, format="safeint")
    if kind in BOUNDS:
        measured, bound, name, sign = BOUNDS[kind]
        limit = _number(context.get(name))
        size = "small" if bound == "minimum" else "big"
        verb = "be" if measured == "number" else "have"
        message = f"Too {size}: expected {measured} to {verb} {sign}{limit}{UNITS[measured]}"
        limits = {"origin": measured, "code": f"too_{size}", bound: limit, "inclusive": "=" in sign}
        return Issue(limits, path=path, message=message)
    if kind == "string_pattern_mismatch":
        pattern = f"/{context.get('pattern')}/"
        message = f"Invalid string: must match pattern {pattern}"
        return Issue(
            origin="string", code="invalid_format", format="regex", pattern=pattern, path=path, message=message
        )
    if kind == "extra_forbidden":
        message = f"Unrecognized key: {json.dumps(path[-1], ensure_ascii=False)}"
        return Issue(code="unrecognized_keys", keys=path[-1:], path=path[:-1], message=message)
    if kind in ("value_error", "assertion_error"):
        message = str(context["error"]) if "error" in context else item["msg"]
        return Issue(code="custom", path=path, message=message)
    return Issue(code=kind, path=path, message=item["msg"], received=short_repr(item.get("input"), SHOWN))


TYPE_NAMES = {
    "string": "text",
    "number": "a number",
    "int": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object with named values",
    "null": "null",
}
"""JavaScript's names of types, as a person reads them."""
SIGNS = {
    ("minimum", True): "at least",
    ("minimum", False): "more than",
    ("maximum", True): "at most",
    ("maximum", False): "less than",
}


def sentences(tool: str, issues: Sequence[Issue]) -> str:
    """Issues as a person reads them: ``read: limit must be a number, not text``."""
    return "\n".join(f"{tool}: {_sentence(issue)}" for issue in issues)


def misspelled(tool: str, arguments: Mapping[str, Any], known: Iterable[str]) -> str:
    """A line for each argument whose name is none of the parameters' but resembles one; OpenCode ignores those."""
    plain = {name.replace("_", "").lower() for name in known}
    written = [name for name in arguments if isinstance(name, str)]
    names = [name for name in written if name.replace("_", "").lower() not in plain]
    hints = {name: did_you_mean(name, known) for name in names}
    return "".join(f"\n{tool}: {name} is not a parameter.{hint}" for name, hint in hints.items() if hint)


def sentences_of_json(tool: str, text: str) -> str:
    """`sentences` for issues as JSON that another program wrote; "" if they cannot be read."""
    try:
        issues = [Issue(entry) for entry in json.loads(text)]
        for issue in issues:
            message = str(issue.get("message", ""))
            issue.received = UNDEFINED if message == "Required" else message.rpartition(" received ")[2]
        return sentences(tool, issues)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _sentence(issue: Issue) -> str:
    code, received = issue.get("code"), issue.received
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in issue["path"]).lstrip(".")
    name = name or "the arguments"
    if code == "invalid_type":
        if received == UNDEFINED:
            return f"{name} is missing."
        if received == "number" and issue.get("expected") == "int":
            return f"{name} must be a whole number."
        kinds = " or ".join(TYPE_NAMES.get(kind, kind) for kind in str(issue.get("expected")).split(" | "))
        return f"{name} must be {kinds}, not {TYPE_NAMES.get(received, received)}."
    if code == "invalid_value":
        values = [str(value) for value in issue["values"]]
        return f"{name} must be {'one of ' if values[1:] else ''}{', '.join(values)}."
    if code in ("too_small", "too_big"):
        bound = "minimum" if code == "too_small" else "maximum"
        verb, unit = ("must be", "") if issue["origin"] == "number" else ("must have", UNITS[issue["origin"]])
        unit = unit.removesuffix("s") if issue[bound] == 1 else unit
        return f"{name} {verb} {SIGNS[bound, issue['inclusive']]} {issue[bound]}{unit}."
    if code == "invalid_format":
        return f"{name} must match the pattern {issue['pattern']}."
    if code == "unrecognized_keys":
        inside = f" of {name}" if issue["path"] else ""
        return f"{', '.join(map(str, issue['keys']))} is not a parameter{inside}."
    return f"{name}: {str(issue.get('message', '')).removesuffix('.')}."


def wrong_type(expected: str, actual: str, path: list[Any], **details: str) -> Issue:
    """The issue of a value of another type than the expected one."""
    message = f"Invalid input: expected {expected}, received {actual}"
    issue = Issue(expected=expected, **details, code="invalid_type", path=path, message=message)
    issue.received = actual
    return issue


def javascript_type(value: Any) -> str:
    """A value's type in JavaScript's terms; the name of its class where JSON has none."""
    if value is None:
        return "null"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    names: tuple[tuple[Any, str], ...] = (
        (str, "string"),
        (bool, "boolean"),
        ((int, float), "number"),
        ((list, tuple), "array"),
        (dict, "object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)


def _locate(
    schema: Mapping[str, Any] | None, location: Sequence[str | int]
) -> tuple[list[str | int], Mapping[str, Any] | None]:
    """The path of a value among the arguments, and its part of the schema (None if it is unknown).

    Where several types are possible, pydantic names the one that it tried, as if it were a part of the value.
    """
    path: list[str | int] = []
    for step in location:
        node = schema if isinstance(schema, Mapping) else {}
        if "anyOf" in node and isinstance(step, str):
            schema = None
            continue
        within = node.get("items") if isinstance(step, int) else (node.get("properties") or {}).get(step)
        schema = within if isinstance(within, Mapping) else None
        path.append(step)
    return path, schema


def _type(node: Mapping[str, Any] | None) -> str:
    kind = node.get("type") if node else None
    return {"integer": "number"}.get(kind, kind) if isinstance(kind, str) else ""


def _allowed_values(node: Mapping[str, Any] | None) -> list[Any]:
    """The values that a schema lets through, if it names them."""
    if not node:
        return []
    return [node["const"]] if "const" in node else list(node.get("enum") or ())


def _options(values: list[Any]) -> str:
    named = "|".join(json.dumps(value, ensure_ascii=False, default=str) for value in values)
    return f"Invalid option: expected one of {named}" if len(values) > 1 else f"Invalid input: expected {named}"


def _number(value: Any) -> Any:
    """A bound as JavaScript prints it: 5 for 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
