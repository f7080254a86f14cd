"""Rules about files match the path from the worktree and the absolute one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import PermissionDeniedError, ToolError
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout with a file, beside a home folder with a key."""
    home, folder = tmp_path / "home", tmp_path / "project"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("key\n")
    for name in ("HOME", "OPENCODE_TEST_HOME"):
        monkeypatch.setenv(name, str(home))
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("x = 1\n")
    (folder / "link").symlink_to(home / ".ssh")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


async def decides(project: Path, rules: dict[str, Any], tool: str, arguments: dict[str, Any]) -> str:
    """How a call ends under these rules."""
    config = {"permission": {"*": "allow", **rules}}
    async with Workspace(project, config, project.parent / "data") as ws:
        try:
            await ws.call(tool, arguments)
        except PermissionDeniedError:
            return "deny"
        except ToolError:
            return "failed"
        return "allow"


CALLS = {
    "read": ("read", {"filePath": "~/.ssh/id_rsa"}),
    "edit": ("write", {"filePath": "~/.ssh/new", "content": "x"}),
    "list": ("list", {"path": "~/.ssh"}),
    "glob": ("glob", {"pattern": "*", "path": "~/.ssh"}),
    "grep": ("grep", {"pattern": "key", "path": "~/.ssh"}),
    "lsp": ("lsp", {"operation": "hover", "filePath": "~/.ssh/id_rsa", "line": 1, "character": 1}),
}


@pytest.mark.parametrize("pattern", ["~/.ssh/*", "$HOME/.ssh/*"])
@pytest.mark.parametrize("permission", CALLS)
async def test_a_rule_for_the_home_folder_holds_in_a_git_project(project: Path, permission: str, pattern: str) -> None:
    tool, arguments = CALLS[permission]
    assert await decides(project, {permission: {pattern: "deny"}}, tool, arguments) == "deny"
    arguments = {
        key: value.replace("~/.ssh", "src").replace("id_rsa", "a.py") if isinstance(value, str) else value
        for key, value in arguments.items()
    }
    assert await decides(project, {permission: {pattern: "deny"}}, tool, arguments) != "deny"


@pytest.mark.parametrize("permission", ["list", "glob", "grep", "read"])
async def test_a_link_is_no_way_round_a_rule(project: Path, permission: str) -> None:
    tool, arguments = CALLS[permission]
    arguments = {key: value.replace("~/.ssh", "link") for key, value in arguments.items()}
    assert await decides(project, {permission: {"~/.ssh/*": "deny"}}, tool, arguments) == "deny"


async def test_a_rule_holds_for_a_project_that_is_opened_through_a_link(project: Path) -> None:
    opened = project.parent / "opened"
    opened.symlink_to(project)
    read: tuple[str, dict[str, Any]] = ("read", {"filePath": "src/a.py"})
    shell: tuple[str, dict[str, Any]] = ("bash", {"command": "cat src/a.py", "description": "Show the file"})
    for tool, arguments in (read, shell, ("grep", {"pattern": "x", "path": "src/a.py"})):
        for root, folder in ((project, opened), (opened, project)):
            permission = "grep" if tool == "grep" else "read"
            assert await decides(folder, {permission: {f"{root}/src/*": "deny"}}, tool, arguments) == "deny"
    rules = {"read": {f"{opened}/*": "deny", f"{project}/src/*": "allow"}}
    assert await decides(opened, rules, *read) == "allow"


@pytest.mark.parametrize("tool", ["read", "bash"])
async def test_two_stars_stand_for_any_folder_and_for_none(project: Path, tool: str) -> None:
    (project / "a.py").write_text("x = 1\n")
    for file in ("a.py", "src/a.py"):
        arguments = {"filePath": file} if tool == "read" else {"command": f"cat {file}", "description": "Show the file"}
        assert await decides(project, {"read": {"**/a.py": "deny"}}, tool, arguments) == "deny"
        assert await decides(project, {"read": {"**/b.py": "deny"}}, tool, arguments) == "allow"


@pytest.mark.parametrize("git", [True, False])
async def test_the_last_rule_wins_in_whichever_spelling(project: Path, git: bool) -> None:
    if not git:
        (project / ".git").rename(project.parent / "git")
    read: tuple[str, dict[str, Any]] = ("read", {"filePath": "src/a.py"})
    absolute = f"{project}/src/*"
    assert await decides(project, {"read": {absolute: "deny"}}, *read) == "deny"
    assert await decides(project, {"read": {absolute: "deny", "src/*": "allow"}}, *read) == "allow"
    assert await decides(project, {"read": {"src/*": "deny", absolute: "allow"}}, *read) == "allow"
    assert await decides(project, {"list": {"src": "deny"}}, "list", {"path": "src"}) == "deny"
    # the name of a folder above the project is not the project's
    assert await decides(project, {"read": {"*project*": "deny"}}, *read) == "allow"


async def test_requests_name_the_path_from_the_worktree(open_workspace: OpenWorkspace, project: Path) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request.to_wire())
        return "once"

    config = {"permission": {"read": {f"{project}/src/*": "ask"}}}
    ws = await open_workspace(config, data_dir=project.parent / "data", approve=approve)
    await ws.call("read", {"filePath": "src/a.py"})
    assert [wire["patterns"] for wire in requests] == [["src/a.py"]]


@pytest.fixture
def config_file(project: Path) -> Path:
    path = project / "opencode.json"
    path.write_text(
        '{"permission": {"read": {"./src/*": "deny", "src/*": "ask"}, "bash": {"./run *": "ask"}},\n'
        ' "agent": {"build": {"permission": {"edit": {"build/": "deny"}}}}}'
    )
    return path


async def test_a_pattern_that_can_never_match_is_warned_about(open_workspace: OpenWorkspace, config_file: Path) -> None:
    ws = await open_workspace({}, directory=config_file.parent, data_dir=config_file.parent.parent / "data")
    keys = [warning.key for warning in ws.config.warnings]
    assert keys == ["permission.read../src/*", "agent.build.permission.edit.build/"]
    assert "write 'src/*'" in str(ws.config.warnings[0])
