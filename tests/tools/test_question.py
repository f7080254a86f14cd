"""question: its result to the character, its refusals, and what a custom tool's own questions give."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import (
    InvalidArgumentsError,
    QuestionRejectedError,
    ToolContext,
    ToolTimeoutError,
    Workspace,
    tool,
)
from opencode_jupyter.core.errors import DryRunEnd
from tests.support.asking import until

pytestmark = pytest.mark.anyio

ONE = {"question": "Which database?", "header": "DB", "options": [{"label": "SQLite", "description": "a file"}]}
TWO = {
    "question": "Which extras?",
    "header": "Extras",
    "options": [{"label": "CSV", "description": "text"}, {"label": "Parquet", "description": "binary"}],
    "multiple": True,
}


async def ask(workspace: Workspace, answers: Any, *questions: dict[str, Any]) -> Any:
    workspace.questions.answer = lambda request: answers
    return await workspace.call("question", {"questions": list(questions)})


async def test_one_answer(workspace: Workspace) -> None:
    result = await ask(workspace, [["SQLite"]], ONE)
    assert result.title == "Asked 1 question"
    assert result.output == (
        'User has answered your questions: "Which database?"="SQLite". '
        "You can now continue with the user's answers in mind."
    )
    assert result.metadata == {"answers": [["SQLite"]], "truncated": False}
    assert result.records == [{"header": "DB", "question": "Which database?", "answer": ["SQLite"]}]


async def test_several_answers_own_words_and_none(workspace: Workspace) -> None:
    result = await ask(workspace, [["CSV", "Parquet"], ["my own, really"]], TWO, ONE, ONE)
    assert result.title == "Asked 3 questions"
    assert result.output == (
        'User has answered your questions: "Which extras?"="CSV, Parquet", "Which database?"="my own, really", '
        '"Which database?"="Unanswered". You can now continue with the user\'s answers in mind.'
    )
    assert result.metadata["answers"] == [["CSV", "Parquet"], ["my own, really"], []]


async def test_long_headers_and_labels_are_taken(workspace: Workspace) -> None:
    long = {"question": "Q?", "header": "h" * 31, "options": [{"label": "l" * 31, "description": ""}]}
    assert (await ask(workspace, [["l" * 31]], long)).metadata["answers"] == [["l" * 31]]


async def test_dismissed(workspace: Workspace) -> None:
    call = workspace.start("question", {"questions": [ONE]})
    workspace.questions.answer = lambda request: None
    with pytest.raises(QuestionRejectedError, match=r"^The user dismissed this question$"):
        await call.run()
    assert call.part.outcome == "dismissed by you"
    assert call.part.state.to_wire()["error"] == "The user dismissed this question"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"questions": []},
        {"questions": "Which?"},
        {"questions": [{"question": "Q", "header": "h"}]},
        {"questions": [{"question": "", "header": "h", "options": []}]},
        {"questions": [{**ONE, "options": [{"label": "", "description": ""}]}]},
        {"questions": [{**ONE, "options": [{"label": "x"}]}]},
    ],
)
async def test_bad_arguments(workspace: Workspace, arguments: dict[str, Any]) -> None:
    workspace.questions.answer = lambda request: [[]]
    with pytest.raises(InvalidArgumentsError, match="question"):
        await workspace.call("question", arguments)


async def test_it_asks_for_no_permission_and_a_dry_run_asks_nothing(workspace: Workspace, approver: Any) -> None:
    assert await workspace.dry_run("question", {"questions": [ONE]}) == []
    await ask(workspace, [[]], ONE)
    assert approver.asks == []


async def test_waiting_for_the_person_is_taken_off_the_limit(workspace: Workspace) -> None:
    task = asyncio.create_task(workspace.call("question", {"questions": [ONE]}, timeout=0.1))
    await until(workspace.questions.pending)
    await asyncio.sleep(0.3)
    workspace.questions.reply(workspace.questions.pending()[0].id, [["SQLite"]])
    assert (await task).metadata["answers"] == [["SQLite"]]


async def test_a_stopped_call_and_a_closing_workspace_withdraw_the_question(project: Path, tmp_path: Path) -> None:
    async with Workspace(project, data_dir=tmp_path / "data") as ws:
        call = ws.start("question", {"questions": [ONE]})
        task = asyncio.create_task(call.run())
        await until(ws.questions.pending)
        call.abort()
        with pytest.raises(Exception, match="aborted"):
            await task
        assert ws.questions.pending() == []
        left = asyncio.create_task(ws.call("question", {"questions": [ONE]}))
        await until(ws.questions.pending)
    with pytest.raises(Exception, match=r"closed|aborted"):
        await left


async def test_custom_tools_ask_too(workspace: Workspace) -> None:
    @tool
    async def choose(*, ctx: ToolContext) -> str:
        (answer,) = await ctx.question([{"question": "Go on?", "options": ["Yes", "No"], "custom": False}])
        return answer[0]

    @tool
    def choose_sync(*, ctx: ToolContext) -> str:
        return ctx.question_sync({"question": "Go on?", "options": ["Yes", "No"]})[0][0]

    @tool
    async def slow(*, ctx: ToolContext) -> str:
        await ctx.question([ONE])
        await asyncio.sleep(600)
        return ""

    workspace.questions.answer = lambda request: "Yes"
    for made in (choose, choose_sync, slow):
        workspace.registry.register(made)
    assert (await workspace.call("choose")).output == "Yes"
    assert (await workspace.call("choose_sync")).output == "Yes"
    with pytest.raises(ToolTimeoutError):
        await workspace.call("slow", timeout=0.1)
    workspace.questions.answer = lambda request: "Perhaps"
    with pytest.raises(ValueError, match="not one of the answers"):
        await workspace.call("choose")


async def test_a_context_without_a_call_says_so(workspace: Workspace) -> None:
    context = workspace.start("question", {}).ctx
    with pytest.raises(RuntimeError, match="belongs to no call"):
        await context.question([ONE])
    with pytest.raises(DryRunEnd):
        await workspace.start("question", {"questions": [ONE]}, dry_run=True).run()
