"""Lines that are being typed, completed and explained for a page: as by IPython's completer, and never blocking."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Tool, ToolContext
from opencode_jupyter.core.tool import Definition
from opencode_jupyter.jupyter.magics.editor_requests import Editing
from opencode_jupyter.jupyter.magics.line_help import MOST_CHOICES, spans, typed_words
from tests.support.shells import Shell, shell

ODD: dict[str, Any] = {
    "none": {},
    "no properties": {"type": "object"},
    "no object": {"type": "object", "properties": {"a": True, "b": None, "c": {"type": ["string", "null"]}}},
    "many values": {"type": "object", "properties": {"x": {"enum": list(range(1000))}}},
    "long": {"type": "object", "properties": {"x": {"type": "string", "description": "d" * 100_000}}},
    "mixed": {"type": "object", "properties": {"x": {"anyOf": [{"const": "a\nb"}, {"type": "array", "items": {}}]}}},
}


async def nothing(args: Any, ctx: ToolContext) -> str:
    return str(args)


@pytest.fixture(scope="module")
def ip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("editing")) as instance:
        Path("a.txt").write_text("x")
        instance.run("tables = {'pattern': 'x'}")
        yield instance


@pytest.fixture
def editing(ip: Shell) -> Editing:
    return Editing(ip.notebook)


def request_for(code: str, cursor: int | None = None) -> dict[str, Any]:
    return {"code": code, "cursor_pos": len(code) if cursor is None else cursor}


def answered(answer: Any, question: dict[str, Any]) -> dict[str, Any]:
    """The answer once it is not late: the first one imports what answers."""
    end = time.monotonic() + 20
    while (reply := answer(question)).get("late"):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert isinstance(reply, dict)
    return reply


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("%tool re", "%tool read"),
        ("x = 1\nr = %tool gl", "r = %tool glob"),
        ("%%tool wri", "%%tool write"),
        ("%tool read a.txt li", "%tool read a.txt limit="),
        ("%tool read a", "%tool read a.txt"),
        ("%tool --agent pl", "%tool --agent plan"),
        ("%tool grep --from tab", "%tool grep --from tables"),
        ("%permissions mode a", "%permissions mode ask"),
        ("%tools un", "%tools undo"),
        ("%mcp li", "%mcp list"),
        ("%sessions ren", "%sessions rename"),
        ("%%agent --mo", "%%agent --mode"),
        ("%%agent\nsay {tab", "say {tables"),
        ("📈 = 1\n%tool re", "%tool read"),
    ],
)
def test_completes_as_the_completer_does(ip: Shell, editing: Editing, code: str, line: str) -> None:
    reply = answered(editing.complete, request_for(code))
    completed = [code[: reply["start"]] + match["text"] + code[reply["end"] :] for match in reply["matches"]]
    lines = [text.rpartition("\n")[2] for text in completed]
    assert line in lines
    assert sorted(lines) == sorted(ip.complete(code))
    assert all(match["type"] for match in reply["matches"])


@pytest.mark.parametrize("code", ["prin", "x = 5 % to", "'%tool re", "y\n%%tool re", "%%tool bash\nli", ""])
def test_other_places_are_not_ours(editing: Editing, code: str) -> None:
    assert answered(editing.complete, request_for(code))["matches"] == []


def test_odd_questions_have_an_answer(editing: Editing) -> None:
    for question in (
        {},
        {"code": 3, "cursor_pos": "x"},
        {"code": "%tool re", "cursor_pos": -1},
        request_for("%tool re", 99),
    ):
        assert "matches" in answered(editing.complete, question)
        assert "found" in answered(editing.help, question)
    long = "%tool read " + "a" * 50_000
    assert answered(editing.complete, request_for(long))["matches"] == []
    assert "matches" in answered(editing.complete, request_for("%tool read " + "'a\"" * 3_000))


def test_what_blocks_is_given_up_and_the_next_question_answered(ip: Shell, editing: Editing) -> None:
    go_on = threading.Event()

    def slow(workspace: Any, field: str) -> list[str]:
        go_on.wait(30)
        return ["at last"]

    parameters = {"type": "object", "properties": {"x": {"type": "string"}}}
    answered(editing.complete, request_for("%tool re"))
    ip.notebook.workspace.registry.register(Tool("slow", Definition("S.", parameters, nothing), completions=slow))
    try:
        for _ in range(5):
            assert editing.complete(request_for("%tool slow ")) == {"late": True}
        assert editing.complete(request_for("%tool re")) == {"late": True}  # both places are taken
        go_on.set()
        reply = answered(editing.complete, request_for("%tool slow "))
        assert [match["text"] for match in reply["matches"]] == ["x=", "'at last'"]
        assert answered(editing.complete, request_for("%tool re"))["matches"]
    finally:
        go_on.set()
        ip.notebook.workspace.registry.unregister("slow")


def test_the_folder_is_left_to_the_cell_that_runs(
    ip: Shell, editing: Editing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ip.notebook.workspace.directory
    (tmp_path / "there.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    assert answered(editing.complete, request_for("%tool read th"))["matches"] == [
        {"text": "there.txt", "type": "path"}
    ]
    assert ip.notebook.workspace.directory == before


# ---------------------------------------------------------------------- help


@pytest.mark.parametrize(
    ("code", "name_typed", "kind", "name"),
    [
        ("%tool read a.txt", "read", "tool", "read"),
        ("%tool Read a.txt", "Read", "tool", "read"),
        ("%tool read a.txt limit=3", "limit=3", "parameter", "limit"),
        ("%tool read a.txt limit=3", "a.txt", "parameter", "filePath"),
        ("%tool grep x 'some dir' ", "'some dir'", "parameter", "path"),
        ("%tool bash echo hi", "hi", "parameter", "command"),
        ("%tool bash workdir=/tmp ls", "workdir=/tmp", "parameter", "workdir"),
        ("%tool -q read a.txt", "-q", "option", "-q"),
        ("%tool --timeout 3 read a.txt", "--timeout", "option", "--timeout SECONDS"),
        ("%tool read a.txt --dry-run", "--dry-run", "option", "--dry-run"),
        ("x = 1\n  y = %tool glob *.py", "glob", "tool", "glob"),
        ("%%tool write a.txt\ncontent", "write", "tool", "write"),
    ],
)
def test_explains_the_word_at_a_place(editing: Editing, code: str, name_typed: str, kind: str, name: str) -> None:
    start = code.index(name_typed)
    for cursor in (start, start + 1, start + len(name_typed)):
        explanation = answered(editing.help, request_for(code, cursor))
        assert (explanation["found"], explanation["kind"], explanation["name"]) == (True, kind, name)
        assert (explanation["start"], explanation["end"]) == (start, start + len(name_typed))
        assert explanation["description"]


def test_explains_a_parameter_by_its_schema(editing: Editing) -> None:
    explanation = answered(editing.help, request_for("%tool read a.txt limit=3", 20))
    assert explanation["type"] == "number" or explanation["type"] == "integer"
    assert explanation["required"] is False


@pytest.mark.parametrize(
    ("code", "cursor"),
    [("%tool nosuch x", 8), ("%tool read ", 11), ("%tool --timeout 3 read", 17), ("read", 1), ("%tool", 3), ("", 0)],
)
def test_explains_nothing_else(editing: Editing, code: str, cursor: int) -> None:
    assert answered(editing.help, request_for(code, cursor)) == {"found": False}


def test_words_have_their_places() -> None:
    for line in ("a 'b c' d\\ e \"f", "  ", "'it", "a\\", 'x:={"a": 1} y'):
        cut = list(spans(line, 0))
        assert [text for text, _, _ in cut] == [text for text in typed_words(line) if text]
        assert all(line[start:end] == text for text, start, end in cut)


@pytest.mark.parametrize(
    ("code", "match", "name"),
    [
        ("%tool re", "read", "read"),
        ("%tool read a.txt li", "limit=", "limit"),
        ("%tool --tim", "--timeout", "--timeout SECONDS"),
        ("%%agent --mo", "--mode", "--mode MODE"),
        ("%tool paint colour=g", "green", "colour"),
        ("%tool paint g", "green", "colour"),
    ],
)
def test_suggestions_come_with_what_they_mean(ip: Shell, editing: Editing, code: str, match: str, name: str) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}}
    registry = ip.notebook.workspace.registry
    registry.register(Tool("paint", Definition("Paints.", schema, nothing)))
    try:
        matches = {entry["text"]: entry for entry in answered(editing.complete, request_for(code))["matches"]}
        assert matches[match]["help"]["name"] == name
        assert "help" not in answered(editing.complete, request_for("%tool read a"))["matches"][0]  # a file
    finally:
        registry.unregister("paint")


def test_odd_schemas_and_many_tools(ip: Shell, editing: Editing) -> None:
    registry = ip.notebook.workspace.registry
    for name, schema in ODD.items():
        registry.register(Tool(f"odd_{name.replace(' ', '_')}", Definition("O.", schema, nothing)))

    def broken(context: Any) -> Definition:
        raise RuntimeError("no")

    registry.register(Tool("odd_broken", broken))
    for i in range(500):
        registry.register(Tool(f"many_{i}", Definition("Many.", {"type": "object", "properties": {"a": {}}}, nothing)))
    try:
        matches = {entry["text"]: entry for entry in answered(editing.complete, request_for("%tool odd_"))["matches"]}
        assert set(matches) == {"odd_broken", *(f"odd_{name.replace(' ', '_')}" for name in ODD)}
        assert [name for name in matches if "help" not in matches[name]] == ["odd_broken"]
        (many,) = answered(editing.complete, request_for("%tool odd_many_values x"))["matches"][:1]
        assert len(many["help"]["choices"]) == MOST_CHOICES
        assert len(answered(editing.help, request_for("%tool odd_long x=1", 16))["description"]) <= 1_000
        entries = answered(editing.complete, request_for("%tool many_"))["matches"]
        assert len(entries) == 500 and entries[0]["help"]["description"] == "Many."
    finally:
        for name in [
            "odd_broken",
            *(f"odd_{name.replace(' ', '_')}" for name in ODD),
            *(f"many_{i}" for i in range(500)),
        ]:
            registry.unregister(name)
