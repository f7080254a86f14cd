"""What OpenCode 1.18.33 insists on in a file that it imports, by the schema that the release itself carries."""

from __future__ import annotations

from typing import Any

_TOKENS = {"input": (int, float), "output": (int, float), "reasoning": (int, float), "cache": dict}
_SESSION = {"id": str, "slug": str, "projectID": str, "directory": str, "title": str, "version": str, "time": dict}
_USER = {"id": str, "sessionID": str, "role": str, "time": dict, "agent": str, "model": dict}
_ASSISTANT = {
    "id": str,
    "sessionID": str,
    "role": str,
    "time": dict,
    "parentID": str,
    "modelID": str,
    "providerID": str,
    "mode": str,
    "agent": str,
    "path": dict,
    "cost": (int, float),
    "tokens": dict,
}
_PARTS: dict[str, dict[str, Any]] = {
    "text": {"text": str},
    "reasoning": {"text": str, "time": dict},
    "file": {"mime": str, "url": str},
    "tool": {"callID": str, "tool": str, "state": dict},
    "step-start": {},
    "step-finish": {"reason": str, "cost": (int, float), "tokens": dict},
    "patch": {"hash": str, "files": list},
    "compaction": {"auto": bool},
    "subtask": {"prompt": str, "description": str, "agent": str},
    "agent": {"name": str},
    "retry": {"attempt": int, "error": dict, "time": dict},
    "snapshot": {"snapshot": str},
}
_STATES: dict[str, dict[str, Any]] = {
    "pending": {"input": dict, "raw": str},
    "running": {"input": dict, "time": dict},
    "completed": {"input": dict, "output": str, "title": str, "metadata": dict, "time": dict},
    "error": {"input": dict, "error": str, "time": dict},
}
_STRICT = frozenset({"title", "metadata", "synthetic", "time", "snapshot", "filename", "variant", "finish", "summary"})
"""Keys that may be absent, but not null."""


def assert_importable(data: dict[str, Any]) -> None:
    """See that a release would take a session, and that it would show its messages and parts in the same order."""
    _has(data["info"], _SESSION, "info")
    assert data["info"]["id"].startswith("ses")
    if "model" in data["info"]:
        _has(data["info"]["model"], {"id": str, "providerID": str}, "info.model")
    if "tokens" in data["info"]:
        _has(data["info"]["tokens"], _TOKENS, "info.tokens")
    ids = [message["info"]["id"] for message in data["messages"]]
    assert ids == sorted(set(ids))
    times = [message["info"]["time"]["created"] for message in data["messages"]]
    assert times == sorted(times)
    for message in data["messages"]:
        info = message["info"]
        assert info["id"].startswith("msg")
        if info["role"] == "user":
            _has(info, _USER, "user")
            _has(info["model"], {"providerID": str, "modelID": str}, "user.model")
        else:
            _has(info, _ASSISTANT, "assistant")
            assert info["parentID"].startswith("msg")
            assert info["parentID"] in ids
            _has(info["tokens"], _TOKENS, "assistant.tokens")
            _has(info["path"], {"cwd": str, "root": str}, "assistant.path")
        parts = [part["id"] for part in message["parts"]]
        assert parts == sorted(set(parts))
        for part in message["parts"]:
            assert part["id"].startswith("prt")
            assert (part["sessionID"], part["messageID"]) == (data["info"]["id"], info["id"])
            _has(part, _PARTS[part["type"]], part["type"])
            if part["type"] == "tool":
                _has(part["state"], _STATES[part["state"]["status"]], f"{part['tool']}.state")
                for file in part["state"].get("attachments", ()):
                    _has(file, {"id": str, "sessionID": str, "messageID": str, "mime": str, "url": str}, "attachment")
                    assert file["type"] == "file"
                    assert file["id"].startswith("prt")


def _has(data: dict[str, Any], kinds: dict[str, Any], where: str) -> None:
    for key, kind in kinds.items():
        assert isinstance(data.get(key), kind), f"{where}.{key} is {data.get(key)!r}"
    for key in _STRICT & set(data):
        assert data[key] is not None, f"{where}.{key} is null"
    if isinstance(data.get("time"), dict):
        for key, moment in data["time"].items():
            assert isinstance(moment, int), f"{where}.time.{key} is {moment!r}"
            assert moment >= 0
