"""Rows of ``%tools history``: raw values for ``.records`` and ``.df``, and the same as people read them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.call_state import CallOutcome
from ..cards.labels import label_of_wire, project_folder
from ..cards.wording import duration

if TYPE_CHECKING:
    from ...core.store.store import Store
    from ...workspace import Workspace

_STATES: dict[str, str] = {
    CallOutcome.TIMED_OUT: "timed out",
    CallOutcome.INTERRUPTED: "interrupted",
    CallOutcome.ENDED: "interrupted",
    CallOutcome.STOPPED: "cancelled",
    CallOutcome.CANCELLED: "cancelled",
    CallOutcome.DISMISSED: "cancelled",
    CallOutcome.UNANSWERED: "cancelled",
    CallOutcome.DRY_RUN: "cancelled",
    CallOutcome.DENIED_BY_RULE: "denied",
    CallOutcome.DENIED_BY_PERSON: "denied",
    CallOutcome.DENIED_BY_POLICY: "denied",
    CallOutcome.REFUSED_BY_HOOK: "denied",
}
"""By the outcome of a call that has failed in OpenCode's terms."""
SHOWN_WAIT = 0.5
"""Seconds; a shorter wait for a person is not mentioned."""


def state_of(status: str, outcome: str, failure: str = "") -> str:
    """A call's state: completed or what failed in it, failed, denied, cancelled, timed out, interrupted, or waiting."""
    if status in ("pending", "running"):
        return outcome if outcome == CallOutcome.WAITING else status
    if status == "completed":
        return failure or status
    return _STATES.get(outcome, "failed")


async def read_history(store: Store, limit: int, workspace: Workspace, **scope: Any) -> list[dict[str, Any]]:
    """The last calls of a scope (see `Store.calls`), the newest last.

    Returns:
        What `Store.calls` gives, with the card's label as title, local time, the state in one word (OpenCode's own is
        ``status``) and the ``folder`` of its session.
    """
    label = partial(label_of_wire, directory=workspace.directory, base=project_folder(workspace))
    calls = await store.calls(limit, label=label, **scope)
    folders: dict[str, str] = {}
    for session_id in {call["session"] for call in calls}:
        info = await store.session(session_id)
        folders[session_id] = str((info or {}).get("directory") or "")
    return [_record(call, folders[call["session"]]) for call in reversed(calls)]


def _record(call: dict[str, Any], folder: str) -> dict[str, Any]:
    return {
        **call,
        "folder": folder,
        "time": local_datetime(call["time"]),
        "state": state_of(call["state"], call["outcome"], call["failure"]),
        "status": call["state"],
    }


def display_row(record: dict[str, Any]) -> dict[str, Any]:
    """A record as a row for people."""
    return {
        **record,
        "time": local_time(record["time"]),
        "title": " ".join(record["title"].split()),
        "took": _duration_text(record),
        "by": "you" if record["by"] == "user" else record["agent"] or "model",
    }


def local_datetime(milliseconds: float) -> datetime:
    """A stored time in the user's own time zone."""
    return datetime.fromtimestamp(milliseconds / 1000).replace(microsecond=0)  # noqa: DTZ006


def local_time(time: datetime) -> str:
    """A local time, short: with the date only where that is not today."""
    is_today = time.date() == datetime.now().date()  # noqa: DTZ005
    return f"{time:%H:%M:%S}" if is_today else f"{time:%Y-%m-%d %H:%M}"


def _duration_text(record: dict[str, Any]) -> str:
    """How long it ran, and how long it waited for a person."""
    seconds, waited = record["seconds"], record["waited"] or 0.0
    pieces = [] if seconds is None or record["state"] == "denied" else [duration(max(0.0, seconds - waited) * 1000)]
    return ", ".join(pieces + ([f"waited {duration(waited * 1000)}"] if waited >= SHOWN_WAIT else []))
