"""The settled card as HTML that stands on its own: no script, no handler, no address but the spilled output's.

What JupyterLab's sanitizer lets through in a notebook that is not trusted keeps the card's bones; where the style sheet
counts, its colours follow the theme; on GitHub, which drops both, the elements alone read in order.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any
from urllib.parse import urlsplit

from ...text.visible import readable, visible, visible_line
from .saved_json import INPUT_CHARS, OUTPUT_CHARS, cut, is_picture
from .style import (
    DIM,
    HEAD,
    LINE,
    MONO,
    ON_PAPER,
    PAPER,
    TONES,
    block,
    chip,
    dim,
    frame,
    padded,
    pre,
    scrolled,
    summary,
)
from .wording import (
    HEADER,
    TASK_MARKS,
    decision_words,
    extent,
    has_readable_body,
    numeric_columns,
    output_of,
    pattern_words,
    rows_words,
    state_words,
    time_words,
)

SCROLLED_LINES = 100
"""An output of more lines scrolls inside its card."""
WIDE = "display:inline-block;width:100%;background-color:"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CHANGES = {"add": "new", "delete": "deleted", "move": "moved", "update": ""}


def html(part: dict[str, Any], *, nested: bool = False, pictures: bool = True) -> str:
    """The card as HTML that needs nothing else.

    Args:
        part: the call as its card's JSON.
        nested: drawn inside another card.
        pictures: show its pictures and those of calls inside it; False where `pictures_of` shows them.
    """
    mark, word, tone = state_words(part)
    mark = f'<span style="color:{TONES[tone]}">{mark}</span>'
    state, ui = part["state"], part["ui"]
    tool, label = escape(visible_line(part["tool"])), escape(visible_line(ui.get("label") or state.get("title") or ""))
    time = time_words(part)
    head = (
        f'<b class="oc-s-mono" style="{MONO}">{tool}</b>',
        f'<span class="oc-s-mono" style="{MONO}flex:1;word-break:break-word">{label}</span>',
        f'<b style="white-space:nowrap;font-size:12px">{mark} {escape(word)}</b>',
        f'<small {DIM};white-space:nowrap;font-size:11px">{escape(time)}</small>' if time else "",
    )
    blocks = [f'<div style="{HEAD}">{" ".join(head)}</div>']
    if ui.get("diff"):
        blocks.append(block(diff(ui["diff"])))
    output = "" if state.get("error") == state.get("output") else output_of(part)
    if state.get("status") != "completed" and not output:
        output = ui.get("tail") or ""
    if ui.get("printed") is not None and state.get("status") == "completed":
        blocks += [_output(output, folded=False)] if output.strip("\n") else []
        output = str(state.get("output") or "")
    blocks += bodies(part, pictures=pictures)
    if output.strip("\n"):
        folded = has_readable_body(part) or (nested and state.get("status") == "completed")
        blocks.append(_output(output, folded=folded))
    if state.get("error"):
        blocks.append(block(pre(escape(readable(cut(state["error"], OUTPUT_CHARS))))))
    if ui.get("sent"):
        sent = pre(escape(readable(cut(ui["sent"], OUTPUT_CHARS))))
        blocks.append(block(f"<details>{summary('sent to the model')}{sent}</details>"))
    children = ui.get("children") or []
    if children:
        inner = "".join(html(child, nested=True, pictures=pictures) for child in children) + PAPER
        blocks.append(block(f'<div style="padding:8px 10px 4px 22px">{inner}</div>'))
    if ui.get("spill"):
        blocks.append(_spill(ui["spill"]))
    blocks.append(_foot(part))
    return frame("".join(blocks), tone, margin="0 0 8px" if nested else "2px 0 4px")


def _output(output: str, *, folded: bool) -> str:
    text = readable(cut(output, OUTPUT_CHARS)).rstrip("\n")
    lines = text.count("\n") + 1
    opened = "" if folded else " open"  # however long: not every browser prints what is folded
    head = summary(f"output · {extent(lines, None)}")
    shown, paper = (scrolled(escape(text)), PAPER) if lines > SCROLLED_LINES else (pre(escape(text)), "")
    return block(f'<details class="{ON_PAPER}"{opened}>{head}{shown}</details>{paper}')


def _spill(spill: dict[str, Any]) -> str:
    line = int(spill.get("line") or 1)
    size = extent(spill.get("lines"), spill.get("bytes")) or "Cut"
    url = str(spill.get("url") or "")
    link = ""
    if url and urlsplit(url).scheme in {"", "http", "https"}:
        link = f'<a class="oc-s-link" href="{escape(url)}">Open the whole output at line {line}</a> '
    path = escape(visible_line(str(spill["path"])))
    return block(
        f'<div {DIM};padding:5px 10px;font-size:12px">{escape(size)}; the rest from line {line} '
        f'is kept {link}<br><code style="font-size:11px;word-break:break-word">{path}</code></div>',
        "dashed",
    )


def _foot(part: dict[str, Any]) -> str:
    state = part["state"]
    words = escape(" · ".join(decision_words(part)))
    arguments = state.get("input") or {}
    text = json.dumps(arguments, indent=2, ensure_ascii=False) if arguments else str(state.get("raw") or "")
    floating = "float:right;max-width:70%;" if text else ""
    quiet = f"{floating}font-size:11px;padding:2px 10px;text-align:right"
    foot = f'<div {DIM};{quiet}">{words}</div>' if words else ""
    if text:
        arguments_text = pre(escape(visible(cut(text, INPUT_CHARS))))
        foot += f'<details>{summary("input")}<div style="clear:both">{arguments_text}</div></details>'
    each = pattern_words(part)
    if each:
        foot += (
            f"<details>{summary(f'{len(each)} parts, each with its rule')}{pre(escape(chr(10).join(each)))}</details>"
        )
    return block(foot) if foot else ""


def bodies(part: dict[str, Any], *, pictures: bool = True) -> list[str]:
    """The blocks of one card, in order."""
    ui = part["ui"]
    blocks = [_answered(item) for item in ui.get("answered") or []]
    if ui.get("tasks") is not None:
        blocks.append(_tasks(ui["tasks"]))
    blocks += [_file(item) for item in ui.get("diffs") or []]
    if ui.get("table"):
        blocks.append(_table(ui["table"]))
    blocks += [_table(item) for item in ui.get("tables") or []]
    if ui.get("cells"):
        blocks.append(_cells(ui["cells"], str(part["state"].get("output") or "").split("\n")))
    if ui.get("files"):
        names = "<br>".join(f"<code>{escape(visible_line(str(name)))}</code>" for name in ui["files"])
        blocks.append(padded(names))
    return blocks + [block(_attachment(a)) for a in attachments_of(part) if pictures or not is_picture(a.get("url"))]


def attachments_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Files and pictures that a call returned."""
    return [a for a in part["state"].get("attachments") or [] if isinstance(a, dict)]


def pictures_of(part: dict[str, Any]) -> str:
    """The pictures of a call and of those inside it, small; "" where there are none."""
    about = visible_line(f"{part['tool']} {part['ui'].get('label') or ''}".rstrip())
    pictures = [_attachment(a, 240, about) for a in attachments_of(part) if is_picture(a.get("url"))]
    return "".join([*pictures, *map(pictures_of, part["ui"].get("children") or [])])


def _answered(answered: dict[str, Any]) -> str:
    answers = answered.get("answers")
    rows = []
    for index, question in enumerate(answered.get("questions") or []):
        labels = answers[index] if answers is not None and index < len(answers) else []
        header = chip(question["header"]) + " " if question.get("header") else ""
        shown = ", ".join(escape(visible(label)) for label in labels)
        answer = f"<b>{shown}</b>" if shown else dim("dismissed" if answers is None else "not answered")
        rows.append(f'<div style="padding:1px 0">{header}{escape(visible(question["question"]))} → {answer}</div>')
    return padded("".join(rows))


def _tasks(tasks: list[dict[str, Any]]) -> str:
    rows = []
    for task in tasks:
        status, priority = task.get("status", "pending"), task.get("priority", "")
        mark, words = TASK_MARKS.get(status, TASK_MARKS["pending"])
        text = escape(visible_line(task.get("content", "")))
        if status == "in_progress":
            text = f"<b>{text}</b>"
        elif status != "pending":
            text = f'<span {DIM}">{text}</span>'
        priority_chip = (
            " " + chip(priority, TONES["err"] if priority == "high" else "") if priority not in ("", "medium") else ""
        )
        rows.append(f'<div style="padding:1px 0"><span title="{words}">{mark}</span> {text}{priority_chip}</div>')
    return padded("".join(rows) or dim("no tasks"))


def _file(change: dict[str, Any]) -> str:
    kind = str(change.get("type", ""))
    words = f"moved from {change['from']}" if change.get("from") else _CHANGES.get(kind, kind)
    counts = [
        f'<small style="color:{TONES[tone]}">{sign}{change[name]}</small>'
        for name, sign, tone in (("additions", "+", "ok"), ("deletions", "−", "err"))
        if change.get(name)
    ]
    path = escape(visible_line(str(change.get("path", ""))))
    head = f'<code style="{MONO}">{path}</code> {dim(escape(visible_line(words)))} {" ".join(counts)}'
    diff_html = diff(change["diff"]) if str(change.get("diff") or "").strip() else ""
    return block(f'<div style="padding:4px 10px">{head}</div>{diff_html}')


def _table(table: dict[str, Any]) -> str:
    columns, rows, types = table.get("columns") or [], table.get("rows") or [], table.get("types") or []
    numeric, index = numeric_columns(table), int(table.get("index") or 0)
    cell = "vertical-align:top;padding:1px 10px;border:0"
    rows_html = ""
    if any(columns):
        rows_html += "<tr>"
        for i, name in enumerate(columns):
            kind = f"<br>{_text(types[i])}" if i < len(types) and any(types) else ""
            align = "right" if numeric[i] else "left"
            top = f"text-align:{align};font-weight:400;font-size:11px;{cell}"
            tag = "th" if name else "td"
            rows_html += f'<{tag} {DIM};{top}">{_text(name)}{kind}</{tag}>'
        rows_html += "</tr>"
    for row in rows:
        rows_html += "<tr>"
        for i, (value, number) in enumerate(zip(row, numeric, strict=False)):
            label = i < index
            tag, look = ("th", f"{DIM};font-weight:400;") if label else ("td", 'style="')
            align = "right" if number and any(columns) else "left"
            rows_html += f'<{tag} {look}text-align:{align};{cell}">{_text(value)}</{tag}>'
        rows_html += "</tr>"
    table_html = f'<table style="border-collapse:collapse;margin:0;{MONO}">{rows_html}</table>'
    words = escape(rows_words(table))
    note = f'<div style="padding:2px 10px 4px">{dim(words)}</div>' if words else ""
    return block(f'<div style="overflow-x:auto">{table_html}</div>{note}')


def _cells(notebook: dict[str, Any], lines: list[str]) -> str:
    """A notebook's cells, each with its outputs; `lines` are the output's."""
    blocks = []
    for cell in notebook.get("cells") or []:
        start = int(cell.get("line") or 0)
        end = start + int(cell.get("source") or 0)
        kind = str(cell.get("type") or "")
        run = f"[{cell.get('executed', ' ')}]" if kind == "code" else visible_line(kind)
        text = pre(escape(visible("\n".join(lines[start:end])))) if end > start else ""
        if cell.get("output"):
            out = escape(readable("\n".join(lines[end + 1 : end + 1 + int(cell["output"])])))
            text += f'<div style="margin-left:10px;border-left:2px solid {LINE}">{pre(out)}</div>'
        name = dim(f"{int(cell.get('index') or 0)} · {escape(run)}")
        head = f'<div style="padding:4px 10px 0">{name}</div>'
        blocks.append(head + text)
    words = escape(visible_line(cells_words(notebook)))
    return block(f'{"".join(blocks)}<div style="padding:2px 10px 4px">{dim(words)}</div>')


def cells_words(notebook: dict[str, Any]) -> str:
    """Which cells these are, and what there is to say of the notebook: ``cells 0 to 9 of 24 · not valid by …``."""
    cells, total = notebook.get("cells") or [], int(notebook.get("total") or 0)
    first, last = cells[0].get("index", 0), cells[-1].get("index", 0)
    words = f"{total} cell{'' if total == 1 else 's'}"
    if len(cells) < total:
        words = f"cell {first} of {words}" if first == last else f"cells {first} to {last} of {total}"
    return " · ".join([words, *map(str, notebook.get("notes") or [])])


def _text(value: Any) -> str:
    return escape(visible_line(str(value)))


def _attachment(attachment: dict[str, Any], height: int = 480, about: str = "") -> str:
    name = visible_line(attachment.get("filename") or attachment.get("mime") or "attachment")
    name = escape(f"{name} of {about}" if about else name)
    url = attachment.get("url")
    if is_picture(url):
        shown = f'<img alt="{name}" src="{escape(str(url))}" style="max-width:100%;max-height:{height}px">'
    else:
        shown = f'<span {DIM}">{name} ({escape(visible_line(attachment.get("mime") or ""))})</span>'
    return f'<div style="padding:8px 10px">{shown}</div>'


def diff(text: str) -> str:
    """A unified diff with line numbers, its lines coloured; a hunk ends where its header says."""
    rows = diff_rows(text)
    width = len(str(max([number for _, number, _ in rows if number], default=0)))
    crlf = all(text.endswith("\r") for _, number, text in rows if number)
    lines = []
    for sign, number, text in rows:
        shown = escape(visible(text.removesuffix("\r") if crlf else text))
        line = f'<span {DIM}">{str(number or "").rjust(width)}</span> {sign} {shown}'
        # a block each: with a colour in the background as wide as the card, without styles still a line
        if sign == "+":
            line = f'<span class="oc-s-add" style="{WIDE}rgba(46,160,67,0.18)">{line}</span>'
        elif sign == "-":
            line = f'<span class="oc-s-del" style="{WIDE}rgba(248,81,73,0.18)">{line}</span>'
        lines.append(line)
    return pre("\n".join(lines))


def diff_rows(diff: str) -> list[tuple[str, int, str]]:
    """Sign, line number (0: none) and text of each line of a unified diff."""
    rows: list[tuple[str, int, str]] = []
    old = new = old_left = new_left = 0
    for line in diff.removesuffix("\n").split("\n"):
        sign, text = line[:1] or " ", line[1:]
        if old_left <= 0 and new_left <= 0:
            hunk = _HUNK.match(line)
            if hunk:
                rows += [(" ", 0, "⋯")] if rows else []
                old, new = int(hunk[1]), int(hunk[3])
                old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            elif not rows and not HEADER.match(line):
                rows.append((" ", 0, line))  # not a unified diff at all: show what there is
        elif sign == "+":
            rows.append((sign, new, text))
            new, new_left = new + 1, new_left - 1
        elif sign == "-":
            rows.append((sign, old, text))
            old, old_left = old + 1, old_left - 1
        elif sign == "\\":
            rows.append((" ", 0, line))
        else:
            rows.append((" ", new, text))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return rows
