"""What a call pays for noticing that plugins came, went or changed, and what it notices all the same."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opencode_jupyter.core.config import Config, load_config
from opencode_jupyter.core.plugins import seen
from opencode_jupyter.core.plugins.seen import Seen


class Clock:
    """Each look takes a tenth of a millisecond; other time passes by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 0.0001
        return self.now


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config(tmp_path, tmp_path)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(seen, "time", clock)
    return clock


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked at."""
    looked: list[str] = []
    real: Callable[[str], seen.Stamp] = seen._stamp

    def stamp(path: str) -> seen.Stamp:
        looked.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(seen, "_stamp", stamp)
    return looked


def made(config: Config, files: list[Path], folders: list[Path]) -> Seen:
    state = Seen.now(files, folders)
    state.config, state.path = config, list(sys.path)
    return state


def test_calls_in_a_row_look_at_the_files_and_once_at_the_folders(
    config: Config, tmp_path: Path, clock: Clock, looks: list[str]
) -> None:
    (tmp_path / "a.py").touch()
    state = made(config, [tmp_path / "a.py"], [tmp_path / "plugin", tmp_path / "plugins"])
    looks.clear()
    for _ in range(10):
        assert state.holds(config)
    assert looks.count("a.py") == 10 and looks.count("plugin") == looks.count("plugins") == 1
    clock.now += seen.LONGEST
    assert state.holds(config) and looks.count("plugin") == 2


def test_a_changed_file_is_seen_at_once(config: Config, tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "a.py"
    file.write_text("1")
    state = made(config, [file], [tmp_path / "plugin"])
    assert state.holds(config)
    file.write_text("12")
    assert not state.holds(config)


@pytest.mark.parametrize("how", ["person", "listing", "later"])
def test_a_new_folder_is_seen_by_a_person_a_listing_or_a_little_later(
    config: Config, tmp_path: Path, clock: Clock, how: str
) -> None:
    state = made(config, [], [tmp_path / "plugin"])
    assert state.holds(config)
    (tmp_path / "plugin").mkdir()
    assert state.holds(config), "code that calls in a row may go by what was seen a moment ago"
    if how == "later":
        clock.now += seen.LONGEST
    since = {"person": clock.now, "listing": math.inf, "later": 0.0}[how]
    assert not state.holds(config, since)
    assert not state.holds(config), "and it stays seen"


def test_a_look_at_unchanged_folders_is_due_again_after_a_time_that_grows_with_its_cost(
    config: Config, tmp_path: Path, clock: Clock, looks: list[str]
) -> None:
    state = made(config, [], [tmp_path / "plugin"])
    looks.clear()
    assert state.holds(config)
    clock.now += 0.0001 * seen.PAUSE / 2
    assert state.holds(config) and len(looks) == 1
    clock.now += 0.0001 * seen.PAUSE
    assert state.holds(config) and len(looks) == 2
