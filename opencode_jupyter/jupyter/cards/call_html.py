"""The settled card as HTML that stands on its own: no script, no handler, no address but the spilled output's.

What JupyterLab's sanitizer lets through in a notebook that is not trusted keeps the card's bones; where the style sheet
counts, its colours follow the theme; on GitHub, which drops both, the elements alone read in order.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any
from urllib.parse import urlsplit

from .bodies_html import bodies, diff
from .style import DIM, HEAD, LINE, MONO, NO_MATH, ON_PAPER, PAPER, TONES, block, pre, summary
from .wording import (
    INPUT_CHARS,
    OUTPUT_CHARS,
    cut,
    decision_words,
    extent,
    output_of,
    pattern_words,
    readable,
    says_output,
    state_words,
    time_words,
    visible,
    visible_line,
)


def html(part: dict[str, Any]) -> str:
    """The card as HTML that needs nothing else."""
    return card(part)


def card(part: dict[str, Any], *, nested: bool = False) -> str:
    """The card, or one inside another."""
    mark, word, tone = state_words(part)
    state, ui = part["state"], part["ui"]
    tool, label = escape(visible_line(part["tool"])), escape(visible_line(ui.get("label") or state.get("title") or ""))
    accent = TONES[tone]
    time = time_words(part)
    head = (
        f'<b class="oc-s-mono" style="{MONO}">{tool}</b>',
        f'<span class="oc-s-mono" style="{MONO}flex:1;word-break:break-word">{label}</span>',
        f'<b style="white-space:nowrap;font-size:12px"><span style="color:{accent}">{mark}</span> {escape(word)}</b>',
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
    blocks += bodies(part)
    if output.strip("\n"):
        folded = says_output(part) or (nested and state.get("status") == "completed")
        blocks.append(_output(output, folded=folded))
    if state.get("error"):
        blocks.append(block(pre(escape(readable(cut(state["error"], OUTPUT_CHARS))))))
    if ui.get("sent"):
        sent = pre(escape(readable(cut(ui["sent"], OUTPUT_CHARS))))
        blocks.append(block(f"<details>{summary('sent to the model')}{sent}</details>"))
    children = ui.get("children") or []
    if children:
        inner = "".join(card(child, nested=True) for child in children) + PAPER
        blocks.append(block(f'<div style="padding:8px 10px 4px 22px">{inner}</div>'))
    if ui.get("spill"):
        blocks.append(_spill(ui["spill"]))
    blocks.append(_foot(part))
    margin = "0 0 8px" if nested else "2px 0 4px"
    return (
        f'<div class="oc-s oc-s-{tone} {NO_MATH}" style="border-style:solid;border-width:1px 1px 1px 3px;'
        f"border-radius:6px;border-color:{LINE};border-left-color:{accent};margin:{margin};overflow:hidden;"
        f'font-size:13px;line-height:1.45;text-align:left">{"".join(blocks)}</div>'
    )


def _output(output: str, *, folded: bool) -> str:
    text = readable(cut(output, OUTPUT_CHARS)).rstrip("\n")
    lines = text.count("\n") + 1
    opened = "" if folded else " open"  # however long: not every browser prints what is folded
    head = summary(f"output · {extent(lines, None)}")
    return block(f'<details class="{ON_PAPER}"{opened}>{head}{pre(escape(text))}</details>')


def _spill(spill: dict[str, Any]) -> str:
    line = int(spill.get("line") or 1)
    whole = extent(spill.get("lines"), spill.get("bytes")) or "Cut"
    url = str(spill.get("url") or "")
    link = ""
    if url and urlsplit(url).scheme in {"", "http", "https"}:
        link = f'<a class="oc-s-link" href="{escape(url)}">Open the whole output at line {line}</a> '
    path = escape(visible_line(str(spill["path"])))
    return block(
        f'<div {DIM};padding:5px 10px;font-size:12px">{escape(whole)}; the rest from line {line} '
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
    foot = f'<div {DIM};{quiet}">{words}</div>' if words else ""
    if shown:
        given_text = pre(escape(visible(cut(shown, INPUT_CHARS))))
        foot += f'<details>{summary("input")}<div style="clear:both">{given_text}</div></details>'
    each = pattern_words(part)
    if each:
        foot += (
            f"<details>{summary(f'{len(each)} parts, each with its rule')}{pre(escape(chr(10).join(each)))}</details>"
        )
    return block(foot) if foot else ""
