"""Formatters: which run, what they are given, and that what goes wrong with one harms nothing."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.tools import formatters
from opencode_jupyter.tools.formatters import BUILTIN, Formatters, ProjectFolders, configured

pytestmark = pytest.mark.anyio


def opened(project: Path, tmp_path: Path, formatter: Any = None) -> Workspace:
    config = {"permission": {"*": "allow"}, **({} if formatter is None else {"formatter": formatter})}
    return Workspace(project, config, tmp_path / "data", store=False)


def script(tmp_path: Path, text: str) -> list[str]:
    """A formatter's command that runs a few lines of Python on ``path``."""
    program = tmp_path / f"formatter{len(list(tmp_path.glob('formatter*')))}.py"
    program.write_text("import os, sys, time\nfrom pathlib import Path\npath = Path(sys.argv[-1])\n" + text)
    return [sys.executable, "-S", str(program), "$FILE"]


def entry(command: list[str], *extensions: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "extensions": list(extensions or (".txt",)), **more}


UPPER = "path.write_text(path.read_text().upper())\n"


async def test_what_a_formatter_makes_of_a_file_is_the_result(project: Path, tmp_path: Path) -> None:
    async with opened(project, tmp_path, {"upper": entry(script(tmp_path, UPPER))}) as ws:
        await ws.call("write", {"filePath": "sp ace $FILE.txt", "content": "one\ntwo\n"})
        result = await ws.call("edit", {"filePath": "sp ace $FILE.txt", "oldString": "ONE", "newString": "three"})
        assert (project / "sp ace $FILE.txt").read_text() == "THREE\nTWO\n"
        assert "+THREE" in result.metadata["diff"]
        again = await ws.call("edit", {"filePath": "sp ace $FILE.txt", "oldString": "TWO", "newString": "2"})
        assert again.output == "Edit applied successfully."  # the file counts as read after it was formatted
        patch = "*** Begin Patch\n*** Add File: p.txt\n+new\n*** End Patch"
        await ws.call("apply_patch", {"patchText": patch})
        assert (project / "p.txt").read_text() == "NEW\n"
        await ws.call("write", {"filePath": "x.md", "content": "one"})
        assert (project / "x.md").read_text() == "one"


async def test_folder_environment_and_order(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    first = "path.write_text(os.getcwd() + '|' + os.environ['GIVEN'] + '|' + os.environ.get('MY_TOKEN', 'none'))\n"
    formatters = {
        "first": entry(script(tmp_path, first + "print('x' * 10_000_000)\n"), environment={"GIVEN": "yes"}),
        "second": entry(script(tmp_path, "path.write_text(path.read_text() + '!')\n")),
        "off": entry(script(tmp_path, "path.write_text('never')\n"), disabled=True),
    }
    async with opened(project, tmp_path, formatters) as ws:
        await ws.call("write", {"filePath": "a.txt", "content": "x"})
    assert (project / "a.txt").read_text() == f"{project}|yes|none!"


@pytest.mark.parametrize(
    "trouble",
    [
        ["no-such-program", "$FILE"],
        ["/", "$FILE"],
        "sys.exit(3)\n",
        "path.unlink(); sys.exit(1)\n",
        "import signal; os.kill(os.getpid(), signal.SIGSEGV)\n",
    ],
)
async def test_what_goes_wrong_is_logged_only(project: Path, tmp_path: Path, trouble: list[str] | str) -> None:
    command = script(tmp_path, trouble) if isinstance(trouble, str) else trouble
    async with opened(project, tmp_path, {"bad": entry(command), "upper": entry(script(tmp_path, UPPER))}) as ws:
        result = await ws.call("write", {"filePath": "a.txt", "content": "text"})
    assert result.output == "Wrote file successfully."
    if "unlink" not in trouble:
        assert (project / "a.txt").read_text() == "TEXT"


async def test_one_that_never_ends_is_ended_and_leaves_the_file(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formatters, "LIMIT", 0.5)
    async with opened(
        project, tmp_path, {"slow": entry(script(tmp_path, "path.write_text('ha'); time.sleep(60)\n"))}
    ) as ws:
        await ws.call("write", {"filePath": "a.txt", "content": "whole"})
    assert (project / "a.txt").read_text() == "whole"


@pytest.mark.parametrize("off", [False, {"upper": {"disabled": True}}])
async def test_switched_off(project: Path, tmp_path: Path, off: Any) -> None:
    (project / "ruff.toml").touch()
    async with opened(project, tmp_path, off if off is False else {**off, "ruff": {"disabled": True}}) as ws:
        await ws.call("write", {"filePath": "a.py", "content": "x=1\n"})
    assert (project / "a.py").read_text() == "x=1\n"


async def test_ruff_only_where_a_project_wants_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ruff"  # for machines that have no real one
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nsed -i "s/=/ = /" "$2"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{program.parent}")
    async with opened(project, tmp_path) as ws:
        await ws.call("write", {"filePath": "a.py", "content": "x=1\n"})
        assert (project / "a.py").read_text() == "x=1\n"
        (project / "pyproject.toml").write_text("[tool.ruff]\n")
        await ws.call("write", {"filePath": "a.py", "content": "y=1\n"})
        assert (project / "a.py").read_text() == "y=1\n"  # found out once
    async with opened(project, tmp_path) as ws:
        await ws.call("write", {"filePath": "b.py", "content": "x=1\n"})
        assert (project / "b.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("name", "files", "enabled"),
    [
        ("ruff", {"pyproject.toml": "[tool.black]\n"}, False),
        ("ruff", {"pyproject.toml": "[tool.ruff.lint]\n"}, True),
        ("ruff", {"pyproject.toml": "[tool.ruff\n"}, True),
        ("ruff", {".ruff.toml": ""}, True),
        ("ruff", {"requirements.txt": "ruff==0.1\n"}, True),
        ("ruff", {"Pipfile": "x"}, False),
        ("prettier", {"package.json": '{"devDependencies": {"prettier": "3"}}'}, True),
        ("prettier", {"package.json": '{"scripts": {"prettier": "3"}}'}, False),
        ("prettier", {"package.json": "{"}, False),
        ("biome", {"biome.jsonc": ""}, True),
        ("biome", {}, False),
        ("pint", {"composer.json": '{"require-dev": {"laravel/pint": "*"}}'}, True),
        ("clang-format", {".clang-format": ""}, True),
        ("oxfmt", {"package.json": '{"dependencies": {"oxfmt": "1"}}'}, False),
        ("gofmt", {}, True),
    ],
)
def test_what_enables_a_formatter(project: Path, name: str, files: dict[str, str], enabled: bool) -> None:
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    for file, text in files.items():
        (project / file).write_text(text)
    (project.parent / "biome.json").touch()  # above the checkout: not looked at
    (project.parent / ".ruff.toml").touch()
    [formatter] = [f for f in BUILTIN if f.name == name]
    assert formatter.enabled(ProjectFolders(deep, project)) is enabled


def test_the_config_is_laid_over_the_table(caplog: pytest.LogCaptureFixture) -> None:
    made = {
        f.name: f for f in configured({"ruff": {"extensions": [".x"]}, "gofmt": False, "own": {"extensions": [".y"]}})
    }
    assert made["ruff"].extensions == (".x",)
    assert made["ruff"].command == ("ruff", "format", "$FILE")
    assert "gofmt" not in made
    assert "own" not in made
    assert "formatter.own" in caplog.text
    for wrong in (3, "x", {"ruff": 3}, {"ruff": {"command": "ruff"}}):
        assert len(configured(wrong)) == len(BUILTIN)


async def test_a_program_of_the_projects_folder(project: Path, tmp_path: Path) -> None:
    program = project / "vendor" / "bin" / "pint"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf formatted > "$1"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (project / "composer.json").write_text('{"require": {"laravel/pint": "*"}}')
    async with opened(project, tmp_path) as ws:
        await ws.call("write", {"filePath": "a.php", "content": "<?php"})
        assert (project / "a.php").read_text() == "formatted"
        assert await ws.service(Formatters).format(project / "a.php") == ["pint"]
