"""grep: lines that fit a regular expression, newest files first. See docs/opencode/tools.md 5."""

from __future__ import annotations

import heapq
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.truncation import cut_units
from . import _path_checks
from ._path_checks import assert_external, read_actions, request_secret_reads
from .builtin import builtin
from .notebook.notebook_json import NotebookSource
from .ripgrep import Search, resolve_folder, without_checkpoints

LIMIT = 100
"""Matches shown."""
KEEP = 10_000
"""Matches kept for the records."""
LINE = 2000
"""UTF-16 units of a line that are kept."""
COLUMNS = 8 * LINE
"""Bytes after which ripgrep cuts a line; more than `LINE` units can take, so the cut never shows."""

_BINARY = b" binary file"
"""In ripgrep's remarks on binary files, which it writes among the matches."""


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
        raise _path_checks.missing_argument("pattern", "the regular expression to search for")
    if "\0" in args.pattern:
        raise ToolError("The pattern has a NUL character; write \\x00 to look for one.")
    if "\0" in (args.include or ""):
        raise ToolError("include has a NUL character, which no file name can have.")
    given_arguments = {"pattern": args.pattern, "path": args.path, "include": args.include}
    target = resolve_folder(ctx.directory, args.path, files=True)
    about = {k: v for k, v in given_arguments.items() if v is not None}
    await ctx.ask("grep", [args.pattern], ["*"], about, path=target)
    kind = _kind(target)
    await assert_external(ctx, target, "file" if kind == "file" else "directory")
    if kind == "file":
        await request_secret_reads(ctx, [str(target)], about)
    ctx.proceed()
    if kind == "missing" and ctx.by == "user":
        hint = "" if "/" in (args.path or "") else " A pattern with spaces needs quotes."
        raise _path_checks.not_found_error(target, f"File not found: {target}.{hint}")
    if kind == "missing":  # OpenCode's answer to a model
        return ToolResult(args.pattern, "No files found", {"matches": 0, "truncated": False}, records=[])
    if kind == "other":
        raise ToolError(f"'{target}' is neither a file nor a folder, so it can't be searched")

    folder = target if kind == "folder" else target.parent
    arguments = ["--heading", "--with-filename", "--null", "--line-number", "--color=never", "--hidden"]
    arguments += ["--no-messages", f"--max-columns={COLUMNS}", "--max-columns-preview", f"--regexp={args.pattern}"]
    arguments += [f"--glob={args.include}"] if args.include else []
    arguments += without_checkpoints(args.include, args.path)
    # .git comes last: of two globs that fit, ripgrep goes by the later
    arguments += ["--glob=!.git", "--", "./" if kind == "folder" else f"./{target.name}"]
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


def _kind(path: Path) -> str:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        raise ToolError(f"Can't search {path}: {error.strerror or error}") from error
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _result(pattern: str, matches: Matches, search: Search) -> ToolResult:
    metadata: dict[str, Any] = {"matches": matches.total, "truncated": matches.total > LIMIT}
    metadata |= search.engine_note
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
    rows = records[:LIMIT]
    lines = [f"Found {matches.total} matches" + (f" (showing first {LIMIT})" if metadata["truncated"] else "")]
    current = None
    for record in rows:
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


@dataclass(slots=True)
class FileMatches:
    """The matches of one file.

    Attributes:
        path: absolute.
        changed: time of its last change, in ns; -1 if it can't be looked at.
        count: how many lines match.
        lines: ``number:text`` of the first `KEEP` of them.
        searched: numbers of the lines that count; all if None.
    """

    path: bytes
    changed: int
    count: int = 0
    lines: list[bytes] = field(default_factory=list)
    searched: set[int] | None = None

    def is_searched(self, line: bytes) -> bool:
        """Return whether ``number:text`` is of a line that counts."""
        return self.searched is None or int(line.partition(b":")[0]) in self.searched

    def matches(self) -> Iterator[tuple[int, str]]:
        """Line number and text of each kept match, long ones cut."""
        for line in self.lines:
            number, _, text = line.partition(b":")
            yield int(number), _shown(text)


def _shown(data: bytes) -> str:
    text = data.removesuffix(b"\r").decode("utf-8", "replace")
    start = cut_units(text, LINE)
    return text if len(start) == len(text) else start + "..."


class Matches:
    """All matches of a search: counts them, keeps those of the newest files.

    Args:
        folder: what the paths are relative to.
        stat: looks at a file.
        is_hidden: whether a file's matches are left out, given its path.

    Attributes:
        total: lines that match, in files that can be looked at.
        hidden: files with matches that were left out.
    """

    def __init__(
        self,
        folder: Path,
        stat: Callable[[bytes], os.stat_result] = os.stat,
        is_hidden: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.total = 0
        self.hidden = 0
        self._is_hidden = is_hidden
        self._folder = os.fsencode(folder).rstrip(b"/") + b"/"
        self._stat = stat
        self._rest = b""
        self._file: FileMatches | None = None
        self._kept: list[tuple[int, int, FileMatches]] = []
        """A heap, the oldest file first; the second number keeps the tuples from comparing the third."""
        self._lines = 0
        self._files = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        data = self._rest + chunk
        at = 0
        while True:
            if self._file is None:
                end = data.find(b"\0", at)
                if end < 0:
                    break
                self._open(data[at:end])
                at = end + 1
                continue  # with what is there of its matches
            end = data.find(b"\n\n", at)
            if end < 0:
                # the last line may not be whole, and its end may be half of an empty line
                last = data.rfind(b"\n", at, len(data) - 1)
                if last >= 0:
                    self._take(data[at:last])
                    at = last + 1
                break
            self._take(data[at:end])
            self._close()
            at = end + 2
        self._rest = data[at:]

    def finish(self) -> None:
        """The output has ended."""
        if self._file is not None:
            self._take(self._rest.removesuffix(b"\n"))
            self._close()
        self._rest = b""

    def files(self) -> list[FileMatches]:
        """The kept files, newest first; those of the same time by their path."""
        return sorted((file for _, _, file in self._kept), key=lambda file: (-file.changed, file.path))

    def _open(self, name: bytes) -> None:
        path = self._folder + name[2:]  # it begins with ./
        try:
            changed = self._stat(path).st_mtime_ns
        except OSError:
            changed = -1
        self._file = FileMatches(path, changed, searched=_source_lines(path) if path.endswith(b".ipynb") else None)

    def _take(self, block: bytes) -> None:
        file = self._file
        if file is None or not block:
            return
        count = block.count(b"\n") + 1
        if _BINARY in block or file.searched is not None:
            lines = [line for line in block.split(b"\n") if not _is_note(line) and file.is_searched(line)]
            block, count = b"\n".join(lines), len(lines)
        file.count += count
        if self._lines >= KEEP and file.changed < self._kept[0][0]:
            return  # too old to be kept
        if count and len(file.lines) < KEEP:
            file.lines += block.split(b"\n", KEEP)[: KEEP - len(file.lines)]

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is None or file.changed < 0:
            return  # gone meanwhile
        if file.count and self._is_hidden(os.fsdecode(file.path)):
            self.hidden += 1
            return
        self.total += file.count
        if not file.lines:
            return
        self._files += 1
        heapq.heappush(self._kept, (file.changed, -self._files, file))
        self._lines += len(file.lines)
        while self._lines - len(self._kept[0][2].lines) >= KEEP:
            self._lines -= len(heapq.heappop(self._kept)[2].lines)


def _source_lines(path: bytes) -> set[int] | None:
    """The lines of a notebook's cells, without their saved outputs; None for what is not a notebook of format 4."""
    try:
        source = NotebookSource(Path(os.fsdecode(path)).read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, ToolError):
        return None
    return source.source_lines() if source.has_cells else None


def _is_note(line: bytes) -> bool:
    """Return whether a line is no match but a remark."""
    number, colon, _ = line.partition(b":")
    return not (colon and number.isdigit())
