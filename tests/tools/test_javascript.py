"""Tool files in TypeScript and JavaScript: what they export, their arguments, the context they get."""

from __future__ import annotations

import asyncio
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
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.javascript.calls import JavaScriptError
from opencode_jupyter.workspace import Workspace

from ..support.javascript import HEAD, ToolFiles
from .conftest import Approver

pytestmark = pytest.mark.anyio
TIMEOUT = 60


@pytest.fixture
def files(workspace: Workspace) -> ToolFiles:
    return ToolFiles(workspace)


async def test_default_and_named_exports(files: ToolFiles) -> None:
    text = """
import { tool, type ToolContext } from "@opencode-ai/plugin"
export const sub = tool({ description: "Subtract", args: { a: tool.schema.number(), b: tool.schema.number() },
  async execute({ a, b }: { a: number, b: number }, ctx: ToolContext): Promise<string> { return String(a - b) } })
export const add = tool({ description: "Add", args: { a: tool.schema.number(), b: tool.schema.number() },
  async execute(args) { return `${args.a + args.b}` } })
export default tool({ description: "Say", args: {}, async execute() { return "said" } })
export const VERSION = "1", helper = () => 1, half = { description: "no execute" }, none = null
"""
    assert await files.load("math.ts", text) == ["math_add", "math", "math_sub"]
    assert await files.call("math_sub", a=3, b=1) == "2"
    result = await files.workspace.call("math", {})
    assert (result.title, result.output, result.attachments) == ("", "said", [])
    assert result.metadata == {"truncated": False}
    registered = files.workspace.registry.get("math_add")
    assert registered is not None
    assert registered.static is not None
    assert registered.static.description == "Add"
    assert registered.source == str(files.folder / "math.ts")


async def test_schemas_are_those_that_opencode_sends(files: ToolFiles) -> None:
    await files.tool(
        "return JSON.stringify(args)",
        """{
  query: z.string().min(2).describe("what to look for"),
  mode: z.enum(["fast", "deep"]).optional(),
  count: z.number().int().positive().max(10).default(5).describe("how many"),
  nested: z.object({ tags: z.array(z.string()), either: z.union([z.string(), z.number()]).nullable() }).optional(),
  map: z.record(z.string(), z.boolean()).optional(),
  exact: z.literal("yes").optional(),
}""",
    )
    assert files.schema() == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 2, "description": "what to look for"},
            "mode": {"type": "string", "enum": ["fast", "deep"]},
            "count": {
                "type": "integer", "exclusiveMinimum": 0, "maximum": 10, "default": 5, "description": "how many",
            },
            "nested": {
                "type": "object",
                "properties": {
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "either": {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "null"}]},
                },
                "required": ["tags", "either"],
            },
            "map": {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": {"type": "boolean"}},
            "exact": {"type": "string", "const": "yes"},
        },
        # as OpenCode 1.18.33 lists such a tool (GET /experimental/tool): a field with a default optional
        "required": ["query"],
    }  # fmt: skip
    assert json.loads(await files.call(query="ab")) == {"query": "ab", "count": 5}


async def test_arguments_are_checked_and_transformed(files: ToolFiles) -> None:
    args = """{ words: z.string().transform(text => text.split(" ")), n: z.coerce.number(), when: z.date().optional(),
  even: z.number().refine(async n => n % 2 === 0, "must be even") }"""
    await files.tool("return JSON.stringify(args)", args)
    assert json.loads(await files.call(words="a b", n="3", even=2, more=1)) == {"words": ["a", "b"], "n": 3, "even": 2}
    with pytest.raises(InvalidArgumentsError) as caught:
        await files.call(words=1, n="3", even=3)
    first, *_, last = str(caught.value).split("\n")
    assert first == "The t tool was called with invalid arguments: ["
    assert last == "Please rewrite the input so it satisfies the expected schema."
    assert isinstance(caught.value.cause, JavaScriptError)
    issues = json.loads(str(caught.value).removeprefix(first[:-1]).rsplit(".\n", 1)[0])
    assert [(issue["path"], issue["code"]) for issue in issues] == [(["words"], "invalid_type"), (["even"], "custom")]
    assert files.schema()["properties"]["words"] == {"type": "string"}


@pytest.mark.parametrize(
    ("args", "schema", "good", "bad"),
    [
        ('{ a: { type: "string", description: "x" } }', {"type": "string", "description": "x"}, "s", 1),
        ('(await import("zod/v3")).z && { a: (await import("zod/v3")).z.string().max(3).describe("x") }',
         {"type": "string", "maxLength": 3, "description": "x"}, "abc", "abcd"),
        ('{ a: (await import("zod/mini")).array((await import("zod/mini")).number()) }',
         {"type": "array", "items": {"type": "number"}}, [1], ["1"]),
        ("z.object({ a: z.string().email() })", None, "a@b.org", "a"),
    ],
)  # fmt: skip
async def test_other_kinds_of_arguments(
    files: ToolFiles, args: str, schema: dict[str, Any] | None, good: Any, bad: Any
) -> None:
    await files.tool("return JSON.stringify(args)", args)
    shown = files.schema()
    assert shown["required"] == ["a"]
    if schema is not None:
        assert shown["properties"] == {"a": schema}
    assert json.loads(await files.call(a=good)) == {"a": good}
    for arguments in ({"a": bad}, {}):
        with pytest.raises(InvalidArgumentsError):
            await files.call(**arguments)


async def test_zod_3_optional_and_default(files: ToolFiles) -> None:
    text = """
import { z } from "zod/v3"
export default { description: "d", args: { a: z.string().optional(), b: z.number().default(2), c: z.string() },
  execute: args => JSON.stringify(args) }
"""
    await files.load("old.js", text)
    assert files.schema("old")["required"] == ["c"]
    assert json.loads(await files.call("old", c="x")) == {"b": 2, "c": "x"}


async def test_no_args_and_no_helper(files: ToolFiles) -> None:
    await files.load("plain.mjs", 'export default { description: "d", execute: () => "plain" }')
    await files.load("old.js", 'exports.one = { description: "d", args: {}, execute: async () => "common" }')
    await files.load("whole.js", 'module.exports = { description: "d", execute: async () => __filename }')
    await files.load("typed.mts", 'export default { description: "d", execute: (): string => "typed" as string }')
    assert files.schema("plain") == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {},
    }
    assert await files.call("plain") == "plain"
    assert await files.call("old_one") == "common"
    assert await files.call("whole") == str(files.folder / "whole.js")
    assert await files.call("typed") == "typed"


async def test_what_bun_gives_a_module(files: ToolFiles) -> None:
    files.write("lib/index.ts", 'export { half } from "./half.js"; export interface Shape { a: number }')
    files.write("lib/half.ts", "export const half = (n: number) => n / 2")
    files.write("lib/data.json", '{"name": "json", "default": 1, "a-b": 2}')
    files.write("lib/more.json", '{"name": "more"}')
    files.write("lib/prompt.txt", "a prompt")
    text = """#!/usr/bin/env bun
import { tool, ToolContext, Plugin } from "@opencode-ai/plugin"
import { half, Shape } from "./lib"
import data, { name } from "./lib/data.json"
import again from "./lib/more.json" with { type: "json" }
import prompt from "./lib/prompt.txt"
enum Level { Low = 1, High }
namespace Extra { export const value = 3 }
class Holder { constructor(public held: Level) {} }
export default tool({ description: "d", args: {}, async execute(_: Shape, ctx: ToolContext) {
  const path = require("path") as typeof import("path")
  return JSON.stringify([half(8), data["a-b"], name, again.name, prompt, new Holder(Level.High).held, Extra.value,
    path.basename(__dirname), path.basename(__filename), path.basename(import.meta.dir), import.meta.file])
} })
"""
    await files.load("t.ts", text)
    assert json.loads(await files.call()) == [4, 2, "json", "more", "a prompt", 2, 3, "tool", "t.ts", "tool", "t.ts"]


async def test_a_project_s_own_library_goes_first(files: ToolFiles, project: Path) -> None:
    package = project / "own" / "node_modules" / "@opencode-ai" / "plugin"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text(
        '{"name": "@opencode-ai/plugin", "type": "module", "exports": {".": "./dist/index.js"}}'
    )
    (package / "dist" / "index.js").write_text('export * from "./tool"')  # as the real package writes it
    (package / "dist" / "tool.js").write_text('export const tool = given => ({ ...given, description: "its own" })')
    text = 'import { tool } from "@opencode-ai/plugin"\nexport default tool({ description: "d", execute: () => "x" })'
    (tool,) = await files.service.load(files.write("t.ts", text), "t")
    assert tool.static is not None
    assert tool.static.description == "its own"


async def test_the_context(files: ToolFiles) -> None:
    await files.tool("const { abort, metadata, ask, ...rest } = ctx; return JSON.stringify([rest, process.cwd()])")
    call = files.workspace.start("t", {})
    rest, cwd = json.loads((await call.run()).output)
    part = call.part
    assert rest == {
        "sessionID": part.session_id,
        "messageID": part.message_id,
        "callID": part.call_id,
        "agent": part.agent,
        "directory": str(files.workspace.directory),
        "worktree": str(files.workspace.worktree),
    }
    assert cwd == str(files.workspace.directory)


async def test_rules_on_its_id_hold_whether_or_not_it_asks(files: ToolFiles, approver: Approver) -> None:
    ask = 'await ctx.ask({ permission: "t", patterns: [args.how], always: [], metadata: {} })'
    body = 'if (args.how !== "quiet") ' + ask + "; return args.how"
    for more, patterns in (("", [["*"], ["*"]]), ("asks: true,", [["loud"]])):
        approver.asks.clear()
        await files.tool(body, args="{ how: z.string() }", more=more)
        assert [await files.call(how=how) for how in ("loud", "quiet")] == ["loud", "quiet"]
        assert [request.patterns for request in approver.asks] == patterns
    files.workspace.rules.append(Rule("t", "*", "deny"))
    with pytest.raises(PermissionDeniedError):
        await files.call(how="quiet")


async def test_asking(files: ToolFiles, approver: Approver) -> None:
    files.workspace.permissions.remember(Rule("t", "*", "allow"))
    body = """
try { await ctx.ask({ permission: "deploy", patterns: ["prod *"], always: ["prod"], metadata: { to: "prod" } }) }
catch (error) { return [error.name, error.message, error.feedback, error instanceof Error].join("|") }
return "allowed"
"""
    await files.tool(body)
    assert await files.call() == "allowed"
    ask = approver.asks[-1]
    assert (ask.permission, ask.patterns, ask.always, ask.metadata) == (
        "deploy", ["prod *"], ["prod"], {"to": "prod"},
    )  # fmt: skip
    approver.reply = "reject"
    assert await files.call() == ("RejectedError|The user rejected permission to use this specific tool call.||true")
    approver.reply = ("reject", "use staging")
    output = await files.call()
    assert output.startswith("CorrectedError|")
    assert output.endswith("|use staging|true")
    await files.tool('await ctx.ask({ permission: "deploy", patterns: ["x"], always: [], metadata: {} })')
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):  # the very error, so that the card and the model's loop know it
        await files.call()
    await files.tool('await ctx.ask({ permission: "deploy" })')
    with pytest.raises(JavaScriptError, match="needs a permission and a list of patterns"):
        await files.call()


async def test_metadata_is_shown_while_it_runs(files: ToolFiles, approver: Approver) -> None:
    files.workspace.permissions.remember(Rule("t", "*", "allow"))
    body = """
ctx.metadata({ title: "half way", metadata: { progress: { value: 1, total: 2 } } })
await ctx.ask({ permission: "go", patterns: ["*"], always: [], metadata: {} })
return { title: "done", output: "out", metadata: { count: 3 },
  attachments: [{ type: "file", mime: "image/png", url: "data:image/png;base64,AAAA", filename: "a.png" }] }
"""
    await files.tool(body)
    states: list[Any] = []

    def look(request: Any) -> str:
        states.append((call.part.state.title, call.part.state.metadata))  # type: ignore[union-attr]
        return "once"

    approver.reply = look
    call = files.workspace.start("t", {})
    result = await call.run()
    assert states == [("half way", {"progress": {"value": 1, "total": 2}})]
    assert (result.title, result.output, result.metadata["count"]) == ("done", "out", 3)
    (attachment,) = result.attachments
    assert (attachment.mime, attachment.filename, attachment.data) == ("image/png", "a.png", b"\0\0\0")
    assert attachment.session_id == call.part.session_id


FAILING = [
    ('throw new TypeError("bad thing")', "TypeError: bad thing"),
    ("return Promise.reject(new RangeError('late'))", "RangeError: late"),
    ('throw "a string"', "Error: it threw a string"),
    ("throw { code: 7 }", 'it threw {"code":7}'),
    ("throw undefined", "it threw undefined"),
    ("return 5", "the t tool returned number; a tool must return a string"),
    ("return undefined", "the t tool returned undefined"),
    ("return ['a']", "the t tool returned an array"),
    ("return { title: 'x' }", "the t tool returned object"),
    ("const o = { output: 'x', metadata: {} }; o.metadata.o = o; return o", "circular"),
    ("throw new Error('outer', { cause: new Error('inner') })", "Error: outer (inner)"),
]


async def test_a_tool_that_fails(files: ToolFiles) -> None:
    for body, words in FAILING:
        await files.tool(body)
        with pytest.raises(ToolError) as caught:
            await files.call()
        assert words in str(caught.value)


async def test_an_error_keeps_its_name_and_place(files: ToolFiles) -> None:
    text = f'{HEAD}\n\nexport default tool({{ description: "d", args: {{}}, async execute() {{\n  null!.x\n}} }})'
    await files.load("t.ts", text)
    with pytest.raises(JavaScriptError) as caught:
        await files.call()
    assert caught.value.name == "TypeError"
    assert "t.ts" in caught.value.stack
    assert ":6:" in caught.value.stack


async def test_text_of_every_kind_comes_through(files: ToolFiles) -> None:
    output = r"args.text + '\u2028 \ud83d\ude00 \ud800 \\ud800 '"
    await files.tool(
        f"return {{ output: {output}, metadata: {{ big: 'x'.repeat(3_000_000) }} }}", "{ text: z.string() }"
    )
    text = "é\n\0\u2029😀"
    result = await files.workspace.call("t", {"text": text})
    assert result.output == text + "\u2028 😀 \ufffd \\ud800 "
    assert result.metadata["big"] == "x" * 3_000_000


async def test_many_calls_at_once(files: ToolFiles) -> None:
    await files.tool(
        "await new Promise(done => setTimeout(done, 1 + args.n % 7)); return String(args.n)", "{ n: z.number() }"
    )
    outputs = await asyncio.gather(*(files.call(n=n) for n in range(50)))
    assert outputs == [str(n) for n in range(50)]
    assert len(files.service.pids) == 1


async def test_many_updates_are_few_messages(files: ToolFiles) -> None:
    body = "for (let n = 0; n < 200000; n++) ctx.metadata({ title: `${n}`, metadata: { n } }); return 'done'"
    await files.tool(body)
    titles: list[str | None] = []
    call = files.workspace.start("t", {})
    call.on_update = lambda part: titles.append(getattr(part.state, "title", None))
    assert (await call.run()).output == "done"
    assert "0" in titles
    assert len(titles) < 1000
    await files.tool("ctx.metadata({ metadata: { n: 1n } }); return 'never'")
    with pytest.raises(JavaScriptError, match="BigInt"):
        await files.call()


async def test_a_tool_file_of_a_project_is_found_trusted_and_run(
    workspace: Workspace, approver: Approver, project: Path
) -> None:
    """The whole way: `sources.tool_files` finds the file, a person trusts what it holds, a call reaches it."""
    path = project / ".opencode" / "tool" / "greet.ts"
    path.parent.mkdir(parents=True)
    text = f'{HEAD}export default tool({{ description: "d", args: {{ name: z.string().default("you") }}, '
    path.write_text(text + "async execute(args) { return `hello ${args.name}` } })")
    assert (await workspace.call("greet", {})).output == "hello you"
    assert [ask.permission for ask in approver.asks] == ["trust", "greet"]
    assert (await workspace.call("greet", {"name": "a"})).output == "hello a"
    path.write_text(text + "async execute(args) { return `goodbye ${args.name}` } })")
    approver.reply = "reject"
    with pytest.raises(PermissionRejectedError):
        await workspace.call("greet", {})
    approver.reply = "once"
    assert (await workspace.call("greet", {})).output == "goodbye you"
    assert len(approver.named("trust")) == 3


async def test_it_works_from_code_that_cannot_await(project: Path, tmp_path: Path) -> None:
    def plain() -> list[str]:
        with Workspace(project, data_dir=tmp_path / "data") as workspace:
            files = ToolFiles(workspace)
            anyio.run(files.tool, "return 'twice'")
            return [workspace.call_sync("t", {}).output for _ in range(2)]

    assert await anyio.to_thread.run_sync(plain) == ["twice", "twice"]
