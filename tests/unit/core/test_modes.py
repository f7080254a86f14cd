"""Permission modes of a session and of a workspace: what they let through, and what they never undo."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import InvalidArgumentsError, PermissionDeniedError, ToolError, Workspace, tool
from opencode_jupyter.core.events import Bus
from opencode_jupyter.core.permission import (
    PermissionQuery,
    PermissionRequest,
    PermissionService,
    Rule,
    disabled,
    evaluate,
)
from opencode_jupyter.core.permission.modes import (
    MODES,
    is_mode_rule,
    mode_of,
    replace_rules,
    set_mode,
)
from opencode_jupyter.core.sessions import Session
from tests.support.workspaces import OpenWorkspace

WRITERS = ("edit", "bash", "webfetch", "python")


@pytest.fixture
def requests() -> list[PermissionRequest]:
    return []


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path, requests: list[PermissionRequest]) -> Workspace:
    (project / ".git").mkdir()

    def approve(request: PermissionRequest) -> str:
        requests.append(request)
        return "reject"

    config = {"experimental": {"allow_bypass": True}, "mcp": {"my files": {"type": "local", "command": ["x"]}}}
    return await open_workspace(config, approve=approve)


def decides(ws: Workspace, session: Session, permission: str, pattern: str = "x", agent: str = "build") -> str:
    """What is decided for a model's call in this session."""
    call = ws.start("read", {"filePath": "x"}, agent=agent, session=session, by="model")
    return str(ws.permissions.check(permission, [pattern], call.ruleset)[0].action)


@pytest.mark.anyio
async def test_each_mode_of_a_session(ws: Workspace) -> None:
    session, second = ws.sessions.create("one"), ws.sessions.create("other")
    assert mode_of(ws, session) == "default"
    assert [decides(ws, session, p) for p in WRITERS] == ["ask"] * 4

    assert set_mode(ws, session, "accept-edits") == "default"
    assert [decides(ws, session, p) for p in WRITERS] == ["allow", "ask", "ask", "ask"]
    assert decides(ws, session, "external_directory", "/etc/*") == "ask"
    assert decides(ws, second, "edit") == "ask"

    assert set_mode(ws, session, "plan") == "accept-edits"
    assert [decides(ws, session, p) for p in ("edit", "bash", "python", "read")] == ["deny", "deny", "deny", "allow"]
    assert decides(ws, session, "my_files_write_file") == "ask"
    assert disabled(["write", "bash", "python", "read"], session.permission) == {"write", "bash", "python"}

    set_mode(ws, session, "bypass")
    assert [decides(ws, session, p) for p in (*WRITERS, "doom_loop")] == ["allow"] * 5
    assert decides(ws, session, "external_directory", "/etc/*") == "allow"
    assert mode_of(ws, session) == "bypass"
    assert mode_of(ws) == mode_of(ws, second) == "default"

    set_mode(ws, session, "default")
    assert session.permission == []
    assert session.extra == {}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["accept-edits", "bypass", "ask"])
async def test_a_deny_stands(ws: Workspace, mode: str) -> None:
    session = ws.sessions.create("one", permission=[Rule("bash", "rm *", "deny", "session")])
    ws.rules.append(Rule("edit", "secret/*", "deny", "typed"))
    set_mode(ws, session, mode)
    assert decides(ws, session, "edit", "secret/key") == "deny"
    assert decides(ws, session, "bash", "rm x") == "deny"
    assert decides(ws, session, "edit", "a.py", agent="plan") == "deny"
    assert "edit" in disabled(["edit", "bash"], [Rule("edit", "*", "deny"), *session.permission])


@pytest.mark.anyio
async def test_a_tool_of_the_plan_agent_stays_refused(ws: Workspace, requests: list[PermissionRequest]) -> None:
    session = ws.sessions.create("one")
    set_mode(ws, session, "bypass")
    with pytest.raises(PermissionDeniedError):
        await ws.call("write", {"filePath": "a.txt", "content": "x"}, agent="plan", session=session, by="model")
    await ws.call("write", {"filePath": "a.txt", "content": "x"}, session=session, by="model")
    assert (ws.directory / "a.txt").read_text() == "x"
    assert requests == []


@pytest.mark.anyio
async def test_bypass_does_not_trust_code_that_a_project_brings(ws: Workspace) -> None:
    set_mode(ws, None, "bypass")
    assert ws.permissions.check("bash", ["x"], [])[0].action == "allow"
    assert ws.permissions.check("trust", ["x"], [])[0].action == "ask"
    ws.permissions.remember(Rule("trust", "x", "allow", "this session"))
    assert ws.permissions.check("trust", ["x"], [])[0].action == "allow"


@pytest.mark.anyio
async def test_accept_edits_is_for_the_project(
    ws: Workspace, tmp_path: Path, requests: list[PermissionRequest]
) -> None:
    session = ws.sessions.create("one")
    set_mode(ws, session, "accept-edits")
    await ws.call("write", {"filePath": "a.txt", "content": "x"}, session=session, by="model")
    with pytest.raises(ToolError):
        await ws.call("write", {"filePath": str(tmp_path / "b.txt"), "content": "x"}, session=session, by="model")
    assert [request.permission for request in requests] == ["external_directory"]
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.anyio
async def test_mode_ask_comes_after_earlier_approvals_and_before_later_ones(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    ws.permissions.remember(Rule("edit", "*", "allow", "this session"))
    assert decides(ws, session, "edit") == "allow"
    set_mode(ws, session, "ask")
    assert [decides(ws, session, p) for p in (*WRITERS, "my_files_x")] == ["ask"] * 5
    ws.permissions.remember(Rule("edit", "src/*", "allow", "this session"))
    assert decides(ws, session, "edit", "src/a.py") == "allow"
    assert decides(ws, session, "edit", "b.py") == "ask"


@pytest.mark.anyio
async def test_an_older_approval_does_not_answer_what_waits_in_mode_ask() -> None:
    service = PermissionService(Bus())
    old = Rule("bash", "git *", "allow", "this session")
    service.remember(old)
    rules = [Rule("*", "*", "ask", "mode ask", True, (old,), source="mode")]

    def request_permission(permission: str, pattern: str) -> Any:
        return service.ask(
            PermissionQuery(
                session_id="ses_1",
                permission=permission,
                patterns=[pattern],
                always=["*"],
                ruleset=rules,
                agent="build",
            )
        )

    waiting = asyncio.create_task(request_permission("bash", "git push"))
    edit = asyncio.create_task(request_permission("edit", "a"))
    while len(service.pending()) < 2:
        await asyncio.sleep(0)
    service.reply(service.pending()[1].id, "always")
    await edit
    assert [request.permission for request in service.pending()] == ["bash"]
    service.reply(service.pending()[0].id, "once")
    await waiting


@pytest.mark.anyio
async def test_a_mode_holds_for_the_sessions_that_its_calls_begin(ws: Workspace) -> None:
    parent = ws.sessions.create("parent")
    child = ws.sessions.create("child", parent_id=parent.id, permission=[Rule("todowrite", "*", "deny")])
    grandchild = ws.sessions.create("grandchild", parent_id=child.id)
    set_mode(ws, parent, "plan")
    for session in (child, grandchild):
        assert decides(ws, session, "edit") == "deny"
        assert mode_of(ws, session) == "plan"
    set_mode(ws, parent, "bypass")
    assert decides(ws, grandchild, "bash") == "allow"
    assert decides(ws, child, "todowrite") == "deny"
    orphan = ws.sessions.create("orphan", parent_id="ses_gone")
    assert decides(ws, orphan, "edit") == "ask"


@pytest.mark.anyio
async def test_other_rules_of_the_session_leave_the_mode_alone(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    set_mode(ws, session, "plan")
    replace_rules(session, [Rule("webfetch", "*", "deny")])
    assert decides(ws, session, "edit") == decides(ws, session, "webfetch") == "deny"
    replace_rules(session, [])
    assert decides(ws, session, "webfetch") == "ask"
    assert mode_of(ws, session) == "plan"


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "after"), [("plan", "plan"), ("accept-edits", "accept-edits"), ("bypass", "default")])
async def test_what_is_kept_with_a_session(tmp_path: Path, mode: str, after: str) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    config = {"experimental": {"allow_bypass": True}}
    async with Workspace(tmp_path / "project", config, tmp_path / "data") as ws:
        session = ws.sessions.create("one", permission=[Rule("bash", "rm *", "deny")])
        set_mode(ws, session, "plan")
        set_mode(ws, session, mode)
        assert "mode" not in str(session.to_wire()["permission"])
    async with Workspace(tmp_path / "project", config, tmp_path / "data") as ws:
        again = await ws.sessions.open(session.id)
        assert mode_of(ws, again) == after
        assert decides(ws, again, "bash", "rm x") == "deny"
        assert [r for r in again.permission if not is_mode_rule(r)] == [Rule("bash", "rm *", "deny")]
        assert decides(ws, again, "edit", agent="plan") == "deny"  # nothing became a firm rule on the way


@pytest.mark.anyio
async def test_the_whole_workspace(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    assert set_mode(ws, None, "plan") == "default"
    assert mode_of(ws) == mode_of(ws, session) == "plan"
    assert decides(ws, session, "edit") == decides(ws, session, "python") == "deny"
    set_mode(ws, session, "accept-edits")
    assert decides(ws, session, "edit") == "deny"
    assert set_mode(ws, None, "default") == "plan"
    assert decides(ws, session, "edit") == "allow"
    assert not ws.rules
    assert not ws.permissions.approved


@pytest.mark.anyio
async def test_custom_tools_ask_where_nobody_knows_what_they_write(ws: Workspace) -> None:
    @tool
    async def upload(path: str) -> str:
        """Send a file."""
        return path

    ws.registry.register(upload)
    session = ws.sessions.create("one")
    set_mode(ws, session, "plan")
    assert decides(ws, session, "upload") == "ask"


@pytest.mark.anyio
async def test_mistakes(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({})
    session = ws.sessions.create("one")
    with pytest.raises(InvalidArgumentsError, match=r"Did you mean plan\? Modes are default, accept-edits"):
        set_mode(ws, session, "plam")
    for where in (session, None):
        with pytest.raises(ToolError, match=r'\{"experimental": \{"allow_bypass": true\}\} into opencode.json'):
            set_mode(ws, where, "bypass")
        assert mode_of(ws, where) == "default"


ACTIONS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.lists(
    st.builds(Rule, st.sampled_from(["*", "edit", "bash"]), st.sampled_from(["*", "a*", "b"]), ACTIONS), max_size=6
)


@given(rules=RULES, approvals=RULES, mode=st.sampled_from(list(MODES)), permission=st.sampled_from(["edit", "bash"]))
def test_no_mode_undoes_a_deny(rules: list[Rule], approvals: list[Rule], mode: str, permission: str) -> None:
    service = PermissionService(Bus())
    service.approved.extend(approvals)
    entries = [Rule(p, "*", a, f"mode {mode}", a != "deny") for p, a in MODES[mode].entries]
    for pattern in ("a", "ab", "b", "c"):
        (rule,) = service.check(permission, [pattern], [*rules, *entries])
        if evaluate(permission, pattern, rules).action == "deny":
            assert rule.action == "deny"
        if mode == "default":
            assert rule == service.check(permission, [pattern], rules)[0]
