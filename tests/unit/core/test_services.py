"""What tools keep from call to call belongs to the workspace and ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import ToolError


class Plain:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Waiting(Plain):
    async def close(self) -> None:  # type: ignore[override]
        self.closed += 1


class Broken(Plain):
    def close(self) -> None:
        raise RuntimeError("will not")


@pytest.mark.anyio
async def test_one_of_a_kind_closed_with_the_workspace(tmp_path: Path) -> None:
    async with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        broken, plain, waiting = ws.service(Broken), ws.service(Plain), ws.service(Waiting)
        assert ws.service(Plain) is plain
        assert plain.workspace is ws
        assert broken.closed == plain.closed == waiting.closed == 0
    assert (plain.closed, waiting.closed) == (1, 1)
    with pytest.raises(ToolError, match="closed"):
        ws.service(Plain)


def test_closing_without_await(tmp_path: Path) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        plain, waiting = ws.service(Plain), ws.service(Waiting)
    assert (plain.closed, waiting.closed) == (1, 1)
