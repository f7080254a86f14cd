"""Rules on a tool's own id, whoever calls it, and requests that nobody can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace, tool
from opencode_jupyter.core.errors import PermissionDeniedError, PermissionRejectedError
from opencode_jupyter.core.permission import Rule

pytestmark = pytest.mark.anyio


@tool
def mine(text: str = "x") -> str:
    """Return the text."""
    return text


async def test_a_rule_that_denies_an_own_tool_holds_for_calls_and_in_a_batch(tmp_path: Path) -> None:
    async with Workspace(tmp_path, {"permission": {"mine": "deny"}}, tmp_path / "data") as ws:
        ws.registry.register(mine)
        assert [d.action for d in await ws.dry_run("mine")] == ["deny"]
        with pytest.raises(PermissionDeniedError):
            await ws.call("mine")
        batch = await ws.call("batch", {"tool_calls": [{"tool": "mine", "parameters": {}}]})
        assert batch.metadata["failed"] == 1


async def test_a_rule_that_asks_for_an_own_tool_asks_once(tmp_path: Path) -> None:
    asked: list[tuple[str, list[str]]] = []

    def approve(request: Any) -> str:
        asked.append((request.permission, request.patterns))
        return "once"

    async with Workspace(tmp_path, {"permission": {"mine": "ask"}}, tmp_path / "data", approve=approve) as ws:
        ws.registry.register(mine)
        assert (await ws.call("mine")).output == "x"
    assert asked == [("mine", ["*"])]


async def test_the_tools_of_a_prompt_hold_in_a_batch_and_in_subagents(tmp_path: Path) -> None:
    async with Workspace(tmp_path, {"permission": "allow"}, tmp_path / "data") as ws:
        caller = ws.sessions.create("caller")
        caller.tool_rules = [Rule("bash", "*", "deny", "the prompt's tools")]
        child = ws.sessions.create("child", parent_id=caller.id)
        command = {"command": "touch made", "description": "d"}
        for session in (caller, child):
            batch = await ws.call("batch", {"tool_calls": [{"tool": "bash", "parameters": command}]}, session=session)
            assert batch.metadata["failed"] == 1
            with pytest.raises(PermissionDeniedError):
                await ws.call("bash", command, session=session)
    assert not (tmp_path / "made").exists()


async def test_a_loop_that_nobody_can_be_asked_about_fails_at_once(tmp_path: Path) -> None:
    async with Workspace(tmp_path, data_dir=tmp_path / "data") as ws:
        ws.registry.register(mine)
        await ws.call("mine")
        await ws.call("mine")
        with pytest.raises(PermissionRejectedError, match='"doom_loop": "allow"') as caught:
            await ws.call("mine", timeout=1)
        assert caught.value.decision is not None and caught.value.decision.permission == "doom_loop"
