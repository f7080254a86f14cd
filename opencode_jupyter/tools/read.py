"""read: a file's lines, a directory's entries, an image or a PDF. See docs/opencode/tools.md 3 (form of 1.18)."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.file_tracker import Snapshot
from ..core.result import Attachment, ToolResult
from ..core.schema import Arguments, ForPerson
from ..core.threads import run_in_thread
from ..core.truncation import cut_units
from ..text.encoding import BOM, printable
from . import _path_checks, folder_instructions
from ._path_checks import assert_external
from .builtin import Number, builtin

LIMIT = 2000
"""Lines or entries when no limit is given."""
PREVIEW = 20
"""Lines or entries in ``metadata.preview``."""
ATTACHMENT_BYTES = 20 << 20
"""An image or PDF is held in memory and in the notebook three times over; no provider takes more."""
CHUNK = 1 << 18
"""Bytes read at a time: what fits the processor's cache is counted fastest."""
SAMPLE = 4096
"""Bytes that decide whether a file is binary (OpenCode's number, as are the next three)."""
CONTROL_SHARE = 0.3
"""Share of control characters above which a file is binary."""
LINE_LIMIT = 2000
"""UTF-16 units of a line that are shown."""
PAGE_BYTES = 51_200
"""Bytes of lines, or of a folder's entries, that are shown."""
_KEPT = LINE_LIMIT * 4 + 8
"""Bytes of a line that hold `LINE_LIMIT` units in any case, and a few more, so that a longer one is known."""
_CONTROL = bytes(range(1, 9)) + bytes(range(14, 32))
IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".jpe": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".ico": "image/vnd.microsoft.icon",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".avif": "image/avif",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".apng": "image/apng",
    ".psd": "image/vnd.adobe.photoshop",
}
# fmt: off
BINARY = frozenset({
    ".zip", ".tar", ".gz", ".exe", ".dll", ".so", ".class", ".jar", ".war", ".7z", ".doc", ".docx", ".xls", ".xlsx",
    ".ppt", ".pptx", ".odt", ".ods", ".odp", ".bin", ".dat", ".obj", ".o", ".a", ".lib", ".wasm", ".pyc", ".pyo",
})
# fmt: on
"""Extensions that are binary without a look."""


class Parameters(Arguments):
    """What to read."""

    file_path: Annotated[str, ForPerson("The file or folder to read")] = Field(
        description="The absolute path to the file or directory to read"
    )
    offset: Number | None = Field(None, description="The line number to start reading from (1-indexed)")
    limit: Number | None = Field(None, description="The maximum number of lines to read (defaults to 2000)")


_WRAPPER = re.compile(r"<path>[^\n]*</path>\n<type>\w+</type>\n<(content|entries)>\n")


def _content_lines(output: str) -> list[int] | None:
    """The lines in ``<content>`` or ``<entries>``."""
    head = _WRAPPER.match(output)
    if head is None:
        return None
    # A line of a file has its number in front, and no name has a slash inside: the first such line is the end.
    end = output.find(f"\n</{head[1]}>", head.end() - 1)
    return None if end < 0 else [output.count("\n", 0, head.end()), output.count("\n", 0, end) + 1]


@builtin(
    "read",
    Parameters,
    group="files",
    effect="reads",
    example="%tool read notes.txt limit=20",
    card=CardSpec(path="file", lines=_content_lines, question="Read this file?"),
)
async def read(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Read a file or directory."""
    if args.offset is not None and args.offset < 0:
        raise ToolError("offset must be greater than or equal to 1")
    if args.limit is not None and args.limit < 1:
        raise ToolError("limit must be greater than or equal to 1")
    first, limit = args.offset or 1, args.limit or LIMIT
    path = _path_checks.resolve_file(ctx, args.file_path)
    real = _path_checks.real_path(path)
    status = _path_checks.file_status(path)
    is_directory = status is not None and stat.S_ISDIR(status.st_mode)

    bypass = bool(ctx.extra.get("bypassCwdCheck"))
    await assert_external(ctx, path, "directory" if is_directory else "file", bypass)
    await ctx.ask("read", _path_checks.rule_patterns(ctx, path), ["*"], {})
    ctx.proceed()

    if status is None:
        raise _path_checks.not_found_error(path)
    title = printable(ctx.workspace.relative(path))
    if is_directory:
        listing: ToolResult = await run_in_thread(_directory, path, title, first, limit)
        return listing
    _path_checks.check_regular(path, status)
    loaded, reminders = folder_instructions.find_instructions(ctx, path)
    attached: Attachment | None = await run_in_thread(_attachment, path, real, status.st_size)
    if attached is not None:
        kind = "PDF" if attached.mime == "application/pdf" else "Image"
        text = f"{kind} read successfully"
        return ToolResult(title, text, {"preview": text, "truncated": False, "loaded": loaded}, [attached])
    result: ToolResult
    result, snapshot = await run_in_thread(_text, path, real, title, first, limit, ctx.abort.raise_if_aborted)
    ctx.workspace.files.read(ctx.session_id, path, snapshot)
    result.metadata["loaded"] = loaded
    if reminders:
        result.output += "\n\n<system-reminder>\n" + "\n\n".join(reminders) + "\n</system-reminder>"
    return result


def _text(
    path: Path, real: Path, title: str, first: int, limit: int, stop: Callable[[], None]
) -> tuple[ToolResult, Snapshot]:
    try:
        with FileIO(_path_checks.open_regular(path, real)) as file:
            sample = file.read(SAMPLE)
            if sample is None:  # what a file gives that is not ready
                raise ToolError(f"Not read: {path} has no data now; reading it might wait for ever.")
            if path.suffix.lower() in BINARY or is_binary(sample):
                raise ToolError(f"Cannot read binary file: {path}")
            file.seek(0)
            snapshot = Snapshot.of(real)
            lines = read_page(file, first, limit, stop)
    except OSError as error:
        raise ToolError(_path_checks.explain_error(error, path)) from error
    if lines.total < first and not (lines.total == 0 and first == 1):
        raise ToolError(f"Offset {first} is out of range for this file ({lines.total} lines)")
    if lines.capped:
        note = f"Output capped at 50 KB. Showing lines {first}-{lines.last}."
        footer = f"({note} Use offset={lines.last + 1} to continue.)"
    elif lines.more:
        footer = f"(Showing lines {first}-{lines.last} of {lines.total}. Use offset={lines.last + 1} to continue.)"
    else:
        footer = f"(End of file - total {lines.total} lines)"
    numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(lines.lines, first))
    output = f"<path>{path}</path>\n<type>file</type>\n<content>\n{numbered}\n\n{footer}\n</content>"
    display = {
        "type": "file",
        "path": printable(str(path)),
        "text": "\n".join(lines.lines),
        "lineStart": first,
        "lineEnd": lines.last,
        "totalLines": lines.total,
        "truncated": lines.more,
    }
    metadata = {"preview": "\n".join(lines.lines[:PREVIEW]), "truncated": lines.more, "loaded": [], "display": display}
    return ToolResult(title, printable(output), metadata), snapshot


@dataclass(slots=True)
class Page:
    """Lines of a file and where they stand in it."""

    first: int
    """Number of the first line asked for, from 1."""
    lines: list[str] = field(default_factory=list)
    """As shown: without line ends, long ones cut."""
    total: int = 0
    """Lines in the whole file; a final newline ends the last line and begins none."""
    capped: bool = False
    """Ended by `PAGE_BYTES`, not by the number of lines."""

    @property
    def last(self) -> int:
        """Number of the last line in the page; one less than `first` if it is empty."""
        return self.first + len(self.lines) - 1

    @property
    def more(self) -> bool:
        """True if lines follow."""
        return self.capped or self.last < self.total


def is_binary(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is binary: a NUL, or more than 30 % control characters."""
    if not sample:
        return False
    if b"\0" in sample:
        return True
    control = len(sample) - len(sample.translate(None, _CONTROL))
    return control / len(sample) > CONTROL_SHARE


def read_page(file: FileIO, first: int, limit: int, stop: Callable[[], None] = lambda: None) -> Page:
    """Up to `limit` lines of `file` from line `first` (from 1), and the number of lines in all.

    Memory does not grow with the file: it is read in chunks, newlines before and after the page are only counted, and a
    line is kept up to what is shown of it.

    Args:
        file: unbuffered and at its start.
        first: the number of the first line wanted.
        limit: at most so many lines; fewer when `PAGE_BYTES` are reached.
        stop: called for every chunk; raises to end the reading.
    """
    page = Page(first)
    if file.read(len(BOM)) != BOM:  # a byte order mark is no text
        file.seek(0)
    buffer = bytearray(CHUNK)
    before = _skip_lines(file, first - 1, buffer, stop)
    reader = BufferedReader(file, CHUNK)
    try:
        room = PAGE_BYTES
        while len(page.lines) < limit and (line := reader.readline(_KEPT)):
            end = line
            while len(end) >= _KEPT and not end.endswith(b"\n"):  # the rest of a long line is passed over
                stop()
                end = reader.readline(CHUNK)
            before += end.endswith(b"\n")
            text = _shortened(_without_end(line).decode("utf-8", "replace"))
            room -= len(text.encode("utf-8")) + (1 if page.lines else 0)
            if room < 0:
                page.capped = True
                break
            page.lines.append(text)
        while size := reader.readinto(buffer):
            stop()
            before += buffer.count(b"\n", 0, size)
    finally:
        reader.detach()
    page.total = before + (not _ends_with_newline(file))
    return page


def _ends_with_newline(file: FileIO) -> bool:
    """Return whether nothing follows the last newline; so for an empty file."""
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _skip_lines(file: FileIO, count: int, buffer: bytearray, stop: Callable[[], None]) -> int:
    """Move past `count` lines; gives how many newlines were passed, fewer where the file ends before."""
    passed = 0
    while passed < count and (size := file.readinto(buffer)):
        stop()
        inside = buffer.count(b"\n", 0, size)
        if passed + inside < count:
            passed += inside
            continue
        at = 0
        for _ in range(count - passed):
            at = buffer.index(b"\n", at) + 1
        file.seek(at - size, os.SEEK_CUR)
        return count
    return passed


def _without_end(line: bytes) -> bytes:
    """A line without its newline; a CR before it is a part of the line end, but only where the line was not cut."""
    if line.endswith(b"\n"):
        return line[:-2] if line.endswith(b"\r\n") else line[:-1]
    return line[:-1] if line.endswith(b"\r") and len(line) < _KEPT else line


def _shortened(line: str) -> str:
    """`line` with `LINE_LIMIT` UTF-16 units at most, and a note if there are more."""
    beginning = cut_units(line, LINE_LIMIT)
    return line if len(beginning) == len(line) else f"{beginning}... (line truncated to {LINE_LIMIT} chars)"


def _attachment(path: Path, real: Path, size: int) -> Attachment | None:
    """The file as an attachment if it is an image or a PDF."""
    mime = IMAGES.get(path.suffix.lower()) or ("application/pdf" if path.suffix.lower() == ".pdf" else None)
    if mime is None or size == 0:  # nothing to show: read as an empty text
        return None
    if size > ATTACHMENT_BYTES:
        raise ToolError(
            f"{path} has {size / 1e6:.0f} MB, too much to attach (the limit is {ATTACHMENT_BYTES >> 20} MiB). "
            "Make a smaller copy and read that."
        )
    with FileIO(_path_checks.open_regular(path, real)) as file:
        return Attachment.from_bytes(file.read(ATTACHMENT_BYTES), mime, path.name)


def _directory(path: Path, title: str, first: int, limit: int) -> ToolResult:
    try:
        with os.scandir(path) as scan:
            entries = [(entry.name + "/" if _leads_to_folder(entry) else entry.name, entry) for entry in scan]
    except OSError as error:
        raise ToolError(_path_checks.explain_error(error, path)) from error
    entries.sort(key=lambda pair: _locale_key(pair[0]))
    total = len(entries)
    names: list[str] = []
    size = 0
    for name, _ in entries[first - 1 : first - 1 + limit]:
        size += len(os.fsencode(name)) + 1
        if size > PAGE_BYTES:
            break
        names.append(printable(name))
    after = first + len(names)
    truncated = after <= total and first <= total
    count = f"({total} entries)"
    if truncated:
        count = f"(Showing {len(names)} of {total} entries. Use 'offset' parameter to read beyond entry {after})"
    entries_text = "\n".join(names)
    output = f"<path>{path}</path>\n<type>directory</type>\n<entries>\n{entries_text}\n\n{count}\n</entries>"
    rows = entries[first - 1 : first - 1 + len(names)]
    display = {
        "type": "directory",
        "path": printable(str(path)),
        "entries": names,
        "offset": first,
        "totalEntries": total,
        "truncated": truncated,
    }
    metadata = {"preview": "\n".join(names[:PREVIEW]), "truncated": truncated, "loaded": [], "display": display}
    return ToolResult(title, printable(output), metadata, records=[_record(entry, name) for name, entry in rows])


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _record(entry: os.DirEntry[str], name: str) -> dict[str, Any]:
    """One row of a listing; size in bytes and Unix seconds of the last change, None where they can't be had."""
    try:
        status: os.stat_result | None = entry.stat()
    except OSError:
        status = None
    kind = "directory" if name.endswith("/") else "file" if status and stat.S_ISREG(status.st_mode) else "other"
    return {
        "name": printable(entry.name),
        "path": printable(entry.path),
        "type": kind,
        "link": entry.is_symlink(),
        "size": status.st_size if status and kind == "file" else None,
        "modified": status.st_mtime if status else None,
    }


# The order of punctuation in the Unicode root collation, which OpenCode's localeCompare follows.
_PUNCTUATION = {mark: index for index, mark in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$")}


def _locale_key(name: str) -> tuple[list[tuple[int, int, str]], str, str]:
    """Punctuation before digits before letters; accents, then capitals only decide between equals."""
    bare = [c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)]
    primary = [
        (0, _PUNCTUATION[c], "") if c in _PUNCTUATION else (1, 0, c) if c.isdigit() else (2, 0, c.casefold())
        for c in bare
    ]
    return primary, unicodedata.normalize("NFKD", name).casefold(), name.swapcase()
