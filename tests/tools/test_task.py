"""task: another agent works in a session of its own, inside the call's card; it may fail, be stopped, be resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Request
from opencode_jupyter.agent.tools.task import Parameters
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.call_state import Completed, Failed, ToolPart
from opencode_jupyter.core.context import InitContext
from opencode_jupyter.core.errors import PermissionDeniedError, ToolAbortedError, ToolError
from opencode_jupyter.core.permission import evaluate
from opencode_jupyter.core.permission.modes import set_mode
from opencode_jupyter.core.schema import json_schema
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio
AGENTS = {
    "agent": {
        "checker": {"mode": "subagent", "description": "Checks things.", "permission": {"task": "allow"}},
        "silent": {"mode": "subagent"},
        "strict": {
            "mode": "all",
            "description": "Denied one.",
            "permission": {"task": {"*": "allow", "checker": "deny"}},
        },
        "short": {"mode": "subagent", "steps": 1},
        "own": {"mode": "subagent", "model": "scripted/nowhere.yaml"},
    }
}


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, approver: Approver) -> Workspace:
    config = {"permission": {"*": "allow", "bash": "ask"}, "snapshot": False, **AGENTS}
    return await open_workspace(config, approve=approver)


def task(agent: str = "general", prompt: str = "look", **more: Any) -> list[Any]:
    return ["task", {"description": "Look around", "prompt": prompt, "subagent_type": agent, **more}]


def script(main: list[dict[str, Any]], **agents: list[dict[str, Any]]) -> Callable[[Request], dict[str, Any]]:
    """What each agent says, turn by turn; the main one's first."""
    turns = {agent: iter(turn_list) for agent, turn_list in {"build": main, "plan": main, **agents}.items()}
    return lambda request: next(turns[request.agent])


class Two(FakeModel):
    """Lets another model answer for the agent `general`."""

    def __init__(self, other: FakeModel, turns: list[dict[str, Any]]) -> None:
        super().__init__(turns)
        self._other = other

    async def stream(self, request: Request) -> Any:
        chosen = self._other.stream(request) if request.agent == "general" else super().stream(request)
        async for event in chosen:
            yield event


async def ask(ws: Workspace, model: FakeModel, **options: Any) -> Any:
    return await ws.sessions.prompt("go", model=model, **options)


async def test_a_task_and_its_result(ws: Workspace, project: Path) -> None:
    (project / "a.txt").write_text("hello")
    model = FakeModel(
        script(
            [{"calls": [task()]}, {"text": "all right"}],
            general=[{"text": "I look.", "calls": [["read", {"filePath": "a.txt"}]]}, {"text": "It says hello."}],
        )
    )
    updates: list[dict[str, Any]] = []
    ws.bus.subscribe(
        "message.part.updated", lambda event: updates.append(json.loads(json.dumps(event["properties"]["part"])))
    )
    answer = await ask(ws, model)
    (part,) = answer.calls
    assert isinstance(part.state, Completed)
    child = await ws.sessions.open(part.state.metadata["sessionId"])
    first, _, rest = part.state.output.partition("\n")
    assert first.startswith(f"task_id: {child.id} ")
    assert rest == "\n<task_result>\nIt says hello.\n</task_result>"
    assert part.state.title == "Look around"
    summary = part.state.metadata["summary"]
    assert [(row["tool"], row["state"]["status"]) for row in summary] == [("read", "completed")]
    assert summary[0]["state"]["title"] == "a.txt" and summary[0]["id"].startswith("prt_")
    assert part.state.metadata["model"] == {"providerID": "fake", "modelID": "m"}

    assert child.parent_id == answer.session.id
    assert child.title == "Look around (@general subagent)"
    assert child.agent == "general" and child.model == {"providerID": "fake", "modelID": "m"}
    assert {rule.permission: rule.action for rule in child.permission} == {
        "todowrite": "deny",
        "todoread": "deny",
        "task": "deny",
    }
    assert [m.role for m in child.messages] == ["user", "assistant", "assistant"]
    assert child.messages[0].info["tools"] == {"todowrite": False, "todoread": False, "task": False}
    names = {spec.name for spec in model.requests[1].tools}
    assert "read" in names and not names & {"todowrite", "todoread", "task"}

    mine = [update for update in updates if update.get("tool") == "task"]
    running = [
        update["state"] for update in mine if update["state"]["status"] == "running" and "metadata" in update["state"]
    ]
    assert running and all(state["title"] == "Look around" for state in running)
    assert running[0]["metadata"]["sessionId"] == child.id
    inner = next(update for update in updates if update.get("tool") == "read")
    assert inner["sessionID"] == child.id


async def test_the_childs_calls_stand_inside_the_tasks_call(ws: Workspace, approver: Approver) -> None:
    command = ["bash", {"command": "true", "description": "Nothing"}]
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"calls": [command]}, {"text": "ok"}]))
    outer_calls: list[Call] = []
    updates: list[ToolPart] = []
    run = ws.sessions.prompt("go", model=model)

    def changed(_: Any, kind: str, value: Any) -> None:
        if kind == "call":
            outer_calls.append(value)
            value.on_update = updates.append

    def reply(request: Any) -> str:
        (outer,) = outer_calls
        (inner,) = outer.children
        assert request.tool["callID"] == inner.part.call_id  # the ask comes from the child's call,
        assert inner.parent is outer and outer.waiting == 1  # and the outer one waits with it
        assert inner.part.parent_id == outer.part.id and inner.session.parent_id == outer.session.id
        return "once"

    approver.reply = reply
    run.on_change = changed
    await run
    assert len(approver.named("bash")) == 1
    assert outer_calls[0].part.waited > 0
    assert len(run.calls) == 1 and len(updates) > 3


async def test_what_is_asked_and_who_is_known(ws: Workspace, approver: Approver) -> None:
    arguments = {"description": "d", "prompt": "p", "subagent_type": "general"}
    ws.permissions.approved.clear()
    (decision,) = await ws.dry_run("task", arguments)
    assert (decision.permission, decision.patterns) == ("task", ["general"])
    assert ws.sessions.list() == [] or all(session.parent_id is None for session in ws.sessions.list())
    with pytest.raises(ToolError, match=r"Unknown agent type: nobody is not a valid agent type.*general, explore"):
        await ws.call("task", {**arguments, "subagent_type": "nobody"})
    with pytest.raises(PermissionDeniedError):
        await ws.call("task", {**arguments, "subagent_type": "checker"}, agent="strict")


async def test_the_ask_has_what_opencode_says(workspace: Workspace, approver: Approver) -> None:
    approver.reply = "reject"
    with pytest.raises(ToolError):
        await workspace.call("task", {"description": "d", "prompt": "p", "subagent_type": "general"})
    (request,) = approver.asks
    assert (request.permission, request.patterns, request.always) == ("task", ["general"], ["*"])
    assert request.metadata == {"description": "d", "subagent_type": "general"}


async def test_no_ask_where_a_person_named_the_agent(workspace: Workspace, approver: Approver) -> None:
    arguments = {"description": "d", "prompt": "p", "subagent_type": "nobody"}
    with pytest.raises(ToolError, match="Unknown agent type"):
        await workspace.call("task", arguments, extra={"bypassAgentCheck": True})
    assert approver.asks == []


async def test_the_description_lists_agents(ws: Workspace) -> None:
    tool = ws.registry.get("task")
    assert tool is not None

    async def listed(agent: str) -> list[str]:
        text = (await tool.init(InitContext(ws.agents[agent], ws))).description
        return [line.partition(":")[0][2:] for line in text.split("\n") if line.startswith("- ") and ": " in line][:7]

    everyone = await listed("build")
    assert everyone[:6] == ["general", "explore", "checker", "silent", "strict", "short"]
    assert "checker" not in await listed("strict")
    text = (await tool.init(InitContext(ws.agents["build"], ws))).description
    assert "- checker: Checks things.\n- silent: This subagent should only be called manually by the user.\n" in text
    assert "{agents}" not in text and "- build:" not in text and "- title:" not in text
    schema = json_schema(Parameters)
    assert set(schema["properties"]) == {"description", "prompt", "subagent_type", "task_id", "command"}
    assert schema["required"] == ["description", "prompt", "subagent_type"]


@pytest.mark.parametrize("name", ["task_id", "session_id"])
async def test_going_on_with_an_earlier_task(ws: Workspace, name: str) -> None:
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"text": "first"}, {"text": "second"}]))
    answer = await ask(ws, model)
    id = answer.calls[0].state.metadata["sessionId"]
    again = FakeModel(lambda request: {"text": "second"} if request.agent == "general" else next(turns))
    turns: Iterator[dict[str, Any]] = iter([{"calls": [task("general", "more", **{name: id})]}, {"text": "y"}])
    answer = await ask(ws, again, session=answer.session)
    assert answer.calls[0].state.metadata["sessionId"] == id
    answers = [turn for turn in again.requests[1].turns if turn.role == "assistant"]
    assert len(answers) == 1  # it knows what it said before
    child = await ws.sessions.open(id)
    assert [m.text for m in child.messages if m.role == "user"] == ["look", "more"]


async def test_an_earlier_task_out_of_the_store(open_workspace: OpenWorkspace, ws: Workspace) -> None:
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"text": "first"}]))
    id = (await ask(ws, model)).calls[0].state.metadata["sessionId"]
    await ws.aclose()
    other = await open_workspace()
    model = FakeModel(script([{"calls": [task(task_id=id)]}, {"text": "x"}], general=[{"text": "second"}]))
    answer = await ask(other, model)
    assert answer.calls[0].state.metadata["sessionId"] == id
    assert len((await other.sessions.open(id)).messages) == 4


async def test_a_task_that_is_not_there_or_a_persons_own_session(ws: Workspace) -> None:
    own = await ask(ws, FakeModel([{"text": "mine"}]))
    for id in ("ses_nothing", own.session.id):
        model = FakeModel(script([{"calls": [task(task_id=id)]}, {"text": "x"}], general=[{"text": "done"}]))
        answer = await ask(ws, model)
        (part,) = answer.calls
        assert part.state.metadata["sessionId"] != id
        assert part.state.output.endswith(f"Note: there is no task {id}; the agent started a new one.")
    assert len(own.session.messages) == 2


async def test_a_task_can_not_be_given_to_the_session_it_is_in(ws: Workspace) -> None:
    sessions: list[str] = []

    def say(request: Request) -> dict[str, Any]:
        if request.agent == "checker":
            sessions.append(request.session)
            return {"calls": [task("general", task_id=request.session)]} if len(sessions) == 1 else {"text": "x"}
        return {"text": "done"} if any(turn.role == "tool" for turn in request.turns) else {"calls": [task("checker")]}

    answer = await ask(ws, FakeModel(say))
    child = await ws.sessions.open(answer.calls[0].state.metadata["sessionId"])
    (inner,) = child.messages[1].calls
    assert isinstance(inner.state, Failed) and "the conversation that this call belongs to" in inner.state.error


async def test_tasks_within_tasks_and_how_deep(ws: Workspace) -> None:
    nested = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"calls": [task()]}, {"text": "no"}]))
    answer = await ask(ws, nested)
    child = await ws.sessions.open(answer.calls[0].state.metadata["sessionId"])
    (refused,) = child.messages[1].calls
    assert refused.tool == "invalid"  # it was not offered

    deep = FakeModel(
        lambda request: (
            {"text": "up again"} if any(turn.role == "tool" for turn in request.turns) else {"calls": [task("checker")]}
        )
    )
    answer = await ask(ws, deep)
    depth, errors = 0, []
    session = answer.session
    while True:
        (part,) = session.messages[1].calls
        if isinstance(part.state, Failed):
            errors.append(part.state.error)
            break
        depth += 1
        session = await ws.sessions.open(part.state.metadata["sessionId"])
    assert depth == 5 and "5 levels deep" in errors[0]


async def test_several_side_by_side(ws: Workspace) -> None:
    began, all_started = [0], asyncio.Event()

    class Waiting(FakeModel):
        async def stream(self, request: Request) -> Any:
            if request.agent == "general":
                began[0] += 1
                if began[0] == 3:
                    all_started.set()
                await asyncio.wait_for(all_started.wait(), 10)
            async for event in super().stream(request):
                yield event

    def say(request: Request) -> dict[str, Any]:
        if request.agent == "general":
            words = request.turns[0].pieces[0].text  # type: ignore[union-attr]
            return {"text": f"did {words}"}
        done = any(turn.role == "tool" for turn in request.turns)
        return {"text": "x"} if done else {"calls": [task(prompt=f"p{i}") for i in range(3)]}

    answer = await ask(ws, Waiting(say))
    outputs = [part.state.output for part in answer.calls]
    assert [f"did p{i}" in output for i, output in enumerate(outputs)] == [True] * 3
    assert len({part.state.metadata["sessionId"] for part in answer.calls}) == 3


@pytest.mark.parametrize("hang", ["request", "text", "arguments"])
async def test_a_stop_reaches_the_child(ws: Workspace, hang: str) -> None:
    child = FakeModel([{"text": "w", "calls": [["read", {"filePath": "x"}]], "hang": hang}])

    run = ws.sessions.prompt("go", model=Two(child, [{"calls": [task()]}, {"text": "again"}]))
    work = asyncio.create_task(run.run())
    await asyncio.wait_for(child.hanging.wait(), 5)
    run.abort("stopped")
    with pytest.raises(ToolAbortedError):
        await asyncio.wait_for(work, 2)
    (part,) = [call.part for call in run.calls]
    assert isinstance(part.state, Failed) and part.outcome == "stopped"
    session = await ws.sessions.open(part.state.metadata["sessionId"])  # type: ignore[index]
    assert session.run is None and ws.calls == {}
    assert session.messages[1].info["error"]["name"] == "MessageAbortedError"
    answer = await ask(ws, FakeModel([{"text": "it goes on"}]), session=run.session)
    assert answer.text.strip() == "it goes on"


async def test_stopping_the_call_alone_lets_the_caller_go_on(ws: Workspace) -> None:
    child = FakeModel([{"hang": "request"}])

    run = ws.sessions.prompt("go", model=Two(child, [{"calls": [task()]}, {"text": "then without"}]))
    work = asyncio.create_task(run.run())
    await asyncio.wait_for(child.hanging.wait(), 5)
    run.calls[0].abort("stopped")
    answer = await asyncio.wait_for(work, 5)
    assert answer.text.strip() == "then without" and answer.calls[0].outcome == "stopped"


async def test_a_child_that_was_stopped_by_itself(ws: Workspace) -> None:
    child = FakeModel([{"hang": "request"}])

    run = ws.sessions.prompt("go", model=Two(child, [{"calls": [task()]}, {"text": "I see"}]))
    work = asyncio.create_task(run.run())
    await asyncio.wait_for(child.hanging.wait(), 5)
    inner = next(session for session in ws.sessions.list() if session.parent_id is not None)
    assert inner.run is not None
    inner.run.abort()
    answer = await asyncio.wait_for(work, 5)
    state = answer.calls[0].state
    assert isinstance(state, Failed)
    assert state.error.startswith("The agent was stopped") and inner.id in state.error


async def test_a_child_that_fails_gives_words(ws: Workspace) -> None:
    broken = {"error": ModelError("the key was refused", "auth")}
    model = FakeModel(script([{"calls": [task()]}, {"text": "I see"}], general=[broken]))
    answer = await ask(ws, model)
    (part,) = answer.calls
    assert isinstance(part.state, Failed)
    assert "the key was refused" in part.state.error and "task_id: ses_" in part.state.error
    assert answer.text.strip() == "I see"
    model = FakeModel(script([{"calls": [task("own")]}, {"text": "I see"}]))
    answer = await ask(ws, model)
    assert "nowhere.yaml" in answer.calls[0].state.error


async def test_what_is_said_when_the_child_did_not_come_to_its_end(ws: Workspace, approver: Approver) -> None:
    looking = {"text": "looking", "calls": [["glob", {"pattern": "*"}]]}
    model = FakeModel(script([{"calls": [task("short")]}, {"text": "x"}], short=[looking, looking]))
    answer = await ask(ws, model)
    assert "used up its steps" in answer.calls[0].state.output
    approver.reply = "reject"
    command = {"calls": [["bash", {"command": "true", "description": "Nothing"}]]}
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[command]))
    answer = await ask(ws, model)
    assert "the user refused" in answer.calls[0].state.output
    assert answer.ended == "done"


async def test_who_may_not_edit_can_not_have_it_done(
    open_workspace: OpenWorkspace, project: Path, approver: Approver
) -> None:
    ws = await open_workspace({"snapshot": False}, approve=approver)
    await _not_edited(ws, project)
    assert approver.named("edit") == []


async def _not_edited(ws: Workspace, project: Path) -> None:
    writing = {"calls": [["write", {"filePath": "x", "content": "x"}]]}
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[writing, {"text": "could not"}]))
    await ask(ws, model, agent="plan")
    assert not (project / "x").exists()
    assert not {"edit", "write", "apply_patch"} & {spec.name for spec in model.requests[1].tools}
    session = ws.sessions.create()
    set_mode(ws, session, "plan")
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[writing, {"text": "could not"}]))
    await ask(ws, model, session=session)
    assert not (project / "x").exists()


async def test_primary_tools_stay_with_the_caller(open_workspace: OpenWorkspace) -> None:
    config = {"permission": "allow", "experimental": {"primary_tools": ["webfetch"]}}
    ws = await open_workspace(config)
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"text": "y"}]))
    await ask(ws, model)
    assert "webfetch" in {spec.name for spec in model.requests[0].tools}
    assert "webfetch" not in {spec.name for spec in model.requests[1].tools}


async def test_by_hand(ws: Workspace) -> None:
    arguments = {"description": "d", "prompt": "p", "subagent_type": "general"}
    with pytest.raises(ToolError, match="No model is named"):
        await ws.call("task", arguments, by="user")
    script_file = ws.directory / "lesson.yaml"
    script_file.write_text("turns:\n- text: from the script\n")
    ws.overrides = {**(ws.overrides or {}), "model": "scripted:lesson.yaml"}
    ws.reload_config()
    result = await ws.call("task", arguments, by="user")
    assert "<task_result>\nfrom the script\n</task_result>" in result.output
    assert result.metadata["sessionId"].startswith("ses_")


async def test_rules_of_a_child_are_judged(ws: Workspace) -> None:
    model = FakeModel(script([{"calls": [task()]}, {"text": "x"}], general=[{"text": "y"}]))
    answer = await ask(ws, model)
    child = await ws.sessions.open(answer.calls[0].state.metadata["sessionId"])
    assert evaluate("todowrite", "*", child.permission).action == "deny"
