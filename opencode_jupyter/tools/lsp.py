"""lsp: ask language servers about code. See docs/opencode/tools.md 13.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from ..core.call_state import ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.encoding import printable
from . import _path_checks
from ._path_checks import assert_external
from .builtin import builtin

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
    file_path: Annotated[str, ForPerson("The file")] = Field(description="The absolute or relative path to the file")
    line: Count = Field(description="The line number (1-based, as shown in editors)")
    character: Count = Field(description="The character offset (1-based, as shown in editors)")


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    """OpenCode's title, or before there is one what it will be: ``goToDefinition src/a.py:3:7``."""
    title = getattr(part.state, "title", None)
    operation, path = arguments.get("operation"), arguments.get("filePath", arguments.get("file_path"))
    if title or not isinstance(operation, str) or not isinstance(path, str):
        return str(title or "")
    return f"{operation} {path}:{arguments.get('line', 1)}:{arguments.get('character', 1)}"


@builtin(
    "lsp",
    Parameters,
    group="search",
    effect="reads",
    example="%tool lsp documentSymbol app.py 1 1",
    card=CardSpec(path="file", label=_label),
)
async def lsp(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask language servers about code."""
    from .language_servers.operations import rows  # here: a dozen modules that nothing else needs
    from .language_servers.service import LanguageServers

    path = _path_checks.resolve_file(ctx, args.file_path)
    await assert_external(ctx, path)
    await ctx.ask("lsp", ["*"], ["*"], {}, path=path)
    ctx.proceed()

    status = await anyio.to_thread.run_sync(_path_checks.file_status, path)
    if status is None:
        raise _path_checks.not_found_error(path)
    await anyio.to_thread.run_sync(_path_checks.check_regular, path, status)
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
    relative = printable(ctx.workspace.relative(path))
    metadata: dict[str, Any] = {"result": answer.result}
    if answer.notes:
        metadata["notes"] = answer.notes
    records = rows(answer.result, args.operation, path, args.line, args.character)
    title = f"{args.operation} {relative}:{args.line}:{args.character}"
    return ToolResult(title, printable(output), metadata, records=records)


def _inside(path: Path, args: Parameters) -> None:
    """Go on only with a file that has the line: some servers fall over a place that is not there.

    Raises:
        ToolError: it is shorter.
    """
    from .language_servers.documents import line_count, load

    if args.operation in ("documentSymbol", "workspaceSymbol"):
        return
    count = line_count(load(path)[0])
    if args.line > count:
        has = "1 line" if count == 1 else f"{count} lines"
        raise ToolError(f"Line {args.line} is past the end of {path}, which has {has}.")
