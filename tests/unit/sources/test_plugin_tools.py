"""Tools of plugins, in every form that one may have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import PermissionDeniedError, Workspace
from opencode_jupyter.core.errors import InvalidArgumentsError
from tests.support.plugin_folders import PluginFolders

pytestmark = pytest.mark.anyio

TOOLS = """
from pydantic import BaseModel, Field
from opencode_jupyter import Tool, tool
from opencode_jupyter.sources import PluginInput

@tool
async def original(n: int) -> str:
    "Doubles."
    return str(2 * n)

class Both(BaseModel):
    a: int
    b: int = Field(2, description="the other")

async def plugin(input: PluginInput):
    async def a_function(city: str, days: int = 1, *, ctx) -> str:
        "The weather."
        return f"{city} {days} {ctx.agent}"
    return {"tool": {
        "renamed": original,
        "function": a_function,
        "typed": {"description": "t", "args": {"n": int, "m": (int, 5), "k": Field(7, ge=0)},
                  "execute": lambda args, ctx: f"{args['n']} {args['m']} {args['k']}"},
        "raw": {"description": "r", "args": {"n": {"type": "integer"}}, "execute": lambda args, ctx: str(args["n"])},
        "bare": {"description": "b", "execute": lambda args, ctx: f"{args} {ctx.session_id[:4]} {ctx.directory.name}"},
        "model": {"description": "m", "parameters": Both, "execute": lambda args, ctx: str(args.a + args.b)},
        "rich": {"description": "x", "execute": lambda args, ctx: {"title": "T", "output": "O", "metadata": {"k": 1}}},
        "stream": {"description": "s", "args": {"n": int}, "execute": stream},
        "args_model": {"description": "s", "args": Both, "execute": lambda args, ctx: str(sorted(args.items()))},
        "asks": {"description": "a", "execute": asks},
    }}

def stream(args, context):
    for i in range(args["n"]):
        yield f"{i} {context.agent};"

async def asks(args, ctx):
    await ctx.ask("own_permission", ["this"])
    return "allowed"
"""


@pytest.fixture
async def tools(plugin_folders: PluginFolders) -> Any:
    plugin_folders.mine("kit", TOOLS)
    async with plugin_folders.open(config={"permission": {"own_permission": "deny"}}) as ws:
        yield ws


@pytest.mark.parametrize(
    ("name", "arguments", "output"),
    [
        ("renamed", {"n": 4}, "8"),
        ("function", {"city": "Bern"}, "Bern 1 build"),
        ("typed", {"n": "3"}, "3 5 7"),
        ("raw", {"n": 3}, "3"),
        ("bare", {}, "{} ses_ project"),
        ("model", {"a": 3}, "5"),
        ("rich", {}, "O"),
        ("stream", {"n": 2}, "0 build;1 build;"),
        ("args_model", {"a": 1}, "[('a', 1), ('b', 2)]"),
    ],
)
async def test_a_tool_in_each_form(tools: Workspace, name: str, arguments: dict[str, Any], output: str) -> None:
    result = await tools.call(name, arguments)
    assert result.output == output
    assert result.title == ("T" if name == "rich" else "")
    tool = tools.registry.get(name)
    assert tool is not None
    assert tool.source == "plugin kit"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("typed", {"n": "x"}), ("typed", {"n": 1, "k": -1}), ("raw", {}), ("raw", {"n": "x"}), ("model", {"b": 1})],
)
async def test_arguments_are_checked(tools: Workspace, name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"The {name} tool was called with invalid arguments"):
        await tools.call(name, arguments)


async def test_a_plugins_tool_may_ask(tools: Workspace) -> None:
    with pytest.raises(PermissionDeniedError):
        await tools.call("asks", {})


async def test_a_model_is_offered_plugins_tools_with_their_schema(tools: Workspace) -> None:
    offered = {tool.id: tool for tool in await tools.registry.tools("p:m", "build")}
    assert offered["raw"].parameters["properties"] == {"n": {"type": "integer"}}
    assert set(offered["typed"].parameters["properties"]) == {"n", "m", "k"}
    assert offered["typed"].parameters["required"] == ["n"]


async def test_a_long_output_is_cut_as_any_other(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("long", "def plugin(input): return {'tool': {'long': lambda: 'line\\n' * 5000}}\n")
    async with plugin_folders.open() as ws:
        result = await ws.call("long", {})
        assert result.truncated
        assert Path(str(result.output_path)).read_text().count("line") == 5000
