"""The model loop: what a run does with what a model says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from opencode_jupyter import Attachment, ToolContext, ToolResult, Workspace, tool
from opencode_jupyter.agent import retry
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import Usage
from opencode_jupyter.agent.model import Cost
from opencode_jupyter.agent.turns import CallPiece, MediaPiece, ResultPiece, TextPiece
from opencode_jupyter.core.call_state import Pending
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from tests.support.agents import ends, project
from tests.support.fake_model import FakeModel
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


async def test_a_call_and_an_answer(open_workspace: OpenWorkspace) -> None:
    model = FakeModel(
        [{"text": "I look.", "calls": [["read", {"filePath": "a.txt"}]]}, {"text": "It says hello."}],
        cost=Cost(input=10, output=100),
    )
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    answer = await workspace.sessions.prompt("what is in a.txt?", model=model)
    assert answer.text.strip() == "It says hello."
    assert (answer.steps, answer.ended, answer.finish) == (2, "done", "stop")
    assert [part.tool for part in answer.calls] == ["read"]
    assert answer.calls.records[0]["state"] == "completed"
    assert answer.usage.whole == 120 + 220
    assert answer.cost == pytest.approx((300 * 10 + 40 * 100) / 1e6)
    first, second = model.requests
    assert [turn.role for turn in first.turns] == ["user"]
    assert [turn.role for turn in second.turns] == ["user", "assistant", "tool"]
    call = second.turns[1].pieces[1]
    result = second.turns[2].pieces[0]
    assert isinstance(call, CallPiece)
    assert isinstance(result, ResultPiece)
    assert call.id == result.call_id
    assert "hello" in result.text
    assert second.turns[0] is first.turns[0], "what was sent before is not made again"
    assert second.tools is first.tools


async def test_the_parts_are_those_of_opencode(open_workspace: OpenWorkspace) -> None:
    model = FakeModel([{"reasoning": "Hm.", "text": "Look.", "calls": [["glob", {"pattern": "*"}]]}, {"text": "Done."}])
    workspace = await open_workspace(files={"a.txt": "x"})
    answer = await workspace.sessions.prompt("go", model=model)
    user, first, second = [message.to_wire() for message in answer.session.messages]
    assert [p["type"] for p in first["parts"]] == ["step-start", "reasoning", "text", "tool", "step-finish"]
    assert [p["type"] for p in second["parts"]] == ["step-start", "text", "step-finish"]
    assert first["info"]["parentID"] == second["info"]["parentID"] == user["info"]["id"]
    assert (first["info"]["finish"], second["info"]["finish"]) == ("tool-calls", "stop")
    assert first["info"]["tokens"]["input"] == 100
    assert first["info"]["time"]["completed"] >= first["info"]["time"]["created"]
    assert answer.session.title == "go"
    await workspace.store.flush()  # type: ignore[union-attr]
    again = await (await open_workspace()).sessions.open(answer.session.id)
    assert [message.to_wire() for message in again.messages] == [user, first, second]


async def test_the_session_goes_on(workspace: Workspace) -> None:
    model = FakeModel([{"text": "One."}, {"text": "Two."}])
    first = await workspace.sessions.prompt("first", model=model)
    second = await first.session.prompt("second")
    assert second.session is first.session
    texts = [piece.text for turn in model.requests[1].turns for piece in turn.pieces if isinstance(piece, TextPiece)]
    assert [text.strip() for text in texts] == ["first", "One.", "second"]
    assert len(second.messages) == 2


async def test_arguments_are_seen_as_they_come(workspace: Workspace) -> None:
    states: list[Pending] = []
    run = workspace.sessions.prompt(
        "x",
        model=FakeModel([{"calls": [["write", {"filePath": "b.txt", "content": "y" * 99}]], "hang": "arguments"}]),
    )

    def change(_: Any, kind: str, call: Any) -> None:
        if kind == "call":
            call.on_update = lambda part: states.append(part.state)

    run.on_change = change
    task = asyncio.ensure_future(run.run())
    await run_until(lambda: bool(run.calls) and bool(states))
    run.abort()
    with pytest.raises(ToolError):
        await task
    first = states[0]
    assert isinstance(first, Pending)
    assert first.raw
    assert run.calls[0].part.state.status == "error"


async def run_until(done: Any, seconds: float = 10) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not done():
            await asyncio.sleep(0.005)


async def test_calls_of_one_turn_run_side_by_side(workspace: Workspace) -> None:
    at_once = 0
    all_there = asyncio.Event()

    @tool
    async def slow(n: int) -> str:
        """Wait for the others."""
        nonlocal at_once
        at_once += 1
        if at_once == 20:
            all_there.set()
        async with asyncio.timeout(20):
            await all_there.wait()
        return str(n)

    model = FakeModel([{"calls": [["slow", {"n": i}] for i in range(20)]}, {"text": "ok"}])
    workspace.registry.register(slow)
    answer = await workspace.sessions.prompt("x", model=model)
    assert [part.state.output for part in answer.calls] == [str(i) for i in range(20)]  # type: ignore[union-attr]


async def test_odd_calls_become_invalid_and_the_run_goes_on(open_workspace: OpenWorkspace) -> None:
    calls = [
        ["nosuchtool", {"a": 1}],
        ["read", '{"filePath": 5'],
        ["Read", {"filePath": "a.txt"}],
        ["todoread", ""],
        ["read", "[1, 2]"],
        ["read", {"filePath": {"no": "path"}}],
    ]
    model = FakeModel([{"calls": calls}, {"text": "I see."}])
    workspace = await open_workspace(files={"a.txt": "hello"})
    answer = await workspace.sessions.prompt("x", model=model)
    got = ends(answer.calls)
    assert [(name, state) for name, state, _ in got] == [
        ("invalid", "completed"),
        ("invalid", "completed"),
        ("read", "completed"),
        ("todoread", "completed"),
        ("invalid", "completed"),
        ("invalid", "completed"),
    ]
    assert "unavailable tool 'nosuchtool'. Available tools: bash, " in got[0][2]
    assert "invalid, " in got[0][2]
    assert "JSON parsing failed" in got[1][2]
    assert "one JSON object" in got[4][2]
    assert "invalid arguments" in got[5][2]
    assert answer.text.strip() == "I see."


async def test_the_same_id_twice(open_workspace: OpenWorkspace) -> None:
    read = ["read", {"filePath": "a.txt"}, "call_1"]
    model = FakeModel([{"calls": [read, ["glob", {"pattern": "*"}, "call_1"]]}, {"calls": [read]}, {"text": "x"}])
    workspace = await open_workspace(files={"a.txt": "hello"})
    answer = await workspace.sessions.prompt("x", model=model)
    ids = [part.call_id for part in answer.calls]
    assert ids[0] == "call_1"
    assert len(set(ids)) == 3
    for turn in model.requests[-1].turns:
        if turn.role == "tool":
            assert all(piece.call_id in ids for piece in turn.pieces if isinstance(piece, ResultPiece))


async def test_a_tool_that_a_rule_denies_is_not_offered(open_workspace: OpenWorkspace) -> None:
    model = FakeModel([{"calls": [["bash", {"command": "echo x", "description": "d"}]]}, {"text": "x"}])
    workspace = await open_workspace({"permission": {"bash": "deny"}})
    answer = await workspace.sessions.prompt("x", model=model)
    assert "bash" not in [spec.name for spec in model.requests[0].tools]
    assert ends(answer.calls)[0][:2] == ("invalid", "completed")


async def test_the_prompt_chooses_tools(workspace: Workspace) -> None:
    model = FakeModel([{"text": "x"}] * 3)
    await workspace.sessions.prompt("x", model=model, tools=["read", "glob"])
    await workspace.sessions.prompt("x", model=model, tools={"bash": False})
    with pytest.raises(ToolError, match=r"names no tool of this project: raed\. Did you mean read\?"):
        await workspace.sessions.prompt("x", model=model, tools=["raed"])
    with pytest.raises(ToolError, match=r"no tool of this project: zzz\. There are .*read"):
        await workspace.sessions.prompt("x", model=model, tools={"zzz": True})
    await workspace.sessions.prompt("x", model=model, tools={"*": False, "gr*": True})
    assert [spec.name for spec in model.requests[-1].tools] == ["grep"]
    with pytest.raises(InvalidArgumentsError, match="list of names"):
        workspace.sessions.prompt("x", model=model, tools="read")
    assert [spec.name for spec in model.requests[0].tools] == ["read", "glob"]
    assert "bash" not in [spec.name for spec in model.requests[1].tools]
    assert "edit" in [spec.name for spec in model.requests[1].tools]


async def test_a_refused_ask_stops_and_a_corrected_one_goes_on(open_workspace: OpenWorkspace, project: Path) -> None:
    replies: list[Any] = [("reject", "use b.txt"), "reject"]
    edit = ["write", {"filePath": "a.txt", "content": "x"}]
    model = FakeModel([{"calls": [edit]}, {"calls": [edit]}, {"text": "never"}])
    workspace = await open_workspace({}, approve=lambda request: replies.pop(0))
    answer = await workspace.sessions.prompt("x", model=model)
    assert (answer.ended, answer.steps) == ("rejected", 2)
    first, second = ends(answer.calls)
    assert first[2].endswith("use b.txt")
    assert second[2] == "The user rejected permission to use this specific tool call."
    assert not (project / "a.txt").exists()


async def test_a_refused_ask_can_be_let_pass(open_workspace: OpenWorkspace) -> None:
    model = FakeModel([{"calls": [["write", {"filePath": "a.txt", "content": "x"}]]}, {"text": "then not"}])
    config = {"experimental": {"continue_loop_on_deny": True}}
    workspace = await open_workspace(config, approve=lambda request: "reject")
    answer = await workspace.sessions.prompt("x", model=model)
    assert (answer.ended, answer.text.strip()) == ("done", "then not")


async def test_the_same_call_again_and_again_asks(open_workspace: OpenWorkspace) -> None:
    permissions: list[str] = []

    def approve(request: Any) -> str:
        permissions.append(request.permission)
        return "reject"

    model = FakeModel(lambda request: {"calls": [["read", {"filePath": "a.txt"}]]})
    workspace = await open_workspace({}, files={"a.txt": "x"}, approve=approve)
    answer = await workspace.sessions.prompt("x", model=model)
    assert permissions == ["doom_loop"]
    assert (answer.ended, answer.steps) == ("rejected", 3)


async def test_a_circle_that_is_refused_ends_the_step_at_once(open_workspace: OpenWorkspace) -> None:
    read = ["read", {"filePath": "a.txt"}]
    sleep = ["bash", {"command": "sleep 600", "description": "d"}]
    model = FakeModel([{"calls": [sleep, read, read, read, ["glob", {"pattern": "*"}]]}, {"text": "And now?"}])
    config = {"permission": {"*": "allow", "doom_loop": "ask"}}

    async def approve(request: Any) -> str:
        await run_until(lambda: [c.part.tool for c in workspace.calls.values()].count("read") == 1)
        return "reject"

    workspace = await open_workspace(config, files={"a.txt": "x"}, approve=approve)
    async with asyncio.timeout(20):
        answer = await workspace.sessions.prompt("x", model=model)
    message = answer.messages[-1]
    assert answer.ended == "rejected"
    refusal = "The user rejected permission to use this specific tool call."
    assert message.info["error"] == {"name": "UnknownError", "data": {"message": refusal}}
    assert [part.state.status for part in answer.calls[:4]] == ["error", "completed", "completed", "error"]
    assert answer.calls[0].outcome == "stopped"
    assert not list(message.of_type("step-finish"))
    again = await workspace.sessions.prompt("y", session=answer.session, model=model)
    assert again.text.strip() == "And now?"
    assert [turn.role for turn in model.requests[1].turns] == ["user", "user"], "as after any error"


async def test_steps_have_a_limit(workspace: Workspace) -> None:
    n = iter(range(100))

    def turn(request: Any) -> dict[str, Any]:
        if request.tool_choice == "none":
            return {"text": "That is how far I came."}
        return {"calls": [["glob", {"pattern": f"*{next(n)}"}]]}

    model = FakeModel(turn)
    answer = await workspace.sessions.prompt("x", model=model, max_steps=3)
    assert answer.steps == 3
    assert answer.text.strip() == "That is how far I came."
    assert [request.tool_choice for request in model.requests] == ["auto", "auto", "none"]
    assert len(answer.session.messages) == 4, "the reminder is not kept"


async def test_a_call_after_the_last_step_is_not_made(workspace: Workspace) -> None:
    write = ["write", {"filePath": "b.txt", "content": "x"}]
    model = FakeModel(lambda request: {"text": "I go on.", "calls": [write]})
    answer = await workspace.sessions.prompt("x", model=model, max_steps=2)
    (workspace.directory / "b.txt").unlink()
    again = await workspace.sessions.prompt("x", model=model, max_steps=2, tools=["read"])
    assert not (workspace.directory / "b.txt").exists()
    assert [part.tool for part in answer.calls] == ["write", "invalid"]
    assert answer.ended == again.ended == "max-steps"


class City(BaseModel):
    """A place."""

    name: str
    people: int


async def test_an_answer_in_a_form(workspace: Workspace) -> None:
    wrong = {"name": "Rome", "people": "many"}
    right = {"name": "Rome", "people": 3}
    turns = [{"text": "Rome!"}, {"calls": [["StructuredOutput", wrong]]}, {"calls": [["StructuredOutput", right]]}]
    model = FakeModel(turns)
    answer = await workspace.sessions.prompt("x", model=model, format=City)
    assert answer.value == City(name="Rome", people=3)
    numbers = await workspace.sessions.prompt(
        "x", model=FakeModel([{"calls": [["StructuredOutput", {"value": [1, 2]}]]}]), format=list[int]
    )
    assert numbers.value == [1, 2]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    by_schema = FakeModel([{"calls": [["StructuredOutput", {}]]}, {"calls": [["StructuredOutput", {"a": 1}]]}])
    assert (await workspace.sessions.prompt("x", model=by_schema, format=schema)).value == {"a": 1}
    with pytest.raises(ModelError, match="form"):
        await workspace.sessions.prompt("x", model=FakeModel([{"text": "no"}] * 9), format=City)
    with pytest.raises(InvalidArgumentsError):
        workspace.sessions.prompt("x", model=model, format={"type": "nonsense"})
    assert model.requests[0].tool_choice == "required"


async def test_pictures_of_tools_and_prompts_reach_the_model(open_workspace: OpenWorkspace) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"0" * 20

    @tool
    def picture() -> ToolResult:
        """Draw."""
        return ToolResult(output="a picture", attachments=[Attachment.from_bytes(png, "image/png")])

    model = FakeModel([{"calls": [["picture", {}]]}, {"text": "nice"}])
    workspace = await open_workspace(files={"notes.md": "some notes"})
    (workspace.directory / "plot.png").write_bytes(png)
    workspace.registry.register(picture)
    await workspace.sessions.prompt("x", model=model, files=["plot.png", "notes.md"])
    with pytest.raises(InvalidArgumentsError, match="can't be read"):
        await workspace.sessions.prompt("x", model=model, files=["missing.png"])
    user, _, results = model.requests[1].turns
    assert [type(piece) for piece in user.pieces] == [TextPiece, MediaPiece, TextPiece]
    assert "some notes" in user.pieces[2].text  # type: ignore[union-attr]
    result = results.pieces[0]
    assert isinstance(result, ResultPiece)
    assert [media.mime for media in result.media] == ["image/png"]


async def test_errors_of_the_model(open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    limited = ModelError("slow down", "rate_limit", status=429, retry_after=0.01)
    broken = ModelError("wrong key", "auth", provider="fake", status=401)
    statuses: list[Any] = []
    workspace = await open_workspace()
    run = workspace.sessions.prompt("x", model=FakeModel([{"error": limited}, {"error": limited}, {"text": "ok"}]))
    run.on_change = lambda run, kind, value: statuses.append((run.status, run.retry and run.retry["attempt"]))
    answer = await run
    assert answer.text.strip() == "ok"
    assert ("retrying", 1) in statuses
    assert ("retrying", 2) in statuses
    assert len(answer.session.messages) == 2, "failed requests leave nothing behind"
    with pytest.raises(ModelError, match="wrong key"):
        await workspace.sessions.prompt("x", model=FakeModel([{"error": broken}]), session=answer.session)
    error = answer.session.messages[-1].info["error"]
    assert error == {"name": "ProviderAuthError", "data": {"providerID": "fake", "message": "wrong key"}}
    after = FakeModel([{"text": "again"}])
    assert (await workspace.sessions.prompt("y", model=after, session=answer.session)).text.strip() == "again"
    assert [turn.role for turn in after.requests[0].turns] == ["user", "assistant", "user", "user"]
    dead = FakeModel([{"error": ModelError("down", "overloaded", status=503)}] * 20)
    with pytest.raises(ModelError, match=r"^down\. It was asked 6 times\.$"):
        await workspace.sessions.prompt("x", model=dead)
    assert len(dead.requests) == retry.TRIES


async def test_a_stream_that_breaks_off(open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    write = ["write", {"filePath": "b.txt", "content": "x"}]
    read = ["read", {"filePath": "a.txt"}]
    workspace = await open_workspace(files={"a.txt": "hello"})
    early = FakeModel([{"text": "Half", "calls": [write], "cut_in": 0}, {"text": "Whole."}])
    answer = await workspace.sessions.prompt("x", model=early)
    assert answer.text.strip() == "Whole."
    assert answer.calls == []
    assert not (workspace.directory / "b.txt").exists()
    late = FakeModel([{"calls": [read, write], "cut_in": 1}, {"text": "Then so."}])
    answer = await workspace.sessions.prompt("x", model=late)
    assert ends(answer.calls)[0][:2] == ("read", "completed")
    assert ends(answer.calls)[1] == ("write", "error", "Tool execution aborted")
    assert answer.text.strip() == "Then so."
    assert len(late.requests) == 2, "what was done is told, and not asked for again"
    assert not (workspace.directory / "b.txt").exists()


async def test_events_can_be_followed(open_workspace: OpenWorkspace) -> None:
    model = FakeModel([{"text": "Some words", "calls": [["glob", {"pattern": "*"}]]}, {"text": "Done."}])
    workspace = await open_workspace(files={"a.txt": "x"})
    run = workspace.sessions.prompt("x", model=model)
    types: list[str] = []
    deltas = ""
    async for event in run:
        types.append(event["type"])
        deltas += event["properties"].get("delta", "")
    answer = await run
    assert answer.ended == "done"
    assert {"message.updated", "message.part.updated", "message.part.delta", "session.status"} <= set(types)
    assert types[-1] in ("session.updated", "session.status")
    assert deltas == "Some words Done. "


async def test_tools_see_the_conversation(workspace: Workspace) -> None:
    roles: list[Any] = []

    @tool
    async def look(*, ctx: ToolContext) -> str:
        """Look back."""
        roles.append([message["info"]["role"] for message in ctx.messages])
        return ctx.extra["model"]["modelID"]

    model = FakeModel([{"calls": [["look", {}]]}, {"text": "x"}])
    workspace.registry.register(look)
    answer = await workspace.sessions.prompt("x", model=model)
    assert roles == [["user", "assistant"]]
    assert ends(answer.calls) == [("look", "completed", "m")]


async def test_the_model_sees_what_the_calls_of_its_batch_gave(open_workspace: OpenWorkspace) -> None:
    calls = [{"tool": "read", "parameters": {"filePath": "a.txt"}}, {"tool": "glob", "parameters": {"pattern": "*"}}]
    model = FakeModel([{"calls": [["batch", {"tool_calls": calls}]]}, {"text": "x"}])
    config = {"permission": {"*": "allow"}, "experimental": {"batch_tool": True}}
    workspace = await open_workspace(config, files={"a.txt": "hello"})
    answer = await workspace.sessions.prompt("x", model=model)
    await workspace.store.flush()  # type: ignore[union-attr]
    live = [message.to_wire() for message in answer.session.messages]
    again = await (await open_workspace(config)).sessions.open(answer.session.id)
    assert [part.tool for part in answer.calls] == ["batch", "read", "glob"]
    results = model.requests[1].turns[-1]
    assert [piece.name for piece in results.pieces if isinstance(piece, ResultPiece)] == ["batch", "read", "glob"]
    kinds = [[part["type"] for part in message["parts"]] for message in live]
    assert sorted(kinds[1]) == sorted(part["type"] for part in again.messages[1].to_wire()["parts"])


async def test_a_person_names_a_sub_agent(open_workspace: OpenWorkspace) -> None:
    task = ["task", {"description": "d", "prompt": "find it", "subagent_type": "explore"}]
    model = FakeModel([{"calls": [task]}, {"text": "Found."}, {"text": "It is found."}])
    workspace = await open_workspace({"permission": {"*": "allow", "task": {"*": "ask"}}})
    answer = await workspace.sessions.prompt("@explore where is it? @dataclass", model=model)
    assert [part["name"] for part in answer.messages[0].of_type("agent")] == ["explore"]
    assert ends(answer.calls)[0][:2] == ("task", "completed"), "and nobody was asked"
    assert "sub-agent" in model.requests[0].turns[0].pieces[1].text  # type: ignore[union-attr]


async def test_what_a_person_changes_meanwhile_is_not_the_models_doing(tmp_path: Path) -> None:
    calls = [[["write", {"filePath": "b.txt", "content": "1"}]], [["read", {"filePath": "b.txt"}]]]
    turns = [{"calls": calls[0]}, {"calls": calls[1]}, {"calls": [["write", {"filePath": "c.txt", "content": "2"}]]}]
    async with project(tmp_path, git=True, a_txt="x") as workspace:
        folder = workspace.directory

        def turn(request: Any) -> dict[str, Any]:
            n = len(model.requests) - 1
            if n == 2:
                (folder / "mine.txt").write_text("a person's")
            return [*turns, {"text": "Done."}][n]

        model = FakeModel(turn)
        answer = await workspace.sessions.prompt("x", model=model)
    patches = [part["files"] for message in answer.messages for part in message.of_type("patch")]
    assert patches == [[str(folder / "b.txt")], [str(folder / "c.txt")]]


async def test_wrong_use_is_told(workspace: Workspace) -> None:
    with pytest.raises(ModelError, match="No model is named"):
        await workspace.sessions.prompt("x")
    with pytest.raises(ToolError, match="no agent 'biuld'"):
        await workspace.sessions.prompt("x", agent="biuld", model=FakeModel([]))
    with pytest.raises(ToolError, match="no session"):
        await workspace.sessions.prompt("x", session="ses_none", model=FakeModel([]))
    with pytest.raises(InvalidArgumentsError, match="must be a text"):
        workspace.sessions.prompt(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentsError, match="max_steps"):
        workspace.sessions.prompt("x", max_steps=0)
    model = FakeModel([{"text": "x", "hang": "text"}])
    session = workspace.sessions.create()
    busy = workspace.sessions.prompt("x", model=model, session=session)
    task = asyncio.ensure_future(busy.run())
    await model.hanging.wait()
    with pytest.raises(ToolError, match="is running"):
        await workspace.sessions.prompt("y", model=model, session=session)
    busy.abort()
    with pytest.raises(ToolError):
        await task
    assert session.run is None


def test_usage_adds_up() -> None:
    assert (Usage(1, 2, 3, 4, 5) + Usage(1, 1, total=7)).whole == 15 + 7
