"""A sink for a stream of output: keeps its beginning and end in memory, the whole in a spill file if it is long.

Memory stays bounded whatever comes through: the beginning up to the limit, the last `TAIL` bytes, nothing more.
"""

from __future__ import annotations

import codecs
import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from .secrets import SHORTEST
from .truncation import Truncation, content_hash, hint, keep

if TYPE_CHECKING:
    from .agents import Agent

TAIL = 128 * 1024
"""Bytes kept of the end, at least; a chunk more at most."""
COUNTED = 128 * 1024 * 1024
"""Bytes whose lines are counted. Counting takes longer than writing, and of so much nobody needs the number."""


_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes of a UTF-8 character after its first."""
_written: set[tuple[int, int]] = set()
"""Device and inode of the spill files that are open for writing in this process."""


_renamed: dict[str, str] = {}
"""Where a spill file is now that had another path while it was written."""


def current_path(path: str) -> str:
    """Where the spill file is that had this path while it was written."""
    return _renamed.get(path, path)


def is_being_written(file: tuple[int, int]) -> bool:
    """Return whether a spill file, by its device and inode, still grows. Any thread may call it."""
    return file in _written


class Spilled(NamedTuple):
    """The outcome of spilling a stream.

    Attributes:
        text: all of it, or its beginning, a marker (what is missing, where the whole is) and its end.
        truncated: whether something is missing in `text`.
        output_path: the file with the bytes as they came; None if nothing is missing or no file could be made.
        lines: lines of the whole, as OpenCode counts: one more than there are LFs; None beyond `COUNTED` bytes.
        bytes: bytes of the whole.
        cut_line: the first line, from 1, that `text` misses (or has only a part of); None if nothing is missing.
        text_lines: lines as a person counts them: a final LF ends a line and starts none; None as for `lines`.
    """

    text: str
    truncated: bool
    output_path: str | None
    lines: int | None
    bytes: int
    cut_line: int | None
    text_lines: int | None = None

    def metadata(self) -> dict[str, Any]:
        """The keys of a result's metadata about what is missing."""
        if not self.truncated:
            return {"truncated": False}
        path = {} if self.output_path is None else {"outputPath": self.output_path}
        return {"truncated": True, "lines": self.text_lines, "bytes": self.bytes, "cutLine": self.cut_line, **path}


class Spill:
    """Takes chunks of bytes with `feed`, masks the secrets in them; `finish` once gives the outcome.

    Args:
        truncation: the limits, and where the file goes.

    Attributes:
        bytes: how many came so far, secrets masked.
        newlines: LFs among the first `COUNTED` of them.
        problem: why the file is not complete (a full disk, say); None if all is well.
    """

    __slots__ = ("_file", "_hash", "_head", "_held", "_path", "_tail", "_truncation", "bytes", "newlines", "problem")

    def __init__(self, truncation: Truncation) -> None:
        self._truncation = truncation
        self._head = bytearray()
        self._held = b""
        self._tail: bytes | bytearray = b""
        self._file: int | None = None
        self._path: str | None = None
        self._hash = content_hash()
        self.bytes = 0
        self.newlines = 0
        self.problem: str | None = None

    @property
    def spilling(self) -> bool:
        """True if the limits are passed."""
        return self._path is not None or self.problem is not None

    @property
    def path(self) -> str | None:
        """The file that keeps the whole; None while there is none."""
        return self._path

    def feed(self, data: bytes) -> None:
        """Take the next bytes. An end that may begin a secret is held back until the rest of it has come."""
        masker = self._truncation.masker()
        if masker is not None:
            data, self._held = masker.chunk(self._held + data)
        elif self._held:
            data, self._held = self._held + data, b""
        self._take(data)

    def _take(self, data: bytes) -> None:
        self.bytes += len(data)
        if self.bytes <= COUNTED:
            self.newlines += data.count(b"\n")
        limit = self._truncation.max_bytes
        if not self.spilling:
            if self.bytes <= limit and self.newlines < self._truncation.max_lines:
                self._head += data
                return
            self._open()
            self._write(self._head)
            self._remember(bytes(self._head[-TAIL:]))
            self._head += data[: max(0, limit - len(self._head))]
        self._write(data)
        self._remember(data)

    def live(self, length: int) -> str:
        """What came last, for a display while it runs: at most about `length` characters, with a mark if more came."""
        source = self._tail if self.spilling else self._head
        if 0 < len(self._held) < SHORTEST:  # too little to give a secret away, and it may be the end of a prompt
            source = source + self._held
        if self.bytes <= length:
            return source.decode("utf-8", "replace")
        room = 4 * length
        text = _end(bytes(source[-room:])).decode("utf-8", "replace")
        if len(text) <= length and self.bytes <= room:
            return text
        return "...\n\n" + text[-length:]

    def finish(self, agent: Agent | None = None) -> Spilled:
        """Close the file and give the outcome.

        Args:
            agent: who reads it: the marker's advice depends on what it may use.
        """
        self.close()
        self._rename()
        lines = self.newlines + 1 if self.bytes <= COUNTED else None
        ended = (self._tail if self.spilling else self._head)[-1:] in (b"\n", b"")
        text_lines = None if lines is None else lines - ended
        if not self.spilling:
            return Spilled(self._head.decode("utf-8", "replace"), False, None, lines, self.bytes, None, text_lines)
        head, tail, by_bytes = self._preview_ends()
        if by_bytes or lines is None:
            gap = f"...{self.bytes - len(head) - len(tail)} bytes truncated..."
        else:
            gap = f"...{lines - _lines(head) - _lines(tail)} lines truncated..."
        if self._path is not None:
            note = hint(self._path, agent)
            if self.problem:
                note += f"\nThat file is not complete: {self.problem}"
        else:
            note = "The tool call succeeded but the output was truncated, and the rest could not be saved: "
            note += str(self.problem)
        text = "\n\n".join((head.decode("utf-8", "replace"), f"{gap}\n\n{note}", tail.decode("utf-8", "replace")))
        whole_lines = self._head[len(head) : len(head) + 1] == b"\n"
        cut = head.count(b"\n") + (2 if whole_lines and head else 1)
        return Spilled(text, True, self._path, lines, self.bytes, cut, text_lines)

    def close(self) -> None:
        """Close the file, if one is open. `finish` does; call it alone when the outcome is not wanted."""
        if self._held:
            masker, held = self._truncation.masker(), self._held
            self._held = b""
            self._take(held if masker is None else masker.last(held))
        if self._file is not None:
            with contextlib.suppress(OSError):
                _written.discard(_file_identity(self._file))
            try:
                os.close(self._file)
            except OSError as error:
                self.problem = self.problem or str(error)
            self._file = None

    def discard(self) -> None:
        """Close the file and delete it: nobody will learn of it."""
        self.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._path = None

    def _rename(self) -> None:
        """Name the file after its content; one that is not complete, or too long to be hashed, keeps its name."""
        if self._path is None or self.problem is not None or self.bytes > COUNTED:
            return
        written = self._path
        self._path = self._truncation.keep_whole(written, self._hash.hexdigest())
        if self._path != written:
            _renamed[written] = self._path

    def _preview_ends(self) -> tuple[bytes, bytes, bool]:
        """The beginning and the end to show: whole lines where they fit, else a part of the line."""
        limits = self._truncation
        half_lines, half_bytes = (limits.max_lines + 1) // 2, limits.max_bytes // 2
        first = bytes(self._head).split(b"\n")
        if len(self._head) < self.bytes:
            first.pop()  # the last one may continue after the kept beginning
        lines, cut_first = keep(first, half_lines, half_bytes)
        head = b"\n".join(lines) if lines else _start(bytes(self._head[:half_bytes]))
        cut_first = cut_first or not lines
        room_lines = limits.max_lines - half_lines
        end = bytes(self._tail[-min(half_bytes + 1, self.bytes - len(head)) :]) if half_bytes else b""
        lines, cut_last = keep(end.split(b"\n"), room_lines, half_bytes, from_end=True)
        if lines and lines != [b""]:
            return head, b"\n".join(lines), cut_first or cut_last
        return head, _end(end[-half_bytes:]) if room_lines and half_bytes else b"", True

    def _open(self) -> None:
        try:
            self._file, self._path = self._truncation.create()
            _written.add(_file_identity(self._file))
        except OSError as error:
            self.problem = str(error)

    def _write(self, data: bytes | bytearray) -> None:
        if self._file is None:
            return
        if self.bytes <= COUNTED:
            self._hash.update(data)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            # The command continues, and its beginning and end are still shown; only the middle is lost.
            self.problem = str(error)
            self.close()

    def _remember(self, data: bytes) -> None:
        if len(data) >= TAIL:
            self._tail = data  # as it is: no copy
            return
        tail = self._tail
        if isinstance(tail, bytes):
            tail = self._tail = bytearray(tail[-TAIL:])
        tail += data
        if len(tail) > 2 * TAIL:
            del tail[:-TAIL]


def _file_identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _lines(part: bytes) -> int:
    return part.count(b"\n") + 1 if part else 0


def _start(data: bytes) -> bytes:
    """`data` without a character that is cut at its end."""
    return data[: codecs.utf_8_decode(data, "replace", False)[1]]


def _end(data: bytes) -> bytes:
    """`data` without a character that is cut at its start."""
    return data.lstrip(_CONTINUATION)
