"""The texts of cards of calls and runs: states, durations, sizes, decisions.

The twin of ``card/format.ts``, ``card/wording.ts`` and ``run/wording.ts`` in ``labextension/src``: both use the same
texts, so that a card reads alike live, in JupyterLab's renderer, as HTML and in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.call_state import CallOutcome, failure_of
from ...core.errors import ToolAbortedError, ToolError, full_text
from ...core.permission.request import SANDBOX, TRUST
from ...text.visible import visible_line

_NUMBER = re.compile(r"(-?[\d.,]+(e[+-]?\d+)?|-?inf|nan|nat|<na>)?", re.IGNORECASE)
HEADER = re.compile(r"---|\+\+\+|diff |Index: |index |=+$|new |deleted |old |similarity |rename ")
"""Lines of a diff before its first hunk."""
TASK_MARKS = {
    "pending": ("☐", "to do"),
    "in_progress": ("◐", "in progress"),
    "completed": ("☑", "done"),
    "cancelled": ("✗", "cancelled"),
}
"""Mark and text of a task's states, which colours alone would not show."""
_PERSON = {"you", "user", "card", "control", "tap", "widget", "prompt", "person", ""}
"""Origins of a reply that stand for the person at the notebook."""
DENIED = "⊘"
"""The mark of a call that a person denied or dismissed."""


CUT_SHORT = frozenset({CallOutcome.CANCELLED, CallOutcome.ENDED, CallOutcome.STOPPED, CallOutcome.INTERRUPTED})
"""Outcomes of calls that were cut short."""
REFUSED = frozenset({CallOutcome.DENIED_BY_PERSON, CallOutcome.DISMISSED})
"""Outcomes that a person chose."""
NOT_RUN = frozenset(
    {
        CallOutcome.DENIED_BY_RULE,
        CallOutcome.DENIED_BY_PERSON,
        CallOutcome.DENIED_BY_POLICY,
        CallOutcome.REFUSED_BY_HOOK,
    }
)
"""Outcomes of calls that took no time of their own."""
REJECTED = "The run ended because a call was denied. Continue with another %%agent that says what to do instead."
INTERRUPTED = "Interrupted by you. The work so far is kept; the next %%agent continues from here."
ENDS = {
    "max-steps": "The run reached its step limit. Continue with another %%agent, or set --max-steps N.",
    "length": "The answer was cut off at the limit of output tokens.",
    "refused": "The provider's content filter blocked the answer.",
    "rejected": REJECTED,
}
AGAIN = "The request is kept in the session; when the problem is fixed, send it again with another %%agent."


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


def outcome_word(outcome: str) -> str:
    """How a call or run ended, as a person reads it."""
    return "interrupted by you" if outcome == "interrupted" else visible_line(outcome)


def state_words(part: dict[str, Any]) -> tuple[str, str, str]:
    """A part's state: its mark, its text and its tone (``ok``, ``err``, ``ask``, ``run``, ``off``)."""
    status, ui = part["state"].get("status"), part["ui"]
    outcome = ui.get("outcome")
    if is_waiting(part):
        return "?", "waiting for approval" if _needs_approval(part) else "waiting for an answer", "ask"
    if outcome in CUT_SHORT:
        return "■", outcome_word(outcome), "off"
    if outcome in REFUSED:
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


def is_live(part: dict[str, Any]) -> bool:
    """Whether the call has not ended."""
    return not part["ui"].get("outcome") and part["state"].get("status") in {"pending", "running"}


def is_waiting(part: dict[str, Any]) -> bool:
    """Whether the call, or one inside it, waits for a person."""
    ui = part["ui"]
    return is_live(part) and bool(ui.get("ask") or ui.get("question") or any(map(is_waiting, ui.get("children") or [])))


def _needs_approval(part: dict[str, Any]) -> bool:
    """Whether the call, or one inside it, waits for approval, and not only for the answer to a question."""
    ui = part["ui"]
    return bool(ui.get("ask")) or any(map(_needs_approval, ui.get("children") or []))


def has_readable_body(part: dict[str, Any]) -> bool:
    """Whether the blocks beside the output say all that it says, so that it can be folded."""
    ui = part["ui"]
    shown = any(ui.get(name) for name in ("answered", "table", "cells")) or ui.get("tasks") is not None
    return shown or ui.get("printed") is not None


def numeric_columns(table: dict[str, Any]) -> list[bool]:
    """Which columns of a table have numbers alone, and are aligned to the right."""
    rows = table.get("rows") or []
    columns = range(len(table.get("columns") or []))
    return [any(row[i] for row in rows) and all(_NUMBER.fullmatch(str(row[i])) for row in rows) for i in columns]


def rows_words(table: dict[str, Any]) -> str:
    """Which part of a table is shown: ``DataFrame · the first 50 of 214 rows, 20 of 64 columns``."""
    shown, total = len(table.get("rows") or []), int(table.get("total") or 0)
    columns = table.get("columns") or []
    words = f"{total:,} row{'' if total == 1 else 's'}"
    if shown < total:
        words = f"the first {shown} of {words}"
    elif not any(columns):
        words = ""  # fields and single values
    width, column_count = int(table.get("width") or 0), len(columns) - int(table.get("index") or 0)
    if any(columns) and width > column_count:
        words += f", {column_count} of {width:,} columns"
    return " · ".join(filter(None, [visible_line(str(table.get("name") or "")), words]))


def time_words(part: dict[str, Any]) -> str:
    """A finished call's duration, and apart from that the time it waited for a person; empty while it runs."""
    time, ui = part["state"].get("time") or {}, part["ui"]
    waited = ui.get("waited") or 0
    words = []
    if time.get("end") is not None and ui.get("outcome") not in NOT_RUN:
        words.append(duration(time["end"] - time.get("start", time["end"]) - waited))
    if waited >= 500:
        words.append(f"waited {duration(waited)}")
    return " · ".join(words)


def decision_words(part: dict[str, Any]) -> list[str]:
    """Why a call was allowed or refused: ``rule edit *: allow from opencode.json``; its error's code at the end."""
    words = ["called by the model"] if part["ui"].get("by") == "model" else []
    for decision in part["ui"].get("decisions") or []:
        sentence = decision_sentence(decision)
        if sentence not in words:
            words.append(sentence)
    return [*words, visible_line(part["ui"]["code"])] if part["ui"].get("code") else words


def denial_reason(part: dict[str, Any]) -> str:
    """The reason that a person gave with a denial; empty if there is none."""
    decisions = part["ui"].get("decisions") or []
    return next((str(d["message"]) for d in decisions if d.get("action") == "deny" and d.get("message")), "")


def pattern_words(part: dict[str, Any]) -> list[str]:
    """Each pattern of a decision about several (the commands of a line), with the rule that decided it."""
    lines = []
    for decision in part["ui"].get("decisions") or []:
        for pattern, rule in zip(decision.get("patterns") or [], decision.get("rules") or [], strict=False):
            lines.append(f"{visible_line(pattern)}  —  {_rule(rule)}")
    return list(dict.fromkeys(lines))


def _rule(rule: dict[str, Any]) -> str:
    origin = f" from {visible_line(rule['origin'])}" if rule.get("origin") else ""
    return visible_line(f"rule {rule['permission']} {rule['pattern']}: {rule['action']}") + origin


def decision_sentence(decision: dict[str, Any]) -> str:
    """A decision as a sentence: ``allowed once by you``, ``rule edit *: allow from opencode.json``."""
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
    """The part of a call's output that a person reads: without what only the model needs (`ui.shown`, `ui.printed`)."""
    output, shown = str(part["state"].get("output") or ""), part["ui"].get("shown")
    if part["ui"].get("printed") is not None:
        return str(part["ui"]["printed"])
    return "\n".join(output.split("\n")[shown[0] : shown[1]]) if shown else output


# ---------------------------------------------------------------------- runs


def tokens(count: int) -> str:
    """``950 tokens``, ``12.3k tokens``, ``1.2M tokens``."""
    if count < 1_000:
        return f"{count} token{'' if count == 1 else 's'}"
    if count < 999_500:
        return f"{count / 1000:.1f}k tokens" if count < 99_950 else f"{count / 1000:.0f}k tokens"
    return f"{count / 1e6:.1f}M tokens"


def dollars(cost: float | None) -> str:
    """``$0.0012``, ``$1.20``; nothing if not known, or nothing was charged."""
    if not cost:
        return ""
    return f"${cost:.4f}" if cost < 0.1 else f"${cost:.2f}"


def run_state_words(run: Mapping[str, Any]) -> tuple[str, str, str]:
    """Mark, word and tone (``ok``, ``err``, ``ask``, ``run``, ``off``) of a run that is over."""
    status = run.get("status")
    if status == "done":
        return "✓", "done", "ok"
    if status == "rejected":
        return DENIED, "denied", "off"
    if status == "failed":
        return "✗", "failed", "err"
    if status == "stopped":
        return "■", outcome_word(str(run.get("outcome") or "stopped")), "off"
    return "◐", str(status), "run"


def head_words(run: Mapping[str, Any]) -> list[str]:
    """The details beside the state: steps, tokens, cost, time."""
    step = int(run.get("step") or 0)
    words = [f"{step} step{'' if step == 1 else 's'}"] if step else []
    if run.get("tokens"):
        words.append(tokens(int(run["tokens"])))
    words += filter(None, [dollars(run.get("cost"))])
    started, over = run.get("started"), run.get("ended")
    if started and over:
        words.append(duration(over - started - (run.get("waited") or 0)))
    if (run.get("waited") or 0) >= 500:
        words.append(f"waited {duration(run['waited'])}")
    return words


def call_words(part: Mapping[str, Any]) -> str:
    """A call in a line, without its mark: ``read src/a.py``."""
    label = visible_line(part["ui"].get("label") or "")
    return f"{visible_line(part['tool'])} {label}".rstrip()


def end_of(status: str, ended: str, error: BaseException | None, reason: str | None) -> dict[str, str] | None:
    """The last line of a run that is over: its tone, what happened, what to do; None if it just ended well.

    Args:
        status: the run's.
        ended: how its answer says it ended; "" without an answer.
        error: what it failed with.
        reason: why it was stopped.
    """
    if status == "rejected":
        return {"tone": "off", "text": REJECTED}
    if status == "stopped" or isinstance(error, ToolAbortedError):
        return {"tone": "off", "text": INTERRUPTED}
    if error is not None:
        text = full_text(error, for_person=True) if isinstance(error, ToolError) else str(error)
        text = text or type(error).__name__
        return {"tone": "err", "text": text, "advice": AGAIN}
    if ended in ENDS:
        return {"tone": "ask", "text": ENDS[ended]}
    return None
