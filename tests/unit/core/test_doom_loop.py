"""The guard against repeated calls: which ones are a loop, and who is asked."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import PermissionRejectedError, Workspace, tool
from opencode_jupyter.core import doom_loop


@tool
async def echo(text: str, times: int = 1) -> str:
    """Repeat a text."""
    return text * times


def asking(tmp_path: Path, approve: Any) -> Workspace:
    workspace = Workspace(tmp_path, data_dir=tmp_path / "data", approve=approve)
    workspace.registry.register(echo)
    return workspace


@pytest.mark.anyio
async def test_three_same_calls_ask_for_the_doom_loop(tmp_path: Path) -> None:
    permissions: list[str] = []

    def approve(request: Any) -> str:
        permissions.append(request.permission)
        return "reject"

    async with asking(tmp_path, approve) as ws:
        await ws.call("echo", {"text": "x", "times": 1})
        await ws.call("echo", {"times": 1, "text": "x"})  # the order of keys does not matter
        with pytest.raises(PermissionRejectedError):
            await ws.call("echo", {"text": "x", "times": 1})
    assert permissions == ["doom_loop"]


@pytest.mark.anyio
async def test_two_calls_in_turn_ask_too_and_different_ones_do_not(tmp_path: Path) -> None:
    permissions: list[str] = []

    def approve(request: Any) -> str:
        permissions.append(request.permission)
        return "once"

    async with asking(tmp_path, approve) as ws:
        for i in range(20):
            await ws.call("echo", {"text": str(i)})
        assert permissions == []
        for text in "abab":
            await ws.call("echo", {"text": text})
    assert permissions == ["doom_loop"]


def test_what_python_takes_for_equal_is_not_the_same_call() -> None:
    def loops(*values: Any) -> bool:
        return doom_loop.is_looping(deque(doom_loop.key("t", {"x": value}) for value in values))

    assert loops(1, 1, 1) and loops(True, True, True) and loops("1", "1", "1") and loops([1], [1], [1])
    assert loops(1, 1.0, 1) and loops([{"y": 1}], [{"y": 1.0}], [{"y": 1}])  # JavaScript has one kind of number
    assert not loops(1, True, 1.0) and not loops(1.5, 1, 1.5) and not loops(1, 1, True) and not loops([1], [1], [True])
    assert loops(1, True, 1, True) and not loops(1, 2, True, 2) and not loops(2, 1, 2, True)


def test_arguments_that_change_afterwards_are_no_loop() -> None:
    flat: dict[str, Any] = {"x": 0}
    deep: dict[str, Any] = {"y": [0]}
    for arguments, change in ((flat, lambda n: flat.update(x=n)), (deep, deep["y"].append)):
        recent = deque([doom_loop.key("t", arguments)])
        for number in (1, 2):
            change(number)
            recent.append(doom_loop.key("t", arguments))
        assert not doom_loop.is_looping(recent)


@pytest.mark.anyio
async def test_a_person_may_repeat_a_cell(tmp_path: Path) -> None:
    async with asking(tmp_path, lambda request: "reject") as ws:
        for _ in range(5):
            await ws.call("echo", {"text": "x"}, by="user")
