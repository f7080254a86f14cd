"""Tools, calls and results in the forms of OpenAI's APIs (Chat Completions, Responses) and Anthropic's Messages API."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.function_tool import context_of, describe_callable
from ..core.result import ToolResult
from ..core.result_values import is_library_value
from ..core.streaming import join, join_async
from ..core.threads import run_in_thread
from ..core.tool import as_result
from ._adapted_tool import adapted_tool, rows_of, text_of
from ._model_calls import ModelCall, ModelCallResult, field_of

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..core.result import Attachment
    from ..core.tool import Bound, Tool

_KINDS = ("function", "custom")
_SHAPES = (
    '{"type": "function", "function": {"name", "description", "parameters"}}, {"type": "function", "name", '
    '"description", "parameters"} or {"name", "description", "input_schema"}'
)
_RESPONSES = "function_call"
"""Type of a call's item in OpenAI's Responses API."""
_ANTHROPIC_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What Anthropic's API takes as pictures."""


# ---------------------------------------------------------------------- tools in their form as ours


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
            f"a dict that is a tool has one of the forms {_SHAPES}; this one has the keys {sorted(definition)}"
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
        return _result_of(name, outcome)

    schema = copy.deepcopy(schema)
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    source = getattr(call, "__module__", "") or ""
    adapted = adapted_tool(name, str(form.get("description") or ""), schema, run, source=source)
    if adapted.static is not None:
        adapted.static.check_definition()
    return adapted


def _result_of(name: str, outcome: Any) -> ToolResult:
    """What a function returned that knows nothing of `ToolResult`: anything that has a form in text."""
    if isinstance(outcome, (str, ToolResult)) or is_library_value(outcome):
        return as_result(name, outcome)
    return ToolResult(output=text_of(outcome), records=rows_of(outcome))


def _call_and_join(fn: Callable[..., Any], keywords: dict[str, Any], ctx: ToolContext) -> Any:
    outcome = fn(**keywords)
    return join(outcome, ctx) if isinstance(outcome, Iterator) else outcome


# ---------------------------------------------------------------------- our tools for them


def parameters(bound: Bound) -> dict[str, Any]:
    """A tool's schema as providers take it: always an object, without the name of its dialect."""
    schema = {key: node for key, node in bound.parameters.items() if key != "$schema"}
    return {"properties": {}, **schema, "type": "object"}


# ---------------------------------------------------------------------- OpenAI


def openai_schemas(tools: Iterable[tuple[str, Bound]], *, responses: bool) -> list[dict[str, Any]]:
    """Tools as a request has them. Not strict: a strict schema may leave no argument optional."""
    return [_openai_schema(name, bound, responses=responses) for name, bound in tools]


def _openai_schema(name: str, bound: Bound, *, responses: bool) -> dict[str, Any]:
    form = {"name": name, "description": bound.description, "parameters": parameters(bound)}
    if responses:
        return {"type": "function", **form, "strict": False}
    return {"type": "function", "function": form}


def openai_calls(response: Any) -> list[ModelCall]:
    """The calls in a completion, a message, a response or a list of items; other items are passed over.

    Raises:
        TypeError: it is none of these.
    """
    if choices := field_of(response, "choices"):
        response = field_of(choices[0], "message")
    for name in ("tool_calls", "output"):
        if not isinstance(response, (list, tuple)) and _has_field(response, name):
            response = field_of(response, name) or []
    if not isinstance(response, (list, tuple)):
        kind = (
            f"a dict with {', '.join(response) or 'nothing'}" if isinstance(response, dict) else type(response).__name__
        )
        raise TypeError(
            f"run_openai() takes a completion, its message, a response, or a list of tool calls, not {kind}"
        )
    return [call for item in response if (call := _openai_call(item)) is not None]


def openai_messages(results: Sequence[ModelCallResult]) -> list[dict[str, Any]]:
    """The messages with the results of calls."""
    messages: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for call_result in results:
        call, result = call_result.call, call_result.result
        if call.form == _RESPONSES:
            files = [part for file in result.attachments if (part := _openai_file(file)) is not None]
            text = [{"type": "input_text", "text": result.output}] if result.output else []
            output = [*text, *files] if files else result.output
            messages.append({"type": "function_call_output", "call_id": call.id, "output": output})
            continue
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result.output})
        images = [file for file in result.attachments if file.mime.startswith("image/")]
        if images:
            pictures.append({"type": "text", "text": f"From the call of {call.name} ({call.id}):"})
            pictures += [{"type": "image_url", "image_url": {"url": file.url}} for file in images]
    if pictures:  # a tool's message carries text alone
        messages.append({"role": "user", "content": pictures})
    return messages


def _openai_call(item: Any) -> ModelCall | None:
    if field_of(item, "type") == _RESPONSES:
        return ModelCall(
            field_of(item, "call_id") or "", field_of(item, "name") or "", field_of(item, "arguments"), _RESPONSES
        )
    function = field_of(item, "function")
    if function is None:
        return None
    return ModelCall(field_of(item, "id") or "", field_of(function, "name") or "", field_of(function, "arguments"))


def _openai_file(file: Attachment) -> dict[str, Any] | None:
    if file.mime.startswith("image/"):
        return {"type": "input_image", "image_url": file.url, "detail": "auto"}
    if file.mime == "application/pdf":
        return {"type": "input_file", "filename": file.filename or "file.pdf", "file_data": file.url}
    return None


def _has_field(item: Any, name: str) -> bool:
    return name in item if isinstance(item, dict) else hasattr(item, name)


# ---------------------------------------------------------------------- Anthropic


def anthropic_schemas(tools: Iterable[tuple[str, Bound]]) -> list[dict[str, Any]]:
    """Tools as a request has them."""
    return [
        {"name": name, "description": bound.description, "input_schema": parameters(bound)} for name, bound in tools
    ]


def anthropic_calls(content: Any) -> list[ModelCall]:
    """The calls in a message or in a list of its content blocks; other blocks are passed over.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(content, (list, tuple)):
        blocks = field_of(content, "content")
        if blocks is None:
            raise TypeError(f"run_anthropic() takes a message or its content blocks, not {type(content).__name__}")
        content = [] if isinstance(blocks, str) else blocks
    return [
        ModelCall(field_of(block, "id") or "", field_of(block, "name") or "", field_of(block, "input"))
        for block in content
        if field_of(block, "type") == "tool_use"
    ]


def anthropic_messages(results: Sequence[ModelCallResult]) -> list[dict[str, Any]]:
    """The message with the results of calls; none if there are none."""
    blocks = [_anthropic_result(call_result) for call_result in results]
    return [{"role": "user", "content": blocks}] if blocks else []


def _anthropic_result(call_result: ModelCallResult) -> dict[str, Any]:
    result = call_result.result
    files = [part for file in result.attachments if (part := _anthropic_file(file)) is not None]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_result.call.id}
    if files:
        text = [{"type": "text", "text": result.output}] if result.output.strip() else []  # an empty one is refused
        block["content"] = [*text, *files]
    elif result.output:
        block["content"] = result.output
    if call_result.failed:
        block["is_error"] = True
    return block


def _anthropic_file(file: Attachment) -> dict[str, Any] | None:
    kind = "image" if file.mime in _ANTHROPIC_PICTURES else "document" if file.mime == "application/pdf" else None
    if kind is None:
        return None
    if file.url.startswith("data:"):
        data = file.url.partition(",")[2]
        return {"type": kind, "source": {"type": "base64", "media_type": file.mime, "data": data}}
    return {"type": kind, "source": {"type": "url", "url": file.url}}
