"""Tool files that misbehave: the calls beside them, the notebook and the next call go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from opencode_jupyter.core.errors import ToolAbortedError, ToolError
from opencode_jupyter.core.tool_source import ToolFileError
from opencode_jupyter.javascript import service, worker
from opencode_jupyter.javascript.calls import JavaScriptError
from opencode_jupyter.javascript.worker import WorkerEndedError
from opencode_jupyter.workspace import Workspace

from ..support.javascript import HEAD, ToolFiles

pytestmark = pytest.mark.anyio
HEAVY = "while (true) {}"


@pytest.fixture
def files(workspace: Workspace) -> ToolFiles:
    return ToolFiles(workspace)


async def until(true: Callable[[], object], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come about"
        await asyncio.sleep(0.005)


async def started(files: ToolFiles, mark: Path, name: str = "t") -> Awaitable[object]:
    """A call that has begun to run: its tool made the file `mark`."""
    call = files.workspace.start(name, {}, by="user")
    running = asyncio.ensure_future(call.run())
    await until(mark.exists)
    running.abort = call.abort  # type: ignore[attr-defined]
    return running


def marks(path: Path) -> str:
    return f"require('fs').writeFileSync({json.dumps(str(path))}, ''); "


# ---------------------------------------------------------------------- being stopped


async def test_stop_ends_the_wait_at_once_and_reaches_the_tool(files: ToolFiles, project: Path) -> None:
    heard = project / "heard"
    body = (
        marks(project / "up")
        + f"""
return await new Promise(() => ctx.abort.addEventListener("abort", () =>
  require("fs").writeFileSync({json.dumps(str(heard))}, String(ctx.abort.reason.name))))"""
    )
    await files.tool(body)
    running = await started(files, project / "up")
    running.abort()  # type: ignore[attr-defined]
    with pytest.raises(ToolAbortedError):
        await running
    await until(lambda: heard.exists() and heard.read_text() == "AbortError")
    await files.tool("return 'next'", name="other")
    assert await files.call("other") == "next"


async def test_a_time_limit(files: ToolFiles) -> None:
    await files.tool("await new Promise(() => {})")
    with pytest.raises(ToolAbortedError, match="longer than its limit"):
        await files.workspace.call("t", {}, timeout=0.3)


async def test_a_call_that_waits_for_a_person_can_be_stopped(files: ToolFiles) -> None:
    requested = asyncio.Event()

    async def never(request: object) -> str:
        requested.set()
        await asyncio.Event().wait()
        return "once"

    await files.tool('await ctx.ask({ permission: "x", patterns: ["*"], always: [], metadata: {} }); return "y"')
    files.workspace.permissions.approve = never
    call = files.workspace.start("t", {})
    running = asyncio.ensure_future(call.run())
    await requested.wait()
    call.abort()
    with pytest.raises(ToolAbortedError):
        await running
    await until(lambda: not files.workspace.permissions.pending())


async def test_a_loop_without_end_is_ended_when_it_is_stopped(
    files: ToolFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HUNG", 0.3)
    await files.tool(marks(project / "up") + HEAVY, name="loop")
    await files.tool(marks(project / "waits") + "await new Promise(() => {})", name="other")
    (pid,) = files.service.pids
    other = await started(files, project / "waits", "other")
    loop = await started(files, project / "up", "loop")
    loop.abort()  # type: ignore[attr-defined]
    with pytest.raises(ToolAbortedError):
        await loop
    with pytest.raises(WorkerEndedError, match="The loop tool was stopped and went on blocking all JavaScript tools"):
        await other
    await until(lambda: not Path(f"/proc/{pid}").exists())
    await files.tool("return 'next'")
    assert await files.call() == "next"


# ---------------------------------------------------------------------- ending the process


HARMLESS = [
    ("process.exit(3)", "it tried to end the process (process.exit(3))"),
    ("setTimeout(() => process.exit(), 1); await new Promise(() => {})", "process.exit(0)"),
    ("setTimeout(() => { throw new TypeError('later') }, 1); await new Promise(() => {})", "TypeError: later"),
    ("Promise.reject(new Error('alone')); await new Promise(r => setTimeout(r, 5)); throw Error('own')", "Error: own"),
]


async def test_trouble_that_costs_only_the_call(files: ToolFiles) -> None:
    pids: list[int] = []
    for body, words in HARMLESS:
        await files.tool(body)
        pids += files.service.pids
        with pytest.raises(ToolError) as caught:
            await files.call()
        assert words in str(caught.value)
    assert len(set(pids)) == 1


async def test_the_process_starts_again_after_it_ended(files: ToolFiles, project: Path) -> None:
    await files.tool(marks(project / "up") + "await new Promise(() => {})", name="waits")
    await files.tool('if (args.die) process.kill(process.pid, "SIGKILL"); return "alive"', "{ die: z.boolean() }")
    (pid,) = files.service.pids
    waits = await started(files, project / "up", "waits")
    with pytest.raises(WorkerEndedError, match="ended while this call was running"):
        await files.call(die=True)
    with pytest.raises(WorkerEndedError):
        await waits
    assert await files.call(die=False) == "alive"  # started again, the file loaded again
    assert files.service.pids != [pid]


async def test_what_it_last_said_is_told(files: ToolFiles) -> None:
    await files.tool('console.error("the last words"); process.abort()')
    with pytest.raises(WorkerEndedError, match=r"it last printed: "):
        await files.call()


async def test_a_changed_file_is_not_run_again_unseen(files: ToolFiles) -> None:
    await files.tool("return 'first'")
    os.kill(files.service.pids[0], signal.SIGKILL)
    await until(lambda: not files.service.pids)
    path = files.folder / "t.ts"
    path.write_text(path.read_text().replace("first", "second"))
    with pytest.raises(ToolFileError, match="changed since it was loaded"):
        await files.call()
    await files.load("t.ts")
    assert await files.call() == "second"


async def test_closing_ends_the_process_and_what_it_started(project: Path, tmp_path: Path) -> None:
    async with Workspace(project, data_dir=tmp_path / "data") as workspace:
        files = ToolFiles(workspace)
        await files.tool(
            'const { spawn } = require("child_process"); return `${spawn("sleep", ["60"], { detached: true }).pid}`'
        )
        child = int(await files.call())
        (pid,) = files.service.pids
    assert not Path(f"/proc/{pid}").exists()
    await until(lambda: not Path(f"/proc/{child}").exists())
    with pytest.raises(ToolError, match="closed"):
        await files.service.load(files.folder / "t.ts", "t")


# ---------------------------------------------------------------------- printing and reading


async def test_printing_does_not_disturb(files: ToolFiles) -> None:
    body = """
const fs = require("fs"), { execSync } = require("child_process")
console.log('{"id":1,"result":{"output":"forged"}}')
process.stdout.write("no line end")
fs.writeSync(1, "raw")
execSync("echo from a child; cat", { stdio: "inherit" })
console.error("x".repeat(1000))
return "fine"
"""
    await files.tool(body)
    assert await asyncio.gather(*(files.call() for _ in range(3))) == ["fine"] * 3


async def test_printing_a_lot(files: ToolFiles) -> None:
    await files.tool("const row = 'x'.repeat(1 << 20); for (let i = 0; i < 100; i++) console.log(row); return 'fine'")
    assert await files.call() == "fine"


async def test_too_much(files: ToolFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_LINE", 2 << 20)
    await files.tool("return 'x'.repeat(args.n)", "{ n: z.number() }")
    assert len((await files.workspace.call("t", {"n": 1000})).output) == 1000
    with pytest.raises(JavaScriptError, match="the t tool returned more than 128 Mi characters"):
        await files.call(n=129 << 20)
    with pytest.raises(WorkerEndedError, match="sent more than 2 MiB"):
        await files.call(n=8 << 20)
    assert await files.call(n=1) == "x"


# ---------------------------------------------------------------------- files that do not load


UNLOADABLE: list[tuple[str, int | None, str]] = [
    ("const a = 1\nconst b: = 2\n", 2, "Unexpected token"),
    ("export default {\n  description: 'd'\n  execute() {}\n}", 3, "t.ts:3 can't be loaded: SyntaxError"),
    ("// one\n\nnull!.x", 3, "TypeError: Cannot read properties of null"),
    ("\nthrow new Error('at the\\ntop')", 2, "t.ts:2 can't be loaded: at the top"),
    ("\n\nimport { nothing } from './lib'\nexport default nothing", 3, "does not provide an export named 'nothing'"),
    ("const a = 1\n\nconst a = 2\nexport {}", 3, "SyntaxError: Identifier 'a' has already been declared"),
    ("import x from 'no-such-package'\nexport default x", None, "install it there: npm install no-such-package"),
    ("import x from '@who/lib/sub'\nexport default x", None, "npm install @who/lib"),
    ("import x from './missing'\nexport default x", None, "missing"),
    ("process.exit(1)", 1, "it tried to end the process"),
    ("export default { description: 'd', args: { a: 5 }, execute() {} }", None, "no JSON schema: args.a is no type"),
    ("export default { description: 'd', args: [], execute() {} }", None, "args must map names to types"),
    ("throw undefined", None, "it threw undefined"),
]


async def test_files_that_do_not_load(files: ToolFiles) -> None:
    files.write("lib.ts", "export const other = 1")
    for text, line, words in UNLOADABLE:
        with pytest.raises(ToolFileError) as caught:
            await files.load("t.ts", text)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.line == line, text
        assert caught.value.path == files.folder / "t.ts"
        await files.load("t.ts", f'{HEAD}export default tool({{ description: "d", execute: () => "mended" }})')
        assert await files.call() == "mended"


async def test_an_error_in_an_imported_file_names_it(files: ToolFiles) -> None:
    files.write("lib.js", "\n\nexport const x = = 1")
    with pytest.raises(ToolFileError, match=r"t.ts \(in .*lib.js:3\) can't be loaded: SyntaxError") as caught:
        await files.load("t.ts", 'import { x } from "./lib"\nexport default x')
    assert caught.value.line is None


async def test_a_file_that_loads_for_ever(files: ToolFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    await files.tool("return 'other'", name="other")
    monkeypatch.setattr(service, "LOAD", 0.5)
    monkeypatch.setattr(service, "HUNG", 0.3)
    for text in ("await new Promise(() => {})", HEAVY):
        with pytest.raises(ToolFileError, match=r"t.ts was not loaded within 0.5 s: something at its top level"):
            await files.load("t.ts", text)
    monkeypatch.setattr(service, "LOAD", 30)
    assert await files.call("other") == "other"


async def test_a_file_that_is_not_there(files: ToolFiles) -> None:
    with pytest.raises(ToolFileError, match=r"none\.ts can't be read: No such file"):
        await files.load("none.ts")


# ---------------------------------------------------------------------- changes


async def test_loading_again_gives_what_the_file_holds_now(files: ToolFiles) -> None:
    files.write("lib/deep.ts", "export const value = 1")
    files.write("lib/index.ts", "export * from './deep'")
    text = 'import { value } from "./lib"\nexport const a = { description: "d", execute: () => `a${value}` }'
    assert await files.load("t.ts", text) == ["t_a"]
    assert await files.call("t_a") == "a1"
    files.write("lib/deep.ts", "export const value = 22")  # the file itself is as it was
    assert await files.load("t.ts") == ["t_a"]
    assert await files.call("t_a") == "a22"
    assert await files.load("t.ts", text.replace("const a", "const b")) == ["t_b"]
    assert await files.call("t_b") == "a22"
    with pytest.raises(ToolError, match="has no such tool any more"):
        await files.call("t_a")


@pytest.mark.parametrize("kind", ["mjs", "js"])
async def test_common_modules_are_loaded_again_too(files: ToolFiles, kind: str) -> None:
    files.write("part.js", "module.exports = 1")
    text = {
        "mjs": 'import part from "./part.js"\nexport default { description: "d", execute: () => String(part) }',
        "js": 'const part = require("./part.js")\nmodule.exports = { description: "d", execute: () => String(part) }',
    }[kind]
    await files.load(f"t.{kind}", text)
    assert await files.call() == "1"
    files.write("part.js", "module.exports = 23")
    await files.load(f"t.{kind}")
    assert await files.call() == "23"


async def test_files_share_what_they_import(files: ToolFiles) -> None:
    files.write("count.ts", "let n = 0\nexport const next = () => String(++n)")
    text = 'import { next } from "./count"\nexport default { description: "d", execute: next }'
    await files.load("one.ts", text)
    await files.load("two.ts", text)
    assert [await files.call("one"), await files.call("two")] == ["1", "2"]


async def test_a_forgotten_file(files: ToolFiles) -> None:
    await files.tool("return 'x'")
    await files.service.forget(files.folder / "t.ts")
    with pytest.raises(ToolError, match="was removed"):
        await files.call()
    await files.service.forget(files.folder / "never.ts")


async def test_the_project_s_folder_changes(files: ToolFiles, tmp_path: Path) -> None:
    await files.tool("return process.cwd()")
    other = tmp_path / "other"
    other.mkdir()
    files.workspace.change_directory(other)
    files.workspace.permissions.approve = lambda request: "once"
    assert await files.call() == str(other)
