"""What a model is told of the rules: facts that agree with what its calls then meet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent.prompt.rules import describe_rules, model_rules
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.permission.modes import set_mode

TOOLS = ["read", "edit", "write", "bash", "webfetch", "grep", "glob", "question"]


@pytest.fixture
async def open_ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path / "home"))
    (tmp_path / "project" / ".git").mkdir(parents=True)
    made: list[Workspace] = []

    def make(permission: Any = None) -> Workspace:
        config = {"permission": permission} if permission else {}
        made.append(Workspace(tmp_path / "project", config, tmp_path / "data", store=False))
        return made[-1]

    yield make
    for workspace in made:
        await workspace.aclose()


def said(ws: Workspace, agent: str = "build", tools: list[str] = TOOLS) -> str:
    return describe_rules(ws, ws.agent(agent), ws.sessions.default, tools)


@pytest.mark.anyio
async def test_the_notebooks_defaults(open_ws: Any) -> None:
    text = said(open_ws())
    assert "- edit, bash, webfetch: asks a person first" in text
    assert "- read: goes through; asks: `*.env`, `*.env.*`" in text
    assert "external_directory: asks a person first; goes through:" in text
    assert "grep" not in text
    assert "question" not in text


@pytest.mark.anyio
async def test_what_is_denied_and_what_is_not_offered(open_ws: Any) -> None:
    ws = open_ws({"bash": {"*": "allow", "rm *": "deny", "git push*": "ask"}, "webfetch": "deny", "read": "allow"})
    text = said(ws, tools=["read", "bash"])
    assert "- bash: goes through; denied: `rm *`; asks: `git push*`" in text
    assert "unavailable, because a rule denies every use of them: webfetch" in text
    assert "read" not in text.replace("read:", "")


@pytest.mark.anyio
async def test_the_plan_agent(open_ws: Any) -> None:
    text = said(open_ws(), "plan")
    assert "- edit: is denied; goes through: `.opencode/plans/*.md`" in text


@pytest.mark.anyio
async def test_nothing_to_say(open_ws: Any) -> None:
    ws = open_ws({"*": "allow"})
    assert said(ws) == ""


@pytest.mark.anyio
async def test_a_rule_that_a_later_one_overrules_is_left_out(open_ws: Any) -> None:
    ws = open_ws({"bash": {"rm *": "deny", "*": "allow"}})
    assert "rm" not in said(ws, tools=["bash"])


@pytest.mark.anyio
async def test_approvals_and_modes_count(open_ws: Any) -> None:
    ws = open_ws()
    ws.permissions.remember(Rule("bash", "git *", "allow", "this session"))
    assert "- bash: asks a person first; goes through: `git *`" in said(ws)
    set_mode(ws, ws.sessions.default, "plan")
    text = said(ws, tools=["read", "webfetch"])
    assert text.splitlines()[1] == "- permission mode plan: nothing is written, no command and no Python runs"
    assert "bash" in text.splitlines()[-1]
    assert "write" in text.splitlines()[-1]


@pytest.mark.anyio
async def test_it_stays_short(open_ws: Any) -> None:
    permission: dict[str, Any] = {f"tool{i}": {"*": "ask", f"x{i}*": "deny"} for i in range(40)}
    permission["bash"] = {"*": "allow", **{f"cmd{i} {'y' * 300}": "deny" for i in range(40)}}
    ws = open_ws(permission)
    text = said(ws, tools=["bash", *(f"tool{i}" for i in range(40))])
    assert len(text.splitlines()) <= 15
    assert max(map(len, text.splitlines())) < 1_000
    assert "and 35 more" in text


ACTIONS = st.sampled_from(["allow", "ask", "deny"])
PATTERNS = st.sampled_from(["*", "git *", "git push*", "rm *", "ls"])


@given(rules=st.lists(st.builds(Rule, st.sampled_from(["*", "bash"]), PATTERNS, ACTIONS), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@pytest.mark.anyio
async def test_it_says_nothing_that_is_not_so(tmp_path: Path, rules: list[Rule]) -> None:
    ws = Workspace(tmp_path, {}, tmp_path / "data", store=False)
    agent, session = ws.agent("build"), ws.sessions.default
    ws.rules.extend(rules)
    text = describe_rules(ws, agent, session, ["bash"])
    lines = [line.partition(": ") for line in text.splitlines() if line.startswith("- bash")]
    line = lines[0][2] if lines else "goes through"
    decided = ws.permissions.check("bash", ["make"], model_rules(ws, agent, session))[0].action
    words = {"deny": "is denied", "ask": "asks a person first", "allow": "goes through"}
    assert line.startswith(words[decided])
    for kind, action in (("denied: ", "deny"), ("asks: ", "ask")):
        for pattern in ("git *", "git push*", "rm *", "ls"):
            named = any(f"`{pattern}`" in part for part in line.split("; ") if part.startswith(kind))
            if named:
                assert ws.permissions.check("bash", [pattern], model_rules(ws, agent, session))[0].action == action
    await ws.aclose()
