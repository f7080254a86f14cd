"""Unified patches as jsdiff writes them, and what is shown of them (docs/opencode/tools.md 6.4).

Edits are found by Myers' algorithm; where two texts differ much, by ``difflib``, and where that would take long, what
is between their common ends is replaced as a whole. The time is bounded for any input.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Opcode = tuple[str, int, int, int, int]
"""As ``difflib``'s: tag (``equal``, ``replace``, ``delete``, ``insert``), old from and to, new from and to."""

MAX_EDITS = 500
MAX_STEPS = 2_000_000
CONTEXT = 4
"""Context lines around a change (jsdiff's default)."""
DIFFLIB_LINES = 40_000
"""Lines of both texts together up to which ``difflib`` takes two seconds at most."""
SHOWN = 400_000
"""Characters of a patch that are put before a person or into metadata."""

_INDENT = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Diff:
    """A patch and how many lines it adds and removes."""

    patch: str
    additions: int
    deletions: int


def diff(path: str, old: str, new: str) -> Diff:
    """The unified patch from `old` to `new` and its counts.

    Args:
        path: shown in the header, for both sides.
        old: text before; lines end with LF (a CR before it is part of the line).
        new: text after.

    Returns:
        A patch with an ``Index:`` header and `CONTEXT` lines around each change; it ends with a newline.
    """
    old_lines, new_lines = _lines(old), _lines(new)
    edits = _opcodes(old_lines, new_lines)
    out = [f"Index: {path}\n", "=" * 67 + "\n", f"--- {path}\n", f"+++ {path}\n"]
    for group in _hunks(edits):
        out.append(_hunk_header(group))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out.extend(_body(" ", old_lines[i1:i2]))
            else:
                out.extend(_body("-", old_lines[i1:i2]))
                out.extend(_body("+", new_lines[j1:j2]))
    changes = [edit for edit in edits if edit[0] != "equal"]
    additions = sum(j2 - j1 for _, _, _, j1, j2 in changes)
    deletions = sum(i2 - i1 for _, i1, i2, _, _ in changes)
    return Diff("".join(out), additions, deletions)


def trim_diff(patch: str) -> str:
    """`patch` with the indentation that all its lines share taken away."""
    lines = patch.split("\n")
    smallest: int | None = None
    for line in lines:
        if _is_body(line) and line[1:].strip():
            indent = _INDENT.match(line, 1)
            width = indent.end() - 1 if indent else 0
            smallest = width if smallest is None else min(smallest, width)
            if smallest == 0:
                return patch
    if not smallest:
        return patch
    return "\n".join(line[0] + line[1 + smallest :] if _is_body(line) else line for line in lines)


def shorten(patch: str, limit: int = SHOWN) -> str:
    """`patch`, cut after whole lines at `limit` characters with a last line that says how much is missing."""
    if len(patch) <= limit:
        return patch
    cut = patch.rfind("\n", 0, limit) + 1
    beginning = patch[:cut] if cut else patch[:limit] + "\n"
    missing = patch.count("\n", cut or limit)
    return f"{beginning}\\ Cut here: {missing} more lines of this diff are not shown\n"


def _is_body(line: str) -> bool:
    return line[:1] in ("+", "-", " ") and line[:1] != "" and not line.startswith(("---", "+++"))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    out = [line + "\n" for line in lines]
    if last:
        out.append(last)
    return out


def _body(prefix: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield prefix + line
        else:
            yield f"{prefix}{line}\n\\ No newline at end of file\n"


def _hunks(edits: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """The edits in groups, `CONTEXT` equal lines around each; gaps of up to twice that join two groups."""
    group: list[Opcode] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(edits):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        last = index == len(edits) - 1
        if group and (last or i2 - i1 > 2 * CONTEXT):
            n = min(CONTEXT, i2 - i1)
            group.append((tag, i1, i1 + n, j1, j1 + n))
            yield group
            group = []
        if not last:
            n = i2 - i1 if group else min(CONTEXT, i2 - i1)
            group.append((tag, i2 - n, i2, j2 - n, j2))
    if group and any(tag != "equal" for tag, *_ in group):
        yield group


def _hunk_header(group: Sequence[Opcode]) -> str:
    i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
    # An empty side is counted from the line before it.
    return f"@@ -{i1 + (i2 > i1)},{i2 - i1} +{j1 + (j2 > j1)},{j2 - j1} @@\n"


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    if not old or not new:
        return _replacement_opcodes(len(old), len(new))
    edits = _myers(old, new)
    if edits is not None:
        return edits
    if len(old) + len(new) <= DIFFLIB_LINES:
        return list(difflib.SequenceMatcher(None, old, new).get_opcodes())
    return _common_ends(old, new)


def _replacement_opcodes(old: int, new: int) -> list[Opcode]:
    if not old and not new:
        return []
    return [("replace" if old and new else "delete" if old else "insert", 0, old, 0, new)]


def _common_ends(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return _add_equal_runs([(head, len(old) - tail, head, len(new) - tail)], len(old), len(new))


def _add_equal_runs(changes: Sequence[tuple[int, int, int, int]], old: int, new: int) -> list[Opcode]:
    out: list[Opcode] = []
    i = j = 0
    for i1, i2, j1, j2 in [*changes, (old, old, new, new)]:
        if i1 > i:
            out.append(("equal", i, i1, j, j1))
        if i2 > i1 or j2 > j1:
            out.append(("replace" if i2 > i1 and j2 > j1 else "delete" if i2 > i1 else "insert", i1, i2, j1, j2))
        i, j = i2, j2
    return out


class _Path(NamedTuple):
    old: int
    """Old lines passed."""
    equal: int
    """How many of them, at the end, are equal to new ones."""
    deleted: bool
    """True if the edit before those was a deletion; else an insertion."""
    before: _Path | None


def _myers(old: Sequence[str], new: Sequence[str], max_edits: int = MAX_EDITS) -> list[Opcode] | None:
    """The shortest edits by Myers' greedy algorithm; None if they are too many or finding them takes too long.

    Of several it takes the one that jsdiff takes: of the two ways to a diagonal the one that has passed more old
    lines, and a deletion at a tie.
    """
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
