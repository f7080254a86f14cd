"""Tools and calls in the form of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._model_calls import Answer, Asked, value
from ._openai import parameters

if TYPE_CHECKING:
    from ..core.result import Attachment
    from ..core.tool import Bound

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the API takes as pictures."""


def schemas(tools: Iterable[tuple[str, Bound]]) -> list[dict[str, Any]]:
    """Tools as a request has them."""
    return [
        {"name": name, "description": bound.description, "input_schema": parameters(bound)} for name, bound in tools
    ]


def asked(given: Any) -> list[Asked]:
    """The calls in a message or in a list of its content blocks; other blocks are passed over.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(given, (list, tuple)):
        content = value(given, "content")
        if content is None:
            raise TypeError(f"run_anthropic() takes a message or its content blocks, not {type(given).__name__}")
        given = [] if isinstance(content, str) else content
    return [
        Asked(value(block, "id") or "", value(block, "name") or "", value(block, "input"))
        for block in given
        if value(block, "type") == "tool_use"
    ]


def messages(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """What is sent back: one message, or none."""
    results = [_result(answer) for answer in answers]
    return [{"role": "user", "content": results}] if results else []


def _result(answer: Answer) -> dict[str, Any]:
    result = answer.result
    files = [block for one in result.attachments if (block := _block(one)) is not None]
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": answer.asked.id}
    if files:
        text = [{"type": "text", "text": result.output}] if result.output.strip() else []  # an empty one is refused
        out["content"] = [*text, *files]
    elif result.output:
        out["content"] = result.output
    if answer.failed:
        out["is_error"] = True
    return out


def _block(one: Attachment) -> dict[str, Any] | None:
    kind = "image" if one.mime in PICTURES else "document" if one.mime == "application/pdf" else None
    if kind is None:
        return None
    if one.url.startswith("data:"):
        data = one.url.partition(",")[2]
        return {"type": kind, "source": {"type": "base64", "media_type": one.mime, "data": data}}
    return {"type": kind, "source": {"type": "url", "url": one.url}}
