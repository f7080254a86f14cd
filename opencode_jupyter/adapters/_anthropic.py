"""Tools and calls in the form of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ._model_calls import ModelCall, ModelCallResult, field_of
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


def calls_in(content: Any) -> list[ModelCall]:
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


def result_messages(results: Sequence[ModelCallResult]) -> list[dict[str, Any]]:
    """The message with the results of calls; none if there are none."""
    blocks = [_result_block(call_result) for call_result in results]
    return [{"role": "user", "content": blocks}] if blocks else []


def _result_block(call_result: ModelCallResult) -> dict[str, Any]:
    result = call_result.result
    files = [part for file in result.attachments if (part := _file_block(file)) is not None]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_result.call.id}
    if files:
        text = [{"type": "text", "text": result.output}] if result.output.strip() else []  # an empty one is refused
        block["content"] = [*text, *files]
    elif result.output:
        block["content"] = result.output
    if call_result.failed:
        block["is_error"] = True
    return block


def _file_block(file: Attachment) -> dict[str, Any] | None:
    kind = "image" if file.mime in PICTURES else "document" if file.mime == "application/pdf" else None
    if kind is None:
        return None
    if file.url.startswith("data:"):
        data = file.url.partition(",")[2]
        return {"type": kind, "source": {"type": "base64", "media_type": file.mime, "data": data}}
    return {"type": kind, "source": {"type": "url", "url": file.url}}
