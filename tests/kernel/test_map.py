"""`Workspace.map` in a cell: the requests of its runs appear as cards of that cell, whoever answers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kernels import WIDGET_MIME, Kernel

from . import acts

MAP = (
    "results = await current().workspace.map([('read', {'filePath': '.env'})] * 2)\n"
    "print([outcome.text.count('A=1') for outcome in results])"
)


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Iterator[Kernel]:
    acts.prepare(shared_kernel)
    yield shared_kernel
    acts.settled(shared_kernel)


def test_requests_of_many_runs_are_answered_on_cards_of_their_cell(kernel: Kernel) -> None:
    cell = kernel.submit(MAP)
    parts = acts.asking(kernel, 2, cell=cell)
    displays = [content["data"] for content in cell.contents("display_data")]
    shown = [data[WIDGET_MIME]["model_id"] for data in displays if WIDGET_MIME in data]
    assert {kernel.card_comm(part["callID"]) for part in parts} <= set(shown)
    for part in parts:
        acts.see(kernel, part)
        acts.click(kernel, part, "once")
    assert kernel.finish(cell, 10).check().stdout == "[1, 1]\n"
