"""What a failed built-in tool says to a person, beside OpenCode's text for the model, and how cards name files."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.call_state import Failed
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.messages import part_from_wire
from opencode_jupyter.jupyter.cards.call_html import html
from opencode_jupyter.jupyter.cards.call_json import card_tree
from opencode_jupyter.jupyter.cards.call_mimebundle import plain_text
from opencode_jupyter.jupyter.cards.labels import label_for, label_of_wire, project_folder
from opencode_jupyter.jupyter.magics.history import read_history
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
ADD = "def add(a, b):\n    return a + b\n"


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / "a.py").write_text(ADD)
    (project / "twice.txt").write_text("x\ny\nx\n")
    (project / "folder").mkdir()
    return await open_workspace()


async def failed(ws: Workspace, tool: str, arguments: dict[str, Any], by: Any = "user") -> Call:
    call = ws.start(tool, arguments, by=by)
    with pytest.raises(Exception):  # noqa: B017 - the state says which
        await call.run()
    assert isinstance(call.part.state, Failed)
    return call


EDIT = {"filePath": "a.py", "newString": "new"}
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "edit",
        {**EDIT, "oldString": "return a+b"},
        "Could not find oldString in the file. It must match exactly",
        "is not in the file. The nearest is at line 2: `    return a + b` instead of `return a+b`.",
    ),
    ("edit", {**EDIT, "oldString": "zzz"}, "Could not find oldString", "No line is like it."),
    (
        "edit",
        {"filePath": "twice.txt", "oldString": "x", "newString": "z"},
        "Found multiple matches for oldString.",
        "in the file more than once (lines 1 and 3)",
    ),
    ("edit", {**EDIT, "oldString": "new"}, "No changes to apply", "are the same text"),
    ("edit", {**EDIT, "oldString": ""}, "oldString cannot be empty", "Use write to replace the whole file."),
    ("edit", {**EDIT, "filePath": "", "oldString": "a"}, "filePath is required", "Give the file to change."),
    ("edit", {**EDIT, "filePath": "folder", "oldString": "a"}, "Path is a directory", "is a folder, not a file."),
    (
        "edit",
        {"filePath": "a.py"},
        '"code": "invalid_type"',
        "edit: oldString is missing.\nedit: newString is missing.",
    ),
    (
        "multiedit",
        {
            "filePath": "a.py",
            "edits": [{"oldString": "a", "newString": "b", "replaceAll": True}, {"oldString": "q", "newString": ""}],
        },
        "and line endings. (Edit 2 of 2; none of them is made.)",
        "Copy it from the file and run the call again. (Edit 2 of 2; none of them is made.)",
    ),
    ("read", {"filePath": "a.py", "limit": "x"}, '"code": "invalid_type"', "read: limit must be a number, not text."),
    (
        "read",
        {"file_pth": "a.py", "extra": 1},
        "received undefined",
        "read: filePath is missing.\nread: file_pth is not a parameter. Did you mean filePath?",
    ),
    ("read", {1: 2}, "received undefined", "read: filePath is missing."),  # type: ignore[dict-item]
    ("read", {"filePath": "a.py", "limit": 0.5}, '"safeint"', "read: limit must be a whole number."),
    ("batch", {"tool_calls": []}, "Invalid parameters for tool 'batch'", "tool_calls must have at least 1 item."),
    (
        "lsp",
        {"operation": "jump", "filePath": "a.py", "line": 0, "character": 1},
        '"code": "invalid_value"',
        "lsp: line must be at least 1.",
    ),
    ("question", {"questions": []}, "was called with invalid arguments", "question: there is nothing to ask"),
    ("apply_patch", {"patchText": "*** Begin Patch\n*** End Patch"}, "patch rejected: empty patch", "changes no file"),
    ("apply_patch", {"patchText": "hello"}, "missing Begin/End markers", "This is not a patch"),
    (
        "apply_patch",
        {"patchText": "*** Begin Patch\n*** Update File: a.py\n@@\n-    return a+b\n+    pass\n*** End Patch"},
        "apply_patch verification failed: Error: Failed to find expected lines",
        "does not have the lines that the patch changes. The nearest is at line 2",
    ),
    (
        "apply_patch",
        {"patchText": "*** Begin Patch\n*** Update File: b.py\n@@\n-a\n+b\n*** End Patch"},
        "Failed to read file to update",
        "b.py does not exist, but the patch changes it.",
    ),
    ("grep", {"pattern": "f("}, "ripgrep failed", "not a valid regular expression: unclosed group."),
    (
        "bash",
        {"command": "ls", "description": "x", "workdir": "no"},
        "NotFound: FileSystem.access",
        "The command cannot run in",
    ),
    ("task", {"description": "x", "prompt": "x", "subagent_type": "x"}, "Unknown agent type", "There is no agent x."),
]


@pytest.mark.parametrize(("tool", "arguments", "model", "person"), CASES)
async def test_an_error_has_a_text_for_each_reader(
    ws: Workspace, tool: str, arguments: dict[str, Any], model: str, person: str
) -> None:
    call = await failed(ws, tool, arguments)
    state = call.part.state
    assert isinstance(state, Failed)
    assert model in state.error and person in state.for_person
    assert person not in state.error
    assert person in card_tree(call, {}, live=False)["state"]["error"]


async def test_a_saved_call_keeps_both_texts(ws: Workspace) -> None:
    call = await failed(ws, "edit", {**EDIT, "oldString": "return a+b"})
    live = call.part.state
    assert ws.store is not None
    await ws.store.flush()
    (wire,) = [part for part in await ws.store.parts(call.part.session_id) if part["id"] == call.part.id]
    stored = part_from_wire(wire).state  # type: ignore[union-attr]
    assert isinstance(stored, Failed) and isinstance(live, Failed)
    assert (stored.error, stored.for_person) == (live.error, live.for_person)
    assert live.error != live.for_person


async def test_a_models_card_shows_what_the_model_was_sent(ws: Workspace) -> None:
    await ws.call("read", {"filePath": "a.py"})
    call = await failed(ws, "edit", {**EDIT, "oldString": "return a+b"}, by="model")
    part = card_tree(call, {}, live=False)
    assert "nearest is at line 2" in part["state"]["error"]
    assert part["ui"]["sent"].startswith("Could not find oldString")
    page = html(part)
    assert page.index("nearest is at line 2") < page.index("sent to the model") < page.index("Could not find oldString")
    own = card_tree(await failed(ws, "edit", {**EDIT, "oldString": "return a+b"}), {}, live=False)
    assert "sent" not in own["ui"]


async def test_a_models_call_with_wrong_arguments_is_explained_to_people(ws: Workspace) -> None:
    call = ws.start("read", {"filePath": "a.py", "limit": "x"}, by="model")
    result = await call.run()
    assert '"code": "invalid_type"' in result.output
    part = card_tree(call, {}, live=False)
    assert part["ui"]["printed"] == "read: limit must be a number, not text."
    assert '"code": "invalid_type"' in part["state"]["output"]
    assert "read: limit must be a number, not text." in plain_text(part) and "invalid_type" not in plain_text(part)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"filePath": "{project}/a.py"}),
        ("read", {"filePath": "a.py"}),
        ("read", {"filePath": "./folder/../a.py"}),
        ("read", {"filePath": "{project}/a.py", "limit": "x"}),
        ("edit", {"filePath": "{project}/a.py", "oldString": "return a+b", "newString": ""}),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: {project}/a.py\n@@\n-q\n+b\n*** End Patch"}),
    ],
)
async def test_a_file_of_the_project_has_one_name_in_every_card(
    ws: Workspace, tool: str, arguments: dict[str, Any]
) -> None:
    filled = {k: v.replace("{project}", str(ws.directory)) if isinstance(v, str) else v for k, v in arguments.items()}
    call = ws.start(tool, filled, by="user")
    assert card_tree(call, {}, live=True)["ui"]["label"] == "a.py"
    with contextlib.suppress(ToolError):
        await call.run()
    part = card_tree(call, {}, live=False)
    assert part["ui"]["label"] == "a.py"
    assert str(ws.directory) not in part["state"].get("error", "")


async def test_a_file_outside_has_its_absolute_path(ws: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "other.txt"
    outside.write_text("x")
    for path in (str(outside), "../other.txt"):
        call = ws.start("read", {"filePath": path}, by="user")
        assert card_tree(call, {}, live=True)["ui"]["label"] == str(outside)
        await call.run()
        assert card_tree(call, {}, live=False)["ui"]["label"] == str(outside)


async def test_files_count_from_the_project_in_a_subfolder_too(
    open_workspace: OpenWorkspace, ws: Workspace, tmp_path: Path
) -> None:
    folder = ws.directory / "folder"
    (folder / "b.txt").write_text("x")
    below = await open_workspace({}, directory=folder, data_dir=tmp_path / "other-data")
    call = below.start("read", {"filePath": "b.txt"}, by="user")
    assert card_tree(call, {}, live=True)["ui"]["label"] == "folder/b.txt"
    await call.run()
    assert card_tree(call, {}, live=False)["ui"]["label"] == "folder/b.txt"


async def test_history_and_panel_name_a_file_as_its_card_does(ws: Workspace) -> None:
    call = await failed(ws, "read", {"filePath": str(ws.directory / "missing.txt")})
    base = project_folder(ws)
    assert label_of_wire(call.part.to_wire(), ws.directory, base) == "missing.txt"
    assert label_for("read", call.part.state.input, ws.directory, base) == "missing.txt"
    assert ws.store is not None
    (row,) = [row for row in await read_history(ws.store, 5, ws) if row["id"] == call.part.id]
    assert row["title"] == "missing.txt"


async def test_a_card_shows_the_code_of_an_error_that_has_a_page(ws: Workspace) -> None:
    call = await failed(ws, "edit", {**EDIT, "oldString": "zzz"})
    card = card_tree(call, {}, live=False)
    assert card["ui"]["code"] == "OJ-no-match"
    assert "errorCode" not in card["state"].get("metadata", {})
    assert "OJ-no-match" in html(card)
    assert plain_text(card).endswith("\n[OJ-no-match]")
    missing = card_tree(await failed(ws, "read", {"filePath": "missing.txt"}), {}, live=False)
    assert "code" not in missing["ui"]
