"""The settled card's look: what an element carries itself, and the style sheet where it counts.

In a notebook that is not trusted JupyterLab's sanitizer lets inline styles with plain values through, and drops the
style sheet and ``var()``; GitHub drops both.
"""

from __future__ import annotations

from html import escape

from .mime import visible_line

TONES = {"ok": "#2b9348", "run": "#2f7de1", "ask": "#a67200", "err": "#d6453a", "off": "#808890"}
"""Accents that are readable on white and on black, for readers that drop the style sheet."""
NO_MATH = "tex2jax_ignore mathjax_ignore"
"""Classes that MathJax 2, 3 and 4 leave alone: `$` in a command or an output begins no formula."""
LINE = "rgba(128,128,128,0.3)"
MONO = "font-family:monospace;font-size:12px;"
PRE = (
    f"margin:0;padding:6px 10px;{MONO}line-height:1.5;white-space:pre-wrap;word-break:break-word;"
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


def block(inner: str, line: str = "solid") -> str:
    """A part of the card below others."""
    return f'<div class="oc-s-block" style="border-top:1px {line} {LINE}">{inner}</div>'


def padded(inner: str) -> str:
    """The same with room around what it holds."""
    return block(f'<div style="padding:6px 10px">{inner}</div>')


def pre(inner: str) -> str:
    """Text as it stands; `inner` is HTML."""
    return f'<pre style="{PRE}">{inner}</pre>'


def summary(text: str) -> str:
    """The line of a ``<details>`` that is always seen; `text` is HTML."""
    return f'<summary class="oc-s-dim" style="font-size:11px;padding:2px 10px;cursor:pointer">{text}</summary>'


def chip(text: str, colour: str = "") -> str:
    """A word or two with a line around."""
    tint = f";color:{colour}" if colour else ""
    dim = "" if colour else ' class="oc-s-dim"'
    look = f"border:1px solid {LINE};border-radius:9px;padding:0 6px;font-size:11px;white-space:nowrap{tint}"
    return f'<span{dim} style="{look}">{escape(visible_line(text))}</span>'


def dim(text: str) -> str:
    """Less important words; `text` is HTML."""
    return f'<span class="oc-s-dim" style="font-size:12px">{text}</span>'


def style_sheet() -> str:
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
        *(f".oc-s-{tone}{{border-left-color:var(--oc-{tone})!important}}" for tone in TONES),
        *(f".oc-s-{tone}>div>.oc-s-accent{{color:var(--oc-{tone})!important}}" for tone in TONES),
        ".oc-s-block{border-color:var(--oc-line)!important}",
        f".oc-s pre,.oc-s code,.oc-s-mono{{font-family:{mono};color:inherit;background:none!important}}",
        ".oc-s-dim{color:var(--oc-off)}.oc-s-link{color:var(--oc-run)!important}",
        ".oc-s-add,.oc-s-del{display:inline-block;width:100%}",
        ".oc-s-add{background:var(--oc-add)!important}.oc-s-del{background:var(--oc-del)!important}",
        f"[data-jp-theme-light=false] .oc-s,.vscode-dark .oc-s{{{values(1)}}}",
        f"@media(prefers-color-scheme:dark){{body:not([data-jp-theme-light],.vscode-light) .oc-s{{{values(1)}}}}}",
    ]
    return "".join(rules)


STYLE = style_sheet()
