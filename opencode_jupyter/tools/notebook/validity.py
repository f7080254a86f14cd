"""True if a notebook is valid by nbformat, without the two seconds that importing nbformat takes where it is.

nbformat imports jsonschema, which in an environment with a Jupyter server loads a grammar for the syntax of URLs. Its
schemas are files, and fastjsonschema, which nbformat depends on, checks them as fast as nbformat does. Only to say what
is wrong with a notebook nbformat itself is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...core.errors import ToolError

WORDS = 300
"""Characters of what is said of a notebook that is not valid."""


def problem(head: dict[str, Any], cells: Sequence[dict[str, Any]]) -> str:
    """Why a notebook of format 4 is not valid, in one line; empty if it is."""
    notebook = {**head, "cells": list(cells)}
    minor = head.get("nbformat_minor", 0)
    try:
        _validator(minor if isinstance(minor, int) else -1)(notebook)
    except Exception:  # not valid, or nothing that the schema's own code expects
        return _told(notebook)
    ids = [cell["id"] for cell in cells if "id" in cell]
    double = next((one for one in ids if ids.count(one) > 1), None) if len(set(ids)) != len(ids) else None
    return f"several cells have the id {double}" if double else ""


@cache
def _validator(minor: int) -> Callable[[Any], Any]:
    import fastjsonschema

    spec = find_spec("nbformat")
    if spec is None or spec.origin is None:
        raise ToolError("nbformat is not installed: pip install nbformat")
    folder = Path(spec.origin).parent / "v4"
    exact = folder / f"nbformat.v4.{minor}.schema.json"
    schema = json.loads((exact if exact.exists() else folder / "nbformat.v4.schema.json").read_bytes())
    if not exact.exists():  # a minor version to come may have more than is known here
        schema = _open(schema)
    made: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return made


def _open(schema: Any) -> Any:
    """A schema that lets other properties pass."""
    if isinstance(schema, dict):
        return {k: True if k == "additionalProperties" and v is False else _open(v) for k, v in schema.items()}
    return [_open(item) for item in schema] if isinstance(schema, list) else schema


def _told(notebook: dict[str, Any]) -> str:
    import nbformat.validator

    try:
        # not `validate`, which in older releases changes what it is given
        error = next(iter(nbformat.validator.iter_validate(notebook)), None)  # type: ignore[no-untyped-call]
    except Exception as unexpected:  # a version or metadata of a kind its own code does not expect
        error = unexpected
    line = " ".join(str(error or "").partition("\n\n")[0].split())
    return line if len(line) <= WORDS else line[: WORDS - 1] + "…"
