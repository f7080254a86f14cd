"""An exception's traceback, as IPython shows it, with and without its colours."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ...text.encoding import printable
from ..error_display import frames_of, join_frames

HEAD_CHARS, TAIL_CHARS = 4_000, 12_000
"""A longer traceback is cut in the middle: where it began and what was raised are at its ends."""
LINE_CHARS = 2_000
"""So is a longer line, such as the words of an exception that holds a whole table."""
MEMBERS = 20
"""Exceptions shown of a group."""
DEEPEST, OUTER, INNER = 100, 20, 40
"""A traceback of more frames is shown by so many at its ends: IPython takes 20 ms for each, a recursion has 1000."""
_ANSI = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_RULE = re.compile(r"\A-{20,}\n")
_OURS = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class TracebackText:
    """A traceback.

    Attributes:
        plain: for a model.
        coloured: with ANSI colours, for a card.
    """

    plain: str
    coloured: str


def traceback_of(shell: Any, error: BaseException) -> TracebackText:
    """The traceback of an exception of the user's code, without the frames that ran it."""
    frames = _user_frames(error.__traceback__)
    left_out = len(frames) - OUTER - INNER if len(frames) > DEEPEST else 0
    at = join_frames(frames[:OUTER] + frames[-INNER:] if left_out else frames)
    try:
        lines = _formatted(shell, error, at)
    except Exception:  # IPython's formatter reads files and calls the exception's own methods
        lines = traceback.format_exception(type(error), error, at)
    if left_out:
        lines.insert(-1, f"[{left_out} frames in the middle omitted]")
    if isinstance(error, BaseExceptionGroup):
        lines += _members(error, "  ")
    coloured = _joined_lines(lines)
    return TracebackText(_plain(coloured), coloured)


def unreadable(error: BaseException, failed: BaseException) -> TracebackText:
    """The text for an exception that can't be shown: its own methods fail, or end the code."""
    text = f"{type(error).__name__}: (its text cannot be read: that raised {type(failed).__name__})"
    return TracebackText(text, text)


def _members(group: BaseExceptionGroup[Any], indent: str) -> list[str]:
    """The exceptions in a group, which IPython does not show: a line for each, with where it was raised."""
    lines = []
    for error in group.exceptions[:MEMBERS]:
        try:
            words = f": {error}"
        except Exception:
            words = ""
        frames = _user_frames(error.__traceback__)
        at = f" ({frames[-1].tb_frame.f_code.co_filename}:{frames[-1].tb_lineno})" if frames else ""
        lines.append(f"{indent}- {type(error).__name__}{words}{at}")
        if isinstance(error, BaseExceptionGroup) and len(indent) < DEEPEST:
            lines += _members(error, indent + "  ")
    if len(group.exceptions) > MEMBERS:
        lines.append(f"{indent}- {len(group.exceptions) - MEMBERS} more")
    return lines


def plain(lines: Iterable[str]) -> str:
    """A traceback as IPython formatted it, without its colours and its ruled line."""
    return _plain(_joined_lines(lines))


def _joined_lines(lines: Iterable[str]) -> str:
    text = "\n".join(str(line).rstrip("\n") for line in lines)
    return printable(_cut("\n".join(map(_cut_line, text.split("\n")))))


def _plain(coloured: str) -> str:
    return _RULE.sub("", _ANSI.sub("", coloured))


def _user_frames(traceback: TracebackType | None) -> list[TracebackType]:
    """A traceback's frames without those of this package's folder."""
    return [frame for frame in frames_of(traceback) if not frame.tb_frame.f_code.co_filename.startswith(_OURS)]


def _formatted(shell: Any, error: BaseException, at: TracebackType | None) -> list[str]:
    own = getattr(error, "_render_traceback_", None)
    if own is not None:
        return list(own())
    if isinstance(error, SyntaxError) and at is None:
        return list(shell.SyntaxTB.structured_traceback(type(error), error, []))
    return list(shell.InteractiveTB.structured_traceback(type(error), error, at, tb_offset=0))


def _cut_line(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    half = LINE_CHARS // 2
    return f"{line[:half]}\x1b[0m [... {len(line) - 2 * half} characters omitted ...] {line[-half:]}"


def _cut(text: str) -> str:
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    head = text[:HEAD_CHARS].rpartition("\n")[0]
    tail = text[-TAIL_CHARS:].partition("\n")[2]
    return f"{head}\x1b[0m\n[... {len(text) - len(head) - len(tail)} characters omitted ...]\n{tail}"
