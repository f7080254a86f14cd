"""grep: lines that fit a regular expression, newest files first. See docs/opencode/tools.md 5."""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from . import _paths
from ._external import assert_external
from ._matches import COLUMNS, KEEP, Matches
from ._ripgrep import Search, resolve_folder, without_checkpoints
from ._secrets import ask_for_secrets, read_actions
from .builtin import builtin

LIMIT = 100
"""Matches shown."""


class Parameters(Arguments):
    """What to look for, and where."""

    pattern: str = Field(description="The regex pattern to search for in file contents")
    path: str | None = Field(
        default=None, description="The directory (or file) to search in. Defaults to the current working directory."
    )
    include: str | None = Field(
        default=None, description='File pattern to include in the search (e.g. "*.js", "*.{ts,tsx}")'
    )


@builtin(
    "grep",
    Parameters,
    group="search",
    effect="reads",
    example="%tool grep TODO include=*.py",
    card=CardSpec(body="table"),
)
async def grep(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Search the text of files."""
    if not args.pattern:
        raise _paths.missing_argument("pattern", "the regular expression to search for")
    if "\0" in args.pattern:
        raise ToolError("The pattern has a NUL character; write \\x00 to look for one.")
    if "\0" in (args.include or ""):
        raise ToolError("include has a NUL character, which no file name can have.")
    asked = {"pattern": args.pattern, "path": args.path, "include": args.include}
    place = resolve_folder(ctx.directory, args.path, files=True)
    about = {k: v for k, v in asked.items() if v is not None}
    await ctx.ask("grep", [args.pattern], ["*"], about, path=place)
    kind = _kind(place)
    await assert_external(ctx, place, "file" if kind == "file" else "directory")
    if kind == "file":
        await ask_for_secrets(ctx, [str(place)], about)
    ctx.proceed()
    if kind == "missing" and ctx.by == "user":
        raise _paths.not_found(place)
    if kind == "missing":  # OpenCode's answer to a model
        return ToolResult(args.pattern, "No files found", {"matches": 0, "truncated": False}, records=[])
    if kind == "other":
        raise ToolError(f"'{place}' is neither a file nor a folder, so it can't be searched")

    folder = place if kind == "folder" else place.parent
    arguments = ["--heading", "--with-filename", "--null", "--line-number", "--color=never", "--hidden"]
    arguments += ["--no-messages", f"--max-columns={COLUMNS}", "--max-columns-preview", f"--regexp={args.pattern}"]
    arguments += [f"--glob={args.include}"] if args.include else []
    arguments += without_checkpoints(args.include, args.path)
    # .git comes last: of two globs that fit, ripgrep goes by the later
    arguments += ["--glob=!.git", "--", "./" if kind == "folder" else f"./{place.name}"]
    search = Search(arguments, folder)
    action = read_actions(ctx)
    matches = Matches(folder, is_hidden=lambda path: kind == "folder" and action(path) != "allow")
    async for chunk in search.chunks():
        matches.feed(chunk)
    matches.finish()
    if search.code not in (0, 1) and search.errors:
        raise ToolError(f"ripgrep failed: {search.errors}", for_person=_for_person(args.pattern, search.errors))
    return _result(args.pattern, matches, search)


def _for_person(pattern: str, errors: str) -> str:
    reason = errors.strip().rpartition("\n")[2].removeprefix("error: ")
    if "regex parse error" not in errors:
        return f"The search failed: {errors.strip()}"
    escaped = re.escape(pattern).replace("\\ ", " ")
    return f"The pattern is not a valid regular expression: {reason}. To search for the text itself, write {escaped}"


def _kind(place: Path) -> str:
    try:
        mode = os.stat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        raise ToolError(f"Can't search {place}: {error.strerror or error}") from error
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _result(pattern: str, matches: Matches, search: Search) -> ToolResult:
    metadata: dict[str, Any] = {"matches": matches.total, "truncated": matches.total > LIMIT}
    if search.engine != "ripgrep":
        metadata["engine"] = "python: no ripgrep was found, so ignore files were not read"
    hidden = []
    if matches.hidden:
        metadata["hidden"] = matches.hidden
        files = "1 file" if matches.hidden == 1 else f"{matches.hidden} files"
        hidden = [
            "",
            f"({files} with matches left out: rules about read deny them, or need approval; name one as path)",
        ]
    if not matches.total:
        return ToolResult(pattern, "\n".join(["No files found", *hidden]), metadata, records=[])
    records = list(
        islice(
            (
                {"path": os.fsdecode(file.path), "line": number, "text": text}
                for file in matches.files()
                for number, text in file.matches()
            ),
            KEEP,
        )
    )
    shown = records[:LIMIT]
    lines = [f"Found {matches.total} matches" + (f" (showing first {LIMIT})" if metadata["truncated"] else "")]
    current = None
    for record in shown:
        if record["path"] != current:
            if current is not None:
                lines.append("")
            current = record["path"]
            lines.append(f"{current}:")
        lines.append(f"  Line {record['line']}: {record['text']}")
    if metadata["truncated"]:
        count = f"showing {LIMIT} of {matches.total} matches ({matches.total - LIMIT} hidden)."
        lines += ["", f"(Results truncated: {count} Consider using a more specific path or pattern.)"]
    lines += hidden
    if search.code == 2:
        lines += ["", "(Some paths were inaccessible and skipped)"]
    return ToolResult(pattern, "\n".join(lines), metadata, records=records)
