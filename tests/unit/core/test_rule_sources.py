"""Each rule knows the kind of place that it comes from, whatever its display text says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.permission.modes import set_mode
from opencode_jupyter.core.project_rules import file_of, without_project_rules
from opencode_jupyter.core.sessions import Session
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
AGENT = "---\ndescription: d\npermission:\n  sandbox: allow\n---\nhi\n"


def write(path: Path, permission: object, **more: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"permission": permission, **more}))


async def test_rules_of_files_arguments_and_people(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    write(home / ".config/opencode/opencode.json", {"one": "allow"})
    write(project / "opencode.json", {"two": "allow"}, agent={"build": {"permission": {"three": "allow"}}})
    extra_file = project / "named.json"
    write(extra_file, {"four": "allow"})
    monkeypatch.setenv("OPENCODE_CONFIG", str(extra_file))
    monkeypatch.setenv("OPENCODE_PERMISSION", '{"five": "allow"}')
    ws = await open_workspace({"permission": {"six": "allow"}}, trust=True)
    rules = {rule.permission: rule for rule in ws.agent("build").permission}
    sources = {name: rules[name].source for name in ("one", "two", "three", "four", "five", "six", "question")}
    assert sources == {
        "one": "config",
        "two": "project",
        "three": "project",
        "four": "project",
        "five": "config",
        "six": "config",
        "question": "default",
    }
    files = {name: file_of(rule) for name, rule in rules.items() if file_of(rule) is not None}
    assert files == {"two": project / "opencode.json", "four": extra_file}, "an agent's rules are elsewhere in the file"
    permissions = {rule.permission for rule in without_project_rules(ws.agent("build").permission)}
    assert {"one", "five", "six"} <= permissions and not {"two", "three", "four"} & permissions
    set_mode(ws, None, "ask")
    assert {rule.source for rule in ws.permissions.approved} == {"mode"}


async def test_no_name_of_a_file_makes_its_rules_the_users(open_workspace: OpenWorkspace, project: Path) -> None:
    folder = project / ".opencode" / "agent"
    folder.mkdir(parents=True)
    (folder / "a, b.md").write_text(AGENT)
    ws = await open_workspace({}, trust=True)
    [rule] = [rule for rule in ws.agents["a, b"].permission if rule.permission == "sandbox"]
    assert rule.source == "project"
    assert without_project_rules([rule]) == []


def test_a_stored_session_loads_with_rules_that_are_not_the_projects() -> None:
    session = Session("ses_a", "title", "/", permission=[Rule("bash", "*", "deny", "mode plan")])
    [rule] = Session.from_wire(session.to_wire()).permission
    assert (rule, rule.source) == (Rule("bash", "*", "deny"), "code")
