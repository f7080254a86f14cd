"""Identifiers sort by creation and say when they were made."""

from __future__ import annotations

import os
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import ids


def test_form_and_order() -> None:
    created = [ids.create("part") for _ in range(5000)]
    assert created == sorted(created) and len(set(created)) == len(created)
    assert all(re.fullmatch(r"prt_[0-9a-f]{12}[0-9A-Za-z]{14}", m) for m in created)


def test_descending_sorts_newest_first() -> None:
    created = [ids.create("session", descending=True) for _ in range(100)]
    assert created == sorted(created, reverse=True)


@given(st.integers(0, 2**44))
def test_timestamp_is_kept_modulo_36_bits(ms: int) -> None:
    assert ids.timestamp(ids.create("tool", timestamp=ms)) == ms % 2**36


def test_given_ids_are_checked() -> None:
    assert ids.ascending("permission", "per_x") == "per_x"
    with pytest.raises(ValueError, match="ID que_x does not start with per"):
        ids.ascending("permission", "que_x")


def test_unique_across_threads() -> None:
    created: list[str] = []

    def make() -> None:
        created.extend([ids.create("part") for _ in range(2000)])

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({m[:16] for m in created}) == 8000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_process_makes_ids_of_its_own() -> None:
    moment = 1_700_000_000_000
    ids.create("part", timestamp=moment)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, " ".join(ids.create("part", timestamp=moment) for _ in range(300)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        theirs = stream.read().split()
    os.waitpid(child, 0)
    ours = [ids.create("part", timestamp=moment) for _ in range(300)]
    assert len(theirs) == 300 and {identifier[-14:] for identifier in theirs}.isdisjoint(
        identifier[-14:] for identifier in ours
    )


def test_random_characters_are_taken_from_the_system_for_many_ids_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real = os.urandom

    def urandom(count: int) -> bytes:
        sizes.append(count)
        return real(count)

    monkeypatch.setattr(os, "urandom", urandom)
    created = {ids.create("part")[-14:] for _ in range(1000)}
    assert len(created) == 1000 and len(sizes) <= 5
