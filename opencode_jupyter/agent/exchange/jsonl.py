"""A session as the events that made it, one JSON object a line, in the order in which they happened.

Each line is OpenCode's bus event with a time: ``{"time": Unix ms, "type": ..., "properties": {...}}``. Applying
them in order (a part replaces the one with its id, else it goes to the end of its message) rebuilds the session.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.sessions import Session
from ..events import Usage
from .exporting import export, write_text

if TYPE_CHECKING:
    from ...core.host import ToolHost

Data = dict[str, Any]
_ENDING = ("step-finish", "patch")


async def export_jsonl(workspace: ToolHost, session: str | Session, path: str | os.PathLike[str]) -> Path:
    """Write a session's events into a file; an existing one is replaced as a whole.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: the file can't be written.
    """
    data = await export(workspace, session)

    def write() -> Path:
        return write_text(path, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events_of(data)))

    return await asyncio.to_thread(write)


def events_of(data: Data) -> list[Data]:
    """The events of a session in OpenCode's export format, in order.

    A call has two: when it began to run, and when it ended. Calls at the same time interleave as they did.
    """
    info = data["info"]
    created = info["time"]["created"]
    timed: list[tuple[int, Data]] = [(created, _event("session.created", {"info": info}))]
    clock = created
    for message in data["messages"]:
        message_info = message["info"]
        clock = max(clock, message_info["time"]["created"])
        completed = message_info["time"].get("completed")
        timed.append(
            (clock, _event("message.updated", {"info": _unfinished_info(message_info) if completed else message_info}))
        )
        for start, end, part in _timed(message["parts"], clock):
            clock = max(clock, start)
            if end is not None:
                timed.append((clock, _event("message.part.updated", {"part": _running_part(part, clock)})))
            timed.append((max(clock, end or 0), _event("message.part.updated", {"part": part})))
        if completed:
            timed.append((max(completed, clock), _event("message.updated", {"info": message_info})))
    timed.sort(key=lambda entry: entry[0])  # stable: an event without a time stays after the one before it
    last = timed[-1][0]
    timed.append((max(last, info["time"]["updated"]), _event("session.updated", {"info": info})))
    return [{"time": time, **event} for time, event in timed]


def _event(type: str, properties: Data) -> Data:
    return {"type": type, "properties": properties}


def _unfinished_info(info: Data) -> Data:
    """An answer's info when it began: without what is known only at its end."""
    later_keys = ("finish", "error", "structured")
    return {
        **{key: value for key, value in info.items() if key not in later_keys},
        "time": {"created": info["time"]["created"]},
        "cost": 0,
        "tokens": Usage().to_wire(),
    }


def _timed(parts: list[Data], since: int) -> Iterator[tuple[int, int | None, Data]]:
    """Each part with when it was first seen and, of calls that ended, when that was."""
    clock = latest = since
    for part in parts:
        state = part["state"] if part["type"] == "tool" else None
        times = (part if state is None else state).get("time") or {}
        start, end = times.get("start"), times.get("end")
        if state is not None and end is not None:
            clock = max(clock, start or 0)
            latest = max(latest, clock, end)
            yield clock, max(end, clock), part
            continue
        # A text has one event, when it is complete. What ends a step has no time of its own: it follows the calls.
        own = latest if part["type"] in _ENDING else end or start or 0
        clock = max(clock, own)
        latest = max(latest, clock)
        yield clock, None, part


def _running_part(part: Data, start: int) -> Data:
    state = {"status": "running", "input": part["state"]["input"], "time": {"start": start}}
    return {**part, "state": state}
