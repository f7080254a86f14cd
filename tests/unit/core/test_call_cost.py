"""What one call leaves and how often it asks the file system; `make bench` counts the functions that it runs."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace, tool
from opencode_jupyter.core import registry
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.errors import UnknownToolError
from opencode_jupyter.core.tool import Tool
from opencode_jupyter.core.tool_source import Rank, Unavailable
from tests.support.workspaces import OpenWorkspace


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, tmp_path: Path) -> Workspace:
    project = tmp_path / "deep" / "in" / "a" / "project"
    project.mkdir(parents=True)
    workspace = await open_workspace({}, directory=project, store=False)
    workspace.registry.register(add)
    for number in range(5):
        await workspace.call("add", {"a": -number, "b": 2})
    return workspace


@pytest.mark.anyio
async def test_a_call_leaves_nothing_for_the_garbage_collector(ws: Workspace) -> None:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for number in range(20):
            await ws.call("add", {"a": number, "b": 2})
        gc.collect()
        # other tests' threads may leave garbage of theirs meanwhile
        ours = [item for item in gc.garbage if isinstance(item, Call) and item.part.tool == "add"]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not ours, "what a call made refers to itself in a circle"


class Source:
    """A place that tools come from, which counts how often it is asked."""

    rank = Rank.MCP

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.asked = 0

    def tools(self) -> list[Tool]:
        return []

    def unavailable(self) -> list[Unavailable]:
        return []

    def is_fresh(self, tool_id: str | None) -> bool:
        self.asked += 1
        return True

    async def prepare(self, tool_id: str | None, call: Call | None) -> None:
        raise AssertionError("it was settled")


@pytest.mark.anyio
async def test_quiet_sources_are_asked_once_for_many_calls(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FRESH_FOR", 3600.0)
    source = Source(quiet=True)
    ws.registry.add_source(source)

    async def questions(name: str = "add", **options: Any) -> int:
        before = source.asked
        with contextlib.suppress(UnknownToolError):
            await ws.call(name, {"a": before, "b": 2}, **options)
        return source.asked - before

    assert await questions() > 0
    assert await questions() == 0
    assert await questions("nothing_of_that_name") > 0, "a source may have it by now"
    assert await questions(by="user") > 0, "a person's call sees everything as it is"
    assert await questions() == 0
    ws.registry.unregister("something")
    assert await questions() > 0, "what there is has changed"
    assert await questions() == 0
    ws.reload_config()
    assert await questions() > 0, "another configuration"
    source.quiet = False
    ws.registry.changed()
    assert await questions() > 0
    assert await questions() > 0, "it has something, which may change at any moment"


@pytest.mark.anyio
async def test_most_calls_ask_the_file_system_nothing(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []
    real = os.stat

    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        paths.append(os.fspath(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    spent = []
    for number in range(100):
        before = len(paths)
        await ws.call("add", {"a": number, "b": 2})
        spent.append(len(paths) - before)
    assert sorted(spent)[50] == 0, spent


@pytest.mark.anyio
async def test_a_persons_call_looks_at_everything(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: set[str] = set()
    real = os.stat

    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        paths.add(os.fspath(path))
        return real(path, *arguments, **options)

    await ws.call("add", {"a": 1, "b": 2})
    monkeypatch.setattr(os, "stat", stat)
    await ws.call("add", {"a": 2, "b": 2}, by="user")
    assert str(ws.directory / ".opencode" / "plugin") in paths
