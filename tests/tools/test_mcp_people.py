"""What MCP servers ask of a person: trust before they are started, answers while they work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import PermissionRejectedError, UnknownToolError
from opencode_jupyter.core.question_request import QuestionRequest
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.errors import McpError
from tests.support.workspaces import OpenWorkspace

from ..support.mcp import local
from .conftest import Approver

pytestmark = pytest.mark.anyio
Opened = Callable[..., AbstractAsyncContextManager[Workspace]]


@pytest.fixture
def opened(project: Path, approver: Approver, tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def open_(mcp: dict[str, Any], **more: Any) -> AsyncIterator[Workspace]:
        config = {"mcp": mcp, "permission": {"*": "allow"}}
        async with Workspace(project, config, data_dir=tmp_path / "data", approve=approver, **more) as ws:
            yield ws

    return open_


def answering(*answers: Any) -> tuple[Callable[[QuestionRequest], Any], list[QuestionRequest]]:
    requests: list[QuestionRequest] = []

    def answer(request: QuestionRequest) -> Any:
        requests.append(request)
        return answers[min(len(requests), len(answers)) - 1]

    return answer, requests


# ---------------------------------------------------------------------- questions


@pytest.mark.parametrize("script", ["demo.py", "odd.py"])
async def test_a_form_is_put_on_the_card_of_the_call(opened: Opened, script: str) -> None:
    answer, requests = answering([["Ada"], ["36"]] if script == "demo.py" else [["36"], ["Yes"]])
    async with opened({"it": local(script)}, answer=answer) as ws:
        call = ws.start("it_who" if script == "demo.py" else "it_form")
        output = (await call.run()).output
        assert requests[0].tool is not None
        assert requests[0].tool["callID"] == call.part.call_id
        assert requests[0].questions[0].question.startswith("The MCP server it asks: ")
        if script == "demo.py":
            assert output == "accept: name='Ada' age=36"
        else:
            assert json.loads(output) == {"action": "accept", "content": {"age": 36, "sure": True}}


async def test_an_answer_that_does_not_fit_is_asked_for_again(opened: Opened) -> None:
    answer, requests = answering([["old"], ["No"]], [["37"]])
    async with opened({"it": local("odd.py")}, answer=answer) as ws:
        output = (await ws.call("it_form")).output
        assert json.loads(output) == {"action": "accept", "content": {"age": 37, "sure": False}}
        assert [len(request.questions) for request in requests] == [2, 1]
        assert "not a whole number" in requests[1].questions[0].question


async def test_a_dismissed_form_is_told_to_the_server(opened: Opened) -> None:
    async with opened({"it": local("odd.py")}, answer=lambda request: None) as ws:
        assert json.loads((await ws.call("it_form")).output) == {"action": "cancel"}


async def test_a_person_may_take_longer_than_a_call(opened: Opened) -> None:
    async def slowly(request: QuestionRequest) -> list[list[str]]:
        await asyncio.sleep(1.8)
        return [["36"], ["Yes"]]

    async with opened({"it": local("odd.py")}, answer=slowly) as ws:
        ws.config.data["experimental"] = {"mcp_timeout": 1500}
        assert "accept" in (await ws.call("it_form")).output


async def test_pages_and_models_are_refused_and_roots_are_told(opened: Opened, project: Path) -> None:
    answer, requests = answering([["36"]])
    async with opened({"it": local("odd.py")}, answer=answer) as ws:
        assert json.loads((await ws.call("it_page")).output) == {"action": "decline"}
        assert json.loads((await ws.call("it_sample")).output)["message"] == "Sampling not supported"
        roots = json.loads((await ws.call("it_roots")).output)["roots"]
        assert [root["uri"] for root in roots] == [project.as_uri()]
        assert not requests


async def test_a_model_is_lent_where_the_configuration_allows_it(
    open_workspace: OpenWorkspace, project: Path, approver: Approver
) -> None:
    script = "speed: 0\nturns: [A lesson]\nagents:\n  sampling: [Ahoy there]\n"
    (project / "words.yaml").write_text(script)
    config: dict[str, Any] = {
        "mcp": {"it": local("odd.py")},
        "permission": {"*": "allow", "mcp_sampling": "ask"},
        "experimental": {"mcp_sampling": "scripted:words.yaml"},
    }
    ws = await open_workspace(config, approve=approver)

    async def sampled() -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((await ws.call("it_sample")).output)
        return answer

    message = await sampled()
    assert "content" in message, message
    assert (message["content"], message["model"]) == ({"type": "text", "text": "Ahoy there"}, "scripted:words.yaml")
    (ask,) = approver.named("mcp_sampling")
    assert ask.patterns == ["it"]
    assert ask.metadata["command"] == "it asks scripted:words.yaml:\nuser: hi"
    approver.reply = "reject"
    assert "sampling was refused" in (await sampled())["message"]
    approver.reply = "once"
    ws.config.data["experimental"] = {"mcp_sampling": True}
    assert "names one" in (await sampled())["message"]
    ws.config.data["small_model"] = "scripted:none.yaml"
    assert "could not be asked" in (await sampled())["message"]
    assert "none.yaml" in ws.service(McpServers).logs("it")[-1]


async def test_a_page_is_shown_where_the_configuration_allows_it(opened: Opened) -> None:
    answer, requests = answering([["Accept"]])
    async with opened({"it": local("odd.py")}, answer=answer) as ws:
        ws.config.data["experimental"] = {"mcp_pages": True}
        assert json.loads((await ws.call("it_page")).output)["action"] == "accept"
        assert "https://evil.test/" in requests[0].questions[0].question


# ---------------------------------------------------------------------- progress on the card


async def test_the_card_shows_how_far_a_call_is_and_had_come(opened: Opened) -> None:
    from opencode_jupyter.jupyter.cards.call_json import card_part

    async with opened({"it": local("demo.py")}) as ws:
        live: list[Any] = []
        call = ws.start(
            "it_steps",
            {"count": 2, "pause": 60},
            on_update=lambda part: live.append(card_part(part, live=True)["ui"].get("progress")),
        )
        task = asyncio.create_task(call.run())
        while {"value": 1, "total": 2, "message": "step 1"} not in live:
            await asyncio.sleep(0.01)
        call.abort()
        await asyncio.gather(task, return_exceptions=True)
        settled = card_part(call.part)["ui"]
        assert settled["tail"] == "Stopped at: 1 of 2: step 1"
        assert "progress" not in settled


# ---------------------------------------------------------------------- trust


@pytest.fixture
def theirs(project: Path) -> Path:
    entry = local("odd.py", environment={"API_TOKEN": "sesame-open"})
    path = project / "opencode.json"
    path.write_text(json.dumps({"mcp": {"theirs": entry}}))
    return path


async def test_a_server_of_the_project_is_not_started_before_it_is_trusted(
    opened: Opened, approver: Approver, theirs: Path
) -> None:
    async with opened({"mine": local("odd.py")}) as ws:
        ids = await ws.registry.ids()
        assert "mine_echo" in ids
        assert "theirs_echo" not in ids
        servers = ws.service(McpServers)
        [subject] = servers.untrusted()
        assert subject.name == f"theirs of {theirs}"
        assert [(tool.id, tool.reason) for tool in ws.registry.unavailable() if tool.id == "theirs_*"] == [
            ("theirs_*", "not trusted yet; run %tools trust")
        ]
        with pytest.raises(McpError, match="not trusted yet"):
            await servers.connect("theirs")
        assert servers.status()["theirs"].pid == 0

        approver.reply = "reject"
        with pytest.raises(PermissionRejectedError):
            await ws.call("theirs_echo")
        assert servers.status()["theirs"].pid == 0

        approver.reply = "once"
        assert (await ws.call("theirs_echo")).output == "echo: {}"
        ask = approver.named("trust")[-1]
        assert "odd.py" in ask.metadata["command"]
        assert ask.metadata["environment"] == ["API_TOKEN"]
        assert "sesame" not in repr(ask)
        assert servers.untrusted() == []

    async with opened({}) as again:
        approver.asks.clear()
        assert "theirs_echo" in await again.registry.ids(), "trusted once, trusted in the next workspace"
        assert not approver.asks


async def test_another_command_asks_again(opened: Opened, approver: Approver, theirs: Path) -> None:
    async with opened({}) as ws:
        await ws.call("theirs_echo")
        pid = ws.service(McpServers).status()["theirs"].pid
        data = json.loads(theirs.read_text())
        data["mcp"]["theirs"]["command"].append("more")
        theirs.write_text(json.dumps(data))
        ws.reload_config()
        assert "theirs_echo" not in await ws.registry.ids()
        assert len(ws.service(McpServers).untrusted()) == 1
        await ws.call("theirs_echo")
        assert len(approver.named("trust")) == 2
        assert ws.service(McpServers).status()["theirs"].pid != pid


async def test_a_dry_run_starts_nothing(opened: Opened, theirs: Path) -> None:
    async with opened({}) as ws:
        [decision] = await ws.dry_run("theirs_echo")
        assert (decision.permission, decision.action) == ("trust", "ask")
        assert ws.service(McpServers).status()["theirs"].pid == 0
        assert len(ws.service(McpServers).untrusted()) == 1


async def test_a_server_taken_out_of_the_config_is_ended(opened: Opened, theirs: Path) -> None:
    async with opened({}) as ws:
        await ws.call("theirs_echo")
        theirs.write_text("{}")
        ws.reload_config()
        with pytest.raises(UnknownToolError):
            await ws.call("theirs_echo")
        assert ws.service(McpServers).status() == {}
