"""A session as OpenCode's export command writes it: a real release imports it.

Missing keys that release 1.18.33 requires are filled in, and those that only this package knows are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
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


async def export(workspace: ToolHost, session: str | Session) -> dict[str, Any]:
    """A session with all its messages and parts: ``{"info", "messages"}``.

    What is in it is what the session holds: tools' arguments and outputs, answers, attachments as ``data:`` URLs.
    Rules that a mode of the session made, and what else only this program knows, are left out.

    Raises:
        KeyError: there is none of that id.
    """
    info, messages = workspace.masked(await read(workspace, session))
    return await asyncio.to_thread(lambda: complete_session(info, without_extra(messages)))


async def export_file(workspace: ToolHost, session: str | Session, path: str | os.PathLike[str]) -> Path:
    """`export` into a file; an existing one is replaced as a whole.

    Raises:
        KeyError: there is none of that id.
        ToolError: the file can't be written.
    """
    data = await export(workspace, session)
    return await asyncio.to_thread(lambda: write_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n"))


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
