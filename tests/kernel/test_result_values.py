"""What own tools and code return, as cards: tables, pictures and fields for a person, compact text for a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from opencode_jupyter.jupyter.cards.saved_json import CARD_MIME
from tests.kernel import acts
from tests.support.kernels import Kernel, start

SETUP = """
import datetime, io, sys
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from opencode_jupyter import tool

frame = pd.DataFrame({"city": ["<b>Graz</b>", "Wien"] * 5000, "n": range(10_000)})

@tool
def cities():
    '''Some cities.'''
    return frame

@tool
async def plot():
    '''A figure.'''
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    axes.set_title("Growth")
    return figure

@tool(runs_in="kernel")
def settings():
    '''A dict.'''
    return {"rate": 0.5, "start": datetime.date(2026, 1, 2), "names": ["a", "b"]}

@tool
def steps():
    '''Text first, then rows.'''
    yield "step 1\\n"
    return [{"step": 1, "loss": 0.5}]

class Connection: pass

@tool
def connect():
    '''No result.'''
    return Connection()
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel of the tests' own environment, which has pandas and matplotlib."""
    folder = tmp_path_factory.mktemp("values")
    env = {"XDG_DATA_HOME": str(folder / "data"), "IPYTHONDIR": str(folder / "ipython")}
    with start(cwd=folder, env=env) as running:
        acts.prepare(running)
        running.run(SETUP)
        yield running


def card(kernel: Kernel, code: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The only thing that a cell displays: the card's JSON and its MIME bundle."""
    cell = kernel.run(code)
    shown = [m["content"]["data"] for m in cell.messages if m["msg_type"] in ("display_data", "update_display_data")]
    bundle = next(data for data in reversed(shown) if CARD_MIME in data)
    below = [data for data in shown if CARD_MIME not in data]  # a slow call's text, which a console shows
    assert all(set(data) == {"text/plain"} and "<Figure" not in data["text/plain"] for data in below)
    return bundle[CARD_MIME], bundle


def test_a_frame_is_a_table_of_its_first_rows(kernel: Kernel) -> None:
    part, bundle = card(kernel, "r = %tool cities")
    (table,) = part["ui"]["tables"]
    assert (table["columns"], table["total"], len(table["rows"])) == (["city", "n"], 10_000, 50)
    assert "DataFrame: 10,000 rows × 2 columns" in part["state"]["output"]
    assert len(part["state"]["output"]) < 8_000
    assert "&lt;b&gt;Graz&lt;/b&gt;" in bundle["text/html"] and "<b>Graz" not in bundle["text/html"]
    assert "the first 50 of 10,000 rows" in bundle["text/html"]
    assert bundle["text/plain"].split("\n")[1].split() == ["city", "n"]
    assert kernel.run("r.df is frame, r.value is frame, len(r.records)").result == "(True, True, 10000)"
    assert len(json.dumps(bundle)) < 30_000


def test_a_figure_is_a_picture_once(kernel: Kernel) -> None:
    part, bundle = card(kernel, "%tool plot")
    assert [a["mime"] for a in part["state"]["attachments"]] == ["image/png"]
    assert "Growth" in part["state"]["output"]
    assert part["ui"]["printed"] == ""
    assert "<img " in bundle["text/html"] and "[figure.png]" in bundle["text/plain"]


def test_a_dict_is_fields_and_text_stands_above_rows(kernel: Kernel) -> None:
    part, bundle = card(kernel, "%tool settings")
    rows = [["rate", "0.5"], ["start", "2026-01-02"], ["names", '["a", "b"]']]
    assert part["ui"]["tables"][0]["rows"] == rows
    assert json.loads(part["state"]["output"]) == {"rate": 0.5, "start": "2026-01-02", "names": ["a", "b"]}
    assert "rate   0.5" in bundle["text/plain"]
    part, _ = card(kernel, "r = %tool steps")
    assert part["ui"]["printed"] == "step 1\n"
    assert part["ui"]["tables"][0]["rows"] == [["1", "0.5"]]
    assert kernel.run("r.records").result == "[{'step': 1, 'loss': 0.5}]"


def test_what_cannot_be_shown_is_one_clear_error(kernel: Kernel) -> None:
    failed = kernel.execute("%tool connect")
    assert failed.error is not None
    traceback = "\n".join(m["content"]["traceback"][0] for m in failed.messages if m["msg_type"] == "error")
    assert "The connect tool returned a value of type __main__.Connection, which cannot be shown." in traceback
    assert "(see the card above)" in traceback
    kernel.idle_for(0.2)
    bundles = [message["data"] for message in failed.contents("display_data", "update_display_data")]
    assert any("a DataFrame" in bundle["text/plain"] for bundle in bundles)
    assert not any("core/" in text for text in (traceback, *(bundle["text/plain"] for bundle in bundles)))


def test_code_of_the_python_tool_shows_tables_and_figures(kernel: Kernel) -> None:
    code = "print('before')\ndisplay(frame.head(2))\nprint('after')\nframe.n.describe()"
    part, bundle = card(kernel, f"%%tool python\n{code}")
    assert [table["name"] for table in part["ui"]["tables"]] == ["DataFrame", "Series"]
    assert part["ui"]["printed"] == "before\nafter"
    assert "DataFrame: 2 rows × 2 columns" in part["state"]["output"]
    assert bundle["text/html"].count("<table") == 2
    for code in ("plt.plot([1, 2])", "plt.plot([1]); plt.show()", "figure, axes = plt.subplots(); axes", "figure"):
        part, bundle = card(kernel, f"%%tool python\n{code}")
        assert [a["filename"] for a in part["state"]["attachments"]] == ["figure-1.png"], code
        assert "<Figure" not in bundle["text/plain"] + part["state"]["output"]
        assert "Line2D" not in bundle["text/plain"] + part["state"]["output"]
    assert kernel.run("r = %tool python frame\nr.df is frame").result == "True"
    assert kernel.run("frame.head(1)").result is not None, "IPython's own display is as before"


def test_inspect_shows_the_first_rows_as_a_table(kernel: Kernel) -> None:
    part, bundle = card(kernel, "%tool inspect frame")
    (table,) = part["ui"]["tables"]
    assert table["columns"] == ["", "city", "n"] and len(table["rows"]) == 5 and table["total"] == 10_000
    assert table["types"][2] == "int64"
    assert "shape: 10,000 rows × 2 columns" in part["ui"]["printed"]
    assert "city: " not in part["ui"]["printed"]
    assert "shape: 10,000 rows" in bundle["text/plain"]
    part, _ = card(kernel, "%tool inspect")
    assert part["ui"]["tables"][0]["columns"] == ["name", "type", "size", "value"]


def test_what_code_captures_can_be_shown_later(kernel: Kernel) -> None:
    code = (
        "from IPython.utils.capture import capture_output\nwith capture_output() as kept:\n    display(frame.head(1))"
    )
    kernel.run(f"%%tool python\n{code}")
    assert kernel.run("kept.show()").error is None


@pytest.mark.parametrize("more", ["", "import asyncio; await asyncio.sleep(0.01)\n"])
def test_a_figure_of_code_that_fails_is_not_shown_below_the_card(kernel: Kernel, more: str) -> None:
    code = f"import matplotlib.pyplot as plt\nplt.plot([1, 2])\n{more}1 / 0"
    failed = kernel.execute(f"%%tool python\n{code}")
    assert failed.error is not None
    outputs = [m["content"].get("data", {}) for m in failed.messages if m["msg_type"] == "display_data"]
    assert not [data for data in outputs if "image/png" in data or "<Figure" in str(data)]
