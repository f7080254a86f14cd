"""Completion in %tool lines: names, options, parameters, values, paths, variables; and no Python names among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from opencode_jupyter import Tool, ToolContext, Workspace, tool
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.tool import Definition
from opencode_jupyter.jupyter.magics.commands import TOOL_OPTIONS
from opencode_jupyter.jupyter.magics.line_help import typed_words
from opencode_jupyter.jupyter.magics.line_syntax import words
from tests.support.shells import Shell, shell


def stations(workspace: Workspace, parameter: str) -> list[str]:
    """What a tool's own completions give, one parameter of it failing."""
    if parameter == "volume":
        raise RuntimeError("broken")
    return ["Radio One", "jazz", "two\nlines"] if parameter == "stationName" else []


async def play(args: Any, ctx: ToolContext) -> str:
    return str(args)


tune = Tool(
    "tune",
    Definition(
        "Tune.",
        {"type": "object", "properties": {"stationName": {"type": "string"}, "volume": {"type": "string"}}},
        play,
    ),
    completions=stations,
)
VARIABLES = ("arg_text", "args", "argh", "argument_model")
NO_BLANKS = dict.fromkeys(map(ord, " \t\r\n"))


class Config(BaseModel):
    limit: int = 1


@pytest.fixture(scope="module")
def ip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("completion")) as instance:
        for name in ("a.txt", ".hidden", "it's.txt", "src/app.py", "src/deep/b.py", "my dir/b c.txt", "new\nline.txt"):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")

        @tool
        def paint(colour: Literal["red", "green"], glossy: bool = False, out_file: str = "") -> str:
            """Paint."""
            return colour

        instance.notebook.workspace.registry.register(paint)
        instance.notebook.workspace.registry.register(tune)
        for name in ("pdf-forms", "plots", "it's"):
            skill = Path(f".opencode/skills/{name}/SKILL.md")
            skill.parent.mkdir(parents=True)
            skill.write_text(f'---\nname: "{name}"\ndescription: d\n---\n')
        instance.ip.user_ns.update(args={"pattern": "x"}, argument_model=Config(), argh=3, arg_text="t")
        yield instance


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("%tool re", ["%tool read"]),
        ("%%tool wri", ["%%tool write"]),
        ("r = %tool re", ["r = %tool read"]),
        ("a.b, c[0] = %tool re", ["a.b, c[0] = %tool read"]),
        ("x = 1\n%tool gl", ["%tool glob"]),
        ("for i in x:\n    %tool gl", ["    %tool glob"]),
        ("%tool -q --timeout 3 gl", ["%tool -q --timeout 3 glob"]),
        ("%tool --dr", ["%tool --dry-run"]),
        ("%tool read a.txt --dr", ["%tool read a.txt --dry-run"]),
        ("%tool --agent pl", ["%tool --agent plan"]),
        ("%tool read a.txt li", ["%tool read a.txt limit="]),
        ("%tool read limit=3 ", ["filePath=", "offset=", "'my dir/", "src/", '"it\'s.txt"', "a.txt"]),
        ("%tool read file", ["%tool read filePath="]),
        ("%tool read a", ["%tool read a.txt"]),
        ("%tool read .h", ["%tool read .hidden"]),
        ("%tool read src/", ["%tool read src/deep/", "%tool read src/app.py"]),
        ("%tool read src/de", ["%tool read src/deep/"]),
        ("%tool read my", ["%tool read 'my dir/"]),
        ("%tool read 'my dir/", ["%tool read 'my dir/b c.txt'"]),
        ('%tool read "my dir/b', ['%tool read "my dir/b c.txt"']),
        ("%tool read it", ['%tool read "it\'s.txt"']),
        ("%tool read filePath=sr", ["%tool read filePath=src/"]),
        ("%tool grep x path=sr", ["%tool grep x path=src/"]),
        ("%tool grep x sr", ["%tool grep x src/"]),
        ("%tool bash cat sr", ["%tool bash cat src/"]),
        ("%tool bash work", ["%tool bash workdir="]),
        ("%tool bash echo work", ["%tool bash echo work"]),
        ("%tool paint ", ["red", "green", "colour=", "glossy=", "out_file="]),
        ("%tool paint colour=g", ["%tool paint colour=green"]),
        ('%tool paint colour:="g', ['%tool paint colour:="green"']),
        ("%tool paint red ", ["true", "false", "glossy=", "out_file="]),
        ("%tool paint red glossy=t", ["%tool paint red glossy=true"]),
        ("%tool paint red out_file=a", ["%tool paint red out_file=a.txt"]),
        ("%tool skill ", ["name=", "pdf-forms", "plots", '"it\'s"']),
        ("%tool skill p", ["%tool skill pdf-forms", "%tool skill plots"]),
        ("%tool Skill pd", ["%tool Skill pdf-forms"]),
        ("%tool skill name=pl", ["%tool skill name=plots"]),
        ('%tool skill name:="pl', ['%tool skill name:="plots"']),
        ("%tool skill --dry-run it", ['%tool skill --dry-run "it\'s"']),
        ("%tool skill nosuch", ["%tool skill nosuch"]),
        ("%tool tune stationName=ra", ["%tool tune stationName='Radio One'"]),
        ("%tool tune 'Ra", ["%tool tune 'Radio One'"]),
        ("%tool tune jazz volume=x", ["%tool tune jazz volume=x"]),
        ("%tool edit 'my dir/b c.txt' ", ["oldString=", "newString=", "replaceAll="]),
        ("%tool grep --from ar", [f"%tool grep --from {name}" for name in ("arg_text", "args", "argument_model")]),
        ("%tool -o ar", [f"%tool -o {name}" for name in ("arg_text", "argh", "args", "argument_model")]),
        ("%tool grep --from O", ["%tool grep --from O"]),
        ("%tools ", ["list", "history", "doctor", "undo", "clean", "trust", "reload"]),
        ("%tools undo --", ["%tools undo --force"]),
        ("%permissions a", ["%permissions allow", "%permissions ask"]),
        ("%permissions mode a", ["%permissions mode accept-edits", "%permissions mode ask"]),
        ("%permissions sandbox r", ["%permissions sandbox read-only"]),
        ("%permissions deny web", ["%permissions deny webfetch", "%permissions deny websearch"]),
        ("%permissions deny edit sr", ["%permissions deny edit src/"]),
        ("%tool nosuchtool pri", ["%tool nosuchtool pri"]),
        ("%tool nosuchtool ", ["%tool nosuchtool "]),  # what stands there for itself: no name of Python's
        ("%tool todoread ", [option.name for option in TOOL_OPTIONS.all]),
        ("%tool read a.txt 1 2 ", [option.name for option in TOOL_OPTIONS.all]),
        ("%tool read offset=", ["%tool read offset="]),
        ("%tool bash timeout=", ["%tool bash timeout="]),
        ("%tools list ", ["%tools list "]),
        ("%tool todowrite todos:={ar", [f"%tool todowrite todos:={{{name}" for name in VARIABLES]),
        ("%tool bash echo {ar", ["%tool bash echo {ar"]),
        ("%tool python arg_", ["%tool python arg_text"]),
        ("%tool python print(arg_", ["%tool python print(arg_text"]),
        ("%tool python time", ["%tool python timeout="]),
        ("%tool python args.ke", ["%tool python args.ke"]),
    ],
)
def test_offers(ip: Shell, text: str, offered: list[str]) -> None:
    last = text.rpartition("\n")[2]
    expected = [o if "%" in o else last + o for o in offered]
    assert sorted(ip.complete(text)) == sorted(expected)


def test_prose_has_no_names_of_python_s(ip: Shell) -> None:
    assert ip.complete("%%agent\nplease pri") == ["please pri"]
    assert ip.complete("%%agent\nplease ") == ["please "]


def test_a_new_skill_is_offered_at_once(ip: Shell) -> None:
    skill = Path(".opencode/skills/quite-new/SKILL.md")
    assert ip.complete("%tool skill qui") == ["%tool skill qui"]
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: quite-new\ndescription: d\n---\n")
    try:
        assert ip.complete("%tool skill qui") == ["%tool skill quite-new"]
    finally:
        skill.unlink()


def test_other_lines_are_left_to_ipython(ip: Shell) -> None:
    assert "print" in ip.complete("prin")
    assert "x = print" in ip.complete("x = prin")
    assert "%tools" in ip.complete("%too")


def test_the_body_of_a_cell_is_not_an_argument(ip: Shell) -> None:
    assert "limit=" not in "".join(ip.complete("%%tool write a.txt\nli"))


def test_unload_takes_the_matcher_out(tmp_path: Path) -> None:
    with shell(tmp_path) as own:
        assert own.complete("%tool re") == ["%tool read"]
        own.run("%reload_ext opencode_jupyter")
        assert len(own.ip.Completer.custom_matchers) == 1
        own.run("%unload_ext opencode_jupyter")
        assert own.ip.Completer.custom_matchers == []


@settings(deadline=None)  # the machine may be busy
@given(st.text(max_size=40))
def test_unfinished_lines_are_cut_like_finished_ones(line: str) -> None:
    cut = typed_words(line)
    assert "".join(cut).translate(NO_BLANKS) == line.translate(NO_BLANKS)
    try:
        parsed: list[Any] = words(line)
    except ToolError:
        return
    if not any(w.key or w.kind != "plain" for w in parsed) and "\\" not in line and line.isascii():
        assert [c for c in cut if c] == [line[w.start : w.end] for w in parsed]
