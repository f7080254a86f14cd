"""A tool of ours as a pydantic-ai tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import BinaryContent, ImageUrl, RunContext, ToolReturn
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.exceptions import ToolFailed

from ..core.outcome import error_text
from ._foreign import plain
from ._openai import parameters

if TYPE_CHECKING:
    from ..core.result import Attachment, ToolResult
    from ..core.tool import Bound
    from ._model_calls import Caller


def live(name: str, bound: Bound, caller: Caller) -> PydanticTool[Any]:
    """The tool `bound` under the name `name`."""

    async def call(_run: RunContext[Any], /, **arguments: Any) -> Any:
        try:
            return _returned(await caller.call(bound.id, arguments, _run.tool_call_id))
        except Exception as error:
            raise ToolFailed(error_text(error)) from error

    return PydanticTool.from_schema(call, name, bound.description, parameters(bound), takes_ctx=True)


def _returned(result: ToolResult) -> ToolReturn[Any]:
    files = [file for one in result.attachments if (file := _file(one)) is not None]
    text = [result.output] if result.output or not files else []
    return ToolReturn(return_value=[*text, *files] if files else result.output, metadata=plain(result.metadata))


def _file(one: Attachment) -> Any:
    if one.url.startswith("data:"):
        return BinaryContent(one.data, media_type=one.mime, identifier=one.filename or None)
    return ImageUrl(one.url) if one.mime.startswith("image/") else None
