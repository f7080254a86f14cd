"""plan_enter and plan_exit: the question, who goes on, where the plan is, what the plan agent may write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.tools.plan import plan_file, plan_path, slug
from opencode_jupyter.core.call_state import Completed, Failed
from opencode_jupyter.core.errors import QuestionRejectedError
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio


class Answerer:
    """Answers every question and remembers it."""

    def __init__(self) -> None:
        self.answer: str | None = "Yes"
        self.asked: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.asked.append(request.questions[0].to_wire())
        return None if self.answer is None else [[self.answer]]


@pytest.fixture
def answerer() -> Answerer:
    return Answerer()


@pytest.fixture
async def ws(
    open_workspace: OpenWorkspace, answerer: Answerer, approver: Approver, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    monkeypatch.setenv("OPENCODE_EXPERIMENTAL_PLAN_MODE", "1")
    monkeypatch.delenv("OPENCODE_CLIENT", raising=False)
    config = {"snapshot": False}
    return await open_workspace(config, approve=approver, answer=answerer)


@pytest.mark.parametrize(
    ("variables", "there"),
    [
        ({}, False),
        ({"OPENCODE_EXPERIMENTAL_PLAN_MODE": "true"}, True),
        ({"OPENCODE_EXPERIMENTAL": "1"}, True),
        ({"OPENCODE_EXPERIMENTAL": "1", "OPENCODE_CLIENT": "app"}, False),
    ],
)
async def test_offered_where_opencode_offers_them(
    open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], there: bool
) -> None:
    for name in ("OPENCODE_EXPERIMENTAL_PLAN_MODE", "OPENCODE_EXPERIMENTAL", "OPENCODE_CLIENT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ws = await open_workspace({}, store=False)
    names = [tool.id for tool in await ws.registry.tools("fake:m", "build")]
    assert ({"plan_enter", "plan_exit"} <= set(names)) is there
    assert ws.registry.names().index("plan_exit") < ws.registry.names().index("plan_enter")


def names(model: FakeModel, request: int) -> set[str]:
    return {spec.name for spec in model.requests[request].tools}


async def test_planning_and_then_building(ws: Workspace, answerer: Answerer, project: Path) -> None:
    def say(request: Any) -> dict[str, Any]:
        write = [["write", {"filePath": path(), "content": "1. do it"}], ["write", {"filePath": "x", "content": "x"}]]
        turns: list[dict[str, Any]] = [
            {"text": "This is large.", "calls": [["plan_enter", {}]]},
            {"calls": write},
            {"calls": [["plan_exit", {}]]},
            {"calls": [["write", {"filePath": "done.txt", "content": "done"}]]},
            {"text": "ready"},
        ]
        return turns[len(model.requests) - 1]

    def path() -> str:
        return str(plan_file(ws, run.session))

    model = FakeModel(say)
    run = ws.sessions.prompt("build a house", model=model)
    answer = await run
    session = answer.session
    assert [request.agent for request in model.requests] == ["build", "plan", "plan", "build", "build"]
    assert "plan_enter" in names(model, 0) and "plan_exit" not in names(model, 0)
    assert "plan_exit" in names(model, 1) and "plan_enter" not in names(model, 1)
    enter, plan, outside, exit, done = answer.calls
    assert isinstance(enter.state, Completed) and enter.state.title == "Switching to plan agent"
    assert plan_path(ws, session) in enter.state.output
    assert isinstance(plan.state, Completed) and plan.agent == "plan"
    assert isinstance(outside.state, Failed) and outside.outcome == "denied by a rule"  # only the plan file
    assert isinstance(exit.state, Completed) and exit.state.title == "Switching to build agent"
    assert "approved" in exit.state.output
    assert isinstance(done.state, Completed) and done.agent == "build" and (project / "done.txt").exists()
    assert Path(path()).read_text().startswith("1. do it")

    assert [question["header"] for question in answerer.asked] == ["Plan Mode", "Build Agent"]
    for question in answerer.asked:
        assert [option["label"] for option in question["options"]] == ["Yes", "No"]
        assert question["custom"] is False and plan_path(ws, session) in question["question"]
    users = [message for message in session.messages if message.role == "user"]
    assert [message.info["agent"] for message in users] == ["build", "plan", "build"]
    assert users[1].info["model"] == {"providerID": "fake", "modelID": "m"}
    assert users[1].text == "" and next(users[1].of_type("text"))["synthetic"] is True
    assert "approved" in next(users[2].of_type("text"))["text"]
    assert session.agent == "build"
    user_turns = [turn for turn in model.requests[3].turns if turn.role == "user"]
    assert "Carry out the plan" in user_turns[-1].pieces[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", ["No", None])
@pytest.mark.parametrize(("tool", "agent"), [("plan_enter", "build"), ("plan_exit", "plan")])
async def test_no_stops_there(ws: Workspace, answerer: Answerer, answer: str | None, tool: str, agent: str) -> None:
    answerer.answer = answer
    model = FakeModel([{"calls": [[tool, {}]]}])
    done = await ws.sessions.prompt("go", model=model, agent=agent)
    assert done.ended == "rejected" and len(model.requests) == 1
    assert isinstance(done.calls[0].state, Failed)
    assert [message.role for message in done.session.messages] == ["user", "assistant"]
    assert done.session.agent == agent


async def test_by_hand(ws: Workspace, answerer: Answerer) -> None:
    session = ws.sessions.create()
    result = await ws.call("plan_enter", {}, session=session, by="user")
    assert result.title == "Switching to plan agent" and session.agent == "plan"
    model = FakeModel([{"text": "planning"}, {"text": "building"}])
    await ws.sessions.prompt("go", model=model, session=session)
    assert model.requests[0].agent == "plan"
    await ws.call("plan_exit", {}, session=session, by="user", agent="plan")
    assert "nothing was written" in answerer.asked[1]["question"]
    await ws.sessions.prompt("go", model=model, session=session)
    assert model.requests[1].agent == "build"
    answerer.answer = "No"
    with pytest.raises(QuestionRejectedError):
        await ws.call("plan_enter", {}, session=session, by="user")
    assert session.agent == "build"


async def test_a_dry_run_asks_nothing(ws: Workspace, answerer: Answerer) -> None:
    assert await ws.dry_run("plan_enter") == []
    assert answerer.asked == []


async def test_where_the_plan_is(ws: Workspace, project: Path, tmp_path: Path) -> None:
    session = ws.sessions.create()
    path = plan_file(ws, session)
    assert path.parent == project / ".opencode" / "plans"
    assert re.fullmatch(rf"{session.created}-[a-z]+-[a-z]+\.md", path.name)
    assert plan_path(ws, session) == f".opencode/plans/{path.name}"
    assert session.to_wire()["slug"] == slug(session)
    session.extra["slug"] = "cosmic-cactus"
    assert plan_file(ws, session).name == f"{session.created}-cosmic-cactus.md"
    session.extra["slug"] = "../../etc/passwd"  # an imported session says what it likes
    assert plan_file(ws, session).parent == project / ".opencode" / "plans"


async def test_without_git_the_plan_agent_writes_its_plan_and_nothing_else(
    open_workspace: OpenWorkspace, tmp_path: Path, approver: Approver
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    ws = await open_workspace({}, directory=folder, approve=approver)
    session = ws.sessions.create()
    path = plan_file(ws, session)
    assert path.parent == tmp_path / "data" / "plans"
    calls = [
        ["write", {"filePath": name, "content": "x"}] for name in (str(path), "x.txt", str(path.with_suffix(".py")))
    ]
    answer = await ws.sessions.prompt(
        "go", model=FakeModel([{"calls": calls}, {"text": "x"}]), session=session, agent="plan"
    )
    assert [part.outcome for part in answer.calls] == ["completed", "denied by a rule", "denied by a rule"]
    assert path.read_text().startswith("x") and approver.asks == []
