"""What a session looks like in OpenCode's export format, as release 1.18.33 writes and reads it.

``{"info": session, "messages": [{"info": message, "parts": [part, ...]}, ...]}``

Older releases leave some keys out, so only what a session can't be understood without is required here; a wrong type is
an error everywhere. Keys and types of parts that are not known here pass, since a later release may have written them.
"""

from __future__ import annotations

from typing import Any

from .checks import (
    Check,
    SessionFileError,
    each,
    flag,
    identifier,
    keys,
    moment,
    number,
    one_of,
    record,
    text,
    wrong,
)

SESSION, MESSAGE, PART = identifier("ses"), identifier("msg"), identifier("prt")

_SPAN = keys({"start": moment}, {"end": moment})
_TOKENS = keys(
    {"input": number, "output": number},
    {"total": number, "reasoning": number, "cache": keys({}, {"read": number, "write": number})},
)
_MODEL = keys({"providerID": text, "modelID": text}, {"variant": text})
_FILE = keys({"mime": text, "url": text}, {"filename": text, "source": record})
_RULE = keys({"permission": text, "pattern": text, "action": one_of("allow", "deny", "ask")})

INFO = keys(
    {"id": SESSION, "title": text, "time": keys({"created": moment}, {"updated": moment})},
    {
        "slug": text,
        "projectID": text,
        "directory": text,
        "path": text,
        "parentID": SESSION,
        "agent": text,
        "model": keys({"id": text, "providerID": text}, {"variant": text}),
        "version": text,
        "summary": record,
        "cost": number,
        "tokens": _TOKENS,
        "metadata": record,
        "permission": each(_RULE),
        "revert": keys({"messageID": MESSAGE}, {"partID": PART, "snapshot": text, "diff": text}),
    },
)

_USER = keys(
    {"time": keys({"created": moment})},
    {"agent": text, "model": _MODEL, "system": text, "tools": record, "format": record},
)
_ASSISTANT = keys(
    {"time": keys({"created": moment}, {"completed": moment})},
    {
        "parentID": text,
        "agent": text,
        "mode": text,
        "providerID": text,
        "modelID": text,
        "path": keys({}, {"cwd": text, "root": text}),
        "cost": number,
        "tokens": _TOKENS,
        "finish": text,
        "error": keys({"name": text}, {"data": record}),
        "variant": text,
    },
)

_STATES: dict[str, Check] = {
    "pending": keys({"input": record}, {"raw": text}),
    "running": keys({"input": record}, {"title": text, "metadata": record, "time": keys({"start": moment})}),
    "completed": keys(
        {"input": record, "output": text, "time": keys({"start": moment, "end": moment}, {"compacted": moment})},
        {"title": text, "metadata": record, "attachments": each(_FILE)},
    ),
    "error": keys(
        {"input": record, "error": text, "time": keys({"start": moment, "end": moment})}, {"metadata": record}
    ),
}

_PARTS: dict[str, Check] = {
    "text": keys({"text": text}, {"synthetic": flag, "ignored": flag, "time": _SPAN, "metadata": record}),
    "reasoning": keys({"text": text}, {"time": _SPAN, "metadata": record}),
    "file": _FILE,
    "tool": keys({"callID": text, "tool": text, "state": keys({"status": one_of(*_STATES)})}, {"metadata": record}),
    "step-start": keys({}, {"snapshot": text}),
    "step-finish": keys({}, {"reason": text, "snapshot": text, "cost": number, "tokens": _TOKENS}),
    "snapshot": keys({"snapshot": text}),
    "patch": keys({"hash": text, "files": each(text)}),
    "agent": keys({"name": text}, {"source": record}),
    "subtask": keys({"prompt": text, "description": text, "agent": text}, {"model": _MODEL, "command": text}),
    "compaction": keys({}, {"auto": flag, "overflow": flag, "tail_start_id": MESSAGE}),
    "retry": keys({"attempt": number, "error": record}, {"time": keys({"created": moment})}),
}
PART_TYPES = frozenset(_PARTS)
"""Types of parts that 1.18.33 knows."""


def check_session(data: Any) -> None:
    """See that `data` is a session in OpenCode's export format.

    Raises:
        SessionFileError: it is not; the message names the place.
    """
    if not isinstance(data, dict) or "info" not in data or "messages" not in data:
        shown = f"keys {', '.join(map(str, list(data)[:6])) or 'none'}" if isinstance(data, dict) else "no object"
        raise SessionFileError(
            f"This is no session of OpenCode: an object with info and messages is wanted, this has {shown}. "
            "`opencode export` and `%sessions export` write such files."
        )
    INFO(data["info"], "info")
    each(record)(data["messages"], "messages")
    seen: dict[str, str] = {}
    for index, message in enumerate(data["messages"]):
        where = f"messages[{index}]"
        keys({"info": record, "parts": each(record)})(message, where)
        _check_message(message["info"], data["info"]["id"], f"{where}.info", seen)
        for place, part in enumerate(message["parts"]):
            _check_part(part, message["info"], f"{where}.parts[{place}]", seen)


def _check_message(info: dict[str, Any], session: str, where: str, seen: dict[str, str]) -> None:
    keys({"id": MESSAGE, "sessionID": SESSION, "role": one_of("user", "assistant")})(info, where)
    if info["sessionID"] != session:
        raise wrong(f"{where}.sessionID", f"the session's id {session}", info["sessionID"])
    _once(info["id"], where, seen)
    (_USER if info["role"] == "user" else _ASSISTANT)(info, where)


def _check_part(part: dict[str, Any], message: dict[str, Any], where: str, seen: dict[str, str]) -> None:
    keys({"id": PART, "type": text})(part, where)
    _once(part["id"], where, seen)
    for key, owner in (("sessionID", message["sessionID"]), ("messageID", message["id"])):
        if part.get(key, owner) != owner:
            raise wrong(f"{where}.{key}", f"the id {owner} of what it is in", part[key])
    known = _PARTS.get(part["type"])
    if known is None:
        return
    known(part, where)
    if part["type"] == "tool":
        _STATES[part["state"]["status"]](part["state"], f"{where}.state")


def _once(id: str, where: str, seen: dict[str, str]) -> None:
    if id in seen:
        raise SessionFileError(f"{where}.id: {id} is there twice, also at {seen[id]}.")
    seen[id] = where
