"""The MIME bundle of a finished call, for every reader with or without a kernel.

``text/plain`` is what a terminal shows; the HTML is drawn by `call_html`.
"""

from __future__ import annotations

from typing import Any

from ...text.visible import readable, visible_line
from .call_html import attachments_of, html
from .saved_json import CARD_MIME, METADATA_KEY, saved_part, split_part
from .wording import (
    HEADER,
    TASK_MARKS,
    decision_words,
    extent,
    has_readable_body,
    is_live,
    numeric_columns,
    output_of,
    rows_words,
    state_words,
    time_words,
)

PLAIN_LINES = 30
"""Most lines of the text form."""
PLAIN_COLUMNS = 200
"""Most characters of one of its lines."""
ERROR_COLUMNS = 4_000
"""The same of an error, which a console shows nowhere else."""
PLAIN_ROWS = 20
"""Most rows of a table."""
LOST = "State unknown: the kernel ended before the call did."
LOST_WAITING = (
    "The kernel ended before the call did. It was waiting for approval when this was written; "
    "whether it was approved after that is not known."
)


def settled_bundle(part: dict[str, Any], *, durations: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """The MIME bundle of a finished call: the same for the same result, with ids and times in the metadata.

    Args:
        part: The call as a card's JSON (``labextension/src/card/types.ts``).
        durations: Say in the text how long the call took; for a terminal, where nothing is saved.

    Returns:
        Data and metadata for IPython's ``display(..., raw=True)``.
    """
    saved = saved_part(part)
    stable, volatile = split_part(saved)
    text = plain_text(saved if durations else stable)
    return {"text/plain": text, "text/html": html(stable), CARD_MIME: stable}, {METADATA_KEY: volatile}


def lost_bundle(part: dict[str, Any]) -> dict[str, Any]:
    """The MIME types beside a live card's widget, which remain if the kernel dies meanwhile.

    The widget comes first wherever it can be shown; without its model this says that nobody knows how the call went.
    """
    saved = saved_part(part)
    mark_lost(saved)
    return {"text/html": html(saved), CARD_MIME: saved}


def mark_lost(part: dict[str, Any]) -> None:
    """Mark a running call as one whose end is unknown; in place."""
    if is_live(part):
        part["state"] |= {"status": "error", "error": LOST_WAITING if part["ui"].pop("untouched", False) else LOST}
        part["ui"]["outcome"] = "ended"
    for child in part["ui"].get("children") or []:
        mark_lost(child)


def live_text(part: dict[str, Any]) -> str:
    """The text of a running call where there are no widgets: ``bash sleep 600: running``."""
    _, word, tone = state_words(part)
    head = clip(f"{visible_line(part['tool'])} {visible_line(part['ui'].get('label') or '')}".strip())
    if tone == "ask":
        return f"{head}: {clip(f'{word}: ' + visible_line('; '.join(_requests(part))))}"
    return f"{head}: {word}"


def _requests(part: dict[str, Any]) -> list[str]:
    """The pending requests of a call and of those inside it, as text."""
    ui, requests = part["ui"], []
    ask, question = ui.get("ask"), ui.get("question")
    if ask:
        requests.append(f"{ask['permission']} {', '.join(ask.get('patterns') or [])}".strip())
    if question:
        requests += [str(item.get("question", "")) for item in question.get("questions") or []]
    for child in ui.get("children") or []:
        requests += _requests(child)
    return requests


# ---------------------------------------------------------------------- text/plain


def plain_text(part: dict[str, Any]) -> str:
    """The card as at most `PLAIN_LINES` lines of text."""
    head, foot = [_plain_head(part)], _plain_foot(part)
    error = part["state"].get("error") or ""
    body = [
        clip(line, ERROR_COLUMNS if text == error else PLAIN_COLUMNS)
        for text in _bodies(part)
        for line in readable(text).rstrip("\n").split("\n")
    ]
    for child in part["ui"].get("children") or []:
        body.append("  " + _plain_head(child))
        if child["state"].get("error"):
            body.append(clip("    " + readable(child["state"]["error"]).split("\n")[0]))
    room = PLAIN_LINES - len(head) - len(foot)
    if len(body) > room:
        body = [*body[: room - 1], f"… {len(body) - room + 1:,} more lines"]
    return "\n".join([*head, *body, *map(clip, foot)])


def _plain_head(part: dict[str, Any]) -> str:
    mark, word, _ = state_words(part)
    label, time = visible_line(part["ui"].get("label") or ""), time_words(part)
    return clip(f"{mark} {visible_line(part['tool'])} {label}".rstrip(), PLAIN_COLUMNS - 50) + (
        f" ({word}, {time})" if time else f" ({word})"
    )


def _plain_foot(part: dict[str, Any]) -> list[str]:
    foot = [f"[{visible_line(a.get('filename') or a.get('mime') or '')}]" for a in attachments_of(part)][:5]
    spill = part["ui"].get("spill")
    if spill:
        whole = extent(spill.get("lines"), spill.get("bytes")) or "cut"
        foot.append(f"[{whole}; the rest from line {spill.get('line', 1)} is kept in {visible_line(spill['path'])}]")
    words = " · ".join(decision_words(part))
    return [*foot, f"[{words}]"] if words else foot


def clip(line: str, most: int = PLAIN_COLUMNS) -> str:
    """A line of at most so many characters."""
    return line if len(line) <= most else line[: most - 1] + "…"


def _bodies(part: dict[str, Any]) -> list[str]:
    """The texts of the body: diffs, the output (or the part of it that there is), the error."""
    state, ui = part["state"], part["ui"]
    output = output_of(part) or (ui.get("tail") if state.get("status") != "completed" else "") or ""
    error = state.get("error") or ""
    if ui.get("printed") is not None and not error:
        return [text for text in [output, *map(_table, ui.get("tables") or [])] if text.strip("\n")]
    table = ui.get("table")
    # a table's text reads better here, where it is no JSON
    if has_readable_body(part) and (not table or output.lstrip().startswith(("[", "{"))):
        output = ""
    texts = [*_diffs(ui), output if output.strip("\n") and output != error else "", error]
    if table and not output:
        texts.insert(0, _table(table))
    if ui.get("tasks") is not None:
        texts.insert(0, "\n".join(map(_task, ui["tasks"])) or "no tasks")
    texts = [*(_answered(item) for item in ui.get("answered") or []), *texts]
    return [text for text in texts if text.strip("\n")]


def _diffs(ui: dict[str, Any]) -> list[str]:
    texts = [_diff_lines(ui["diff"])] if ui.get("diff") else []
    for change in ui.get("diffs") or []:
        counts = [
            f"{sign}{change[name]}" for name, sign in (("additions", "+"), ("deletions", "-")) if change.get(name)
        ]
        moved = f" (moved from {visible_line(change['from'])})" if change.get("from") else ""
        head = f"{visible_line(change.get('path') or '')}{moved} {' '.join(counts)}".rstrip()
        texts.append("\n".join(filter(None, [head, _diff_lines(change.get("diff") or "")])))
    return texts


def _diff_lines(diff: str) -> str:
    return "\n".join(line for line in diff.split("\n") if not HEADER.match(line))


def _answered(answered: dict[str, Any]) -> str:
    answers, lines = answered.get("answers"), []
    for index, question in enumerate(answered.get("questions") or []):
        labels = answers[index] if answers is not None and index < len(answers) else []
        words = ", ".join(labels) or ("dismissed" if answers is None else "not answered")
        header = f"{question['header']}: " if question.get("header") else ""
        lines.append(f"{header}{question['question']} → {words}")
    return "\n".join(lines)


def _task(task: dict[str, Any]) -> str:
    mark, _ = TASK_MARKS.get(task.get("status", ""), TASK_MARKS["pending"])
    priority = task.get("priority") or ""
    return f"{mark} {task.get('content', '')}" + (f" ({priority})" if priority not in ("", "medium") else "")


def _table(table: dict[str, Any]) -> str:
    from ...core.value_tables import grid  # here: most results have no table

    columns, types = table.get("columns") or [], table.get("types") or []
    shown = (table.get("rows") or [])[:PLAIN_ROWS]
    table = {**table, "rows": shown}
    rows = [list(map(str, row)) for row in (columns, *([types] if any(types) else []), *shown)]
    numeric = numeric_columns(table) if "name" in table else [False] * len(columns)
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    lines = grid(rows if any(columns) else rows[1:], [*numeric, *[False] * width][:width])
    words = rows_words(table)
    return "\n".join([*lines, words] if words else lines)
