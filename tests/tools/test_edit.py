"""edit, beyond what the recorded calls show."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter.core.errors import PermissionDeniedError, PermissionRejectedError, ToolError
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


async def edit(ws: Workspace, name: str, old: str, new: str, **more: Any) -> ToolResult:
    """Read the file, then edit it."""
    path = ws.directory / name
    if path.is_file():
        ws.files.read(ws.sessions.default.id, path)
    return await ws.call("edit", {"filePath": name, "oldString": old, "newString": new, **more})


def header(path: Path) -> str:
    return f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n"


async def test_the_ask_shows_the_diff(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    result = await edit(workspace, "a.txt", "two", "TWO")
    patch = header(path) + "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
    (ask,) = approver.asks
    assert (ask.permission, ask.patterns, ask.always) == ("edit", ["a.txt"], ["*"])
    assert ask.metadata == {"filepath": str(path), "diff": patch}
    assert (result.title, result.output) == ("a.txt", "Edit applied successfully.")
    assert result.metadata["diff"] == patch and result.metadata["diagnostics"] == {}
    assert result.metadata["filediff"] == {
        "file": str(path),
        "patch": patch,
        "before": "one\ntwo\nthree\n",
        "after": "one\nTWO\nthree\n",
        "additions": 1,
        "deletions": 1,
    }


async def test_creating(workspace: Workspace, approver: Approver) -> None:
    await edit(workspace, "new/n.txt", "", "n\r\n\ufeff")
    path = workspace.directory / "new" / "n.txt"
    assert path.read_bytes() == b"n\r\n\xef\xbb\xbf"
    assert approver.asks[0].patterns == ["new/n.txt"]
    assert approver.asks[0].metadata["diff"].startswith(header(path) + "@@ -0,0 +1,2 @@\n+n\n")


async def test_outside_asks_for_the_folder(workspace: Workspace, approver: Approver, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    await edit(workspace, "../outside/w.txt", "", "w\n")
    assert [(a.permission, a.patterns) for a in approver.asks] == [
        ("external_directory", [f"{outside}/*"]),
        ("edit", ["../outside/w.txt"]),
    ]
    assert (outside / "w.txt").read_text() == "w\n"


async def test_a_link_out_of_the_project_asks_as_external(
    workspace: Workspace, approver: Approver, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("x\n")
    (workspace.directory / "inner.txt").symlink_to(secret)
    approver.reply = lambda ask: "reject" if ask.permission == "external_directory" else "once"
    with pytest.raises(PermissionRejectedError):
        await edit(workspace, "inner.txt", "x", "y")
    assert secret.read_text() == "x\n"
    approver.reply = "once"
    await edit(workspace, "inner.txt", "x", "y")
    assert secret.read_text() == "y\n" and (workspace.directory / "inner.txt").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filePath": "", "oldString": "a", "newString": "b"}, "^filePath is required$"),
        (
            {"filePath": "f", "oldString": "a", "newString": "a"},
            "^No changes to apply: oldString and newString are identical.$",
        ),
        ({"filePath": "f", "oldString": "", "newString": "b"}, "^oldString cannot be empty when editing an existing"),
        ({"filePath": "no", "oldString": "a", "newString": "b"}, "^File .*/no not found$"),
        ({"filePath": ".", "oldString": "a", "newString": "b"}, "^Path is a directory, not a file: "),
        ({"filePath": "f", "oldString": "a", "newString": "b"}, "^You must read file .*/f before overwriting it"),
        ({"filePath": "pipe", "oldString": "a", "newString": "b"}, "is a named pipe"),
        ({"filePath": "f/x", "oldString": "", "newString": "b"}, "a part of its path is a file"),
    ],
)
async def test_errors(workspace: Workspace, arguments: dict[str, Any], message: str) -> None:
    (workspace.directory / "f").write_text("a\n")
    os.mkfifo(workspace.directory / "pipe")
    with pytest.raises(ToolError, match=message):
        await workspace.call("edit", arguments)
    assert (workspace.directory / "f").read_text() == "a\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "A\nB\nX", b"A\r\nB\r\nX\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "A\r\nB", b"A\r\nB\r\n"),
        (b"  a\r\n  b\r\nc", "a\nb\n", "A\nB\n", b"A\r\nB\r\n\r\nc"),
        (b"a\nb\n", "a\r\nb", "A\r\nB", b"A\nB\n"),
        (b"a\r\nb\nc\n", "a", "A\nX", b"A\r\nX\r\nb\nc\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("café\nx\n".encode("latin-1"), "x", "é", b"caf\xe9\n\xc3\xa9\n"),
        (b"a\0b\n", "a", "c", b"c\0b\n"),
        (b"no newline", "no", "some", b"some newline"),
        (b"a\r", "a", "b", b"b\r"),
    ],
)
async def test_line_ends_and_encoding_stay(
    workspace: Workspace, before: bytes, old: str, new: str, after: bytes
) -> None:
    path = workspace.directory / "f"
    path.write_bytes(before)
    path.chmod(0o700)
    await edit(workspace, "f", old, new)
    assert path.read_bytes() == after
    assert path.stat().st_mode & 0o777 == 0o700
    assert os.listdir(workspace.directory).count("f") == 1 and len(os.listdir(workspace.directory)) == 2


async def test_a_rejected_edit_changes_nothing(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "f"
    path.write_text("a\n")
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await edit(workspace, "f", "a", "b")
    assert path.read_text() == "a\n" and workspace.changes.entries() == []


async def test_a_denied_path_is_denied_under_both_names(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / "locked.txt").write_text("a\n")
    (project / "alias").symlink_to("locked.txt")
    config = {"permission": {"edit": {"*": "allow", "locked.txt": "deny"}}}
    ws = await open_workspace(config)
    with pytest.raises(PermissionDeniedError):
        await edit(ws, "alias", "a", "b")
    assert (project / "locked.txt").read_text() == "a\n"


async def test_a_file_changed_while_the_ask_waits_is_not_overwritten(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "f"
    path.write_text("a\n")

    def meanwhile(_: Any) -> str:
        path.write_text("somebody else's a\n")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError, match="has been modified since it was last read"):
        await edit(workspace, "f", "a", "b")
    assert path.read_text() == "somebody else's a\n"


async def test_a_file_made_while_the_ask_waits_is_not_overwritten(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "f"

    def meanwhile(_: Any) -> str:
        path.write_text("mine\n")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError):
        await edit(workspace, "f", "", "b")
    assert path.read_text() == "mine\n"


async def test_a_link_turned_while_the_ask_waits_is_not_followed(
    workspace: Workspace, approver: Approver, tmp_path: Path
) -> None:
    (workspace.directory / "a").write_text("x\n")
    (tmp_path / "b").write_text("x\n")
    link = workspace.directory / "link"
    link.symlink_to("a")

    def meanwhile(_: Any) -> str:
        link.unlink()
        link.symlink_to(tmp_path / "b")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError, match="points to another file"):
        await edit(workspace, "link", "x", "y")
    assert (tmp_path / "b").read_text() == "x\n"


async def test_parallel_edits_of_one_file_all_count(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("".join(f"line {n}\n" for n in range(20)))
    workspace.files.read(workspace.sessions.default.id, path)
    async with anyio.create_task_group() as group:
        for n in range(20):
            arguments = {"filePath": "f", "oldString": f"line {n}\n", "newString": f"LINE {n}\n"}
            group.start_soon(workspace.call, "edit", arguments)
    assert path.read_text() == "".join(f"LINE {n}\n" for n in range(20))


async def test_events_come_before_the_result_and_a_formatter_s_work_is_in_the_diff(workspace: Workspace) -> None:
    path = workspace.directory / "f.py"
    path.write_text("x=1\n")
    events: list[Any] = []

    async def formatter(event: dict[str, Any]) -> None:
        await anyio.sleep(0.02)
        path.write_text("x = 2\n")
        events.append(event)

    workspace.bus.subscribe("file.edited", formatter)
    workspace.bus.subscribe("file.watcher.updated", events.append)
    result = await edit(workspace, "f.py", "1", "2")
    assert events == [
        {"type": "file.edited", "properties": {"file": str(path)}},
        {"type": "file.watcher.updated", "properties": {"file": str(path), "event": "change"}},
    ]
    assert result.metadata["diff"].endswith("-x=1\n+x = 2\n")
    await workspace.call("edit", {"filePath": "f.py", "oldString": "2", "newString": "3"})  # no read needed between
    workspace.changes.undo()
    assert path.read_text() == "x = 2\n"
    workspace.changes.undo()
    assert path.read_text() == "x=1\n"


async def test_crlf_is_no_change_in_the_diff(workspace: Workspace, approver: Approver) -> None:
    (workspace.directory / "f").write_bytes(b"a\r\nb\r\n")
    await edit(workspace, "f", "b", "c")
    assert approver.asks[0].metadata["diff"].endswith("@@ -1,2 +1,2 @@\n a\n-b\n+c\n")


async def test_a_dry_run_shows_the_ask_and_writes_nothing(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("a\n")
    workspace.files.read(workspace.sessions.default.id, path)
    decisions = await workspace.dry_run("edit", {"filePath": "f", "oldString": "a", "newString": "b"})
    assert [(d.permission, d.patterns) for d in decisions] == [("edit", ["f"])]
    assert path.read_text() == "a\n"


async def test_large_files(workspace: Workspace) -> None:
    path = workspace.directory / "big"
    path.write_text("".join(f"{n}\n" for n in range(300_000)) + "x" * 1_000_000)
    result = await edit(workspace, "big", "\n150000\n", "\nhere\n")
    assert "\nhere\n" in path.read_text()
    assert result.metadata["filediff"]["additions"] == 1 and len(result.metadata["diff"]) < 1000
    assert "before" not in result.metadata["filediff"]
    os.truncate(path, 300 << 20)
    with pytest.raises(ToolError, match="too much to change in memory"):
        await edit(workspace, "big", "x", "y")


async def test_an_edit_after_an_undo_needs_no_new_read(workspace: Workspace) -> None:
    path = workspace.directory / "f.txt"
    path.write_text("one\n")
    await workspace.call("read", {"filePath": "f.txt"})
    await workspace.call("edit", {"filePath": "f.txt", "oldString": "one", "newString": "two"})
    workspace.changes.undo()
    await workspace.call("edit", {"filePath": "f.txt", "oldString": "one", "newString": "three"})
    assert path.read_text() == "three\n"
    other = workspace.sessions.create("another")
    workspace.changes.undo()
    with pytest.raises(ToolError, match="You must read file"):
        await workspace.call("edit", {"filePath": "f.txt", "oldString": "one", "newString": "x"}, session=other)
