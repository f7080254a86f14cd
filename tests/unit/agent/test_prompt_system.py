"""The system prompt: what is in it, in which order, and that it stays the same object while nothing changes."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.model import ModelInfo, ToolSpec
from opencode_jupyter.agent.prompt import reminders, system_prompt
from opencode_jupyter.agent.prompt.system import environment
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
    prompt, place, instructions, rules, extra = made
    assert "rules ask" in prompt
    assert "kernel" not in prompt
    assert str(ws.directory) in place
    assert "GPT-5 (openai:gpt-5)" in place
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
    said = environment(ws, INFO, datetime.date(2026, 2, 3))
    assert "- Date: 2026-02-03, Tuesday" in said
    assert f"a git repository with its top in {ws.worktree}" in said
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
