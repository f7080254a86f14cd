"""Mistakes in a script: each is named with its place, and all of them at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import CallEnd
from opencode_jupyter.agent.scripted import ScriptedModel, load
from tests.support.script_player import Talk, script_of_text


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", "lesson.yaml", "a script: must be a mapping"),
        ("turns: [", "line 2, column 1", "no YAML"),
        ("turns:\n\t- a", "line 2, column 1", "no YAML"),
        ("about: x", "line 1, column 1", "needs either turns: (for any prompt) or prompts:"),
        ("turnz: [a]", "line 1, column 1", "turnz: is not known here. Did you mean turns"),
        ("5", "line 1, column 1", "a script: must be a mapping (name: value)"),
        ("turns: a", "line 1, column 1", "turns: input should be a valid list"),
        ("turns: []", "line 1, column 1", "turns: list should have at least 1 item"),
        ("turns: [a]\nturns: [b]", "line 2, column 1", "turns is there twice"),
        ("turns: [a]\nprompts: [{turns: [b]}]", "line 1, column 1", "either turns: (for any prompt) or prompts:"),
        ("prompts: [{match: a}]", "line 1, column 11", "turns: field required"),
        ("prompts: [{mach: a, turns: [b]}]", "line 1, column 12", "Did you mean match"),
        (
            "prompts: [{match: '(', turns: [b]}]",
            "line 1, column 12",
            "match: input should be a valid regular",
        ),
        ("prompts: [{number: one, turns: [b]}]", "line 1, column 12", "number: input should be a valid integer"),
        ("turns:\n  - txt: a", "line 2, column 5", "txt: is not known here. Did you mean text"),
        ("turns:\n  - delay: 1", "line 2, column 5", "the turn is empty"),
        ("turns:\n  -\n    - a", "line 3, column 5", "must be a mapping"),
        ("turns: [{calls: {read: {}}}]", "line 1, column 10", "calls: input should be a valid list"),
        ("turns: [{calls: [{read: {}, write: {}}]}]", "line 1, column 18", "a call is written `- read:"),
        ("turns: [{calls: [{tool: read, args: {}}]}]", "line 1, column 31", "args: is not known here"),
        ("turns:\n- calls:\n  - read {filePath: a}", "line 3, column 5", "no tool's name; a call is written"),
        ("turns: [{calls: [read a.txt]}]", "line 1, column 18", "'read a.txt' is no tool's name"),
        ("turns: [{calls: [5]}]", "line 1, column 18", "a call is written"),
        ("turns: [{text: {a: b}}]", "line 1, column 10", "text: input should be a valid string"),
        ("turns: [{text: a, parts: [{text: b}]}]", "line 1, column 9", "parts: holds everything in order"),
        ("turns: [{text: a, finish: halt}]", "line 1, column 19", "finish: input should be 'stop', 'tool-calls'"),
        ("turns: [{error: rate-limit}]", "line 1, column 10", "kind: input should be 'auth', 'not_found'"),
        ("turns: [{error: {message: a}}]", "line 1, column 10", "kind: field required"),
        ("turns: [{error: {kind: network, retry_after: -1}}]", "line 1, column 33", "greater than or equal to 0"),
        ("turns: [{text: a, cut: maybe}]", "line 1, column 19", "cut: input should be 'end', True or False"),
        ("turns: [{text: a, delay: long}]", "line 1, column 19", "delay: input should be a valid number"),
        ("turns: [{text: a, usage: {inputs: 5}}]", "line 1, column 27", "Did you mean input"),
        (
            "turns: [a, b]",
            "line 1, column 12",
            "can't be reached: the turn before it (line 1, column 9) makes no calls",
        ),
        ("turns: ['{{reslt}}']", "line 1, column 9", "{{reslt}} is not known; there are result, result.1.outcome"),
        ("turns: ['{{result | trim}}']", "line 1, column 9", "Other values need a script in Python"),
        ("turns: ['{{ 1 + 1 }}']", "line 1, column 9", "Plain braces are written \\{{"),
        ("turns: [{calls: [{read: {filePath: '{{x}}'}}]}]", "line 1, column 9", "{{x}} is not known"),
        ("turns: [{text: {{result}}}]", "line 1, column 17", "a key must be a text"),
        ("speed: fast\nturns: [a]", "line 1, column 1", "speed: input should be a valid number"),
        ("strict: 3\nturns: [a]", "line 1, column 1", "strict: input should be a valid boolean"),
        ("model: {contxt: 5}\nturns: [a]", "line 1, column 9", "Did you mean context"),
        ("agents: {explore: {}}\nturns: [a]", "line 1, column 10", "it needs either turns:"),
        ("agents:\n  explore:\n    - txt: a\nturns: [a]", "line 3, column 7", "Did you mean text"),
        ("turns: [&a {text: *a}]", "lesson.yaml", "an alias leads into itself"),
        ("turns: [{text: a, results: [{output: b}]}]", "line 1, column 29", "tool: field required"),
    ],
)
def test_each_mistake_is_named_with_its_place(text: str, position: str, words: str) -> None:
    with pytest.raises(ModelError) as error:
        script_of_text(text, "lesson.yaml")
    assert error.value.kind == "script"
    message = str(error.value)
    assert "lesson.yaml" in message
    assert any(position in line and words in line for line in message.splitlines()), message


@pytest.mark.parametrize(
    "text",
    [
        "variables: {n: 5}\nturns: [a]",
        "turns: [{calls: [read], label: look}, {when: 'x', text: a}, {text: b, goto: look}]",
        "turns: [{cases: [{when: x, text: a}, {text: b}]}]",
        "turns: [{text: a, capture: 'n=(?P<n>1)'}]",
        "turns: [{calls: [read], repeat: 3}, {repeat: 2, turns: [a]}]",
    ],
)
def test_a_removed_key_is_one_error_that_names_the_python_way(text: str) -> None:
    with pytest.raises(ModelError) as error:
        script_of_text(text, "lesson.yaml")
    assert len(str(error.value).splitlines()) == 1
    assert "line " in str(error.value) and "def script(prompt)" in str(error.value)


def test_all_mistakes_are_reported_at_once_but_not_without_end() -> None:
    with pytest.raises(ModelError) as error:
        script_of_text("turns:\n  - {txt: a}\n  - {calls: [{read: {}}], finish: x}\n  - {error: y}\n")
    assert [line.split(":")[0] for line in str(error.value).splitlines()[1:]] == [
        "line 2, column 6",
        "line 3, column 27",
        "line 4, column 6",
    ]
    with pytest.raises(ModelError, match="and 30 more"):
        script_of_text("turns:\n" + "  - {txt: a}\n" * 40)


@pytest.mark.anyio
async def test_plain_values_are_what_they_look_like(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    values = "{x: no, y: 12:30, z: 2026-11-22, t: true, n: null, f: 1.5, i: -3}"
    path.write_text(f"turns: [{{calls: [{{a: {values}}}]}}, {{text: done}}]")
    talk = Talk(load(path))
    await talk.prompt("Go")
    [call] = [event for event in talk.all if isinstance(event, CallEnd)]
    assert json.loads(call.arguments) == {
        "x": "no",
        "y": "12:30",
        "z": "2026-11-22",
        "t": True,
        "n": None,
        "f": 1.5,
        "i": -3,
    }


@pytest.mark.anyio
async def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "lesson.json"
    path.write_text('{\n\t"turns": [\n\t\t{"text": "smile \\ud83d\\ude00 \\/ tab\\t"}\n\t]\n}')
    assert await Talk(load(path)).prompt("Go") == [("text", "smile 😀 / tab\t")]
    path.write_text('{"turns": [{"txt": 1}]}')
    with pytest.raises(ModelError, match=r"lesson\.json: turns\[0\]\.txt: txt: is not known"):
        load(path)


def test_mistakes_of_what_is_given_in_python() -> None:
    with pytest.raises(ModelError, match=r"mine: turns\[1\]\.cals: cals: is not known here\. Did you mean calls"):
        ScriptedModel([{"calls": ["a"]}, {"cals": []}], name="mine")


@pytest.mark.anyio
async def test_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no script .*gone\.yaml") as error:
        load(tmp_path / "gone.yaml")
    assert error.value.kind == "script"
    (tmp_path / "latin.yaml").write_bytes("turns: [caf\xe9]".encode("latin-1"))
    with pytest.raises(ModelError, match="is not UTF-8"):
        load(tmp_path / "latin.yaml")
    (tmp_path / "notes.txt").write_text("turns: [a]")
    with pytest.raises(ModelError, match="A script is a file ending in"):
        load(tmp_path / "notes.txt")
    path = tmp_path / "lesson.yaml"
    path.write_text("\ufeffspeed: 0\nturns: [one]", "utf-8")
    model = load(tmp_path / "lesson")
    assert model.info.full == "scripted:lesson"
    assert load(path, name="scripts/lesson.yaml").info.model == "scripts/lesson.yaml"
    assert await Talk(model).prompt("Go") == [("text", "one")]
    path.write_text("speed: 0\nmodel: {context: 9}\nturns: [two]")
    os.utime(path, (1, 1))
    assert await Talk(model).prompt("Go") == [("text", "two")]
    assert model.info.context == 9
    path.write_text("turns: [a, b]")
    for _ in range(2):
        with pytest.raises(ModelError, match="can't be reached"):
            await Talk(model).prompt("Go")
    path.rename(tmp_path / "lessons.yaml")
    with pytest.raises(ModelError, match=r"There is no script .*lesson\.yaml\. Did you mean lessons\.yaml"):
        await Talk(model).prompt("Go")
