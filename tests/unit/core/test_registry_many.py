"""Hundreds of tools: what is done for each of them, counted and not timed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from opencode_jupyter import Tool, Workspace
from opencode_jupyter.core import schema
from opencode_jupyter.core.tool import Definition, tool
from opencode_jupyter.sources.tool_file_source import FileTools
from tests.support.many_tools import COUNT, make_tools, source_of
from tests.support.workspaces import OpenWorkspace

MODEL, AGENT = "anthropic:claude-sonnet-4-5", "build"


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    (project / ".git").mkdir()
    workspace = await open_workspace({}, store=False)
    for entry in make_tools():
        workspace.registry.register(entry)
    return workspace


@pytest.mark.anyio
async def test_schemas_are_made_once_for_hundreds_of_tools(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[type[BaseModel]] = []
    real = schema._make

    def make(model: type[BaseModel]) -> dict[str, Any]:
        models.append(model)
        return real(model)

    monkeypatch.setattr(schema, "_make", make)
    for entry in make_tools():  # anew, in the place of those that are there: defining one makes its schema
        ws.registry.register(entry)
    first = {entry.id: entry.parameters for entry in await ws.registry.tools(MODEL, AGENT)}
    assert COUNT <= len(models) <= len(first) and len(set(models)) == len(models)
    before = len(models)
    first["many_7"]["properties"].clear()  # whoever is given a schema may change it
    for agent in (AGENT, "plan"):
        again = {entry.id: entry.parameters for entry in await ws.registry.tools(MODEL, agent)}
        assert list(again["many_7"]["properties"]) == ["path", "count_7", "names"]
    assert len(models) == before


@pytest.mark.anyio
async def test_no_task_is_made_for_a_tool_that_says_the_same_to_everyone(ws: Workspace) -> None:
    await ws.registry.tools(MODEL, AGENT)
    tasks: list[Coroutine[Any, Any, Any]] = []

    def factory(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        tasks.append(coro)
        return asyncio.Task(coro, loop=loop, **options)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)  # type: ignore[arg-type]
    try:
        offered = await ws.registry.tools(MODEL, AGENT)
    finally:
        loop.set_task_factory(None)
    dynamic = sum(entry.static is None for entry in ws.registry.offered(MODEL))
    assert len(offered) > COUNT and len(tasks) <= dynamic + 5 < 30


@pytest.mark.anyio
async def test_those_that_depend_on_the_agent_are_still_asked_each_time(ws: Workspace) -> None:
    asked: list[str | None] = []

    def describe(context: Any) -> Definition:
        asked.append(context.agent.name)
        return Definition(f"for {context.agent.name}", {}, lambda arguments, ctx: "")

    ws.registry.register(Tool.define("told", describe))
    for agent in ("build", "plan"):
        tools = {entry.id: entry for entry in await ws.registry.tools(MODEL, agent)}
        assert tools["told"].description == f"for {agent}"
    assert asked == ["build", "plan"]


@pytest.mark.anyio
async def test_a_definition_hook_sees_every_tool_and_leaves_the_definitions_alone(ws: Workspace) -> None:
    seen: list[str] = []

    def hook(input: dict[str, Any], output: dict[str, Any]) -> None:
        seen.append(input["toolID"])
        output["description"] += "!"

    end = ws.hooks.add("tool.definition", hook)
    hooked = {entry.id: entry for entry in await ws.registry.tools(MODEL, AGENT)}
    end()
    plain = {entry.id: entry for entry in await ws.registry.tools(MODEL, AGENT)}
    assert sorted(seen) == sorted(hooked) and hooked["many_3"].description == plain["many_3"].description + "!"


@pytest.mark.anyio
async def test_the_later_of_two_tools_with_one_id_is_offered(ws: Workspace) -> None:
    @tool("many_3")
    async def other() -> str:
        """Another."""
        return ""

    ws.registry.register(other)
    tools = [entry for entry in await ws.registry.tools(MODEL, AGENT) if entry.id == "many_3"]
    assert [entry.description for entry in tools] == ["Another."]


def test_a_first_look_at_hundreds_of_files_asks_once_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, folder = tmp_path / "project", tmp_path / "project" / ".opencode" / "tool"
    (project / ".git").mkdir(parents=True)
    folder.mkdir(parents=True)
    for number in range(COUNT):
        (folder / f"many_{number}.py").write_text(source_of(number))
    workspace = Workspace(project, data_dir=tmp_path / "data", store=False)
    asked: list[str] = []

    def noted(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def ask(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
            asked.append(os.fspath(path))
            return real(path, *arguments, **options)

        return ask

    monkeypatch.setattr(os, "stat", noted(os.stat))
    monkeypatch.setattr(os, "lstat", noted(os.lstat))
    files = next(source for source in workspace.registry.sources if isinstance(source, FileTools))
    assert not files.is_fresh(None)
    assert len([path for path in asked if "many_" in path]) == COUNT
    assert len(asked) < COUNT + 150, "folders are looked at once, however many files stand in them"
    labels = {entry.label for entry in files.files}
    assert labels == {f".opencode/tool/many_{number}.py" for number in range(COUNT)}
    workspace.close()
