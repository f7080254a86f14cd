"""Which program runs JavaScript: what is found, what is too old, what to do when there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opencode_jupyter.core.tool_source import ToolFileError, ToolFileLoader
from opencode_jupyter.javascript import runtime
from opencode_jupyter.javascript.service import JavaScriptTools
from opencode_jupyter.workspace import Workspace

from ..support.javascript import ToolFiles

pytestmark = pytest.mark.anyio


def program(folder: Path, name: str, version: str) -> Path:
    """A program that tells a version."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program but those of the PATH."""
    monkeypatch.setattr(runtime, "find_in_wheel", lambda kind: None)


def find(folder: Path, choice: str = "") -> tuple[runtime.Runtime | None, str]:
    return runtime.find({"PATH": str(folder), runtime.CHOICE: choice})


def test_what_this_machine_has() -> None:
    here, why = runtime.find({"PATH": ""})  # PyPI's, which the test extra installs
    assert why == ""
    assert here is not None
    assert here.kind == "node"
    assert here.is_suitable
    assert Path(here.program).is_file()


def test_there_is_none(tmp_path: Path, alone: None) -> None:
    advice = 'pip install "opencode-jupyter[javascript]" (or install Node.js 22.18 or later)'
    none, why = find(tmp_path)
    assert none is None
    assert why == f"JavaScript and TypeScript tools need Node.js: there is no Node.js. {advice}"


def test_the_first_that_is_new_enough(tmp_path: Path, alone: None) -> None:
    node = program(tmp_path, "node", "v22.17.9")
    none, why = find(tmp_path)
    assert none is None
    assert f"{node} is 22.17.9, 22.18 is needed" in why
    bun = program(tmp_path, "bun", "1.3.0")
    assert find(tmp_path) == (runtime.Runtime("bun", str(bun), (1, 3, 0)), "")
    node.unlink()
    program(tmp_path, "node", "v22.18.0")
    os.utime(node, ns=(1, 1))  # another time: it is asked again
    assert find(tmp_path) == (runtime.Runtime("node", str(node), (22, 18, 0)), "")


def test_a_program_that_tells_nothing(tmp_path: Path, alone: None) -> None:
    node = program(tmp_path, "node", "hello")
    assert f"{node} is of an unknown version" in find(tmp_path)[1]


def test_the_choice(tmp_path: Path, alone: None) -> None:
    node, bun = program(tmp_path, "node", "v24.1.0"), program(tmp_path, "bun", "1.2.3")
    assert find(tmp_path, "bun")[0] == runtime.Runtime("bun", str(bun), (1, 2, 3))
    assert find(tmp_path, "node")[0] == runtime.Runtime("node", str(node), (24, 1, 0))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own = program(elsewhere, "node-25", "v25.0.0")
    assert find(tmp_path, str(own))[0] == runtime.Runtime("node", str(own), (25, 0, 0))
    none, why = find(tmp_path, "/no/such/node")
    assert none is None
    assert why.startswith(f"{runtime.CHOICE}=/no/such/node names no program that is there; unset it")
    assert runtime.find_bun({"PATH": str(tmp_path), runtime.CHOICE: "node"}) is None  # that one and no other
    assert runtime.find_bun({"PATH": str(tmp_path)}) == runtime.Runtime("bun", str(bun), (1, 2, 3))


async def test_why_not(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    files = ToolFiles(workspace)
    loader: ToolFileLoader = workspace.service(JavaScriptTools)
    monkeypatch.setenv("PATH", "")
    assert loader.why_not().startswith("JavaScript and TypeScript tools need Node.js")
    assert set(loader.suffixes) == {".ts", ".mts", ".js", ".mjs"}
    with pytest.raises(ToolFileError, match=r"t\.ts can't be loaded: JavaScript and TypeScript tools need Node.js"):
        await files.load("t.ts", "export default 1")


async def test_a_program_that_does_not_start(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, alone: None, tmp_path: Path
) -> None:
    """It tells a version, but ends at once when it is to run the tools."""
    program(tmp_path, "node", "v24.0.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ToolFileError, match=r"t\.ts can't be loaded: the process that runs JavaScript tools ended"):
        await ToolFiles(workspace).load("t.ts", "export default 1")


def test_a_checkout_that_was_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "LIBRARIES", tmp_path / "zod.mjs")
    assert runtime.find() == (None, "this checkout has no zod.mjs: build it with pip install -e .")
