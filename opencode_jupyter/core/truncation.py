"""Limits of a tool's output for a model, and the files that keep the whole (docs/opencode/core.md 3).

A text within the limits passes through. A longer one is written whole to a spill file, and its beginning (or end)
is kept with a marker: how much is missing and where the whole is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import ids, secrets
from .paths import data_folder, make_private_folder

if TYPE_CHECKING:
    from .agents import Agent

MAX_LINES = 2000
"""Lines for a model."""
MAX_BYTES = 50 * 1024
"""UTF-8 bytes for a model."""
RETENTION_DAYS = 7.0
"""How long a spill file is kept, counted from its last change."""

Direction = Literal["head", "tail"]

_CUT = "The tool call succeeded but the output was truncated. Full output saved to: "
_BY_TASK = (
    "Use the Task tool to have explore agent process this file with Grep and Read (with offset/limit). "
    "Do NOT read the full file yourself - delegate to save context."
)
_BY_READ = "Use Grep to search the full content or Read with offset/limit to view specific sections."


class Truncated(NamedTuple):
    """A text within the limits.

    Attributes:
        content: the text, or what is kept of it with the marker.
        truncated: whether something is missing.
        output_path: the file with the whole text; None if nothing is missing.
    """

    content: str
    truncated: bool = False
    output_path: str | None = None


class Truncation:
    """The limits and the spill files of one data folder.

    Args:
        data_dir: spill files go to its folder ``tool-output``, made with mode 0700 when first needed.
        config: ``{"max_lines": int, "max_bytes": int}``, each optional (the config's ``tool_output``).
        masker: what masks secrets in all that is kept; the known ones of the process if left out.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        config: Mapping[str, Any] | None = None,
        masker: Callable[[], secrets.Masker | None] = secrets.known.masker,
    ) -> None:
        limits = config or {}
        self.masker = masker
        self.directory = Path(data_dir) / "tool-output"
        self.max_lines = _limit(limits.get("max_lines"), MAX_LINES)
        self.max_bytes = _limit(limits.get("max_bytes"), MAX_BYTES)

    @property
    def glob(self) -> str:
        """The pattern that every spill file's path fits."""
        return str(self.directory / "*")

    def output(
        self,
        text: str,
        *,
        max_lines: int | None = None,
        max_bytes: int | None = None,
        direction: Direction = "head",
        agent: Agent | None = None,
    ) -> Truncated:
        """`text` within the limits; see the module's `output`."""
        lines = self.max_lines if max_lines is None else max_lines
        size = self.max_bytes if max_bytes is None else max_bytes
        masker = self.masker()
        if masker is not None:
            text = masker.text(text)
        if _surely_fits(text, lines, size):
            return Truncated(text)
        data = encode(text)
        total = data.count(b"\n") + 1
        if total <= lines and len(data) <= size:
            return Truncated(text)
        # Only the lines that may be kept are split off: a list of millions would take many times the text's room.
        pieces = data.rsplit(b"\n", lines) if direction == "tail" else data.split(b"\n", lines)
        kept_lines, by_bytes = keep(pieces, lines, size, from_end=direction == "tail")
        preview = b"\n".join(kept_lines)
        if by_bytes:
            gap = f"...{len(data) - len(preview)} bytes truncated..."
        else:
            gap = f"...{total - len(kept_lines)} lines truncated..."
        path = self.save(data)
        shown = preview.decode("utf-8", "replace")
        parts = [shown, gap, hint(path, agent)] if direction == "head" else [gap, hint(path, agent), shown]
        return Truncated("\n\n".join(parts), True, path)

    def fits(self, text: str) -> bool:
        """Whether `text` is seen at once to be within the limits; what is not may be so all the same (`output`)."""
        return _surely_fits(text, self.max_lines, self.max_bytes)

    def create(self) -> tuple[int, str]:
        """A new spill file, open for writing (mode 0600; never an existing one).

        Returns:
            Its file descriptor and path.

        Raises:
            OSError: the folder or the file can't be made.
        """
        make_private_folder(self.directory)
        path = str(self.directory / ids.create("tool"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600), path

    def keep_whole(self, path: str, digest: str) -> str:
        """Give a finished spill file the name of its content, so that the same output always has the same path.

        A file that has the name already holds the same bytes: this one takes its place and is kept as long as any.

        Args:
            path: the finished file.
            digest: the hash of its content.

        Returns:
            Its path from now on; `path` if it cannot be renamed.
        """
        target = str(self.directory / f"tool_{digest}")
        try:
            os.replace(path, target)
        except OSError:
            return path
        return target

    def save(self, data: bytes) -> str:
        """Write a spill file and give its path, which the same bytes always have.

        Raises:
            OSError: it cannot be written; nothing is left of it then.
        """
        descriptor, path = self.create()
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        return self.keep_whole(path, content_hash(data).hexdigest())

    def cleanup(self, days: float = RETENTION_DAYS) -> int:
        """Delete spill files last changed more than `days` ago; what can't be read or deleted is left.

        Returns:
            How many were deleted.
        """
        limit = time.time() - days * 86400
        removed = 0
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    if not entry.name.startswith("tool_"):
                        continue
                    with contextlib.suppress(OSError):
                        if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < limit:
                            os.unlink(entry.path)
                            removed += 1
        except OSError:
            pass
        return removed


def output(
    text: str,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    direction: Direction = "head",
    agent: Agent | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
) -> Truncated:
    """`text` if it is within the limits, else its beginning or end, a marker and where the whole is.

    Lines are never cut inside: one that does not fit ends the part that is kept.

    Args:
        text: any text; lines end at LF alone, and what follows the last LF counts as a line.
        max_lines: lines to keep.
        max_bytes: UTF-8 bytes to keep.
        direction: keep the ``head`` or the ``tail``.
        agent: who reads it; one that may use the Task tool is advised to.
        directory: data folder for the spill file; the user's if left out.

    Raises:
        OSError: the spill file can't be written.
    """
    return Truncation(data_folder() if directory is None else directory).output(
        text, max_lines=max_lines, max_bytes=max_bytes, direction=direction, agent=agent
    )


def content_hash(data: bytes | bytearray = b"") -> hashlib.blake2b:
    """The hash that names spill files; more bytes go in with ``update``."""
    return hashlib.blake2b(data, digest_size=13)


def keep(pieces: list[bytes], max_lines: int, max_bytes: int, *, from_end: bool = False) -> tuple[list[bytes], bool]:
    """The lines that fit, counted from one end, and whether it was the byte limit that ended them.

    A line costs its bytes, and one for the line end that joins it unless it is the first.
    """
    used = -1
    count = 0
    for piece in reversed(pieces) if from_end else pieces:
        if count >= max_lines:
            break
        used += len(piece) + 1
        if used > max_bytes:
            return (pieces[len(pieces) - count :] if from_end else pieces[:count]), True
        count += 1
    return (pieces[len(pieces) - count :] if from_end else pieces[:count]), False


def hint(path: str, agent: Agent | None = None) -> str:
    """Two lines for the model: that the output was cut and where the whole is, and how to look into it."""
    return f"{_CUT}{path}\n{_BY_TASK if _may_use_task(agent) else _BY_READ}"


def encode(text: str) -> bytes:
    """UTF-8. A lone surrogate, which UTF-8 has no form for, becomes U+FFFD: three bytes, as it would take."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def cut_units(text: str, units: int) -> str:
    """The first `units` UTF-16 code units of a text, which is how OpenCode measures; a pair is never cut in two."""
    if len(text) * 2 <= units:
        return text
    start = text[:units]
    if start.isascii() or max(start, default="") < "\U00010000":
        return start
    encoded = start.encode("utf-16-le", "surrogatepass")[: units * 2]
    if 0xD8 <= encoded[-1] <= 0xDB:
        encoded = encoded[:-2]
    return encoded.decode("utf-16-le", "surrogatepass")


def _surely_fits(text: str, lines: int, size: int) -> bool:
    # A character is at most four bytes, so a short text need not be encoded to know that it fits.
    return len(text) <= size >> 2 and (len(text) < lines or text.count("\n") < lines)


def _may_use_task(agent: Agent | None) -> bool:
    if agent is None:
        return False
    from .permission import evaluate

    return evaluate("task", "*", agent.permission).action != "deny"


def _limit(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
