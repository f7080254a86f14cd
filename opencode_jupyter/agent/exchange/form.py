"""What a session looks like in OpenCode's export format, as release 1.18.33 writes and reads it.

``{"info": session, "messages": [{"info": message, "parts": [part, ...]}, ...]}``

Older releases leave some keys out, so only what a session can't be understood without is required here; a wrong type is
an error everywhere. Keys and types of parts that are not known here pass, since a later release may have written them.
"""

from __future__ import annotations

from typing import Any

from .checks import (
    Each,
    Keys,
    SessionFileError,
    anything,
    flag,
    identifier,
    moment,
    number,
    one_of,
    record,
    text,
    wrong,
)

SESSION, MESSAGE, PART = identifier("ses"), identifier("msg"), identifier("prt")

_SPAN = Keys({"start": moment}, {"end": moment})
_TOKENS = Keys(
    {"input": number, "output": number},
    {"total": number, "reasoning": number, "cache": Keys({}, {"read": number, "write": number})},
)
_MODEL = Keys({"providerID": text, "modelID": text}, {"variant": text})
_OWNED = {"id": anything, "sessionID": anything, "messageID": anything, "type": anything}
_FILE = Keys({"mime": text, "url": text}, {"filename": text, "source": record, **_OWNED})
_RULE = Keys({"permission": text, "pattern": text, "action": one_of("allow", "deny", "ask")})

INFO = Keys(
    {
        "id": SESSION,
        "title": text,
        "time": Keys({"created": moment}, {"updated": moment, "compacting": anything, "archived": anything}),
    },
    {
        "slug": text,
        "projectID": text,
        "directory": text,
        "path": text,
        "parentID": SESSION,
        "agent": text,
        "model": Keys({"id": text, "providerID": text}, {"variant": text}),
        "version": text,
        "summary": record,
        "cost": number,
        "tokens": _TOKENS,
        "metadata": record,
        "workspaceID": anything,
        "share": anything,
        "permission": Each(_RULE),
        "revert": Keys({"messageID": MESSAGE}, {"partID": PART, "snapshot": text, "diff": text}),
    },
)

_ERROR_DATA = Keys(
    {},
    {
        "message": anything,
        "providerID": anything,
        "retries": anything,
        "ref": anything,
        "statusCode": anything,
        "isRetryable": anything,
        "responseHeaders": anything,
        "responseBody": anything,
        "metadata": anything,
    },
)

USER = Keys(
    {"time": Keys({"created": moment})},
    {
        "agent": text,
        "model": _MODEL,
        "system": text,
        "tools": record,
        "format": record,
        "summary": anything,
        "variant": anything,
    },
)
ASSISTANT = Keys(
    {"time": Keys({"created": moment}, {"completed": moment})},
    {
        "parentID": text,
        "agent": text,
        "mode": text,
        "providerID": text,
        "modelID": text,
        "path": Keys({}, {"cwd": text, "root": text}),
        "cost": number,
        "tokens": _TOKENS,
        "finish": text,
        "error": Keys({"name": text}, {"data": _ERROR_DATA}),
        "variant": text,
        "summary": anything,
        "structured": anything,
    },
)

STATES: dict[str, Keys] = {
    "pending": Keys({"input": record}, {"raw": text}),
    "running": Keys({"input": record}, {"title": text, "metadata": record, "time": Keys({"start": moment})}),
    "completed": Keys(
        {"input": record, "output": text, "time": Keys({"start": moment, "end": moment}, {"compacted": moment})},
        {"title": text, "metadata": record, "attachments": Each(_FILE)},
    ),
    "error": Keys(
        {"input": record, "error": text, "time": Keys({"start": moment, "end": moment})}, {"metadata": record}
    ),
}

PARTS: dict[str, Keys] = {
    "text": Keys({"text": text}, {"synthetic": flag, "ignored": flag, "time": _SPAN, "metadata": record}),
    "reasoning": Keys({"text": text}, {"time": _SPAN, "metadata": record}),
    "file": _FILE,
    "tool": Keys({"callID": text, "tool": text, "state": Keys({"status": one_of(*STATES)})}, {"metadata": record}),
    "step-start": Keys({}, {"snapshot": text}),
    "step-finish": Keys({}, {"reason": text, "snapshot": text, "cost": number, "tokens": _TOKENS}),
    "snapshot": Keys({"snapshot": text}),
    "patch": Keys({"hash": text, "files": Each(text)}),
    "agent": Keys({"name": text}, {"source": record}),
    "subtask": Keys({"prompt": text, "description": text, "agent": text}, {"model": _MODEL, "command": text}),
    "compaction": Keys({}, {"auto": flag, "overflow": flag, "tail_start_id": MESSAGE}),
    "retry": Keys({"attempt": number, "error": record}, {"time": Keys({"created": moment})}),
}
"""The parts that 1.18.33 knows, by their type."""


def check_session(data: Any) -> None:
    """See that `data` is a session in OpenCode's export format.

    Raises:
        SessionFileError: it is not; the message names the place.
    """
    if not isinstance(data, dict) or "info" not in data or "messages" not in data:
        shown = f"keys {', '.join(map(str, list(data)[:6])) or 'none'}" if isinstance(data, dict) else "no object"
        raise SessionFileError(
            f"This is not an OpenCode session: it must be an object with info and messages, but it has {shown}. "
            "`opencode export` and `%sessions export` write such files."
        )
    INFO(data["info"], "info")
    Each(record)(data["messages"], "messages")
    seen: dict[str, str] = {}
    for index, message in enumerate(data["messages"]):
        where = f"messages[{index}]"
        Keys({"info": record, "parts": Each(record)})(message, where)
        _check_message(message["info"], data["info"]["id"], f"{where}.info", seen)
        for place, part in enumerate(message["parts"]):
            _check_part(part, message["info"], f"{where}.parts[{place}]", seen)


def _check_message(info: dict[str, Any], session: str, where: str, seen: dict[str, str]) -> None:
    Keys({"id": MESSAGE, "sessionID": SESSION, "role": one_of("user", "assistant")})(info, where)
    if info["sessionID"] != session:
        raise wrong(f"{where}.sessionID", f"the session's id {session}", info["sessionID"])
    _once(info["id"], where, seen)
    (USER if info["role"] == "user" else ASSISTANT)(info, where)


def _check_part(part: dict[str, Any], message: dict[str, Any], where: str, seen: dict[str, str]) -> None:
    Keys({"id": PART, "type": text})(part, where)
    _once(part["id"], where, seen)
    for key, owner in (("sessionID", message["sessionID"]), ("messageID", message["id"])):
        if part.get(key, owner) != owner:
            raise wrong(f"{where}.{key}", f"the id {owner} of what it is in", part[key])
    known = PARTS.get(part["type"])
    if known is None:
        return
    known(part, where)
    if part["type"] == "tool":
        STATES[part["state"]["status"]](part["state"], f"{where}.state")


def _once(id: str, where: str, seen: dict[str, str]) -> None:
    if id in seen:
        raise SessionFileError(f"{where}.id: {id} is there twice, also at {seen[id]}.")
    seen[id] = where
