"""The asks of our tools against those that real OpenCode releases made for the same calls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.permission import PermissionRequest
from opencode_jupyter.tools import bash

DATA = Path(__file__).parent.parent / "data" / "recorded_asks.json"
CALLS = json.loads(DATA.read_text(encoding="utf-8"))["calls"]

OURS_ALONE = {
    # a redirection, or a variable in a path, that leads outside: OpenCode does not see it, ours asks for the folder
    "echo x >> $OUT/log.txt": ["$OUT/*"],
    "cat $HOME/x": ["$HOME/*"],
}


def fill(value: Any, names: dict[str, str], *, literal: tuple[str, ...] = ()) -> Any:
    if isinstance(value, str):
        for name, path in names.items():
            if name not in literal:
                value = value.replace(name, path)
        return value
    if isinstance(value, list):
        return [fill(v, names, literal=literal) for v in value]
    if isinstance(value, dict):
        return {k: fill(v, names, literal=literal) for k, v in value.items()}
    return value


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    workspace, outside, home = tmp_path / "ws", tmp_path / "outside", tmp_path / "home"
    for folder in (workspace / "src", workspace / "sub dir", outside, home):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    (workspace / "src" / "m.py").write_text("def f(): pass\n")
    (workspace / ".env").write_text("A=1\n")
    (outside / "o.txt").write_text("o\n")
    monkeypatch.setenv("HOME", str(home))
    return {"$WS": str(workspace), "$OUT": str(outside), "$ROOT": str(tmp_path), "$HOME": str(home)}


@pytest.mark.anyio
@pytest.mark.parametrize("call", CALLS, ids=[c["args"].get("command", c["tool"]) for c in CALLS])
async def test_asks_what_opencode_asks(
    call: dict[str, Any], names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bash, "shell", lambda: "/bin/true")  # what is asked counts; nothing is installed or removed
    made: list[dict[str, Any]] = []

    def approve(request: PermissionRequest) -> str:
        made.append(
            {
                "permission": request.permission,
                "patterns": request.patterns,
                "always": request.always,
                "metadata": request.metadata,
            }
        )
        return "once"

    # a `$HOME` in a command is the command's own; elsewhere it stands for the folder
    arguments = fill(call["args"], names, literal=("$HOME",))
    config = {"permission": {"*": "ask"}}
    async with Workspace(names["$WS"], config, tmp_path / "data", approve, store=False) as workspace:
        workspace.files.read(workspace.sessions.default.id, Path(names["$WS"]) / "a.txt")  # as before an edit there
        await workspace.call(call["tool"], arguments)

    expected = fill([answer["asks"] for answer in call["answers"]], names, literal=("$HOME",))
    command = call["args"].get("command", "")
    if command in OURS_ALONE:
        first = made.pop(0)
        assert first["permission"] == "external_directory"
        assert first["patterns"] == fill(OURS_ALONE[command], names)
    assert made == expected[-1]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "command",
    [
        "[ -f a.txt ]",
        "[[ -f a.txt ]]",
        "export FOO=1",
        "readonly X=2",
        "unset X",
        "# only a word",
        "X=1",
        "> new.txt",
        "(( 1 + 1 ))",
    ],
)
async def test_asks_where_opencode_runs_unasked(command: str, names: dict[str, str], tmp_path: Path) -> None:
    made: list[tuple[str, list[str]]] = []

    def approve(request: PermissionRequest) -> str:
        made.append((request.permission, request.patterns))
        return "reject"

    async with Workspace(names["$WS"], {"permission": {"*": "ask"}}, tmp_path / "data", approve, store=False) as ws:
        with pytest.raises(Exception, match="rejected permission"):
            await ws.call("bash", {"command": command, "description": "d"})
    assert made == [("bash", [command])]


RULES = {
    "bash": {
        "*": "ask",
        "echo *": "allow",
        "ls *": "allow",
        "time *": "allow",
        "timeout *": "allow",
        "python3 *": "allow",
        "pytest *": "allow",
        "find *": "allow",
        "cat *": "allow",
        "rm *": "deny",
    },
    "external_directory": {"*": "ask"},
}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("echo hi", "runs"),
        ("ls | cat", "runs"),
        ("timeout 5 echo hi", "runs"),
        ("time rm x", "denied"),
        ("timeout -s KILL 5 rm x", "denied"),
        ("r''m x", "denied"),
        ("\\rm x", "denied"),
        ("/bin/rm x", "denied"),
        ("$'\\x72m' x", "denied"),
        ("echo $(rm x)", "denied"),
        ("find . -name q -exec rm {} \\;", "denied"),
        ("bash -c 'ls; rm x'", "denied"),
        ("eval rm x", "denied"),
        ("FOO=1 rm x", "denied"),
        ("timeout 5 make", "asks"),
        ("echo x > a.txt", "asks"),
        ("echo 'open", "asks"),
        ("python3 -c 'print(1)'", "asks"),
        ("$CMD x", "asks"),
        ("cat$IFS/etc/passwd", "asks"),
        ("cat ../x", "asks"),
        ("cat < /etc/hosts", "asks"),
        ("cat $X", "asks"),
        ("cat `echo /etc/hosts`", "asks"),
        ("PATH=/tmp ls", "asks"),
        ("export PATH=/tmp; ls", "asks"),
        ("ls | sh", "asks"),
        ("find . -delete", "asks"),
    ],
)
async def test_a_rule_for_the_first_word_covers_no_more(
    command: str, outcome: str, names: dict[str, str], tmp_path: Path
) -> None:
    permissions: list[str] = []

    def approve(request: PermissionRequest) -> str:
        permissions.append(request.permission)
        return "reject"

    async with Workspace(names["$WS"], {"permission": RULES}, tmp_path / "data", approve, store=False) as ws:
        try:
            await ws.call("bash", {"command": command, "description": "d"})
            actual = "runs"
        except Exception as error:
            actual = {"PermissionDeniedError": "denied", "PermissionRejectedError": "asks"}[type(error).__name__]
    assert actual == outcome
    assert bool(permissions) == (outcome == "asks")


@pytest.mark.anyio
async def test_what_is_remembered_covers_no_redirection(names: dict[str, str], tmp_path: Path) -> None:
    requests: list[list[str]] = []

    def approve(request: PermissionRequest) -> str:
        requests.append(request.patterns)
        return "always"

    config = {"permission": {"bash": "ask"}}
    async with Workspace(names["$WS"], config, tmp_path / "data", approve, store=False) as ws:
        await ws.call("bash", {"command": "echo a", "description": "d"})
        await ws.call("bash", {"command": "echo b", "description": "d"})
        assert len(requests) == 1
        await ws.call("bash", {"command": "echo c > a.txt", "description": "d"})
        assert requests[1:] == [["echo c > a.txt", "> a.txt"]]
        await ws.call("bash", {"command": "echo d > a.txt", "description": "d"})
        assert len(requests) == 2
