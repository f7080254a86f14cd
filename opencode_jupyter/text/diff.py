"""Unified patches as jsdiff writes them, and what is shown of them (docs/opencode/tools.md 6.4).

Small edits are found by Myers' algorithm in process; when two texts differ much, git (where it is
installed) does it faster, and ``difflib`` or a plain "all of this became all of that" is the last resort.
The time is bounded for any input.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import _myers
from ._myers import Opcode

CONTEXT = 4
"""Context lines around a change (jsdiff's default)."""
DIFFLIB_LINES = 5_000
"""Lines of both texts together up to which ``difflib`` is quick enough on any input."""
GIT_SECONDS = 5.0
SHOWN = 400_000
"""Characters of a patch that are put before a person or into metadata."""

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
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
    kept = patch[:cut] if cut else patch[:limit] + "\n"
    missing = patch.count("\n", cut or limit)
    return f"{kept}\\ Cut here: {missing} more lines of this diff are not shown\n"


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
        return _replaced(len(old), len(new))
    found = _myers.opcodes(old, new)
    if found is not None:
        return found
    found = _git_opcodes(old, new)
    if found is not None:
        return found
    if len(old) + len(new) <= DIFFLIB_LINES:
        return list(difflib.SequenceMatcher(None, old, new).get_opcodes())
    return _common_ends(old, new)


def _replaced(old: int, new: int) -> list[Opcode]:
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
    return _with_equal([(head, len(old) - tail, head, len(new) - tail)], len(old), len(new))


def _with_equal(changes: Sequence[tuple[int, int, int, int]], old: int, new: int) -> list[Opcode]:
    out: list[Opcode] = []
    i = j = 0
    for i1, i2, j1, j2 in [*changes, (old, old, new, new)]:
        if i1 > i:
            out.append(("equal", i, i1, j, j1))
        if i2 > i1 or j2 > j1:
            out.append(("replace" if i2 > i1 and j2 > j1 else "delete" if i2 > i1 else "insert", i1, i2, j1, j2))
        i, j = i2, j2
    return out


def _git_opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode] | None:
    """What git says, or None without git, on its failure, or after `GIT_SECONDS`."""
    git = shutil.which("git")
    if git is None:
        return None
    with tempfile.TemporaryDirectory(prefix="opencode-diff-") as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        before.write_bytes("".join(old).encode("utf-8", "surrogatepass"))
        after.write_bytes("".join(new).encode("utf-8", "surrogatepass"))
        # Nothing from the user's or a project's git configuration may run or change the answer.
        command = [git, "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null"]
        command += ["-c", "core.autocrlf=false", "diff", "--no-index", "--no-ext-diff", "--no-textconv"]
        command += ["--no-color", "--text", "--unified=0", "--no-indent-heuristic", "--diff-algorithm=myers"]
        command += ["--", "before", "after"]
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS"):
            environment.pop(name, None)
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    if done.returncode not in (0, 1):
        return None
    changes = []
    # Lines of the texts follow a sign, so only a header can begin with @@.
    for line in done.stdout.split(b"\n"):
        match = _HUNK.match(line)
        if match:
            i1, i_count, j1, j_count = (int(number) if number is not None else 1 for number in match.groups())
            i1 -= i_count > 0
            j1 -= j_count > 0
            changes.append((i1, i1 + i_count, j1, j1 + j_count))
    return _with_equal(changes, len(old), len(new))
