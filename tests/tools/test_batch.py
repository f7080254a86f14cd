"""batch: several calls at once, each a call of its own inside the batch's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import (
    Attachment,
    InvalidArgumentsError,
    Tool,
    ToolAbortedError,
    ToolContext,
    ToolResult,
    ToolTimeoutError,
    Workspace,
    tool,
)
from opencode_jupyter.core.call import Call
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


def calls(*pairs: Any) -> dict[str, Any]:
    return {"tool_calls": [{"tool": name, "parameters": parameters} for name, parameters in pairs]}


@tool
async def slow(seconds: float = 0.0, text: str = "done") -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return text


@tool(asks=True)
async def asking(what: str, *, ctx: ToolContext) -> str:
    """Ask."""
    await ctx.ask("asking", [what], always=[what])
    return what


@tool
async def picture(name: str) -> ToolResult:
    """A picture."""
    return ToolResult("", name, attachments=[Attachment.from_bytes(name.encode(), "image/png", name)])


@pytest.fixture
def ws(workspace: Workspace) -> Workspace:
    for made in (slow, asking, picture):
        workspace.registry.register(made)
    return workspace


def texts(result: ToolResult) -> list[str]:
    return [row["output"] or row["error"] for row in result.records or []]


async def test_runs_all_at_once_and_keeps_the_order(ws: Workspace) -> None:
    began = asyncio.get_running_loop().time()
    arguments = calls(*[("slow", {"seconds": 0.3 - 0.05 * i, "text": str(i)}) for i in range(6)])
    result = await ws.call("batch", arguments)
    assert asyncio.get_running_loop().time() - began < 1.0
    assert texts(result) == ["0", "1", "2", "3", "4", "5"]
    assert result.title == "Batch execution (6/6 successful)"
    assert result.output == (
        "All 6 tools executed successfully.\n\nKeep using the batch tool for optimal performance in your next response!"
    )
    assert result.metadata == {
        "totalCalls": 6,
        "successful": 6,
        "failed": 0,
        "tools": ["slow"] * 6,
        "details": [{"tool": "slow", "success": True}] * 6,
        "truncated": False,
    }


async def test_a_failure_is_its_own(ws: Workspace, project: Path) -> None:
    (project / "a.txt").write_text("one\n")
    arguments = calls(
        ("read", {"filePath": "a.txt"}),
        ("read", {"filePath": "gone.txt"}),
        ("read", {"filePath": 5}),
        ("READ", {"file_path": "a.txt"}),
        ("batch", calls(("slow", {}))),
        ("weather", {}),
    )
    result = await ws.call("batch", arguments)
    assert result.title == "Batch execution (2/6 successful)"
    assert result.output == "Executed 2/6 tools successfully. 4 failed."
    assert result.metadata["tools"] == ["read", "read", "read", "read", "batch", "weather"]
    assert [d["success"] for d in result.metadata["details"]] == [True, False, False, True, False, False]
    outcome = texts(result)
    assert "1: one" in outcome[0]
    assert outcome[1].startswith("File not found")
    assert "read tool was called with invalid arguments" in outcome[2]
    assert "1: one" in outcome[3]
    assert outcome[4] == "Tool 'batch' is not allowed in batch. Disallowed tools: batch"
    start, _, known = outcome[5].partition("Available tools: ")
    assert start == (
        "Tool 'weather' not in registry. External tools (MCP, environment) cannot be batched - call them directly. "
    )
    named = known.split(", ")
    assert {"read", "bash", "slow"} <= set(named)
    assert not {"batch", "invalid", "apply_patch", "websearch"} & set(named)


async def test_tools_of_others_are_left_to_a_call_of_their_own(ws: Workspace) -> None:
    ran: list[str] = []
    definition = {
        "description": "Far",
        "parameters": {"type": "object"},
        "execute": lambda a, c: ran.append("x") or "x",
    }
    ws.registry.register(Tool.define("server_far", definition, external=True))
    result = await ws.call("batch", calls(("server_far", {}), ("slow", {})))
    assert "call them directly" in texts(result)[0]
    assert "server_far" not in texts(result)[0].partition("Available")[2]
    assert texts(result)[1] == "done"
    assert not ran


async def test_what_is_over_25_is_refused(ws: Workspace) -> None:
    result = await ws.call("batch", calls(*[("slow", {"text": str(i)}) for i in range(28)]))
    assert result.title == "Batch execution (25/28 successful)"
    assert texts(result) == [*map(str, range(25)), *["Maximum of 25 tools allowed in batch"] * 3]


async def test_each_call_has_its_part_in_the_batchs_message(ws: Workspace) -> None:
    updates: list[dict[str, Any]] = []
    ws.bus.subscribe("message.part.updated", lambda event: updates.append(event["properties"]["part"]))
    batch = ws.start("batch", calls(("slow", {"text": "a"}), ("nothing", {}), ("slow", {"text": "b"})))
    result = await batch.run()
    assert [child.part.tool for child in batch.children] == ["slow", "nothing", "slow"]
    for child, row in zip(batch.children, result.records or [], strict=True):
        assert child.parent is batch
        assert child.part.parent_id == batch.part.id
        assert child.part.call_id == child.part.id
        assert (child.part.session_id, child.part.message_id) == (batch.part.session_id, batch.part.message_id)
        assert (child.part.state.status == "completed") == row["success"]
    of = {
        child.part.id: [p["state"]["status"] for p in updates if p["id"] == child.part.id] for child in batch.children
    }
    first, unknown, last = (of[child.part.id] for child in batch.children)
    assert first == last == ["pending", "pending", "running", "completed"]  # approved in between
    assert unknown == ["error"]
    assert ws.store is not None
    stored = {part["id"]: part for part in await ws.store.parts(batch.part.session_id)}
    assert all(stored[c.part.id]["opencode_jupyter"]["parentID"] == batch.part.id for c in batch.children)
    refused = stored[batch.children[1].part.id]["state"]
    assert refused["error"].startswith("Tool 'nothing' not in registry.")
    assert refused["metadata"]["errorForPerson"].startswith("Unknown tool: nothing.")


async def test_reports_how_many_have_ended(ws: Workspace) -> None:
    reports: list[Any] = []

    def note(event: dict[str, Any]) -> None:
        part = event["properties"]["part"]
        if part["tool"] == "batch" and part["state"]["status"] == "running" and "metadata" in part["state"]:
            reports.append(part["state"]["metadata"]["progress"])

    ws.bus.subscribe("message.part.updated", note)
    await ws.call("batch", calls(("slow", {}), ("slow", {"seconds": 0.3})))
    assert {"value": 1, "total": 2, "message": "1 of 2 calls have ended"} in reports


async def test_attachments_come_along_under_ids_of_their_own(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("picture", {"name": "a"}), ("slow", {}), ("picture", {"name": "b"})))
    result = await batch.run()
    assert [a.filename for a in result.attachments] == ["a", "b"]
    inner = [a for c in batch.children if c.part.result for a in c.part.result.attachments]
    assert len({a.id for a in (*inner, *result.attachments)}) == 4


async def test_asks_are_each_calls_own(ws: Workspace, approver: Approver) -> None:
    approver.reply = lambda request: "reject" if request.patterns == ["no"] else "once"
    batch = ws.start("batch", calls(("asking", {"what": "yes"}), ("asking", {"what": "no"}), ("slow", {})))
    result = await batch.run()
    assert [row["success"] for row in result.records or []] == [True, False, True]
    assert "rejected permission" in texts(result)[1]
    assert batch.children[1].part.outcome == "denied by you"
    call_ids = {ask.patterns[0]: ask.tool["callID"] for ask in approver.asks}
    assert call_ids == dict(zip(("yes", "no", "*"), (child.part.call_id for child in batch.children), strict=True))
    assert batch.part.outcome == "completed"


async def test_answers_come_in_any_order(open_workspace: OpenWorkspace) -> None:
    config = {"permission": {"asking": "ask"}}
    ws = await open_workspace(config)
    ws.registry.register(asking)
    batch = ws.start("batch", calls(("asking", {"what": "a"}), ("asking", {"what": "b"})))
    running = asyncio.create_task(batch.run())
    while len(ws.permissions.pending()) < 2:
        await asyncio.sleep(0.01)
    assert batch.waiting == 2
    first, second = ws.permissions.pending()
    assert ws.permissions.reply(second.id, "once")
    await asyncio.sleep(0.05)
    assert not running.done()
    assert ws.permissions.reply(first.id, "once")
    assert texts(await running) == ["a", "b"]
    assert batch.waiting == 0


@pytest.mark.parametrize("question_first", [True, False])
async def test_a_question_and_an_ask_are_answered_in_either_order(
    open_workspace: OpenWorkspace, question_first: bool
) -> None:
    question = {"question": "Which?", "header": "h", "options": [{"label": "A", "description": "a"}]}
    ws = await open_workspace({"permission": {"asking": "ask"}})
    ws.registry.register(asking)
    arguments = calls(("question", {"questions": [question]}), ("asking", {"what": "b"}))
    running = asyncio.create_task(ws.call("batch", arguments, timeout=0.3))
    while not (ws.permissions.pending() and ws.questions.pending()):
        await asyncio.sleep(0.01)
    answers = [
        lambda: ws.questions.reply(ws.questions.pending()[0].id, [["A"]]),
        lambda: ws.permissions.reply(ws.permissions.pending()[0].id, "once"),
    ]
    for answer in answers if question_first else reversed(answers):
        await asyncio.sleep(0.3)  # none of it is on the batch's clock
        answer()
    outcome = texts(await running)
    assert '"Which?"="A"' in outcome[0]
    assert outcome[1] == "b"


async def test_a_rule_that_denies_fails_one(open_workspace: OpenWorkspace) -> None:
    config = {"permission": {"asking": {"*": "allow", "b": "deny"}}}
    ws = await open_workspace(config)
    ws.registry.register(asking)
    result = await ws.call("batch", calls(("asking", {"what": "a"}), ("asking", {"what": "b"})))
    assert [row["success"] for row in result.records or []] == [True, False]
    assert "prevents you from using" in texts(result)[1]


async def test_stopping_the_batch_stops_every_call(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("slow", {"seconds": 60}), ("bash", {"command": "sleep 60", "description": "d"})))
    running = asyncio.create_task(batch.run())
    while not all(child.part.state.status == "running" for child in batch.children) or not batch.children:
        await asyncio.sleep(0.01)
    assert set(ws.calls) == {batch.part.call_id, *(c.part.call_id for c in batch.children)}
    batch.abort("stopped")
    with pytest.raises(ToolAbortedError):
        await asyncio.wait_for(running, 5)
    assert [c.part.outcome for c in (batch, *batch.children)] == ["stopped"] * 3
    assert not ws.calls


async def test_one_call_can_be_stopped_alone(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("slow", {"seconds": 60}), ("slow", {"seconds": 0.3})))
    running = asyncio.create_task(batch.run())
    while not batch.children or batch.children[0].part.state.status != "running":
        await asyncio.sleep(0.01)
    assert ws.abort(batch.children[0].part.call_id)
    result = await asyncio.wait_for(running, 5)
    assert [row["success"] for row in result.records or []] == [False, True]
    assert batch.children[0].part.outcome == "stopped"


async def test_the_limit_covers_every_call(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("slow", {"seconds": 60}), ("slow", {})), timeout=0.3)
    with pytest.raises(ToolTimeoutError):
        await batch.run()
    assert [c.part.outcome for c in (batch, *batch.children)] == ["timed out", "timed out", "completed"]


async def test_waiting_for_a_person_is_not_on_the_clock(open_workspace: OpenWorkspace) -> None:
    async def think(request: Any) -> str:
        await asyncio.sleep(0.6)
        return "once"

    config = {"permission": {"asking": "ask"}}
    ws = await open_workspace(config, approve=think)
    ws.registry.register(asking)
    result = await ws.call("batch", calls(("asking", {"what": "a"}), ("asking", {"what": "b"})), timeout=0.4)
    assert texts(result) == ["a", "b"]


async def test_a_dry_run_lists_what_every_call_would_ask(ws: Workspace, project: Path, approver: Approver) -> None:
    arguments = calls(
        ("bash", {"command": "touch made", "description": "d"}),
        ("write", {"filePath": "w.txt", "content": "x"}),
        ("read", {"filePath": 5}),
        ("slow", {}),
    )
    decisions = await ws.dry_run("batch", arguments)
    assert [(d.permission, d.patterns) for d in decisions] == [
        ("bash", ["touch made"]),
        ("edit", ["w.txt"]),
        ("slow", ["*"]),
    ]
    assert [p.name for p in project.iterdir()] == [".git"]
    assert not approver.asks


async def test_hooks_see_every_call(ws: Workspace) -> None:
    tools: list[str] = []

    def before(properties: dict[str, Any], output: dict[str, Any]) -> None:
        tools.append(properties["tool"])
        if output["args"].get("text") == "secret":
            raise PermissionError("not that")

    ws.hooks.add("tool.execute.before", before)
    result = await ws.call("batch", calls(("slow", {"text": "secret"}), ("slow", {"text": "open"})))
    assert tools == ["batch", "slow", "slow"]
    assert texts(result) == ["PermissionError: not that", "open"]


async def test_the_same_call_three_times_in_a_batch_is_no_loop(ws: Workspace, approver: Approver) -> None:
    same = calls(*[("slow", {"text": "x"})] * 5)
    await ws.call("batch", same, by="model")
    assert not approver.named("doom_loop")
    await ws.call("batch", same, by="model")
    await ws.call("batch", same, by="model")
    assert len(approver.named("doom_loop")) == 1
    assert approver.named("doom_loop")[0].patterns == ["batch"]


async def test_who_wrote_it_goes_down(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("slow", {}), ("slow", {"seconds": "soon"})), by="model", agent="plan")
    await batch.run()
    assert {(c.part.by, c.part.agent) for c in batch.children} == {("model", "plan")}
    # a model is told of the whole batch: what can't be run fails in its own entry, it becomes no call of `invalid`
    assert [c.part.tool for c in batch.children] == ["slow", "slow"]
    assert batch.children[1].part.outcome == "invalid arguments"


async def test_outputs_are_cut_each_by_itself(ws: Workspace) -> None:
    batch = ws.start("batch", calls(("slow", {"text": "line\n" * 5000}), ("slow", {})))
    result = await batch.run()
    long = batch.children[0].part.result
    assert long is not None
    assert long.truncated
    assert result.metadata["truncated"] is False
    assert Path(str(long.output_path)).read_text() == "line\n" * 5000


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"tool_calls": []}, ["tool_calls: Provide at least one tool call"]),
        ({}, ["tool_calls: Invalid input: expected array, received undefined"]),
        ({"toolCalls": [{}]}, ["tool_calls: Invalid input: expected array, received undefined"]),
        ({"tool_calls": None}, ["tool_calls: Invalid input: expected array, received null"]),
        ({"tool_calls": '[{"tool": "a"}]'}, ["tool_calls: Invalid input: expected array, received string"]),
        ({"tool_calls": {"tool": "a"}}, ["tool_calls: Invalid input: expected array, received object"]),
        ({"tool_calls": [5]}, ["tool_calls.0: Invalid input: expected object, received number"]),
        (
            {"tool_calls": [{"tool": 5}]},
            [
                "tool_calls.0.tool: Invalid input: expected string, received number",
                "tool_calls.0.parameters: Invalid input: expected object, received undefined",
            ],
        ),
        (
            {"tool_calls": [{"tool": "a", "parameters": "{}"}]},
            ["tool_calls.0.parameters: Invalid input: expected object, received string"],
        ),
    ],
)
async def test_wrong_parameters_say_what_is_expected(
    ws: Workspace, arguments: dict[str, Any], lines: list[str]
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await ws.call("batch", arguments)
    listed = "\n".join(f"  - {line}" for line in lines)
    assert str(caught.value) == (
        f"Invalid parameters for tool 'batch':\n{listed}\n\n"
        'Expected payload format:\n  [{"tool": "tool_name", "parameters": {...}}, {...}]'
    )


async def test_a_model_is_offered_it_where_the_configuration_says_so(project: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    recorded = json.loads((Path(__file__).parents[1] / "data" / "tool_schemas_1.1.65.json").read_text())["parameters"]
    async with Workspace(project, data_dir=data, store=False) as ws:
        assert "batch" not in [bound.id for bound in await ws.registry.tools("a:b")]
        assert isinstance(ws.start("batch", calls(("read", {}))), Call)
    async with Workspace(project, {"experimental": {"batch_tool": True}}, data_dir=data, store=False) as ws:
        [bound] = [bound for bound in await ws.registry.tools("a:b") if bound.id == "batch"]
        node = bound.parameters
        node = {key: value for key, value in node.items() if key != "$schema"}
        assert json.loads(json.dumps(node), object_hook=_without_description) == recorded["batch"]


def _without_description(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != "description"}
