"""The system prompt: what is in it, that it stays the same object, and that calls meet what it says of the rules."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent.model import ModelInfo, ToolSpec
from opencode_jupyter.agent.prompt import reminders, system_prompt
from opencode_jupyter.agent.prompt.system import describe_rules, environment, model_rules
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.permission.modes import set_mode
from tests.support.workspaces import OpenWorkspace

INFO = ModelInfo("openai", "gpt-5", name="GPT-5")
NAMES = ("read", "edit", "bash", "grep")


def specs(*names: str) -> list[ToolSpec]:
    return [ToolSpec(name, name, {}) for name in names]


@pytest.fixture
async def ws(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    (project / ".git").mkdir()
    config = {"agent": {"mine": {"prompt": "You are mine."}}}
    return await open_workspace(config)


@pytest.mark.anyio
async def test_what_is_in_it_and_in_which_order(ws: Workspace) -> None:
    (ws.directory / "AGENTS.md").write_text("Use tabs.")
    session = ws.sessions.create("one")
    made = await system_prompt(ws, ws.agent("build"), INFO, session, specs(*NAMES), "Answer in French.")
    prompt, surroundings, instructions, rules, extra = made
    assert "rules ask" in prompt
    assert "kernel" not in prompt
    assert str(ws.directory) in surroundings
    assert "GPT-5 (openai:gpt-5)" in surroundings
    assert instructions == f"Instructions from: {ws.directory / 'AGENTS.md'}\nUse tabs."
    assert "- edit, bash: asks a person first" in rules
    assert extra == "Answer in French."


@pytest.mark.anyio
async def test_an_agents_own_prompt_takes_the_place_of_ours(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    assert (await system_prompt(ws, ws.agent("mine"), INFO, session, []))[0] == "You are mine."
    explore = (await system_prompt(ws, ws.agent("explore"), INFO, session, []))[0]
    assert explore == ws.agent("explore").prompt


@pytest.mark.anyio
async def test_the_kernel_is_told_of_where_a_tool_works_in_it(ws: Workspace) -> None:
    session = ws.sessions.create("one")
    prompt = (await system_prompt(ws, ws.agent(), INFO, session, specs("python", "inspect")))[0]
    assert "live variables" in prompt


@pytest.mark.anyio
async def test_the_same_object_until_something_changes(ws: Workspace) -> None:
    session, other = ws.sessions.create("one"), ws.sessions.create("two")
    build = ws.agent("build")

    async def prompt() -> tuple[str, ...]:
        return await system_prompt(ws, build, INFO, session, specs(*NAMES))

    first = await prompt()
    await system_prompt(ws, build, INFO, other, specs("read"))
    assert await prompt() is first
    (ws.directory / "AGENTS.md").write_text("Use tabs.")
    second = await prompt()
    assert second != first
    assert await prompt() is second
    (ws.directory / "AGENTS.md").write_text("Use spaces.")
    third = await prompt()
    assert "Use spaces." in third[2]
    set_mode(ws, session, "accept-edits")
    assert "permission mode accept-edits" in (await prompt())[-1]
    (ws.directory / "AGENTS.md").unlink()
    set_mode(ws, session, "default")
    assert await prompt() == first


@pytest.mark.anyio
async def test_where_it_is(open_workspace: OpenWorkspace, tmp_path: Path, ws: Workspace) -> None:
    prompt = environment(ws, INFO, datetime.date(2026, 2, 3))
    assert "- Date: 2026-02-03, Tuesday" in prompt
    assert f"a git repository with its top in {ws.worktree}" in prompt
    (tmp_path / "plain").mkdir()
    plain = await open_workspace({}, directory=tmp_path / "plain", store=False)
    if str(plain.worktree) == plain.worktree.anchor:
        assert "not under git" in environment(plain, ModelInfo("fake", "m"))
    assert "- Model: fake:m" in environment(plain, ModelInfo("fake", "m"))


@pytest.mark.anyio
async def test_reminders(ws: Workspace) -> None:
    plan, build = ws.agent("plan"), ws.agent("build")
    (first,) = reminders(plan, None)
    assert ".opencode/plans/*.md" in first
    (named,) = reminders(plan, "plan", plan=".opencode/plans/1-x.md")
    assert ".opencode/plans/1-x.md" in named
    (switched,) = reminders(build, "plan", plan=".opencode/plans/1-x.md")
    assert switched.startswith("Plan mode is over")
    assert ".opencode/plans/1-x.md" in switched
    assert reminders(build, "build") == reminders(build) == reminders(ws.agent("explore"), "") == []


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


def rules_text(ws: Workspace, agent: str = "build", tools: list[str] = TOOLS) -> str:
    return describe_rules(ws, ws.agent(agent), ws.sessions.default, tools)


@pytest.mark.anyio
async def test_the_notebooks_defaults(open_ws: Any) -> None:
    text = rules_text(open_ws())
    assert "- edit, bash, webfetch: asks a person first" in text
    assert "- read: goes through; asks: `*.env`, `*.env.*`" in text
    assert "external_directory: asks a person first; goes through:" in text
    assert "grep" not in text
    assert "question" not in text


@pytest.mark.anyio
async def test_what_is_denied_and_what_is_not_offered(open_ws: Any) -> None:
    ws = open_ws({"bash": {"*": "allow", "rm *": "deny", "git push*": "ask"}, "webfetch": "deny", "read": "allow"})
    text = rules_text(ws, tools=["read", "bash"])
    assert "- bash: goes through; denied: `rm *`; asks: `git push*`" in text
    assert "unavailable, because a rule denies every use of them: webfetch" in text
    assert "read" not in text.replace("read:", "")


@pytest.mark.anyio
async def test_the_plan_agent(open_ws: Any) -> None:
    text = rules_text(open_ws(), "plan")
    assert "- edit: is denied; goes through: `.opencode/plans/*.md`" in text


@pytest.mark.anyio
async def test_nothing_to_say(open_ws: Any) -> None:
    ws = open_ws({"*": "allow"})
    assert rules_text(ws) == ""


@pytest.mark.anyio
async def test_a_rule_that_a_later_one_overrules_is_left_out(open_ws: Any) -> None:
    ws = open_ws({"bash": {"rm *": "deny", "*": "allow"}})
    assert "rm" not in rules_text(ws, tools=["bash"])


@pytest.mark.anyio
async def test_approvals_and_modes_count(open_ws: Any) -> None:
    ws = open_ws()
    ws.permissions.remember(Rule("bash", "git *", "allow", "this session"))
    assert "- bash: asks a person first; goes through: `git *`" in rules_text(ws)
    set_mode(ws, ws.sessions.default, "plan")
    text = rules_text(ws, tools=["read", "webfetch"])
    assert text.splitlines()[1] == "- permission mode plan: nothing is written, no command and no Python runs"
    assert "bash" in text.splitlines()[-1]
    assert "write" in text.splitlines()[-1]


@pytest.mark.anyio
async def test_it_stays_short(open_ws: Any) -> None:
    permission: dict[str, Any] = {f"tool{i}": {"*": "ask", f"x{i}*": "deny"} for i in range(40)}
    permission["bash"] = {"*": "allow", **{f"cmd{i} {'y' * 300}": "deny" for i in range(40)}}
    ws = open_ws(permission)
    text = rules_text(ws, tools=["bash", *(f"tool{i}" for i in range(40))])
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
