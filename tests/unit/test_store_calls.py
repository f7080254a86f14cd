"""The calls of this process as the store tells them: what a timeline needs, from where it was read last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opencode_jupyter import ToolContext, Workspace, tool

pytestmark = pytest.mark.anyio
QUESTION = {"question": "Which?", "header": "W", "options": [{"label": "A", "description": ""}]}


@tool
async def greet(count: int, name: str, *, ctx: ToolContext) -> str:
    """Greet somebody."""
    await ctx.ask(permission="greet", patterns=[name], always=["*"])
    return f"hello {name}" * count


async def test_calls_come_from_a_place_on_with_their_waits(tmp_path: Path) -> None:
    rules = {"permission": {"greet": "ask"}}
    async with Workspace(tmp_path, rules, data_dir=tmp_path / "data") as ws:
        assert ws.store is not None
        ws.registry.register(greet)
        assert await ws.store.own_calls(0, 10) == {"calls": [], "since": 0}
        greeting = asyncio.ensure_future(ws.start("greet", {"count": 2, "name": "Ada"}).run())
        asking = asyncio.ensure_future(ws.start("question", {"questions": [QUESTION]}).run())
        async with asyncio.timeout(10):
            while not (ws.permissions.pending() and ws.questions.pending()):
                await asyncio.sleep(0.005)
        going = await ws.store.own_calls(0, 10)
        told = {call["tool"]: call for call in going["calls"]}
        assert {name: (call["state"], call["end"], call["waits"]) for name, call in told.items()} == {
            "greet": ("running", None, []),
            "question": ("running", None, []),
        }
        assert {name: (call["title"], call["given"]) for name, call in told.items()} == {
            "greet": ("", {"count": 2, "name": "Ada"}),  # no title yet: the panel names it by what it was given
            "question": ("", {"questions": [QUESTION]}),
        }
        await asyncio.sleep(0.05)
        ws.permissions.reply(ws.permissions.pending()[0].id, "once")
        ws.questions.reply(ws.questions.pending()[0].id, [["A"]])
        await asyncio.gather(greeting, asking)
        await ws.call("glob", {"pattern": "*"})
        done = await ws.store.own_calls(going["since"], 10)
        assert [call["tool"] for call in done["calls"]] == ["greet", "question", "glob"]
        for call in done["calls"][:2]:
            [[begin, ended]] = call["waits"]
            assert 40 <= ended - begin <= call["waited"] + 1
            assert call["start"] - 1 <= begin <= ended <= call["end"]
        assert done["calls"][2]["waits"] == []
        # of more than the limit, the newest; from the end on, nothing
        assert [call["tool"] for call in (await ws.store.own_calls(0, 1))["calls"]] == ["glob"]
        assert await ws.store.own_calls(done["since"], 10) == {"calls": [], "since": done["since"]}
