"""The settled card: what a finished call leaves in the notebook, for every reader with or without a kernel.

``text/plain`` is what a terminal shows. ``text/html`` stands on its own: no script, no handler, no address but the
spilled output's. What JupyterLab's sanitizer lets through in a notebook that is not trusted (inline styles with plain
values, classes; no ``<style>``, no ``var()``) keeps the card's bones; where the style sheet counts, its colours follow
the theme; on GitHub, which drops both, the elements alone read in order.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any
from urllib.parse import urlsplit

from .mime import (
    CARD_MIME,
    INPUT_CHARS,
    OUTPUT_CHARS,
    cut,
    decision_words,
    extent,
    is_picture,
    output_of,
    readable,
    saved_part,
    state_words,
    time_words,
    visible,
    visible_line,
)

PLAIN_LINES = 30
"""Most lines of the text form."""
PLAIN_COLUMNS = 200
"""Most characters of one of its lines."""
OPEN_LINES = 100
"""Outputs with more lines are folded where no style sheet gives them a scroll bar."""

LOST = "State unknown: the kernel ended before the call did."

_TONES = {"ok": "#2b9348", "run": "#2f7de1", "ask": "#a67200", "err": "#d6453a", "off": "#808890"}
"""Accents that are readable on white and on black, for readers that drop the style sheet."""
_LINE = "rgba(128,128,128,0.3)"
_MONO = "font-family:monospace;font-size:12px;"
_PRE = (
    f"margin:0;padding:6px 10px;{_MONO}line-height:1.5;white-space:pre-wrap;word-break:break-word;"
    "max-height:190px;overflow:auto;border:0;background-color:transparent"
)
_PALETTE = {
    "ok": ("#1a7f37", "#4cc26b"),
    "run": ("#0b63ce", "#6aa9ff"),
    "ask": ("#8a5d00", "#e0b040"),
    "err": ("#b42318", "#ff7b72"),
    "off": ("#5f6670", "#9aa3ad"),
    "add": ("#e6f6ea", "#12301c"),
    "del": ("#fdeceb", "#3a1a1a"),
    "bg": ("#fff", "#16181c"),
    "fg": ("#1c1e21", "#e6e8eb"),
    "line": ("#dfe2e7", "#343942"),
}
_JUPYTER = {"bg": "--jp-layout-color1", "fg": "--jp-ui-font-color1", "off": "--jp-ui-font-color2"} | {
    "line": "--jp-border-color2"
}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = re.compile(r"---|\+\+\+|diff |Index: |index |=+$|new |deleted |old |similarity |rename ")


def settled_bundle(part: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The MIME bundle of a finished call.

    Args:
        part: The call as a card's JSON (``labextension/src/card/token.ts``).

    Returns:
        Data and metadata for IPython's ``display(..., raw=True)``.
    """
    saved = saved_part(part)
    data = {"text/plain": plain_text(saved), "text/html": html(saved), CARD_MIME: saved}
    return data, {}


def lost_bundle(part: dict[str, Any]) -> dict[str, Any]:
    """What a live card's display holds beside the widget, and what is left of it if the kernel dies in the middle.

    The widget comes first wherever it can be shown; without its model this says that nobody knows how the call went.
    """
    saved = saved_part(part)
    saved["state"] |= {"status": "error", "error": LOST}
    saved["ui"]["outcome"] = "ended"
    return {"text/html": html(saved), CARD_MIME: saved}


def live_text(part: dict[str, Any]) -> str:
    """What a reader without widgets sees of a call that goes on: ``bash sleep 600: running``."""
    _, word, tone = state_words(part)
    head = _clip(f"{visible_line(part['tool'])} {visible_line(part['ui'].get('label') or '')}".strip())
    if tone == "ask":
        ask = part["ui"]["ask"]
        return f"{head}: {_clip('waiting for you: ' + visible_line(_wanted(ask)))}"
    return f"{head}: {word}"


def _wanted(ask: dict[str, Any]) -> str:
    return f"{ask['permission']} {', '.join(ask.get('patterns') or [])}".strip()


# ---------------------------------------------------------------------- text/plain


def plain_text(part: dict[str, Any]) -> str:
    """The card as at most `PLAIN_LINES` lines of text."""
    head, foot = [_plain_head(part)], _plain_foot(part)
    body = [line for text in _bodies(part) for line in readable(text).rstrip("\n").split("\n")]
    for child in part["ui"].get("children") or []:
        body.append("  " + _plain_head(child))
        if child["state"].get("error"):
            body.append("    " + readable(child["state"]["error"]).split("\n")[0])
    room = PLAIN_LINES - len(head) - len(foot)
    if len(body) > room:
        body = [*body[: room - 1], f"… {len(body) - room + 1:,} more lines"]
    return "\n".join(_clip(line) for line in [*head, *body, *foot])


def _plain_head(part: dict[str, Any]) -> str:
    mark, word, _ = state_words(part)
    label, time = visible_line(part["ui"].get("label") or ""), time_words(part)
    return _clip(f"{mark} {visible_line(part['tool'])} {label}".rstrip(), PLAIN_COLUMNS - 50) + (
        f" ({word}, {time})" if time else f" ({word})"
    )


def _plain_foot(part: dict[str, Any]) -> list[str]:
    foot = [f"[{visible_line(a.get('filename') or a.get('mime') or '')}]" for a in _attachments(part)][:5]
    spill = part["ui"].get("spill")
    if spill:
        whole = extent(spill.get("lines"), spill.get("bytes")) or "cut"
        foot.append(f"[{whole}; the rest from line {spill.get('line', 1)} is kept in {visible_line(spill['path'])}]")
    words = " · ".join(decision_words(part))
    return [*foot, f"[{words}]"] if words else foot


def _clip(line: str, most: int = PLAIN_COLUMNS) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"


def _bodies(part: dict[str, Any]) -> list[str]:
    """What stands in the body, apart from the diff: the output (or what there was of it), then the error."""
    state, ui = part["state"], part["ui"]
    output = output_of(part) or (ui.get("tail") if state.get("status") != "completed" else "") or ""
    error = state.get("error") or ""
    shown = [output if output.strip("\n") and output != error else "", error]
    if ui.get("diff") and not error:
        shown.insert(0, "\n".join(line for line in ui["diff"].split("\n") if not _HEADER.match(line)))
    return [text for text in shown if text.strip("\n")]


def _attachments(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [a for a in part["state"].get("attachments") or [] if isinstance(a, dict)]


# ---------------------------------------------------------------------- text/html


def html(part: dict[str, Any]) -> str:
    """The card as HTML that needs nothing else."""
    return f"<style>{_STYLE}</style>{_card(part)}"


def _card(part: dict[str, Any], *, nested: bool = False) -> str:
    mark, word, tone = state_words(part)
    state, ui = part["state"], part["ui"]
    tool, label = escape(visible_line(part["tool"])), escape(visible_line(ui.get("label") or state.get("title") or ""))
    accent = _TONES[tone]
    head = (
        f'<b class="oc-s-mono" style="{_MONO}">{tool}</b>',
        f'<span class="oc-s-mono" style="{_MONO}flex:1;word-break:break-word">{label}</span>',
        f'<b class="oc-s-accent" style="color:{accent};white-space:nowrap;font-size:12px">{mark} {escape(word)}</b>',
        f'<small class="oc-s-dim" style="white-space:nowrap;font-size:11px">{escape(time_words(part))}</small>',
    )
    blocks = [f'<div style="display:flex;gap:8px;padding:6px 10px">{" ".join(head)}</div>']
    if ui.get("diff"):
        blocks.append(_block(_diff(ui["diff"])))
    output = "" if state.get("error") == state.get("output") else output_of(part)
    if state.get("status") != "completed" and not output:
        output = ui.get("tail") or ""
    if output.strip("\n"):
        blocks.append(_output(output))
    if state.get("error"):
        blocks.append(_block(_pre(escape(readable(cut(state["error"], OUTPUT_CHARS))))))
    blocks += [_block(_picture(a)) for a in _attachments(part)]
    children = ui.get("children") or []
    if children:
        inner = "".join(_card(child, nested=True) for child in children)
        blocks.append(_block(f'<div style="padding:8px 10px 4px 22px">{inner}</div>'))
    if ui.get("spill"):
        blocks.append(_spill(ui["spill"]))
    blocks.append(_foot(part))
    margin = "0 0 8px" if nested else "2px 0 4px"
    return (
        f'<div class="oc-s oc-s-{tone}" style="border-style:solid;border-width:1px 1px 1px 3px;border-radius:6px;'
        f"border-color:{_LINE};border-left-color:{accent};margin:{margin};overflow:hidden;font-size:13px;"
        f'line-height:1.45;text-align:left">{"".join(blocks)}</div>'
    )


def _block(inner: str, line: str = "solid") -> str:
    return f'<div class="oc-s-block" style="border-top:1px {line} {_LINE}">{inner}</div>'


def _pre(inner: str) -> str:
    return f'<pre style="{_PRE}">{inner}</pre>'


def _summary(text: str) -> str:
    return f'<summary class="oc-s-dim" style="font-size:11px;padding:2px 10px;cursor:pointer">{text}</summary>'


def _output(output: str) -> str:
    text = readable(cut(output, OUTPUT_CHARS)).rstrip("\n")
    lines = text.count("\n") + 1
    opened = " open" if lines <= OPEN_LINES else ""
    return _block(f"<details{opened}>{_summary(f'output · {extent(lines, None)}')}{_pre(escape(text))}</details>")


def _picture(attachment: dict[str, Any]) -> str:
    name = escape(visible_line(attachment.get("filename") or attachment.get("mime") or "attachment"))
    url = attachment.get("url")
    if is_picture(url):
        shown = f'<img alt="{name}" src="{escape(str(url))}" style="max-width:100%;max-height:480px">'
    else:
        shown = f'<span class="oc-s-dim">{name} ({escape(visible_line(attachment.get("mime") or ""))})</span>'
    return f'<div style="padding:8px 10px">{shown}</div>'


def _spill(spill: dict[str, Any]) -> str:
    line = int(spill.get("line") or 1)
    whole = extent(spill.get("lines"), spill.get("bytes")) or "Cut"
    url = str(spill.get("url") or "")
    link = ""
    if url and urlsplit(url).scheme in {"", "http", "https"}:
        link = f'<a class="oc-s-link" href="{escape(url)}">Open the whole output at line {line}</a> '
    path = escape(visible_line(str(spill["path"])))
    return _block(
        f'<div class="oc-s-dim" style="padding:5px 10px;font-size:12px">{escape(whole)}; the rest from line {line} '
        f'is kept {link}<br><code style="font-size:11px;word-break:break-word">{path}</code></div>',
        "dashed",
    )


def _foot(part: dict[str, Any]) -> str:
    state = part["state"]
    words = escape(" · ".join(decision_words(part)))
    given = state.get("input") or {}
    shown = json.dumps(given, indent=2, ensure_ascii=False) if given else str(state.get("raw") or "")
    floating = "float:right;max-width:70%;" if shown else ""
    quiet = f"{floating}font-size:11px;padding:2px 10px;text-align:right"
    foot = f'<div class="oc-s-dim" style="{quiet}">{words}</div>' if words else ""
    if shown:
        pre = _pre(escape(visible(cut(shown, INPUT_CHARS))))
        foot += f'<details>{_summary("input")}<div style="clear:both">{pre}</div></details>'
    return _block(foot) if foot else ""


def _diff(diff: str) -> str:
    """A unified diff with line numbers, its lines coloured; a hunk ends where its header says."""
    rows = _diff_rows(diff)
    width = len(str(max([number for _, number, _ in rows if number], default=0)))
    crlf = all(text.endswith("\r") for _, number, text in rows if number)
    drawn = []
    for sign, number, text in rows:
        shown = escape(visible(text.removesuffix("\r") if crlf else text))
        line = f'<span class="oc-s-dim">{str(number or "").rjust(width)}</span> {sign} {shown}'
        # a block each: with a colour in the background as wide as the card, without styles still a line
        if sign == "+":
            line = f'<span class="oc-s-add" style="background-color:rgba(46,160,67,0.18)">{line}</span>'
        elif sign == "-":
            line = f'<span class="oc-s-del" style="background-color:rgba(248,81,73,0.18)">{line}</span>'
        drawn.append(line)
    return _pre("\n".join(drawn))


def _diff_rows(diff: str) -> list[tuple[str, int, str]]:
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
            elif not rows and not _HEADER.match(line):
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


def _style() -> str:
    """The style sheet: Jupyter's variables where there are any, else light or dark as the reader prefers."""

    def values(dark: int) -> str:
        pairs = {name: colours[dark] for name, colours in _PALETTE.items()}
        return "".join(
            f"--oc-{name}:" + (f"var({_JUPYTER[name]},{value})" if name in _JUPYTER else value) + ";"
            for name, value in pairs.items()
        )

    own = f".oc-s{{{values(0)}background:var(--oc-bg);color:var(--oc-fg);border-color:var(--oc-line)!important;"
    mono = "var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)!important"
    rules = [
        own + "font-family:var(--jp-ui-font-family,system-ui,sans-serif)}",
        *(f".oc-s-{tone}{{border-left-color:var(--oc-{tone})!important}}" for tone in _TONES),
        *(f".oc-s-{tone}>div>.oc-s-accent{{color:var(--oc-{tone})!important}}" for tone in _TONES),
        ".oc-s-block{border-color:var(--oc-line)!important}",
        f".oc-s pre,.oc-s code,.oc-s-mono{{font-family:{mono};color:inherit;background:none!important}}",
        ".oc-s-dim{color:var(--oc-off)}.oc-s-link{color:var(--oc-run)!important}",
        ".oc-s-add,.oc-s-del{display:inline-block;width:100%}",
        ".oc-s-add{background:var(--oc-add)!important}.oc-s-del{background:var(--oc-del)!important}",
        f"[data-jp-theme-light=false] .oc-s,.vscode-dark .oc-s{{{values(1)}}}",
        f"@media(prefers-color-scheme:dark){{body:not([data-jp-theme-light],.vscode-light) .oc-s{{{values(1)}}}}}",
    ]
    return "".join(rules)


_STYLE = _style()
