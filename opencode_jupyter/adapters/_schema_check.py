"""Checks arguments by a JSON schema, where nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

MOST = 10
"""Faults that are listed."""


def checker(schema: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that gives the arguments back if they fit, and raises ``ValueError`` with the faults if not.

    The checking library is imported at the first call. A schema that points elsewhere is never fetched.

    Raises:
        TypeError: it is no JSON schema.
    """
    if schema.get("type", "object") != "object":
        raise TypeError(f"the schema of a tool's parameters has the type object, not {schema['type']!r}")

    @cache
    def validator() -> Any:
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]
        from referencing import Registry

        kind = validator_for(schema, default=Draft202012Validator)
        return kind(schema, registry=Registry())

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        faults = sorted(validator().iter_errors(arguments), key=lambda fault: [str(step) for step in fault.path])
        if faults:
            issues = [{"code": f.validator, "path": list(f.path), "message": f.message} for f in faults[:MOST]]
            raise ValueError(json.dumps(issues, indent=2, ensure_ascii=False, default=str))
        return arguments

    return check
