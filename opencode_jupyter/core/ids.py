"""Identifiers: ``{prefix}_`` + 12 hex digits of time + 14 base-62 characters (docs/opencode/core.md 21)."""

from __future__ import annotations

import os
import re
import threading
import time

PREFIXES = {
    "session": "ses",
    "message": "msg",
    "permission": "per",
    "question": "que",
    "part": "prt",
    "tool": "tool",
    "user": "usr",
    "pty": "pty",
}
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MAP = bytes(_ALPHABET[i % 62].encode()[0] for i in range(256))
_LENGTH = 14
_BATCH = 256
"""Ids whose random characters are taken from the system at once: each time is a system call."""
_lock = threading.Lock()
_last_ms = 0
_counter = 0
_random = ""
_used = 0


def create(kind: str, *, descending: bool = False, timestamp: int | None = None) -> str:
    """Make a new id of a kind in `PREFIXES`.

    Ascending ids of one process sort by creation; `descending` ones (OpenCode's sessions) sort newest first.
    """
    global _last_ms, _counter, _random, _used
    prefix = PREFIXES[kind]
    with _lock:
        now = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        if timestamp is None and now < _last_ms:
            now = _last_ms  # a clock that steps back must not break the order
        if now != _last_ms:
            _last_ms, _counter = now, 0
        _counter += 1
        value = now * 4096 + _counter
        start, _used = _used, _used + _LENGTH
        tail = _random[start:_used]
        if not tail:
            _random = os.urandom(_BATCH * _LENGTH).translate(_MAP).decode()
            tail, _used = _random[:_LENGTH], _LENGTH
    if descending:
        value = ~value
    return f"{prefix}_{value & 0xFFFFFFFFFFFF:012x}{tail}"


def _forget_random() -> None:
    """A forked child must not make the ids that its parent makes."""
    global _random, _lock
    _random, _lock = "", threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_random)


def ascending(kind: str, id: str | None = None) -> str:
    """A new ascending id, or `id` after a check of its prefix.

    Raises:
        ValueError: `id` has another prefix.
    """
    if id is None:
        return create(kind)
    if not id.startswith(PREFIXES[kind]):
        raise ValueError(f"ID {id} does not start with {PREFIXES[kind]}")
    return id


def timestamp(identifier: str) -> int:
    """Milliseconds modulo 2**36 held by an ascending id; compare only with a value made the same way."""
    return int(identifier.split("_", 1)[1][:12], 16) // 4096


def clean_tool_id(name: str) -> str:
    """A name in the characters that every provider takes in a tool's id."""
    return _NOT_IN_IDS.sub("_", name)
