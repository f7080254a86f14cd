"""Practice folders: what is in them, and what a wrong name says."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import opencode_jupyter


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # and back at the end
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("started")
def test_it_makes_a_repository_with_what_it_lists_and_goes_there() -> None:
    made = opencode_jupyter.demo("penguins")
    assert Path.cwd() == made.path
    names = {path.name for path in made.path.iterdir()} - {".git"}
    assert names == {line.split()[0] for line in repr(made).splitlines()[2:]}
    assert subprocess.run(["git", "status", "--short"], capture_output=True, check=True).stdout == b""
    with open("penguins.csv", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 344
    failed = subprocess.run([sys.executable, "summary.py"], capture_output=True, text=True, check=False)
    assert "ValueError: could not convert string to float: 'NA'" in failed.stderr, "the bug that the agent repairs"


@pytest.mark.usefixtures("started")
def test_each_call_makes_another_folder() -> None:
    assert opencode_jupyter.demo().path != opencode_jupyter.demo().path


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(
        ValueError, match=r"There is no demo 'shp'\. Did you mean shop\? The demos are penguins, sensors, shop\."
    ):
        opencode_jupyter.demo("shp")


def test_it_is_removed_when_the_process_ends(tmp_path: Path) -> None:
    code = "import opencode_jupyter; print(opencode_jupyter.demo().path)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()
