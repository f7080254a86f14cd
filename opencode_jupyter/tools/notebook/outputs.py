"""A code cell's outputs in words: text cut to what a reader needs, pictures as attachments or a note."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Literal

from ...core.result import Attachment
from ...text.visible import terminal_text
from .cells import join_lines

Detail = Literal["none", "short", "full"]
SHORT_LINES = 40
SHORT_CHARS = 2_000
"""Of one output, when outputs are shown short."""
ERROR_LINES = 12
"""Last lines of a traceback, when outputs are shown short."""
PICTURE_BYTES = 5 << 20
"""A larger picture is only named; providers take no more."""
PICTURES = 20
"""Attached at most."""
HTML_CHARS = 200_000
"""Of an output that is only HTML, read for its text."""
RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = ("text/markdown", "text/latex", "text/plain")
"""Types of a rich output in order of preference; HTML after them."""


@dataclass(slots=True)
class RenderedOutputs:
    """Outputs in words.

    Attributes:
        text: what they say.
        attachments: pictures that go along.
        cut: whether something was left out.
    """

    text: str = ""
    attachments: list[Attachment] = field(default_factory=list)
    cut: bool = False


def render_outputs(outputs: Iterable[dict[str, Any]], detail: Detail, name: str, pictures: int = 0) -> RenderedOutputs:
    """Outputs in words.

    Args:
        outputs: as in a notebook's JSON.
        detail: how much of each.
        name: of the cell, for file names of pictures.
        pictures: how many pictures may be attached; others are named with their size.
    """
    rendered = RenderedOutputs()
    if detail == "none":
        return rendered
    pieces: list[str] = []
    for output in _merged(outputs):
        kind = output.get("output_type")
        if kind == "stream":
            pieces.append(_short(_plain(join_lines(output.get("text"))), detail, rendered))
        elif kind == "error":
            pieces.append(_error(output, detail, rendered))
        elif isinstance(data := output.get("data"), dict):
            pieces.append(_rich(data, detail, rendered, name, pictures))
        else:
            pieces.append(f"[an output of type {kind}]")
    rendered.text = "\n".join(piece.rstrip("\n") for piece in pieces if piece.strip())
    return rendered


def _merged(outputs: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Pieces of one stream that follow each other as one: print and progress bars come in many."""
    waiting: dict[str, Any] | None = None
    texts: list[str] = []
    for output in outputs:
        same = waiting is not None and output.get("output_type") == "stream" == waiting.get("output_type")
        if same and waiting is not None and output.get("name") == waiting.get("name"):
            texts.append(join_lines(output.get("text")))
            continue
        if waiting is not None:
            yield {**waiting, "text": "".join(texts)} if texts else waiting
        waiting, texts = output, [join_lines(output.get("text"))] if output.get("output_type") == "stream" else []
    if waiting is not None:
        yield {**waiting, "text": "".join(texts)} if texts else waiting


def _error(output: dict[str, Any], detail: Detail, rendered: RenderedOutputs) -> str:
    head = f"{output.get('ename', 'Error')}: {output.get('evalue', '')}".strip()
    traceback = output.get("traceback")
    lines = _plain("\n".join(line for line in traceback if isinstance(line, str))).split("\n") if traceback else []
    lines = [line for line in lines if line.strip("- \t")]
    if detail == "short" and len(lines) > ERROR_LINES:
        rendered.cut = True
        lines = [f"… ({len(lines) - ERROR_LINES} earlier lines of the traceback)", *lines[-ERROR_LINES:]]
    text = "\n".join(lines)
    last = lines[-1] if lines else ""
    return _short(text if last.startswith(str(output.get("ename", "Error"))) else f"{text}\n{head}", detail, rendered)


def _rich(data: dict[str, Any], detail: Detail, rendered: RenderedOutputs, name: str, pictures: int) -> str:
    notes = [_picture(join_lines(data[mime]), mime, rendered, name, pictures) for mime in RASTER if mime in data]
    if "image/svg+xml" in data:
        notes.append(f"[image/svg+xml, {len(join_lines(data['image/svg+xml'])):,} characters]")
    text = _text_of(data)
    if text is None:
        others = [mime for mime in data if not mime.startswith("image/")]
        if others:
            notes.append(f"[{', '.join(others)}]")
        return "\n".join(notes)
    return "\n".join([_short(text, detail, rendered), *notes] if text else notes)


def _text_of(data: dict[str, Any]) -> str | None:
    for mime in TEXTS:
        if mime in data and (text := join_lines(data[mime])).strip():
            return _plain(text)
    if "text/html" in data:
        return text_of_html(join_lines(data["text/html"])[:HTML_CHARS])
    for mime in ("application/json", "application/geo+json"):
        if mime in data:
            return json.dumps(data[mime], ensure_ascii=False)
    return None


def _picture(encoded: str, mime: str, rendered: RenderedOutputs, name: str, pictures: int) -> str:
    encoded = encoded.strip()
    if unsent := encoded.startswith("?") and encoded[1:].isdecimal():  # how JupyterLab names one too large to send
        size = int(encoded[1:20]) * 3 // 4
    else:
        size = len(encoded) * 3 // 4
    note = f"[{mime}, {size / 1000:,.0f} kB]" if size >= 1000 else f"[{mime}, {size} bytes]"
    if unsent or len(rendered.attachments) >= pictures or size > PICTURE_BYTES or not encoded:
        rendered.cut = True
        return note
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return f"[{mime}, which can't be decoded]"
    ending = mime.removeprefix("image/")
    number = len(rendered.attachments) + 1
    rendered.attachments.append(Attachment.from_bytes(content, mime, f"{name}-{number}.{ending}"))
    return note


def _plain(text: str) -> str:
    """A terminal's output as lines: no escapes, and what a progress bar wrote last."""
    return terminal_text(text).rstrip("\r")


def _short(text: str, detail: Detail, rendered: RenderedOutputs) -> str:
    """Head and tail of a long text."""
    if detail == "full":
        return text
    lines = text.rstrip("\n").split("\n")
    if len(lines) > SHORT_LINES:
        rendered.cut = True
        head, tail = lines[: SHORT_LINES // 2], lines[-SHORT_LINES // 2 :]
        text = "\n".join([*head, f"… ({len(lines) - SHORT_LINES:,} more lines)", *tail])
    if len(text) > SHORT_CHARS:
        rendered.cut = True
        half = SHORT_CHARS // 2
        text = f"{text[:half]} … ({len(text) - SHORT_CHARS:,} more characters) … {text[-half:]}"
    return text


class _Html(HTMLParser):
    """Text of HTML; cells of a table apart, rows and blocks on lines of their own."""

    BLOCKS = frozenset({"p", "div", "br", "tr", "table", "li", "ul", "ol", "h1", "h2", "h3", "h4", "pre", "details"})
    HIDDEN = frozenset({"script", "style", "head", "template"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._hidden += tag in self.HIDDEN
        self.pieces.append("\n" if tag in self.BLOCKS else "\t" if tag in ("td", "th") else "")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in self.HIDDEN))
        if tag in self.BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def text_of_html(html: str) -> str:
    """The text of `html` without its markup."""
    parser = _Html()
    parser.feed(html)
    parser.close()
    lines = (
        " ".join(line.split()) if "\t" not in line else line.strip() for line in "".join(parser.pieces).split("\n")
    )
    return "\n".join(line for line in lines if line.strip())
