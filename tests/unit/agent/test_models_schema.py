# ruff: noqa: E501 - a case is a line
"""Tool schemas as providers take them (docs/opencode/core.md 5)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.agent.model import ModelInfo
from opencode_jupyter.agent.models.provider_adapter import original_names, wire_name
from opencode_jupyter.agent.models.tool_schema import adapt_schema, gemini, inline_references

GOOGLE = ModelInfo("google", "gemini-2.5-flash")
OPENAI = ModelInfo("openai", "gpt-5")
KIMI = ModelInfo("moonshotai", "kimi-k2")


def properties(**of: Any) -> dict[str, Any]:
    return {"type": "object", "properties": of}


def test_others_get_it_as_it_is() -> None:
    schema = properties(a={"type": "array"}, b={"enum": [1, 2], "type": "integer"})
    assert adapt_schema(OPENAI, schema) is schema


def test_the_given_schema_stays_and_the_outcome_is_kept() -> None:
    schema = properties(a={"type": "array"})
    before = copy.deepcopy(schema)
    first = adapt_schema(GOOGLE, schema)
    assert schema == before
    assert adapt_schema(GOOGLE, schema) is first
    assert adapt_schema(ModelInfo("openrouter", "x", api_id="google/gemini-3-pro"), schema) is first
    assert adapt_schema(OPENAI, schema) is schema


@pytest.mark.parametrize(
    ("node", "out"),
    [
        ({"type": "integer", "enum": [1, 2]}, {"type": "string", "enum": ["1", "2"]}),
        ({"enum": [1.5], "type": "number"}, {"enum": ["1.5"], "type": "string"}),
        ({"type": "string", "enum": ["a", None, True]}, {"type": "string", "enum": ["a", "null", "true"]}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": None}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": {"description": "x"}}, {"type": "array", "items": {"description": "x", "type": "string"}}),
        ({"type": "array", "items": {"enum": ["a"]}}, {"type": "array", "items": {"enum": ["a"]}}),
        ({"type": "array", "items": {"type": "array"}}, {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        ({"type": "array", "anyOf": [{"type": "string"}]}, {"type": "array", "anyOf": [{"type": "string"}]}),
        ({"type": "string", "properties": {}, "required": []}, {"type": "string"}),
        ({"anyOf": [{"type": "array"}]}, {"anyOf": [{"type": "array", "items": {"type": "string"}}]}),
    ],
)  # fmt: skip
def test_gemini(node: dict[str, Any], out: dict[str, Any]) -> None:
    assert gemini(node) == out


def test_gemini_drops_required_names_that_are_no_properties() -> None:
    schema = {**properties(a={"type": "string"}), "required": ["a", "b"]}
    assert gemini(schema)["required"] == ["a"]


def test_references_are_put_in_place_for_gemini() -> None:
    schema = {
        **properties(left={"$ref": "#/$defs/Point", "description": "here"}, all={"type": "array", "items": {"$ref": "#/$defs/Point"}}),
        "$defs": {"Point": properties(x={"type": "integer", "enum": [1]}, next={"$ref": "#/$defs/Point"})},
        "$schema": "x",
    }  # fmt: skip
    out = adapt_schema(GOOGLE, schema)
    assert "$ref" not in str(out)
    assert "$defs" not in out
    point = out["properties"]["left"]
    assert point["description"] == "here"
    assert point["properties"]["x"] == {"type": "string", "enum": ["1"]}
    assert point["properties"]["next"] == {"type": "object"}  # a circle ends
    assert out["properties"]["all"]["items"]["properties"]["x"]["type"] == "string"


def test_a_property_may_be_called_as_a_keyword() -> None:
    schema = properties(definitions={"type": "string"}, **{"$defs": {"type": "string"}})
    assert inline_references(schema) == schema


def test_moonshot() -> None:
    schema = properties(
        a={"$ref": "#/$defs/P", "description": "x"}, b={"type": "array", "items": [{"type": "string"}, {}]}
    )
    out = adapt_schema(KIMI, schema)
    assert out["properties"]["a"] == {"$ref": "#/$defs/P"}
    assert out["properties"]["b"]["items"] == {"type": "string"}


def test_a_schema_without_a_type_becomes_an_object() -> None:
    assert adapt_schema(OPENAI, {}) == {"type": "object", "properties": {}}


leaves = st.sampled_from(
    [{"type": "string"}, {"type": "integer", "enum": [1]}, {"type": "array"}, {"description": "x"}, {}]
)
nodes = st.recursive(
    leaves,
    lambda inner: (
        st.builds(lambda schema: {"type": "array", "items": schema}, inner)
        | st.builds(lambda of: {"type": "object", "properties": of}, st.dictionaries(st.sampled_from("abc"), inner))
        | st.builds(lambda of: {"anyOf": of}, st.lists(inner, min_size=1, max_size=3))
    ),
)


@settings(deadline=None)
@given(nodes)
def test_every_array_ends_with_a_typed_leaf(node: dict[str, Any]) -> None:
    def walk(item: Any) -> None:
        if isinstance(item, list):
            for each in item:
                walk(each)
        elif isinstance(item, dict):
            if item.get("type") == "array" and "anyOf" not in item:
                assert item["items"]
            for value in item.values():
                walk(value)

    out = gemini(node)
    walk(out)
    assert gemini(out) == out


@settings(deadline=None)
@given(st.text(max_size=90))
def test_tool_names_fit_everywhere(name: str) -> None:
    wire = wire_name(name)
    assert 1 <= len(wire) <= 64
    assert all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in wire)
    assert original_names([name]).get(wire, wire) == name


def test_two_names_never_become_one() -> None:
    names = ["a b", "a.b", "a/b", "a_b", "é", "è", "x" * 65, "x" * 66]
    assert len({wire_name(name) for name in names}) == len(names)
