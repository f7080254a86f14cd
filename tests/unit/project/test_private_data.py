"""What this package keeps is readable only by the user, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from opencode_jupyter import Workspace, tool
from opencode_jupyter.agent.snapshots import Snapshots
from opencode_jupyter.mcp.tokens import StoredLogin, TokenStore
from tests.support.repository import repository
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
KEPT = {"audit.jsonl", "code-index", "mcp-auth.json", "opencode.db", "snapshot", "tool-output", "trust.json", "undo"}
"""What the promise names, but for skills, which are public; `temporaries` is beside it."""


@tool
def long() -> str:
    """Return more than is shown."""
    return "line\n" * 5000


@pytest.fixture(autouse=True)
def widest_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def fill(project: Path, data_dir: Path | None) -> Path:
    """Have every kind of data kept; returns the data folder."""
    config = {"permission": {"codesearch": "allow", "edit": "allow"}}
    async with Workspace(project, config, data_dir) as ws:
        ws.registry.register(long)
        (project / "opencode.json").write_text('{"formatter": {"x": {"command": ["x"], "extensions": [".x"]}}}')
        (project / "a.py").write_text("def add(a, b):\n    return a + b\n")
        ws.reload_config()
        ws.trust_project()
        await ws.call("long")
        await ws.call("read", {"filePath": "a.py"})
        await ws.call("write", {"filePath": "a.py", "content": "def add(a):\n    return a\n"})
        await ws.call("codesearch", {"query": "add", "tokensNum": 1000})
        assert await ws.service(Snapshots).track() is not None
        TokenStore(ws.data_dir, keyring=None).save("s", "http://localhost/", StoredLogin(tokens={"access_token": "x"}))
        return ws.data_dir


def check_contents(data_dir: Path) -> None:
    assert {path.name for path in data_dir.iterdir()} >= KEPT
    for path in data_dir.iterdir():
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


async def test_a_new_data_folder_is_readable_only_by_the_user(tmp_path: Path) -> None:
    data_dir = await fill(repository(tmp_path / "project"), tmp_path / "share" / "data")
    check_contents(data_dir)
    assert (mode(data_dir), mode(data_dir.parent)) == (0o700, 0o700)


async def test_the_users_data_folder_is_closed_if_others_could_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "opencode-jupyter"
    folder.mkdir(mode=0o755)
    assert await fill(repository(tmp_path / "project"), None) == folder
    check_contents(folder)
    assert mode(folder) == 0o700


async def test_a_folder_that_is_given_keeps_its_mode_and_shows_others_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    await fill(repository(tmp_path / "project"), folder)
    check_contents(folder)
    assert mode(folder) == 0o755


async def test_a_plan_that_is_the_first_thing_kept_makes_no_open_folder(
    open_workspace: OpenWorkspace, tmp_path: Path
) -> None:
    config = {"permission": {"edit": "allow", "external_directory": "allow"}}
    data_dir = tmp_path / "data"
    ws = await open_workspace(config, data_dir=data_dir, store=False)
    ws.permissions.approve = lambda request: "once"
    await ws.call("write", {"filePath": str(data_dir / "plans" / "a.md"), "content": "# A\n"})
    assert mode(data_dir) == 0o700
