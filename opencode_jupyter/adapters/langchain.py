"""LangChain's tools as ours, and ours as LangChain's.

The library validates, runs callbacks and separates content from artifact, as in a chain.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, BaseToolkit, InjectedToolCallId, ToolException
from langchain_core.tools import Tool as SimpleTool
from pydantic import BaseModel, PrivateAttr, ValidationError

from ..core.call_state import error_text
from ..core.errors import InvalidArgumentsError, ToolError
from ..core.result import Attachment, ToolResult
from ..core.schema_validation import checker
from ..core.validation_issues import as_json, list_issues, sentences
from ._adapted_tool import adapted_tool, as_metadata, rows_of, text_of
from ._model_calls import ModelCaller
from .provider_apis import parameters

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..core.tool import Bound, Tool


def tools_of(source: BaseTool | BaseToolkit) -> list[Tool]:
    """A tool, or the tools of a toolkit.

    Raises:
        TypeError: a tool wants a graph's state, store or runtime, which there is not.
    """
    if isinstance(source, BaseToolkit):
        return [_tool(tool) for tool in source.get_tools()]
    return [_tool(source)]


def _tool(source: BaseTool) -> Tool:
    _refuse_injected(source)
    form: Any = source.tool_call_schema
    if source.args_schema is None and isinstance(source, SimpleTool):  # takes one text, under a name of LangChain's
        form = {"properties": source.args, "required": list(source.args), "additionalProperties": False}
    check: Any = None
    if isinstance(form, dict):
        form = {"properties": {}, **form, "type": "object"}
        check = checker(form, source.name)
    elif isinstance(form, type) and issubclass(form, BaseModel):
        check = _checked_by(form)
    else:  # pydantic 1: the tool checks by itself
        form = {"properties": {}, **form.schema()}

    async def run(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        request = {"type": "tool_call", "id": ctx.call_id, "name": source.name, "args": dict(arguments)}
        try:
            outcome = await source.ainvoke(request)
        except ValidationError as error:
            if getattr(error, "title", None) != getattr(source.args_schema, "__name__", ""):
                raise  # of something that the tool itself checks
            issues = list_issues(error)
            message = f"The {source.name} tool was called with invalid arguments: {as_json(issues)}."
            for_person = sentences(source.name, issues)
            raise InvalidArgumentsError(message, tool=source.name, cause=error, for_person=for_person) from error
        return _result(outcome)

    return adapted_tool(source.name, source.description, form, run, source="langchain", check=check)


def _refuse_injected(source: BaseTool) -> None:
    injected: frozenset[str] = getattr(source, "_injected_args_keys", frozenset())
    schema = source.get_input_schema()
    for name in sorted(injected):
        field = getattr(schema, "model_fields", {}).get(name)
        marks = [] if field is None else [*field.metadata, *get_args(field.annotation)]
        if any(mark is InjectedToolCallId or isinstance(mark, InjectedToolCallId) for mark in marks):
            continue
        if field is not None and not field.is_required():
            continue
        kind = "" if field is None else f" ({get_origin(field.annotation) or field.annotation})"
        raise TypeError(
            f"the LangChain tool {source.name} wants {name}{kind} injected by a graph; there is none here. "
            "Wrap it in a function that fills it in, and register that"
        )


def _checked_by(model: type[BaseModel]) -> Any:
    """Checks by a model, and gives the arguments as they came: the tool validates them again, in its own way."""

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        model.model_validate(arguments)
        return arguments

    return check


def _result(outcome: Any) -> ToolResult:
    if isinstance(outcome, list) and outcome and all(isinstance(part, ToolMessage) for part in outcome):
        parts = [_result(part) for part in outcome]
        return ToolResult(
            output="\n\n".join(part.output for part in parts),
            metadata={key: value for part in parts for key, value in part.metadata.items()},
            attachments=[attachment for part in parts for attachment in part.attachments],
        )
    if not isinstance(outcome, ToolMessage):  # a graph's Command, say
        return ToolResult(output=text_of(outcome), metadata={"returned": type(outcome).__name__})
    texts, attachments = _content(outcome)
    output = "\n\n".join(texts)
    if outcome.status == "error":
        raise ToolError(output or "the tool failed without a message")
    metadata: dict[str, Any] = {}
    if outcome.artifact is not None:
        metadata["artifact"] = as_metadata(outcome.artifact)
    records = rows_of(outcome.artifact) or _rows_in(output)
    return ToolResult(output=output, metadata=metadata, attachments=attachments, records=records)


def _rows_in(output: str) -> list[dict[str, Any]] | None:
    """The rows of a table that LangChain has already made JSON of."""
    if not output.startswith("[{"):
        return None
    try:
        return rows_of(json.loads(output))
    except ValueError:
        return None


def _content(message: ToolMessage) -> tuple[list[str], list[Attachment]]:
    """Texts and files of a message's content."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    try:
        blocks: list[Any] = [dict(block) for block in message.content_blocks]
    except (KeyError, TypeError, ValueError):  # a form that LangChain itself does not read
        return [text_of(message.content)], []
    for fields in blocks:
        url, data = fields.get("url"), fields.get("base64")
        if fields["type"] == "text":
            texts.append(str(fields.get("text") or ""))
        elif url or data:
            mime = str(fields.get("mime_type") or _MIMES.get(fields["type"], "application/octet-stream"))
            filename = fields.get("filename") or (fields.get("extras") or {}).get("filename")
            attachments.append(Attachment(mime, url or f"data:{mime};base64,{data}", filename))
        else:
            texts.append(text_of(fields.get("value", fields)))
    return texts, attachments


_MIMES = {"image": "image/*", "audio": "audio/*", "video": "video/*"}
"""Of files that name none."""


# ---------------------------------------------------------------------- our tools as LangChain's


class WorkspaceTool(BaseTool):
    """Calls a workspace's tool. Content: its output, with pictures and files as blocks; artifact: the `ToolResult`."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    _id: str = PrivateAttr()
    _caller: ModelCaller = PrivateAttr()

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


def export(name: str, bound: Bound, caller: ModelCaller) -> WorkspaceTool:
    """The tool `bound` under the name `name`."""
    exported = WorkspaceTool(name=name, description=bound.description, args_schema=parameters(bound))
    exported._id = bound.id
    exported._caller = caller
    return exported


def _output(result: ToolResult) -> tuple[Any, ToolResult]:
    blocks: list[dict[str, Any]] = []
    for file in result.attachments:
        kind = file.mime.partition("/")[0]
        block: dict[str, Any] = {
            "type": kind if kind in ("image", "audio", "video") else "file",
            "mime_type": file.mime,
        }
        if file.url.startswith("data:"):
            block["base64"] = file.url.partition(",")[2]
        else:
            block["url"] = file.url
        if file.filename:
            block["filename"] = file.filename
        blocks.append(block)
    return ([{"type": "text", "text": result.output}, *blocks] if blocks else result.output), result
