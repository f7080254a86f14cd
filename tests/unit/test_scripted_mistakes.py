"""Mistakes in a script: each is named with its place, and all of them at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.scripted import ScriptedModel, load
from opencode_jupyter.agent.scripted.reading import script_of_text
from tests.support.script_player import Talk


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "line 1, column 1", "empty"),
        ("turns: [", "line 2, column 1", "no YAML"),
        ("turns:\n\t- a", "line 2, column 1", "no YAML"),
        ("about: x", "line 1, column 1", "needs turns: (for any prompt) or prompts:"),
        ("turnz: [a]", "line 1, column 1", "turnz: is not known in a script (did you mean turns?)"),
        ("5", "line 1, column 1", "a script must be a mapping (name: value), not a number"),
        ("turns: a", "line 1, column 8", "turns: must be a list (each entry starts with a dash), not a text"),
        ("turns: []", "line 1, column 8", "turns: is empty"),
        ("turns: [a]\nturns: [b]", "line 2, column 1", "turns is there twice (line 1, column 1 is the first)"),
        ("turns: [a]\nprompts: [{turns: [b]}]", "line 2, column 1", "can't both be there"),
        ("prompts: [{match: a}]", "line 1, column 11", "needs turns:"),
        ("prompts: [{mach: a, turns: [b]}]", "line 1, column 12", "did you mean match?"),
        ("prompts: [{match: '(', turns: [b]}]", "line 1, column 19", "is no regular expression"),
        ("prompts: [{number: one, turns: [b]}]", "line 1, column 20", "number: must be a whole number, not a text"),
        ("turns:\n  - txt: a", "line 2, column 5", "txt: is not known in a turn (did you mean text?)"),
        ("turns:\n  - label: a", "line 2, column 5", "the turn is empty"),
        ("turns:\n  - {label: 1a, text: b}", "line 2, column 13", "must be a name"),
        ("turns: [{label: a, calls: [b]}, {label: a, text: c}]", "line 1, column 41", "'a' is there twice"),
        ("turns: [{text: a, goto: b}]", "line 1, column 25", "no label 'b'"),
        ("turns: [{label: look, calls: [a], goto: lok}]", "line 1, column 41", "did you mean look?"),
        ("turns: [{calls: {read: {}}}]", "line 1, column 17", "calls: must be a list"),
        ("turns: [{calls: [{read: {}, write: {}}]}]", "line 1, column 18", "a call has one name"),
        ("turns: [{calls: [{tool: read, args: {}}]}]", "line 1, column 31", "args: is not known in a call"),
        ("turns:\n- calls:\n  - read {filePath: a}", "line 3, column 5", "no tool's name; a call is written"),
        ("turns: [{calls: [read a.txt]}]", "line 1, column 18", "'read a.txt' is no tool's name"),
        ("turns: [{calls: [5]}]", "line 1, column 18", "must be a mapping"),
        ("turns: [{text: {a: b}}]", "line 1, column 16", "what is said must be a text, not a mapping"),
        ("turns: [{text: a, parts: [{text: b}]}]", "line 1, column 10", "text: and parts: can't both be there"),
        ("turns: [{text: a, finish: halt}]", "line 1, column 27", "finish: 'halt' is not known"),
        ("turns: [{error: rate-limit}]", "line 1, column 17", "did you mean rate_limit?"),
        ("turns: [{error: {message: a}}]", "line 1, column 17", "error: needs kind:"),
        ("turns: [{error: {kind: network, retry_after: -1}}]", "line 1, column 46", "is a number of seconds"),
        ("turns: [{text: a, cut: maybe}]", "line 1, column 24", "cut: is true"),
        ("turns: [{text: a, delay: long}]", "line 1, column 26", "delay: is a number of seconds, not a text"),
        ("turns: [{text: a, usage: {inputs: 5}}]", "line 1, column 27", "did you mean input?"),
        ("turns: [{text: a, repeat: 0}]", "line 1, column 27", "whole number above 0"),
        ("turns: [{calls: [a], repeat: 99999999}]", "line 1, column 9", "makes more than 10,000 turns"),
        ("turns: [{turns: [a]}]", "line 1, column 9", "needs repeat:"),
        ("turns: [{when: {}, text: a}]", "line 1, column 16", "would always hold"),
        ("turns: [{when: {results: a}, text: a}]", "line 1, column 17", "did you mean result?"),
        ("turns: [{when: {outcome: reject}, text: a}]", "line 1, column 26", "did you mean rejected?"),
        ("turns: [{when: '[', text: a}]", "line 1, column 16", "is no regular expression"),
        ("turns: [{cases: [{text: a}, {text: b}]}]", "line 1, column 29", "the case before it has no when:"),
        (
            "turns: [a, b]",
            "line 1, column 12",
            "can't be reached: the turn before it (line 1, column 9) makes no calls",
        ),
        ("turns: ['{{reslt}}']", "line 1, column 9", "reslt is not known (did you mean result?)"),
        ("turns: ['{{result.0.text}}']", "line 1, column 9", "a result has output, tool, outcome, arguments"),
        ("turns: ['{{result | trimm}}']", "line 1, column 9", "there is no filter trimm (did you mean trim?)"),
        ("turns: ['{{results.look}}']", "line 1, column 9", "there is no label 'look'"),
        ("turns: ['{{prompt.size}}']", "line 1, column 9", "a prompt has only text and number"),
        ("turns: ['{{ 1 + 1 }}']", "line 1, column 9", "is no name; a plain {{ is written \\{{"),
        ("turns: [{calls: [{read: {filePath: '{{x}}'}}]}]", "line 1, column 25", "x is not known"),
        ("turns: [{text: {{result}}}]", "line 1, column 17", "a key must be a text"),
        ("speed: fast\nturns: [a]", "line 1, column 8", "milliseconds between two pieces"),
        ("strict: 1\nturns: [a]", "line 1, column 9", "must be true or false, not a number"),
        ("model: {contxt: 5}\nturns: [a]", "line 1, column 9", "did you mean context?"),
        ("agents: {explore: {}}\nturns: [a]", "line 1, column 19", "an agent"),
        ("turns: [&a {text: *a}]", "line 1, column 9", "an alias leads into itself"),
        ("turns: [{text: a, results: [{output: b}]}]", "line 1, column 29", "needs tool:"),
    ],
)
def test_each_mistake_is_named_with_its_place(text: str, place: str, words: str) -> None:
    with pytest.raises(ModelError) as error:
        script_of_text(text, "lesson.yaml")
    assert error.value.kind == "script"
    told = str(error.value)
    assert "lesson.yaml" in told
    assert any(place in line and words in line for line in told.splitlines()), told


def test_all_mistakes_are_told_at_once_but_not_without_end() -> None:
    with pytest.raises(ModelError) as error:
        script_of_text("turns:\n  - {txt: a}\n  - {calls: [{read: {}}], finish: x}\n  - {error: y}\n")
    assert [line.split(":")[0] for line in str(error.value).splitlines()[1:]] == [
        "line 2, column 6",
        "line 3, column 35",
        "line 4, column 13",
    ]
    with pytest.raises(ModelError, match="and 30 more"):
        script_of_text("turns:\n" + "  - {txt: a}\n" * 40)


def test_plain_values_are_what_they_look_like() -> None:
    script = script_of_text(
        "turns: [{calls: [{a: {x: no, y: 12:30, z: 2026-11-22, t: true, n: null, f: 1.5, i: -3}}]}]"
    )
    (block,) = script.main.blocks
    assert block.items[0].calls[0].arguments == {  # type: ignore[union-attr]
        "x": "no",
        "y": "12:30",
        "z": "2026-11-22",
        "t": True,
        "n": None,
        "f": 1.5,
        "i": -3,
    }


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "lesson.json"
    path.write_text('{\n\t"turns": [\n\t\t{"text": "smile \\ud83d\\ude00 \\/ tab\\t"}\n\t]\n}')
    script = load(path)._script
    assert script.main.blocks[0].items[0].parts[0].text == "smile 😀 / tab\t"  # type: ignore[union-attr]
    path.write_text('{"turns": [{"txt": 1}]}')
    with pytest.raises(ModelError, match=r"lesson\.json.*line 1, column 13: txt: is not known"):
        load(path)


def test_mistakes_of_what_is_given_in_python() -> None:
    with pytest.raises(
        ModelError, match=r"mine\.turns\[1\]\.cals: cals: is not known in a turn \(did you mean calls\?\)"
    ):
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
    path.unlink()
    with pytest.raises(ModelError, match="There is no script"):
        await Talk(model).prompt("Go")
