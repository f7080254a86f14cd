"""write, beyond what the recorded calls show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from opencode_jupyter.core.file_tracker import FileChangedError, NotReadError
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


async def test_a_new_file(workspace: Workspace, approver: Approver) -> None:
    published: list[Any] = []
    workspace.bus.subscribe("file.edited", published.append)
    workspace.bus.subscribe("file.watcher.updated", published.append)
    result = await workspace.call("write", {"filePath": "w.txt", "content": "w\n"})
    path = workspace.directory / "w.txt"
    assert path.read_text() == "w\n"
    (ask,) = approver.asks
    assert (ask.permission, ask.patterns, ask.always) == ("edit", ["w.txt"], ["*"])
    assert ask.metadata == {
        "filepath": str(path),
        "diff": f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n@@ -0,0 +1,1 @@\n+w\n",
    }
    assert (result.title, result.output) == ("w.txt", "Wrote file successfully.")
    assert result.metadata == {"diagnostics": {}, "filepath": str(path), "exists": False, "truncated": False}
    assert [e["properties"] for e in published] == [{"file": str(path)}, {"file": str(path), "event": "add"}]
    again = await workspace.call("write", {"filePath": "w.txt", "content": "v\n"})  # its own file needs no read
    assert again.metadata["exists"] is True and published[-1]["properties"]["event"] == "change"


async def test_an_existing_file_must_have_been_read(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "f"
    path.write_text("precious\n")
    with pytest.raises(ToolError, match=r"You must read file .* before overwriting it"):
        await workspace.call("write", {"filePath": "f", "content": "x"})
    await workspace.call("read", {"filePath": "f"})
    path.write_text("changed\n")
    with pytest.raises(ToolError, match="has been modified since it was last read"):
        await workspace.call("write", {"filePath": "f", "content": "x"})
    assert path.read_text() == "changed\n" and approver.named("edit") == []


async def test_undo_brings_back_the_bytes(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_bytes(b"\xef\xbb\xbfcaf\xe9\r\n")
    workspace.files.read(workspace.sessions.default.id, path)
    await workspace.call("write", {"filePath": "f", "content": "new\n"})
    assert path.read_bytes() == b"\xef\xbb\xbfnew\n"  # the byte order mark stays
    (entry,) = workspace.changes.entries()
    assert (entry.path, entry.tool) == (path, "write") and entry.call_id
    workspace.changes.undo()
    assert path.read_bytes() == b"\xef\xbb\xbfcaf\xe9\r\n"


async def test_the_diff_shows_a_changed_line_end(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "f"
    path.write_bytes(b"a\r\nb\n")
    workspace.files.read(workspace.sessions.default.id, path)
    await workspace.call("write", {"filePath": "f", "content": "a\nb\n"})
    assert approver.asks[0].metadata["diff"].endswith("@@ -1,2 +1,2 @@\n-a\r\n+a\n b\n")
    assert path.read_bytes() == b"a\nb\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filePath": "", "content": "x"}, "filePath is required"),
        ({"filePath": ".", "content": "x"}, "Path is a directory, not a file"),
        ({"filePath": "pipe", "content": "x"}, "is a named pipe"),
        ({"filePath": "file/x", "content": "x"}, "a part of its path is a file"),
        ({"filePath": "a\0b", "content": "x"}, "NUL character"),
        ({"filePath": "n" * 300, "content": "x"}, "file name is too long"),
        ({"filePath": "f", "content": "half \ud83d"}, "half of a surrogate pair"),
    ],
)
async def test_errors(workspace: Workspace, arguments: dict[str, Any], message: str) -> None:
    os.mkfifo(workspace.directory / "pipe")
    (workspace.directory / "file").write_text("")
    with pytest.raises(ToolError, match=message):
        await workspace.call("write", arguments, timeout=10)
    assert sorted(os.listdir(workspace.directory)) == [".git", "file", "pipe"]


async def test_missing_arguments_name_the_field(workspace: Workspace) -> None:
    with pytest.raises(InvalidArgumentsError, match='"content"'):
        await workspace.call("write", {"filePath": "f"})


@pytest.mark.parametrize("name", ["sp ace", "new\nline", "{}'\"", "-rf", "$HOME", "ü", "*", os.fsdecode(b"\xff")])
async def test_odd_names(workspace: Workspace, name: str) -> None:
    await workspace.call("write", {"filePath": name, "content": "x"})
    assert (workspace.directory / name).read_text() == "x"


async def test_a_huge_diff_is_cut_in_the_ask(workspace: Workspace, approver: Approver) -> None:
    await workspace.call("write", {"filePath": "f", "content": "0123456789\n" * 100_000})
    diff = approver.asks[0].metadata["diff"]
    assert len(diff) < 500_000 and diff.rstrip().endswith("more lines of this diff are not shown")
    assert (workspace.directory / "f").stat().st_size == 1_100_000


async def test_a_full_disk_leaves_the_old_file(
    workspace: Workspace, approver: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace.directory / "f"
    path.write_text("old\n")
    workspace.files.read(workspace.sessions.default.id, path)
    real_open = os.open

    def full(name: Any, flags: int, *rest: Any, **keywords: Any) -> int:
        if str(name).startswith(str(workspace.directory)) and flags & os.O_CREAT:
            os.close(real_open(name, flags, *rest, **keywords))
            return real_open("/dev/full", os.O_WRONLY)
        return real_open(name, flags, *rest, **keywords)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(ToolError, match="No space left on the disk"):
        await workspace.call("write", {"filePath": "f", "content": "new\n"})
    assert path.read_text() == "old\n"
    assert sorted(os.listdir(workspace.directory)) == [".git", "f"]
    assert workspace.changes.entries() == []


async def test_a_project_reached_through_a_link(
    open_workspace: OpenWorkspace, tmp_path: Path, project: Path, approver: Approver
) -> None:
    (tmp_path / "door").symlink_to(project)
    ws = await open_workspace({"permission": {"*": "ask"}}, directory=tmp_path / "door", approve=approver)
    await ws.call("write", {"filePath": "f", "content": "x"})
    await ws.call("read", {"filePath": "f"})
    assert [(a.permission, a.patterns) for a in approver.asks] == [("edit", ["f"]), ("read", ["f"])]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"content": "new\n"}),
        ("edit", {"oldString": "old", "newString": "new"}),
        ("multiedit", {"edits": [{"oldString": "old", "newString": "new"}]}),
    ],
)
async def test_a_person_needs_no_read_but_overwrites_no_change(
    workspace: Workspace, approver: Approver, tool: str, arguments: dict[str, Any]
) -> None:
    path = workspace.directory / "f.txt"
    path.write_text("old\n")
    call = {"filePath": "f.txt", **arguments}
    await workspace.call(tool, call, by="user")
    assert path.read_text() == "new\n"
    path.write_text("old\n")
    other = workspace.sessions.create("another")
    with pytest.raises(NotReadError):
        await workspace.call(tool, call, session=other)

    def change_meanwhile(request: Any) -> str:
        path.write_text("old by somebody else\n")
        return "once"

    approver.reply = change_meanwhile
    with pytest.raises(FileChangedError) as raised:
        await workspace.call(tool, call, by="user", session=other)
    assert path.read_text() == "old by somebody else\n"
    assert "Run the call again" in raised.value.for_person and "read the file again" not in raised.value.for_person


async def test_a_person_in_a_batch_edits_one_file_twice(workspace: Workspace) -> None:
    path = workspace.directory / "f.txt"
    path.write_text("a b\n")
    calls = [
        {"tool": "edit", "parameters": {"filePath": "f.txt", "oldString": old, "newString": old.upper()}}
        for old in ("a", "b")
    ]
    await workspace.call("batch", {"tool_calls": calls}, by="user")
    assert path.read_text() == "A B\n"


async def test_identical_content_may_always_be_written(workspace: Workspace) -> None:
    path = workspace.directory / "f.txt"
    path.write_text("same\n")
    result = await workspace.call("write", {"filePath": "f.txt", "content": "same\n"}, by="python")
    assert result.output == "Wrote file successfully." and workspace.changes.entries() == []
