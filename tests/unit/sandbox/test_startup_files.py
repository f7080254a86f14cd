"""Start-up files that a sandboxed program makes or changes are undone, whatever it does beside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from opencode_jupyter.sandbox.policy import SandboxPolicy
from opencode_jupyter.sandbox.startup_files import StartupFiles


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".git" / "hooks" / "pre-push").write_text("true\n")
    return folder


def watch(project: Path, name: str = "call") -> StartupFiles:
    return StartupFiles(
        SandboxPolicy("workspace-write", str(project.parent / "tmp"), (str(project),)),
        project.parent / "blocked" / name,
    )


def test_one_that_cannot_be_moved_does_not_keep_the_others(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = watch(project)
    (project / ".opencode").mkdir()
    (project / "opencode.json").write_text("{}")
    (project / ".git" / "config").write_text("[evil]\n")
    move = shutil.move

    def fail(source: str, target: str) -> None:
        if source.endswith("opencode.json"):
            raise PermissionError(source)
        move(source, target)

    monkeypatch.setattr("shutil.move", fail)
    files.move()
    assert files.stuck == [str(project / "opencode.json")]
    assert "opencode.json could not be put back as it was" in files.describe()
    assert not (project / ".opencode").exists()
    assert (project / ".git" / "config").read_text() == "[core]\n"


def test_modes_do_not_keep_a_folder_where_it_is(project: Path) -> None:
    files = watch(project)
    (project / ".opencode" / "command").mkdir(parents=True)
    (project / ".opencode" / "command" / "x.md").write_text("x")
    for folder in (project / ".opencode" / "command", project / ".opencode"):
        folder.chmod(0o500)
    files.move()
    assert not (project / ".opencode").exists()
    assert files.stuck == []


def test_a_call_that_begins_meanwhile_does_not_take_it_for_the_state_before(project: Path) -> None:
    first = watch(project, "first")
    (project / "opencode.json").write_text('{"evil": 1}')
    (project / ".git" / "config").write_text("[evil]\n")
    second = watch(project, "second")
    first.move()
    second.move()
    assert not (project / "opencode.json").exists()
    assert (project / ".git" / "config").read_text() == "[core]\n"


def test_a_call_inside_another_does_not_make_its_changes_ours(project: Path) -> None:
    outer = watch(project, "outer")
    (project / "opencode.json").write_text('{"evil": 1}')
    inner = watch(project, "inner")
    (project / "opencode.json").unlink()
    inner.move()
    assert (project / "opencode.json").exists(), "as it was before the inner one"
    outer.move()
    assert not (project / "opencode.json").exists()


def test_another_repository_behind_a_link_stays_as_it_is(project: Path, tmp_path: Path) -> None:
    repository = tmp_path / "other" / ".git"
    (repository / "hooks").mkdir(parents=True)
    (repository / "config").write_text("[other]\n")
    (repository / "hooks" / "pre-commit").write_text("make\n")
    files = watch(project)
    (project / ".git").rename(project / "moved")
    (project / ".git").symlink_to(repository)
    files.move()
    assert (repository / "config").read_text() == "[other]\n"
    assert (repository / "hooks" / "pre-commit").read_text() == "make\n"
    assert not (project / ".git").is_symlink()


def test_a_change_in_place_with_the_same_size_and_time_is_seen(project: Path) -> None:
    config = project / "opencode.json"
    config.write_text('{"good":1}')
    status = config.stat()
    files = watch(project)
    with open(config, "r+") as file:
        file.write('{"evil":1}')
    os.utime(config, ns=(status.st_atime_ns, status.st_mtime_ns))
    files.move()
    assert config.read_text() == '{"good":1}'
