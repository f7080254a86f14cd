"""A session as a file: as OpenCode's export command writes it (a real release imports it), or as JSON lines of events.

Missing keys that release 1.18.33 requires are filled in, and those that only this package knows are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core import atomic
from ...core.sessions import Session
from ..events import Usage
from .session_data import read, without_extra
from .session_schema import ASSISTANT, INFO, NO_MODEL, PARTS, STATES, USER

if TYPE_CHECKING:
    from ...core.host import ToolHost

Data = dict[str, Any]

BY_HAND = "Calls made by hand in a notebook."
"""The text of the user's message that calls by hand are put under: every answer needs one that it answers."""
_ERRORS = frozenset(
    {
        "ProviderAuthError",
        "UnknownError",
        "MessageOutputLengthError",
        "MessageAbortedError",
        "StructuredOutputError",
        "ContextOverflowError",
        "ContentFilterError",
        "APIError",
    }
)
_ENDING = ("step-finish", "patch")
"""Types of parts that end a step; they have no time of their own."""


async def export(workspace: ToolHost, session: str | Session) -> dict[str, Any]:
    """A session with all its messages and parts: ``{"info", "messages"}``.

    What is in it is what the session holds: tools' arguments and outputs, answers, attachments as ``data:`` URLs.
    Rules that a mode of the session made, and what else only this program knows, are left out.

    Raises:
        UnknownSessionError: there is no such session.
    """
    info, messages = workspace.masked(await read(workspace, session))
    return await asyncio.to_thread(lambda: complete_session(info, without_extra(messages)))


async def export_file(workspace: ToolHost, session: str | Session, path: str | os.PathLike[str]) -> Path:
    """`export` into a file; an existing one is replaced as a whole.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: the file can't be written.
    """
    data = await export(workspace, session)
    return await asyncio.to_thread(lambda: write_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n"))


async def export_jsonl(workspace: ToolHost, session: str | Session, path: str | os.PathLike[str]) -> Path:
    """Write a session's events into a file, one a line; an existing one is replaced as a whole.

    Each line is OpenCode's bus event with a time: ``{"time": Unix ms, "type": ..., "properties": {...}}``.

    Raises:
        UnknownSessionError: there is no such session.
        ToolError: the file can't be written.
    """
    data = await export(workspace, session)

    def write() -> Path:
        return write_text(path, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events_of(data)))

    return await asyncio.to_thread(write)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file whole or not at all. Half of a surrogate pair is written as JSON's escape.

    Raises:
        ToolError: it can't be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:  # only strings of JSON can hold one, and there \ud800 means the same
        data = text.encode("utf-8", "backslashreplace")
    return atomic.write(path, data)


# ---------------------------------------------------------------------- OpenCode's export format


def complete_session(info: Data, messages: list[Data]) -> Data:
    """A session in the form that a real release imports, its parts in order of their messages."""
    session = _session(info, messages)
    out: list[Data] = []
    request_id = ""
    for message in messages:
        if message["info"].get("role") == "user":
            wire = _user_info(message["info"], session)
            request_id = wire["id"]
        else:
            wire = _assistant_info(message["info"], session)
            if not str(wire.get("parentID") or "").startswith("msg"):
                if not request_id:
                    out.append(_request_for_direct_calls(wire, session))
                    request_id = out[-1]["info"]["id"]
                wire["parentID"] = request_id
        out.append({"info": wire, "parts": [_part(part, wire) for part in message["parts"]]})
    return {"info": session, "messages": out}


def _session(info: Data, messages: list[Data]) -> Data:
    session = INFO.complete({k: v for k, v in info.items() if not k.startswith("opencode_jupyter")})
    session.setdefault("slug", "notebook-" + info["id"][-8:].lower())
    session["projectID"] = session["projectID"] or "global"
    # What the messages say, where it is more: a session that was imported and went on has more now than it came with.
    spent = sum(message["info"].get("cost") or 0 for message in messages)
    if spent > (session.get("cost") or 0) * (1 + 1e-9) or "cost" not in session:
        session["cost"] = spent
    summed = _sum_of_tokens(messages)
    tokens = session.get("tokens") or {}
    if not tokens or summed["input"] > tokens.get("input", 0) or summed["output"] > tokens.get("output", 0):
        session["tokens"] = summed
    return session


def _sum_of_tokens(messages: list[Data]) -> Data:
    answers = (message["info"] for message in messages if message["info"].get("role") == "assistant")
    usage = sum((Usage.from_wire(info.get("tokens")) for info in answers), Usage())
    return replace(usage, total=None).to_wire()


def _user_info(info: Data, session: Data) -> Data:
    wire = USER.complete(info)
    model = session.get("model")
    model_ids = {"providerID": model["providerID"], "modelID": model["id"]} if model else NO_MODEL
    wire.setdefault("agent", session.get("agent") or "build")
    wire.setdefault("model", dict(model_ids))
    return wire


def _assistant_info(info: Data, session: Data) -> Data:
    wire = ASSISTANT.complete(info)
    agent = wire.get("agent") or wire.get("mode") or session.get("agent") or "build"
    wire.setdefault("agent", agent)
    wire.setdefault("mode", agent)
    path = wire.get("path") or {}
    folder = session["directory"]
    wire["path"] = {**path, "cwd": path.get("cwd") or folder, "root": path.get("root") or path.get("cwd") or folder}
    if "error" in wire:
        wire["error"] = _error(wire["error"])
    return wire


def _error(error: Data) -> Data:
    data = dict(error.get("data") or {})
    if error.get("name") not in _ERRORS:
        message = str(data.get("message") or error.get("name") or "unknown")
        return {"name": "UnknownError", "data": {**data, "message": message}}
    if error["name"] != "MessageOutputLengthError":
        data.setdefault("message", "")
    if error["name"] == "APIError":
        data.setdefault("isRetryable", False)
    return {**error, "data": data}


def _request_for_direct_calls(answer: Data, session: Data) -> Data:
    # Its ids are made from the answer's, so that the same session is exported alike each time. They sort before it.
    head, tail = answer["id"][:-8], answer["id"][-8:]
    id = f"{_earlier_id(head)}{tail}"
    model = {"providerID": answer["providerID"], "modelID": answer["modelID"]}
    info = {
        "id": id,
        "sessionID": session["id"],
        "role": "user",
        "time": {"created": answer["time"]["created"]},
        "agent": answer["agent"],
        "model": model,
    }
    part = {"id": "prt" + id[3:], "sessionID": session["id"], "messageID": id, "type": "text"}
    return {"info": info, "parts": [{**part, "text": BY_HAND, "synthetic": True}]}


def _earlier_id(id: str) -> str:
    """An id's beginning that sorts just before it: its time is a hexadecimal number."""
    name, _, rest = id.partition("_")
    try:
        earlier = int(rest[:12], 16) - 1
    except ValueError:
        return f"{name}_0{rest}"
    return f"{name}_{max(earlier, 0):012x}{rest[12:]}"


def _part(part: Data, message: Data) -> Data:
    type = part.get("type")
    wire = dict(part)
    if type in PARTS:
        wire.pop("opencode_jupyter", None)
        wire = PARTS[type].complete(wire)
    if type == "reasoning":
        wire.setdefault("time", {"start": message["time"]["created"]})
    elif type == "tool":
        wire["state"] = _state(part, message)
    return wire


def _state(part: Data, message: Data) -> Data:
    status = part["state"]["status"]
    state = STATES[status].complete(part["state"])
    if status == "running":
        state.setdefault("time", {"start": message["time"]["created"]})
    elif state.get("attachments"):
        state["attachments"] = [_attachment(file, part) for file in state["attachments"]]
    return state


def _attachment(file: Data, part: Data) -> Data:
    owner = {"id": part["id"], "sessionID": part["sessionID"], "messageID": part["messageID"], "type": "file"}
    return {**file, **{k: file.get(k) or v for k, v in owner.items()}}


# ---------------------------------------------------------------------- events


def events_of(data: Data) -> list[Data]:
    """The events that made a session (in OpenCode's export format), in the order in which they happened.

    A call has two: when it began to run, and when it ended. Calls at the same time interleave as they did. Applying
    them in order (a part replaces the one with its id, else it goes to the end of its message) rebuilds the session.
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
        # A text has one event, when it is complete. What ends a step follows the calls.
        own = latest if part["type"] in _ENDING else end or start or 0
        clock = max(clock, own)
        latest = max(latest, clock)
        yield clock, None, part


def _running_part(part: Data, start: int) -> Data:
    state = {"status": "running", "input": part["state"]["input"], "time": {"start": start}}
    return {**part, "state": state}
