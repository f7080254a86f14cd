"""A call as the card's JSON: the contract with ``labextension/src/card/token.ts`` (there every field is described)."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from typing import Any

from ..core.permission import Decision, PermissionRequest, Rule
from ..core.state import Completed, Failed, Running, ToolPart
from .served import files_url

VERSION = 1
TAIL_CHARS = 16_000
"""Live output kept in the card."""
TAIL_LINES = 200
VALUE_CHARS = 2_000
"""A longer value of the input is cut while the call runs; the settled card keeps what the model sees."""
DIFF_CHARS = 200_000
COUNT_LINES_UP_TO = 64 * 1024 * 1024
"""Bytes; the lines of a bigger spill file are not counted."""

_WRAPPER = re.compile(r"<path>[^\n]*</path>\n<type>\w+</type>\n<(content|entries)>\n")


@dataclass(slots=True)
class AskView:
    """One pending ask as the card shows it."""

    request: PermissionRequest
    digest: str
    position: tuple[int, int] = (1, 1)


@dataclass(slots=True)
class Extras:
    """What the card knows beyond the part."""

    ask: AskView | None = None
    waited: float = 0.0
    children: list[dict[str, Any]] = field(default_factory=list)


def card_part(part: ToolPart, extras: Extras | None = None, *, live: bool = False) -> dict[str, Any]:
    """The card's JSON for a part.

    Args:
        part: the call.
        extras: the pending ask and nested calls.
        live: cut long input values, and give the tail of the output in place of the whole.
    """
    extras = extras or Extras()
    state = part.state
    wire = state.to_wire()
    wire["input"] = _cut_values(state.input) if live else state.input
    metadata = dict(wire.pop("metadata", None) or {})
    diff = metadata.pop("diff", None)
    metadata.pop("filediff", None)
    output = metadata.pop("output", None)
    ui: dict[str, Any] = {
        "label": label_of(part),
        "by": part.by,
        "waited": round((part.waited + extras.waited) * 1000),
        "decisions": [_decision(d) for d in part.decisions],
    }
    if part.outcome:
        ui["outcome"] = part.outcome
    if isinstance(state, (Running, Failed)) and isinstance(output, str) and output:
        ui["tail"] = tail(output)
    for name in ("lines", "bytes"):
        if isinstance(metadata.get(name), int):
            ui[name] = metadata[name]
    progress = metadata.pop("progress", None)
    if isinstance(progress, dict) and isinstance(state, Running):
        ui["progress"] = progress
    if isinstance(diff, str) and diff:
        ui["diff"] = diff[:DIFF_CHARS]
    if isinstance(state, Completed):
        spill = spill_of(metadata, state.output)
        if spill is not None:
            ui["spill"] = spill
        shown = shown_lines(part.tool, state.output)
        if shown is not None:
            ui["shown"] = shown
            metadata.pop("display", None)  # the same lines once more
    if extras.ask is not None:
        ui["ask"] = ask_json(extras.ask)
    if extras.children:
        ui["children"] = extras.children
    if metadata:
        wire["metadata"] = _cut_values(metadata)
    whole = {
        "v": VERSION,
        "id": part.id,
        "callID": part.call_id,
        "sessionID": part.session_id,
        "messageID": part.message_id,
        "tool": part.tool,
        "state": wire,
        "ui": ui,
    }
    return dict(_plain(whole))


def label_of(part: ToolPart) -> str:
    """What stands beside the tool's name: the title once there is one, before that the argument that tells most."""
    state = part.state
    if isinstance(state, (Completed, Running)) and state.title:
        return str(state.title)
    given = state.input if isinstance(state.input, dict) else {}
    for name in ("description", "filePath", "file_path", "command", "pattern", "path", "url", "query", "name"):
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip().splitlines()[0][:120]
    for value in given.values():
        if isinstance(value, (str, int, float)) and str(value).strip():
            return str(value).strip().splitlines()[0][:120]
    return ""


def ask_json(ask: AskView) -> dict[str, Any]:
    """The ask of a card."""
    request = ask.request
    shown: dict[str, Any] = {
        "id": request.id,
        "digest": ask.digest,
        "permission": request.permission,
        "patterns": list(request.patterns),
        "always": list(request.always),
        "asked": request.asked,
        "position": list(ask.position),
    }
    metadata = request.metadata
    for key, name in (("command", "command"), ("diff", "diff"), ("filepath", "path")):
        if isinstance(metadata.get(key), str):
            shown[name] = metadata[key][:DIFF_CHARS]
    if len(request.patterns) == 1 and str(shown.get("path", "")).endswith("/" + request.patterns[0]):
        shown["path"] = request.patterns[0]  # a file of the project reads best as the rules name it
    if request.rule is not None:
        shown["rule"] = rule_json(request.rule)
    return shown


def rule_json(rule: Rule) -> dict[str, str]:
    """A rule with where it comes from."""
    return {"permission": rule.permission, "pattern": rule.pattern, "action": rule.action, "origin": rule.origin}


def _decision(decision: Decision) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "permission": decision.permission,
        "patterns": list(decision.patterns),
        "action": decision.action,
        "by": decision.by,
    }
    if decision.reply is not None:
        shown["reply"] = decision.reply
    if decision.message:
        shown["message"] = decision.message
    if decision.rules:
        wanted = [r for r in decision.rules if r.action == decision.action] or decision.rules
        shown["rule"] = rule_json(wanted[0])
    return shown


def tail(text: str) -> str:
    """The end of a live output: at most `TAIL_LINES` lines and `TAIL_CHARS` characters."""
    text = text[-TAIL_CHARS:]
    lines = text.split("\n")
    return "\n".join(lines[-TAIL_LINES:])


def spill_of(metadata: dict[str, Any], output: str) -> dict[str, Any] | None:
    """Where the whole of a cut output is, how large it is, and the first line that was cut."""
    path = metadata.get("outputPath")
    if not metadata.get("truncated") or not isinstance(path, str):
        return None
    spill: dict[str, Any] = {"path": path, "line": _first_cut_line(metadata, output)}
    try:
        spill["bytes"] = os.stat(path).st_size
    except OSError:
        spill["bytes"] = 0
    url = files_url(path)
    if url is not None:
        spill["url"] = url
    lines = metadata.get("lines")
    spill["lines"] = lines if isinstance(lines, int) else _count_lines(path, spill["bytes"])
    return spill


def shown_lines(tool: str, output: str) -> list[int] | None:
    """Which lines of `read`'s output a person wants: those inside its ``<content>`` or ``<entries>``.

    Returns:
        The first line's index and the index after the last one; None to show all.
    """
    if tool != "read":
        return None
    head = _WRAPPER.match(output)
    if head is None:
        return None
    # A line of a file has its number in front, and no name has a slash inside: the first such line is the end.
    end = output.find(f"\n</{head[1]}>", head.end() - 1)
    return None if end < 0 else [output.count("\n", 0, head.end()), output.count("\n", 0, end) + 1]


def _first_cut_line(metadata: dict[str, Any], output: str) -> int:
    for name in ("firstCutLine", "cutLine", "line"):
        if isinstance(metadata.get(name), int):
            return int(metadata[name])
    head, marker, _ = output.partition("\n\n...")
    return head.count("\n") + 2 if marker and head else 1


def _count_lines(path: str, size: int) -> int:
    if size > COUNT_LINES_UP_TO:
        return 0
    try:
        with open(path, "rb") as file:
            count, last = 0, b"\n"
            while chunk := file.read(1 << 20):
                count += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError:
        return 0
    return count + (last != b"\n")


def _cut_values(value: Any, depth: int = 0) -> Any:
    """A JSON value with long texts cut and deep or odd parts as text: what a card can show and JSON can carry."""
    if isinstance(value, str):
        return value if len(value) <= VALUE_CHARS else f"{value[:VALUE_CHARS]}… ({len(value)} characters)"
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    if depth >= 6:
        return repr(value)[:VALUE_CHARS]
    if isinstance(value, dict):
        return {str(k): _cut_values(v, depth + 1) for k, v in list(value.items())[:200]}
    if isinstance(value, (list, tuple)):
        return [_cut_values(v, depth + 1) for v in value[:200]]
    return repr(value)[:VALUE_CHARS]


def _plain(value: Any) -> Any:
    """The same as plain JSON: a tool may put anything into its title and metadata, and half a character into a text."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_plain(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return _plain(repr(value)[:VALUE_CHARS])
