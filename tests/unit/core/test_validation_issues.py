"""What is wrong with arguments is told as OpenCode tells it: in the words that Zod 4.1.8 has for the same schema."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from opencode_jupyter.core.schema import json_schema
from opencode_jupyter.core.validation_issues import as_json, list_issues


class Inner(BaseModel):
    x: str


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = ""
    number: float = 0
    flag: bool = False
    texts: list[str] = []
    inner: Inner = Inner(x="")
    inners: list[Inner] = []
    word: Literal["p", "q"] = "p"
    only: Literal["k"] = "k"
    count: Annotated[int, Field(ge=1, le=5)] = 1
    open: Annotated[float, Field(gt=0, lt=4)] = 1
    some: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    long: Annotated[str, Field(min_length=2, max_length=3)] = "aa"
    form: Annotated[str, Field(pattern="^a")] = "a"
    even: int = 0
    day: date = date(2026, 1, 1)
    either: str | list[int] = ""

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


class Needed(BaseModel):
    text: str
    count: int
    flag: bool
    texts: list[str]
    inner: Inner
    word: Literal["p", "q"]


def issues_json(model: type[BaseModel], value: Any, schema: dict[str, Any] | None = None) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return as_json(list_issues(caught.value, schema if schema is not None else json_schema(model)))


def wrong(expected: str, received: str, *path: str | int) -> dict[str, Any]:
    message = f"Invalid input: expected {expected}, received {received}"
    return {"expected": expected, "code": "invalid_type", "path": list(path), "message": message}


def bound(origin: str, code: str, name: str, value: int, inclusive: bool, message: str, path: str) -> dict[str, Any]:
    return {"origin": origin, "code": code, name: value, "inclusive": inclusive, "path": [path], "message": message}


@pytest.mark.parametrize(
    ("arguments", "issue"),
    [
        ({"text": 1}, wrong("string", "number", "text")),
        ({"text": None}, wrong("string", "null", "text")),
        ({"number": "x"}, wrong("number", "string", "number")),
        ({"number": []}, wrong("number", "array", "number")),
        ({"flag": "maybe"}, wrong("boolean", "string", "flag")),
        ({"texts": {}}, wrong("array", "object", "texts")),
        ({"texts": ["a", 3]}, wrong("string", "number", "texts", 1)),
        ({"inner": []}, wrong("object", "array", "inner")),
        ({"inner": {}}, wrong("string", "undefined", "inner", "x")),
        ({"inners": [{"x": ""}, {}]}, wrong("string", "undefined", "inners", 1, "x")),
        ({"inners": [True]}, wrong("object", "boolean", "inners", 0)),
        ({"count": 1.5}, {"expected": "int", "format": "safeint"} | wrong("int", "number", "count")),
        (
            {"word": "z"},
            {
                "code": "invalid_value",
                "values": ["p", "q"],
                "path": ["word"],
                "message": 'Invalid option: expected one of "p"|"q"',
            },
        ),
        (
            {"only": 3},
            {"code": "invalid_value", "values": ["k"], "path": ["only"], "message": 'Invalid input: expected "k"'},
        ),
        (
            {"count": 0},
            bound("number", "too_small", "minimum", 1, True, "Too small: expected number to be >=1", "count"),
        ),
        ({"count": 6}, bound("number", "too_big", "maximum", 5, True, "Too big: expected number to be <=5", "count")),
        ({"open": 0}, bound("number", "too_small", "minimum", 0, False, "Too small: expected number to be >0", "open")),
        ({"open": 4}, bound("number", "too_big", "maximum", 4, False, "Too big: expected number to be <4", "open")),
        (
            {"some": []},
            bound("array", "too_small", "minimum", 1, True, "Too small: expected array to have >=1 items", "some"),
        ),
        (
            {"some": ["a"] * 3},
            bound("array", "too_big", "maximum", 2, True, "Too big: expected array to have <=2 items", "some"),
        ),
        (
            {"long": "a"},
            bound(
                "string", "too_small", "minimum", 2, True, "Too small: expected string to have >=2 characters", "long"
            ),
        ),
        (
            {"long": "abcd"},
            bound("string", "too_big", "maximum", 3, True, "Too big: expected string to have <=3 characters", "long"),
        ),
        (
            {"form": "b"},
            {
                "origin": "string",
                "code": "invalid_format",
                "format": "regex",
                "pattern": "/^a/",
                "path": ["form"],
                "message": "Invalid string: must match pattern /^a/",
            },
        ),
        ({"even": 3}, {"code": "custom", "path": ["even"], "message": "must be even"}),
        (
            {"more": 1},
            {"code": "unrecognized_keys", "keys": ["more"], "path": [], "message": 'Unrecognized key: "more"'},
        ),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) and "message" not in value else "",
)
def test_as_zod_says_it(arguments: dict[str, Any], issue: dict[str, Any]) -> None:
    assert issues_json(Sample, arguments) == json.dumps([issue], indent=2)


def test_what_is_missing_is_told_with_its_type() -> None:
    option = {"code": "invalid_value", "values": ["p", "q"], "path": ["word"]}
    assert json.loads(issues_json(Needed, {})) == [
        wrong("string", "undefined", "text"),
        wrong("number", "undefined", "count"),
        wrong("boolean", "undefined", "flag"),
        wrong("array", "undefined", "texts"),
        wrong("object", "undefined", "inner"),
        {**option, "message": 'Invalid option: expected one of "p"|"q"'},
    ]


def test_a_value_of_several_types_is_told_of_each_at_its_own_place() -> None:
    assert json.loads(issues_json(Sample, {"either": 3})) == [
        wrong("string", "number", "either"),
        wrong("array", "number", "either"),
    ]
    assert json.loads(issues_json(Sample, {"either": [1, "x"]}))[1] == wrong("number", "string", "either", 1)


def test_without_a_schema_something_is_required() -> None:
    [issue] = json.loads(issues_json(Inner, {}, {}))
    assert issue == {"code": "invalid_type", "path": ["x"], "message": "Required"}


def test_what_zod_has_no_word_for_is_in_pydantics_with_the_value() -> None:
    [issue] = json.loads(issues_json(Sample, {"day": "soon"}))
    assert (issue["path"], issue["received"]) == (["day"], "'soon'")
    assert "valid date" in issue["message"]
