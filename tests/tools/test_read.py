"""read, beyond what the recorded calls show."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionRejectedError, ToolError
from opencode_jupyter.workspace import Workspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


async def output(ws: Workspace, **arguments: Any) -> str:
    return (await ws.call("read", arguments)).output


async def test_asks_for_the_path_from_the_worktree(workspace: Workspace, approver: Approver) -> None:
    (workspace.directory / "src").mkdir()
    (workspace.directory / "src" / "m.py").write_text("x\n")
    await workspace.call("read", {"filePath": "src/m.py"})
    await workspace.call("read", {"filePath": str(workspace.directory / "src")})
    assert [(a.permission, a.patterns, a.always, a.metadata) for a in approver.asks] == [
        ("read", ["src/m.py"], ["*"], {}),
        ("read", ["src"], ["*"], {}),
    ]


async def test_outside_asks_for_the_folder_first(workspace: Workspace, approver: Approver, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.txt").write_text("o\n")
    await workspace.call("read", {"filePath": str(outside / "o.txt")})
    await workspace.call("read", {"filePath": str(outside)})
    external = approver.named("external_directory")
    assert [a.permission for a in approver.asks] == ["external_directory", "read"] * 2
    assert external[0].patterns == external[0].always == [f"{outside}/*"] == external[1].patterns
    assert external[0].metadata == {"filepath": str(outside / "o.txt"), "parentDir": str(outside)}
    assert external[1].metadata == {"filepath": str(outside), "parentDir": str(outside)}
    assert approver.named("read")[0].patterns == ["../outside/o.txt"]


@pytest.mark.parametrize("deep", [False, True])
async def test_a_link_that_leaves_the_project_asks_as_external(
    workspace: Workspace, approver: Approver, tmp_path: Path, deep: bool
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("k\n")
    name = "sub/key" if deep else "key"
    if deep:
        (workspace.directory / "sub").symlink_to(secret)
    else:
        (workspace.directory / "key").symlink_to(secret / "key")
    approver.reply = lambda ask: "reject" if ask.permission == "external_directory" else "once"
    with pytest.raises(PermissionRejectedError):
        await workspace.call("read", {"filePath": name})
    assert approver.asks[0].patterns == [f"{secret}/*"]
    approver.reply = "once"
    assert "1: k" in await output(workspace, filePath=name)
    assert approver.named("read")[0].patterns == [name, "../secret/key"]


async def test_a_link_inside_the_project_is_judged_by_both_names(workspace: Workspace, approver: Approver) -> None:
    (workspace.directory / ".env").write_text("SECRET=1\n")
    (workspace.directory / "notes.txt").symlink_to(".env")
    await workspace.call("read", {"filePath": "notes.txt"})
    assert [a.patterns for a in approver.asks] == [["notes.txt", ".env"]]


async def test_nothing_is_said_about_a_missing_file_before_the_ask(workspace: Workspace, approver: Approver) -> None:
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await workspace.call("read", {"filePath": "missing"})


async def test_suggestions(workspace: Workspace) -> None:
    for name in ("Config.yaml", "config.yml.bak", "a", "config.yml.1", "config.yml.2"):
        (workspace.directory / name).write_text("")
    with pytest.raises(ToolError) as raised:
        await workspace.call("read", {"filePath": "config.yml"})
    folder = workspace.directory
    names = ["config.yml.1", "config.yml.2", "config.yml.bak"]
    assert str(raised.value) == (
        f"File not found: {folder}/config.yml\n\nDid you mean one of these?\n"
        + "\n".join(f"{folder}/{n}" for n in names)
    )


@pytest.mark.parametrize("path", ["no/such/folder/f", "f/under/a/file", "x" * 300, "a\0b", "loop"])
async def test_paths_that_can_be_no_file(workspace: Workspace, path: str) -> None:
    (workspace.directory / "f").write_text("")
    (workspace.directory / "loop").symlink_to("loop")
    with pytest.raises(ToolError):
        await workspace.call("read", {"filePath": path})


async def test_directory(workspace: Workspace) -> None:
    folder = workspace.directory / "d"
    folder.mkdir()
    for name in ("b.txt", "B.py", "a10", ".hidden", "_x", "é", "f"):
        (folder / name).write_text("12")
    (folder / "sub").mkdir()
    (folder / "link").symlink_to("sub")
    (folder / "broken").symlink_to("nowhere")
    result = await workspace.call("read", {"filePath": "d"})
    names = ["_x", ".hidden", "a10", "B.py", "b.txt", "broken", "é", "f", "link/", "sub/"]
    shown = "\n".join(names)
    assert (
        result.output
        == f"<path>{folder}</path>\n<type>directory</type>\n<entries>\n{shown}\n\n(10 entries)\n</entries>"
    )
    assert result.title == "d"
    assert result.metadata["preview"] == shown and result.metadata["truncated"] is False
    assert result.records is not None
    assert [row["type"] for row in result.records] == ["file"] * 5 + ["other"] + ["file"] * 2 + ["directory"] * 2
    assert result.records[0]["size"] == 2 and result.records[8]["link"]


async def test_directory_page(workspace: Workspace) -> None:
    for name in "abcde":
        (workspace.directory / name).write_text("")
    (workspace.directory / ".git").rename(workspace.directory / "z")
    page = await workspace.call("read", {"filePath": ".", "offset": 2, "limit": 2})
    assert "<entries>\nb\nc\n\n(Showing 2 of 6 entries. Use 'offset' parameter to read beyond entry 4)\n" in page.output
    assert page.metadata["truncated"] and page.title == ""
    beyond = await workspace.call("read", {"filePath": ".", "offset": 99})
    assert "<entries>\n\n\n(6 entries)\n</entries>" in beyond.output and not beyond.metadata["truncated"]


async def test_byte_cap(workspace: Workspace) -> None:
    (workspace.directory / "f").write_text(("0" * 99 + "\n") * 1000)
    result = await workspace.call("read", {"filePath": "f"})
    assert result.output.endswith(
        "\n\n(Output capped at 50 KB. Showing lines 1-512. Use offset=513 to continue.)\n</content>"
    )
    assert result.metadata["truncated"] and result.metadata["display"]["totalLines"] == 1000


async def test_the_result_for_a_viewer(workspace: Workspace) -> None:
    (workspace.directory / "f").write_text("a\r\nb\r\nc")
    result = await workspace.call("read", {"file_path": "f", "offset": "2", "limit": 1})
    assert result.metadata == {
        "preview": "b",
        "truncated": True,
        "loaded": [],
        "display": {
            "type": "file",
            "path": str(workspace.directory / "f"),
            "text": "b",
            "lineStart": 2,
            "lineEnd": 2,
            "totalLines": 3,
            "truncated": True,
        },
    }


async def test_images_and_pdf(workspace: Workspace) -> None:
    for name, mime in (("a.PNG", "image/png"), ("b.jpeg", "image/jpeg"), ("c.pdf", "application/pdf")):
        (workspace.directory / name).write_bytes(b"\x89\0data")
        result = await workspace.call("read", {"filePath": name})
        assert (
            result.output == result.metadata["preview"] == ("PDF" if "pdf" in name else "Image") + " read successfully"
        )
        (attachment,) = result.attachments
        assert (attachment.mime, attachment.data) == (mime, b"\x89\0data")
        assert attachment.url.startswith(f"data:{mime};base64,")
    (workspace.directory / "huge.png").write_bytes(b"")
    os.truncate(workspace.directory / "huge.png", 30 << 20)
    with pytest.raises(ToolError, match="too much to attach"):
        await workspace.call("read", {"filePath": "huge.png"})


async def test_notebooks_are_text(workspace: Workspace) -> None:
    (workspace.directory / "n.ipynb").write_text('{"cells": []}\n')
    assert '1: {"cells": []}' in await output(workspace, filePath="n.ipynb")


async def test_files_that_never_end_are_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(workspace.directory / "pipe")
    (workspace.directory / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(workspace.directory)
        server.bind("sock")
        for name, kind in (("pipe", "a named pipe"), ("zero", "a device"), ("sock", "a socket")):
            with pytest.raises(ToolError, match=f"Not a regular file: .* is {kind}"):
                await workspace.call("read", {"filePath": name}, timeout=5)
    with pytest.raises(ToolError, match="may hold secrets"):
        await workspace.call("read", {"filePath": "/proc/self/environ"})


@pytest.mark.parametrize(
    "name", ["sp ace", "new\nline", "{}'\"", "-rf", "--help", "é", "$HOME", "a;b", "*", "[x]", os.fsdecode(b"\xff")]
)
async def test_odd_names(workspace: Workspace, name: str) -> None:
    (workspace.directory / name).write_text("text\n")
    assert "1: text" in await output(workspace, filePath=name)


async def test_no_permission_is_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    file = workspace.directory / "f"
    file.write_text("x")
    file.chmod(0)
    if os.geteuid() == 0:  # root may read anything: let the system say what it says to everyone else
        real_open = os.open

        def refuse(path: Any, *rest: Any, **keywords: Any) -> int:
            if str(path) == str(file):
                raise PermissionError(13, "Permission denied")
            return real_open(path, *rest, **keywords)

        monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolError, match=f"^No permission to read {file}"):
        await workspace.call("read", {"filePath": "f"})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({}, "filePath"), ({"filePath": 5}, "filePath"), ({"filePath": "f", "limit": "x"}, "limit")],
)
async def test_wrong_arguments_name_the_field(workspace: Workspace, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=f'"{field}"'):
        await workspace.call("read", arguments)


async def test_limit_must_be_positive(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match="limit must be greater than or equal to 1"):
        await workspace.call("read", {"filePath": "f", "limit": 0})


async def test_instructions_come_once_a_message(workspace: Workspace) -> None:
    root = workspace.directory
    for folder, text in ((root, "root"), (root / "a", "outer"), (root / "a" / "b", "inner")):
        folder.mkdir(exist_ok=True)
        (folder / "AGENTS.md").write_text(text)
    (root / "a" / "b" / "f.txt").write_text("x\n")
    first = await workspace.call("read", {"filePath": "a/b/f.txt"})
    assert first.output.endswith(
        "</content>\n\n<system-reminder>\n"
        f"Instructions from: {root}/a/b/AGENTS.md\ninner\n\n"
        f"Instructions from: {root}/a/AGENTS.md\nouter\n</system-reminder>"
    )
    assert first.metadata["loaded"] == [f"{root}/a/b/AGENTS.md", f"{root}/a/AGENTS.md"]
    again = await workspace.call("read", {"filePath": "a/b/f.txt"})
    assert "system-reminder" not in again.output and again.metadata["loaded"] == []
    call = workspace.start("read", {"filePath": "a/AGENTS.md"}, message_id="msg_next")
    assert "system-reminder" not in (await call.run()).output  # the file itself is no reminder of itself


async def test_a_dry_run_asks_and_reads_nothing(workspace: Workspace, approver: Approver) -> None:
    decisions = await workspace.dry_run("read", {"filePath": "missing"})
    assert [d.permission for d in decisions] == ["read"]
    assert approver.asks == []


async def test_a_read_is_remembered_for_edit(workspace: Workspace) -> None:
    (workspace.directory / "f").write_text("x\n")
    with pytest.raises(ToolError, match="must read file"):
        await workspace.call("write", {"filePath": "f", "content": "y"})
    await workspace.call("read", {"filePath": "f"})
    await workspace.call("write", {"filePath": "f", "content": "y"})


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="Linux only")
async def test_files_that_make_a_reader_wait_are_refused(workspace: Workspace) -> None:
    log = os.open("/proc/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):  # what the system said is read away: else there is nothing to wait for
        while os.read(log, 1 << 16):
            pass
    os.close(log)
    with pytest.raises(ToolError):
        await workspace.call("read", {"filePath": "/proc/kmsg"}, timeout=5)
    with pytest.raises(ToolError, match="Can't read /proc/self/mem"):
        await workspace.call("read", {"filePath": "/proc/self/mem"}, timeout=5)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"filePath": "nots.md"}),
        ("edit", {"filePath": "nots.md", "oldString": "a", "newString": "b"}),
        ("multiedit", {"filePath": "nots.md", "edits": [{"oldString": "a", "newString": "b"}]}),
        ("list", {"path": "nots.md"}),
        ("glob", {"pattern": "*", "path": "nots.md"}),
        ("grep", {"pattern": "a", "path": "nots.md"}),
    ],
)
async def test_a_person_is_offered_near_names(workspace: Workspace, tool: str, arguments: dict[str, Any]) -> None:
    (workspace.directory / "notes.md").write_text("a")
    with pytest.raises(ToolError) as raised:
        await workspace.call(tool, arguments, by="user")
    assert "Did you mean one of these?" in raised.value.for_person
    assert raised.value.for_person.endswith("/notes.md")
