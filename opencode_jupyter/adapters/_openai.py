"""Tools and calls in the forms of OpenAI's two APIs, Chat Completions and Responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._model_calls import Answer, Asked, value

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
    found = {key: node for key, node in bound.parameters.items() if key != "$schema"}
    return {"properties": {}, **found, "type": "object"}


def asked(given: Any) -> list[Asked]:
    """The calls in a completion, a message, a response or a list of items; other items are passed over.

    Raises:
        TypeError: it is none of these.
    """
    if choices := value(given, "choices"):
        given = value(choices[0], "message")
    for name in ("tool_calls", "output"):
        if not isinstance(given, (list, tuple)) and (value(given, name) is not None or _has(given, name)):
            given = value(given, name) or []
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"run_openai() takes a completion, its message, a response, or a list of tool calls, not {_kind(given)}"
        )
    return [call for item in given if (call := _asked(item)) is not None]


def messages(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """What is sent back."""
    out: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for answer in answers:
        result = answer.result
        if answer.asked.form == RESPONSES:
            files = [part for one in result.attachments if (part := _input_part(one)) is not None]
            text = [{"type": "input_text", "text": result.output}] if result.output else []
            output = [*text, *files] if files else result.output
            out.append({"type": "function_call_output", "call_id": answer.asked.id, "output": output})
            continue
        out.append({"role": "tool", "tool_call_id": answer.asked.id, "content": result.output})
        shown = [one for one in result.attachments if one.mime.startswith("image/")]
        if shown:
            pictures.append({"type": "text", "text": f"From the call of {answer.asked.name} ({answer.asked.id}):"})
            pictures += [{"type": "image_url", "image_url": {"url": one.url}} for one in shown]
    if pictures:  # a tool's message carries text alone
        out.append({"role": "user", "content": pictures})
    return out


def _asked(item: Any) -> Asked | None:
    if value(item, "type") == RESPONSES:
        return Asked(value(item, "call_id") or "", value(item, "name") or "", value(item, "arguments"), RESPONSES)
    function = value(item, "function")
    if function is None:
        return None
    return Asked(value(item, "id") or "", value(function, "name") or "", value(function, "arguments"), CHAT)


def _input_part(one: Attachment) -> dict[str, Any] | None:
    if one.mime.startswith("image/"):
        return {"type": "input_image", "image_url": one.url, "detail": "auto"}
    if one.mime == "application/pdf":
        return {"type": "input_file", "filename": one.filename or "file.pdf", "file_data": one.url}
    return None


def _has(given: Any, name: str) -> bool:
    return name in given if isinstance(given, dict) else hasattr(given, name)


def _kind(given: Any) -> str:
    return f"a dict with {', '.join(given) or 'nothing'}" if isinstance(given, dict) else type(given).__name__
