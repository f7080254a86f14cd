"""lsp: ask language servers about code. Reference: tools.md 13.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import printable
from . import _paths
from ._builtin import builtin
from ._external import assert_external
from .language.documents import load
from .language.service import LanguageServers
from .language.symbols import kind_name
from .language.uris import to_path, to_uri

Operation = Literal[
    "goToDefinition",
    "findReferences",
    "hover",
    "documentSymbol",
    "workspaceSymbol",
    "goToImplementation",
    "prepareCallHierarchy",
    "incomingCalls",
    "outgoingCalls",
]
MAX_SAFE = 2**53 - 1
"""JavaScript's largest whole number, which OpenCode's schema names."""
Count = Annotated[int, Field(ge=1, le=MAX_SAFE)]


class Parameters(Arguments):
    """What to ask, and at which place."""

    operation: Operation = Field(description="The LSP operation to perform")
    file_path: str = Field(description="The absolute or relative path to the file")
    line: Count = Field(description="The line number (1-based, as shown in editors)")
    character: Count = Field(description="The character offset (1-based, as shown in editors)")


@builtin("lsp", Parameters)
async def lsp(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask language servers about code."""
    path = _paths.target(ctx, args.file_path)
    await assert_external(ctx, path)
    await ctx.ask("lsp", ["*"], ["*"], {})
    ctx.proceed()

    found = await anyio.to_thread.run_sync(_paths.status, path)
    if found is None:
        raise ToolError(f"File not found: {path}")
    service = ctx.workspace.service(LanguageServers)
    if missing := await anyio.to_thread.run_sync(service.missing, path):
        raise ToolError(missing)
    await anyio.to_thread.run_sync(_inside, path, args)

    if not await anyio.to_thread.run_sync(service.running, path):
        ctx.metadata(metadata={"progress": {"message": "starting the language server"}})
    answer = await service.ask(args.operation, path, args.line - 1, args.character - 1)

    output = json.dumps(answer.result, indent=2, ensure_ascii=False)
    if not answer.result:
        output = "\n\n".join([f"No results found for {args.operation}", *answer.notes])
    shown = printable(ctx.workspace.relative(path))
    metadata: dict[str, Any] = {"result": answer.result}
    if answer.notes:
        metadata["notes"] = answer.notes
    title = f"{args.operation} {shown}:{args.line}:{args.character}"
    return ToolResult(title, printable(output), metadata, records=rows(answer.result, path, args))


def _inside(path: Path, args: Parameters) -> None:
    """Go on only with a regular file that has the line: some servers fall over a place that is not there.

    Raises:
        ToolError: it is something else, or is shorter.
    """
    found = _paths.status(path)
    if found is not None:
        if path.is_dir():
            raise ToolError(f"Path is a directory, not a file: {path}")
        _paths.regular(path, found)
    if args.operation in ("documentSymbol", "workspaceSymbol"):
        return
    count = load(path)[0].count("\n") + 1
    if args.line > count:
        raise ToolError(f"Line {args.line} is past the end of {path}, which has {count} lines.")


def rows(result: list[Any], path: Path, args: Parameters) -> list[dict[str, Any]]:
    """The answers as a table: one row for each place, symbol or caller, counted from 1."""
    out: list[dict[str, Any]] = []
    if args.operation == "hover":
        return [
            {"path": str(path), "line": args.line, "character": args.character, "text": _text(item.get("contents"))}
            for item in result
            if isinstance(item, dict)
        ]
    for item in result:
        if isinstance(item, dict):
            _row(out, item, to_uri(path), None)
    return out


def _row(out: list[dict[str, Any]], item: dict[str, Any], uri: str, container: str | None) -> None:
    other = item.get("from") or item.get("to")
    named = other if isinstance(other, dict) else item
    location = named.get("location") or {}
    where = named.get("uri") or named.get("targetUri") or location.get("uri") or uri
    place = named.get("selectionRange") or named.get("targetSelectionRange") or named.get("range")
    place = place or location.get("range") or {}
    start = place.get("start") or {}
    file = to_path(where)
    row: dict[str, Any] = {
        "path": printable(str(file)) if file is not None else where,
        "line": start.get("line", 0) + 1,
        "character": start.get("character", 0) + 1,
    }
    if "name" in named:
        row["name"] = named["name"]
        row["kind"] = kind_name(named.get("kind"))
        row["container"] = container or named.get("containerName") or named.get("detail")
    if isinstance(other, dict):
        row["calls"] = len(item.get("fromRanges") or ())
    out.append(row)
    for child in named.get("children") or ():
        _row(out, child, uri, named.get("name"))


def _text(contents: Any) -> str:
    """A hover's text: a string, a marked string, markup, or a list of these."""
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(_text, contents)))
    if isinstance(contents, dict):
        return str(contents.get("value", ""))
    return contents if isinstance(contents, str) else ""
