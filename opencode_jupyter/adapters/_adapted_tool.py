"""What all tools from outside have in common: an id, one ask before they run, text made of what they return."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from ..core.ids import clean_tool_id
from ..core.result import ToolResult
from ..core.result_values import is_library_value, render
from ..core.tool import Definition, Tool

if TYPE_CHECKING:
    from ..core.context import ToolContext

LARGEST = 100_000
"""Characters of JSON that a library's own data may take in a result's metadata."""

RunTool = Callable[[Any, "ToolContext"], Awaitable[ToolResult]]


def tool_id(name: str) -> str:
    """A name in the characters that a magic's line and providers take.

    Raises:
        TypeError: there is nothing of a name.
    """
    id = clean_tool_id(name.strip())
    if not id.strip("_"):
        raise TypeError(f"a tool needs a name, not {name!r}")
    return id


def adapted_tool(
    name: str,
    description: str,
    parameters: Any,
    run: RunTool,
    *,
    source: str,
    check: Callable[[dict[str, Any]], Any] | None = None,
    external: bool = False,
) -> Tool:
    """A tool of another library. As for a server's tools, the rules are asked by its id before it runs.

    Args:
        name: as the library has it; the id is made of it.
        description: for the model.
        parameters: a pydantic model or a JSON schema.
        run: calls it with what `check` gave.
        source: where it comes from, for listings.
        check: checks the arguments; see `Definition.check`.
        external: it runs elsewhere.
    """
    id = tool_id(name)

    async def execute(arguments: Any, ctx: ToolContext) -> ToolResult:
        await ctx.ask(id, ["*"], ["*"])
        ctx.proceed()
        return await run(arguments, ctx)

    definition = Definition(description, parameters, execute, check=check, asks=True)
    adapted = Tool(id, definition, external=external, source=source)
    adapted.__doc__ = description
    return adapted


def text_of(value: Any) -> str:
    """What a function returned as text for a model: text as it is, all else as JSON where it has a form in it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    rendered = render(value) if is_library_value(value) else None
    if rendered is not None:
        return rendered.text
    return to_json(value, fallback=str, inf_nan_mode="constants").decode()


def rows_of(value: Any) -> list[dict[str, Any]] | None:
    """The rows of a table: a list of dicts, or of a retriever's documents."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    if all(isinstance(row, dict) for row in value):
        return list(value)
    if all(hasattr(row, "page_content") and isinstance(getattr(row, "metadata", None), dict) for row in value):
        return [{"page_content": row.page_content, **row.metadata} for row in value]
    return None


def as_metadata(value: Any) -> Any:
    """Data as metadata can keep it (JSON); a short description where it has no such form or is large."""
    try:
        text = to_json(value, inf_nan_mode="null")
        if len(text) <= LARGEST:
            return json.loads(text)
        return f"{type(value).__name__} ({len(text)} bytes as JSON)"
    except ValueError:
        return type(value).__name__
