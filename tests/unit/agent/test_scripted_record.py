"""Recordings: what is kept, that it plays again the same, and that a replay says what is different."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import Event, Finish, TextDelta, TextStart
from opencode_jupyter.agent.model import ModelInfo, Request
from opencode_jupyter.agent.scripted import Recorder, ScriptedModel, call, failure, load, say, thought
from opencode_jupyter.agent.scripted.yaml_document import dump, parse
from tests.support.script_player import Talk, event_parts

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_JUPYTER_SCRIPT_SPEED", "0")


def original() -> ScriptedModel:
    return ScriptedModel(
        prompts=[
            {
                "match": "one",
                "turns": [
                    {"error": {"kind": "overloaded", "message": "busy", "retry_after": 0}},
                    {
                        "reasoning": "Let me see: {{ braces }}.".replace("{{", "\\{{"),
                        "text": "I look.\n\n  Twice. \n",
                        "calls": [{"read": {"filePath": "a.txt", "limit": 5}}, {"grep": '{"pattern": "x'}],
                        "usage": {"input": 100, "output": 20, "cache_read": 50},
                    },
                    {"parts": [{"bash": {"command": "echo '\\{{x}}' 1e5"}}, {"text": "meanwhile"}]},
                    {"text": "Done: yes", "finish": "length"},
                ],
            },
            {"match": "two", "turns": [{"calls": [{"task": {"subagent_type": "explore"}}]}, "Second."]},
            {"prompt": "again", "turns": ["A"]},
            {"prompt": "again", "turns": ["B"]},
        ],
        agents={"explore": [{"calls": [{"glob": {"pattern": "*"}}]}, "Explored."]},
        name="original",
        info={"context": 9000, "cost": {"input": 1, "output": 2}},
    )


def answer(tool: str, arguments: Any) -> Any:
    return (
        ValueError("no such thing")
        if tool == "grep"
        else None
        if tool == "glob"
        else f"result of {tool}\n took 0.3 s\n"
    )


async def play(model: Any, tmp_path: Path) -> tuple[list[Any], list[Finish]]:
    """The whole lesson: two prompts, a sub-agent, twice the same words."""
    directory = str(tmp_path)
    talk = Talk(model, answer, directory=directory, session="ses_main")
    parts: list[Any] = [await talk.prompt("Do one")]
    talk.say("Now two")
    await talk.step()
    parts.append(
        await Talk(model, answer, directory=directory, session="ses_child", agent="explore").prompt("look around")
    )
    parts.append(event_parts(await talk.step()))
    parts += [await talk.prompt("again"), await talk.prompt("again")]
    return parts, talk.finishes


async def test_a_recording_plays_again_the_same(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "lesson.yaml"
    recorder = Recorder(original(), path)
    assert recorder.info.full == "scripted:original"
    parts, finishes = await play(recorder, tmp_path)
    model = load(path)
    assert (model.info.context, model.info.cost) == (9000, original().info.cost)
    heard_again, finishes_again = await play(model, tmp_path)
    assert heard_again == parts
    assert finishes_again == finishes
    assert model.differences == []
    # a failure that goes away is in it
    talk = Talk(load(path))
    talk.say("Do one")
    with pytest.raises(ModelError, match=r"^busy$") as error:
        await talk.ask()
    assert (error.value.kind, error.value.retry_after) == ("overloaded", 0)


async def test_what_a_recording_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    await play(Recorder(original(), path), tmp_path)
    data = parse(path.read_text(), "lesson").value
    assert data["recording"]["model"] == "scripted:original"
    assert data["recording"]["session"] == "ses_main"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", data["recording"]["date"])
    first, second, *again = data["prompts"]
    assert [block["prompt"] for block in (first, second, *again)] == ["Do one", "Now two", "again", "again"]
    assert first["turns"][0] == {
        "error": {"kind": "overloaded", "message": "busy", "status": 529, "retry_after": 0},
    }
    turn = first["turns"][1]
    assert turn["calls"][1]["arguments"] == '{"pattern": "x'
    assert turn["results"][0]["output"] == "result of read\n took 0.3 s\n"
    assert turn["results"][1] == {
        "tool": "grep",
        "output": "no such thing",
        "hash": turn["results"][1]["hash"],
        "failed": True,
    }
    assert [list(part) for part in first["turns"][2]["parts"]] == [["tool", "id", "arguments"], ["text"]]
    assert data["agents"]["explore"]["prompts"][0]["prompt"] == "look around"
    assert not list(tmp_path.glob(".opencode-*"))


@pytest.mark.parametrize("strict", [False, True])
async def test_a_replay_says_what_differs(tmp_path: Path, strict: bool) -> None:
    path = tmp_path / "lesson.yaml"
    await play(Recorder(original(), path), tmp_path)
    if strict:
        path.write_text("strict: true\n" + path.read_text())

    def now(tool: str, arguments: Any) -> Any:
        result = answer(tool, arguments)
        return "result of another\n took 99 s\n" if tool == "read" else result

    model = load(path)
    talk = Talk(model, now)
    if strict:
        with pytest.raises(ModelError, match=r"(?s)does not fit: what read gave.*-result of read\n\+result of another"):
            await talk.prompt("Do one")
        return
    await talk.prompt("Do one")
    metadata = [finish.metadata for finish in talk.finishes]
    assert metadata[0] is None and metadata[2] is None
    assert metadata[1] is not None
    (words,) = metadata[1]["replay"]["differences"]
    assert "what read gave (call 0) after the turn at line" in words
    assert (
        "-result of read" in words and "+result of another" in words and "took" not in words.replace(" took <dur", "")
    )
    (difference,) = model.differences
    assert (difference.what, difference.tool, difference.call) == ("result", "read", 0)
    assert difference.call_id == "call_1_1"


async def test_a_replay_with_other_calls_or_another_prompt(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    await play(Recorder(original(), path), tmp_path)
    model = load(path)
    talk = Talk(model, answer)
    parts = await talk.prompt("Please do it")
    assert parts[-1] == ("text", "Done: yes")
    assert [difference.what for difference in model.differences] == ["prompt"]
    fewer = Talk(model, answer, session="ses_2")
    fewer.say("Do one")
    await fewer.prompt("Now two")
    stopped = load(path)
    talk = Talk(stopped, answer)
    talk.say("Do one")
    with pytest.raises(ModelError):
        await talk.ask()
    await talk.step()
    tool = talk.turns[-1]
    talk.turns[-1] = type(tool)("tool", tool.pieces[:1])
    await talk.ask()
    await talk.ask()
    assert [difference.what for difference in stopped.differences] == ["calls"]
    assert stopped.differences[0].diff == "- read\n- grep\n+ read"


async def test_every_answer_is_kept_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    recorder = Recorder(ScriptedModel([say("a", call("read")), say("b", call("read")), "c"]), path)
    talk = Talk(recorder)
    talk.say("Go")
    for count in (1, 2, 3):
        stream = recorder.stream(talk.request())
        async for event in stream:
            if isinstance(event, Finish):  # the file is written before the answer's end is told
                assert len(parse(path.read_text(), "x").value["prompts"][0]["turns"]) == count
        await talk.step()


async def test_an_answer_that_is_asked_for_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    recorder = Recorder(ScriptedModel([say("a", call("read")), "b"]), path)
    talk = Talk(recorder)
    await talk.prompt("one")
    await talk.prompt("two")
    del talk.turns[4:]
    await talk.prompt("other")
    blocks = parse(path.read_text(), "x").value["prompts"]
    assert [block["prompt"] for block in blocks] == ["one", "other"]
    del talk.turns[:]
    await talk.prompt("one")
    blocks = parse(path.read_text(), "x").value["prompts"]
    assert [(block["prompt"], len(block["turns"])) for block in blocks] == [("one", 2)]


async def test_a_recording_is_gone_on_with_and_nothing_else_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    first = Talk(Recorder(ScriptedModel(["a"]), path))
    await first.prompt("one")
    second = Talk(Recorder(ScriptedModel(["b"]), path))
    second.turns = list(first.turns)
    await second.prompt("two")
    assert [block["prompt"] for block in parse(path.read_text(), "x").value["prompts"]] == ["one", "two"]
    path.write_text(path.read_text().replace("text: a", "text: edited by hand"))
    second.model = Recorder(ScriptedModel(["c"]), path)
    await second.prompt("three")
    turns = [block["turns"][0]["text"] for block in parse(path.read_text(), "x").value["prompts"]]
    assert turns == ["edited by hand", "b", "c"]
    before = path.read_text()
    with pytest.raises(ModelError, match=r"is a recording of another session \(ses_1\)") as error:
        await Talk(Recorder(ScriptedModel(["c"]), path), session="ses_9").prompt("three")
    assert error.value.kind == "setup"
    assert path.read_text() == before
    await Talk(Recorder(ScriptedModel(["c"]), path, overwrite=True), session="ses_9").prompt("three")
    assert [block["prompt"] for block in parse(path.read_text(), "x").value["prompts"]] == ["three"]
    for text in ("turns: [by hand]", "no: [yaml", "just text", "recording: {version: 99}\nprompts: []"):
        path = tmp_path / f"other{len(text)}.yaml"
        path.write_text(text)
        with pytest.raises(ModelError, match="is not a recording that can be continued") as error:
            await Talk(Recorder(ScriptedModel(["c"]), path)).prompt("three")
        assert error.value.kind == "setup" and path.read_text() == text


async def test_keys_that_come_later_are_hidden_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lesson.yaml"
    words = "early-key-form late-key-form given-key-form"
    first = Talk(Recorder(ScriptedModel(["a"]), path))
    monkeypatch.setenv("EARLY_API_KEY", "early-key-form")
    await first.prompt("early-key-form")
    monkeypatch.setenv("LATE_API_KEY", "late-key-form")
    first.model = Recorder(ScriptedModel([words]), path, secrets=["given-key-form"])
    await first.prompt(words)
    first_prompt, second_prompt = parse(path.read_text(), "x").value["prompts"]
    assert (first_prompt["prompt"], second_prompt["prompt"]) == ("[secret-1]", "[secret-1] [secret-2] [secret-3]")
    assert second_prompt["turns"][0]["text"] == second_prompt["prompt"]


async def test_a_file_that_cant_be_written_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="can't be recorded") as error:
        await Talk(Recorder(ScriptedModel(["a"]), tmp_path / "file" / "lesson.yaml")).prompt("one")
    assert error.value.kind == "setup"
    path = tmp_path / "lesson.yaml"
    talk = Talk(Recorder(ScriptedModel([say("a", call("read")), say("b", call("read")), "c"]), path))
    talk.say("one")
    await talk.step()
    path.unlink()
    path.mkdir()
    await talk.step()
    assert "Path is a directory" in (talk.finishes[1].metadata or {})["recording"]["error"]
    path.rmdir()
    await talk.step()
    assert talk.finishes[2].metadata is None
    assert len(parse(path.read_text(), "x").value["prompts"][0]["turns"]) == 3


async def test_what_broke_off_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    path = tmp_path / "lesson.yaml"
    inner = ScriptedModel([say("one two three four", cut=True), say(error=failure("refused", times=1)), "whole"])
    talk = Talk(Recorder(inner, path))
    talk.say("Go")
    for kind in ("cut", "refused"):
        with pytest.raises(ModelError) as error:
            await talk.ask()
        assert error.value.kind == kind
    await talk.step()
    turns = parse(path.read_text(), "x").value["prompts"][0]["turns"]
    assert turns[0]["text"] == "one two " and turns[0]["cut"] == "end" and turns[0]["error"]["kind"] == "cut"
    replay = Talk(load(path))
    replay.say("Go")
    got: list[Event] = []
    stream = replay.model.stream(replay.request())
    with pytest.raises(ModelError):  # noqa: PT012  what comes before the error counts
        async for event in stream:
            got.append(event)
    assert "".join(event.text for event in got if isinstance(event, TextDelta)) == "one two "


class Endless:
    """Says one word and then nothing more, for as long as it is heard."""

    info = ModelInfo("x", "endless")
    closed = False

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        try:
            yield TextStart(0)
            yield TextDelta(0, "word")
            yield TextDelta(0, "never heard")
        finally:
            self.closed = True

    async def aclose(self) -> None:
        self.closed = True


async def test_closing_a_recorder_closes_the_model(tmp_path: Path) -> None:
    inner = Endless()
    recorder = Recorder(inner, tmp_path / "x.yaml")
    talk = Talk(recorder)
    talk.say("Go")
    stream = recorder.stream(talk.request())
    await anext(stream)
    await stream.aclose()
    assert inner.closed
    inner.closed = False
    await recorder.aclose()
    assert inner.closed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON)
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    assert parse(dump([value]), "x").value == [value]


@given(
    st.sampled_from(
        ["1e5", "no", "12:30", "~", "0x1f", "1_000", "+1", ".5", "true", "null", "", " a", "a ", "- x", "# x"]
    )
)
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    assert parse(dump([text, {"k": text}]), "x").value == [text, {"k": text}]


async def test_thoughts_and_empty_answers(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    await Talk(Recorder(ScriptedModel([say(thought("just a thought"))]), path)).prompt("Go")
    assert await Talk(load(path)).prompt("Go") == [("reasoning", "just a thought")]
    path = tmp_path / "y.yaml"
    await Talk(Recorder(ScriptedModel([say()]), path)).prompt("Go")
    assert await Talk(load(path)).prompt("Go") == []


async def test_a_title_that_was_recorded_for_another_prompt_is_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    recorder = Recorder(ScriptedModel(["Answer."], agents={"title": ["The recorded title"]}), path)
    await Talk(recorder).prompt("Go")
    await Talk(recorder, agent="title").prompt("Go")
    model = load(path)
    assert await Talk(model, agent="title").prompt("Go") == [("text", "The recorded title")]
    assert await Talk(model, agent="title").prompt("Something else") == [("text", "Something else")]
    assert model.differences == []
