"""A card's words and its saved JSON: what every drawing of a card shares.

The twin of ``labextension/src/card/format.ts``: both say the same things in the same words, so that a card reads
alike live, in JupyterLab's renderer, as HTML and in a terminal.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ...core.endings import failure_of
from ...core.permission.request import SANDBOX
from ...core.trust import PERMISSION as TRUST

CARD_MIME = "application/vnd.opencode.toolpart.v1+json"
"""MIME type of the saved part; the version in it is the part's ``v``."""

OUTPUT_CHARS = 64_000
"""Characters of an output that are saved: a little more than the 50 KiB a model sees (docs/opencode/core.md 3)."""
NESTED_CHARS = 16_000
"""The same of a call inside another; a batch may hold 25."""
INPUT_CHARS = 50_000
"""Most characters kept of one text in the arguments."""
METADATA_CHARS = 2_000
"""Most characters kept of one text in a tool's own metadata."""
DIFF_CHARS = 100_000
PICTURE_CHARS = 4_000_000
"""A picture's ``data:`` URL above this (3 MB) is left out of the saved card."""
DEPTH = 12
"""Levels of nesting that are kept of JSON; what is deeper becomes its text."""
ENTRIES = 1_000
"""Most entries of one list or object that are kept."""
CHILDREN = 100
"""Most nested calls that are kept."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_MISLEADING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
# each way through it ends somewhere: what begins a string always takes it, or its end would be looked for from every
# such beginning, and 40 KB of them would hold up the kernel for minutes
_ANSI = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|[\x90\x9d])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-Z\\\\^-~]|\x1b\\[?[0-?]*[ -/]*$|\x1b"
)
_ENDS = re.compile(r"(?<!\r)\r+\n")
_NUMBER = re.compile(r"(-?[\d.,]+(e[+-]?\d+)?|-?inf|nan|nat|<na>)?", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
HEADER = re.compile(r"---|\+\+\+|diff |Index: |index |=+$|new |deleted |old |similarity |rename ")
"""Lines of a diff before its first hunk."""
TASK_MARKS = {
    "pending": ("☐", "to do"),
    "in_progress": ("◐", "in progress"),
    "completed": ("☑", "done"),
    "cancelled": ("✗", "cancelled"),
}
"""Mark and words of a task's states, so that they are told by more than their colour."""
_PERSON = {"you", "user", "card", "control", "tap", "widget", "prompt", "person", ""}
"""Ways in which the answer of the person at the notebook comes."""


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


def visible(text: str) -> str:
    """`text` with every control, bidirectional and unseen character escaped: for what a person judges by."""
    return _INVISIBLE.sub(_escaped, text)


def visible_line(text: str) -> str:
    """The same in one line."""
    return visible(text).replace("\n", "⏎").replace("\t", " ")


def readable(text: str) -> str:
    """Output as text: no ANSI escapes, lines as a terminal leaves them, and what misleads the eye escaped."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        # line by line: one expression for it all would take the square of a long line's length
        text = "\n".join(line[line.rfind("\r", 0, -1) + 1 :] for line in _ENDS.sub("\n", text).split("\n"))
    return _MISLEADING.sub(_escaped, text)


def is_picture(url: object) -> bool:
    """Whether `url` is an inline picture of a kind that can't carry code."""
    return isinstance(url, str) and len(url) <= PICTURE_CHARS and _PICTURE.fullmatch(url) is not None


def clock(ms: float) -> str:
    """`ms` milliseconds as a running clock: ``0:04``, ``12:07``, ``1:00:00``."""
    minutes, seconds = divmod(max(0, int(ms // 1000)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def duration(ms: float) -> str:
    """How long something took: ``2 ms``, ``0.03 s``, ``3.2 s``, ``0:12``."""
    ms = max(0, round(ms))
    if ms < 10:
        return f"{ms} ms"
    if ms < 9950:
        return f"{ms / 1000:.{2 if ms < 95 else 1}f} s"
    return clock(max(10_000, ms))


def size(count: float) -> str:
    """A size in bytes: ``812 B``, ``18 KB``, ``1.2 MB`` (1024 bytes to the KB)."""
    for unit in ("B", "KB", "MB"):
        if count < 1023.5:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 9.95 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.0f} GB" if count >= 9.95 else f"{count:.1f} GB"


def extent(lines: int | None, count: int | None) -> str:
    """``214 lines, 18 KB``; what is not known is left out."""
    words = [f"{lines:,} line{'' if lines == 1 else 's'}"] if lines else []
    return ", ".join([*words, size(count)] if count else words)


DENIED = "⊘"
"""The mark of a call that a person denied or dismissed."""


def outcome_word(outcome: str) -> str:
    """How a call or run ended, as a person reads it."""
    return "interrupted by you" if outcome == "interrupted" else visible_line(outcome)


def state_words(part: dict[str, Any]) -> tuple[str, str, str]:
    """A part's state: the mark, the word, and its tone (``ok``, ``err``, ``ask``, ``run``, ``off``)."""
    status, ui = part["state"].get("status"), part["ui"]
    outcome = ui.get("outcome")
    if waits(part):
        return "?", "waiting for approval" if _needs_approval(part) else "waiting for an answer", "ask"
    if outcome in {"cancelled", "ended", "stopped", "interrupted"}:
        return "■", outcome_word(outcome), "off"
    if outcome and str(outcome).startswith(("denied by you", "dismissed")):
        return DENIED, visible_line(str(outcome)), "off"  # what the person wanted is no failure
    if outcome and outcome != "completed":
        return "✗", visible_line(str(outcome)), "err"
    if status == "completed":
        failure = failure_of(str(part.get("tool")), part["state"].get("metadata"))
        return ("✗", failure, "err") if failure else ("✓", "completed", "ok")
    if status == "error":
        return "✗", "failed", "err"
    if status == "running" and ui.get("waitsFor"):
        return "◐", f"waiting for another change of {visible_line(ui['waitsFor'])}", "run"
    return ("◐", "running", "run") if status == "running" else ("○", "pending", "run")


def live(part: dict[str, Any]) -> bool:
    """Whether the call goes on."""
    return not part["ui"].get("outcome") and part["state"].get("status") in {"pending", "running"}


def waits(part: dict[str, Any]) -> bool:
    """Whether the call, or one inside it, waits for a person."""
    ui = part["ui"]
    return live(part) and bool(ui.get("ask") or ui.get("question") or any(map(waits, ui.get("children") or [])))


def _needs_approval(part: dict[str, Any]) -> bool:
    """Whether the call, or one inside it, waits for approval, and not only for the answer to a question."""
    ui = part["ui"]
    return bool(ui.get("ask")) or any(map(_needs_approval, ui.get("children") or []))


def says_output(part: dict[str, Any]) -> bool:
    """Whether what stands beside the output says all that it says, so that a person need not read it twice."""
    ui = part["ui"]
    shown = any(ui.get(name) for name in ("answered", "table", "cells")) or ui.get("tasks") is not None
    return shown or ui.get("printed") is not None


def numeric_columns(table: dict[str, Any]) -> list[bool]:
    """Which columns of a table have numbers alone, and are aligned to the right."""
    rows = table.get("rows") or []
    columns = range(len(table.get("columns") or []))
    return [any(row[i] for row in rows) and all(_NUMBER.fullmatch(str(row[i])) for row in rows) for i in columns]


def rows_words(table: dict[str, Any]) -> str:
    """What a table shows of how much: ``DataFrame · the first 50 of 214 rows, 20 of 64 columns``."""
    shown, total = len(table.get("rows") or []), int(table.get("total") or 0)
    columns = table.get("columns") or []
    words = f"{total:,} row{'' if total == 1 else 's'}"
    if shown < total:
        words = f"the first {shown} of {words}"
    elif not any(columns):
        words = ""  # fields and single values
    width, drawn = int(table.get("width") or 0), len(columns) - int(table.get("index") or 0)
    if any(columns) and width > drawn:
        words += f", {drawn} of {width:,} columns"
    return " · ".join(filter(None, [visible_line(str(table.get("name") or "")), words]))


def time_words(part: dict[str, Any]) -> str:
    """How long a finished call took, the waiting for a person told apart; nothing while it goes on."""
    time, ui = part["state"].get("time") or {}, part["ui"]
    waited = ui.get("waited") or 0
    words = []
    if time.get("end") is not None and not str(ui.get("outcome", "")).startswith(("denied", "refused")):
        words.append(duration(time["end"] - time.get("start", time["end"]) - waited))
    if waited >= 500:
        words.append(f"waited {duration(waited)}")
    return " · ".join(words)


def decision_words(part: dict[str, Any]) -> list[str]:
    """Why a call was allowed or refused: ``allowed once by you``, ``rule edit *: allow from opencode.json``."""
    words = ["called by the model"] if part["ui"].get("by") == "model" else []
    for decision in part["ui"].get("decisions") or []:
        sentence = decision_sentence(decision)
        if sentence not in words:
            words.append(sentence)
    return words


def pattern_words(part: dict[str, Any]) -> list[str]:
    """Where a decision was about several things (the commands of a line): each with the rule that decided it."""
    lines = []
    for decision in part["ui"].get("decisions") or []:
        for pattern, rule in zip(decision.get("patterns") or [], decision.get("rules") or [], strict=False):
            lines.append(f"{visible_line(pattern)}  —  {_rule(rule)}")
    return list(dict.fromkeys(lines))


def _rule(rule: dict[str, Any]) -> str:
    origin = f" from {visible_line(rule['origin'])}" if rule.get("origin") else ""
    return visible_line(f"rule {rule['permission']} {rule['pattern']}: {rule['action']}") + origin


def decision_sentence(decision: dict[str, Any]) -> str:
    """A decision in words: ``allowed once by you``, ``rule edit *: allow from opencode.json``."""
    by = str(decision.get("by") or "")
    by = "you" if by in _PERSON else visible_line(by)
    if decision.get("revised"):
        return f"arguments changed by {by}"
    message = f": “{visible_line(str(decision['message']))}”" if decision.get("message") else ""
    if decision.get("note"):
        message += f" ({visible_line(str(decision['note'])).rstrip('.')})"
    rule = decision.get("rule")
    if rule and not decision.get("reply"):
        return _rule(rule) + message
    if decision.get("by") == "policy":
        word = "denied" if decision.get("action") == "deny" else "allowed"
        return f"{word} by policy (nobody could approve it){message}"
    if decision.get("action") == "deny":
        return f"{'not trusted' if decision.get('permission') == TRUST else 'denied'} by {by}{message}"
    if decision.get("permission") == TRUST:  # whatever was answered: it is remembered, for exactly what was shown
        return f"trusted by {by}, until it changes{message}"
    if decision.get("permission") == SANDBOX:
        return f"allowed despite the sandbox by {by}{message}"
    scope = {"always": " for this session", "once": " once"}.get(str(decision.get("reply")), "")
    return f"allowed{scope} by {by}{message}"


def output_of(part: dict[str, Any]) -> str:
    """What of a call's output a person is shown: `ui.shown` and `ui.printed` leave out what only the model needs."""
    output, shown = str(part["state"].get("output") or ""), part["ui"].get("shown")
    if part["ui"].get("printed") is not None:
        return str(part["ui"]["printed"])
    return "\n".join(output.split("\n")[shown[0] : shown[1]]) if shown else output


def saved_part(part: dict[str, Any], most: int = OUTPUT_CHARS) -> dict[str, Any]:
    """`part` as a notebook keeps it: JSON that any reader takes, never larger than it has to be, never asking.

    Args:
        part: a card's JSON.
        most: characters kept of its output.
    """
    state, ui = dict(part["state"]), dict(part["ui"])
    ui.pop("ask", None)
    ui.pop("question", None)
    children = ui.pop("children", None)
    attachments = state.pop("attachments", None)
    saved: dict[str, Any] = {key: value for key, value in part.items() if key not in {"state", "ui"}}
    saved = _plain(saved, METADATA_CHARS)
    saved["state"] = _texts(state, {"output": most, "error": most, "raw": INPUT_CHARS})
    saved["state"]["input"] = _plain(state.get("input") or {}, INPUT_CHARS)
    if attachments:
        saved["state"]["attachments"] = [_attachment(a) for a in attachments[:CHILDREN]]
    saved["ui"] = _texts(
        ui,
        {
            "diff": DIFF_CHARS,
            "diffs": DIFF_CHARS,
            "tail": most,
            "answered": INPUT_CHARS,
            "printed": most,
            "sent": most,
        },
    )
    if children:
        saved["ui"]["children"] = [saved_part(child, NESTED_CHARS) for child in children[:CHILDREN]]
    return saved


def _texts(given: dict[str, Any], caps: dict[str, int]) -> dict[str, Any]:
    """The values of `given` as plain JSON, its long texts cut to `caps`."""
    return {key: _plain(value, caps.get(key, METADATA_CHARS)) for key, value in given.items()}


def _attachment(given: dict[str, Any]) -> dict[str, Any]:
    url = str(given.get("url", ""))
    kept = _plain({key: value for key, value in given.items() if key != "url"}, METADATA_CHARS)
    # a file that is no picture is named, not carried along
    return {**kept, "url": _LONE.sub(_escaped, url) if is_picture(url) or len(url) <= METADATA_CHARS else ""}


def cut(text: str, most: int) -> str:
    """The first `most` characters of `text`, and how many more there were."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def _plain(value: Any, most: int, depth: int = 0) -> Any:
    """`value` as JSON that every reader takes: no NaN, no lone surrogates, not too deep, no text above `most`."""
    if isinstance(value, str):
        return _LONE.sub(_escaped, cut(value, most))
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < DEPTH and isinstance(value, dict):
        kept = {_LONE.sub(_escaped, str(k)): _plain(v, most, depth + 1) for k, v in list(value.items())[:ENTRIES]}
        return kept if len(value) <= ENTRIES else {**kept, "…": f"{len(value) - ENTRIES:,} more"}
    if depth < DEPTH and isinstance(value, (list, tuple)):
        kept_items = [_plain(v, most, depth + 1) for v in value[:ENTRIES]]
        return kept_items if len(value) <= ENTRIES else [*kept_items, f"… {len(value) - ENTRIES:,} more"]
    try:
        text = repr(value)
    except RecursionError:
        text = "… (nested too deeply)"
    return _LONE.sub(_escaped, cut(text, METADATA_CHARS))
