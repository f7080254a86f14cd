"""A tool of ours as a LangChain tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from ..core.outcome import error_text
from ._model_calls import Caller
from ._openai import parameters

if TYPE_CHECKING:
    from ..core.result import ToolResult
    from ..core.tool import Bound


class WorkspaceTool(BaseTool):
    """Calls a workspace's tool. Content: its output, with pictures and files as blocks; artifact: the `ToolResult`."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    _id: str = PrivateAttr()
    _caller: Caller = PrivateAttr()

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments in one: a parameter may be called ``config`` or ``run_manager``, which LangChain fills in."""
        if not isinstance(tool_input, dict):
            raise ToolException(f"the tool {self.name} takes its arguments by name, not one text")
        return (tool_input, tool_call_id), {}

    def _run(self, arguments: dict[str, Any], call_id: str | None = None) -> tuple[Any, ToolResult]:
        try:
            return _output(self._caller.call_sync(self._id, arguments))
        except Exception as error:
            raise ToolException(error_text(error)) from error

    async def _arun(self, arguments: dict[str, Any], call_id: str | None = None) -> tuple[Any, ToolResult]:
        try:
            return _output(await self._caller.call(self._id, arguments, call_id))
        except Exception as error:
            raise ToolException(error_text(error)) from error


def live(name: str, bound: Bound, caller: Caller) -> WorkspaceTool:
    """The tool `bound` under the name `name`."""
    made = WorkspaceTool(name=name, description=bound.description, args_schema=parameters(bound))
    made._id = bound.id
    made._caller = caller
    return made


def _output(result: ToolResult) -> tuple[Any, ToolResult]:
    blocks: list[dict[str, Any]] = []
    for one in result.attachments:
        kind = one.mime.partition("/")[0]
        block: dict[str, Any] = {"type": kind if kind in ("image", "audio", "video") else "file", "mime_type": one.mime}
        if one.url.startswith("data:"):
            block["base64"] = one.url.partition(",")[2]
        else:
            block["url"] = one.url
        if one.filename:
            block["filename"] = one.filename
        blocks.append(block)
    return ([{"type": "text", "text": result.output}, *blocks] if blocks else result.output), result
