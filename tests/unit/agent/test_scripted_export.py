"""A stored session as a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent.conversation import NOTICE, is_notice, turns_of
from opencode_jupyter.agent.scripted import ScriptedModel, script_of
from opencode_jupyter.agent.scripted.yaml_document import parse
from opencode_jupyter.agent.structured import NUDGE
from opencode_jupyter.core.messages import Message, part_from_wire
from opencode_jupyter.core.sessions import Session
from tests.support.script_player import Talk, script_of_text

DATA = Path(__file__).parents[2] / "data"


def message(id: str, info: dict[str, Any], *parts: dict[str, Any]) -> Message:
    made = Message({"id": id, "sessionID": "ses_1", "agent": "build", **info})
    for index, part in enumerate(parts):
        whole = {"id": f"{id}_{index}", "sessionID": "ses_1", "messageID": id, **part}
        made.parts.append(part_from_wire(whole))
    return made


def tool(name: str, input: dict[str, Any], id: str, **state: Any) -> dict[str, Any]:
    times = {"start": 1, "end": 2}
    whole = {"status": "completed", "input": input, "output": "", "title": "", "metadata": {}, "time": times, **state}
    return {"type": "tool", "callID": id, "tool": name, "state": whole}


def user(id: str, text: str, **more: Any) -> Message:
    return message(id, {"role": "user"}, {"type": "text", "text": text, **more})


def answer(id: str, *parts: dict[str, Any], **info: Any) -> Message:
    whole = {"role": "assistant", "providerID": "openai", "modelID": "gpt-5", **info}
    return message(id, whole, {"type": "step-start"}, *parts)


def session(*messages: Message, **extra: Any) -> Session:
    made = Session("ses_1", "My lesson", "/work/lesson", agent="build", created=1_700_000_000_000, extra=extra)
    made.messages = list(messages)
    return made


LESSON = session(
    user("m1", "Mend a.txt"),
    answer(
        "m2",
        {"type": "reasoning", "text": "Hm."},
        {"type": "text", "text": "I look at {{it}}."},
        tool("read", {"filePath": "/work/lesson/a.txt"}, "c1", output="three"),
        tool("edit", {"filePath": "a.txt"}, "c2", status="error", error="oldString not found"),
        finish="tool-calls",
        tokens={"input": 10, "output": 4, "reasoning": 0, "cache": {"read": 2, "write": 0}},
    ),
    answer(
        "m3",
        tool(
            "invalid",
            {
                "tool": "read",
                "error": 'Invalid input for tool read: JSON parsing failed: Text: {"filePath": 5.\nError message: x',
            },
            "c3",
            output="The arguments provided to the tool are invalid",
        ),
    ),
    answer("m4", {"type": "text", "text": "Done."}, finish="stop"),
    user("m5", "And b.txt"),
    answer("m6", error={"name": "APIError", "data": {"message": "slow down", "statusCode": 429, "isRetryable": True}}),
    user("m7", "And b.txt"),
    answer(
        "m8", {"type": "text", "text": "It is"}, error={"name": "MessageAbortedError", "data": {"message": "stopped"}}
    ),
    user("m9", NUDGE, synthetic=True, metadata=NOTICE),
    answer("m10", {"type": "text", "text": "whole"}),
    user("m11", "taken back"),
    answer("m12", {"type": "text", "text": "never seen"}),
    revert={"messageID": "m11"},
)


def test_what_a_session_looks_like_as_a_script() -> None:
    text = script_of(LESSON)
    data = parse(text, "x").value
    assert data["about"] == "My lesson"
    assert data["recording"] == {
        "version": 1,
        "model": "openai:gpt-5",
        "date": "2023-11-14T22:13:20Z",
        "session": "ses_1",
        "agent": "build",
    }
    first, second, third = data["prompts"]
    assert [block["prompt"] for block in (first, second, third)] == ["Mend a.txt", "And b.txt", "And b.txt"]
    look, broken, done = first["turns"]
    assert look["calls"][0] == {"tool": "read", "id": "c1", "arguments": {"filePath": "{{directory}}/a.txt"}}
    assert [result.get("failed", False) for result in look["results"]] == [False, True]
    assert look["usage"] == {"input": 10, "output": 4, "cache_read": 2}
    assert broken["calls"] == [{"tool": "read", "id": "c3", "arguments": '{"filePath": 5'}]
    assert done == {"text": "Done."}
    assert second["turns"] == [{"error": {"kind": "rate_limit", "message": "slow down", "status": 429}}]
    assert [turn["text"] for turn in third["turns"]] == ["It is", "whole"]
    assert "never seen" not in text


@pytest.mark.anyio
async def test_it_plays_again() -> None:
    model = ScriptedModel(script_of_text("speed: 0\n" + script_of(LESSON), "lesson"))

    def recorded_answer(tool: str, arguments: str) -> Any:
        return {"read": "three" if "a.txt" in arguments else None, "edit": ValueError("oldString not found")}[tool]

    talk = Talk(model, recorded_answer, directory="/work/lesson")
    parts = await talk.prompt("Mend a.txt")
    assert parts[:3] == [("reasoning", "Hm."), ("text", "I look at {{it}}."), ("call", "read", parts[2][2])]
    assert json.loads(parts[2][2]) == {"filePath": "/work/lesson/a.txt"}
    assert parts[-1] == ("text", "Done.")


@pytest.mark.anyio
async def test_sub_agents_and_summaries() -> None:
    child = Session("ses_2", "Look", "/work/lesson", "ses_1")
    child.messages = [
        message("k1", {"role": "user", "agent": "explore"}, {"type": "text", "text": "look around"}),
        answer("k2", {"type": "text", "text": "seen"}),
    ]
    parent = session(
        user("m1", "Go"),
        answer("m2", tool("task", {"subagent_type": "explore"}, "c1", output="seen")),
        message("m3", {"role": "user"}, {"type": "compaction", "auto": True}),
        answer("m4", {"type": "text", "text": "We did it."}, summary=True, finish="stop"),
        message("m5", {"role": "user", "agent": "plan"}, {"type": "text", "text": "And now?"}),
        answer("m6", {"type": "text", "text": "A plan."}),
    )
    data = parse(script_of(parent, [child]), "x").value
    assert [(block["prompt"], block.get("agent")) for block in data["prompts"]] == [("Go", None), ("And now?", "plan")]
    assert data["agents"]["explore"]["prompts"][0]["turns"] == [{"text": "seen"}]
    assert data["agents"]["compaction"]["prompts"][0]["turns"] == [{"text": "We did it."}]
    model = ScriptedModel(script_of_text("speed: 0\n" + script_of(parent, [child]), "x"))
    assert await Talk(model, agent="compaction").prompt("Sum it up") == [("text", "We did it.")]
    assert await Talk(model, agent="explore").prompt("look around") == [("text", "seen")]


def test_an_empty_session() -> None:
    assert parse(script_of(session()), "x").value["prompts"] == []
    script_of_text(script_of(session()), "x")


@pytest.mark.parametrize("metadata", [{"metadata": NOTICE}, {}], ids=["today", "saved without a mark"])
def test_a_notice_of_the_agent_loop_is_no_prompt(metadata: dict[str, Any]) -> None:
    notice = user("msg_2", NUDGE, synthetic=True, **metadata)
    assert is_notice(notice.parts[0])
    assert turns_of(notice)[0].purpose == "notice"
    assert not is_notice(user("msg_3", NUDGE).parts[0])
