"""glob: files whose path fits a pattern, newest first. See docs/opencode/tools.md 4."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from . import _path_checks
from ._path_checks import assert_external, denied_reads
from .builtin import builtin
from .ripgrep import Search, resolve_folder, without_checkpoints

LIMIT = 100
"""Files shown."""
GATHERED = 4096
"""Files at hand before the older ones are let go."""

NOT_SET = 'Omit this field to use the default directory. Do not enter "undefined" or "null".'


class Parameters(Arguments):
    """What to look for, and where."""

    pattern: str = Field(description="The glob pattern to match files against, such as **/*.py or src/*.{ts,tsx}")
    path: Annotated[str | None, ForPerson("The folder to search in; the project's folder if left out")] = Field(
        default=None, description="The directory to search in. " + NOT_SET
    )


@builtin(
    "glob",
    Parameters,
    group="search",
    effect="reads",
    example="%tool glob '**/*.py'",
    card=CardSpec(body="table"),
)
async def glob(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Find files by a path pattern."""
    if not args.pattern:
        raise _path_checks.missing_argument("pattern", "the names to look for, such as **/*.py")
    if "\0" in args.pattern:
        raise ToolError("The pattern has a NUL character, which no file name can have.")
    arguments = {"pattern": args.pattern, "path": args.path}
    folder = resolve_folder(ctx.directory, args.path)
    about = {k: v for k, v in arguments.items() if v is not None}
    await ctx.ask("glob", [args.pattern], ["*"], about, path=folder)
    await assert_external(ctx, folder, "directory")
    if not folder.is_dir():
        raise _path_checks.folder_missing_error(folder)
    ctx.proceed()

    search = Search(
        # .git comes last: of two globs that fit, ripgrep goes by the later
        [
            *("--files", "--null", "--hidden", f"--glob={args.pattern}"),
            *(*without_checkpoints(args.pattern, args.path), "--glob=!.git", "--", "./"),
        ],
        folder,
    )
    newest = Newest(folder, LIMIT, is_hidden=denied_reads(ctx))
    async for names in search.names():
        newest.add(names)
    if search.code not in (0, 1) and not newest.count:
        raise ToolError(f"The pattern can't be searched for: {search.errors or f'exit code {search.code}'}")
    return _result(ctx, folder, newest, search)


class Newest:
    """Keeps the newest of many files: all that may still count are gathered, and thinned out now and then."""

    def __init__(self, folder: Path, limit: int, is_hidden: Callable[[str], bool] | None = None) -> None:
        self.count = 0
        self._is_hidden = is_hidden
        self._prefix = os.fsencode(folder).rstrip(b"/") + b"/"
        self._limit = limit
        self._kept: list[tuple[int, bytes]] = []
        """Time of change below zero, so that plain order is newest first, then by path."""
        self._bound = 1 << 80

    def add(self, names: list[bytes], stat: Callable[[bytes], os.stat_result] = os.stat) -> None:
        """Look at files, given by their paths in the folder, each beginning with ``./``."""
        prefix, files, bound, is_hidden = self._prefix, self._kept, self._bound, self._is_hidden
        for name in names:
            path = prefix + name[2:]
            if is_hidden is not None and is_hidden(os.fsdecode(path)):
                continue
            self.count += 1
            try:
                changed = -stat(path).st_mtime_ns
            except OSError:
                changed = 0
            if changed <= bound:
                files.append((changed, path))
        if len(files) >= GATHERED:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._kept.sort()
        if len(self._kept) > self._limit:
            del self._kept[self._limit :]
            self._bound = self._kept[-1][0]

    def files(self) -> list[tuple[str, int]]:
        """Path and time of change (ns), newest first; those of the same time by their path."""
        self._drop_oldest()
        return [(os.fsdecode(path), -changed) for changed, path in self._kept]


def _result(ctx: ToolContext, folder: Path, newest: Newest, search: Search) -> ToolResult:
    files = newest.files()
    truncated = newest.count > len(files)
    lines = [path for path, _ in files] or ["No files found"]
    if truncated:
        count = f"showing first {len(files)} of {newest.count} results."
        lines += ["", f"(Results are truncated: {count} Consider using a more specific path or pattern.)"]
    metadata: dict[str, Any] = {"count": len(files), "truncated": truncated}
    if truncated:
        metadata["total"] = newest.count
    metadata |= search.engine_note
    return ToolResult(
        ctx.workspace.relative(folder),
        "\n".join(lines),
        metadata,
        records=[{"path": path, "mtime": datetime.fromtimestamp(changed / 1e9, UTC)} for path, changed in files],
    )
