"""The words of a run's card; the twin of ``labextension/src/run/wording.ts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolAbortedError, ToolError, full_text
from .wording import DENIED, duration, outcome_word, visible_line

RUN_MIME = "application/vnd.opencode.run.v1+json"
"""MIME type of a saved run; the version in it is the run's ``v``."""
VERSION = 1

REJECTED = "The run ended because a call was denied. Continue with another %%agent that says what to do instead."
INTERRUPTED = "Interrupted by you. The work so far is kept; the next %%agent continues from here."
ENDS = {
    "max-steps": "The run reached its step limit. Continue with another %%agent, or set --max-steps N.",
    "length": "The answer was cut off at the limit of output tokens.",
    "refused": "The provider's content filter blocked the answer.",
    "rejected": REJECTED,
}
AGAIN = "The request is kept in the session; when the problem is fixed, send it again with another %%agent."
LOST = "State unknown: the kernel ended before the run did."


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


def state_words(run: Mapping[str, Any]) -> tuple[str, str, str]:
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
    """What stands beside the state: steps, tokens, cost, time."""
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
