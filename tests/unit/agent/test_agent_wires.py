"""The whole loop over each provider's wire format: what a model may say oddly, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent import retry
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.core.errors import ToolAbortedError
from tests.support.agents import ends
from tests.support.model_servers import anthropic, google, openai
from tests.support.model_servers.server import Server

pytestmark = pytest.mark.anyio

WIRES: dict[str, tuple[type[Server], str]] = {
    "openai": (openai.ScriptedServer, "@ai-sdk/openai-compatible"),
    "anthropic": (anthropic.ScriptedServer, "@ai-sdk/anthropic"),
    "google": (google.ScriptedServer, "@ai-sdk/google"),
}
READ = ["read", {"filePath": "a.txt"}]


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    """One of the three formats."""
    return str(request.param)


@asynccontextmanager
async def opened(folder: Path, wire: str, turns: list[Any]) -> AsyncGenerator[tuple[Workspace, Server]]:
    """A workspace whose model ``fake/m`` speaks `wire`."""
    made, npm = WIRES[wire]
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("hello\n")
    with made(turns) as server:
        options = {"baseURL": server.url, "apiKey": "k-secret-123"}
        config = {
            "permission": {"*": "allow"},
            "provider": {"fake": {"npm": npm, "options": options, "models": {"m": {}}}},
        }
        async with Workspace(project, config=config, data_dir=folder / "data") as workspace:
            yield workspace, server


async def test_tool_steps(tmp_path: Path, wire: str) -> None:
    turns = [{"text": "I look.", "calls": [READ]}, {"calls": [["glob", {"pattern": "*"}], READ]}, {"text": "Done."}]
    async with opened(tmp_path, wire, turns) as (workspace, server):
        answer = await workspace.sessions.prompt("go", model="fake/m")
        assert answer.text.strip() == "Done."
        assert [(tool, state) for tool, state, _ in ends(answer.calls)] == [
            ("read", "completed"),
            ("glob", "completed"),
            ("read", "completed"),
        ]
        assert answer.usage.whole > 0
        assert len(server.requests) == 3


async def test_twenty_calls_in_one_turn(tmp_path: Path, wire: str) -> None:
    calls = [["glob", {"pattern": f"*{n}"}] for n in range(20)]
    async with opened(tmp_path, wire, [{"calls": calls}, {"text": "Done."}]) as (workspace, _):
        answer = await workspace.sessions.prompt("go", model="fake/m")
    assert [part.state.input["pattern"] for part in answer.calls] == [f"*{n}" for n in range(20)]
    assert {part.state.status for part in answer.calls} == {"completed"}


async def test_odd_calls(tmp_path: Path, wire: str) -> None:
    calls = [["nosuchtool", {"a": 1}], ["todoread", {}], ["Read", {"filePath": "a.txt"}], ["read", {"file": 3}]]
    if wire != "google":  # whose arguments are never text
        calls += [["read", "[1]"], ["todoread", ""], ["read", '{"filePath": 5'], ["read", '"a.txt"']]
    turns = [{"calls": calls, "after": "and that is all"}, {"text": "I see."}]
    async with opened(tmp_path, wire, turns) as (workspace, _):
        answer = await workspace.sessions.prompt("go", model="fake/m")
    names = ["invalid", "todoread", "read", "invalid", "invalid", "todoread", "invalid", "invalid"]
    assert [part.tool for part in answer.calls] == names[: len(calls)]
    assert {part.state.status for part in answer.calls} == {"completed"}
    assert answer.text.strip() == "I see."


async def test_ids_that_come_twice_or_not_at_all(tmp_path: Path, wire: str) -> None:
    calls = [[*READ, "same"], ["glob", {"pattern": "*"}, "same"], ["todoread", {}, None]]
    async with opened(tmp_path, wire, [{"calls": calls}, {"calls": [[*READ, "same"]]}, {"text": "x"}]) as (
        workspace,
        _,
    ):
        answer = await workspace.sessions.prompt("go", model="fake/m")
    assert len({part.call_id for part in answer.calls}) == 4
    assert {part.state.status for part in answer.calls} == {"completed"}


async def test_a_stream_that_is_cut(tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    write = ["write", {"filePath": "b.txt", "content": "y" * 200}]
    cut = {"text": "I write.", "calls": [write], "cut": 3 if wire != "google" else 1}
    async with opened(tmp_path, wire, [cut, {"text": "Then in words."}]) as (workspace, server):
        answer = await workspace.sessions.prompt("go", model="fake/m")
        assert answer.text.strip() == "Then in words."
        assert answer.calls == []
        assert not (workspace.directory / "b.txt").exists()
        assert len(server.requests) == 2


async def test_errors(tmp_path: Path, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    turns = [
        {"status": 429, "headers": {"retry-after": "0"}, "body": {"error": {"message": "slow down"}}},
        {"status": 529, "body": {"error": {"message": "overloaded"}}},
        {"status": 500, "body": "<html>oops</html>"},
        {"text": "At last."},
        {"status": 401, "body": {"error": {"message": "bad key k-secret-123"}}},
    ]
    async with opened(tmp_path, wire, turns) as (workspace, _):
        answer = await workspace.sessions.prompt("go", model="fake/m")
        assert answer.text.strip() == "At last."
        with pytest.raises(ModelError) as caught:
            await workspace.sessions.prompt("go", model="fake/m")
    assert caught.value.kind == "auth"
    assert "k-secret-123" not in f"{caught.value!r} {caught.value} {caught.value.body}"


async def test_stop_closes_the_connection(tmp_path: Path, wire: str) -> None:
    async with opened(tmp_path, wire, [{"text": "a b c d e f", "hold": 3}, {"text": "Next."}]) as (workspace, server):
        run = workspace.sessions.prompt("go", model="fake/m")
        task = asyncio.ensure_future(run.run())
        while not (server.requests and server.requests[0].began.is_set()):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        run.abort()
        with pytest.raises(ToolAbortedError):
            await task
        assert await asyncio.to_thread(server.requests[0].gone.wait, 2)
        answer = await workspace.sessions.prompt("go on", model="fake/m", session=run.session)
        assert answer.text.strip() == "Next."
