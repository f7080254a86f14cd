"""``%%agent`` and ``%agent`` in a plain shell: the line, the body, the answer, what a terminal shows, completion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from opencode_jupyter.jupyter.magics.agent import parse
from opencode_jupyter.jupyter.magics.interpolation import TEXT_CHARS, fill
from tests.support.model_servers.openai import ScriptedServer
from tests.support.shells import Shell, shell

LOOK = {"text": "I look.", "calls": [["read", {"filePath": "a.txt"}], ["read", {"filePath": "none.txt"}]]}
SAID = {"text": "It says\n\n- hello"}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([LOOK, SAID], side={"text": "A title"}) as running:
        yield running


@pytest.fixture
def ip(tmp_path: Path, server: ScriptedServer) -> Iterator[Shell]:
    folder = tmp_path / "config_home" / "opencode"
    folder.mkdir(parents=True)
    entry = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": server.url, "apiKey": "k"}, "models": {"m": {}}}
    (folder / "opencode.json").write_text(json.dumps({"provider": {"loop": entry}}))
    with shell(tmp_path) as instance:
        Path("a.txt").write_text("hello\n")
        yield instance


# ---------------------------------------------------------------------- the answer


def test_the_answer_is_the_cells_value(ip: Shell) -> None:
    answer = ip.run("%%agent -m loop/m -o r\nWhat is in a.txt?")
    assert answer is ip["r"] is ip["_"]
    assert answer.text.strip() == "It says\n\n- hello"
    assert [c.tool for c in answer.calls] == ["read", "read"]
    assert list(answer.calls.df["outcome"]) == ["completed", "failed"]
    assert answer.usage.whole == 240
    assert answer.steps == 2
    assert answer.ended == "done"
    assert len(ip.shown) == 1, "shown once"
    ip.run("r")
    assert "application/vnd.opencode.run.v1+json" in ip.shown[0], "shown again where it is asked for"
    assert "I look." in json.dumps(ip.shown[0])


def test_a_terminal_shows_the_words_as_they_come_and_calls_as_lines(ip: Shell) -> None:
    ip.run("%%agent -m loop/m\nWhat is in a.txt?")
    lines = [line.partition(" (")[0].rstrip() for line in ip.printed.splitlines()]
    assert lines[0] == "I look."
    assert "✓ read a.txt" in lines
    assert "✗ read none.txt" in lines
    assert lines[lines.index("It says") :][:3] == ["It says", "", "- hello"]
    assert ip.shown[0]["text/plain"].startswith("✓ build · loop:m (done, 2 steps, 240 tokens")
    assert "I look" not in ip.shown[0]["text/plain"], "not twice"


def test_the_next_cell_goes_on_in_the_session(ip: Shell, server: ScriptedServer) -> None:
    server.turns = [SAID] * 4
    first = ip.run("%%agent -m loop/m\nOne.")
    second = ip.run("%%agent\nTwo.")
    assert first.session is second.session is ip.notebook.agent_session
    assert [m["content"] for m in server.requests[-1].messages if m["role"] == "user"] == ["One.", "Two."]
    three = ip.run("%%agent --new\nThree.")
    assert three.session is not first.session
    assert three.model.full == "loop:m", "the model of the last request"
    back = ip.run(f"%%agent --session {first.session.id} -q\nFour.")
    assert back.session is first.session
    assert ip.shown == []


def test_a_type_gives_a_value(ip: Shell, server: ScriptedServer) -> None:
    server.turns = lambda request: {
        "calls": [[request.body["tools"][-1]["function"]["name"], {"name": "x", "size": 3}]]
    }
    ip.run("from pydantic import BaseModel\nclass Found(BaseModel):\n    name: str\n    size: int")
    answer = ip.run("%%agent -m loop/m --type Found\nWhich?")
    assert answer.value == ip["Found"](name="x", size=3)
    schema = '{"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}'
    assert ip.run(f"%%agent --json {schema} --new\nWhich?").value == {"name": "x", "size": 3}


def test_modes_and_agents_hold_for_the_session(ip: Shell, server: ScriptedServer) -> None:
    write = {"calls": [["write", {"filePath": "b.txt", "content": "x"}]]}
    second_write = {"calls": [["write", {"filePath": "c.txt", "content": "x"}]]}
    server.turns = [write, SAID, second_write, SAID]
    answer = ip.run("%%agent -m loop/m --mode accept-edits\nWrite.")
    assert Path("b.txt").read_text() == "x"
    assert answer.calls[0].outcome == "completed"
    ip.run("%agent plan")
    answer = ip.run("%%agent --new\nWrite.")
    assert answer.calls[0].agent == "plan"
    assert answer.calls[0].outcome == "denied by a rule"
    assert "plan" in repr(ip.run("%agent"))
    with pytest.raises(ToolError, match="allow_bypass"):
        ip.run("%%agent --mode bypass\nWrite.")


def test_an_error_says_what_to_do(ip: Shell, server: ScriptedServer) -> None:
    with pytest.raises(ModelError, match=r"No model is named.*To choose from: loop:m\.") as raised:
        ip.run("%%agent\nGo.")
    assert ("OPENAI_API_KEY" in str(raised.value)) and "sk-" not in str(raised.value)
    assert ip.notebook.agent_session is None, "no session for nothing"
    with pytest.raises(ModelError, match="no model provider 'nope'"):
        ip.run("%%agent -m nope:x\nGo.")
    with pytest.raises(ToolError, match="no agent 'bulid'"):
        ip.run("%%agent -m loop/m -a bulid\nGo.")
    sessions = ip.notebook.on_engine(lambda: len(ip.notebook.workspace.sessions.list()))
    with pytest.raises(ModelError, match=r"'gpt-4o' names no provider; write provider:model\..* openai:gpt-4o"):
        ip.run("%%agent -m gpt-4o --new\nGo.")
    assert ip.notebook.on_engine(lambda: len(ip.notebook.workspace.sessions.list())) == sessions, "none for nothing"
    server.turns = [{"status": 401, "body": {"error": {"message": "Incorrect API key"}}}, SAID]
    with pytest.raises(ModelError, match="Incorrect API key"):
        ip.run("%%agent -m loop/m --new\nGo.")
    assert "✗ build · loop:m (failed" in ip.shown[0]["text/plain"]
    assert ip.run("%%agent\nAgain.").ended == "done"


def test_in_a_function_and_in_the_background(ip: Shell, server: ScriptedServer) -> None:
    server.turns = [SAID, SAID]
    ip.run("x = 3\ndef f():\n    return get_ipython().run_cell_magic('agent', '-m loop/m', 'Say {x}.')")
    assert ip.run("f()").ended == "done"
    assert server.requests[0].messages[-1]["content"] == "Say 3."
    ip.run("%%agent --bg -o h\nGo.")
    assert ip["h"].result(10).ended == "done"
    assert repr(ip["h"]).startswith("<agent run done")


# ---------------------------------------------------------------------- %agent


def test_state_switch_and_models(ip: Shell) -> None:
    assert "none yet: give -m MODEL" in repr(ip.run("%agent"))
    assert "loop/m" in str(ip.run("%agent -m loop/m"))
    assert "loop/m (set by %agent)" in repr(ip.run("%agent"))
    assert "loop:m" in repr(ip.run("%agent models"))
    with pytest.raises(ModelError, match=r"'gpt-4o' names no provider; write provider:model\..* openai:gpt-4o"):
        ip.run("%agent -m gpt-4o")
    assert ip.notebook.agent.model == "loop/m"
    ip.run("%agent plan")
    assert ip.notebook.agent.name == "plan"
    with pytest.raises(InvalidArgumentsError, match="Did you mean build"):
        ip.run("%agent bulid")
    with pytest.raises(InvalidArgumentsError, match=r"takes one agent\. To send a request, use %%agent"):
        ip.run("%agent build the work")
    assert ip.notebook.agent.name == "plan"
    with pytest.raises(InvalidArgumentsError, match="only works for other agents"):
        ip.run("%agent explore")


@pytest.mark.parametrize("line", ["%agent plan -m loop/m", "%agent -m loop/m plan"])
def test_agent_and_model_are_set_together(ip: Shell, line: str) -> None:
    assert str(ip.run(line)) == "The next %%agent goes to agent plan, model loop/m."
    assert (ip.notebook.agent.name, ip.notebook.agent.model) == ("plan", "loop/m")
    for wrong in ("%agent -m other:x bulid", "%agent build -m gpt-4o", '%agent build -m ""'):
        with pytest.raises(ToolError, match=r"There is no agent bulid|'gpt-4o' names no provider|No model is named"):
            ip.run(wrong)
    assert (ip.notebook.agent.name, ip.notebook.agent.model) == ("plan", "loop/m"), "a wrong line changes nothing"


def test_help_is_there(ip: Shell) -> None:
    ip.run("x = get_ipython().find_cell_magic('agent').__doc__")
    assert "--max-steps" in ip["x"]


# ---------------------------------------------------------------------- the line


def test_options() -> None:
    class Shape:
        pass

    options = parse(
        '-m openai:gpt-5 --agent=plan --session "My work" --max-steps 3 --record out/x.yaml --mode ask -o r -q --bg '
        '--json {"type": "object", "properties": {"a b": {}}}',
        {},
    )
    assert (options.model, options.agent, options.session, options.max_steps) == ("openai:gpt-5", "plan", "My work", 3)
    assert (options.record, options.mode, options.output, options.quiet, options.background) == (
        Path("out/x.yaml"), "ask", "r", True, True,
    )  # fmt: skip
    assert options.format == {"type": "object", "properties": {"a b": {}}}
    assert parse("--type Shape", {"Shape": Shape}).format is Shape
    assert parse("--json s", {"s": {"type": "array"}}).format == {"type": "array"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-m", "-m needs a value"),
        ("-m -q", "-m needs a value"),
        ("--modle x", "Did you mean --mode|Did you mean --model"),
        ("write a file", "The request itself goes below"),
        ("-q -q", "twice"),
        ("--max-steps 0", "whole number above 0"),
        ("--new --session x", "cannot be combined"),
        ("--json {1} ", "JSON"),
        ("--json nothing", "no variable nothing"),
        ("--type nothing", "no variable nothing"),
        ("--type n", "needs a type"),
        ("--json missing.json", "can't be read"),
        ("-o 1x", "name of a variable"),
    ],
)
def test_mistakes_in_the_line(line: str, message: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=message):
        parse(line, {"n": 3})


# ---------------------------------------------------------------------- the body


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


NAMES: dict[str, Any] = {
    "x": 3, "s": "words", "d": {"k": [1, 2]}, "odd": Odd(), "broken": Broken(), "long": "a" * 50_000,
    "many": list(range(100_000)), "api_key": "sk-secret", "max_tokens": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("v {x}, {x + 1}, { x }", "v 3, 4, 3"),
        ("{d['k'][0]} {d} {s!r} {x:.2f} {s:>7}", "1 {'k': [1, 2]} 'words' 3.00   words"),
        ("{odd} {max_tokens} {len(s)} {[n for n in d['k']]}", "<odd> 5 5 [1, 2]"),
        ("{{x}} {{ }}", "{x} { }"),
        ('{"a": 1} {"a": {"b": 1}} {"x": [1, {}]}', '{"a": 1} {"a": {"b": 1}} {"x": [1, {}]}'),
        ('{{"a": {"b": {x}}}}', '{"a": {"b": 3}}'),
        ("body { color: red } {} {1, 2} {a: 1} ${x} }", "body { color: red } {} {1, 2} {a: 1} ${x} }"),
        ("{\n  x\n}", "{\n  x\n}"),
        ("{x} {x", "3 {x"),
        ("```py\nf'{nope}'\n```\n{x}", "```py\nf'{nope}'\n```\n3"),
        ("no braces", "no braces"),
    ],
)
def test_values_in_the_request(body: str, expected: str) -> None:
    assert fill(body, NAMES) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{nope}", r"no variable nope.*double them: \{\{nope\}\}"),
        ("{max_token}", "Did you mean max_tokens"),
        ("{d['z']}", "KeyError"),
        ("{broken}", "RuntimeError: no repr"),
        ("{api_key}", "looks like a secret"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_before_anything_is_sent(body: str, message: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=message):
        fill(body, NAMES)


def test_large_values_are_cut_with_a_note() -> None:
    text = fill("{long}", NAMES)
    assert len(text) < TEXT_CHARS + 100
    assert "of 50,000 characters omitted" in text
    many = fill("{many}", NAMES)
    assert len(many) < 2_000
    assert "100000" in many.replace(",", "")


def test_a_frame_is_its_head_and_schema() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": [1.5, 2.5] * 500, "name": ["a", "b"] * 500})
    text = fill("Clean {df}", {"df": frame})
    for part in ("1,000 rows", "price: float64", "name", "first 5 rows"):
        assert part in text
    assert len(text) < 1_000
    numpy = pytest.importorskip("numpy")
    assert "float64" in fill("{a}", {"a": numpy.zeros((300, 4))})


def test_nothing_is_sent_when_a_name_is_wrong(ip: Shell, server: ScriptedServer) -> None:
    with pytest.raises(InvalidArgumentsError, match="Nothing was sent"):
        ip.run("%%agent -m loop/m\nLook at {nope}.")
    with pytest.raises(InvalidArgumentsError, match="no request"):
        ip.run("%%agent -m loop/m\n   \n")
    assert server.requests == []


# ---------------------------------------------------------------------- completion


def test_completion(ip: Shell) -> None:
    assert "%%agent --max-steps" in ip.complete("%%agent --m")
    assert "%%agent -m loop:m" in ip.complete("%%agent -m lo")
    assert ip.complete("%%agent -a pl") == ["%%agent -a plan"]
    assert ip.complete("%%agent --mode acc") == ["%%agent --mode accept-edits"]
    assert ip.complete("%agent pl") == ["%agent plan"]
    assert "%agent models" in ip.complete("%agent mo")
    ip.run("prices = [1]")
    assert ip.complete("%%agent\nSort {pri") == ["Sort {prices"]
    Path("lesson.yaml").write_text("")
    assert ip.complete("%%agent -m scripted:les") == ["%%agent -m scripted:lesson.yaml"]


def test_unloading_takes_it_away(ip: Shell) -> None:
    assert ip.ip.find_cell_magic("agent") is not None
    ip.ip.run_line_magic("unload_ext", "opencode_jupyter")
    assert ip.ip.find_cell_magic("agent") is None
    assert ip.ip.find_line_magic("agent_awaited") is None
    ip.ip.run_line_magic("load_ext", "opencode_jupyter")
