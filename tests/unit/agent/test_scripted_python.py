"""Scripts in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.scripted import ScriptedModel, load
from tests.support.script_player import Talk, event_parts

pytestmark = pytest.mark.anyio
LESSON = """
from dataclasses import dataclass
from opencode_jupyter.agent.scripted import call, failure, say, thought

speed = 0
model = {"context": 7000}

@dataclass
class Place:
    name: str

def script(prompt):
    if prompt.number > 1:
        yield f"Again: {prompt.text}"
        return
    yield say(error=failure("overloaded", times=2))
    look = call("read", filePath=Place("a.txt").name)
    results = yield say(thought("Hm."), "Looking.", look, call("grep", '{"broken'))
    for result in results:
        if result.failed:
            results = yield call("bash", command=result.output)
    yield ["The end: ", results[0].outcome]

def explore(prompt):
    yield f"{prompt.agent} says {', '.join(prompt.tools)}"

agents = {"explore": explore}
"""


async def test_a_generator_says_the_turns(tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(LESSON)
    model = load(path)
    assert (model.info.full, model.info.context) == ("scripted:lesson", 7000)
    talk = Talk(model, lambda tool, a: ValueError("ls") if tool == "grep" else "fine")
    assert await talk.prompt("Go") == [
        ("reasoning", "Hm."),
        ("text", "Looking."),
        ("call", "read", '{"filePath": "a.txt"}'),
        ("call", "grep", '{"broken'),
        ("call", "bash", '{"command": "ls"}'),
        ("text", "The end: "),
        ("text", "completed"),
    ]
    assert await talk.ask() == await talk.ask()
    assert await talk.prompt("more") == [("text", "Again: more")]
    assert await Talk(model, agent="explore", tools=["read", "grep"]).prompt("x") == [
        ("text", "explore says read, grep")
    ]
    assert await Talk(model, agent="title").prompt("A word") == [("text", "A word")]
    path.write_text("def script(prompt):\n    yield 'changed'\nspeed = 0\n")
    assert await Talk(model).prompt("Go") == [("text", "changed")]


async def test_a_function_can_be_given() -> None:
    def script(prompt):  # type: ignore[no-untyped-def]
        results = yield {"not": "a turn"} if prompt.text == "bad" else "fine"
        yield 1 / len(results)

    model = ScriptedModel(script, speed=0)
    assert await Talk(model).prompt("Go") == [("text", "fine")]
    with pytest.raises(ModelError, match=r"The script script: line \d+: a turn is made of texts"):
        await Talk(model).prompt("bad")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def script(", "line 1: '(' was never closed"),
        ("x = 1", "it needs a generator function"),
        ("import nothing_like_it", "line 1: ModuleNotFoundError"),
        ("def script(p): yield 'a'\nagents = ['a']", "`agents` must be a dict"),
        ("def script(p): yield 'a'\nspeed = 'x'", "`speed` must be milliseconds"),
        ("def script(p): yield 'a'\nmodel = 5", "`model` must be a dict"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(text)
    with pytest.raises(ModelError) as error:
        load(path)
    assert error.value.kind == "script"
    assert words in str(error.value) and "lesson.py" in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def script(p):\n    return 'a'", "script must be a generator (it must yield turns); it returned str"),
        ("def script(p):\n    yield 1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("def script(p):\n    yield 5", "line 2: a turn is made of texts"),
        ("def script(p):\n    if False: yield", "turn 1 of prompt 1 ('Go') was requested, but it has only 0"),
    ],
)
async def test_mistakes_while_it_plays(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(text)
    with pytest.raises(ModelError) as error:
        await Talk(load(path)).prompt("Go")
    assert error.value.kind == "script"
    assert words in str(error.value)


async def test_it_is_closed_after_every_request(tmp_path: Path) -> None:
    closed = []

    def script(prompt):  # type: ignore[no-untyped-def]
        try:
            yield "one"
        finally:
            closed.append(prompt.text)

    talk = Talk(ScriptedModel(script, speed=0))
    talk.say("Go")
    assert event_parts(await talk.ask()) == [("text", "one")]
    assert closed == ["Go"]
