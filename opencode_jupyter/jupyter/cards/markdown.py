"""A model's Markdown as HTML for the saved output.

HTML in the text is shown as text, links lead to http(s) only and show where, images are not loaded. Formulas are kept
for the page's typesetter, such as that of an HTML export. The card of a running page draws a smaller part of Markdown
(``run/markdown.ts``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from itertools import takewhile

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from ...text.visible import readable, visible
from .style import MATH, pre

_RULES = (
    "fence", "blockquote", "hr", "list", "heading", "table", "newline", "escape", "backticks", "emphasis",
    "strikethrough", "link",
)  # fmt: skip
_FORMULA = re.compile(
    r"\$\$[^$]+\$\$|\\\((?:[^\\\n]|\\(?![()]))+\\\)|\\\[(?:[^\\\n]|\\(?![\[\]]))+\\\]"
    r"|(?<![\w\\])\$(?=[^\s$])[^$\n]*(?<=[^\s\\])\$(?![\w$])"
)
_FORMULA_BLOCK = re.compile(
    r"(?:\$\$(?:[^$\n]|\n(?!\s*\n))+\$\$|\\\[(?:[^\\\n]|\\(?![\[\]])|\n(?!\s*\n))+\\\])[ \t]*$",
    re.MULTILINE,
)
_BARE_URL = re.compile(r"https?://[^\s<>()\[\]\"'`]+[^\s<>()\[\]\"'`.,:;!?]")
_HTTP = re.compile(r"https?://", re.IGNORECASE)
_TAGS = {"strong": "b", "em": "i"}
_STYLES = {
    "p": "margin:4px 0",
    "blockquote": "margin:4px 0;padding-left:10px",
    "ul": "margin:4px 0;padding-left:20px",
    "ol": "margin:4px 0;padding-left:20px",
    "table": "border-collapse:collapse;margin:4px 0",
    "th": "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.3)",
    "td": "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.3)",
}
_SIZES = {"h1": "17px", "h2": "15px"}


def markdown(text: str) -> str:
    """HTML of a text."""
    return str(_parser().render(readable(text)))


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Whether a link is one; else it stays the text it was."""
        return bool(_HTTP.match(url))


class _Renderer(RendererHTML):
    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:  # noqa: N802
        token = tokens[idx]
        token.block = False  # no line breaks between the tags
        token.tag = _TAGS.get(token.tag, token.tag)
        if token.nesting == 1 and token.tag in _STYLES:
            aligned = token.attrs.get("style")
            token.attrSet("style", f"{aligned};{_STYLES[token.tag]}" if aligned else _STYLES[token.tag])
        return super().renderToken(tokens, idx, options, env)

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """No heading of the page, whose outline is the notebook's."""
        return f'<p style="margin:8px 0 4px;font-size:{_SIZES.get(tokens[idx].tag, "13px")}"><b>'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</b></p>"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return pre(escape(tokens[idx].content.removesuffix("\n")))

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "<br>"

    hardbreak = softbreak

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        text = tokens[idx].content
        if "href" in env:
            return escape(text)
        out, last = [], 0
        for match in _BARE_URL.finditer(text):
            url = escape(match.group())
            out += [escape(text[last : match.start()]), f'<a class="oc-s-link" href="{url}" rel="noopener">{url}</a>']
            last = match.end()
        return "".join([*out, escape(text[last:])])

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        url = str(tokens[idx].attrs["href"])
        inside = takewhile(lambda token: token.type != "link_close", tokens[idx + 1 :])
        label = "".join(token.content for token in inside)
        env["href"] = f' <span class="oc-s-dim">({escape(visible(url))})</span>' if label and label != url else ""
        return f'<a class="oc-s-link" href="{escape(url)}" rel="noopener">{"" if label else escape(visible(url))}'

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</a>{env.pop('href')}"

    def formula(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A formula, which the page's typesetter finds inside a card that it leaves alone."""
        span = f'<span class="{MATH}">{escape(tokens[idx].content)}</span>'
        return f"<div>{span}</div>" if tokens[idx].block else span


@cache
def _parser() -> MarkdownIt:
    parser = _Parser("zero", {"breaks": True}, renderer_cls=_Renderer).enable(_RULES)
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    parser.block.ruler.before("fence", "formula", _block_formula, {"alt": ["paragraph"]})
    return parser


def _inline_formula(state: StateInline, silent: bool) -> bool:
    match = _FORMULA.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = match.group()
    state.pos = match.end()
    return True


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = _FORMULA_BLOCK.match(state.src, state.bMarks[start] + state.tShift[start])
    if match is None or state.level:
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.block = match.group().rstrip(), True
        state.line = start + token.content.count("\n") + 1
    return True
