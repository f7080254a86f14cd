"""Forms of MCP servers as questions, and answers as values."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.question_request import parse_questions
from opencode_jupyter.mcp.server_requests import ACCEPT, DECLINE, FormField, form_fields, form_questions

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "ratio": {"type": "number"},
        "sure": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
        "size": {"oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
    },
    "required": ["name", "age"],
}


def field(name: str) -> FormField:
    return next(field for field in form_fields(SCHEMA) if field.name == name)


def test_each_field_is_a_question_and_the_first_says_who_asks() -> None:
    questions = form_questions("demo", "Fill this in", form_fields(SCHEMA), {"age": "'x' is not a whole number."})
    assert questions[0].question.startswith("The MCP server demo asks: Fill this in\nYour name")
    assert "0 or more, 150 or less" in questions[1].question
    assert questions[1].question.endswith("'x' is not a whole number.")
    assert [o.label for o in questions[3].options] == ["Yes", "No"]
    assert [o.label for o in questions[4].options] == ["red", "green"]
    assert [o.label for o in questions[5].options] == ["small", "large"]
    assert questions[6].multiple
    assert [q.custom for q in questions] == [True, True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("name", "answer", "value"),
    [
        ("name", ["Ada"], "Ada"),
        ("age", [" 36 "], 36),
        ("ratio", ["0.5"], 0.5),
        ("ratio", [], None),
        ("sure", ["No"], False),
        ("sure", [], True),
        ("colour", ["green"], "g"),
        ("size", ["small"], "s"),
        ("tags", ["a", "c"], ["a", "c"]),
    ],
)
def test_answers_become_values(name: str, answer: list[str], value: Any) -> None:
    assert field(name).value(answer) == value


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("name", [], "An answer is needed"),
        ("name", ["A"], "1 characters"),
        ("age", ["old"], "not a whole number"),
        ("age", ["151"], "at most 150"),
        ("ratio", ["nan"], "not a finite number"),
    ],
)
def test_answers_that_do_not_fit_say_why(name: str, answer: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        field(name).value(answer)


def test_a_form_without_fields_is_a_yes_or_no() -> None:
    [only] = form_questions("demo", "Shall I?", [], {})
    assert [o.label for o in only.options] == [ACCEPT, DECLINE]
    assert not only.custom


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
WORDS = ("title", "type", "enum", "oneOf", "items", "minimum", "maximum", "minLength", "default", "required")


@settings(max_examples=60)
@given(st.dictionaries(st.text(min_size=1, max_size=4), st.dictionaries(st.sampled_from(WORDS), ANY), max_size=3))
def test_any_form_of_a_server_can_be_asked(properties: dict[str, Any]) -> None:
    for field in form_fields({"properties": properties}):
        [question] = parse_questions([field.question()])
        for answer in ([option.label for option in question.options[:1]], ["0"], []):
            with contextlib.suppress(ValueError):
                field.value(answer)
