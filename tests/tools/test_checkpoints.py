"""Jupyter's checkpoints are left out of searches that do not name them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from opencode_jupyter.tools import ripgrep
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
COPY = ".ipynb_checkpoints/a-checkpoint.py"


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
async def test_checkpoints_are_found_only_by_name(
    open_workspace: OpenWorkspace, project: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "python":
        monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    for name in ("a.py", COPY, f"sub/{COPY}"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("needle\n")
    ws = await open_workspace({})
    for tool, arguments in (
        ("glob", {"pattern": "**/*.py"}),
        ("grep", {"pattern": "needle"}),
        ("grep", {"pattern": "needle", "include": "*.py"}),
        ("list", {}),
    ):
        result = await ws.call(tool, arguments)
        assert [row["path"] for row in result.records or []] == [str(project / "a.py")], (tool, arguments)
    for tool, arguments in (
        ("glob", {"pattern": "**/.ipynb_checkpoints/*.py"}),
        ("glob", {"pattern": "*.py", "path": ".ipynb_checkpoints"}),
        ("grep", {"pattern": "needle", "path": ".ipynb_checkpoints"}),
    ):
        result = await ws.call(tool, arguments)
        assert str(project / COPY) in [row["path"] for row in result.records or []], (tool, arguments)


async def test_the_time_of_a_file_is_a_timestamp(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    ws = await open_workspace({}, directory=tmp_path)
    result = await ws.call("glob", {"pattern": "*.py"})
    assert result.records is not None
    changed = result.records[0]["mtime"]
    assert isinstance(changed, datetime) and changed.tzinfo is not None
    assert changed.timestamp() == pytest.approx((tmp_path / "a.py").stat().st_mtime, abs=1e-5)
