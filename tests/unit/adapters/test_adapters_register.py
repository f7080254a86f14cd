"""Registering what is no tool of ours: dicts with a function, MCP tools with a session, lists of anything."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool
from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as McpToolError
from mcp.types import Tool as McpTool
from pydantic_ai import Tool as PydanticTool

from opencode_jupyter import InvalidArgumentsError, Tool, ToolContext, ToolError, ToolResult, Workspace, tool
from opencode_jupyter.adapters import adapt
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


# ---------------------------------------------------------------------- dicts


@pytest.mark.parametrize(
    "form",
    [
        {"type": "function", "function": {"name": "up", "description": "Counts.", "parameters": SCHEMA}},
        {"type": "function", "name": "up", "description": "Counts.", "parameters": SCHEMA},
        {"name": "up", "description": "Counts.", "input_schema": SCHEMA},
    ],
)
async def test_a_dict_with_its_function(ws: Workspace, form: dict[str, Any]) -> None:
    def up(n: int, ctx: ToolContext) -> dict[str, Any]:
        return {"n": n + 1, "agent": ctx.agent}

    registered = ws.registry.register(form, call=up)
    assert isinstance(registered, Tool) and registered.id == "up" and registered.static is not None
    assert registered.static.parameters == SCHEMA and registered.static.description == "Counts."
    assert (await ws.call("up", {"n": 1})).output == '{"n":2,"agent":"build"}'
    with pytest.raises(InvalidArgumentsError, match="expected number to be <=9"):
        await ws.call("up", {"n": 10})
    with pytest.raises(InvalidArgumentsError, match="expected number, received string"):
        await ws.call("up", {"n": "1"})


async def test_functions_of_every_colour(ws: Workspace) -> None:
    def form(name: str) -> dict[str, Any]:
        return {"name": name, "input_schema": SCHEMA}

    async def waits(n: int) -> list[dict[str, int]]:
        return [{"n": n}]

    def streams(n: int) -> Iterator[str]:
        yield from ("a" * n, "b")

    async def flows(n: int) -> AsyncIterator[str]:
        yield "c" * n
        yield "d"

    for fn in (waits, streams, flows):
        ws.registry.register(form(fn.__name__), call=fn)
    assert (await ws.call("waits", {"n": 1})).records == [{"n": 1}]
    assert (await ws.call("streams", {"n": 2})).output == "aab"
    assert (await ws.call("flows", {"n": 2})).output == "ccd"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"name": "x"}, "has a description but no function"),
        ({"type": "web_search"}, "one of the forms"),
        ({"function": {"parameters": {}}}, "one of the forms"),
        ({}, "one of the forms"),
        ({"name": " ", "call": 1}, "has a description but no function"),
    ],
)
async def test_dicts_that_are_no_tool(ws: Workspace, form: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ws.registry.register(form)


async def test_schemas_that_are_none(ws: Workspace) -> None:
    with pytest.raises(TypeError, match="type must be 'object', not 'string'"):
        ws.registry.register({"name": "x", "parameters": {"type": "string"}}, call=lambda: "")
    with pytest.raises(TypeError, match="a tool needs a name"):
        ws.registry.register({"name": " ", "parameters": {}}, call=lambda: "")


# ---------------------------------------------------------------------- MCP


def mcp_server() -> MCPServer:
    server = MCPServer("numbers")

    @server.tool()
    def double(n: int) -> str:
        """Double a number."""
        return str(2 * n)

    @server.tool()
    def fails(n: int) -> str:
        """Fail."""
        raise McpToolError("not today")

    return server


async def test_an_mcp_tool_with_its_session(ws: Workspace) -> None:
    async with Client(mcp_server()) as client:
        listed = (await client.list_tools()).tools
        registered = ws.registry.register(listed, session=client)
        assert [entry.id for entry in registered] == ["double", "fails"] and registered[0].external
        assert (await ws.call("double", {"n": 4})).output == "8"
        with pytest.raises(ToolError, match="not today"):
            await ws.call("fails", {"n": 1})
        with pytest.raises(InvalidArgumentsError, match="expected number, received undefined"):
            await ws.call("double", {})
        # a workspace with a loop of its own (a notebook's engine): the session is used on the one it lives on
        outcome = await asyncio.to_thread(lambda: asyncio.run(elsewhere(ws.directory, registered)))
        assert outcome == "10"


async def elsewhere(folder: Path, tools: list[Tool]) -> str:
    async with Workspace(folder, data_dir=folder / "elsewhere", store=False) as ws:
        ws.registry.register(tools)
        return (await ws.call("double", {"n": 5})).output


async def test_an_mcp_tool_alone_is_a_description(ws: Workspace) -> None:
    with pytest.raises(TypeError, match=r"register\(tool, session=\.\.\.\)"):
        ws.registry.register(McpTool(name="x", input_schema={"type": "object"}))


async def test_a_session_whose_loop_is_held_or_gone_is_said_so(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from opencode_jupyter.adapters import mcp_tool

    monkeypatch.setattr(mcp_tool, "ANSWER", 0.05)
    blocked, home = threading.Event(), threading.Event()
    registered: list[Tool] = []

    class Session:
        async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            raise AssertionError("never reached")

    async def other() -> None:
        form = McpTool(name="far", input_schema={"type": "object"})
        registered.append(mcp_tool.tool_of(form, Session()))  # type: ignore[arg-type]
        blocked.set()
        home.wait(20)  # the loop is held, as by a cell that blocks

    thread = threading.Thread(target=lambda: asyncio.run(other()))
    thread.start()
    try:
        assert await asyncio.to_thread(blocked.wait, 20)
        ws.registry.register(registered)
        with pytest.raises(ToolError, match="the cell blocks while it waits"):
            await ws.call("far")
    finally:
        home.set()
        await asyncio.to_thread(thread.join, 20)
    with pytest.raises(ToolError, match="event loop of this MCP session has ended"):
        await ws.call("far")


# ---------------------------------------------------------------------- lists, options, imports


async def test_a_list_of_everything(ws: Workspace) -> None:
    def plain(n: int) -> str:
        """Plain."""
        return str(n)

    @tool
    def ours() -> ToolResult:
        return ToolResult(output="ours")

    @langchain_tool
    def chain(n: int) -> str:
        """Chain."""
        return str(n)

    def agentic(n: int) -> str:
        """Agentic."""
        return str(n)

    registered = ws.registry.register([plain, ours, chain, PydanticTool(agentic)])
    assert [entry.id for entry in registered] == ["plain", "ours", "chain", "agentic"]
    assert [entry.source for entry in registered] == [__name__, __name__, "langchain", "pydantic-ai"]
    assert ws.registry.register([]) == []
    assert adapt(plain) is None


async def test_registering_again_replaces(ws: Workspace) -> None:
    for answer in ("one", "two"):

        @langchain_tool
        def say(answer: str = answer) -> str:
            """Say."""
            return answer

        ws.registry.register(say)
    assert (await ws.call("say")).output == "two"
    assert (await ws.registry.ids()).count("say") == 1


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (lambda n: n, {"deps": 1}, r"takes no deps= for function"),
        ({"name": "x"}, {"session": 1}, r"takes no session= for a dict; it takes call"),
        (PydanticTool(lambda: "", name="x"), {"call": 1}, r"takes no call= for a pydantic-ai tool; it takes deps"),
    ],
)
async def test_options_that_do_not_belong(ws: Workspace, source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ws.registry.register(source, **options)


def test_other_libraries_are_not_loaded_by_registering_functions() -> None:
    code = (
        "import sys, tempfile\n"
        "from opencode_jupyter import Workspace\n"
        "folder = tempfile.mkdtemp()\n"
        "def f(n: int) -> str: return str(n)\n"
        "with Workspace(folder, data_dir=folder + '/d', store=False) as ws:\n"
        "    ws.registry.register(f)\n"
        "    assert ws.tools.for_openai(names=['f']) and ws.tools.for_anthropic(names=['f'])\n"
        "print([m for m in ('langchain_core', 'pydantic_ai', 'jsonschema') if m in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr
