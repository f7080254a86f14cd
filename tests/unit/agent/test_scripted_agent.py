"""Scripted models drive the real loop with real tools, offline; what is recorded there plays again."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.scripted import ScriptedModel, call, load, say, script_of
from tests.support.script_player import script_of_text

pytestmark = pytest.mark.anyio

EXAMPLE = Path(__file__).parents[3] / "notebooks" / "scripts" / "first-agent.py"
SHAPES = "def area(r):\n    return 3.14 * r * r\n"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_JUPYTER_SCRIPT_SPEED", "0")


def project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "shapes.py").write_text(SHAPES)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def opened(folder: Path, approve: Any = lambda request: "once") -> Workspace:
    return Workspace(folder, data_dir=folder.parent / f"data-{folder.name}", approve=approve)


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with opened(project(tmp_path / "project")) as made:
        yield made


async def test_the_example_edits_and_checks(workspace: Workspace) -> None:
    path = workspace.directory / "lesson.py"
    path.write_text(EXAMPLE.read_text())
    answer = await workspace.sessions.prompt("Make the area exact", model="scripted:lesson.py")
    assert answer.text == "Done. The area of a circle with radius 2 is now 12.566370614359172."
    assert "math.pi * r ** 2" in (workspace.directory / "shapes.py").read_text()
    assert answer.cost is not None and answer.cost > 0
    # the cell again, in the same session, by the session's own model
    again = await workspace.sessions.prompt("Is the area exact?", session=answer.session)
    assert again.text == "The area is exact already. Nothing is left to do."


async def test_the_example_when_the_edit_is_refused(tmp_path: Path) -> None:
    def approve(request: Any) -> Any:
        return ("reject", "leave it") if request.permission == "edit" else "once"

    async with opened(project(tmp_path / "project"), approve) as workspace:
        answer = await workspace.sessions.prompt("Make the area exact", model=load(EXAMPLE))
    assert answer.text == "I leave it at that, since you refused."
    assert (tmp_path / "project" / "shapes.py").read_text() == SHAPES


async def test_a_lesson_is_recorded_and_plays_elsewhere(tmp_path: Path) -> None:
    lesson = tmp_path / "lesson.yaml"
    texts = []
    for name, model in (("first", str(EXAMPLE)), ("second", str(lesson))):
        async with opened(project(tmp_path / name)) as workspace:
            record = lesson if name == "first" else None
            answer = await workspace.sessions.prompt("Make the area exact", model=f"scripted:{model}", record=record)
            more = await workspace.sessions.prompt("and the area now?", session=answer.session, record=record)
            texts.append([answer.text, more.text])
            if name == "second":
                assert workspace.directory.joinpath("shapes.py").read_text().startswith("import math")
            assert answer.calls.records[0]["tool"] == "read"
    assert texts[0] == texts[1]
    assert str(tmp_path) not in lesson.read_text()
    model = load(lesson)
    folder = project(tmp_path / "third")
    (folder / "shapes.py").write_text(SHAPES.replace("area", "surface"))
    async with opened(folder) as workspace:
        await workspace.sessions.prompt("Make the area exact", model=model)
    assert model.differences[0].tool == "read"
    assert "surface" in model.differences[0].diff


async def test_failures_are_tried_again(workspace: Workspace) -> None:
    model = ScriptedModel(
        [
            {"error": {"kind": "rate_limit", "retry_after": 0, "times": 2}},
            {"text": "I lo", "cut": True, "error": {"kind": "cut", "retry_after": 0}},
            {"text": "Look.", "calls": [{"read": {"filePath": "shapes.py"}}]},
            {"error": {"kind": "overloaded", "retry_after": 0}},
            "Done.",
        ]
    )
    answer = await workspace.sessions.prompt("Go", model=model)
    assert [message.text for message in answer.messages[1:]] == ["Look.", "Done."]
    with pytest.raises(ModelError, match="No credit"):
        await workspace.sessions.prompt("Go", model=ScriptedModel([{"error": "quota"}]))


async def test_bad_calls_are_told_to_the_model(workspace: Workspace) -> None:
    def script(prompt: Any) -> Any:
        results = yield say(call("read", '{"filePath": 5'), call("nosuchtool", a=1), call("Read", filePath="shapes.py"))
        outputs = [result.output for result in results if result.outcome == "invalid"]
        yield " / ".join(outputs)

    answer = await workspace.sessions.prompt("Go", model=ScriptedModel(script))
    assert "JSON parsing failed" in answer.text and "nosuchtool" in answer.text
    assert [part.tool for part in answer.calls] == ["invalid", "invalid", "read"]


async def test_sub_agents_find_their_turns(workspace: Workspace) -> None:
    model = ScriptedModel(
        [
            {"calls": [{"task": {"description": "look", "prompt": "Look around", "subagent_type": "explore"}}]},
            "It says: {{result}}",
        ],
        agents={"explore": [{"calls": [{"glob": {"pattern": "*.py"}}]}, "Found {{result}}"]},
    )
    record = workspace.directory.parent / "lesson.yaml"
    answer = await workspace.sessions.prompt("Go", model=model, record=record)
    assert "shapes.py" in answer.text
    again = await workspace.sessions.prompt("Go", model=f"scripted:{record}")
    assert again.text.splitlines()[-2:] == answer.text.splitlines()[-2:]


class Size(BaseModel):
    width: int


async def test_an_answer_in_a_form(workspace: Workspace) -> None:
    model = ScriptedModel(["It is five wide.", {"calls": [{"StructuredOutput": {"width": 5}}]}])
    answer = await workspace.sessions.prompt("How wide?", model=model, format=Size)
    assert answer.value == Size(width=5)


async def test_the_last_step_takes_the_next_turn(workspace: Workspace) -> None:
    model = ScriptedModel([{"calls": [{"read": {"filePath": "shapes.py"}}]}, "That is all I could do."])
    answer = await workspace.sessions.prompt("Go", model=model, max_steps=2)
    assert answer.text == "That is all I could do."


async def test_a_session_plays_again_as_a_script(workspace: Workspace) -> None:
    answer = await workspace.sessions.prompt("Make the area exact", model=load(EXAMPLE))
    text = script_of(answer.session)
    assert str(workspace.directory) not in text
    (workspace.directory / "shapes.py").write_text(SHAPES)
    model = ScriptedModel(script_of_text(text))
    again = await workspace.sessions.prompt("Make the area exact", model=model)
    assert again.text == answer.text
    assert model.differences == []


async def test_a_conversation_that_is_summed_up_plays_again(workspace: Workspace) -> None:
    (workspace.directory / "big.txt").write_text("a line of text\n" * 3000)
    first = [
        {"calls": [{"read": {"filePath": "big.txt"}}], "usage": {"input": 9000}},
        {"calls": [{"read": {"filePath": "big.txt", "offset": 5}}], "usage": {"input": 99000}},
        "not reached",
    ]
    after = [{"calls": [{"glob": {"pattern": "*.txt"}}]}, "Done after the summary."]
    model = ScriptedModel(
        prompts=[{"match": "^Go$", "turns": first}, {"match": "summarised because", "turns": after}],
        info={"context": 100_000, "output": 8000},
    )
    record = workspace.directory.parent / "lesson.yaml"
    answer = await workspace.sessions.prompt("Go", model=model, record=record)
    assert answer.text == "Done after the summary."
    again = await workspace.sessions.prompt("Go", model=f"scripted:{record}")
    assert (again.text, again.notes) == (answer.text, [])
    summaries = [
        [m.text for m in result.session.messages if m.info.get("summary") is True] for result in (answer, again)
    ]
    assert len(summaries[0]) == 1 and summaries[0] == summaries[1]


async def test_keys_of_the_configuration_are_not_recorded(tmp_path: Path) -> None:
    config = {"provider": {"mine": {"options": {"apiKey": "key-of-no-known-form"}}}}
    folder = project(tmp_path / "project")
    async with Workspace(
        folder, config=config, data_dir=tmp_path / "data", approve=lambda request: "once"
    ) as workspace:
        await workspace.sessions.prompt("Say key-of-no-known-form", model=ScriptedModel(["a"]), record="lesson.yaml")
    text = (folder / "lesson.yaml").read_text()
    assert "Say [secret provider.mine.options.apiKey]" in text and "key-of-no-known-form" not in text
