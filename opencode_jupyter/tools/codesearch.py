"""codesearch: code found by what it does, on the web (Exa) or in this project. See docs/opencode/tools.md 12.

Where to look is decided so: Exa if it is switched on (`OPENCODE_ENABLE_EXA`) or a key is there (`EXA_API_KEY`), this
project otherwise; the project too, with a note, when Exa can't be reached.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.threads import run_in_thread
from ..text.encoding import printable
from . import _path_checks
from .builtin import builtin

if TYPE_CHECKING:
    from .codeindex.snippets import Snippet

DEFAULT, LEAST, MOST = 5000, 1000, 50_000
"""Tokens."""
CHARACTERS = 4
"""Of a token, about."""
RECORD = 4000
"""Characters of a record's text."""
TIMEOUT = 30.0
"""Seconds for Exa."""
EXA_TOOL = "get_code_context_exa"
NOTHING_ON_THE_WEB = (
    "No code snippets or documentation found. Please try a different query, be more specific about the library or"
    " programming concept, or check the spelling of framework names."
)

Tokens = Annotated[int, WithJsonSchema({"type": "number", "minimum": LEAST, "maximum": MOST, "default": DEFAULT})]


class Parameters(Arguments):
    """What to look for, where, and how much of it to show."""

    query: str = Field(
        description="What the code does or what you want to know, in words, e.g. 'React useState hook examples' or"
        " 'where are uploaded files checked'"
    )
    tokens_num: Tokens = Field(
        DEFAULT, ge=LEAST, le=MOST, description="Number of tokens to return (1000-50000), 5000 by default"
    )
    source: Literal["auto", "web", "project"] = Field(
        "auto", description="Where to look: the web (Exa), this project's own code, or whichever is at hand (auto)"
    )


@builtin(
    "codesearch",
    Parameters,
    group="search",
    effect="reads",
    example='%tool codesearch "where prices are added up"',
)
async def codesearch(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Find code by what it does."""
    if not args.query.strip():
        raise ToolError("query is required: describe what the code does")
    await ctx.ask("codesearch", [args.query], ["*"], {"query": args.query, "tokensNum": args.tokens_num})
    ctx.proceed()
    title = f"Code search: {printable(args.query)}"
    note = ""
    if args.source == "web" or (args.source == "auto" and _web_is_on(ctx)):
        from .web.exa import ExaUnreachableError, call_exa

        arguments = {"query": args.query, "tokensNum": args.tokens_num}
        try:
            text = await call_exa(ctx, EXA_TOOL, arguments, TIMEOUT, what="Code search")
        except ExaUnreachableError as error:
            if args.source == "web":
                raise
            note = f"(Exa can't be reached, so this project was searched instead. {error})"
        else:
            return ToolResult(title, text or NOTHING_ON_THE_WEB, {})
    return await _in_project(args, ctx, title, note)


def _web_is_on(ctx: ToolContext) -> bool:
    return ctx.workspace.flags.enable_exa or bool(os.environ.get("EXA_API_KEY", "").strip())


async def _in_project(args: Parameters, ctx: ToolContext, title: str, note: str) -> ToolResult:
    from .codeindex.service import CodeIndex
    from .codeindex.snippets import snippet

    root = ctx.directory if ctx.worktree == Path(ctx.worktree.anchor) else ctx.worktree
    project = ctx.workspace.service(CodeIndex).project(root)
    budget = args.tokens_num * CHARACTERS
    limit = max(8, min(60, args.tokens_num // 400))

    def progress(done: int, total: int, message: str) -> None:
        text = f"{message}: {done:,} of {total:,} files"
        ctx.metadata(metadata={"progress": {"value": done, "total": total, "message": text}})

    hidden = 0

    def allowed(path: str) -> bool:
        nonlocal hidden
        visible = _may_be_shown(ctx, root / path)
        hidden += not visible
        return visible

    hits = await project.search(args.query, limit, progress, allowed)

    def read() -> list[Snippet]:
        return [snip for hit in hits if (snip := snippet(root, hit)) is not None]

    snippets = await run_in_thread(read)
    files = len(project.listing.paths)
    metadata: dict[str, Any] = {"source": "project", "files": files, "count": len(snippets)}
    notes = [note] if note else []
    if hidden:
        notes.append(f"({hidden} more in files that a rule for read denies, or asks about, are not shown)")
    if project.listing.cut:
        notes.append(f"(Only the first {files:,} files of this folder were searched)")
    metadata |= project.listing.engine_note
    if not snippets:
        advice = "Describe it in other words, or grep for a text that it must contain."
        notes.insert(0, f"No code found in this project's {files:,} files. {advice}")
        return ToolResult(title, "\n\n".join(notes), metadata, records=[])
    texts = _shown(ctx, root, snippets, budget - sum(map(len, notes)))
    if len(texts) < len(snippets):
        notes.append(f"({len(snippets) - len(texts)} more places; a larger tokensNum shows them)")
    records = [_record(root, snip) for snip in snippets]
    return ToolResult(title, "\n\n".join([*texts, *notes]), metadata, records=records)


def _may_be_shown(ctx: ToolContext, path: Path) -> bool:
    """Return whether the rules let this file be read unasked; a rule that asks about everything hides nothing."""
    call = ctx.workspace.calls.get(ctx.call_id)
    if call is None:
        return False
    rules = ctx.workspace.permissions.check("read", _path_checks.rule_patterns(ctx, path), call.ruleset)
    return all(rule.action == "allow" or (rule.action == "ask" and rule.pattern == "*") for rule in rules)


def _shown(ctx: ToolContext, root: Path, snippets: list[Snippet], budget: int) -> list[str]:
    """The hits as text; the first may take a third of what is left, so that the others are seen too."""
    out: list[str] = []
    for number, snip in enumerate(snippets):
        head = f"{_name(ctx, root, snip)}:{snip.line}-{snip.end_line}  {snip.kind} {printable(snip.symbol)}".rstrip()
        room = budget - len(head) - 12
        if room < 200 and out:
            break
        code = snip.cut(max(200, room // 3 if number < len(snippets) - 1 else room))
        text = f"{head}\n```\n{code.strip(chr(10))}\n```"
        budget -= len(text) + 2
        out.append(text)
    return out


def _name(ctx: ToolContext, root: Path, snip: Snippet) -> str:
    """A file as the other tools take it: from the session's folder."""
    return printable(os.path.relpath(root / snip.path, ctx.directory))


def _record(root: Path, snip: Snippet) -> dict[str, Any]:
    return {
        "path": str(root / snip.path),
        "line": snip.line,
        "end_line": snip.end_line,
        "symbol": snip.symbol,
        "kind": snip.kind,
        "score": snip.score,
        "text": snip.cut(RECORD),
    }
