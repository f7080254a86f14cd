"""Scripted models: which turn is said, by what the conversation holds."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent.conversation import SUMMARY_QUESTION
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import CallEnd, Finish, Usage
from opencode_jupyter.agent.prompt import LAST_STEP
from opencode_jupyter.agent.scripted import ScriptedModel, call, failure, load, say, thought
from opencode_jupyter.agent.turns import TextPiece, Turn
from opencode_jupyter.core.errors import PermissionRejectedError
from tests.support.script_player import Talk, event_parts, script_of_text

pytestmark = pytest.mark.anyio
LESSON = Path(__file__).parents[3] / "notebooks" / "scripts" / "first-agent.py"


def model(text: str) -> ScriptedModel:
    return ScriptedModel(script_of_text("speed: 0\n" + text, "lesson.yaml"), name="lesson")


async def test_turns_follow_the_conversation() -> None:
    talk = Talk(
        model(
            """
turns:
  - reasoning: Hm.
    text: I look.
    calls:
      - read: {filePath: a.txt}
      - {tool: grep, arguments: {pattern: x}, id: mine}
      - todoread
  - Done, {{result.1.output}}.
"""
        ),
        lambda tool, arguments: f"<{tool} {arguments}>",
    )
    assert await talk.prompt("Go") == [
        ("reasoning", "Hm."),
        ("text", "I look."),
        ("call", "read", '{"filePath": "a.txt"}'),
        ("call", "grep", '{"pattern": "x"}'),
        ("call", "todoread", "{}"),
        ("text", 'Done, <grep {"pattern": "x"}>.'),
    ]
    assert [finish.reason for finish in talk.finishes] == ["tool-calls", "stop"]
    ends = [event for event in talk.all if isinstance(event, CallEnd)]
    assert [end.id for end in ends] == ["call_1_1", "mine", "call_1_3"]


async def test_the_same_request_gives_the_same_answer_and_a_cell_can_run_again() -> None:
    talk = Talk(model("turns: [{calls: [{read: {filePath: a}, }]}, {calls: [{grep: {pattern: b}}]}, End.]"))
    first = await talk.prompt("Go")
    once, twice = await talk.ask(), await talk.ask()
    assert once == twice
    fork = Talk(talk.model, session="ses_2")
    fork.turns = talk.turns[:3]  # prompt, calls, results
    assert event_parts(await fork.ask()) == [("call", "grep", '{"pattern": "b"}')]
    assert await talk.prompt("Go") == first
    ids = [event.id for event in talk.all if isinstance(event, CallEnd)]
    assert len(ids) == len(set(ids)) == 4


async def test_prompts_find_their_turns() -> None:
    text = """
prompts:
  - {prompt: "go on", turns: [first]}
  - {prompt: "go   on", turns: [second]}
  - {match: '(?i)plot \\w+', turns: ["plotting: {{prompt}}"]}
  - {number: 5, turns: ["the fifth"]}
  - {agent: plan, turns: [a plan]}
  - turns: [whatever]
"""
    talk = Talk(model(text))
    parts = [
        await talk.prompt(words) for words in ("go on", "Plot sales", "go on", "what?", "then?", "go on", "Plot x")
    ]
    assert [answer[0][1] for answer in parts] == [
        "first",
        "plotting: Plot sales",
        "second",
        "whatever",
        "the fifth",
        "second",
        "plotting: Plot x",
    ]
    assert await Talk(model(text), agent="plan").prompt("anything") == [("text", "a plan")]


async def test_no_prompt_fits() -> None:
    talk = Talk(model("prompts: [{match: a+, turns: [x]}, {prompt: bee, turns: [y]}]"))
    with pytest.raises(ModelError) as error:
        await talk.prompt("something else")
    assert error.value.kind == "script"
    assert "prompt 1, 'something else'" in str(error.value)
    assert "match 'a+'" in str(error.value) and "prompt 'bee'" in str(error.value)


async def test_agents_have_turns_of_their_own() -> None:
    played = model(
        """
turns:
  - calls: [{task: {description: d, prompt: look, subagent_type: explore}}]
  - Found it.
agents:
  explore:
    - calls: [{grep: {pattern: x}}]
    - Three places.
"""
    )
    assert (await Talk(played, agent="explore").prompt("look"))[-1] == ("text", "Three places.")
    assert (await Talk(played).prompt("find"))[-1] == ("text", "Found it.")


async def test_an_agent_that_gets_work_needs_turns() -> None:
    played = model("turns: [{calls: [{task: {prompt: look, subagent_type: explore}}]}, Done.]")
    with pytest.raises(ModelError, match=r"has no turns for it\. Add them under agents: explore:"):
        await Talk(played, agent="explore").prompt("look")


async def test_titles_and_summaries_take_no_turn() -> None:
    played = model("turns: [{calls: [{read: {filePath: a}}]}, Done.]")
    talk = Talk(played)
    assert await Talk(played, agent="title").prompt("Make a plot of the sales\nplease") == [
        ("text", "Make a plot of the sales")
    ]
    await talk.prompt("Go")
    talk.agent = "compaction"
    talk.say("Sum it up")
    summary = event_parts(await talk.ask())[0][1]
    assert "asked: Go" in summary and "read: completed" in summary
    own = model("turns: [x]\nagents: {title: [My lesson]}")
    assert await Talk(own, agent="title").prompt("Go") == [("text", "My lesson")]


async def test_a_summed_up_conversation_goes_on() -> None:
    talk = Talk(model(f"prompts: [{{prompt: {SUMMARY_QUESTION}, turns: [going on]}}, {{turns: [other]}}]"))
    question = Turn("user", (TextPiece(SUMMARY_QUESTION),), purpose="summary")
    talk.turns = [question, Turn("assistant", (TextPiece("We did much."),))]
    talk.turns.append(Turn("user", (TextPiece("next"),)))
    assert event_parts(await talk.ask()) == [("text", "other")]
    talk.turns[2:] = [Turn("user", (TextPiece(LAST_STEP),), purpose="notice")]
    assert event_parts(await talk.ask()) == [("text", "going on")]


async def test_broken_arguments_go_out_as_they_stand() -> None:
    calls = [
        '{read: "{\\"filePath\\": 5"}',
        "{read: ''}",
        "{read: [1]}",
        "{tool: bash, arguments: 'no json'}",
        "{read: 5}",
    ]
    parts = await Talk(model(f"turns: [{{calls: [{', '.join(calls)}]}}, Done.]")).prompt("Go")
    assert [part[2] for part in parts[:-1]] == ['{"filePath": 5', "", "[1]", "no json", "5"]


async def test_what_is_filled_into_json_text_is_escaped() -> None:
    played = model('turns: [{calls: [{a: {}}]}, {calls: [{b: \'{"x": "{{result}}"\'}]}, End]')
    parts = await Talk(played, lambda tool, arguments: 'say "hi"\n').prompt("Go")
    assert parts[1] == ("call", "b", '{"x": "say \\"hi\\"\\n"')


async def test_an_id_is_never_given_twice() -> None:
    played = model("turns: [{calls: [{tool: a, id: x}, {tool: b, id: x}, {tool: c, id: call_1_2}]}, End.]")
    talk = Talk(played)
    await talk.prompt("Go")
    await talk.prompt("Again")
    ids = [event.id for event in talk.all if isinstance(event, CallEnd)]
    assert len(set(ids)) == 6
    assert ids[0] == "x"


async def test_parts_in_any_order() -> None:
    played = model("turns: [{parts: [{text: a}, {read: {}}, {reasoning: b}, {text: c}]}, {text: [d, e]}]")
    parts = await Talk(played).prompt("Go")
    assert [part[:2] for part in parts] == [
        ("text", "a"),
        ("call", "read"),
        ("reasoning", "b"),
        ("text", "c"),
        ("text", "d"),
        ("text", "e"),
    ]


async def test_usage_and_finish() -> None:
    played = model(
        """
model: {name: Big, context: 8000, output: 100, cost: {input: 2, output: 10}}
turns:
  - {text: abc, usage: {input: 10, output: 5, cache_read: 3}, finish: length}
"""
    )
    talk = Talk(played)
    await talk.prompt("Go")
    assert talk.finishes == [Finish("length", Usage(10, 5, cache_read=3))]
    info = played.info
    assert (info.full, info.name, info.context, info.output) == ("scripted:lesson", "Big", 8000, 100)
    assert info.cost is not None and info.cost.of(Usage(1_000_000, 0)) == 2.0
    estimated = Talk(model("turns: [abcde]"))
    await estimated.prompt("Go " * 1000)
    assert estimated.finishes[0].usage == Usage(750, 2)


async def test_failures_that_go_away() -> None:
    played = model(
        """
turns:
  - error: {kind: rate_limit, retry_after: 0.5, times: 2}
  - error: overloaded
  - text: Here I am.
"""
    )
    talk = Talk(played)
    talk.say("Go")
    kinds = []
    for _ in range(3):
        with pytest.raises(ModelError) as error:
            await talk.ask()
        kinds.append((error.value.kind, error.value.status, error.value.retry_after))
    assert kinds == [("rate_limit", 429, 0.5), ("rate_limit", 429, 0.5), ("overloaded", 529, None)]
    assert event_parts(await talk.ask()) == [("text", "Here I am.")]
    other = Talk(played, session="ses_2")
    other.say("Go")
    with pytest.raises(ModelError, match="Too many"):
        await other.ask()


async def test_a_failure_that_stays() -> None:
    talk = Talk(model("turns: [{error: {kind: auth, message: No key}}, {text: never}]"))
    talk.say("Go")
    for _ in range(3):
        with pytest.raises(ModelError, match=r"^No key$") as error:
            await talk.ask()
        assert not error.value.retryable


async def test_a_stream_that_breaks_off() -> None:
    played = model(
        """
turns:
  - text: I look at once.
    calls: [{read: {filePath: a-long-name.txt}}]
    cut: true
  - Second try.
"""
    )
    talk = Talk(played)
    talk.say("Go")
    parts = []
    stream = played.stream(talk.request())
    with pytest.raises(ModelError) as error:  # noqa: PT012  what comes before the error counts
        async for event in stream:
            parts.append(event)
    assert error.value.kind == "cut" and error.value.retryable
    assert not any(isinstance(event, (CallEnd, Finish)) for event in parts)
    assert [type(event).__name__ for event in parts[-2:]] == ["CallStart", "CallDelta"]
    assert event_parts(await talk.ask()) == [("text", "Second try.")]


async def test_a_stream_that_breaks_off_behind_a_whole_call_is_a_step() -> None:
    played = model("turns: [{calls: [{read: {}}, {grep: {pattern: abc}}], cut: true}, Going on.]")
    talk = Talk(played)
    talk.say("Go")
    with pytest.raises(ModelError):
        await talk.ask()
    with pytest.raises(ModelError):  # nothing joined the conversation, so the same comes again
        await talk.ask()
    whole = Talk(model("turns: [{calls: [{read: {}}]}, x]"))
    whole.say("Go")
    await whole.step()
    talk.turns = whole.turns
    assert event_parts(await talk.ask()) == [("text", "Going on.")]


async def test_no_turn_left() -> None:
    talk = Talk(model("turns:\n  - calls: [{read: {filePath: a}}]"), lambda tool, arguments: "the text of a")
    with pytest.raises(ModelError) as error:
        await talk.prompt("Read it all")
    assert error.value.kind == "script" and not error.value.retryable
    for words in (
        "lesson.yaml",
        "turn 2 of prompt 1 ('Read it all')",
        "line 3, column 5",
        "read completed: 'the text of a'",
    ):
        assert words in str(error.value)


async def test_made_in_python() -> None:
    made = ScriptedModel(
        [say(thought("Hm."), "Look.", call("read", filePath="a.txt")), say("Got {{result}}.")], name="mine", speed=0
    )
    assert (await Talk(made, lambda *a: "it").prompt("Go")) == [
        ("reasoning", "Hm."),
        ("text", "Look."),
        ("call", "read", '{"filePath": "a.txt"}'),
        ("text", "Got it."),
    ]
    assert made.info.full == "scripted:mine"
    with pytest.raises(ValueError, match="not a kind of error"):
        say(error="nonsense")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        say(5)  # type: ignore[arg-type]
    assert failure("overloaded").times == 1 and failure("auth").times is None


async def test_a_model_can_be_sent_to_another_process() -> None:
    played = model("turns: [{error: overloaded}, 'n {{prompt.number}}']")
    assert await Talk(played).prompt("Go") == [("text", "n 1")]
    sent = pickle.loads(pickle.dumps(played))
    assert await Talk(sent).prompt("Go") == [("text", "n 1")]
    assert (sent.info, sent.differences) == (played.info, [])


async def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_JUPYTER_SCRIPT_SPEED", "0")

    def answer(tool: str, arguments: str) -> Any:
        return {"read": "00001| return 3.14 * r * r", "edit": "Edit applied.", "bash": "12.566370614359172\n"}[tool]

    parts = await Talk(load(LESSON), answer).prompt("Make the area exact")
    assert parts[3] == ("text", "The constant 3.14 is rough. I will put pi in its place.")
    assert [part[1] for part in parts if part[0] == "call"] == ["read", "edit", "edit", "bash"]
    assert json.loads(parts[4][2])["oldString"] == "3.14 * r * r"
    assert parts[-1] == ("text", "Done. The area of a circle with radius 2 is now 12.566370614359172.")
    refused = await Talk(
        load(LESSON), lambda tool, a: PermissionRejectedError() if tool == "edit" else answer(tool, a)
    ).prompt("area")
    assert refused[-1] == ("text", "I leave it at that, since you refused.")
    missing_file = await Talk(load(LESSON), lambda *a: FileNotFoundError("File not found: shapes.py")).prompt("area")
    assert missing_file[-1] == ("text", "That did not work: File not found: shapes.py")
