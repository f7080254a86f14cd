"""Answers and results as the data of a recording, without secrets; and the text of a recording."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ModelError
from ..events import FinishReason, Usage
from .answers import Call, Part, ReasoningPart, TextPart, failure
from .replay import fingerprint
from .script_conversation import CallResult
from .scrub import Scrubber
from .streaming import argument_text
from .yaml_document import dump

VERSION = 1
"""The version of the format of recordings."""
KEPT_CHARS = 6000
"""Characters of a result that a recording keeps; its hash is of the whole."""
HEADER = """\
# A recorded conversation. It is played again without a key by: %%agent -m scripted:THIS-FILE
# Secrets, the home folder and the user's name were taken out. Docs: scripted-models.md
"""
Data = dict[str, Any]


def turn_data(
    parts: Sequence[Part],
    scrubber: Scrubber,
    *,
    usage: Usage | None = None,
    finish: FinishReason | None = None,
    error: ModelError | None = None,
    broken: bool = False,
) -> Data:
    """An entry of ``turns:``.

    Args:
        parts: of the answer, arguments as JSON text.
        scrubber: removes secrets.
        usage: tokens, if they are known.
        finish: why the answer stopped; None if it broke off.
        error: with which the answer ended.
        broken: whether the last part was incomplete.
    """
    data: Data = {}
    entries = [_part(part, scrubber) for part in parts]
    kinds = [(ReasoningPart, TextPart, Call).index(type(part)) for part in parts]
    if kinds == sorted(kinds):
        for kind, key in enumerate(("reasoning", "text")):
            texts = [part[key] for part, other in zip(entries, kinds, strict=True) if other == kind]
            data |= {key: texts if len(texts) > 1 else texts[0]} if texts else {}
        data |= {"calls": entries[kinds.index(2) :]} if 2 in kinds else {}
    else:
        data["parts"] = entries
    if not entries and error is None:
        data["text"] = ""
    if usage is not None:
        names = ("input", "output", "reasoning", "cache_read", "cache_write", "total")
        data["usage"] = {name: value for name in names if (value := getattr(usage, name))}
    if finish is not None and finish != ("tool-calls" if 2 in kinds else "stop"):
        data["finish"] = finish
    if error is not None:
        data["error"] = _error(error, scrubber)
        data |= {"cut": "end"} if broken else {}
    return data


def leaves_answer(turn: Data) -> bool:
    """True if a turn of a recording leaves an answer in the conversation, as `Say.fails`."""
    if "error" not in turn:
        return True
    calls = sum(isinstance(part, dict) and "tool" in part for part in turn.get("parts") or turn.get("calls") or ())
    retryable = failure(turn["error"]["kind"]).times is not None or turn["error"].get("times") == 1
    return retryable and calls > ("cut" in turn)


def results_data(results: Iterable[CallResult], scrubber: Scrubber) -> list[Data]:
    """Entries of ``results:``: the text, shortened, and a hash of the whole."""
    entries = []
    for result in results:
        text = scrubber.text(result.output)
        data = {"tool": result.tool, "output": text[:KEPT_CHARS], "hash": fingerprint(text)}
        entries.append(
            data | ({"failed": True} if result.failed else {}) | ({"cut": True} if len(text) > KEPT_CHARS else {})
        )
    return entries


def script_text(head: Mapping[str, Any], prompts: Sequence[Data], agents: Mapping[str, Sequence[Data]]) -> str:
    """The text of a recording.

    Entries without turns are left out.
    """
    bodies = {name: {"prompts": [entry for entry in entries if entry["turns"]]} for name, entries in agents.items()}
    data = {**head, "prompts": [entry for entry in prompts if entry["turns"]], "agents": bodies}
    return HEADER + dump(data if bodies else {key: value for key, value in data.items() if key != "agents"})


def _part(part: Part, scrubber: Scrubber) -> Data:
    if isinstance(part, TextPart):
        return {"text": scrubber.template_text(part.text)}
    if isinstance(part, ReasoningPart):
        return {"reasoning": scrubber.template_text(part.text)}
    text = scrubber.arguments(argument_text(part))
    arguments: Any = text
    try:
        value = json.loads(text)
        if isinstance(value, dict) and json.dumps(value, ensure_ascii=False) == text:
            arguments = value  # readable, and sent as it was
    except ValueError:
        pass
    return {"tool": part.tool, **({"id": part.id} if part.id else {}), "arguments": arguments}


def _error(error: ModelError, scrubber: Scrubber) -> Data:
    data: Data = {"kind": error.kind, "message": scrubber.text(str(error))}
    if error.status is not None:
        data["status"] = error.status
    if error.retry_after is not None:
        data["retry_after"] = error.retry_after
    if error.retryable and failure(error.kind).times is None:
        data["times"] = 1
    return data
