"""Identifiers sort by creation and say when they were made."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import ids


def test_form_and_order() -> None:
    made = [ids.create("part") for _ in range(5000)]
    assert made == sorted(made) and len(set(made)) == len(made)
    assert all(re.fullmatch(r"prt_[0-9a-f]{12}[0-9A-Za-z]{14}", m) for m in made)


def test_descending_sorts_newest_first() -> None:
    made = [ids.create("session", descending=True) for _ in range(100)]
    assert made == sorted(made, reverse=True)


@given(st.integers(0, 2**44))
def test_timestamp_is_kept_modulo_36_bits(ms: int) -> None:
    assert ids.timestamp(ids.create("tool", timestamp=ms)) == ms % 2**36


def test_given_ids_are_checked() -> None:
    assert ids.ascending("permission", "per_x") == "per_x"
    with pytest.raises(ValueError, match="ID que_x does not start with per"):
        ids.ascending("permission", "que_x")


def test_unique_across_threads() -> None:
    made: list[str] = []

    def make() -> None:
        made.extend([ids.create("part") for _ in range(2000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({m[:16] for m in made}) == 8000
