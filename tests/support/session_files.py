"""Sessions for tests: those that a real release exported, and generated ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

_FOLDER = Path(__file__).parents[1] / "data" / "sessions"
RECORDED = sorted(file for file in _FOLDER.glob("*.json") if not file.stem.endswith("_script"))

_NAMES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_words = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too
_moments = st.integers(1, 2**52)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)
_records = st.dictionaries(_words, _json, max_size=3)


_later = st.just({}) | _json.map(lambda value: {"fromLater": value})
"""Nothing, or a key of a later release, which may be null."""


def recorded(name: str) -> dict[str, Any]:
    """A session that a real release exported."""
    session_data: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text())
    return session_data


def id_of(prefix: str, number: int) -> str:
    """An id in OpenCode's form; those of one kind sort by their number."""
    digits = "".join(_NAMES[number // 62**k % 62] for k in reversed(range(14)))
    return f"{prefix}_{number:012x}{digits}"


def _span(draw: st.DrawFn) -> dict[str, Any]:
    start = draw(_moments)
    return {"start": start, "end": start + draw(st.integers(0, 10_000)), **draw(_later)}


@st.composite
def _state(draw: st.DrawFn, owner: dict[str, str], number: int) -> dict[str, Any]:
    arguments = draw(_records)
    if draw(st.booleans()):
        failed = {"status": "error", "input": arguments, "error": draw(_words), "time": _span(draw), **draw(_later)}
        return {**failed, **({"metadata": draw(_records)} if draw(st.booleans()) else {})}
    done: dict[str, Any] = {
        "status": "completed",
        "input": arguments,
        "output": draw(_words),
        "title": draw(_words),
        "metadata": draw(_records),
        "time": _span(draw),
        **draw(_later),
    }
    if draw(st.booleans()):
        done["attachments"] = []
    elif draw(st.booleans()):
        file = {**draw(_later), **owner, "id": id_of("prt", number + 50), "type": "file", "mime": "image/png"}
        done["attachments"] = [{**file, "url": "data:image/png;base64,eA=="}]
    return done


@st.composite
def _part(draw: st.DrawFn, owner: dict[str, str], number: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(("text", "reasoning", "file", "tool", "step-start", "patch", "compaction", "new-kind")))
    part: dict[str, Any] = {**draw(_later), **owner, "id": id_of("prt", number), "type": kind}
    if kind == "text":
        return {**part, "text": draw(_words), "synthetic": draw(st.booleans())}
    if kind == "reasoning":
        return {**part, "text": draw(_words), "time": _span(draw), "metadata": draw(_records)}
    if kind == "file":
        return {**part, "mime": "text/plain", "filename": draw(_words), "url": "data:text/plain;base64,eA=="}
    if kind == "tool":
        return {**part, "callID": draw(_words), "tool": draw(_words), "state": draw(_state(owner, number))}
    if kind == "step-start":
        return {**part, "snapshot": draw(_words)}
    if kind == "patch":
        return {**part, "hash": draw(_words), "files": draw(st.lists(_words, max_size=2))}
    if kind == "compaction":
        return {**part, "auto": draw(st.booleans())}
    return {**part, "whatever": draw(_json)}


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    """A whole session, as a real release could export it, with parts and keys of a later one."""
    number = draw(st.integers(1, 2**20))
    id, first = id_of("ses", number), number * 10_000
    created = draw(_moments)
    info: dict[str, Any] = {
        "id": id,
        "slug": draw(_words),
        "projectID": draw(st.sampled_from(("global", "abc"))),
        "directory": "/elsewhere",
        "title": draw(_words),
        "version": draw(_words.filter(bool)),
        "time": {"created": created, "updated": created + draw(st.integers(0, 10**6)), **draw(_later)},
        "cost": 10.0,
        "tokens": {"input": 10**6, "output": 10**6, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        **draw(_later),
    }
    if draw(st.booleans()):
        info["model"] = {"id": draw(_words), "providerID": "fake", **draw(_later)}
    if draw(st.booleans()):
        info["permission"] = []
    messages = []
    question_id = ""
    for index in range(draw(st.integers(0, 4))):
        owner = {"sessionID": id, "messageID": id_of("msg", first + index)}
        agent = draw(_words.filter(bool))
        base: dict[str, Any] = {"id": owner["messageID"], "sessionID": id, "agent": agent, **draw(_later)}
        if not question_id or draw(st.booleans()):
            question_id = base["id"]
            model = {"providerID": "fake", "modelID": draw(_words), **draw(_later)}
            made = {**base, "role": "user", "time": {"created": created + index}, "model": model}
        else:
            made = {
                **base,
                "role": "assistant",
                "time": {"created": created + index, "completed": created + index},
                "parentID": question_id,
                "mode": "build",
                "path": {"cwd": "/elsewhere", "root": "/elsewhere"},
                "cost": 0.5,
                "tokens": {"input": 3, "output": 4, "reasoning": 0, "cache": {"read": 1, "write": 0}},
                "modelID": "m",
                "providerID": "fake",
            }
        parts = [draw(_part(owner, first + 100 * index + n)) for n in range(draw(st.integers(0, 4)))]
        messages.append({"info": made, "parts": parts})
    return {"info": info, "messages": messages}


def session(
    number: int, count: int, directory: str = "/x", every: int = 1
) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """A session with `count` messages; each of `every` has three parts, one of them a call."""
    id, first = id_of("ses", number), number * 10_000
    when = {"created": number, "updated": number}
    info = {"id": id, "title": f"number {number}", "directory": directory, "time": when, "version": "x"}
    messages, parts = [], []
    for n in range(count):
        owner = {"sessionID": id, "messageID": id_of("msg", first + n)}
        answer: dict[str, Any] = {
            "role": "assistant",
            "parentID": owner["messageID"],
            "agent": "build",
            "time": {"created": number},
        }
        messages.append({"id": owner["messageID"], "sessionID": id, "cost": 0.5, **answer})
        if n % every:
            continue
        at = (first + n) * 4
        done: dict[str, Any] = {
            "status": "completed",
            "input": {"a": 1},
            "output": "out " * 50,
            "title": "t",
            "metadata": {},
        }
        call: dict[str, Any] = {"callID": f"c{n}", "tool": "read", "state": {**done, "time": {"start": 1, "end": 2}}}
        parts.append({**owner, "id": id_of("prt", at), "type": "step-start"})
        parts.append({**owner, "id": id_of("prt", at + 1), "type": "text", "text": "words " * 20})
        parts.append({**owner, "id": id_of("prt", at + 2), "type": "tool", **call})
    return info, messages, parts
