"""The calls of this process as the store tells them: what a timeline needs, from where it was read last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opencode_jupyter import ToolContext, Workspace, tool
from opencode_jupyter.jupyter.cards.call_json import card_tree
from opencode_jupyter.jupyter.cards.labels import label_of_wire
from opencode_jupyter.jupyter.cards.wording import state_words
from opencode_jupyter.jupyter.magics.history import read_history
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
STATUSES = ("completed", "pending")
QUESTION = {"question": "Which?", "header": "W", "options": [{"label": "A", "description": ""}]}


@tool(asks=True)
async def greet(count: int, name: str, *, ctx: ToolContext) -> str:
    """Greet somebody."""
    await ctx.ask(permission="greet", patterns=[name], always=["*"])
    return f"hello {name}" * count


async def test_calls_come_from_a_place_on_with_their_waits(open_workspace: OpenWorkspace) -> None:
    rules = {"permission": {"greet": "ask"}}
    ws = await open_workspace(rules)
    assert ws.store is not None
    ws.registry.register(greet)
    assert await ws.store.own_calls(0, 10) == {"calls": [], "since": 0}
    greeting = asyncio.ensure_future(ws.start("greet", {"count": 2, "name": "Ada"}).run())
    asking = asyncio.ensure_future(ws.start("question", {"questions": [QUESTION]}).run())
    async with asyncio.timeout(10):
        while not (ws.permissions.pending() and ws.questions.pending()):
            await asyncio.sleep(0.005)
    going = await ws.store.own_calls(0, 10)
    by_tool = {call["tool"]: call for call in going["calls"]}
    assert {name: (call["state"], call["end"], call["waits"]) for name, call in by_tool.items()} == {
        "greet": ("running", None, []),
        "question": ("running", None, []),
    }
    assert {name: (call["title"], call["part"]["state"]["input"]) for name, call in by_tool.items()} == {
        "greet": ("", {"count": 2, "name": "Ada"}),  # no title yet: the panel names it by what it was given
        "question": ("", {"questions": [QUESTION]}),
    }
    await asyncio.sleep(0.05)
    ws.permissions.reply(ws.permissions.pending()[0].id, "once")
    ws.questions.reply(ws.questions.pending()[0].id, [["A"]])
    await asyncio.gather(greeting, asking)
    await ws.call("glob", {"pattern": "*"})
    finished = await ws.store.own_calls(going["since"], 10)
    assert [call["tool"] for call in finished["calls"]] == ["greet", "question", "glob"]
    for call in finished["calls"][:2]:
        [[begin, ended]] = call["waits"]
        assert 40 <= ended - begin <= call["waited"] + 1
        assert call["start"] - 1 <= begin <= ended <= call["end"]
    assert finished["calls"][2]["waits"] == []
    # of more than the limit, the newest; from the end on, nothing
    assert [call["tool"] for call in (await ws.store.own_calls(0, 1))["calls"]] == ["glob"]
    assert await ws.store.own_calls(finished["since"], 10) == {"calls": [], "since": finished["since"]}


async def test_what_failed_in_completed_calls_is_their_state_everywhere(workspace: Workspace) -> None:
    assert workspace.store is not None
    inner = [
        ("bash", {"command": "exit 1", "description": "x"}),
        ("read", {"filePath": "none.txt"}),
        ("bash", {"command": "true", "description": "x"}),
    ]
    batch = {"tool_calls": [{"tool": name, "parameters": arguments} for name, arguments in inner]}
    calls = [
        workspace.start("bash", {"command": "exit 128", "description": "x"}),
        workspace.start("batch", batch),
        workspace.start("read", {"filePath": 5}, by="model"),
    ]
    for call in calls:
        await call.run()
    cards = {card["id"]: card for call in calls for card in [card_tree(call, {}, live=False)]}
    assert [(card["tool"], *state_words(card)) for card in cards.values()] == [
        ("bash", "✗", "exit code 128", "err"),
        ("batch", "✗", "2 of 3 failed", "err"),
        ("read", "✗", "failed", "err"),
    ]
    assert [card["ui"].get("printed", "") for card in cards.values()][:2] == ["", "2 of 3 failed."]
    expected = {id: (card["tool"], state_words(card)[1]) for id, card in cards.items()}
    rows = [row for row in await read_history(workspace.store, 10, workspace) if row["id"] in expected]
    assert {row["id"]: (row["tool"], row["state"]) for row in rows} == expected
    rows = [row for row in (await workspace.store.own_calls(0, 10))["calls"] if row["id"] in expected]
    assert {row["id"]: (row["tool"], row["outcome"]) for row in rows} == expected


async def test_the_panel_names_what_a_call_changed(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / "a.txt").write_text("one\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: b.txt\n+new\n*** End Patch"
    todos = [{"id": str(n), "content": "x", "status": status, "priority": "low"} for n, status in enumerate(STATUSES)]
    glob = {"tool": "glob", "parameters": {"pattern": "*"}}
    ws = await open_workspace()
    await ws.call("read", {"filePath": "a.txt"})
    await ws.call("apply_patch", {"patchText": patch})
    await ws.call("apply_patch", {"patchText": patch.replace("one", "two").replace("b.txt", "c.txt")})
    await ws.call("batch", {"tool_calls": [glob, glob]})
    await ws.call("todowrite", {"todos": todos})
    await ws.call("todoread", {})
    assert ws.store is not None
    calls = (await ws.store.own_calls(0, 100))["calls"]
    titles = {call["tool"]: label_of_wire(call["part"], project, project) for call in calls if "part" in call}
    assert titles == {
        "apply_patch": "a.txt, c.txt",
        "batch": "2 calls",
        "glob": "*",
        "todowrite": "1 of 2 tasks done",
        "todoread": "1 of 2 tasks done",
    }
