"""Tools and calls in the forms of OpenAI's two APIs, Chat Completions and Responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._model_calls import ModelCall, ModelCallResult, field_of

if TYPE_CHECKING:
    from ..core.result import Attachment
    from ..core.tool import Bound

CHAT, RESPONSES = "function", "function_call"
"""Types of a call's item in the two APIs."""


def schemas(tools: Iterable[tuple[str, Bound]], *, responses: bool) -> list[dict[str, Any]]:
    """Tools as a request has them. Not strict: a strict schema may leave no argument optional."""
    return [_schema(name, bound, responses=responses) for name, bound in tools]


def _schema(name: str, bound: Bound, *, responses: bool) -> dict[str, Any]:
    form = {"name": name, "description": bound.description, "parameters": parameters(bound)}
    if responses:
        return {"type": "function", **form, "strict": False}
    return {"type": "function", "function": form}


def parameters(bound: Bound) -> dict[str, Any]:
    """A tool's schema as providers take it: always an object, without the name of its dialect."""
    schema = {key: node for key, node in bound.parameters.items() if key != "$schema"}
    return {"properties": {}, **schema, "type": "object"}


def calls_in(response: Any) -> list[ModelCall]:
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
    return [call for item in response if (call := _call_of(item)) is not None]


def result_messages(results: Sequence[ModelCallResult]) -> list[dict[str, Any]]:
    """The messages with the results of calls."""
    messages: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for call_result in results:
        call, result = call_result.call, call_result.result
        if call.form == RESPONSES:
            files = [part for file in result.attachments if (part := _input_part(file)) is not None]
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


def _call_of(item: Any) -> ModelCall | None:
    if field_of(item, "type") == RESPONSES:
        return ModelCall(
            field_of(item, "call_id") or "", field_of(item, "name") or "", field_of(item, "arguments"), RESPONSES
        )
    function = field_of(item, "function")
    if function is None:
        return None
    return ModelCall(
        field_of(item, "id") or "", field_of(function, "name") or "", field_of(function, "arguments"), CHAT
    )


def _input_part(file: Attachment) -> dict[str, Any] | None:
    if file.mime.startswith("image/"):
        return {"type": "input_image", "image_url": file.url, "detail": "auto"}
    if file.mime == "application/pdf":
        return {"type": "input_file", "filename": file.filename or "file.pdf", "file_data": file.url}
    return None


def _has_field(item: Any, name: str) -> bool:
    return name in item if isinstance(item, dict) else hasattr(item, name)
