"""What one call costs, counted and not timed: how many functions it runs, how often it asks the file system."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from opencode_jupyter import Workspace, tool

MOST = 190
"""Functions, Python's and C's; 148 when this was written (Python 3.11), 215 before calls in a row looked at plugins'
folders together."""


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@pytest.fixture
async def ws(tmp_path: Path) -> AsyncIterator[Workspace]:
    project = tmp_path / "deep" / "in" / "a" / "project"
    project.mkdir(parents=True)
    async with Workspace(project, data_dir=tmp_path / "data", store=False) as workspace:
        workspace.registry.register(add)
        for number in range(5):
            await workspace.call("add", {"a": -number, "b": 2})
        yield workspace


@pytest.mark.anyio
async def test_a_call_runs_few_functions(ws: Workspace) -> None:
    counts: list[int] = []

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            counts[-1] += 1

    for number in range(30):
        counts.append(0)
        sys.setprofile(count)
        try:
            await ws.call("add", {"a": number, "b": 2})
        finally:
            sys.setprofile(None)
    assert min(counts) <= MOST, "the pipeline got longer: is every step of it needed for every call?"


@pytest.mark.anyio
async def test_most_calls_ask_the_file_system_nothing(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = os.stat

    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        asked.append(os.fspath(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", stat)
    spent = []
    for number in range(100):
        before = len(asked)
        await ws.call("add", {"a": number, "b": 2})
        spent.append(len(asked) - before)
    assert sorted(spent)[50] == 0, spent


@pytest.mark.anyio
async def test_a_persons_call_looks_at_everything(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    real = os.stat

    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        asked.add(os.fspath(path))
        return real(path, *arguments, **options)

    await ws.call("add", {"a": 1, "b": 2})
    monkeypatch.setattr(os, "stat", stat)
    await ws.call("add", {"a": 2, "b": 2}, by="user")
    assert str(ws.directory / ".opencode" / "plugin") in asked
