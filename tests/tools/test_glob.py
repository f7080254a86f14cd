"""glob: the newest of all that fit."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent.exchange import export
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.tools import ripgrep
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

NAMES = [
    "plain.txt",
    "two words.txt",
    "quo'te\".txt",
    "new\nline.txt",
    "co:lon.txt",
    "pi|pe.txt",
    "é日😀.txt",
    "{a}.txt",
]


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    return request.param


def make(folder: Path, name: str, age: int = 0) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x\n")
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


async def test_newest_first(workspace: Workspace, project: Path, engine: str) -> None:
    for age, name in enumerate(["b.py", "src/a.py", ".hidden/c.py", "src/d.txt"]):
        make(project, name, age)
    result = await workspace.call("glob", {"pattern": "**/*.py"})
    assert result.output.split("\n") == [str(project / n) for n in ("b.py", "src/a.py", ".hidden/c.py")]
    assert result.title == ""
    assert (result.metadata["count"], result.metadata["truncated"]) == (3, False)
    assert ("engine" in result.metadata) == (engine == "python")
    assert result.records == [
        {"path": str(project / n), "mtime": datetime.fromtimestamp(1_700_000_000 - i, UTC)}
        for i, n in enumerate(("b.py", "src/a.py", ".hidden/c.py"))
    ]
    inside = await workspace.call("glob", {"pattern": "*.py", "path": "src"})
    assert (inside.title, inside.output) == ("src", str(project / "src/a.py"))


async def test_the_newest_of_all_are_shown(workspace: Workspace, project: Path, engine: str) -> None:
    for i in range(250):
        make(project, f"d{i % 7}/f{i}.txt", age=(i * 37) % 250)
    result = await workspace.call("glob", {"pattern": "**/*.txt"})
    *paths, blank, footer = result.output.split("\n")
    ages = [1_700_000_000 - int(os.stat(path).st_mtime) for path in paths]
    assert ages == list(range(100))
    assert blank == ""
    assert footer == (
        "(Results are truncated: showing first 100 of 250 results. Consider using a more specific path or pattern.)"
    )
    assert (result.metadata["count"], result.metadata["total"], result.metadata["truncated"]) == (100, 250, True)


async def test_odd_names(workspace: Workspace, project: Path, engine: str) -> None:
    made = {str(make(project, name)) for name in NAMES}
    made.add(os.fsdecode(os.fsencode(project) + b"/b\xffd.txt"))
    Path(max(made, key=lambda n: "\udcff" in n)).write_text("x")
    result = await workspace.call("glob", {"pattern": "*.txt"})
    assert result.records is not None
    assert {record["path"] for record in result.records} == made


async def test_git_is_never_listed_and_ignored_files_are_not(workspace: Workspace, project: Path) -> None:
    make(project, ".gitignore").write_text("build/\n")
    make(project, "build/x.py")
    make(project, "sub/.git/config")
    make(project, "keep.py")
    listed = (await workspace.call("glob", {"pattern": "**/*"})).output
    assert ".git/" not in listed
    assert (await workspace.call("glob", {"pattern": "**/*.py"})).output == str(project / "keep.py")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"pattern": ""}, ToolError, "pattern is required"),
        ({"pattern": "*", "path": "none"}, FileNotFoundError, r"No such file or directory: '.*/project/none'"),
        ({"pattern": "*", "path": "undefined"}, ToolError, 'the word "undefined"; leave path out'),
        ({"pattern": "*", "path": "f.txt"}, ToolError, "is a file, not a folder"),
        ({"pattern": "{a"}, ToolError, "unclosed alternate group"),
        ({"pattern": "*", "path": "a\0b"}, ToolError, "NUL"),
        ({"pattern": "*", "path": "n" * 300}, ToolError, "^(The file name is too long: |No such file)"),
        ({"pattern": "a\0b"}, ToolError, "NUL"),
    ],
)
async def test_bad_arguments(
    workspace: Workspace, project: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    make(project, "f.txt")
    with pytest.raises(error, match=message):
        await workspace.call("glob", arguments)


async def test_a_folder_that_may_not_be_searched(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what the system says of such a folder; root, who may run the tests, is refused nothing
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(project))

    monkeypatch.setattr(ripgrep.subprocess, "Popen", refused)
    for tool in ("glob", "grep"):
        with pytest.raises(ToolError, match=rf"^No permission to search {project}\. Change its permissions"):
            await workspace.call(tool, {"pattern": "a"})


async def test_a_folder_outside_asks_after_the_tools_own_ask(
    workspace: Workspace, approver: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    make(outside, "o.txt")
    result = await workspace.call("glob", {"pattern": "*", "path": str(outside)})
    assert result.output == str(outside / "o.txt")
    assert [(a.permission, a.patterns) for a in approver.asks] == [
        ("glob", ["*"]),
        ("external_directory", [f"{outside}/*"]),
    ]


async def test_nothing_found(workspace: Workspace) -> None:
    result = await workspace.call("glob", {"pattern": "*.none"})
    assert (result.output, result.metadata) == ("No files found", {"count": 0, "truncated": False})
    assert result.records == []


async def test_a_link_to_a_folder_can_be_searched(workspace: Workspace, project: Path) -> None:
    make(project, "real/a.txt")
    (project / "link").symlink_to(project / "real")
    assert (await workspace.call("glob", {"pattern": "*", "path": "link"})).output == str(project / "link/a.txt")


async def test_times_in_records_pass_through_batch_map_and_saved_parts(workspace: Workspace, project: Path) -> None:
    make(project, "a.py")
    calls = [{"tool": "glob", "parameters": {"pattern": "*.py"}}]
    batch = await workspace.call("batch", {"tool_calls": calls})
    assert batch.records is not None
    assert [row["success"] for row in batch.records] == [True]
    outcomes = await workspace.map([("glob", {"pattern": "*.py"})])
    assert not outcomes.errors
    assert outcomes[0].value.records[0]["mtime"].tzinfo is UTC
    for session in workspace.sessions.list():
        assert json.loads(json.dumps(await export(workspace, session)))["info"]["id"] == session.id
    assert {call["tool"] for call in json.loads(json.dumps(await workspace.store.calls()))} == {"glob", "batch"}


@pytest.mark.parametrize("pattern", ["secret*", "{project}/secret*", "*.key"])
async def test_files_whose_reading_a_rule_denies_are_left_out(
    project: Path, open_workspace: OpenWorkspace, pattern: str
) -> None:
    """Neither listed nor counted; a rule that only asks hides no name."""
    for name in ("secret.key", "open.env", "plain.txt"):
        make(project, name)
    read = {"*": "allow", "*.env": "ask", pattern.format(project=project): "deny"}
    denying = await open_workspace({"permission": {"*": "allow", "read": read}})
    result = await denying.call("glob", {"pattern": "*"})
    assert sorted(result.output.splitlines()) == [str(project / "open.env"), str(project / "plain.txt")]
    assert result.metadata["count"] == 2


async def test_a_denial_of_this_session_leaves_files_out_that_a_rule_names(
    project: Path, open_workspace: OpenWorkspace
) -> None:
    for name in ("secret.key", "open.env", "plain.txt"):
        make(project, name)
    ws = await open_workspace({"permission": {"*": "allow", "read": {"*": "allow", "*.env": "ask"}}})
    ws.permissions.remember(Rule("read", "*", "deny"))
    assert (await ws.call("glob", {"pattern": "*"})).output == str(project / "plain.txt")
