"""Answers typed at a prompt: a reason for a denial; of questions numbers, labels, own words, several, nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.question_request import Question, QuestionRequest, parse_answers, parse_questions
from opencode_jupyter.jupyter.kernel.reply_channels import TRIES, QuestionDialog, parse_answer, parse_choice

LABELS = ["SQLite", "PostgreSQL", "My SQL"]


def question(**more: object) -> Question:
    (parsed,) = parse_questions({"question": "Which?", "header": "DB", "options": LABELS, **more})
    return parsed


def dialog(*questions: Question) -> QuestionDialog:
    return QuestionDialog(QuestionRequest("que_1", "ses_1", list(questions)))


@pytest.mark.parametrize(
    ("typed", "more", "answer"),
    [
        ("1", {}, ["SQLite"]),
        (" 3 ", {}, ["My SQL"]),
        ("postgresql", {}, ["PostgreSQL"]),
        ("9", {}, ["9"]),
        ("DuckDB, if you can", {}, ["DuckDB, if you can"]),
        ("1,3", {"multiple": True}, ["SQLite", "My SQL"]),
        ("1 3", {"multiple": True}, ["SQLite", "My SQL"]),
        ("1; my sql, 1", {"multiple": True}, ["SQLite", "My SQL"]),
        ("2, DuckDB", {"multiple": True}, ["PostgreSQL", "DuckDB"]),
        ("DuckDB, Redis", {"multiple": True}, ["DuckDB, Redis"]),
        ("1,2", {"multiple": True, "custom": False}, ["SQLite", "PostgreSQL"]),
        ("2", {"custom": False}, ["PostgreSQL"]),
    ],
)
def test_what_a_typed_line_chooses(typed: str, more: dict[str, object], answer: list[str]) -> None:
    assert parse_choice(typed, question(**more)) == answer


@pytest.mark.parametrize(
    ("typed", "more", "reason"),
    [
        ("1,2", {}, "One answer only"),
        ("DuckDB", {"custom": False}, "not one of the answers"),
        ("1, DuckDB", {"custom": False, "multiple": True}, "not one of the answers"),
        ("4", {"custom": False}, "not one of the answers"),
    ],
)
def test_what_it_does_not_take(typed: str, more: dict[str, object], reason: str) -> None:
    message = parse_choice(typed, question(**more))
    assert isinstance(message, str)
    assert reason in message


def test_the_text_of_a_prompt() -> None:
    many = parse_questions(
        [
            {"question": "Which?", "header": "DB", "options": [{"label": "A\u202e", "description": "a file"}, "B"]},
            {"question": "Why?", "options": [], "multiple": True},
        ]
    )
    prompt = dialog(*many)
    assert prompt.text().split("\n") == [
        "[1 of 2] DB: Which?",
        "  [1] A\\u202e: a file",
        "  [2] B",
        "A number, or your own answer (empty: dismiss) > ",
    ]
    assert prompt.take("2") == "next"
    assert prompt.text().split("\n") == ["[2 of 2] Why?", "Your answer (empty: dismiss) > "]
    assert prompt.take("because") == "done"
    assert prompt.answers == [["B"], ["because"]]


def test_nonsense_is_told_and_ends_after_a_while() -> None:
    prompt = dialog(question(custom=False))
    for _ in range(TRIES - 1):
        assert prompt.take("x") == "again"
        assert "not one of the answers" in prompt.text()
    assert prompt.take("x") == "dismissed"
    assert dialog(question()).take("  ") == "dismissed"


@given(st.text(min_size=1), st.booleans(), st.booleans())
def test_whatever_is_typed_is_an_answer_that_fits_or_is_told(typed: str, multiple: bool, custom: bool) -> None:
    only = question(multiple=multiple, custom=custom)
    prompt = dialog(only)
    outcome = prompt.take(typed)
    if outcome == "done":
        assert parse_answers([only], prompt.answers) == prompt.answers
        assert multiple or len(prompt.answers[0]) == 1
        assert prompt.answers[0]
    else:
        assert outcome in ("again", "dismissed")


@pytest.mark.parametrize(
    "text", ["n use mv instead", "no, use mv instead", "3: use mv instead", "deny  use mv instead"]
)
def test_a_denial_at_the_prompt_takes_a_reason(text: str) -> None:
    assert parse_answer(text) == ("reject", "use mv instead")
    assert parse_answer("nothing") is None
