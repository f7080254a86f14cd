"""What cards are drawn from is exactly what the contract describes: no field more, none of another type."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from opencode_jupyter import ToolError, Workspace
from opencode_jupyter.agent.tools import agent_tools
from opencode_jupyter.jupyter.cards.approval_json import RequestView, digest_of
from opencode_jupyter.jupyter.cards.call_json import card_tree
from opencode_jupyter.jupyter.cards.call_mimebundle import lost_bundle
from opencode_jupyter.jupyter.cards.contract_schema import json_schema, tool_bodies
from opencode_jupyter.jupyter.cards.saved_json import CARD_MIME, saved_part
from opencode_jupyter.tools import builtin_tools
from tests.support.contract import check
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-two\n+2\n*** End Patch"
CALLS = [
    ("write", {"filePath": "a.txt", "content": "one\n"}),
    ("edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"}),
    ("read", {"filePath": "a.txt"}),
    ("read", {"filePath": "missing.txt"}),
    ("bash", {"command": "seq 5000", "description": "Count"}),
    ("bash", {"command": "echo x; exit 3", "description": "Fail"}),
    ("grep", {"pattern": "two"}),
    ("todowrite", {"todos": [{"id": "1", "content": "clean", "status": "pending", "priority": "high"}]}),
    ("apply_patch", {"patchText": PATCH}),
    ("batch", {"tool_calls": [{"tool": "glob", "parameters": {"pattern": "*"}}, {"tool": "no", "parameters": {}}]}),
    ("read", {"filePath": 5}),
]


def test_every_field_is_documented() -> None:
    fields = [
        (f"{name}.{field}", description.get("description", ""))
        for name, definition in json_schema()["$defs"].items()
        for field, description in definition.get("properties", {}).items()
    ]
    assert len(fields) > 150
    assert [field for field, text in fields if not text.strip()] == []


def test_the_front_end_knows_the_body_of_every_built_in_tool() -> None:
    tools = [make() for make in {**builtin_tools(), **agent_tools()}.values()]
    assert tool_bodies() == {"python": "code", **{tool.id: tool.body for tool in tools if tool.body}}


async def test_what_failed_in_a_completed_call(workspace: Workspace) -> None:
    for command, failure in (("exit 3", "exit code 3"), ("true", "")):
        call = workspace.start("bash", {"command": command, "description": "Try"})
        await call.run()
        assert card_tree(call, {}, live=False)["ui"]["failure"] == failure


async def test_calls(workspace: Workspace) -> None:
    for tool, arguments in CALLS:
        call = workspace.start(tool, arguments, by="model")
        check(part=card_tree(call, {}, live=True))
        with suppress(ToolError):
            await call.run()
        for live in (True, False):
            check(part=card_tree(call, {}, live=live))
        check(part=saved_part(card_tree(call, {}, live=False)))


async def test_a_call_that_waits_for_approval(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": "ask"})
    call = ws.start("write", {"filePath": "a.txt", "content": "x" * 3000})
    running = asyncio.ensure_future(call.run())
    while not ws.permissions.pending():
        await asyncio.sleep(0.01)
    request = ws.permissions.pending()[0]
    card = card_tree(call, {call.part.call_id: [RequestView(request, digest_of(request))]}, live=True)
    assert {"ask", "untouched"} <= set(card["ui"])
    check(part=card)
    check(part=lost_bundle(card)[CARD_MIME])
    ws.permissions.reply(request.id, "reject", "not now")
    await asyncio.wait([running])
    check(part=card_tree(call, {}, live=False))


async def test_a_call_that_waits_for_an_answer(workspace: Workspace) -> None:
    questions = [{"question": "Which?", "header": "W", "options": [{"label": "A", "description": ""}]}]
    call = workspace.start("question", {"questions": questions})
    running = asyncio.ensure_future(call.run())
    while not workspace.questions.pending():
        await asyncio.sleep(0.01)
    request = workspace.questions.pending()[0]
    card = card_tree(call, {call.part.call_id: [RequestView(request, digest_of(request))]}, live=True)
    assert "question" in card["ui"]
    check(part=card)
    workspace.questions.reply(request.id, [["A"]])
    await asyncio.wait([running])
    settled = card_tree(call, {}, live=False)
    assert settled["ui"]["answered"]
    check(part=settled)
