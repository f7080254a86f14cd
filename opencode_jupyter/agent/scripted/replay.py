"""The differences between results of a replay and those of its recording.

What changes from run to run (times, process ids, temporary paths, ids) is left out of the comparison.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...text.diff import diff
from .answers import RecordedResult, Say
from .script_conversation import CallResult

DIFF_LINES = 20
"""Lines of a difference that are shown."""
DIFF_CHARS = 2000
"""Characters of a difference that are shown."""
_DAY = (
    r"(?i)\b(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?(?:\d{1,2} )?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? +\d{1,2}(?:,? +\d{4}| +\d\d:\d\d(?::\d\d)?)\b"
)
_DURATION = (
    r"(?i)\b\d+(?:[.,]\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?|milliseconds?|hours?|m\d+(?:\.\d+)?s)\b"
)
_CHANGING: tuple[tuple[str, str], ...] = (
    (r"\[secret-\d+\]", "<secret>"),
    (r"\b(?:ses|msg|prt|per|que|tool|call|toolu|evt|wrk)_(?=[A-Za-z]*\d)[A-Za-z0-9]{3,}", "<id>"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"\b0x[0-9a-fA-F]{6,}\b", "<address>"),
    (r"(?:/private)?(?:/var/folders|/var/tmp|/tmp|/dev/shm)/[^\s'\"<>:,;)]+", "<temporary>"),
    (r"(?i)\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?: ?(?:Z|UTC|[-+]\d\d:?\d\d))?", "<time>"),
    (_DAY, "<time>"),
    (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b|\b\d{1,2}:\d\d\b(?= ?(?:[AaPp][Mm])?\b)", "<time>"),
    (_DURATION, "<duration>"),
    (r"(?i)\b(pid|process|ppid|port)([ :=#]+)\d+", r"\1\2<number>"),
    (r"[ \t]+(?=\n|$)", ""),
)
_COMPILED = tuple((re.compile(pattern), to) for pattern, to in _CHANGING)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as it was when the script was recorded.

    Attributes:
        what: ``result``, ``calls`` (other results than there were) or ``prompt``.
        call: number of the call in its turn, from 0; None if it is no call's.
        tool: whose result it is; "" if it is none.
        place: of the turn in the script.
        diff: the lines that differ, ``-`` as recorded and ``+`` now.
    """

    what: str
    place: str
    call: int | None = None
    tool: str = ""
    call_id: str = ""
    diff: str = ""

    def __str__(self) -> str:
        if self.what == "prompt":
            return f"the prompt is not the recorded one ({self.place})"
        subject = f"what {self.tool} gave (call {self.call})" if self.what == "result" else "the results"
        return f"{subject} after the turn at {self.place} differs from the recording:\n{self.diff}"


def stable_text(text: str) -> str:
    """A text without what changes from run to run."""
    for pattern, to in _COMPILED:
        text = pattern.sub(to, text)
    return text.strip()


def fingerprint(text: str) -> str:
    """A hash of what is stable in a text that `scrub` has been through."""
    return hashlib.sha256(stable_text(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def differences(turn: Say, results: Sequence[CallResult], scrub: Callable[[str], str]) -> list[Difference]:
    """The differences in the results of a turn's calls.

    `scrub` removes from a text what depends on the machine and its user, as the recorder did.
    """
    recorded = turn.results
    if recorded is None:
        return []
    if len(recorded) != len(results):
        then = [f"- {result.tool}" for result in recorded]
        return [Difference("calls", turn.place, diff="\n".join([*then, *(f"+ {result.tool}" for result in results)]))]
    differing = []
    for index, (old, new) in enumerate(zip(recorded, results, strict=True)):
        text = scrub(new.output)
        if old.tool == new.tool and old.failed == new.failed and _is_same(old, text):
            continue
        differing.append(Difference("result", turn.place, index, new.tool, new.call_id, _diff(old, new, text)))
    return differing


def _is_same(then: RecordedResult, text: str) -> bool:
    if then.hash:
        # The hash is of the whole; a recording edited by hand is judged by its text.
        return fingerprint(text) == then.hash or (not then.cut and stable_text(then.output) == stable_text(text))
    return stable_text(then.output) == stable_text(text)


def _diff(then: RecordedResult, now: CallResult, text: str) -> str:
    lead = []
    if then.tool != now.tool:
        lead.append(f"- tool {then.tool}\n+ tool {now.tool}")
    if then.failed != now.failed:
        lead.append(f"- {_end_text(then.failed)}\n+ {_end_text(now.failed)}")
    old, new = stable_text(then.output), stable_text(text)
    if then.cut:
        new = new[: len(old)]
    patch = diff("result", old, new).patch.splitlines()[4:]  # without its header
    lines = [line for line in patch if not line.startswith(("@@", "\\"))]
    if len(lines) > DIFF_LINES:
        lines = [*lines[:DIFF_LINES], f"... and {len(lines) - DIFF_LINES} lines more"]
    if not lines and then.cut and not lead:
        lines = ["(the part that differs is not kept in the recording)"]
    return "\n".join([*lead, *lines])[:DIFF_CHARS]


def _end_text(failed: bool) -> str:
    return "an error" if failed else "completed"
