"""multiedit: several replacements in one file, all or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter.core.errors import (
    InvalidArgumentsError,
    PermissionDeniedError,
    PermissionRejectedError,
    ToolError,
)
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


async def multiedit(ws: Workspace, name: str, *edits: tuple[str, str] | dict[str, Any]) -> ToolResult:
    """Read the file, then edit it."""
    path = ws.directory / name
    if path.is_file():
        ws.files.read(ws.sessions.default.id, path)
    changes = [edit if isinstance(edit, dict) else {"oldString": edit[0], "newString": edit[1]} for edit in edits]
    return await ws.call("multiedit", {"filePath": name, "edits": changes})


async def test_edits_are_made_in_order_with_one_ask(workspace: Workspace, approver: Approver) -> None:
    path = workspace.directory / "a.txt"
    path.write_text("one\ntwo\nthree\nthree\n")
    result = await multiedit(
        workspace,
        "a.txt",
        ("one", "ONE"),
        {"oldString": "three", "newString": "3", "replaceAll": True},
        {"old_string": "ONE\ntwo", "new_string": "1\n2", "filePath": "ignored"},
    )
    assert path.read_text() == "1\n2\n3\n3\n"
    (ask,) = approver.asks
    assert (ask.permission, ask.patterns, ask.always) == ("edit", ["a.txt"], ["*"])
    assert ask.metadata["filepath"] == str(path)
    assert ask.metadata["diff"].endswith("@@ -1,4 +1,4 @@\n-one\n-two\n-three\n-three\n+1\n+2\n+3\n+3\n")
    assert (result.title, result.output) == ("a.txt", "Edit applied successfully.")
    assert result.metadata["diff"] == ask.metadata["diff"]
    first, second, third = (result_entry["filediff"] for result_entry in result.metadata["results"])
    assert (first["before"], first["after"]) == ("one\ntwo\nthree\nthree\n", "ONE\ntwo\nthree\nthree\n")
    assert second["additions"] == 2 and third["after"] == "1\n2\n3\n3\n"
    await workspace.call("edit", {"filePath": "a.txt", "oldString": "1", "newString": "x"})  # no read needed between
    workspace.changes.undo(2)
    assert path.read_text() == "one\ntwo\nthree\nthree\n"


async def test_a_new_file_is_made_by_a_first_edit_without_old_text(workspace: Workspace) -> None:
    await multiedit(workspace, "d/new.txt", ("", "hello\n"), ("hello", "bye"))
    assert (workspace.directory / "d/new.txt").read_text() == "bye\n"
    workspace.changes.undo()
    assert not (workspace.directory / "d/new.txt").exists()


@pytest.mark.parametrize(
    ("name", "edits", "message"),
    [
        ("", [("a", "b")], r"^filePath is required$"),
        ("f", [], r"^edits is empty\. Give at least one"),
        ("f", [("a", "b"), ("a", "c")], r"^Could not find oldString .* \(Edit 2 of 2; none of them is made\.\)$"),
        ("f", [("a", "b"), ("x", "y")], r"^Found multiple matches .* \(Edit 2 of 2; none of them is made\.\)$"),
        ("f", [("zzz", "y")], r"^Could not find oldString in the file[^(]*$"),
        ("f", [("a", "b"), ("b", "b")], r"^No changes to apply: .* \(Edit 2 of 2"),
        ("f", [("a", "b"), ("", "c")], r"^oldString cannot be empty .* \(Edit 2 of 2"),
        ("no", [("a", "b")], r"^File .*/no not found$"),
        (".", [("a", "b")], r"^Path is a directory"),
        ("unread", [("a", "b")], r"^You must read file .*/unread before overwriting it"),
    ],
)
async def test_errors_change_nothing(
    workspace: Workspace, approver: Approver, name: str, edits: list[tuple[str, str]], message: str
) -> None:
    (workspace.directory / "f").write_text("a\nx\nx\n")
    (workspace.directory / "unread").write_text("a\n")
    if name != "unread":
        workspace.files.read(workspace.sessions.default.id, workspace.directory / "f")
    changes = [{"oldString": old, "newString": new} for old, new in edits]
    with pytest.raises(ToolError, match=message):
        await workspace.call("multiedit", {"filePath": name, "edits": changes})
    assert (workspace.directory / "f").read_text() == "a\nx\nx\n" and approver.asks == []


async def test_edits_may_come_as_json_text(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("a\n")
    workspace.files.read(workspace.sessions.default.id, path)
    text = json.dumps([{"oldString": "a", "newString": "b"}])
    await workspace.call("multiedit", {"filePath": "f", "edits": text})
    assert path.read_text() == "b\n"
    with pytest.raises(InvalidArgumentsError, match="edits is not a list: it is invalid JSON"):
        await workspace.call("multiedit", {"filePath": "f", "edits": "[{"})


async def test_line_ends_mark_and_bytes_stay(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_bytes(b"\xef\xbb\xbfa\r\ncaf\xe9\r\nc\r\n")
    await multiedit(workspace, "f", ("a\n", "A\nB\n"), ("c\n", "C\n"))
    assert path.read_bytes() == b"\xef\xbb\xbfA\r\nB\r\ncaf\xe9\r\nC\r\n"


async def test_rules_links_and_refusals(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, approver: Approver
) -> None:
    (project / "locked").write_text("a\n")
    (project / "alias").symlink_to("locked")
    (tmp_path / "outside").write_text("a\n")
    (project / "out").symlink_to(tmp_path / "outside")
    config = {"permission": {"edit": {"*": "ask", "locked": "deny"}, "external_directory": "deny"}}
    ws = await open_workspace(config, approve=approver)
    for name in ("alias", "out"):
        with pytest.raises(PermissionDeniedError):
            await multiedit(ws, name, ("a", "b"))
    (project / "mine").write_text("a\n")
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await multiedit(ws, "mine", ("a", "b"))
    assert {p.read_text() for p in (project / "locked", tmp_path / "outside", project / "mine")} == {"a\n"}


async def test_a_formatter_s_work_is_in_the_diff(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("a\nb\n")
    workspace.bus.subscribe("file.edited", lambda _: path.write_text("formatted\n") and None)
    result = await multiedit(workspace, "f", ("a", "1"), ("b", "2"))
    assert result.metadata["diff"].endswith("-a\n-b\n+formatted\n")


async def test_parallel_calls_all_count(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("".join(f"line {n}\n" for n in range(20)))
    async with anyio.create_task_group() as group:
        for n in range(0, 20, 2):
            edits = [(f"line {m}\n", f"LINE {m}\n") for m in (n, n + 1)]
            group.start_soon(multiedit, workspace, "f", *edits)
    assert path.read_text() == "".join(f"LINE {n}\n" for n in range(20))


async def test_a_thousand_edits_of_a_large_file(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("".join(f"line {n}.\n" for n in range(5_000)))
    result = await multiedit(workspace, "f", *((f"line {n}.", f"LINE {n}.") for n in range(0, 5000, 5)))
    assert path.read_text() == "".join(f"{'line' if n % 5 else 'LINE'} {n}.\n" for n in range(5_000))
    assert len(result.metadata["results"]) == 1000 and result.metadata["filediff"]["additions"] == 1000


async def test_a_dry_run_writes_nothing(workspace: Workspace) -> None:
    path = workspace.directory / "f"
    path.write_text("a\n")
    workspace.files.read(workspace.sessions.default.id, path)
    arguments = {"filePath": "f", "edits": [{"oldString": "a", "newString": "b"}]}
    assert [d.patterns for d in await workspace.dry_run("multiedit", arguments)] == [["f"]]
    assert path.read_text() == "a\n"
