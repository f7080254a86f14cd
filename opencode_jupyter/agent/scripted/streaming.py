"""A turn as a provider would stream it: words and pieces of JSON, at the pace of a quick model."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import AsyncGenerator, Collection, Iterator
from typing import Any

from ..errors import ModelError
from ..events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from .answers import Call, Cut, ReasoningPart, Say, failure

SPEED = 30.0
"""Milliseconds between two pieces by default."""
SPEED_VARIABLE = "OPENCODE_JUPYTER_SCRIPT_SPEED"
"""The environment variable that overrides a script's speed."""
PACED_PIECES = 100
"""A turn takes at most the time of this many pieces."""
MOST_PIECES = 200
"""Pieces of one part; those of a longer text are larger."""
YIELD_EVERY = 50
"""Pieces between two turns of the event loop where there is no delay."""
_WORD = re.compile(r"\S{1,24}\s*|\s+")
_JSON_PIECE = 12


def split_words(text: str) -> list[str]:
    """A text in words, each with the space after it; very long ones in pieces, very many together."""
    return _join_pieces(_WORD.findall(text))


def json_pieces(text: str) -> list[str]:
    """A JSON text in pieces regardless of its grammar, as providers send it."""
    return _join_pieces([text[start : start + _JSON_PIECE] for start in range(0, len(text), _JSON_PIECE)])


def _join_pieces(pieces: list[str]) -> list[str]:
    size = math.ceil(len(pieces) / MOST_PIECES)
    if size <= 1:
        return pieces
    return ["".join(pieces[start : start + size]) for start in range(0, len(pieces), size)]


def piece_interval(script: float | None) -> float:
    """Seconds between two pieces: the environment's, else the script's, else the default.

    Raises:
        ModelError: kind ``setup``: the environment's is no number.
    """
    text = os.environ.get(SPEED_VARIABLE, "").strip()
    if not text:
        return (SPEED if script is None else script) / 1000
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise ModelError(
            f"{SPEED_VARIABLE} must be milliseconds, 0 or more, not {text!r}", "setup", provider="scripted"
        )
    return value / 1000


def argument_text(call: Call) -> str:
    """A call's arguments as they are sent; a text is sent unchanged."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False, default=str)


def call_ids(calls: tuple[Call, ...], used: Collection[str], turn: int) -> list[str]:
    """An id for each call, new to the conversation: its own if possible, else a generated one.

    `used` are ids that the conversation has; `turn` is the model's turn in it, from 1.
    """
    taken = set(used)
    ids = []
    for index, call in enumerate(calls, 1):
        id = call.id if call.id and call.id not in taken else f"call_{turn}_{index}"
        while id in taken:
            id += "_"
        taken.add(id)
        ids.append(id)
    return ids


def events(turn: Say, ids: list[str]) -> Iterator[Event]:
    """The events of a turn's parts, without the last event. A part that is cut has no end."""
    calls = iter(ids)
    for index, part in enumerate(turn.parts):
        cut = turn.cut if index == len(turn.parts) - 1 else ""
        if isinstance(part, Call):
            id, arguments = next(calls), argument_text(part)
            yield CallStart(index, id, part.tool)
            yield from (CallDelta(index, piece) for piece in _before_cut(json_pieces(arguments), cut))
            if not cut:
                yield CallEnd(index, id, part.tool, arguments)
            continue
        start, delta, end = _THOUGHT_EVENTS if isinstance(part, ReasoningPart) else _TEXT_EVENTS
        yield start(index)
        yield from (delta(index, piece) for piece in _before_cut(split_words(part.text), cut))
        if not cut:
            yield end(index)


_TEXT_EVENTS = (TextStart, TextDelta, TextEnd)
_THOUGHT_EVENTS = (ReasoningStart, ReasoningDelta, ReasoningEnd)


def _before_cut(pieces: list[str], cut: Cut) -> list[str]:
    if cut != "half":
        return pieces
    if len(pieces) == 1:
        return [pieces[0][: len(pieces[0]) // 2]]
    return pieces[: len(pieces) // 2]


async def stream(
    turn: Say, *, ids: list[str], seconds: float, usage: Usage, metadata: dict[str, Any] | None
) -> AsyncGenerator[Event, None]:
    """Stream a turn.

    `seconds` pass between two pieces; 0 is no delay. Usage and metadata go into the last event.

    Raises:
        ModelError: the turn fails.
    """
    if turn.delay and seconds:
        await asyncio.sleep(turn.delay)
    turn_events = list(events(turn, ids))
    pieces = sum(isinstance(event, (TextDelta, ReasoningDelta, CallDelta)) for event in turn_events)
    pause = min(seconds, seconds * PACED_PIECES / pieces) if pieces else 0.0
    for count, event in enumerate(turn_events, 1):
        if isinstance(event, (TextDelta, ReasoningDelta, CallDelta)):
            if pause:
                await asyncio.sleep(pause)
            elif count % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        yield event
    if turn.cut or turn.failure is not None:
        raise (turn.failure or failure("cut")).error()
    yield Finish(turn.reason, usage, metadata)
