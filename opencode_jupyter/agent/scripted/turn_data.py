"""What a model said as the data of a script's turn, secrets taken out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ModelError
from ..events import FinishReason, Usage
from .parts import Call, Part, Thought, Words, failure
from .replay import fingerprint
from .scrub import Scrubber
from .seen import Result
from .streaming import written
from .writing import KEPT, WrittenTurn


def turn_of(
    parts: Sequence[Part],
    scrubber: Scrubber,
    *,
    usage: Usage | None = None,
    finish: FinishReason | None = None,
    error: ModelError | None = None,
    broken: bool = False,
) -> WrittenTurn:
    """A turn.

    Args:
        parts: what was said, arguments as JSON text.
        scrubber: takes out what is not to be kept.
        usage: tokens, if they are known.
        finish: why it stopped; None if it broke off.
        error: what it broke off with.
        broken: whether the last part was not whole.
    """
    data: dict[str, Any] = {}
    made = [_part(part, scrubber) for part in parts]
    order = [0 if isinstance(part, Thought) else 1 if isinstance(part, Words) else 2 for part in parts]
    if order == sorted(order):
        for kind, key in enumerate(("reasoning", "text", "calls")):
            found = [one for one, place in zip(made, order, strict=True) if place == kind]
            if kind < 2:
                found = [one[key] for one in found]
            if found:
                data[key] = found if kind == 2 or len(found) > 1 else found[0]
    else:
        data["parts"] = made
    if not made and error is None:
        data["text"] = ""
    if usage is not None:
        numbers = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
        data["usage"] = {name: value for name in numbers if (value := getattr(usage, name))}
    if finish is not None and finish != ("tool-calls" if 2 in order else "stop"):
        data["finish"] = finish
    answered = True
    if error is not None:
        data["error"] = _error(error, scrubber)
        if broken:
            data["cut"] = "end"
        whole = parts[:-1] if broken else parts
        # As `Say.fails`: what had been called already stays in the conversation.
        answered = error.retryable and any(isinstance(part, Call) for part in whole)
    return WrittenTurn(data, answered)


def results_of(results: Iterable[Result], scrubber: Scrubber) -> list[dict[str, Any]]:
    """What came back from calls: the text, cut, and a hash of the whole."""
    found = []
    for result in results:
        text = scrubber.text(result.output)
        data: dict[str, Any] = {"tool": result.tool, "output": text[:KEPT], "hash": fingerprint(text)}
        if result.failed:
            data["failed"] = True
        if len(text) > KEPT:
            data["cut"] = True
        found.append(data)
    return found


def _part(part: Part, scrubber: Scrubber) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"text": scrubber.words(part.text)}
    if isinstance(part, Thought):
        return {"reasoning": scrubber.words(part.text)}
    text = scrubber.arguments(written(part))
    arguments: Any = text
    try:
        value = json.loads(text)
        if isinstance(value, dict) and json.dumps(value, ensure_ascii=False) == text:
            arguments = value  # read as it is meant, and goes out as it was
    except ValueError:
        pass
    data = {"tool": part.tool, "id": part.id, "arguments": arguments}
    return {key: value for key, value in data.items() if key != "id" or value}


def _error(error: ModelError, scrubber: Scrubber) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": error.kind, "message": scrubber.text(str(error))}
    if error.status is not None:
        data["status"] = error.status
    if error.retry_after is not None:
        data["retry_after"] = error.retry_after
    if error.retryable and failure(error.kind).times is None:
        data["times"] = 1
    return data
