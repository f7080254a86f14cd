"""pydantic-ai's tools and toolsets as ours, called as its agent would; and our tools as pydantic-ai's."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import BinaryContent, FileUrl, FunctionToolset, ImageUrl, RunContext, ToolReturn
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage

from ..core.call_state import error_text
from ..core.errors import ToolError
from ..core.result import Attachment, ToolResult
from ..core.threads import run_blocking
from ._adapted_tool import adapted_tool, as_metadata, rows_of, text_of
from .provider_apis import parameters

if TYPE_CHECKING:
    from pydantic_ai.toolsets import ToolsetTool

    from ..core.context import ToolContext
    from ..core.tool import Bound, Tool
    from ._model_calls import ModelCaller

LISTING = 30.0
"""Seconds a toolset may take to list its tools."""


class MissingDepsError(ToolError, AttributeError):
    """A tool looked into ``ctx.deps``, and none were given."""


class NoDeps:
    """Stands for dependencies that nobody gave: false, and an error for who looks into it."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MissingDepsError(
            f"this pydantic-ai tool uses ctx.deps.{name}, and there are no deps: registry.register(tool, deps=...)"
        )


def tools_of(source: PydanticTool[Any] | AbstractToolset[Any], deps: Any = None) -> list[Tool]:
    """A tool, or the tools that a toolset lists now.

    Each gets a run context with `deps` and little else: there is no agent, no message history and a model that is
    never asked.

    Raises:
        TypeError: a tool's work is done outside of pydantic-ai; there is nothing to call.
        ToolError: the toolset did not list its tools in time.
    """
    toolset: AbstractToolset[Any] = FunctionToolset([source]) if isinstance(source, PydanticTool) else source
    context = _context(NoDeps() if deps is None else deps)
    tools = run_blocking(None, _list(toolset, context), LISTING, "the toolset did not list its tools")
    return [_tool(toolset, name, tool, context) for name, tool in tools.items()]


async def _list(toolset: AbstractToolset[Any], context: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
    async with toolset:
        return await toolset.get_tools(context)


def _context(deps: Any) -> RunContext[Any]:
    return RunContext(deps=deps, model=TestModel(), usage=RunUsage(), tool_call_approved=True)


def _tool(toolset: AbstractToolset[Any], name: str, toolset_tool: ToolsetTool[Any], context: RunContext[Any]) -> Tool:
    form = toolset_tool.tool_def
    if form.kind not in ("function", "unapproved"):
        raise TypeError(
            f"the pydantic-ai tool {name} is of the kind {form.kind}: its work is done outside; nothing can be called"
        )

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        validated: dict[str, Any] = toolset_tool.args_validator.validate_python(arguments)
        return validated

    async def run(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        run_context = replace(context, tool_name=name, tool_call_id=ctx.call_id, usage=RunUsage())
        try:
            if toolset_tool.args_validator_func is not None:
                await _validated(toolset_tool, arguments, run_context)
            async with toolset:
                outcome = await toolset.call_tool(name, arguments, run_context, toolset_tool)
        except (ModelRetry, ToolFailed) as error:
            raise ToolError(error.message) from error
        except (CallDeferred, ApprovalRequired) as error:
            raise ToolError(
                f"the tool {name} defers its work ({type(error).__name__}), which only its own agent can wait for"
            ) from error
        return _result(outcome)

    schema = {"properties": {}, **form.parameters_json_schema}
    return adapted_tool(name, form.description or "", schema, run, source="pydantic-ai", check=check)


async def _validated(toolset_tool: ToolsetTool[Any], arguments: dict[str, Any], context: RunContext[Any]) -> None:
    assert toolset_tool.args_validator_func is not None
    outcome = toolset_tool.args_validator_func(context, **arguments)
    if inspect.isawaitable(outcome):
        await outcome


def _result(outcome: Any) -> ToolResult:
    metadata: dict[str, Any] = {}
    extra: Any = None
    if isinstance(outcome, ToolReturn):
        if outcome.metadata is not None:
            metadata["artifact"] = as_metadata(outcome.metadata)
        outcome, extra = outcome.return_value, outcome.content
    texts, attachments = _content(outcome)
    extra_texts, files = _content(extra)
    return ToolResult(
        output="\n\n".join(text for text in (*texts, *extra_texts) if text),
        metadata=metadata,
        attachments=[*attachments, *files],
        records=rows_of(outcome),
    )


def _content(value: Any) -> tuple[list[str], list[Attachment]]:
    """Texts and files; a list with files in it is taken item by item."""
    file = _file(value)
    if file is not None:
        return [], [file]
    if isinstance(value, (list, tuple)) and any(_file(item) is not None for item in value):
        pieces = [_content(item) for item in value]
        return [t for texts, _ in pieces for t in texts], [f for _, files in pieces for f in files]
    return [text_of(value)], []


def _file(value: Any) -> Attachment | None:
    if isinstance(value, BinaryContent):
        return Attachment.from_bytes(value.data, value.media_type)
    if isinstance(value, FileUrl):
        return Attachment(value.media_type, value.url)
    return None


# ---------------------------------------------------------------------- our tools as pydantic-ai's


def export(name: str, bound: Bound, caller: ModelCaller) -> PydanticTool[Any]:
    """The tool `bound` under the name `name`."""

    async def call(_run: RunContext[Any], /, **arguments: Any) -> Any:
        try:
            return _tool_return(await caller.call(bound.id, arguments, _run.tool_call_id))
        except Exception as error:
            raise ToolFailed(error_text(error)) from error

    return PydanticTool.from_schema(call, name, bound.description, parameters(bound), takes_ctx=True)


def _tool_return(result: ToolResult) -> ToolReturn[Any]:
    files = [file for attachment in result.attachments if (file := _content_of(attachment)) is not None]
    text = [result.output] if result.output or not files else []
    return ToolReturn(return_value=[*text, *files] if files else result.output, metadata=as_metadata(result.metadata))


def _content_of(attachment: Attachment) -> Any:
    if attachment.url.startswith("data:"):
        return BinaryContent(attachment.data, media_type=attachment.mime, identifier=attachment.filename or None)
    return ImageUrl(attachment.url) if attachment.mime.startswith("image/") else None
