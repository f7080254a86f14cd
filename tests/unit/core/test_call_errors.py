"""What breaks Python or would fill a screen becomes an error of the call, with its row in the store."""

from __future__ import annotations

from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError, ToolError, Workspace, tool
from opencode_jupyter.core.call import By
from opencode_jupyter.core.call_state import Failed
from tests.support.workspaces import OpenWorkspace


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["user", "python", "model"])
async def test_what_breaks_python_becomes_an_error_with_its_row(workspace: Workspace, by: By) -> None:
    @tool
    async def closes() -> str:
        """Raise what closes generators."""
        raise GeneratorExit

    @tool
    async def recurses(n: int = 0) -> str:
        """Call itself."""
        return endless(n)

    def endless(n: int) -> str:
        return endless(n + 1)

    @tool
    async def takes(value: Any) -> str:
        """Take anything."""
        return "taken"

    circle: list[Any] = []
    circle.append(circle)
    cases: list[tuple[str, dict[str, Any], type[Exception] | None]] = [
        ("closes", {}, ToolError),
        ("recurses", {}, RecursionError),
        ("takes", {"value": nested(100_000)}, InvalidArgumentsError),
        ("takes", {"value": circle}, InvalidArgumentsError),
        ("takes", {"value": nested(100)}, None),
    ]
    assert workspace.store is not None
    for function in (closes, recurses, takes):
        workspace.registry.register(function)
    for name, arguments, error in cases:
        call = workspace.start(name, arguments, by=by)
        if error is None:
            await call.run()
        else:
            with pytest.raises(error):
                await call.run()
        [state] = [p["state"] for p in await workspace.store.parts() if p["id"] == call.part.id]
        assert state["status"] == ("completed" if error is None else "error")


@pytest.mark.anyio
async def test_errors_do_not_echo_a_megabyte(ws: Workspace) -> None:
    big = "x" * 1_000_000
    lines = "some words\n" * 100_000

    @tool
    async def fails(text: str) -> str:
        """Raise an error that repeats what it was given."""
        raise ValueError(text)

    ws.registry.register(fails)
    for name, arguments in [
        (big, {}),
        ("read", {"filePath": big}),
        ("read", {"filePath": "/" + "a/" * 400_000}),
        ("skill", {"name": lines}),
        ("fails", {"text": big}),
        ("fails", {"text": lines}),
    ]:
        call = ws.start(name, arguments, by="user")
        with pytest.raises((ToolError, ValueError)):
            await call.run()
        assert isinstance(call.part.state, Failed)
        assert len(call.part.state.error) < 25_000
