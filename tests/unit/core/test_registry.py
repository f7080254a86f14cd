"""Order, replacing, filters and schemas of the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Tool, ToolContext, Workspace, tool
from opencode_jupyter.core.context import InitContext
from opencode_jupyter.core.registry import ORDER, split_model
from opencode_jupyter.core.tool import Definition
from tests.support.workspaces import OpenWorkspace

SCHEMAS = Path(__file__).parents[2] / "data" / "tool_schemas_1.1.65.json"


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


@tool
def mine(x: int = 1) -> str:
    """Mine."""
    return str(x)


@pytest.mark.anyio
async def test_order_is_opencodes_and_custom_tools_come_last(ws: Workspace) -> None:
    ws.registry.register(mine)
    ids = await ws.registry.ids()
    assert ids[-1] == "mine"
    known = [i for i in ids if i in ORDER]
    assert known == sorted(known, key=ORDER.index)
    recorded = json.loads(SCHEMAS.read_text())["order"]["for most models"]
    offered = [b.id for b in await ws.registry.tools("anthropic:claude", "build") if b.id in recorded]
    assert offered == [i for i in recorded if i in offered]


@pytest.mark.anyio
async def test_register_replaces_and_hides_a_builtin(ws: Workspace) -> None:
    ws.registry.register(mine)

    @tool("mine")
    def replacement() -> str:
        return "other"

    ws.registry.register(replacement)
    assert (await ws.registry.ids()).count("mine") == 1
    assert (await ws.call("mine")).output == "other"

    @tool("read")
    def own_read(file_path: str = "") -> str:
        return "own"

    ws.registry.register(own_read)
    assert (await ws.call("read", {})).output == "own"
    assert ws.registry.unregister("read")
    assert not ws.registry.unregister("read")
    assert ws.registry.get("read") is not own_read


@pytest.mark.parametrize("wrong", [3, "name", int, None])
def test_register_takes_tools_and_functions_only(tmp_path: Path, wrong: Any) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "d", store=False) as ws, pytest.raises(TypeError, match="register"):
        ws.registry.register(wrong)


@pytest.mark.anyio
async def test_filters_by_model(ws: Workspace) -> None:
    async def offered(model: str) -> set[str]:
        return {b.id for b in await ws.registry.tools(model)}

    assert {"edit", "write"} <= await offered("openai:gpt-4o")
    assert {"edit", "write"} <= await offered("openai/gpt-oss-120b")
    assert not {"edit", "write"} & await offered("openai:gpt-5")


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("openai:gpt-5", ("openai", "gpt-5")),
        ("openrouter/z/glm:free", ("openrouter", "z/glm:free")),
        ({"providerID": "a", "modelID": "b"}, ("a", "b")),
        ("bare", ("", "bare")),
        (None, ("", "")),
    ],
)
def test_names_of_models(model: Any, parts: tuple[str, str]) -> None:
    assert split_model(model) == parts


@pytest.mark.anyio
async def test_tools_are_initialised_for_the_agent_all_at_once_and_hooks_see_them(ws: Workspace) -> None:
    async def init(ctx: InitContext) -> Definition:
        assert ctx.agent is not None
        return Definition(f"for {ctx.agent.name}", {"type": "object"}, lambda a, c: "")

    ws.registry.register(Tool.define("dynamic", init))

    def shout(hook_input: dict[str, Any], output: dict[str, Any]) -> None:
        if hook_input["toolID"] == "dynamic":
            output["description"] = output["description"].upper()

    ws.hooks.add("tool.definition", shout)
    [bound] = [b for b in await ws.registry.tools("a:b", "plan") if b.id == "dynamic"]
    assert bound.description == "FOR PLAN"


def without_descriptions(node: Any) -> Any:
    if isinstance(node, dict):
        entries = {k: v for k, v in node.items() if k != "$schema" and not (k == "description" and isinstance(v, str))}
        return {k: without_descriptions(v) for k, v in entries.items()}
    return [without_descriptions(v) for v in node] if isinstance(node, list) else node


@pytest.mark.anyio
async def test_schemas_are_those_that_opencode_sends(ws: Workspace) -> None:
    recorded = json.loads(SCHEMAS.read_text())["parameters"]
    for bound in await ws.registry.tools("anthropic:claude"):
        if bound.id in recorded:
            assert without_descriptions(bound.parameters) == recorded[bound.id], bound.id
        assert bound.description


@pytest.mark.anyio
async def test_a_function_can_take_the_context(ws: Workspace) -> None:
    @tool
    def who(ctx: ToolContext) -> str:
        return f"{ctx.agent} {ctx.directory == ws.directory}"

    ws.registry.register(who)
    assert (await ws.call("who", agent="plan")).output == "plan True"


@pytest.mark.anyio
async def test_paths_without_git_start_at_the_folder(ws: Workspace) -> None:
    assert ws.relative(ws.directory / "a" / "b.txt") == "a/b.txt"
    assert ws.relative(ws.directory) == ""
    assert ws.relative("/elsewhere/x") == "/elsewhere/x"
    (ws.directory / ".git").mkdir()
    ws.change_directory(ws.directory)
    assert ws.relative("/elsewhere/x").startswith("../")


@pytest.mark.anyio
@pytest.mark.parametrize(("client", "offered"), [(None, True), ("desktop", True), ("acp", False)])
async def test_a_model_may_ask_where_somebody_can_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str | None, offered: bool
) -> None:
    monkeypatch.delenv("OPENCODE_ENABLE_QUESTION_TOOL", raising=False)
    monkeypatch.delenv("OPENCODE_CLIENT", raising=False)
    if client is not None:
        monkeypatch.setenv("OPENCODE_CLIENT", client)
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        assert ("question" in {bound.id for bound in await ws.registry.tools()}) is offered
