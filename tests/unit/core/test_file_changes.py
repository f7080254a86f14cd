"""Changes are taken back exactly, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from opencode_jupyter.core import file_changes as changes_module
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.file_changes import Author, Changes


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    return Changes(tmp_path / "data")


def change(changes: Changes, path: Path, after: bytes | None) -> None:
    before = path.read_bytes() if path.exists() else None
    if after is None:
        path.unlink()
    else:
        path.write_bytes(after)
    changes.record(path, before, after, Author("ses", "call", "edit"))


def test_undo_goes_back_step_by_step(changes: Changes, tmp_path: Path) -> None:
    file = tmp_path / "f"
    for content in (b"1", b"2", None, b"3\xff"):
        change(changes, file, content)
    assert [c.path for c in changes.undo()] == [file]
    assert not file.exists()
    changes.undo()
    assert file.read_bytes() == b"2"
    assert len(changes.undo(2)) == 2
    assert not file.exists()
    assert changes.entries() == []
    assert list((tmp_path / "data" / "undo").iterdir()) == []


def test_a_file_changed_since_is_not_touched(changes: Changes, tmp_path: Path) -> None:
    mine, created = tmp_path / "mine", tmp_path / "other"
    mine.write_bytes(b"0")
    change(changes, mine, b"1")
    change(changes, created, b"1")
    mine.write_bytes(b"by hand")
    with pytest.raises(ToolError, match=r"mine has changed since the edit call.*force"):
        changes.undo(2)
    assert created.exists() and mine.read_bytes() == b"by hand" and len(changes.entries()) == 2
    changes.undo(2, force=True)
    assert not created.exists() and mine.read_bytes() == b"0"


def test_a_formatter_s_work_is_part_of_the_change(changes: Changes, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"0")
    change(changes, file, b"1")
    file.write_bytes(b"formatted")
    changes.amend(changes.entries()[-1], b"formatted")
    changes.undo()
    assert file.read_bytes() == b"0"


def test_nothing_to_undo(changes: Changes) -> None:
    with pytest.raises(ToolError, match="no change to undo"):
        changes.undo()


def test_contents_are_private_and_bounded(changes: Changes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_BYTES", 1000)
    file = tmp_path / "f"
    file.write_bytes(b"x" * 200)
    for n in range(9):
        change(changes, file, bytes([n]) * 200)
    blobs = list((tmp_path / "data" / "undo").iterdir())
    assert sum(blob.stat().st_size for blob in blobs) <= 1000
    assert {stat.S_IMODE(blob.stat().st_mode) for blob in blobs} == {0o600}
    assert stat.S_IMODE((tmp_path / "data" / "undo").stat().st_mode) == 0o700
    assert len(changes.entries()) == 5


def test_a_content_too_large_to_keep_says_so(changes: Changes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_BYTES", 1000)
    file = tmp_path / "f"
    file.write_bytes(b"x" * 300)
    change(changes, file, b"1")
    assert not changes.entries()[0].undoable
    with pytest.raises(ToolError, match="was not saved"):
        changes.undo()
    assert file.read_bytes() == b"1"


def test_the_changes_of_one_step_are_taken_back_together(changes: Changes, tmp_path: Path) -> None:
    edited, removed, link, new = (tmp_path / name for name in ("kept", "gone", "link", "d/e/new"))
    edited.write_bytes(b"0")
    removed.write_bytes(b"gone")
    removed.chmod(0o640)
    change(changes, edited, b"1")
    step = changes.next_step()
    new.parent.mkdir(parents=True)
    new.write_bytes(b"new")
    folders = [tmp_path / "d", tmp_path / "d/e"]
    changes.record(new, None, b"new", Author("ses", "call", "apply_patch"), step=step, folders=folders)
    removed.unlink()
    changes.record(removed, b"gone", None, Author("ses", "call", "apply_patch"), step=step, mode=0o640)
    changes.record(link, None, None, Author("ses", "call", "apply_patch"), step=step, link="kept")
    assert len(changes.undo()) == 3
    assert removed.read_bytes() == b"gone" and stat.S_IMODE(removed.stat().st_mode) == 0o640
    assert link.readlink() == Path("kept") and not (tmp_path / "d").exists()
    assert edited.read_bytes() == b"1"
    changes.undo()
    assert edited.read_bytes() == b"0"


def test_an_undo_that_fails_midway_takes_nothing_back(changes: Changes, tmp_path: Path) -> None:
    plain, nested = tmp_path / "one", tmp_path / "d" / "two"
    nested.parent.mkdir()
    for path in (plain, nested):
        path.write_bytes(b"0")
        change(changes, path, None)
    nested.parent.rmdir()
    nested.parent.write_bytes(b"a file where the folder was")
    with pytest.raises(ToolError, match="a part of its path is a file"):
        changes.undo(2)
    assert not plain.exists() and len(changes.entries()) == 2


def test_a_step_is_forgotten_whole(changes: Changes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_ENTRIES", 3)
    for n in range(2):
        step = changes.next_step()
        for m in range(2 + 2 * n):
            changes.record(tmp_path / f"{n}{m}", None, b"", Author("ses", "call", "apply_patch"), step=step)
    assert [entry.path.name for entry in changes.entries()] == ["10", "11", "12", "13"]
