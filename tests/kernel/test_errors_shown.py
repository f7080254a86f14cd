"""Where an error is shown: whole on the card and in one line below it, or whole in the output where nobody watches."""

from __future__ import annotations

import re

import pytest

from tests.kernel import acts
from tests.support.kernels import CARD_MIME, WIDGET_MIME, Execution, Kernel

LONG = "'words that no tool takes' " * 8
FAILING = {
    "awaited": "r = %tool read missing.txt\nprint('not reached')",
    "def": "def f():\n    %tool read missing.txt\nf()",
    "cell magic": "%%tool edit a.txt missing\nother",
    "handle": "h = %tool --bg read missing.txt\nawait h",
    "blocking handle": "h = %tool --bg read missing.txt\nh.result()",
    "refused": f"%tool read a.txt {LONG}",
    "unknown tool": "%tool raed a.txt",
}


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare(shared_kernel)
    shared_kernel.run("_ = pathlib.Path('a.txt').write_text('text')")


def boxes(cell: Execution) -> list[str]:
    """The text of each error output of a cell."""
    return [re.sub(r"\x1b\[[\d;]*m", "", "\n".join(c["traceback"])) for c in cell.contents("error")]


def errors_on_cards(kernel: Kernel, cell: Execution) -> list[str]:
    """The errors that the cards in a cell's output show."""
    kernel.idle_for(0.2)
    bundles = [content["data"] for content in cell.contents("display_data", "update_display_data")]
    states = [data[CARD_MIME]["state"] for data in bundles if CARD_MIME in data and WIDGET_MIME not in data]
    return [state["error"] for state in states if state.get("error")]


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "alone"])
@pytest.mark.parametrize("style", FAILING)
def test_an_error_is_shown_once(shared_kernel: Kernel, style: str, watched: bool) -> None:
    cell = shared_kernel.execute(FAILING[style], allow_stdin=watched)
    assert cell.error is not None
    (box,) = boxes(cell)
    (whole,) = errors_on_cards(shared_kernel, cell)
    if not watched:
        assert box.partition(": ")[2] == whole
        return
    assert "\n" not in box
    assert len(box) < 200
    first = whole.split("\n")[0]
    if whole == first and len(whole) <= 120:
        assert box.partition(": ")[2] == whole
    else:
        assert box.endswith("(see the card above)")
        assert whole not in box


@pytest.mark.parametrize(
    ("code", "line"),
    [("print(1); 1/0", "ZeroDivisionError: division by zero"), ("while True pass", "SyntaxError: invalid syntax")],
)
def test_an_error_of_python_code_is_named_by_its_exception(shared_kernel: Kernel, code: str, line: str) -> None:
    (box,) = boxes(shared_kernel.execute(f"%tool python {code}", allow_stdin=True))
    assert box == f"CodeError: {line} (see the card above)"


@pytest.mark.parametrize("style", ["awaited", "refused"])
def test_an_error_without_a_card_is_complete(shared_kernel: Kernel, style: str) -> None:
    cell = shared_kernel.execute(FAILING[style].replace("%tool", "%tool -q"))
    (box,) = boxes(cell)
    assert errors_on_cards(shared_kernel, cell) == []
    assert "see the card above" not in box
    assert ("missing.txt" if style == "awaited" else "words that no tool takes") in box
