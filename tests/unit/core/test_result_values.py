"""What a tool may return: text for a model, tables and pictures for a card, rows and the value itself for code."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import io
import json
import pathlib
import pickle
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pydantic
import pytest
from PIL import Image

from opencode_jupyter import InvalidResultError, ToolResult, Workspace, tool
from opencode_jupyter.batch.serialization import sendable_value
from opencode_jupyter.core.result import PRINTED, TABLES
from opencode_jupyter.core.tool import as_result
from opencode_jupyter.jupyter.cards.call_json import card_part
from opencode_jupyter.jupyter.cards.call_mimebundle import settled_bundle
from opencode_jupyter.jupyter.cards.saved_json import CARD_MIME

mpl.use("agg")
import matplotlib.pyplot as plt

from tests.support.workspaces import OpenWorkspace

EVIL = "<script>alert(1)</script>"


class Colour(enum.Enum):
    RED = 1


class Size(enum.StrEnum):
    SMALL = "small"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Person(pydantic.BaseModel):
    name: str
    born: datetime.date


Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024 - people use both


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


def figure(title: str = "Sales") -> Any:
    drawing, axes = plt.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title(title)
    axes.set_xlabel("month")
    return drawing


def tables(value: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = as_result("t", value).metadata.get(TABLES, [])
    return entries


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(no output)"),
        (True, "True"),
        (7, "7"),
        (2.5, "2.5"),
        (np.int64(7), "7"),
        (np.float64(2.5), "2.5"),
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "True"),
        (np.datetime64("2026-01-02T00:00:00.5", "ns"), "2026-01-02T00:00:00.500000000"),
        (np.array(5), "5"),
        (pd.Timestamp("2026-01-02 03:04"), "2026-01-02 03:04:00"),
        (pd.Timedelta("1h"), "0 days 01:00:00"),
        (pd.NaT, "NaT"),
        (pd.NA, "<NA>"),
        (pd.Period("2026-01"), "2026-01"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.timedelta(hours=1), "1:00:00"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "Colour.RED (1)"),
        (Size.SMALL, "small"),
        (b"a\x00", "2 bytes: b'a\\x00'"),
        ([1, "a", None], '[1, "a", null]'),
        ((1, 2), "[1, 2]"),
        ({3}, "[3]"),
        (range(3), "[0, 1, 2]"),
        ([], "[]"),
        ({}, "{}"),
    ],
)
def test_single_values_and_lists_are_text(value: Any, text: str) -> None:
    result = as_result("t", value)
    assert (result.output, result.records, result.attachments) == (text, None, [])
    assert result.value is value
    assert TABLES not in result.metadata


@pytest.mark.parametrize(
    ("value", "name", "rows"),
    [
        ({"a": 1, "b": [1, 2], "c": None}, "dict", [["a", "1"], ["b", "[1, 2]"], ["c", "None"]]),
        (Point(1), "Point", [["x", "1"], ["y", "0.5"]]),
        (
            Person(name="Ada", born=datetime.date(1815, 12, 10)),
            "Person",
            [["name", "Ada"], ["born", "1815-12-10"]],
        ),
        (Pair(1, EVIL), "Pair", [["left", "1"], ["right", EVIL]]),
        ({"at": pd.Timestamp("2026-01-02"), "n": np.int64(3)}, "dict", [["at", "2026-01-02 00:00:00"], ["n", "3"]]),
    ],
)
def test_objects_are_fields(value: Any, name: str, rows: list[list[str]]) -> None:
    (table,) = tables(value)
    assert (table["name"], table["rows"], table["index"], table["columns"]) == (name, rows, 1, ["", ""])
    assert list(json.loads(as_result("t", value).output)) == [row[0] for row in rows]
    assert as_result("t", value).records is None


def test_a_frame_has_its_size_types_and_head() -> None:
    days = pd.date_range("2026-01-01", periods=10_000, freq="D")
    frame = pd.DataFrame({"city": ["Graz", None] * 5000, "n": range(10_000), "share": 0.25, "day": days})
    result = as_result("t", frame)
    lines = result.output.split("\n")
    assert lines[0] == "DataFrame: 10,000 rows × 4 columns"
    assert "n (int64), share (float64), day (datetime64" in lines[1]
    assert lines[3].split() == ["Graz", "0", "0.25", "2026-01-01"]
    assert lines[-1] == "… 9,980 more rows"
    (table,) = result.metadata[TABLES]
    assert (len(table["rows"]), table["total"], table["width"]) == (50, 10_000, 4)
    assert table["types"][1:3] == ["int64", "float64"]
    assert result.df is frame
    assert result.records is not None and result.records[1]["n"] == 1 and len(result.records) == 10_000


def test_row_labels_are_columns_unless_they_are_numbers() -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["a", "b"], name="key"))
    (table,) = tables(frame)
    assert (table["columns"], table["index"], table["rows"]) == (["key", "n"], 1, [["a", "1"], ["b", "2"]])
    assert as_result("t", frame).records == [{"key": "a", "n": 1}, {"key": "b", "n": 2}]
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])
    assert tables(pd.DataFrame({"n": [1, 2]}, index=levels))[0]["columns"] == ["x", "index", "n"]
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert as_result("t", twice).records == [{"a": 1, "a.1": 2}]
    assert tables(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])))[0]["columns"] == ["a / b"]
    assert as_result("t", pd.DataFrame()).output == "DataFrame: 0 rows × 0 columns"
    assert "index" not in tables(frame.reset_index())[0]


def test_numbers_of_a_column_have_the_same_decimals_and_missing_values_are_named() -> None:
    frame = pd.DataFrame(
        {"x": [1.5, float("nan"), 100.25], "y": [1e-9, 2.0, 3.0], "z": pd.array([1, None, 3], "Int64")}
    )
    assert tables(frame)[0]["rows"] == [["1.50", "1e-09", "1"], ["NaN", "2", "<NA>"], ["100.25", "3", "3"]]


def test_wide_frames_and_long_cells_are_cut() -> None:
    frame = pd.DataFrame(np.zeros((200, 300))).assign(text="x" * 10_000)
    result = as_result("t", frame.iloc[:, ::-1])
    (table,) = result.metadata[TABLES]
    assert (len(table["columns"]), table["width"], len(table["rows"][0][0])) == (20, 301, 100)
    assert len(result.output) < 10_000 and "281 more" in result.output
    assert len(json.dumps(result.metadata)) < 200_000


@pytest.mark.parametrize(
    ("value", "records"),
    [
        (pd.Series([1, 2], name="n"), [{"index": 0, "n": 1}, {"index": 1, "n": 2}]),
        ([{"a": 1}, {"a": 2, "b": "x"}], [{"a": 1}, {"a": 2, "b": "x"}]),
        ([Point(1), Point(2, 1.5)], [{"x": 1, "y": 0.5}, {"x": 2, "y": 1.5}]),
        ((Pair(1, 2),), [{"left": 1, "right": 2}]),
        (np.array([[1, 2], [3, 4]]), [{"0": 1, "1": 2}, {"0": 3, "1": 4}]),
        (np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]), [{"a": 1, "b": 2.5}]),
    ],
)
def test_tables_have_rows_and_a_frame(value: Any, records: list[dict[str, Any]]) -> None:
    result = as_result("t", value)
    assert result.records == records
    assert len(result.df) == len(records)
    assert result.metadata[TABLES][0]["total"] == len(records)


def test_an_index_has_rows_and_a_frame() -> None:
    result = as_result("t", pd.Index([3, 4], name="year"))
    assert result.records == [{"index": 0, "year": 3}, {"index": 1, "year": 4}]
    assert list(result.df["year"]) == [3, 4]


def test_a_series_keeps_its_index_and_type_as_a_frame() -> None:
    series = pd.Series(["a", "b"], index=["x", "y"], dtype="category")
    frame = as_result("t", series).df
    assert (list(frame.index), str(frame.dtypes.iloc[0])) == (["x", "y"], "category")
    assert as_result("t", series).output.startswith("Series: 2 values, dtype category")


def test_arrays_that_are_no_table_show_shape_type_and_some_values() -> None:
    text = as_result("t", np.zeros((100, 40, 3))).output
    assert text.startswith("ndarray: shape (100, 40, 3), dtype float64\n") and len(text) < 2000
    assert as_result("t", np.arange(5)).output == "ndarray: shape (5,), dtype int64\n[0 1 2 3 4]"


def test_figures_and_images_are_png_attachments() -> None:
    drawing = figure()
    for value in (drawing, drawing.axes[0], drawing.axes[0].get_lines(), np.array(drawing.axes), [drawing]):
        result = as_result("t", value)
        (picture,) = result.attachments
        assert picture.mime == "image/png" and picture.data.startswith(b"\x89PNG")
        assert "pixels: Sales (x: month)" in result.output
        assert result.metadata[PRINTED] == ""
    assert drawing.number not in plt.get_fignums(), "a notebook would show it again below the cell"
    image = as_result("t", Image.new("CMYK", (64, 32)))
    assert (image.attachments[0].mime, image.output) == ("image/png", "Image of 64 × 32 pixels, mode CMYK")
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG")
    assert as_result("t", stream.getvalue()).attachments[0].mime == "image/jpeg"


def test_a_large_image_is_made_smaller() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (1500, 1500, 3), dtype="uint8")
    (picture,) = as_result("t", Image.fromarray(noise)).attachments
    assert len(picture.data) <= 3_000_000
    assert Image.open(io.BytesIO(picture.data)).width < 1500


def test_several_values_together() -> None:
    frame = pd.DataFrame({"n": [1]})
    result = as_result("t", (frame, figure(), 0.9, None))
    assert [table["name"] for table in result.metadata[TABLES]] == ["DataFrame", "float"]
    assert len(result.attachments) == 1
    assert "DataFrame: 1 row" in result.output and "0.9" in result.output
    mixed = as_result("t", {"plot": figure(), "scores": frame, "model": object(), "rate": np.float64(0.5)})
    assert len(mixed.attachments) == 1
    fields = json.loads(mixed.output)
    assert fields["scores"] == "DataFrame: 1 row × 1 column" and fields["rate"] == 0.5
    assert fields["model"].startswith("<object object")


def test_large_and_deep_data_is_bounded() -> None:
    deep: dict[str, Any] = {}
    deep["self"] = deep
    for value in (deep, list(range(10**6)), {str(n): "x" * 10_000 for n in range(1000)}):
        result = as_result("t", value)
        assert len(result.output) < 500_000
        assert len(json.dumps(result.metadata)) < 100_000


def test_objects_that_show_themselves_as_a_picture_or_markdown() -> None:
    class Formula:
        def _repr_latex_(self) -> str:
            return "$x^2$"

    class Badge:
        def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
            return {"image/png": "iVBORw0KGgo=", "text/plain": "badge"}

    assert as_result("t", Formula()).output == "$x^2$"
    assert as_result("t", Badge()).attachments[0].data == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("value", [object(), len, dict, sys, ValueError("x"), iter([1])])
def test_what_cannot_be_shown_says_what_can(value: Any) -> None:
    with pytest.raises(InvalidResultError, match=rf"The t tool returned .*{type(value).__name__}.* DataFrame") as error:
        as_result("t", value)
    assert isinstance(error.value, TypeError)


def test_a_result_may_carry_a_value_or_rows_only() -> None:
    frame = pd.DataFrame({"n": [1]})
    result = as_result("t", ToolResult("Cities", value=frame, metadata={"source": "web"}))
    assert (result.title, result.metadata["source"]) == ("Cities", "web")
    assert result.output.startswith("DataFrame: 1 row") and result.df is frame
    assert as_result("t", ToolResult(records=[{"a": 1}])).output.startswith("list: 1 row × 1 column")
    own = ToolResult(output="Found one.", value=frame)
    assert as_result("t", own) is own and own.output == "Found one." and own.df is frame


@pytest.mark.anyio
async def test_every_kind_of_tool_may_return_them(ws: Workspace) -> None:
    frame = pd.DataFrame({"n": [1, 2]})

    @tool
    def plain() -> Any:
        return frame

    @tool
    async def later() -> Any:
        return frame

    @tool
    def stream() -> Iterator[str]:
        yield "reading\n"
        return frame

    @tool
    async def last() -> AsyncIterator[Any]:
        yield "reading"
        yield ToolResult("Read", value=frame)

    for function in (plain, later, stream, last):
        ws.registry.register(function)
    for name in ("plain", "later", "stream", "last"):
        result = await ws.call(name)
        assert result.df is frame
        assert "DataFrame: 2 rows × 1 column" in result.output
        assert result.metadata[PRINTED].strip() == ("reading" if name in ("stream", "last") else "")
    assert result.title == "Read"
    results = await ws.map([{"tool": "plain"}, {"tool": "plain"}])
    assert [outcome.value.df.equals(frame) for outcome in results] == [True, True]
    batch = await ws.call("batch", {"tool_calls": [{"tool": "plain", "parameters": {}}]})
    assert batch.records is not None and "DataFrame: 2 rows" in batch.records[0]["output"]


@pytest.mark.anyio
async def test_what_is_kept_is_json_and_the_value_is_not_kept(ws: Workspace) -> None:
    @tool
    def scores() -> Any:
        return pd.DataFrame({"x": [float("nan")], "y": [object()]})

    ws.registry.register(scores)
    call = ws.start("scores", {})
    await call.run()
    assert call.part.result is not None and call.part.result.value is None
    wire = json.loads(json.dumps(call.part.to_wire()))
    assert wire["state"]["metadata"][TABLES][0]["rows"][0][0] == "NaN"


def test_a_card_draws_them_with_everything_escaped() -> None:
    from tests.unit.jupyter.test_card_bodies import completed_part

    frame = pd.DataFrame({EVIL: [EVIL, "b"], "n": [1, 20]}, index=pd.Index([EVIL, "y"]))
    result = as_result("t", frame)
    part = completed_part("own", result.output, result.metadata)
    data, _ = settled_bundle(card_part(part))
    html, text = data["text/html"], data["text/plain"]
    assert "<script" not in html and html.count("&lt;script&gt;") >= 3
    assert data[CARD_MIME]["ui"]["tables"][0]["name"] == "DataFrame"
    assert "metadata" not in data[CARD_MIME]["state"] or TABLES not in data[CARD_MIME]["state"]["metadata"]
    assert "DataFrame · 2 rows" in text
    for odd in ("x", [3], [{"columns": 3, "rows": []}], [{"columns": ["a"], "rows": [["b", "c"], 5]}]):
        fields = card_part(completed_part("own", "text", {TABLES: odd}))["ui"]
        assert not fields.get("tables") or fields["tables"][0]["rows"] == []


def test_results_of_workers_lose_a_value_that_cannot_be_sent() -> None:
    frame = pd.DataFrame({"n": [1]})
    unpickled = pickle.loads(pickle.dumps(sendable_value(as_result("t", frame))))
    assert unpickled.df.equals(frame)
    local = type("Local", (), {})
    rows = [{"a": local()}]
    stripped = sendable_value(as_result("t", rows))
    assert stripped.value is None and stripped.output.startswith("list: 1 row") and len(stripped.records) == 1


def test_no_library_is_imported_for_it() -> None:
    code = (
        "import sys; from opencode_jupyter.core.tool import as_result; as_result('t', [{'a': 1}]); "
        "print({'pandas', 'numpy', 'matplotlib', 'PIL'} & set(sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "set()"
