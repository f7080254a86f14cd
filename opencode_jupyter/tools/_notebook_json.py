"""A notebook file that is changed as text must stay valid JSON."""

from __future__ import annotations

import json
from pathlib import Path

from ..core.errors import ToolError


def check_notebook(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Refuse a change after which a notebook could not be opened any more; one that is damaged already may be repaired.

    Raises:
        ToolError: `path` is an ``.ipynb`` and `after` is no JSON object.
    """
    if path.suffix != ".ipynb" or after is None or before == after:
        return
    problem = _problem(after)
    if problem is not None and (before is None or _problem(before) is None):
        raise ToolError(
            f"{path} would not be a valid notebook: {problem}. Nothing was changed. Use notebook_edit to change cells, "
            "or write the whole notebook as JSON."
        )


def _problem(data: bytes) -> str | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"invalid JSON ({error})"
    return None if isinstance(document, dict) else "not a JSON object"
