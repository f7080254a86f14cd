"""Language servers' errors in the answers of edit, write, multiedit and apply_patch, and when servers are asked."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.tools._file_edits import Diagnostics, describe_diagnostic
from opencode_jupyter.tools.language_servers import service
from opencode_jupyter.tools.language_servers.service import LanguageServers

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).parents[1] / "support" / "language_server.py"
ASK = {"operation": "hover", "line": 1, "character": 1}


def opened(project: Path, tmp_path: Path, lsp: Any = None, **more: Any) -> Workspace:
    # Servers write what they are sent to a folder beside the project, and are stopped by their own pids.
    (tmp_path / "seen").mkdir(exist_ok=True)
    experimental = {"sandbox": {"writable": [str(tmp_path / "seen")], "backend": "landlock"}}
    config = {
        "permission": {"*": "allow"},
        "experimental": experimental,
        **({} if lsp is None else {"lsp": lsp}),
        **more,
    }
    return Workspace(project, config, tmp_path / "data", store=False)


def toy(**options: Any) -> dict[str, Any]:
    return {"toy": {"command": [sys.executable, "-S", str(SCRIPT), json.dumps(options)], "extensions": [".toy"]}}


def block(path: Path, *lines: int, heading: str = "LSP errors detected in this file, please fix:") -> str:
    body = "\n".join(f"ERROR [{n}:1] a bug in line {n}" for n in lines)
    return f'\n\n{heading}\n<diagnostics file="{path}">\n{body}\n</diagnostics>'


@pytest.mark.parametrize("options", [{}, {"push": True}, {"dynamic": True}])
async def test_errors_stand_in_the_answer(project: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    a, b = project / "a.toy", project / "b.toy"
    async with opened(project, tmp_path, toy(**options)) as ws:
        wrote = await ws.call("write", {"filePath": "a.toy", "content": "fine\nBUG\n"})
        edited = await ws.call("edit", {"filePath": "a.toy", "oldString": "fine", "newString": "BUG"})
        other = await ws.call("write", {"filePath": "b.toy", "content": "fine\n"})
        many = await ws.call("multiedit", {"filePath": "b.toy", "edits": [{"oldString": "fine", "newString": "BUG"}]})
        patch = "*** Begin Patch\n*** Update File: b.toy\n@@\n-BUG\n+good\n*** Add File: c.toy\n+BUG\n*** End Patch"
        patched = await ws.call("apply_patch", {"patchText": patch})
        mended = await ws.call("write", {"filePath": "a.toy", "content": "fine\n"})
    assert wrote.output == "Wrote file successfully." + block(a, 2)
    assert wrote.metadata["diagnostics"][str(a)][0]["severity"] == 1
    assert edited.output == "Edit applied successfully." + block(a, 1, 2)
    elsewhere = "LSP errors detected in other files:"
    assert other.output == "Wrote file successfully." + block(a, 1, 2, heading=elsewhere)
    assert other.metadata["diagnostics"][str(b)] == []
    assert many.output == "Edit applied successfully." + block(b, 1)
    c = block(project / "c.toy", 1, heading="LSP errors detected in c.toy, please fix:")
    assert patched.output == "Success. Updated the following files:\nM b.toy\nA c.toy" + c
    assert mended.output == "Wrote file successfully." + block(project / "c.toy", 1, heading=elsewhere)
    assert mended.metadata["diagnostics"][str(a)] == []


async def test_a_server_that_does_not_answer_costs_three_seconds_once(project: Path, tmp_path: Path) -> None:
    async with opened(project, tmp_path, toy(hang="initialize")) as ws:
        began = time.monotonic()
        first = await ws.call("write", {"filePath": "a.toy", "content": "BUG"})
        waited = time.monotonic() - began
        assert waited > 2.5
        assert first.output == "Wrote file successfully."
        assert first.metadata["diagnostics"] == {}
        assert (project / "a.toy").read_text() == "BUG"
        began = time.monotonic()
        await ws.call("write", {"filePath": "b.toy", "content": "BUG"})
        assert time.monotonic() - began < waited / 2


async def test_nothing_is_told_that_may_not_hold_any_more(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lsp = toy()
    lsp["two"] = {"command": [*lsp["toy"]["command"][:-1], '{"push": true}'], "extensions": [".two"]}
    async with opened(project, tmp_path, lsp) as ws:
        for name in ("a.toy", "a.two"):
            assert "a bug" in (await ws.call("write", {"filePath": name, "content": "BUG\n"})).output
        monkeypatch.setattr(service, "WAIT", 0.5)  # once they run: starting may take longer
        clients = {key[0]: client for key, client in ws.service(LanguageServers).clients.items()}
        (project / "a.two").write_text("fine\n")
        other = await ws.call("write", {"filePath": "b.toy", "content": "BUG\n"})
        assert other.metadata["diagnostics"].keys() == {str(project / "a.toy"), str(project / "b.toy")}
        await ws.call("read", {"filePath": "a.two"})
        for client in clients.values():
            os.kill(client.pid, signal.SIGSTOP)
        for name in ("a.toy", "a.two"):
            mended = await ws.call("write", {"filePath": name, "content": "fine\n"})
            assert mended.output == "Wrote file successfully."
            assert mended.metadata["diagnostics"] == {}


async def test_what_an_edit_broke_stands_before_what_was_broken(project: Path, tmp_path: Path) -> None:
    async with opened(project, tmp_path, toy()) as ws:
        for n in range(6):
            await ws.call("write", {"filePath": f"{n}.toy", "content": "BUG\n"})
        (project / "5.toy").write_text("BUG\nBUG\n")
        result = await ws.call("write", {"filePath": "new.toy", "content": "fine\n"})
    shown = [line for line in result.output.splitlines() if line.startswith("<diagnostics")]
    assert shown[0] == f'<diagnostics file="{project / "5.toy"}">'
    assert len(shown) == 5


async def test_odd_diagnostics_are_passed_over(project: Path, tmp_path: Path) -> None:
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    odd = [None, 5, {"severity": 1, "range": None, "message": "x"}, {"severity": 1, "range": where, "message": None}]
    good = {"severity": 1, "range": where, "message": "good"}
    async with opened(project, tmp_path, toy(more=[*odd, good])) as ws:
        result = await ws.call("write", {"filePath": "a.toy", "content": "fine\n"})
    assert result.metadata["diagnostics"] == {str(project / "a.toy"): [good]}
    assert "ERROR [1:1] good" in result.output


async def test_one_that_starts_slowly_is_asked_once_it_is_there(project: Path, tmp_path: Path) -> None:
    slow = toy()
    slow["toy"]["command"] = ["/bin/sh", "-c", 'sleep 3.5; exec "$@"', "sh", *slow["toy"]["command"]]
    async with opened(project, tmp_path, slow) as ws:
        await ws.call("write", {"filePath": "a.toy", "content": "BUG"})
        await anyio.sleep(1.5)
        result = await ws.call("edit", {"filePath": "a.toy", "oldString": "BUG", "newString": "BUG!"})
    assert result.output == "Edit applied successfully." + block(project / "a.toy", 1)


async def test_a_broken_server_is_not_tried_again_at_every_edit(project: Path, tmp_path: Path) -> None:
    async with opened(project, tmp_path, toy(die="initialize", log=str(tmp_path / "seen" / "log"))) as ws:
        for n in range(3):
            result = await ws.call("write", {"filePath": "a.toy", "content": str(n)})
            assert result.output == "Wrote file successfully."
    assert len((tmp_path / "seen" / "log").read_text().splitlines()) == 1


async def test_python_out_of_the_box(project: Path, tmp_path: Path) -> None:
    """In a folder that is marked as a project an edit starts the server; elsewhere only the lsp tool does."""
    bad = {"filePath": "bad.py", "content": "x: int = 'a'\n"}
    async with opened(project, tmp_path) as ws:
        assert (await ws.call("write", bad)).metadata["diagnostics"] == {}
        assert not ws.service(LanguageServers).clients  # nothing was started
        await ws.call("lsp", {**ASK, "filePath": "bad.py"})
        assert "ERROR [1:" in (await ws.call("write", bad)).output
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\nversion = '1'\n")
    async with opened(project, tmp_path) as ws:
        await ws.call("read", {"filePath": "bad.py"})
        assert "ERROR [1:" in (await ws.call("write", bad)).output


async def test_switched_off(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").touch()
    bad = {"filePath": "bad.py", "content": "x: int = 'a'\n"}
    async with opened(project, tmp_path, False) as ws:
        assert (await ws.call("write", bad)).metadata["diagnostics"] == {}
    monkeypatch.setenv("OPENCODE_DISABLE_LSP", "1")
    async with opened(project, tmp_path, True) as ws:
        await ws.call("read", {"filePath": "bad.py"})
        assert (await ws.call("write", bad)).metadata["diagnostics"] == {}


def diagnostic(line: int, severity: int | None = 1) -> dict[str, Any]:
    span = {"start": {"line": line, "character": 2}, "end": {"line": line, "character": 3}}
    return {"range": span, "message": f"m{line}", **({} if severity is None else {"severity": severity})}


def test_limits_of_the_text() -> None:
    files = {Path(f"/p/{n}.py"): [diagnostic(i) for i in range(23)] for n in range(8)}
    diagnostics = Diagnostics(files)
    lines = diagnostics.this_file(Path("/p/0.py")).split("\n")
    assert lines[:4] == [
        "",
        "",
        "LSP errors detected in this file, please fix:",
        '<diagnostics file="/p/0.py">',
    ]
    assert lines[4] == "ERROR [1:3] m0"
    assert lines[-3:] == ["ERROR [20:3] m19", "... and 3 more", "</diagnostics>"]
    others = diagnostics.other_files(Path("/p/0.py"))
    assert others.count("LSP errors detected in other files:") == 5
    assert "/p/6.py" not in others


def test_only_errors_count() -> None:
    diagnostics = Diagnostics({Path("/a"): [diagnostic(0, 2), diagnostic(1, 3), diagnostic(2, None)]})
    assert diagnostics.this_file(Path("/a")) == diagnostics.other_files(Path("/b")) == ""
    lines = [describe_diagnostic(diagnostic(0, severity)) for severity in (1, 2, 3, 4, None)]
    assert [line.split()[0] for line in lines] == ["ERROR", "WARN", "INFO", "HINT", "ERROR"]
    assert len(Diagnostics({Path(f"/{n}"): [diagnostic(0)] * 300 for n in range(300)}).metadata) == 100
