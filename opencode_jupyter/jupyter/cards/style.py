"""The settled card's look. Each element carries its own: a style sheet would stand before every card of an export.

Text has the page's colour on the page's background, so that it reads in any theme. JupyterLab's sanitizer, at work in
a notebook that is not trusted, lets inline styles with plain values through; GitHub drops all of them.
"""

from __future__ import annotations

import re
from html import escape

from ...text.visible import visible_line

TONES = {"ok": "#2b9348", "run": "#2f7de1", "ask": "#a67200", "err": "#d6453a", "off": "#808890"}
"""Colours of marks and lines that are legible on white and on black."""
NO_MATH = "tex2jax_ignore mathjax_ignore"
"""Classes that MathJax 2, 3 and 4 leave alone: `$` in a command or an output begins no formula."""
MATH = "tex2jax_process mathjax_process"
"""Classes whose content it typesets inside such an element."""
_LINE_BEFORE_BLANK = re.compile(r"\n(?=[ \t]*(?:\n|$))")
DIM = 'class="oc-s-dim" style="opacity:0.75'
"""Beginning of the attributes of less important words."""
LINE = "rgba(128,128,128,0.3)"
HEAD = "display:flex;gap:8px;align-items:baseline;padding:6px 10px"
"""Style of a card's first line."""
ON_PAPER = "oc-s-paper"
"""Class of a fold that is printed open."""
PAPER = (
    '<link rel="stylesheet" media="print" href="data:text/css,'
    f".{ON_PAPER}::details-content{{content-visibility:visible;block-size:auto}}"
    f'.{ON_PAPER} pre{{max-height:none!important}}">'
)
"""Prints the folds inside of a card open, and their texts whole.

A link, since a `<style>` is shown as text where Markdown leaves it out.
"""
MONO = "font-family:monospace;font-size:12px;"
PRE = (
    f"margin:0;padding:6px 10px;{MONO}line-height:1.5;white-space:pre-wrap;word-break:break-word;"
    "border:0;background-color:transparent;color:inherit"
)


def frame(inner: str, tone: str, *, margin: str = "2px 0 4px", height: str = "1.45") -> str:
    """A card; its left edge has the colour of `tone`."""
    return (
        f'<div class="oc-s oc-s-{tone} {NO_MATH}" style="border-style:solid;border-width:1px 1px 1px 3px;'
        f"border-radius:6px;border-color:{LINE};border-left-color:{TONES[tone]};margin:{margin};overflow:hidden;"
        f'font-size:13px;line-height:{height};text-align:left">{inner}</div>'
    )


def block(inner: str, line: str = "solid") -> str:
    """A part of the card below others."""
    return f'<div class="oc-s-block" style="border-top:1px {line} {LINE}">{inner}</div>'


def padded(inner: str) -> str:
    """The same with padding."""
    return block(f'<div style="padding:6px 10px">{inner}</div>')


def pre(inner: str) -> str:
    """Text as it stands; `inner` is HTML. A blank line would end the HTML in a Markdown export, so it has none."""
    return f'<pre style="{PRE}">{_LINE_BEFORE_BLANK.sub("&#10;", inner)}</pre>'


def scrolled(inner: str) -> str:
    """The same in a box of limited height, which scrolls; `PAPER` prints it whole."""
    return pre(inner).replace('style="', 'tabindex="0" style="max-height:480px;overflow-y:auto;', 1)


def summary(text: str) -> str:
    """The ``<summary>`` of a ``<details>``; `text` is HTML."""
    return f'<summary {DIM};font-size:11px;padding:2px 10px;cursor:pointer">{text}</summary>'


def chip(text: str, colour: str = "") -> str:
    """A short text with a border."""
    tint = f";color:{colour}" if colour else ""
    dim = "" if colour else ' class="oc-s-dim"'
    look = f"border:1px solid {LINE};border-radius:9px;padding:0 6px;font-size:11px;white-space:nowrap{tint}"
    return f'<span{dim} style="{look}">{escape(visible_line(text))}</span>'


def dim(text: str) -> str:
    """Less important words; `text` is HTML."""
    return f'<span {DIM};font-size:12px">{text}</span>'
