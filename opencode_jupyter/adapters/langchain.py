"""LangChain's tools: the library validates, runs callbacks and tells content from artifact, as in a chain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args, get_origin

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, BaseToolkit, InjectedToolCallId
from langchain_core.tools import Tool as SimpleTool
from pydantic import BaseModel, ValidationError

from ..core.errors import InvalidArgumentsError, ToolError
from ..core.issues import as_json, list_issues, sentences
from ..core.result import Attachment, ToolResult
from ..core.schema_check import checker
from ._foreign import foreign, plain, rows_of, text_of

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..core.tool import Tool


def tools_of(given: BaseTool | BaseToolkit) -> list[Tool]:
    """A tool, or the tools of a toolkit.

    Raises:
        TypeError: a tool wants a graph's state, store or runtime, which there is not.
    """
    if isinstance(given, BaseToolkit):
        return [_tool(one) for one in given.get_tools()]
    return [_tool(given)]


def _tool(given: BaseTool) -> Tool:
    _refuse_injected(given)
    form: Any = given.tool_call_schema
    if given.args_schema is None and isinstance(given, SimpleTool):  # takes one text, under a name of LangChain's
        form = {"properties": given.args, "required": list(given.args), "additionalProperties": False}
    check: Any = None
    if isinstance(form, dict):
        form = {"properties": {}, **form, "type": "object"}
        check = checker(form, given.name)
    elif isinstance(form, type) and issubclass(form, BaseModel):
        check = _checked_by(form)
    else:  # pydantic 1: the tool checks by itself
        form = {"properties": {}, **form.schema()}

    async def run(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        request = {"type": "tool_call", "id": ctx.call_id, "name": given.name, "args": dict(arguments)}
        try:
            outcome = await given.ainvoke(request)
        except ValidationError as error:
            if getattr(error, "title", None) != getattr(given.args_schema, "__name__", ""):
                raise  # of something that the tool itself checks
            found = list_issues(error)
            said = f"The {given.name} tool was called with invalid arguments: {as_json(found)}."
            for_person = sentences(given.name, found)
            raise InvalidArgumentsError(said, tool=given.name, cause=error, for_person=for_person) from error
        return _result(outcome)

    return foreign(given.name, given.description, form, run, source="langchain", check=check)


def _refuse_injected(given: BaseTool) -> None:
    wanted: frozenset[str] = getattr(given, "_injected_args_keys", frozenset())
    schema = given.get_input_schema()
    for name in sorted(wanted):
        field = getattr(schema, "model_fields", {}).get(name)
        marks = [] if field is None else [*field.metadata, *get_args(field.annotation)]
        if any(one is InjectedToolCallId or isinstance(one, InjectedToolCallId) for one in marks):
            continue
        if field is not None and not field.is_required():
            continue
        kind = "" if field is None else f" ({get_origin(field.annotation) or field.annotation})"
        raise TypeError(
            f"the LangChain tool {given.name} wants {name}{kind} injected by a graph; there is none here. "
            "Wrap it in a function that fills it in, and register that"
        )


def _checked_by(model: type[BaseModel]) -> Any:
    """Checks by a model, and gives the arguments as they came: the tool validates them again, in its own way."""

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        model.model_validate(arguments)
        return arguments

    return check


def _result(outcome: Any) -> ToolResult:
    if isinstance(outcome, list) and outcome and all(isinstance(one, ToolMessage) for one in outcome):
        parts = [_result(one) for one in outcome]
        return ToolResult(
            output="\n\n".join(one.output for one in parts),
            metadata={key: value for one in parts for key, value in one.metadata.items()},
            attachments=[attachment for one in parts for attachment in one.attachments],
        )
    if not isinstance(outcome, ToolMessage):  # a graph's Command, say
        return ToolResult(output=text_of(outcome), metadata={"returned": type(outcome).__name__})
    texts, attachments = _content(outcome.content)
    output = "\n\n".join(texts)
    if outcome.status == "error":
        raise ToolError(output or "the tool failed without a message")
    metadata: dict[str, Any] = {}
    if outcome.artifact is not None:
        metadata["artifact"] = plain(outcome.artifact)
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


def _content(content: Any) -> tuple[list[str], list[Attachment]]:
    """Texts and files of a message's content, in the several forms that blocks have had."""
    if isinstance(content, str):
        return [content], []
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif (url := _url_of(block)) is not None:
            mime = url[5:].partition(";")[0] if url.startswith("data:") else _mime_of(block)
            attachments.append(Attachment(mime, url, block.get("filename")))
        else:
            texts.append(text_of(block))
    return texts, attachments


def _mime_of(block: dict[str, Any]) -> str:
    kinds = {"image": "image/*", "image_url": "image/*", "audio": "audio/*", "video": "video/*"}
    given = block.get("mime_type") or block.get("media_type")
    return str(given or kinds.get(str(block.get("type")), "application/octet-stream"))


def _url_of(block: dict[str, Any]) -> str | None:
    """Where a block's file is, a ``data:`` URL if the block carries it; None if it has none."""
    inner = block.get("image_url") or block.get("source")
    if isinstance(inner, str):
        return inner
    if isinstance(inner, dict):
        block = inner
    data = block.get("base64") or block.get("data")
    if isinstance(data, str):
        return f"data:{_mime_of(block)};base64,{data}"
    url = block.get("url")
    return url if isinstance(url, str) else None
