"""Files of a project run only when a person trusted exactly what they hold; what changes is read again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import PermissionCorrectedError, PermissionRejectedError, Tool, UnknownToolError, Workspace
from opencode_jupyter.core.tool import Definition
from opencode_jupyter.core.tool_source import Unavailable
from opencode_jupyter.sources.source_code import read_source_code
from tests.support.tool_files import ToolFolders, call_output, custom, files_of, write

pytestmark = pytest.mark.anyio

RAN = "open({path!r}, 'a').write('ran')\n"


def plain(text: str) -> str:
    return f"def say() -> str:\n    'T.'\n    return {text!r}\n"


@pytest.fixture
def tool_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolFolders:
    return ToolFolders(tmp_path.resolve(), monkeypatch)


async def test_own_files_are_not_asked_for(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/a.py", plain("a"))
    write(tool_folders.home / ".opencode" / "tools" / "b.py", plain("b"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "a_say") == "a"
        assert await call_output(ws, "b_say") == "b"
    assert tool_folders.asked == []


async def test_a_project_is_asked_for_once_and_remembered(tool_folders: ToolFolders) -> None:
    path = tool_folders.theirs("tool/t.py", plain("one"))
    async with tool_folders.open() as ws:
        assert [await call_output(ws, "t_say") for _ in range(2)] == ["one", "one"]
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "one"
        assert "t_say" in await custom(ws)
    (request,) = tool_folders.asked
    assert request["pattern"] == request["filepath"] == str(path)
    assert request["kind"] == "tool file"
    assert request["content"] == plain("one")
    assert request["ids"] == ["t_say"]


async def test_nothing_runs_before_it_is_trusted(tool_folders: ToolFolders) -> None:
    mark = tool_folders.root / "ran"
    tool_folders.theirs("tool/t.py", RAN.format(path=str(mark)) + plain("x"))
    tool_folders.theirs("tools.py", RAN.format(path=str(mark)) + plain("x"))
    async with tool_folders.open() as ws:
        assert await custom(ws) == []
        assert await call_output(ws, "glob", pattern="*.none")
        reason = "not trusted yet; run %tools trust"
        assert ws.registry.unavailable() == [
            Unavailable("t_say", ".opencode/tool/t.py", reason),
            Unavailable("say", ".opencode/tools.py", reason),
        ]
        assert ws.registry.why_not("t_say") == f"{reason} [.opencode/tool/t.py]"
        tool_folders.answer = "reject"
        with pytest.raises(PermissionRejectedError):
            await call_output(ws, "t_say")
        with pytest.raises(UnknownToolError):
            await call_output(ws, "nothing_like_it")
        assert len(tool_folders.asked) == 1
        assert not mark.exists()


async def test_another_content_asks_again(tool_folders: ToolFolders) -> None:
    path = tool_folders.theirs("tool/t.py", plain("one"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "one"
        path.write_text(plain("two"))
        tool_folders.answer = ("reject", "no more")
        with pytest.raises(PermissionCorrectedError):
            await call_output(ws, "t_say")
        assert await custom(ws) == []
        tool_folders.answer = "once"
        assert await call_output(ws, "t_say") == "two"
        path.write_text(plain("one"))
        assert await call_output(ws, "t_say") == "one"
        assert ws.trust.entries() == [("tool file", str(path))]
        ws.trust.revoke(files_of(ws).files[0].subject)  # each content of it
        for text in ("two", "one"):
            path.write_text(plain(text))
            assert await call_output(ws, "t_say") == text
    # what was trusted before is not asked for again: a branch that is switched back to, say
    first = [plain("one"), plain("two"), plain("two")]
    assert [a["content"] for a in tool_folders.asked] == [*first, plain("two"), plain("one")]


async def test_a_change_that_leaves_time_and_size_is_seen_for_a_while(tool_folders: ToolFolders) -> None:
    path = tool_folders.own("tool/t.py", plain("one"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "one"
        before = path.stat()
        with path.open("r+") as file:
            file.write(plain("two"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        outputs = {await call_output(ws, "t_say")}
        assert outputs == {"two"} or time.time() - before.st_mtime > 0.1


async def test_refused_files_are_asked_for_again_when_called(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("one"))
    tool_folders.answer = "reject"
    async with tool_folders.open() as ws:
        for _ in range(2):
            with pytest.raises(PermissionRejectedError):
                await call_output(ws, "t_say")
        assert len(tool_folders.asked) == 2


async def test_a_refused_file_does_not_take_a_builtin_away(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/read.py", "def read(filePath: str) -> str:\n    'Mine.'\n    return 'theirs'\n")
    (tool_folders.project / "a.txt").write_text("line\n")
    tool_folders.answer = "reject"
    async with tool_folders.open() as ws:
        for _ in range(3):
            assert "line" in await call_output(ws, "read", filePath="a.txt")
        assert len(tool_folders.asked) == 1
        ws.trust.grant(*files_of(ws).untrusted())
        assert await call_output(ws, "read", filePath="a.txt") == "theirs"


async def test_a_name_alone_does_not_ask_for_a_builtin(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/notebook.py", plain("x"))
    (tool_folders.project / "n.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    async with tool_folders.open() as ws:
        await call_output(ws, "notebook_read", filePath="n.ipynb")
        assert tool_folders.asked == []
        with pytest.raises(UnknownToolError):  # it may be made by code that is not seen
            await call_output(ws, "notebook_other")
        assert len(tool_folders.asked) == 1


async def test_revoking(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("one"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "one"
        async with tool_folders.open() as other:
            await other.registry.prepare()
            path = str(tool_folders.project / ".opencode/tool/t.py")
            from opencode_jupyter.core.trust import Subject

            assert other.trust.revoke(Subject("tool file", path, ""))
        assert await custom(ws) == []
        assert await call_output(ws, "t_say") == "one"
    assert len(tool_folders.asked) == 2


async def test_files_beside_it_are_trusted_with_it(tool_folders: ToolFolders) -> None:
    tool_folders.theirs(
        "tool/t.py", "from ._more import text\nfrom .sub.deep import x\n\n" + plain("").replace("''", "text()")
    )
    more = tool_folders.theirs("tool/_more.py", "def text():\n    from . import _late\n    return _late.text\n")
    late = tool_folders.theirs("tool/_late.py", "text = 'one'\n")
    tool_folders.theirs("tool/sub/deep.py", "x = 1\n")
    unrelated = tool_folders.theirs("tool/other.py", plain("other"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "one"
        unrelated.write_text(plain("changed"))
        assert await call_output(ws, "t_say") == "one"
        assert len(tool_folders.asked) == 1
        late.write_text("text = 'two'\n")
        assert await call_output(ws, "t_say") == "two"
        assert len(tool_folders.asked) == 2
        assert "---- _late.py\ntext = 'two'" in tool_folders.asked[-1]["content"]
        more.write_text("def text():\n    import importlib\n    return importlib.import_module('.' + '_la' + 'te',"
                        " __package__).text\n")  # fmt: skip
        with pytest.raises(ImportError, match=r"_late.py is not part of the trusted code"):
            await call_output(ws, "t_say")


async def test_a_helper_that_appears_heals_a_file(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/t.py", "from . import _late\n" + plain("x"))
    async with tool_folders.open() as ws:
        assert await custom(ws) == []
        tool_folders.own("tool/_late.py", "")
        assert await call_output(ws, "t_say") == "x"


async def test_imports_are_found_in_scripts_too(tool_folders: ToolFolders) -> None:
    path = tool_folders.own(
        "tool/a.ts", "import { x } from './lib/b.js'\nexport * from \"../c\"\nconst d = require('./d')\n"
    )
    files = [tool_folders.own(name, "") for name in ("tool/lib/b.ts", "c.ts", "tool/d.js")]
    assert set(read_source_code(path).files) == {path, *files}


async def test_files_come_and_go(tool_folders: ToolFolders) -> None:
    async with tool_folders.open() as ws:
        await call_output(ws, "glob", pattern="*.none")
        with pytest.raises(UnknownToolError):
            await call_output(ws, "t_say")
        path = tool_folders.own("tool/t.py", plain("one"))
        assert await call_output(ws, "t_say") == "one"
        path.rename(path.with_name("u.py"))
        assert await call_output(ws, "u_say") == "one"
        with pytest.raises(UnknownToolError):
            await call_output(ws, "t_say")
        path.with_name("u.py").unlink()
        path.parent.rmdir()
        assert await custom(ws) == []
        tool_folders.theirs(
            "tool/t.py", plain("theirs")
        )  # the folder .opencode was not there when the workspace was opened
        assert await call_output(ws, "t_say") == "theirs"


async def test_another_folder_has_other_files(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("project"))
    other = tool_folders.root / "other"
    (other / ".git").mkdir(parents=True)
    write(other / ".opencode" / "tool" / "t.py", plain("other"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "t_say") == "project"
        ws.change_directory(other)
        assert await call_output(ws, "t_say") == "other"
        ws.change_directory(tool_folders.project)
        assert await call_output(ws, "t_say") == "project"
        ws.reload_config()
        assert await call_output(ws, "t_say") == "project"
    assert len(tool_folders.asked) == 2


async def test_calls_at_once_ask_once(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("one"))
    release = anyio.Event()

    async def slow(request: object) -> str:
        tool_folders.asked.append({})
        await release.wait()
        return "once"

    async with tool_folders.open() as ws:
        ws.permissions.approve = slow
        outputs: list[str] = []

        async def call() -> None:
            outputs.append(await call_output(ws, "t_say"))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(call)
            while not tool_folders.asked:
                await anyio.sleep(0.001)
            (tool_folders.project / "a.txt").write_text("line\n")
            assert "line" in await call_output(ws, "read", filePath="a.txt")  # others go on meanwhile
            release.set()
        assert outputs == ["one"] * 5
        assert len(tool_folders.asked) == 1


async def test_a_dry_run_says_that_it_would_ask(tool_folders: ToolFolders) -> None:
    mark = tool_folders.root / "ran"
    tool_folders.theirs("tool/t.py", RAN.format(path=str(mark)) + plain("x"))
    async with tool_folders.open() as ws:
        (decision,) = await ws.dry_run("t_say")
        assert (decision.permission, decision.action) == ("trust", "ask")
        assert not mark.exists()
        assert tool_folders.asked == []
        assert not (tool_folders.root / "data" / "trust.json").exists()


async def test_no_rule_of_the_project_trusts_it(tool_folders: ToolFolders) -> None:
    write(tool_folders.project / "opencode.json", '{"permission": "allow"}')
    tool_folders.theirs("tool/t.py", plain("x"))
    tool_folders.answer = "reject"
    async with tool_folders.open() as ws:
        with pytest.raises(PermissionRejectedError):
            await call_output(ws, "t_say")


async def test_a_folder_named_by_the_user_is_their_own_unless_it_is_the_projects(
    tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tool_folders.root / "named"
    write(named / "tool" / "a.py", plain("a"))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(named))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "a_say") == "a"
    assert tool_folders.asked == []
    write(tool_folders.project / "named" / "tool" / "b.py", plain("b"))
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(tool_folders.project / "named"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "b_say") == "b"
    assert len(tool_folders.asked) == 1


async def test_a_file_that_changes_while_it_is_asked_for(tool_folders: ToolFolders) -> None:
    path = tool_folders.theirs("tool/t.py", plain("one"))

    async def slow(request: Any) -> str:
        tool_folders.asked.append(dict(request.metadata))
        if len(tool_folders.asked) == 1:
            path.write_text(plain("two, and longer"))
        return "once"

    async with tool_folders.open() as ws:
        ws.permissions.approve = slow
        assert await call_output(ws, "t_say") == "two, and longer"
    assert [a["content"] for a in tool_folders.asked] == [plain("one"), plain("two, and longer")]


class Missing:
    """A loader whose program is installed later."""

    suffixes = (".ts",)
    reason = "Node.js is missing"

    def why_not(self) -> str:
        return self.reason

    async def load(self, path: Path, namespace: str) -> list[Tool]:
        async def execute(arguments: Any, ctx: Any) -> str:
            return path.read_text()

        return [Tool(f"{namespace}_x", Definition("X.", {}, execute))]

    async def forget(self, path: Path) -> None:
        return None


async def test_what_runs_a_file_may_come_later(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/a.ts", "export const x = 1")
    tool_folders.own("tools.ts", "const x = 2\nexport { x }")
    loader = Missing()
    async with tool_folders.open() as ws:
        files_of(ws).scripts = lambda: loader
        for _ in range(2):
            with pytest.raises(UnknownToolError, match=r"The tool a_x can.t be called: Node\.js is missing"):
                await call_output(ws, "a_x")
        loader.reason = ""
        assert await call_output(ws, "a_x") == "export const x = 1"
        assert await call_output(ws, "x") == "const x = 2\nexport { x }"


async def test_a_batch_says_what_to_do_about_a_file_that_is_not_trusted(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("one"))
    async with tool_folders.open() as ws:
        calls = [{"tool": name, "parameters": {}} for name in ("t_say", "nothing_like_it", "todoread")]
        result = await ws.call("batch", {"tool_calls": calls})
        first, second, third = result.records or []
        assert not first["success"] and "t_say" in first["error"] and "run %tools trust" in first["error"]
        assert not second["success"] and "not in registry" in second["error"]
        assert third["success"], "the others go on"
        assert tool_folders.asked == [], "a batch asks for no trust"
        ws.trust.grant(*files_of(ws).untrusted())
        again = await ws.call("batch", {"tool_calls": calls[:1]})
        assert (again.records or [])[0]["success"]


async def test_a_project_is_trusted_from_python(tool_folders: ToolFolders) -> None:
    tool_file = tool_folders.theirs("tool/t.py", plain("one"))
    plugin = tool_folders.theirs(
        "plugin/house.py", "def house(input):\n    return {'tool': {'door': lambda: 'open'}}\n"
    )
    async with tool_folders.open() as ws:
        trusted = ws.trust_project()
        assert {(subject.kind, subject.name) for subject in trusted} == {
            ("tool file", str(tool_file)),
            ("plugin", str(plugin)),
        }
        assert await call_output(ws, "t_say") == "one"
        assert (await ws.call("door", {})).output == "open"
        assert ws.trust_project() == [], "all is trusted"
        tool_folders.theirs("tool/t.py", plain("changed"))
        (changed,) = ws.trust_project()
        assert changed.name == str(tool_file)
        assert await call_output(ws, "t_say") == "changed"
    assert tool_folders.asked == []


def test_a_project_is_trusted_without_a_loop(tool_folders: ToolFolders) -> None:
    tool_folders.theirs("tool/t.py", plain("one"))
    tool_folders.theirs("tool/broken.py", "def broken(:\n")
    with Workspace(tool_folders.project, data_dir=tool_folders.root / "data", store=False) as ws:
        assert "t.py" in [Path(subject.name).name for subject in ws.trust_project()]
        assert ws.call_sync("t_say").output == "one"
    assert tool_folders.asked == []
