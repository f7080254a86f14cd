"""Questions wait for the first answer, from any thread; nothing is left waiting when a call or a workspace ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import QuestionRejectedError
from opencode_jupyter.core.events import Bus
from opencode_jupyter.core.question_request import Question, parse_answers, parse_questions
from opencode_jupyter.core.questions import QuestionService
from tests.support.asking import until

pytestmark = pytest.mark.anyio

SESSION = "ses_one"
COLOUR = {"question": "Which colour?", "header": "Colour", "options": [{"label": "Red", "description": "warm"}, "Blue"]}
SIZE = {"question": "Which size?", "header": "Size", "options": ["S", "M"], "multiple": True}


@pytest.fixture
def service() -> QuestionService:
    return QuestionService(Bus())


def start(service: QuestionService, *questions: Any, **more: Any) -> asyncio.Task[list[list[str]]]:
    return asyncio.create_task(service.ask(session_id=SESSION, questions=list(questions), **more))


async def test_asked_and_answered_with_the_events_of_opencode(service: QuestionService) -> None:
    events: list[dict[str, Any]] = []
    service.bus.subscribe("*", lambda e: events.append({**e, "pending": len(service.pending())}))
    task = start(service, COLOUR, SIZE, tool={"messageID": "msg_1", "callID": "c1"})
    await until(service.pending)
    (request,) = service.pending()
    assert request.id.startswith("que_")
    assert service.reply(request.id, [["Red"], ["S", "M"]])
    assert await task == [["Red"], ["S", "M"]]
    request_event, replied = events
    assert request_event == {
        "type": "question.asked",
        "properties": {
            "id": request.id,
            "sessionID": SESSION,
            "questions": [
                {
                    "question": "Which colour?",
                    "header": "Colour",
                    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}],
                },
                {
                    "question": "Which size?",
                    "header": "Size",
                    "options": [{"label": "S", "description": ""}, {"label": "M", "description": ""}],
                    "multiple": True,
                },
            ],
            "tool": {"messageID": "msg_1", "callID": "c1"},
        },
        "pending": 1,
    }
    assert replied["type"] == "question.replied"
    assert replied["properties"] == {
        "sessionID": SESSION,
        "requestID": request.id,
        "answers": [["Red"], ["S", "M"]],
    }
    assert replied["pending"] == 0


async def test_dismissed(service: QuestionService) -> None:
    events: list[dict[str, Any]] = []
    service.bus.subscribe("question.rejected", events.append)
    task = start(service, COLOUR)
    await until(service.pending)
    request = service.pending()[0]
    assert service.reject(request.id)
    with pytest.raises(QuestionRejectedError, match="The user dismissed this question"):
        await task
    assert events == [{"type": "question.rejected", "properties": {"sessionID": SESSION, "requestID": request.id}}]


async def test_the_first_answer_counts_and_others_are_untouched(service: QuestionService) -> None:
    first_task, second_task = start(service, COLOUR), start(service, SIZE)
    await until(lambda: len(service.pending()) == 2)
    first, second = (r.id for r in service.pending())
    assert service.reject(second)
    assert service.reply(first, [["Red"]])
    assert not service.reply(first, [["Blue"]])
    assert not service.reject(first)
    assert not service.reply("que_unknown", [])
    assert await first_task == [["Red"]]
    with pytest.raises(QuestionRejectedError):
        await second_task
    assert service.pending() == []


async def test_answered_from_another_thread(service: QuestionService) -> None:
    threads: list[int] = []
    service.bus.subscribe("question.replied", lambda _: threads.append(threading.get_ident()))
    task = start(service, COLOUR)
    await until(service.pending)
    threading.Thread(target=service.reply, args=(service.pending()[0].id, "Blue")).start()
    assert await asyncio.wait_for(task, 5) == [["Blue"]]
    assert threads == [threading.get_ident()]


async def test_a_cancelled_call_and_a_closed_service_leave_nothing_waiting(service: QuestionService) -> None:
    events: list[str] = []
    service.bus.subscribe("question.rejected", lambda e: events.append(e["type"]))
    task = start(service, COLOUR)
    await until(service.pending)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.pending() == []
    again = start(service, COLOUR)
    await until(service.pending)
    service.close()
    for waiting in (again, start(service, COLOUR)):
        with pytest.raises(QuestionRejectedError, match="closed"):
            await waiting
    assert events == ["question.rejected"] * 2


@pytest.mark.parametrize("style", ["plain", "async"])
async def test_the_answer_callback(style: str) -> None:
    questions = []

    def plain(request: Any) -> Any:
        questions.append(request.questions[0].question)
        return [["Red"]] if len(questions) == 1 else None

    async def slow(request: Any) -> Any:
        await asyncio.sleep(0)
        return plain(request)

    service = QuestionService(Bus(), plain if style == "plain" else slow)
    assert await start(service, COLOUR) == [["Red"]]
    with pytest.raises(QuestionRejectedError):
        await start(service, COLOUR)
    assert questions == ["Which colour?"] * 2


@pytest.mark.parametrize("style", ["plain", "async"])
async def test_an_answer_callback_that_fails_ends_the_question(style: str) -> None:
    def plain(request: Any) -> Any:
        raise LookupError("no idea")

    async def slow(request: Any) -> Any:
        return 7

    service = QuestionService(Bus(), plain if style == "plain" else slow)
    with pytest.raises(LookupError if style == "plain" else ValueError):
        await start(service, COLOUR)
    assert service.pending() == []


async def test_a_reply_outruns_a_slow_callback() -> None:
    async def never(request: Any) -> Any:
        await asyncio.sleep(600)

    service = QuestionService(Bus(), never)
    task = start(service, COLOUR)
    await until(service.pending)
    service.reply(service.pending()[0].id, [["Blue"]])
    assert await task == [["Blue"]]


@pytest.mark.parametrize(
    "questions",
    [
        [],
        None,
        "Which?",
        [7],
        [{"question": " "}],
        [{"question": "Q", "options": "ab"}],
        [{"question": "Q", "options": [{"description": "no label"}]}],
        [{"question": "Q", "options": [], "custom": False}],
    ],
)
async def test_what_can_not_be_asked(service: QuestionService, questions: Any) -> None:
    with pytest.raises(ValueError, match=r"question|option|ask"):
        await service.ask(session_id=SESSION, questions=questions)
    assert service.pending() == []


@pytest.mark.parametrize("answers", [7, "Red, Blue", [["Red"], ["S"], ["x"]], [[1]], [7], {"a": 1}])
async def test_an_answer_that_does_not_fit_leaves_the_question_waiting(service: QuestionService, answers: Any) -> None:
    task = start(service, COLOUR, SIZE)
    await until(service.pending)
    request = service.pending()[0]
    with pytest.raises(ValueError, match="answer"):
        service.reply(request.id, answers)
    assert service.pending() == [request]
    assert service.reply(request.id, [[]])
    assert await task == [[], []]


def test_own_words_only_where_they_are_taken() -> None:
    closed = parse_questions({**COLOUR, "custom": False})
    with pytest.raises(ValueError, match="not one of the answers"):
        parse_answers(closed, [["Green"]])
    assert parse_answers(closed, "Red") == [["Red"]]
    assert parse_answers(parse_questions(COLOUR), "Green") == [["Green"]]


@given(st.lists(st.lists(st.text(), max_size=3), max_size=4), st.integers(1, 4))
def test_there_is_an_answer_for_every_question(answers: list[list[str]], count: int) -> None:
    questions = [Question(f"Q{i}?") for i in range(count)]
    if len(answers) > count:
        with pytest.raises(ValueError, match="were given"):
            parse_answers(questions, answers)
    else:
        parsed = parse_answers(questions, answers)
        assert len(parsed) == count
        assert parsed[: len(answers)] == answers
