"""Shortest line diff by Myers' greedy algorithm, within a bound of work.

Of several shortest diffs it takes the one that jsdiff takes: of the two ways to a diagonal the one that has
passed more old lines, and a deletion at a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Opcode = tuple[str, int, int, int, int]
"""As ``difflib``'s: tag (``equal``, ``replace``, ``delete``, ``insert``), old from and to, new from and to."""

MAX_EDITS = 500
MAX_STEPS = 2_000_000


class _Path(NamedTuple):
    old: int
    """Old lines passed."""
    equal: int
    """How many of them, at the end, are equal to new ones."""
    deleted: bool
    """True if the edit before those was a deletion; else an insertion."""
    before: _Path | None


def opcodes(old: Sequence[str], new: Sequence[str], max_edits: int = MAX_EDITS) -> list[Opcode] | None:
    """The edits from `old` to `new`; None if there are more than `max_edits` or finding them takes too long."""
    count = _equal_run(old, new, 0, 0)
    paths: dict[int, _Path] = {0: _Path(count, count, False, None)}
    if count == len(old) == len(new):
        return _walk_back(paths[0], len(new))
    # A diagonal is old lines passed minus new lines passed. Those beyond an end reached lead nowhere.
    lowest, highest, steps = -len(new), len(old), count
    for edits in range(1, min(max_edits, len(old) + len(new)) + 1):
        reached: dict[int, _Path] = {}
        for diagonal in range(-edits, edits + 1, 2):
            if not lowest <= diagonal <= highest:
                continue
            remove, add = paths.get(diagonal - 1), paths.get(diagonal + 1)
            if remove is not None and remove.old >= len(old):
                remove = None
            if add is not None and add.old - diagonal > len(new):
                add = None
            if remove is not None and (add is None or remove.old >= add.old):
                passed, base = remove.old + 1, remove
            elif add is not None:
                passed, base = add.old, add
            else:
                continue
            count = _equal_run(old, new, passed, passed - diagonal)
            path = _Path(passed + count, count, base is remove, base)
            steps += 1 + count
            done_old, done_new = path.old == len(old), path.old - diagonal == len(new)
            if done_old and done_new:
                return _walk_back(path, len(new))
            if done_old:
                highest = min(highest, diagonal - 1)
            if done_new:
                lowest = max(lowest, diagonal + 1)
            reached[diagonal] = path
        if steps > MAX_STEPS:
            return None
        paths = reached
    return None


def _equal_run(old: Sequence[str], new: Sequence[str], i: int, j: int) -> int:
    start = i
    last = min(len(old), i + len(new) - j)
    while i < last and old[i] == new[j]:
        i += 1
        j += 1
    return i - start


def _walk_back(end: _Path, new_end: int) -> list[Opcode]:
    out: list[Opcode] = []
    path: _Path | None = end
    i = i_end = end.old
    j = j_end = new_end
    while path is not None:
        if path.equal:
            _change(out, i, i_end, j, j_end)
            out.append(("equal", i - path.equal, i, j - path.equal, j))
            i = i_end = i - path.equal
            j = j_end = j - path.equal
        if path.before is not None:
            if path.deleted:
                i -= 1
            else:
                j -= 1
        path = path.before
    _change(out, i, i_end, j, j_end)
    out.reverse()
    return out


def _change(out: list[Opcode], i: int, i_end: int, j: int, j_end: int) -> None:
    if i < i_end or j < j_end:
        tag = "replace" if i < i_end and j < j_end else "delete" if i < i_end else "insert"
        out.append((tag, i, i_end, j, j_end))
