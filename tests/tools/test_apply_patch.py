"""apply_patch as a tool: what it asks, writes, tells, and takes back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from opencode_jupyter.core.errors import (
    PermissionDeniedError,
    PermissionRejectedError,
    ToolAbortedError,
    ToolError,
)
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


def body(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


async def patch(ws: Workspace, *lines: str, **options: Any) -> ToolResult:
    return await ws.call("apply_patch", {"patchText": body(*lines)}, **options)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, git's left out."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and ".git" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


ALL = (
    *("*** Add File: nested/new.txt", "+created"),
    *("*** Delete File: delete.txt",),
    *("*** Update File: modify.txt", "@@", "-line2", "+changed"),
    *("*** Update File: move.txt", "*** Move to: to/moved.txt", "@@", "-old", "+new"),
)


@pytest.fixture
def files(project: Path) -> Path:
    (project / "modify.txt").write_text("line1\nline2\n")
    (project / "delete.txt").write_text("obsolete\n")
    (project / "delete.txt").chmod(0o640)
    (project / "move.txt").write_text("old\n")
    return project


async def test_one_ask_and_the_result(workspace: Workspace, approver: Approver, files: Path) -> None:
    result = await patch(workspace, *ALL)
    assert tree(files) == {
        "modify.txt": b"line1\nchanged\n",
        "nested/new.txt": b"created\n",
        "to/moved.txt": b"new\n",
    }
    output = "Success. Updated the following files:\nA nested/new.txt\nD delete.txt\nM modify.txt\nM to/moved.txt"
    assert (result.title, result.output) == (output, output)
    (ask,) = approver.asks
    names = ["nested/new.txt", "delete.txt", "modify.txt", "move.txt"]  # the place of a move: not in OpenCode's ask
    assert (ask.permission, ask.patterns, ask.always) == ("edit", names, ["*"])
    assert ask.metadata == {
        "filepath": ", ".join(names),
        "diff": result.metadata["diff"],
        "files": result.metadata["files"],
    }
    rule = "=" * 67
    modified = files / "modify.txt"
    diff = f"Index: {modified}\n{rule}\n--- {modified}\n+++ {modified}\n@@ -1,2 +1,2 @@\n line1\n-line2\n+changed\n"
    new, deleted, update, moved = result.metadata["files"]
    assert update == {
        "filePath": str(modified),
        "relativePath": "modify.txt",
        "type": "update",
        "diff": diff,
        "patch": diff,
        "before": "line1\nline2\n",
        "after": "line1\nchanged\n",
        "additions": 1,
        "deletions": 1,
    }
    assert (new["type"], new["additions"], new["deletions"], new["before"]) == ("add", 1, 0, "")
    assert (deleted["type"], deleted["deletions"], deleted["after"]) == ("delete", 2, "")
    assert (moved["type"], moved["relativePath"]) == ("move", "to/moved.txt")
    assert moved["movePath"] == str(files / "to/moved.txt") and moved["filePath"] == str(files / "move.txt")
    assert f"--- {files}/move.txt\n+++ {files}/to/moved.txt\n" in moved["diff"]
    assert result.metadata["diff"] == "".join(file["diff"] + "\n" for file in result.metadata["files"])
    assert result.metadata["diagnostics"] == {}


async def test_one_undo_takes_the_whole_patch_back(workspace: Workspace, files: Path) -> None:
    before = tree(files)
    await patch(workspace, *ALL)
    await patch(workspace, "*** Add File: later", "+x")
    workspace.changes.undo()
    workspace.changes.undo()
    assert tree(files) == before
    assert (files / "delete.txt").stat().st_mode & 0o777 == 0o640
    assert not (files / "nested").exists() and not (files / "to").exists()
    with pytest.raises(ToolError, match="no change to undo"):
        workspace.changes.undo()


async def test_undo_brings_a_deleted_link_back(workspace: Workspace, files: Path) -> None:
    (files / "link").symlink_to("modify.txt")
    await patch(workspace, "*** Delete File: link", "*** Update File: modify.txt", "@@", "-line2")
    assert not (files / "link").is_symlink() and (files / "modify.txt").read_text() == "line1\n"
    workspace.changes.undo()
    assert (files / "link").readlink() == Path("modify.txt") and (files / "link").read_text() == "line1\nline2\n"


async def test_a_patch_of_more_files_than_are_remembered_is_undone_whole(workspace: Workspace) -> None:
    await patch(workspace, *(line for n in range(700) for line in (f"*** Add File: many/{n}", "+x")))
    assert len(workspace.changes.undo()) == 700
    assert not (workspace.directory / "many").exists()


async def test_events(workspace: Workspace, files: Path) -> None:
    published: list[tuple[str, str, Any]] = []

    def note(event: dict[str, Any]) -> None:
        properties = event["properties"]
        published.append((event["type"], os.path.relpath(properties["file"], files), properties.get("event")))

    workspace.bus.subscribe("file.edited", note)
    workspace.bus.subscribe("file.watcher.updated", note)
    await patch(workspace, *ALL)
    assert published == [
        ("file.edited", "nested/new.txt", None),
        ("file.edited", "modify.txt", None),
        ("file.edited", "to/moved.txt", None),
        ("file.watcher.updated", "nested/new.txt", "add"),
        ("file.watcher.updated", "delete.txt", "unlink"),
        ("file.watcher.updated", "modify.txt", "change"),
        ("file.watcher.updated", "move.txt", "unlink"),
        ("file.watcher.updated", "to/moved.txt", "add"),
    ]


async def test_only_files_that_are_left_are_told_of_as_edited(workspace: Workspace, files: Path) -> None:
    edited: list[str] = []
    workspace.bus.subscribe("file.edited", lambda event: edited.append(Path(event["properties"]["file"]).name))
    await patch(
        workspace,
        *("*** Add File: gone", "+x", "*** Delete File: gone"),
        *("*** Add File: first", "+x", "*** Update File: first", "*** Move to: second"),
    )
    assert edited == ["second"] and "gone" not in tree(files)


async def test_a_formatter_s_work_is_in_the_diff_and_undone_with_it(workspace: Workspace, files: Path) -> None:
    async def formatter(event: dict[str, Any]) -> None:
        path = Path(event["properties"]["file"])
        path.write_text(path.read_text().upper())

    workspace.bus.subscribe("file.edited", formatter)
    result = await patch(workspace, *ALL)
    assert "+CHANGED\n" in result.metadata["diff"] and "+CREATED\n" in result.metadata["diff"]
    edited = {"filePath": "modify.txt", "oldString": "CHANGED", "newString": "X"}
    await workspace.call("edit", edited)  # no read needed between
    workspace.changes.undo(2)
    assert (files / "modify.txt").read_text() == "line1\nline2\n" and not (files / "nested").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^patchText is required$"),
        ("hello", r"^apply_patch verification failed: Error: Invalid patch format: missing Begin/End markers$"),
        ("*** Begin Patch\n*** End Patch", r"^patch rejected: empty patch$"),
        ("*** Begin Patch\r\n*** End Patch\r\n", r"^patch rejected: empty patch$"),
        ("*** Begin Patch\n\n*** End Patch", r"^apply_patch verification failed: no hunks found$"),
        (body("*** Frobnicate File: x"), r"^apply_patch verification failed: no hunks found$"),
        (body("*** Add File: ok", "+x")[:-14], r"verification failed: Error: Invalid patch format: missing Begin/End"),
        (
            body("*** Update File: no", "@@", "-a"),
            r"^apply_patch verification failed: Failed to read file to update: .*/project/no$",
        ),
        (body("*** Update File: d", "@@", "-a"), r"verification failed: Failed to read file to update: .*/project/d$"),
        (body("*** Delete File: no"), r"^apply_patch verification failed: Error: ENOENT: no such file or directory, "),
        (body("*** Delete File: d"), r"^apply_patch verification failed: Error: EISDIR: illegal operation on a dir"),
        (
            body("*** Update File: modify.txt", "@@", "-missing", "+x"),
            r"^apply_patch verification failed: Error: Failed to find expected lines in .*/modify.txt:\nmissing$",
        ),
        (
            body("*** Update File: modify.txt", "@@ def g", "-line1"),
            r"^apply_patch verification failed: Error: Failed to find context 'def g' in .*/modify.txt$",
        ),
        (body("*** Add File: modify.txt/x", "+x"), r"verification failed: Error: .* is a file, not a folder"),
        (body("*** Update File: move.txt", "*** Move to: modify.txt/x"), r"Error: .* is a file, not a folder"),
        (body("*** Add File: d", "+x"), r"verification failed: Error: Path is a directory, not a file: "),
        (body("*** Add File: a\0b", "+x"), r"NUL character"),
        (body("*** Add File: " + "n" * 300, "+x"), r"name is too long"),
    ],
)
async def test_errors_change_nothing(
    workspace: Workspace, approver: Approver, files: Path, text: str, message: str
) -> None:
    (files / "d").mkdir()
    before = tree(files)
    if text.count("***") > 2 and "no hunks" not in message:  # what comes before the error is not done either
        text = text.replace("*** Begin Patch\n", "*** Begin Patch\n*** Delete File: delete.txt\n", 1)
    with pytest.raises(ToolError, match=message):
        await workspace.call("apply_patch", {"patchText": text})
    assert tree(files) == before and approver.asks == [] and workspace.changes.entries() == []


async def test_a_rejected_patch_changes_nothing(workspace: Workspace, approver: Approver, files: Path) -> None:
    before = tree(files)
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await patch(workspace, *ALL)
    assert tree(files) == before


@pytest.mark.parametrize("denied", ["move.txt", "to/moved.txt", "delete.txt", "nested/*"])
async def test_every_path_is_judged(open_workspace: OpenWorkspace, files: Path, denied: str) -> None:
    before = tree(files)
    config = {"permission": {"edit": {"*": "allow", denied: "deny"}}}
    ws = await open_workspace(config, directory=files)
    with pytest.raises(PermissionDeniedError):
        await patch(ws, *ALL)
    assert tree(files) == before


async def test_where_a_file_is_moved_to_is_judged_too(
    open_workspace: OpenWorkspace, files: Path, approver: Approver
) -> None:
    config = {"permission": {"edit": {"*": "allow", "to/*": "ask"}}}
    ws = await open_workspace(config, directory=files, approve=approver)
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await patch(ws, *ALL)
    assert approver.asks[-1].patterns[-1] == "to/moved.txt" and (files / "move.txt").exists()
    planned = await ws.dry_run("apply_patch", {"patchText": body(*ALL)})
    assert (planned[0].action, planned[0].patterns[-1]) == ("ask", "to/moved.txt")


async def test_an_approval_of_the_files_alone_does_not_cover_where_they_are_moved(
    workspace: Workspace, approver: Approver, files: Path
) -> None:
    (files / "b").write_text("b\n")
    waiting: list[str] = []

    async def answered(request: Any) -> Literal["once", "reject"]:
        waiting.append(request.id)
        if request.patterns == ["b"]:  # while the move waits, a person allows edits of the two files as they are called
            workspace.permissions.reply(request.id, "always", patterns=["b", "move.txt"])
            return "once"
        while len(waiting) < 2:
            await anyio.sleep(0.01)
        return "reject"

    approver.reply = "once"
    workspace.permissions.approve = answered
    move = ("*** Update File: move.txt", "*** Move to: to/moved.txt")

    async def moved() -> None:
        with pytest.raises(PermissionRejectedError):
            await patch(workspace, *move)

    async with anyio.create_task_group() as group:
        group.start_soon(moved)
        while not waiting:
            await anyio.sleep(0.01)
        await patch(workspace, "*** Update File: b", "@@", "-b", "+c")
    assert (files / "move.txt").exists()
    workspace.permissions.approve = approver
    approver.reply = "once"
    await patch(workspace, *move)  # allowed now by the files' names alone, and still asked for its place
    assert approver.asks[-1].patterns == ["move.txt", "to/moved.txt"]


async def test_outside_the_project_asks_once_for_each_folder_and_for_the_target_of_a_move(
    workspace: Workspace, approver: Approver, files: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    await patch(
        workspace,
        *("*** Add File: ../outside/a", "+a"),
        *(f"*** Add File: {outside}/b", "+b"),
        *("*** Update File: move.txt", "*** Move to: ~/moved.txt"),
    )
    home = tmp_path / "home"
    assert [(a.permission, a.patterns) for a in approver.asks] == [
        ("external_directory", [f"{outside}/*"]),
        ("external_directory", [f"{home}/*"]),
        ("edit", ["../outside/a", "../outside/b", "move.txt"]),
    ]
    assert tree(outside) == {"a": b"a\n", "b": b"b\n"} and tree(home) == {"moved.txt": b"old\n"}


async def test_links_out_of_the_project_ask_as_external(
    workspace: Workspace, approver: Approver, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/s.txt").write_text("x\n")
    (files / "folder").symlink_to(tmp_path / "secret")
    approver.reply = lambda ask: "reject" if ask.permission == "external_directory" else "once"
    for lines in (
        ["*** Add File: folder/new", "+x"],
        ["*** Update File: folder/s.txt", "@@", "-x", "+y"],
        ["*** Delete File: folder/s.txt"],
        ["*** Update File: move.txt", "*** Move to: folder/s.txt"],
    ):
        with pytest.raises(PermissionRejectedError):
            await patch(workspace, *lines)
    assert tree(tmp_path / "secret") == {"s.txt": b"x\n"} and {a.permission for a in approver.asks} == {
        "external_directory"
    }


async def test_what_a_move_or_an_addition_overwrites_is_shown(
    workspace: Workspace, approver: Approver, files: Path
) -> None:
    await patch(workspace, "*** Update File: move.txt", "*** Move to: modify.txt", "*** Add File: delete.txt", "+mine")
    diff = approver.asks[0].metadata["diff"]
    assert "-line1\n-line2\n" in diff and "-obsolete\n+mine\n" in diff
    assert tree(files) == {"modify.txt": b"old\n", "delete.txt": b"mine\n"}


@pytest.mark.parametrize("which", ["modify.txt", "delete.txt", "move.txt", "nested/new.txt", "to/moved.txt"])
async def test_a_file_changed_while_the_ask_waits_keeps_everything(
    workspace: Workspace, approver: Approver, files: Path, which: str
) -> None:
    before = tree(files)

    def meanwhile(_: Any) -> str:
        (files / which).parent.mkdir(exist_ok=True)
        (files / which).write_text("somebody else's\n")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError, match="has been modified since"):
        await patch(workspace, *ALL)
    assert tree(files) == {**before, which: b"somebody else's\n"}


async def test_a_link_turned_while_the_ask_waits_is_not_followed(
    workspace: Workspace, approver: Approver, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("line1\nline2\n")
    (files / "link").symlink_to("modify.txt")

    def meanwhile(_: Any) -> str:
        (files / "modify.txt").unlink()
        (files / "modify.txt").symlink_to(tmp_path / "other")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError, match="points to another file"):
        await patch(workspace, "*** Update File: link", "@@", "-line2")
    assert (tmp_path / "other").read_text() == "line1\nline2\n"


async def test_a_folder_that_vanishes_while_the_ask_waits(
    workspace: Workspace, approver: Approver, files: Path
) -> None:
    (files / "f").mkdir()

    def meanwhile(_: Any) -> str:
        (files / "f").rmdir()
        (files / "f").write_text("a file now")
        return "once"

    approver.reply = meanwhile
    with pytest.raises(ToolError, match=r"a part of its path is a file.* put back \(3 files\); nothing is changed"):
        await patch(workspace, *ALL, "*** Add File: f/x", "+x")
    assert (files / "modify.txt").read_text() == "line1\nline2\n" and not (files / "nested").exists()
    assert workspace.changes.entries() == []


async def test_a_stop_while_writing_leaves_all_or_nothing(
    workspace: Workspace, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(files)
    real = Path.replace
    count = 0

    def slow(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == 2:
            workspace.abort(next(iter(workspace.calls)))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", slow)
    with pytest.raises(ToolAbortedError):
        await patch(workspace, *ALL)
    assert count >= 2 and tree(files) == before and workspace.changes.entries() == []
    assert not (files / "nested").exists()


async def test_a_time_limit_at_any_moment_leaves_all_or_nothing(workspace: Workspace, files: Path) -> None:
    before = tree(files)
    for n in range(12):
        undone = False
        try:
            await patch(workspace, *ALL, timeout=0.0001 + 0.001 * n)
        except ToolAbortedError:
            undone = tree(files) == before
        if not undone:
            assert "nested/new.txt" in tree(files) and "delete.txt" not in tree(files)
            workspace.changes.undo()
        assert tree(files) == before


async def test_parallel_patches_and_edits_of_the_same_files_all_count(workspace: Workspace) -> None:
    for name in "ab":
        (workspace.directory / name).write_text("".join(f"line {n}\n" for n in range(20)))
        workspace.files.read(workspace.sessions.default.id, workspace.directory / name)

    async def change(n: int) -> None:
        names = "ab" if n % 2 else "ba"
        if n % 5:
            await patch(
                workspace,
                *(x for name in names for x in (f"*** Update File: {name}", "@@", f"-line {n}", f"+LINE {n}")),
            )
        else:
            for name in names:
                arguments = {"filePath": name, "oldString": f"line {n}\n", "newString": f"LINE {n}\n"}
                await workspace.call("edit", arguments)

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(change, n)
    for name in "ab":
        assert (workspace.directory / name).read_text() == "".join(f"LINE {n}\n" for n in range(20))


async def test_a_dry_run_shows_the_ask_and_writes_nothing(workspace: Workspace, files: Path) -> None:
    before = tree(files)
    decisions = await workspace.dry_run("apply_patch", {"patchText": body(*ALL)})
    assert [d.permission for d in decisions] == ["edit"] and "move.txt" in decisions[0].patterns
    assert tree(files) == before


async def test_bytes_that_are_no_text_stay(workspace: Workspace, files: Path) -> None:
    (files / "latin").write_bytes(b"\xef\xbb\xbfcaf\xe9\r\nx\r\n")
    result = await patch(workspace, "*** Update File: latin", "*** Move to: moved", "@@", " caf\ufffd", "-x", "+y")
    assert (files / "moved").read_bytes() == b"\xef\xbb\xbfcaf\xe9\r\ny\r\n"
    assert result.metadata["files"][0]["after"] == "caf\ufffd\r\ny\r\n"
    workspace.changes.undo()
    assert (files / "latin").read_bytes() == b"\xef\xbb\xbfcaf\xe9\r\nx\r\n" and not (files / "moved").exists()


async def test_half_a_character_is_refused(workspace: Workspace, files: Path) -> None:
    with pytest.raises(ToolError, match="half of a surrogate pair"):
        await patch(workspace, *ALL, "*** Add File: half", "+\ud83d")
    assert not (files / "nested").exists()


async def test_thousands_of_files_and_of_chunks(workspace: Workspace) -> None:
    (workspace.directory / "big").write_text("".join(f"head {n}\nbody\n" for n in range(3000)))
    chunks = (line for n in range(3000) for line in ("@@", f" head {n}", "-body", f"+new {n}"))
    added = (line for n in range(300) for line in (f"*** Add File: d/{n}", "+x"))
    result = await patch(workspace, "*** Update File: big", *chunks, *added)
    assert (workspace.directory / "big").read_text() == "".join(f"head {n}\nnew {n}\n" for n in range(3000))
    assert len(result.metadata["files"]) == 301 and result.title.endswith("... and 282 more")
    assert result.output.count("\n") == 301
