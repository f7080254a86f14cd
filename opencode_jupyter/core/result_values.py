"""Values that a tool returns, as a result: compact text for a model, tables and pictures for a person.

Frames, arrays, figures and images are recognised by the names of their classes, so no library is imported here: whoever
returns a data frame has imported pandas. What a card draws of a value is kept, bounded and as JSON, in the metadata.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import InvalidResultError
from .result import PRINTED, TABLES, Attachment, ToolResult
from .value_tables import (
    CELL_CHARS,
    COLUMNS,
    LISTS,
    MISSING,
    ROWS,
    TABLE_CHARS,
    WHOLE_ROWS,
    Column,
    Rendering,
    class_names,
    columns_of,
    count_of,
    cut,
    dict_rows,
    fields_of,
    render_table,
    scalar_text,
    short_repr,
)

FIELD_CHARS = 500
"""Most characters of the value of a field."""
FIELDS = 50
"""Most fields that a card draws."""
ITEMS = 200
"""Most items of a list or dict in the text."""
DEPTH = 6
"""Most levels of lists and dicts in the text."""
TEXT_CHARS = 2_000
"""Most characters of one text inside a list or dict."""
PARTS = 20
"""Most tables and pictures of one list."""
SAMPLED = 1_000
"""Rows whose keys become the columns of a list of dicts."""
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
_NO_OUTPUT = "(no output)"
_RETURNABLE = (
    "A tool can return text, a number, a date, a dict, list, dataclass or pydantic model, a DataFrame, Series or "
    "array, a figure or image, bytes, a Path, None, or a ToolResult."
)


def result_of(tool_id: str, value: Any) -> ToolResult:
    """A result that shows `value` and keeps it as ``result.value``.

    Raises:
        InvalidResultError: a value of this type cannot be shown.
    """
    rendering = render(value)
    if rendering is None:
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        raise InvalidResultError(
            f"The {tool_id} tool returned a value of type {name}, which cannot be shown. {_RETURNABLE}"
        )
    metadata: dict[str, Any] = {TABLES: rendering.tables} if rendering.tables else {}
    if rendering.is_rich:
        metadata[PRINTED] = ""
    return ToolResult("", rendering.text, metadata, rendering.attachments, value=value)


def complete(tool_id: str, result: ToolResult) -> ToolResult:
    """Fill in what a tool left out of its result: text, tables and pictures of its value or its records."""
    shown = result_of(tool_id, result.records if result.value is None else result.value)
    result.output, result.metadata = shown.output, {**shown.metadata, **result.metadata}
    result.attachments = [*result.attachments, *shown.attachments]
    return result


def render(value: Any) -> Rendering | None:
    """How `value` is shown; None if it cannot be."""
    names = class_names(value)
    for library, name, renderer in _RENDERERS:
        if (library, name) in names:
            return renderer(value)  # type: ignore[no-any-return]
    if value is None:
        return Rendering(_NO_OUTPUT)
    text = scalar_text(value, names)
    if text is not None:
        return Rendering(text)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _render_bytes(bytes(value))
    fields = fields_of(value)
    if fields is not None:
        return _fields(type(value).__name__, fields)
    if isinstance(value, LISTS):
        return _items(value)
    return _render_display_methods(value)


def _array(value: Any) -> Rendering:
    if value.ndim == 0 and value.dtype.names is None:
        return render(value.item()) or Rendering(str(value))
    size = f"shape {value.shape}, dtype {value.dtype}"
    if value.dtype == object and 0 < value.size <= PARTS and all(map(is_library_value, value.flat)):
        return _parts(value.flat)  # axes, as of df.hist()
    columns = columns_of(value, {("numpy", "ndarray")}, max(ROWS, WHOLE_ROWS))
    if columns and value.size:
        width = len(value.dtype.names) if value.dtype.names else value.shape[1]
        return render_table("ndarray", columns, value.shape[0], width, size=size)
    numpy = sys.modules["numpy"]
    values = numpy.array2string(value, threshold=100, edgeitems=5, max_line_width=100)
    return Rendering(f"ndarray: {size}\n{cut(values, TABLE_CHARS)}")


def _frame(value: Any) -> Rendering:
    names = class_names(value)
    columns = columns_of(value, names, max(ROWS, WHOLE_ROWS)) or []
    return render_table(type(value).__name__, columns, value.shape[0], value.shape[1])


def _series(value: Any, name: str = "") -> Rendering:
    if ("polars", "Series") in class_names(value):
        return _frame(value.to_frame())
    columns = columns_of(value, {("pandas", "Series")}, max(ROWS, WHOLE_ROWS)) or []
    size = f"{count_of(len(value), 'value')}, dtype {value.dtype}"
    return render_table(name or type(value).__name__, columns, len(value), 1, size=size)


def _fields(name: str, fields: Mapping[Any, Any]) -> Rendering:
    pictures: list[Attachment] = []
    plain = _to_json(fields, pictures)
    rows = [
        [cut(str(key), CELL_CHARS), cut(_field(value), FIELD_CHARS)]
        for key, value in itertools.islice(plain.items(), FIELDS)
    ]
    made = {"name": name, "columns": ["", ""], "index": 1, "rows": rows, "total": len(fields), "width": 2}
    return Rendering(_json(plain), [made] if rows else [], pictures)


def _field(value: Any) -> str:
    if isinstance(value, str):
        return value
    return repr(value) if value is None or isinstance(value, (bool, float)) else _json(value)


def _items(value: Any) -> Rendering:
    """A list, tuple, set: a table of dicts or records, what is in it one by one, or JSON."""
    count = len(value)
    if 0 < count <= PARTS and any(is_library_value(item) for item in value):
        return _parts(value)
    rows = dict_rows(itertools.islice(value, SAMPLED))
    if rows is not None and (count <= SAMPLED or dict_rows(value) is not None):
        labels = list(dict.fromkeys(key for row in rows for key in row))
        head = rows[: max(ROWS, WHOLE_ROWS)]
        columns = [Column(label, [row.get(label, MISSING) for row in head]) for label in labels[:COLUMNS]]
        if columns:
            return render_table(type(value).__name__, columns, count, len(labels))
    pictures: list[Attachment] = []
    return Rendering(_json(_to_json(value, pictures)), [], pictures)


def _parts(items: Iterable[Any]) -> Rendering:
    """Frames, pictures and other values that were returned together, one after the other."""
    combined = Rendering("")
    texts = []
    parts = {id(part): part for part in map(_figure_of, items) if part is not None}
    for value in parts.values():
        rendering = render(value) or Rendering(short_repr(value))
        texts.append(rendering.text)
        tables = rendering.tables
        if not rendering.is_rich:
            row = [cut(rendering.text, FIELD_CHARS)]
            tables = [{"name": type(value).__name__, "columns": [""], "rows": [row], "total": 1, "width": 1}]
        combined.tables += tables
        combined.attachments += rendering.attachments
    combined.text = "\n\n".join(texts)
    return combined


def render_displayed(value: Any) -> Rendering | None:
    """How a value that code displays is shown, if it is a table or a picture, or several of them; else None."""
    if is_library_value(value) or (isinstance(value, (list, tuple)) and any(map(is_library_value, value[:PARTS]))):
        rendering = render(value)
        return rendering if rendering is not None and rendering.is_rich else None
    return None


def is_library_value(value: Any) -> bool:
    """Return whether it is a frame, an array, a figure or an image."""
    names = class_names(value)
    return any((library, name) in names for library, name, _ in _RENDERERS)


def _to_json(value: Any, pictures: list[Attachment], depth: int = DEPTH) -> Any:
    """`value` as JSON of a bounded size; pictures in it are added to `pictures`."""
    if value is None or isinstance(value, (bool, int)):
        return value if type(value) in (bool, int, type(None)) else scalar_text(value, class_names(value))
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return cut(str.__str__(value), TEXT_CHARS)
    names = class_names(value)
    if ("numpy", "generic") in names and value.dtype.kind in "biuf":
        item = value.item()
        return item if isinstance(item, (bool, int)) else _to_json(float(item), pictures)
    text = scalar_text(value, names)
    if text is not None:
        return text
    if isinstance(value, (bytes, bytearray, memoryview)) or any((lib, name) in names for lib, name, _ in _RENDERERS):
        return _nested_value(value, pictures)
    fields = fields_of(value)
    if fields is None and not isinstance(value, LISTS):
        return short_repr(value)
    if depth <= 0:
        return "…"
    if fields is not None:
        made = {str(key): _to_json(item, pictures, depth - 1) for key, item in itertools.islice(fields.items(), ITEMS)}
        return made if len(fields) <= ITEMS else {**made, "…": f"{len(fields) - ITEMS:,} more"}
    items = [_to_json(item, pictures, depth - 1) for item in itertools.islice(value, ITEMS)]
    return items if len(value) <= ITEMS else [*items, f"… {len(value) - ITEMS:,} more"]


def _nested_value(value: Any, pictures: list[Attachment]) -> Any:
    """A frame, picture or the like inside a list or dict: its size in words, small arrays as they are."""
    if ("numpy", "ndarray") in class_names(value) and value.size <= ITEMS // 4:
        return _to_json(value.tolist(), pictures)
    rendering = render(value)
    if rendering is None:
        return short_repr(value)
    if len(pictures) < PARTS:
        pictures += rendering.attachments
    return rendering.text.partition("\n")[0]


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _render_bytes(data: bytes) -> Rendering:
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


def _figure_of(value: Any) -> Any:
    """The figure that something drawn (axes, a line, a legend) belongs to; else the value itself."""
    while ("matplotlib", "Artist") in class_names(value) and ("matplotlib", "Figure") not in class_names(value):
        parent = value.get_figure()
        if parent is None or parent is value:
            return value
        value = parent
    return value


def _render_artist(value: Any) -> Rendering:
    """A matplotlib figure, or the figure that axes or another artist belong to."""
    figure = _figure_of(value)
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
    _close_figure(figure)
    return _png(data, "figure.png", f"Figure{_figure_labels(figure)}")


def _figure_labels(figure: Any) -> str:
    """Titles and labels of a figure's axes, for a model that cannot see."""
    texts = []
    for axes in figure.axes[:AXES]:
        labels = [f"{way}: {text}" for way, text in (("x", axes.get_xlabel()), ("y", axes.get_ylabel())) if text]
        texts.append(" ".join(filter(None, [axes.get_title(), f"({', '.join(labels)})" if labels else ""])))
    texts = [text for text in texts if text]
    return f": {cut('; '.join(texts), LABEL_CHARS)}" if texts else ""


def _close_figure(figure: Any) -> None:
    """Have pyplot forget a figure that is shown here: a notebook would show it again below the cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    backend = str(sys.modules["matplotlib"].rcParams["backend"]).lower() if pyplot is not None else ""
    if pyplot is not None and ("inline" in backend or backend == "agg"):
        pyplot.close(figure)


def _render_figure_holder(value: Any) -> Rendering:
    """Seaborn's grids and others that hold a figure."""
    return _render_artist(value.figure)


def _render_image(value: Any) -> Rendering:
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


def _render_display_methods(value: Any) -> Rendering | None:
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
        data = _decode_base64(content) if isinstance(content, str) else content
        if isinstance(data, bytes) and 0 < len(data) <= PICTURE_BYTES:
            name = f"image.{mime.partition('/')[2]}"
            return Rendering(text or f"Picture ({type(value).__name__})", [], [Attachment.from_bytes(data, mime, name)])
    return Rendering(text) if text else None


def _decode_base64(text: str) -> bytes | None:
    try:
        return Attachment("", f"data:;base64,{text}").data
    except ValueError:
        return None


_RENDERERS: tuple[tuple[str, str, Any], ...] = (
    ("pandas", "DataFrame", _frame),
    ("pandas", "Series", _series),
    ("pandas", "Index", lambda value: _series(value.to_series(index=range(len(value))), type(value).__name__)),
    ("pandas", "Styler", lambda value: _frame(value.data)),
    ("polars", "DataFrame", _frame),
    ("polars", "Series", _series),
    ("numpy", "ndarray", _array),
    ("matplotlib", "Artist", _render_artist),
    ("seaborn", "Grid", _render_figure_holder),
    ("PIL", "Image", _render_image),
)
