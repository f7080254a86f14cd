"""Hundreds of tools: what a model is offered of them, and how often their files are looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Tool, Workspace
from opencode_jupyter.core.tool import Definition, tool
from opencode_jupyter.sources.tool_files import FileTools
from tests.support.many_tools import COUNT, make_tools, source_of
from tests.support.workspaces import OpenWorkspace

MODEL, AGENT = "anthropic:claude-sonnet-4-5", "build"


@pytest.fixture(scope="module")
def tools() -> list[Tool]:
    """Made once: their schemas take most of the time."""
    return make_tools()


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path, tools: list[Tool]) -> Workspace:
    (project / ".git").mkdir()
    workspace = await open_workspace({}, store=False)
    for entry in tools:
        workspace.registry.register(entry)
    return workspace


@pytest.mark.anyio
async def test_whoever_is_given_a_schema_may_change_it(ws: Workspace) -> None:
    tools = {entry.id: entry for entry in await ws.registry.tools(MODEL, AGENT)}
    tools["many_7"].parameters["properties"].clear()
    for agent in (AGENT, "plan"):
        again = {entry.id: entry for entry in await ws.registry.tools(MODEL, agent)}
        assert list(again["many_7"].parameters["properties"]) == ["path", "count_7", "names"]


@pytest.mark.anyio
async def test_those_that_depend_on_the_agent_are_still_asked_each_time(ws: Workspace) -> None:
    agents: list[str | None] = []

    def describe(context: Any) -> Definition:
        agents.append(context.agent.name)
        return Definition(f"for {context.agent.name}", {}, lambda arguments, ctx: "")

    ws.registry.register(Tool.define("told", describe))
    for agent in ("build", "plan"):
        tools = {entry.id: entry for entry in await ws.registry.tools(MODEL, agent)}
        assert tools["told"].description == f"for {agent}"
    assert agents == ["build", "plan"]


@pytest.mark.anyio
async def test_a_definition_hook_sees_every_tool_and_leaves_the_definitions_alone(ws: Workspace) -> None:
    tool_ids: list[str] = []

    def hook(input: dict[str, Any], output: dict[str, Any]) -> None:
        tool_ids.append(input["toolID"])
        output["description"] += "!"

    end = ws.hooks.add("tool.definition", hook)
    hooked = {entry.id: entry for entry in await ws.registry.tools(MODEL, AGENT)}
    end()
    plain = {entry.id: entry for entry in await ws.registry.tools(MODEL, AGENT)}
    assert sorted(tool_ids) == sorted(hooked) and hooked["many_3"].description == plain["many_3"].description + "!"


@pytest.mark.anyio
async def test_the_later_of_two_tools_with_one_id_is_offered(ws: Workspace) -> None:
    @tool("many_3")
    async def replacement() -> str:
        """Another."""
        return ""

    ws.registry.register(replacement)
    tools = [entry for entry in await ws.registry.tools(MODEL, AGENT) if entry.id == "many_3"]
    assert [entry.description for entry in tools] == ["Another."]


def test_a_first_look_at_hundreds_of_files_asks_once_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, folder = tmp_path / "project", tmp_path / "project" / ".opencode" / "tool"
    (project / ".git").mkdir(parents=True)
    folder.mkdir(parents=True)
    for number in range(COUNT):
        (folder / f"many_{number}.py").write_text(source_of(number))
    workspace = Workspace(project, data_dir=tmp_path / "data", store=False)
    paths: list[str] = []

    def noted(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def record(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
            paths.append(os.fspath(path))
            return real(path, *arguments, **options)

        return record

    monkeypatch.setattr(os, "stat", noted(os.stat))
    monkeypatch.setattr(os, "lstat", noted(os.lstat))
    files = next(source for source in workspace.registry.sources if isinstance(source, FileTools))
    assert not files.is_fresh(None)
    assert len([path for path in paths if "many_" in path]) == COUNT
    assert len(paths) < COUNT + 150, "folders are looked at once, however many files stand in them"
    labels = {entry.label for entry in files.files}
    assert labels == {f".opencode/tool/many_{number}.py" for number in range(COUNT)}
    workspace.close()
