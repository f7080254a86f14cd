"""A tool as a provider's API takes it (a dict with a JSON schema), together with the function that does the work."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..core.function_tool import context_of, describe_callable
from ..core.result import ToolResult
from ..core.result_values import is_library_value
from ..core.streaming import join, join_async
from ..core.threads import run_in_thread
from ..core.tool import as_result
from ._adapted_tool import adapted_tool, rows_of, text_of

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..core.tool import Tool

_KINDS = ("function", "custom")
SHAPES = (
    '{"type": "function", "function": {"name", "description", "parameters"}}, {"type": "function", "name", '
    '"description", "parameters"} or {"name", "description", "input_schema"}'
)


def tool_of(definition: dict[str, Any], call: Callable[..., Any] | None = None) -> Tool:
    """A tool of OpenAI's (Chat Completions, Responses) or Anthropic's form.

    Args:
        definition: the dict.
        call: does the work: gets the arguments by name, and the context if it wants it. May be async.

    Raises:
        TypeError: the dict has another form, its schema is wrong, or `call` is missing.
    """
    inner = definition.get("function")
    form = inner if isinstance(inner, dict) else definition
    name = form.get("name")
    schema = form.get("parameters", form.get("input_schema", {}))
    if not isinstance(name, str) or not isinstance(schema, dict) or definition.get("type", "function") not in _KINDS:
        raise TypeError(
            f"a dict that is a tool has one of the forms {SHAPES}; this one has the keys {sorted(definition)}"
        )
    if not callable(call):
        raise TypeError(f"the tool {name} has a description but no function: register(..., call=the_function)")
    fn = describe_callable(call).fn
    context = context_of(fn)
    is_async = inspect.iscoroutinefunction(fn)

    async def run(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        keywords = {**arguments, **dict.fromkeys(context, ctx)}
        if is_async or inspect.isasyncgenfunction(fn):
            outcome = fn(**keywords)
        else:
            outcome = await run_in_thread(_call_and_join, fn, keywords, ctx)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if isinstance(outcome, AsyncIterator):
            outcome = await join_async(outcome, ctx)
        return result_of(name, outcome)

    schema = copy.deepcopy(schema)
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    source = getattr(call, "__module__", "") or ""
    adapted = adapted_tool(name, str(form.get("description") or ""), schema, run, source=source)
    if adapted.static is not None:
        adapted.static.check_definition()
    return adapted


def result_of(name: str, outcome: Any) -> ToolResult:
    """What a function returned that knows nothing of `ToolResult`: anything that has a form in text."""
    if isinstance(outcome, (str, ToolResult)) or is_library_value(outcome):
        return as_result(name, outcome)
    return ToolResult(output=text_of(outcome), records=rows_of(outcome))


def _call_and_join(fn: Callable[..., Any], keywords: dict[str, Any], ctx: ToolContext) -> Any:
    outcome = fn(**keywords)
    return join(outcome, ctx) if isinstance(outcome, Iterator) else outcome
