"""A call as the card's JSON: the contract with ``labextension/src/card/types.ts`` (there every field is described)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.call_approval import NOT_REVISABLE, WAITING_FOR
from ...core.call_state import (
    ERROR_CODE,
    FAILURE_KEYS,
    FOR_PERSON,
    CallOutcome,
    Completed,
    Failed,
    Pending,
    Running,
    State,
    ToolPart,
    failure_of,
    now_ms,
)
from ...core.permission import Decision
from ...core.repair import INVALID, requested_tool
from ...core.store.database import ABORTED
from ...core.store.rows import encode
from ..server_files import files_url
from .approval_json import RequestView
from .bodies_json import bodies_of
from .labels import card_of, label_of, paths_below, project_folder
from .saved_json import cut, plain_json

if TYPE_CHECKING:
    from ...core.call import Call

VERSION = 1
TAIL_CHARS = 16_000
"""Live output kept in the card."""
TAIL_LINES = 200
NESTED_CHARS = 2_000
"""Most characters of a call's output inside another card, while that one is live."""
NESTED_LINES = 20
"""The same of a call inside another: an update has up to 25 of them."""
VALUE_CHARS = 2_000
"""A longer value of the input is cut while the call runs; the settled card keeps what the model sees."""
LEVELS, ENTRIES = 6, 200
"""The same of nested values, and of entries of one list or object."""
DIFF_CHARS = 200_000
EDITABLE_CHARS = 100_000
"""Longer arguments, as JSON, can't be changed before approval."""
COUNT_LINES_UP_TO = 64 * 1024 * 1024
"""Bytes; the lines of a bigger spill file are not counted."""

_NOTES = re.compile(r"\n*<bash_metadata>\n.*\n</bash_metadata>\s*\Z", re.DOTALL)
"""bash's note for a model about how it ended; the card of a failed call has it as its error."""
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)


@dataclass(slots=True)
class Extras:
    """What a card shows beyond the part."""

    request: RequestView | None = None
    """The oldest pending request."""
    children: list[dict[str, Any]] = field(default_factory=list)
    base: Path | None = None
    """The project's folder: paths below it are shown relative to it."""
    nested: bool = False
    """Drawn inside another card: its live output is shorter."""
    directory: Path | None = None
    """The session's folder, which paths in arguments count from."""
    untouched: bool = False
    """The call has done nothing yet (`is_untouched`)."""


def card_part(part: ToolPart, extras: Extras | None = None, *, live: bool = False) -> dict[str, Any]:
    """The card's JSON for a part.

    Args:
        part: the call.
        extras: what waits for a person, and nested calls.
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
        "label": label_of(part, extras.directory, extras.base),
        "by": part.by,
        "waited": round(part.waited * 1000),
        "decisions": [decision_json(d) for d in part.decisions],
    }
    ui.update(_error(part, wire, metadata, extras.base))
    if part.outcome:
        ui["outcome"] = failure_of(part.tool, None) if part.tool == INVALID else part.outcome
    so_far = _partial_output(state, output)
    if so_far:
        ui["tail"] = tail(so_far, NESTED_LINES if live and extras.nested else TAIL_LINES)
    for name in ("lines", "bytes"):
        if isinstance(metadata.get(name), int):
            ui[name] = metadata[name]
    ui = {**_progress_fields(metadata.pop("progress", None), metadata.pop(WAITING_FOR, None), state), **ui}
    opens = linked_file(part, diff, extras.directory)
    if opens is not None:
        ui["opens"] = opens
    ui.update(bodies_of(part, metadata, extras.base))
    if isinstance(diff, str) and diff and "diffs" not in ui:
        ui["diff"] = diff[:DIFF_CHARS]
    spill = spill_of(metadata, state.output) if isinstance(state, Completed) else running_spill(metadata, state)
    if spill is not None:
        ui["spill"] = spill
    if isinstance(state, Completed):
        line_range = shown_lines(part.tool, state.output)
        if line_range is not None:
            ui["shown"] = line_range
            metadata.pop("display", None)  # the same lines once more
        ui.update(_failure(part.tool, metadata))
    if live and extras.nested and isinstance(state, Completed):
        wire["output"] = cut(state.output, NESTED_CHARS)  # whole when the card is settled
        wire.pop("attachments", None)
    if extras.request is not None:
        ui.update(_pending_fields(extras.request, state.input, wire["input"], extras.untouched))
    if extras.children:
        ui["children"] = extras.children
    if metadata:
        wire["metadata"] = _cut_values(metadata)
    card = {
        "v": VERSION,
        "id": part.id,
        "callID": part.call_id,
        "sessionID": part.session_id,
        "messageID": part.message_id,
        "tool": requested_tool(part.tool, state.input),
        "state": wire,
        "ui": ui,
    }
    return dict(plain_json(card, sys.maxsize, 100, sys.maxsize))


_ABORTED_FOR_PERSON = {
    "stopped": "The call was stopped.",
    "interrupted": "The call was interrupted.",
    "ended": "The call ended because the kernel or its workspace was closed.",
}
"""By the outcome."""


def _error(part: ToolPart, wire: dict[str, Any], metadata: dict[str, Any], base: Path | None) -> dict[str, str]:
    """Put the error's text for a person into `wire`.

    Returns:
        Fields of the card: the text that a model was sent, if it is another; the error's code.
    """
    state = part.state
    if not isinstance(state, Failed):
        return {}
    metadata.pop(FOR_PERSON, None)
    code = metadata.pop(ERROR_CODE, None)
    text = state.for_person
    if text == ABORTED:  # OpenCode's
        text = _ABORTED_FOR_PERSON.get(part.outcome, text)
    if part.outcome == CallOutcome.DENIED_BY_PERSON and any(decision.action == "deny" for decision in part.decisions):
        del wire["error"]  # the decision has the reason
        code = None
    else:
        wire["error"] = paths_below(base, text)
    fields = {"sent": state.error} if part.by == "model" and text != state.error else {}
    return {**fields, "code": code} if code else fields


def _failure(tool: str, metadata: dict[str, Any]) -> dict[str, str]:
    """What failed in a completed call, where its metadata counts failures."""
    return {"failure": failure_of(tool, metadata)} if any(key in metadata for key in FAILURE_KEYS) else {}


def decision_json(decision: Decision) -> dict[str, Any]:
    """A decision as a card has it."""
    fields: dict[str, Any] = {
        "permission": decision.permission,
        "patterns": list(decision.patterns),
        "action": decision.action,
        "by": decision.by,
    }
    if decision.reply is not None:
        fields["reply"] = decision.reply
    if decision.revised:
        fields["revised"] = True
    elif decision.message:
        fields["message"] = decision.message
    note = decision.note or ("together with another request" if decision.together else None)
    if note:
        fields["note"] = note
    if decision.rules:
        deciding = [r for r in decision.rules if r.action == decision.action] or decision.rules
        fields["rule"] = deciding[0].to_json()
    if len(decision.patterns) > 1 and len(decision.rules) == len(decision.patterns):
        fields["rules"] = [rule.to_json() for rule in decision.rules]
    return fields


def _pending_fields(view: RequestView, arguments: dict[str, Any], card_input: Any, untouched: bool) -> dict[str, Any]:
    """The fields of a pending request; where the card cuts arguments that can be changed, they are added whole."""
    fields: dict[str, Any] = view.to_json()
    if untouched:
        fields["untouched"] = True
    ask = fields.get("ask")
    if ask is not None and ask["permission"] not in NOT_REVISABLE:
        if card_input == arguments:
            ask["editable"] = True
        elif len(encode(arguments)) <= EDITABLE_CHARS:
            ask.update(editable=True, input=arguments)
    return fields


def card_tree(
    call: Call,
    requests: Mapping[str, Sequence[RequestView]],
    *,
    live: bool,
    nested: bool = False,
    children: bool = True,
) -> dict[str, Any]:
    """The card's JSON for a call and the calls it made.

    Args:
        call: the call.
        requests: by call id: what waits for a person, oldest first.
        live: see `card_part`. If not, the card is settled: a call that goes on behind it counts as interrupted.
        nested: drawn inside another card.
        children: whether the calls it made go along.
    """
    waiting = requests.get(call.part.call_id) if live else None
    extras = Extras(
        waiting[0] if waiting else None,
        [card_tree(child, requests, live=live, nested=True) for child in call.children] if children else [],
        project_folder(call.ctx),
        nested,
        call.ctx.directory,
        is_untouched(call),
    )
    return card_part(call.part if live else ended_part(call.part), extras, live=live)


def is_untouched(call: Call) -> bool:
    """Whether the call has certainly done nothing yet: it waits for an approval before its tool begins.

    A person's own tool may request approval in the middle of its work, so this is unknown for it.
    """
    tool = call.tool
    asks_first = isinstance(call.part.state, Pending) or (tool is not None and (tool.builtin or tool.external))
    return asks_first and not call.ctx.proceeded and not call.part.outcome


def ended_part(part: ToolPart) -> ToolPart:
    """The part, as interrupted if it is running: the cell continued without it after a second interrupt."""
    if part.outcome:
        return part
    state = part.state
    start = state.start if isinstance(state, Running) else now_ms()
    words = "The cell was interrupted and did not wait for the call's end."
    return replace(part, state=Failed(state.input, start, now_ms(), words), outcome="interrupted")


def _partial_output(state: State, output: Any) -> str:
    """The output of a call that did not complete."""
    if not isinstance(output, str) or not isinstance(state, (Running, Failed)):
        return ""
    return _NOTES.sub("", output) if isinstance(state, Failed) else output


def tail(text: str, most: int = TAIL_LINES) -> str:
    """The end of a live output: at most `most` lines and `TAIL_CHARS` characters."""
    text = text[-TAIL_CHARS:]
    lines = text.split("\n")
    return "\n".join(lines[-most:])


def tail_update(metadata: Mapping[str, Any], most: int = TAIL_LINES) -> dict[str, Any]:
    """What a live card is sent while only the output of its call grows."""
    counts = {name: metadata[name] for name in ("lines", "bytes", "progress") if name in metadata}
    return {"text": tail(str(metadata.get("output", "")), most), **counts}


def _progress_fields(progress: Any, held: Any, state: Any) -> dict[str, Any]:
    """A running call's progress; for a failed one a line of text in place of the bar.

    `held` is the file that another call changes first.
    """
    if held and isinstance(state, Running):
        return {"waitsFor": str(held)}
    if not isinstance(progress, dict):
        return {}
    if isinstance(state, Running):
        return {"progress": progress}
    if not isinstance(state, Failed):
        return {}
    value, total, message = (progress.get(name) for name in ("value", "total", "message"))
    share = f"{value} of {total}" if value is not None and total is not None else ""
    words = ": ".join(str(word) for word in (share, message) if word) or str(value)
    return {"tail": f"Stopped at: {words}"}


def spill_of(metadata: dict[str, Any], output: str) -> dict[str, Any] | None:
    """The spill file of a cut output, its size, and the first line that was cut."""
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


def running_spill(metadata: dict[str, Any], state: Any) -> dict[str, Any] | None:
    """The spill file of a running or stopped call, if there is more output than the card shows."""
    path = metadata.get("outputPath")
    if not isinstance(state, (Running, Failed)) or not isinstance(path, str):
        return None
    spill: dict[str, Any] = {"path": path, "line": 1, "lines": 0, "bytes": metadata.get("bytes", 0)}
    if isinstance(state, Running):
        spill["writing"] = True
    url = files_url(path)
    return spill if url is None else {**spill, "url": url}


def shown_lines(tool: str, output: str) -> list[int] | None:
    """The lines of an output that a person reads: first index and the one after the last; None for all."""
    lines = card_of(tool).lines
    return None if lines is None else lines(output)


def _first_cut_line(metadata: dict[str, Any], output: str) -> int:
    if isinstance(metadata.get("cutLine"), int):
        return int(metadata["cutLine"])
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


def _cut_values(value: Any) -> Any:
    return plain_json(value, VALUE_CHARS, LEVELS, ENTRIES)


def linked_file(part: ToolPart, diff: Any, directory: Path | None) -> dict[str, Any] | None:
    """The file of a completed call for ``ui.opens``; None if the call is about none.

    Args:
        part: the call.
        diff: the change it made, if it made one.
        directory: the session's folder, which relative paths count from.
    """
    arguments = part.state.input
    if (
        card_of(part.tool).path != "file"
        or directory is None
        or not isinstance(part.state, Completed)
        or not isinstance(arguments, dict)
    ):
        return None
    path = next((arguments[k] for k in ("filePath", "file_path", "path") if isinstance(arguments.get(k), str)), "")
    if not path or "\0" in path:
        return None
    opens: dict[str, Any] = {"path": os.path.normpath(os.path.join(directory, os.path.expanduser(path)))}
    if isinstance(diff, str) and diff:
        line = _changed_line(diff)
    else:
        line = next((arguments[name] for name in ("offset", "line") if isinstance(arguments.get(name), int)), None)
    if line is not None and line > 0:
        opens["line"] = line
    return opens


def _changed_line(diff: str) -> int | None:
    """The first changed line, as the file is now."""
    hunk = _HUNK.search(diff)
    if hunk is None:
        return None
    line = int(hunk[1])
    for text in diff[hunk.end() :].split("\n")[1:]:
        if not text.startswith(" "):
            break
        line += 1
    return max(1, line)
