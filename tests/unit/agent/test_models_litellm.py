"""A LiteLLM proxy refuses a history with tool calls and no tools, so a placeholder tool is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.models import resolve
from opencode_jupyter.agent.turns import CallPiece, ResultPiece, TextPiece, Turn
from tests.support import models

pytestmark = pytest.mark.anyio
CALLED = (
    models.user(),
    Turn("assistant", (CallPiece("call_1", "read", {"filePath": "a"}),), ("p", "m")),
    Turn("tool", (ResultPiece("call_1", "read", "hello"),)),
    models.user("And now?"),
)


async def names(folder: Path, provider: str, model: str, options: dict[str, Any], *turns: Turn, **more: Any) -> Any:
    with models.server("openai", [{"text": "fine"}]) as server:
        config = {"provider": {provider: models.entry("openai", server.url, options=options)}}
        async with Workspace(folder, config, data_dir=folder / "data", store=False) as workspace:
            await models.collect(await resolve(workspace, f"{provider}:{model}"), models.request(*turns, **more))
        (request,) = server.requests
        assert "litellmProxy" not in request.body
        return [tool["function"]["name"] for tool in request.body.get("tools", ())]


@pytest.mark.parametrize(
    ("provider", "model", "options"),
    [("litellm", "m", {}), ("p", "LiteLLM-m", {}), ("p", "m", {"litellmProxy": True})],
)
async def test_a_proxy_gets_the_placeholder(tmp_path: Path, provider: str, model: str, options: dict[str, Any]) -> None:
    assert await names(tmp_path, provider, model, options, *CALLED, tools=()) == ["_noop"]


async def test_nobody_else_gets_it(tmp_path: Path) -> None:
    assert await names(tmp_path, "litellm", "m", {}, TEXT, tools=()) == []
    assert await names(tmp_path, "litellm", "m", {}, *CALLED) == ["read", "grep"]
    assert await names(tmp_path, "p", "m", {"litellmProxy": False}, *CALLED, tools=()) == []


TEXT = Turn("user", (TextPiece("go"),))
