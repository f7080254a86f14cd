"""websearch against a loopback server that speaks Exa's protocol: JSON-RPC by POST, server-sent events."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolError
from opencode_jupyter.tools import websearch
from opencode_jupyter.tools.web import exa
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from ..support.site import Connection, Request, Site
from .conftest import Approver


def answer(*texts: str) -> str:
    """A result as one server-sent event."""
    content = [{"type": "text", "text": text} for text in texts]
    return "event: message\ndata: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}) + "\n\n"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with Site() as running:
        monkeypatch.setenv("OPENCODE_EXA_URL", f"{running.url}/mcp")
        monkeypatch.delenv("EXA_API_KEY", raising=False)
        running.serve("/mcp", answer("found it", "more"), "text/event-stream")
        yield running


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


async def search(ws: Workspace, query: str = "snow", **arguments: Any) -> Any:
    return await ws.call("websearch", {"query": query, **arguments})


@pytest.mark.anyio
async def test_a_search(ws: Workspace, site: Site) -> None:
    result = await search(ws, "snow in été")
    assert (result.title, result.output) == ("Web search: snow in été", "found it")
    assert result.metadata == {"truncated": False}
    [request] = site.requests
    assert request.method == "POST"
    assert request.headers["accept"] == "application/json, text/event-stream"
    assert request.headers["content-type"] == "application/json"
    assert "x-api-key" not in request.headers
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "web_search_exa",
            "arguments": {"query": "snow in été", "type": "auto", "numResults": 8, "livecrawl": "fallback"},
        },
    }


@pytest.mark.anyio
async def test_arguments_and_the_key_are_sent(ws: Workspace, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXA_API_KEY", "key-1")
    options = {"numResults": 3, "livecrawl": "preferred", "type": "deep", "contextMaxCharacters": 5000}
    await search(ws, **options)
    await search(ws, numResults=0, contextMaxCharacters=0)
    first, second = (json.loads(r.body)["params"]["arguments"] for r in site.requests)
    assert first == {"query": "snow", **options}
    assert second == {"query": "snow", "type": "auto", "numResults": 8, "livecrawl": "fallback"}
    assert site.requests[0].headers["x-api-key"] == "key-1"


@pytest.mark.parametrize(
    ("body", "content_type", "output"),
    [
        (answer("one") + answer("two"), "text/event-stream", "one"),
        (": hello\nevent: ping\ndata: {}\n\n" + answer("after a ping"), "text/event-stream", "after a ping"),
        (answer("crlf").replace("\n", "\r\n"), "text/event-stream", "crlf"),
        (answer("no end").rstrip("\n"), "text/event-stream", "no end"),
        (answer("a").replace("data: ", "data:"), "text/event-stream", "a"),
        ('data: {"result":\ndata: {"content": [{"text": "two lines"}]}}\n\n', "text/event-stream", "two lines"),
        ('data: {"result": {}}\n' + answer("no blank between"), "text/event-stream", "no blank between"),
        ("data: not json\n\n" + answer("later"), "text/event-stream", "later"),
        ('{"result": {"content": [{"type": "text", "text": "plain json"}]}}', "application/json", "plain json"),
        ("", "text/event-stream", websearch.NOTHING),
        (answer(), "text/event-stream", websearch.NOTHING),
        ('data: {"result": {"content": null}}\n\ndata: [1]\n\ndata: 3\n\n', "text/event-stream", websearch.NOTHING),
        ("<html>", "text/html", websearch.NOTHING),
        ('data: {"result": {"content": [{"type": "text", "text": null}]}}\n\n', "text/event-stream", websearch.NOTHING),
    ],
)
@pytest.mark.anyio
async def test_answers(ws: Workspace, site: Site, body: str, content_type: str, output: str) -> None:
    site.serve("/mcp", body, content_type)
    assert (await search(ws)).output == output


@pytest.mark.anyio
async def test_a_stream_that_stays_open_is_left_once_the_result_is_there(ws: Workspace, site: Site) -> None:
    @site.on("/mcp")
    async def stream(_: Request, to: Connection) -> None:
        await to.head(content_type="text/event-stream")
        for part in (answer("é" * 70_000)[i : i + 9999] for i in range(0, 500_000, 9999)):
            await to.send(part.encode())
        await asyncio.sleep(60)

    result = await search(ws)
    assert Path(result.metadata["outputPath"]).read_text() == "é" * 70_000


@pytest.mark.anyio
async def test_errors_of_the_server(ws: Workspace, site: Site) -> None:
    site.serve("/mcp", "too many, wait", "text/plain", "429 Too Many")
    with pytest.raises(ToolError, match=r"^Search error \(429\): too many, wait$"):
        await search(ws, "one")
    site.serve("/mcp", 'data: {"error": {"code": -32000, "message": "no such tool"}}\n\n', "text/event-stream")
    with pytest.raises(ToolError, match=r"^Search error \(-32000\): no such tool$"):
        await search(ws, "two")
    site.serve("/mcp", "x" * 6_000_000, "application/json")
    with pytest.raises(ToolError, match="larger than 5 MB"):
        await search(ws, "three")


@pytest.mark.anyio
async def test_a_server_that_gives_the_key_back_does_not_show_it(
    ws: Workspace, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXA_API_KEY", "sk-never-shown")
    site.serve("/mcp", "no such key: sk-never-shown", "text/plain", "401 Unauthorized")
    with pytest.raises(ToolError, match=r"^Search error \(401\): no such key: \*\*\*$"):
        await search(ws, "one")
    site.serve("/mcp", 'data: {"error": {"code": 1, "message": "sk-never-shown"}}\n\n', "text/event-stream")
    with pytest.raises(ToolError, match=r"^Search error \(1\): \*\*\*$"):
        await search(ws, "two")
    site.serve("/mcp", answer("you sent sk-never-shown"), "text/event-stream")
    assert (await search(ws, "three")).output == "you sent ***"


@pytest.mark.parametrize("where", ["head", "body"])
@pytest.mark.anyio
async def test_it_ends_in_time(ws: Workspace, site: Site, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    @site.on("/mcp")
    async def slow(_: Request, to: Connection) -> None:
        if where == "body":
            await to.head(content_type="text/event-stream")
            for _ in range(300):
                await to.send(b": wait\n\n")
                await asyncio.sleep(0.1)
        await asyncio.sleep(30)

    assert websearch.TIMEOUT == 25
    monkeypatch.setattr(websearch, "TIMEOUT", 0.6)
    with pytest.raises(ToolError, match=r"^Search request timed out$"):
        await search(ws)


@pytest.mark.anyio
async def test_without_a_network_the_error_is_clear_and_quick(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", offline)
    monkeypatch.delenv("OPENCODE_EXA_URL", raising=False)
    with pytest.raises(exa.ExaUnreachableError, match=r"^Search error: mcp\.exa\.ai can't be reached\. .*Temporary"):
        await search(ws)
    monkeypatch.setenv("OPENCODE_EXA_URL", "http://127.0.0.1:9/mcp")
    with pytest.raises(exa.ExaUnreachableError, match=r"Unable to connect"):
        await search(ws)


@pytest.mark.anyio
async def test_the_ask(project: Path, site: Site, tmp_path: Path, approver: Approver) -> None:
    async with Workspace(project, {"permission": "ask"}, data_dir=tmp_path / "data", approve=approver) as ws:
        await search(ws, "a b", num_results=2, type="fast")
        await search(ws)
        [decision] = await ws.dry_run("websearch", {"query": "x"})
        assert (decision.permission, decision.action) == ("websearch", "ask")
    first, second = approver.named("websearch")
    assert (first.patterns, first.always) == (["a b"], ["*"])
    assert first.metadata == {"query": "a b", "numResults": 2, "type": "fast"}
    assert second.metadata == {"query": "snow"}
    assert len(site.requests) == 2
    async with Workspace(project, {"permission": {"websearch": "deny"}}, data_dir=tmp_path / "data") as ws:
        with pytest.raises(PermissionDeniedError):
            await search(ws)


@pytest.mark.parametrize(
    "wrong", [{}, {"query": 3}, {"query": "x", "type": "slow"}, {"query": "x", "numResults": "many"}]
)
@pytest.mark.anyio
async def test_arguments_that_do_not_fit(ws: Workspace, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await ws.call("websearch", wrong)


@pytest.mark.anyio
async def test_who_is_offered_it_and_what_it_says_of_the_year(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def offered(ws: Workspace, model: str) -> str:
        return next((b.description for b in await ws.registry.tools(model) if b.id == "websearch"), "")

    for name in ("OPENCODE_ENABLE_EXA", "OPENCODE_EXPERIMENTAL_EXA", "OPENCODE_EXPERIMENTAL"):
        monkeypatch.delenv(name, raising=False)
    async with Workspace(project, data_dir=tmp_path / "data") as ws:
        assert await offered(ws, "anthropic:claude") == ""
        text = await offered(ws, "opencode:big-pickle")
        assert f"This year is {datetime.now().astimezone().year}" in text
        assert "{{" not in text
    monkeypatch.setenv("OPENCODE_ENABLE_EXA", "1")
    async with Workspace(project, data_dir=tmp_path / "data") as ws:
        assert await offered(ws, "anthropic:claude")
