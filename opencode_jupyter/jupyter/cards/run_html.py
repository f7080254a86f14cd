"""The settled card of a run as HTML that stands on its own: no script, no handler; calls fold with ``<details>``."""

from __future__ import annotations

from html import escape
from typing import Any

from ...text.visible import readable, visible_line
from .call_html import html as call_html
from .call_html import pictures_of
from .run_json import with_children
from .style import DIM, HEAD, LINE, MONO, ON_PAPER, PAPER, TONES, block, frame, padded, pre, summary
from .wording import DENIED, head_words, run_state_words, state_words, time_words

MARKDOWN_CHARS = 64_000
"""A longer text is shown as it is."""
BYPASS = "bypass"
"""The mode in which nothing is asked."""


def html(run: dict[str, Any]) -> str:
    """The run as HTML that needs nothing else."""
    tone = run_state_words(run)[2]
    cards = with_children(run["items"])
    blocks = [_head(run, TONES[tone])]
    calls: list[str] = []
    for item in run["items"]:
        if item["kind"] == "call":
            if not item.get("parent"):
                calls.append(_call(cards[item["id"]]))
            continue
        if calls:
            blocks.append(block("".join(calls)))
            calls = []
        blocks.append(_words(item))
    if calls:
        blocks.append(block("".join(calls)))
    if run.get("end"):
        blocks.append(_end(run["end"]))
    return frame("".join([*blocks, PAPER]), tone, height="1.5")


def _head(run: dict[str, Any], accent: str) -> str:
    mark, word, _ = run_state_words(run)
    mode = str(run.get("mode") or "")
    colour = f"color:{TONES['err']}" if mode == BYPASS else ""
    look = f"border:1px solid {LINE};border-radius:9px;padding:0 6px;font-size:11px;{colour}"
    shown_mode = f' <b style="{look}">{escape(visible_line(mode))}</b>' if mode else ""
    about = escape(" · ".join(head_words(run)))
    return (
        f'<div style="{HEAD}"><b class="oc-s-mono" style="{MONO}">{escape(visible_line(run["agent"]))}</b> '
        f'<span {DIM};{MONO}flex:1;word-break:break-word">{escape(visible_line(run["model"]))}</span>{shown_mode} '
        f'<b style="white-space:nowrap;font-size:12px"><span style="color:{accent}">{mark}</span> {escape(word)}</b> '
        f'<small {DIM};white-space:nowrap;font-size:11px">{about}</small></div>'
    )


def _words(item: dict[str, Any]) -> str:
    text = item["text"]
    if item["kind"] == "note":
        return padded(f'<span {DIM};font-size:12px">{escape(readable(text))}</span>')
    from .markdown import markdown  # its parser is imported with the first text

    html = markdown(text) if len(text) <= MARKDOWN_CHARS else pre(escape(readable(text)))
    if item["kind"] == "text":
        return block(f'<div style="padding:2px 10px">{html}</div>')
    name = "summary of the conversation" if item["kind"] == "summary" else "reasoning"
    return block(f'<details>{summary(name)}<div {DIM};padding:0 10px 4px">{html}</div></details>')


def _call(part: dict[str, Any]) -> str:
    """A call as a line that opens, with its pictures below; open at once where something went wrong."""
    mark, word, tone = state_words(part)
    label = escape(visible_line(part["ui"].get("label") or part["state"].get("title") or ""))
    state = "" if tone == "ok" else f" {escape(word)}"
    opened = " open" if tone in ("err", "ask") or mark == DENIED else ""
    head = (
        f'<summary style="padding:2px 10px;cursor:pointer;font-size:12px">'
        f'<b><span style="color:{TONES[tone]}">{mark}</span>{state}</b> <b class="oc-s-mono" style="{MONO}">'
        f'{escape(visible_line(part["tool"]))}</b> <span class="oc-s-mono" style="{MONO}">{label}</span> '
        f'<small {DIM};float:right;font-size:11px">{escape(time_words(part))}</small></summary>'
    )
    inner = f'<div style="padding:2px 10px 4px 22px">{call_html(part, pictures=False)}</div>'
    return f'<details class="{ON_PAPER}"{opened}>{head}{inner}</details>{pictures_of(part)}'


def _end(end: dict[str, str]) -> str:
    colour = TONES[end["tone"]]
    advice = f'<div {DIM};font-size:12px">{escape(readable(end["advice"]))}</div>' if end.get("advice") else ""
    text = "<br>".join(escape(readable(line)) for line in end["text"].split("\n"))
    return padded(f'<b style="color:{colour};font-weight:600">{text}</b>{advice}')
