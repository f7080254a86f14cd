"""Many runs with a provider's real protocol over loopback: held back together, no connection left after a cancel."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from tests.support.model_servers.openai import ScriptedServer
from tests.support.model_servers.server import Request

pytestmark = pytest.mark.anyio


def settings(server: ScriptedServer) -> dict[str, Any]:
    entry = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": server.url, "apiKey": "k"}, "models": {"m": {}}}
    return {"permission": "allow", "snapshot": False, "provider": {"mine": entry}}


async def test_one_is_told_to_wait_and_all_do(tmp_path: Path) -> None:
    refused: list[float] = []

    def turn(request: Request) -> dict[str, Any]:
        if not refused:
            refused.append(request.at)
            return {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {"message": "slow down"}}}
        return {"text": f"said: {request.messages[-1]['content']}"}

    with ScriptedServer(turn) as server:
        async with Workspace(tmp_path, settings(server), data_dir=tmp_path / "d", store=False) as ws:
            results = await ws.map([f"ask {i}" for i in range(6)], model="mine:m", concurrency=2)
            assert [outcome.error for outcome in results] == [None] * 6
            assert all("said:" in text for text in results.texts)
            times = sorted(request.at for request in server.requests)
    # one other was on its way already; the rest wait until the second is over
    soon = [at for at in times if refused[0] < at < refused[0] + 0.9]
    assert len(soon) <= 1
    assert len(times) == 7


async def test_a_cancel_leaves_no_connection(tmp_path: Path) -> None:
    with ScriptedServer(lambda request: {"text": "begun and never over", "hold": 60}) as server:
        async with Workspace(tmp_path, settings(server), data_dir=tmp_path / "d", store=False) as ws:

            async def all_of_it() -> None:
                await ws.map(["ask"] * 5, model="mine:m", concurrency=5)

            task = asyncio.create_task(all_of_it())
            deadline = time.monotonic() + 20
            while sum(request.began.is_set() for request in list(server.requests)) < 5:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while server.open:
                assert time.monotonic() < deadline + 20
                await asyncio.sleep(0.01)
            assert all(session.run is None for session in ws.sessions.list())
