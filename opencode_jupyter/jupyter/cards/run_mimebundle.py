"""The MIME bundle of a finished run, for every reader with or without a kernel: JSON, text, and HTML that stands alone.

The HTML has no script and no handler; calls fold with ``<details>``.
"""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import Any

from ...text.visible import readable, visible_line
from .call_html import html as call_html
from .call_html import pictures_of
from .call_mimebundle import clip, mark_lost
from .display import Bundle
from .run_json import with_children
from .saved_json import INPUT_CHARS, METADATA_KEY, RUN_MIME, cut, saved_part, split_run
from .style import DIM, HEAD, LINE, MONO, ON_PAPER, PAPER, TONES, block, dim, frame, padded, pre, summary
from .wording import DENIED, call_words, denial_reason, head_words, is_live, run_state_words, state_words, time_words

LOST = "State unknown: the kernel ended before the run did."
PLAIN_LINES = 60
"""Most lines of the text form."""
PLAIN_COLUMNS = 160
FIRST_LINES = 12
"""Lines of the beginning that are kept where there are too many; the end matters more."""
OUTPUT_BUDGET = 1_200_000
"""Characters of all calls' outputs together that are saved."""
CALL_CHARS = (1_000, 16_000)
"""Least and most characters of one call's output that are saved, by how many calls there are."""
TEXT_CHARS = 100_000
"""Most characters of one text that are saved."""
PICTURES_BUDGET = 8_000_000
"""Characters of all saved pictures together; later ones are only named."""
MARKDOWN_CHARS = 64_000
"""A longer text is shown as it is in HTML."""
BYPASS = "bypass"
"""The mode in which nothing is asked."""


def settled_bundle(run: dict[str, Any]) -> Bundle:
    """The MIME bundle of a finished run.

    Args:
        run: the run as its card's JSON (``labextension/src/run/types.ts``).
    """
    stable, volatile = split_run(saved_run(run))
    return {"text/plain": plain_text(stable), "text/html": run_html(stable), RUN_MIME: stable}, {METADATA_KEY: volatile}


def lost_bundle(run: dict[str, Any]) -> dict[str, Any]:
    """The MIME types beside a live card's widget, which remain if the kernel dies meanwhile."""
    lost = {**run, "status": "stopped", "outcome": "ended", "end": {"tone": "off", "text": LOST}}
    lost["items"] = [_ended(item) for item in run["items"]]
    saved = saved_run(lost)  # whole: what takes its place is found by its ids
    return {"text/html": run_html(saved), RUN_MIME: saved}


def _ended(item: dict[str, Any]) -> dict[str, Any]:
    if item["kind"] != "call" or not is_live(item["part"]):
        return item
    part = {**item["part"], "state": dict(item["part"]["state"]), "ui": dict(item["part"]["ui"])}
    mark_lost(part)
    return {**item, "part": part}


def saved_run(run: dict[str, Any]) -> dict[str, Any]:
    """`run` as a notebook keeps it: bounded, without pending requests."""
    calls = sum(item["kind"] == "call" for item in run["items"])
    most = max(CALL_CHARS[0], min(CALL_CHARS[1], OUTPUT_BUDGET // max(calls, 1)))
    room, items = PICTURES_BUDGET, []
    for item in run["items"]:
        if item["kind"] == "gone":
            continue
        if item["kind"] != "call":
            items.append({**item, "text": cut(item["text"], TEXT_CHARS)})
            continue
        part = item["part"]
        attachments = []
        for attachment in part["state"].get("attachments") or ():
            room -= len(attachment["url"])
            attachments.append(attachment if room >= 0 else {**attachment, "url": ""})
        if attachments:
            part = {**part, "state": {**part["state"], "attachments": attachments}}
        part = saved_part(part, most)
        items.append({**item, "part": part})
    saved = {**run, "items": items}
    if saved.get("end"):
        saved["end"] = {name: cut(readable(text), INPUT_CHARS) for name, text in saved["end"].items()}
    saved.pop("retry", None)
    return saved


# ---------------------------------------------------------------------- text/plain


def live_text(run: dict[str, Any]) -> str:
    """The text of a running run where there are no widgets."""
    return f"agent {visible_line(run['agent'])} ({visible_line(run['model'])}): {run['status']}"


def plain_text(run: dict[str, Any]) -> str:
    """The run as at most `PLAIN_LINES` lines of text."""
    head = _head_line(run)
    body: list[str] = []
    cards = with_children(run["items"])
    for item in run["items"]:
        if item["kind"] == "call":
            if not item.get("parent"):
                body += call_lines(cards[item["id"]])
        elif item["kind"] == "text":
            body += ["", *readable(item["text"]).strip("\n").split("\n"), ""]
        elif item["kind"] == "note":
            body.append(f"· {readable(item['text'])}")
        else:
            body.append(f"· {fold_title(item)}")
    foot = _foot(run)
    body = _without_blank_ends(body)
    room = PLAIN_LINES - 1 - min(len(foot), 10)
    if len(body) > room:
        left = len(body) - room + 1
        body = [*body[:FIRST_LINES], f"… {left:,} more lines …", *body[FIRST_LINES + left :]]
    return "\n".join(clip(line, PLAIN_COLUMNS) for line in [head, *body, *foot[:10]])


def end_text(run: dict[str, Any]) -> str:
    """The end of a run whose text was printed as it arrived."""
    return "\n".join(clip(line, PLAIN_COLUMNS) for line in [_head_line(run), *_foot(run)])


def _head_line(run: dict[str, Any]) -> str:
    mark, word, _ = run_state_words(run)
    mode = f", {visible_line(run['mode'])}" if run.get("mode") else ""
    about = ", ".join([word, *head_words(run)])
    return f"{mark} {visible_line(run['agent'])} · {visible_line(run['model'])}{mode} ({about})"


def _foot(run: dict[str, Any]) -> list[str]:
    end = run.get("end") or {}
    return [line for name in ("text", "advice") for line in readable(end.get(name, "")).split("\n") if line]


def _without_blank_ends(lines: list[str]) -> list[str]:
    """Without blank lines at the ends or beside each other."""
    squeezed: list[str] = []
    for line in lines:
        if line.strip() or (squeezed and squeezed[-1].strip()):
            squeezed.append(line)
    while squeezed and not squeezed[-1].strip():
        squeezed.pop()
    return squeezed


def call_lines(part: dict[str, Any], depth: int = 0) -> list[str]:
    """A call in a line or two, and those inside it."""
    mark, word, tone = state_words(part)
    time = time_words(part)
    about = "" if tone == "ok" and not time else f" ({', '.join(filter(None, ['' if tone == 'ok' else word, time]))})"
    lines = ["  " * depth + f"{mark} {call_words(part)}{about}"]
    error = readable(str(part["state"].get("error") or denial_reason(part))).strip()  # may be empty: only colours
    if error and (tone == "err" or mark == DENIED):
        lines.append("  " * depth + f"    {error.splitlines()[0]}")
    for child in part["ui"].get("children") or ():
        lines += call_lines(child, depth + 1)
    return lines


def fold_title(item: dict[str, Any]) -> str:
    """The line of a folded thought or summary."""
    lines = item["text"].strip().split("\n")
    first = visible_line(lines[0].strip("*# "))[:80]
    name = "Summary" if item["kind"] == "summary" else "Thought"
    return f"{name}: {first}{' …' if len(lines) > 1 or len(lines[0]) > 80 else ''}"


# ---------------------------------------------------------------------- text/html


def run_html(run: dict[str, Any]) -> str:
    """The run as HTML that needs nothing else."""
    tone = run_state_words(run)[2]
    cards = with_children(run["items"])
    blocks = [_head_html(run, TONES[tone])]
    for are_calls, items in groupby(run["items"], lambda item: item["kind"] == "call"):
        if are_calls:
            calls = "".join(_call_html(cards[item["id"]]) for item in items if not item.get("parent"))
            blocks += [block(calls)] if calls else []
        else:
            blocks += map(_words_html, items)
    if run.get("end"):
        blocks.append(_end_html(run["end"]))
    return frame("".join([*blocks, PAPER]), tone, height="1.5")


def _head_html(run: dict[str, Any], accent: str) -> str:
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


def _words_html(item: dict[str, Any]) -> str:
    text = item["text"]
    if item["kind"] == "note":
        return padded(dim(escape(readable(text))))
    from .markdown import markdown  # its parser is imported with the first text

    html = markdown(text) if len(text) <= MARKDOWN_CHARS else pre(escape(readable(text)))
    if item["kind"] == "text":
        return block(f'<div style="padding:2px 10px">{html}</div>')
    name = "summary of the conversation" if item["kind"] == "summary" else "reasoning"
    return block(f'<details>{summary(name)}<div {DIM};padding:0 10px 4px">{html}</div></details>')


def _call_html(part: dict[str, Any]) -> str:
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


def _end_html(end: dict[str, str]) -> str:
    colour = TONES[end["tone"]]
    advice = f'<div {DIM};font-size:12px">{escape(readable(end["advice"]))}</div>' if end.get("advice") else ""
    text = "<br>".join(escape(readable(line)) for line in end["text"].split("\n"))
    return padded(f'<b style="color:{colour};font-weight:600">{text}</b>{advice}')
