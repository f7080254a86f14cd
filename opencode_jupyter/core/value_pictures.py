"""Figures, images and other objects that show themselves as a picture, as attachments of a bounded size."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Mapping
from typing import Any

from .result import Attachment
from .value_tables import Rendering, class_names, count_of, cut, short_repr

PICTURE_BYTES = 3_000_000
"""A larger picture is made smaller: saved cards leave it out (`jupyter.cards`)."""
AXES = 20
"""Most axes of a figure whose titles and labels a model reads."""
LABEL_CHARS = 500
"""Most characters of these."""
BYTES_CHARS = 1_000
"""Most characters of bytes that are no picture."""
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))
_DISPLAY_METHODS: tuple[tuple[str | None, str], ...] = (
    (None, "_repr_mimebundle_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
)


def render_bytes(data: bytes) -> Rendering:
    """Pictures and PDF documents as attachments, other bytes by their size and beginning."""
    size = count_of(len(data), "byte")
    kind = next((kind for start, kind in _PICTURES if data.startswith(start)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "webp"
    if kind is not None and len(data) <= PICTURE_BYTES:
        return Rendering(
            f"{kind.upper()} image, {size}", [], [Attachment.from_bytes(data, f"image/{kind}", f"image.{kind}")]
        )
    if data.startswith(b"%PDF-") and len(data) <= PICTURE_BYTES:
        return Rendering(f"PDF document, {size}", [], [Attachment.from_bytes(data, "application/pdf", "document.pdf")])
    return Rendering(f"{size}: {cut(repr(data[:BYTES_CHARS]), BYTES_CHARS)}")


def _png(data: bytes, name: str, text: str) -> Rendering:
    width, height = struct.unpack(">II", data[16:24])
    head, colon, rest = text.partition(":")
    return Rendering(
        f"{head}, {width} × {height} pixels{colon}{rest}", [], [Attachment.from_bytes(data, "image/png", name)]
    )


def figure_of(value: Any) -> Any:
    """The figure that something drawn (axes, a line, a legend) belongs to; else the value itself."""
    while ("matplotlib", "Artist") in class_names(value) and ("matplotlib", "Figure") not in class_names(value):
        parent = value.get_figure()
        if parent is None or parent is value:
            return value
        value = parent
    return value


def render_artist(value: Any) -> Rendering:
    """A matplotlib figure, or the figure that axes or another artist belong to."""
    figure = figure_of(value)
    if ("matplotlib", "Figure") not in class_names(figure):
        return Rendering(short_repr(value))
    dpi = figure.dpi
    data = b""
    for shrink in (1, 2, 4, 8):
        buffer = io.BytesIO()
        figure.savefig(
            buffer,
            format="png",
            dpi=dpi / shrink,
            facecolor=figure.get_facecolor(),
            edgecolor=figure.get_edgecolor(),
            bbox_inches="tight" if figure.axes else None,
        )
        data = buffer.getvalue()
        if len(data) <= PICTURE_BYTES:
            break
    _close(figure)
    return _png(data, "figure.png", f"Figure{_drawn(figure)}")


def _drawn(figure: Any) -> str:
    """Titles and labels of a figure's axes, for a model that cannot see."""
    words = []
    for axes in figure.axes[:AXES]:
        labels = [f"{way}: {text}" for way, text in (("x", axes.get_xlabel()), ("y", axes.get_ylabel())) if text]
        words.append(" ".join(filter(None, [axes.get_title(), f"({', '.join(labels)})" if labels else ""])))
    words = [word for word in words if word]
    return f": {cut('; '.join(words), LABEL_CHARS)}" if words else ""


def _close(figure: Any) -> None:
    """Have pyplot forget a figure that is shown here: a notebook would show it again below the cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    backend = str(sys.modules["matplotlib"].rcParams["backend"]).lower() if pyplot is not None else ""
    if pyplot is not None and ("inline" in backend or backend == "agg"):
        pyplot.close(figure)


def render_figure_holder(value: Any) -> Rendering:
    """Seaborn's grids and others that hold a figure."""
    return render_artist(value.figure)


def render_image(value: Any) -> Rendering:
    """A Pillow image, made smaller where it is large."""
    text = f"Image of {value.width} × {value.height} pixels, mode {value.mode}"
    if value.mode not in {"1", "L", "LA", "I", "P", "RGB", "RGBA", "I;16"}:
        value = value.convert("RGBA" if "A" in value.mode else "RGB")
    data = b""
    for side in (None, 2000, 1200, 800, 400):
        shown = value
        if side is not None:
            shown = value.convert("RGBA" if value.mode in ("P", "LA", "RGBA") else "RGB")
            shown.thumbnail((side, side))
        buffer = io.BytesIO()
        shown.save(buffer, "PNG")
        data = buffer.getvalue()
        if len(data) <= PICTURE_BYTES:
            break
    return Rendering(text, [], [Attachment.from_bytes(data, "image/png", "image.png")])


def render_display_methods(value: Any) -> Rendering | None:
    """What an object shows of itself in a notebook, where that is a picture, Markdown or LaTeX (IPython's protocol)."""
    bundle: dict[str, Any] = {}
    for mime, name in _DISPLAY_METHODS:
        if isinstance(value, type) or not callable(getattr(type(value), name, None)):
            continue
        shown = getattr(value, name)()
        if isinstance(shown, tuple) and shown:
            shown = shown[0]
        if mime is None and isinstance(shown, Mapping):
            bundle = {str(key): content for key, content in shown.items()} | bundle
        elif mime is not None and shown is not None:
            bundle.setdefault(mime, shown)
    text = next((bundle[m] for m in ("text/markdown", "text/latex") if isinstance(bundle.get(m), str)), "")
    for mime in ("image/png", "image/jpeg"):
        content = bundle.get(mime)
        data = _decoded(content) if isinstance(content, str) else content
        if isinstance(data, bytes) and 0 < len(data) <= PICTURE_BYTES:
            name = f"image.{mime.partition('/')[2]}"
            return Rendering(text or f"Picture ({type(value).__name__})", [], [Attachment.from_bytes(data, mime, name)])
    return Rendering(text) if text else None


def _decoded(text: str) -> bytes | None:
    try:
        return Attachment("", f"data:;base64,{text}").data
    except ValueError:
        return None
