"""A magic's line becomes a tool's arguments, or an error that says what to do."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from opencode_jupyter import InvalidArgumentsError, Tool, ToolError, UnknownToolError, Workspace, tool
from opencode_jupyter.jupyter.magics.tool_line import CallRequest, parse

SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "top": {"type": "integer"}, "exact": {"type": "boolean"}},
    "required": ["query"],
    "additionalProperties": False,
}


PLACE = {
    "type": "object",
    "properties": {"at": {"type": "object"}, "spots": {"type": "array", "items": {"type": "object"}}},
}


class Style(BaseModel):
    colour: Literal["red", "green"]
    width: float = 1.0


class Plot(BaseModel):
    data: list[float]
    style: Style | None = None
    title: str | None = Field(None, description="above the plot")


@tool
def note(title: str, text: str, copies: int = 1, loud: bool = False) -> str:
    """Write a note."""
    return title + text * copies


@tool
def tagged(files: list[str], level: Literal["low", "high"] = "low") -> str:
    """Tag files."""
    return level


@tool("plot", parameters=Plot)
def plot(arguments: Plot) -> str:
    """Draw."""
    return str(arguments)


@tool
def letter(to: str, body: str) -> str:
    """Write a letter."""
    return body


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("project")
    with Workspace(folder, data_dir=folder / "data", store=False) as ws:
        for entry in (note, tagged, plot, letter):
            ws.registry.register(entry)
        definition = {"description": "remote", "parameters": SEARCH, "execute": lambda a, c: "x"}
        ws.registry.register(Tool.define("search", definition))
        ws.registry.register(Tool.define("place", {**definition, "parameters": PLACE}))
        yield ws


@pytest.fixture
def read(workspace: Workspace) -> Any:
    def read(line: str, cell: str | None = None, **variables: Any) -> CallRequest:
        return parse(line, cell, workspace.registry, variables)

    return read


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("read a.txt", {"filePath": "a.txt"}),
        ("read 'my file.txt' limit=5", {"filePath": "my file.txt", "limit": 5}),
        ('read "my file.txt" 3', {"filePath": "my file.txt", "offset": 3}),
        ("read file_path=x offset:=3", {"filePath": "x", "offset": 3}),
        (r"read my\ file.txt", {"filePath": "my file.txt"}),
        ("read a{}$HOME.txt", {"filePath": "a{}$HOME.txt"}),
        ("read 'a{i}.txt'", {"filePath": "a{i}.txt"}),
        ("grep {i} include=*.{ts,tsx}", {"pattern": "{i}", "include": "*.{ts,tsx}"}),
        ("read 'it{}s'", {"filePath": "it{}s"}),
        ("read a.txt;", {"filePath": "a.txt"}),
        ("read a.txt ;", {"filePath": "a.txt"}),
        ("read 'a.txt;'", {"filePath": "a.txt;"}),
        ("read what?", {"filePath": "what?"}),
        ("read -- -x", {"filePath": "-x"}),
        ("read '-q'", {"filePath": "-q"}),
        (r"grep \d+ include=*.py", {"pattern": r"\d+", "include": "*.py"}),
        (r'grep "\bTODO\b"', {"pattern": r"\bTODO\b"}),
        ("grep 'a=b'", {"pattern": "a=b"}),
        ("grep pattern='a=\"b\"'", {"pattern": 'a="b"'}),
        ('grep {"pattern": "a b", "path": "src"}', {"pattern": "a b", "path": "src"}),
        ('grep {"pattern": "a"} path=src', {"pattern": "a", "path": "src"}),
        (r"grep {\w+}", {"pattern": r"{\w+}"}),
        ("write a.txt 'some text'", {"filePath": "a.txt", "content": "some text"}),
        ("edit f a b replaceAll=true", {"filePath": "f", "oldString": "a", "newString": "b", "replaceAll": True}),
        ("edit f a b replace_all=no", {"filePath": "f", "oldString": "a", "newString": "b", "replaceAll": False}),
        ("note t 5 3", {"title": "t", "text": "5", "copies": 3}),
        ("note t -1 copies=-1", {"title": "t", "text": "-1", "copies": -1}),
        ("note 'true' x loud=true", {"title": "true", "text": "x", "loud": True}),
        ("tagged a b c level=high", {"files": ["a", "b", "c"], "level": "high"}),
        ("tagged a", {"files": ["a"]}),
        ("tagged files=a files=b", {"files": ["a", "b"]}),
        ('tagged files=["a","b"]', {"files": ["a", "b"]}),
        ('tagged files:=["a b", "c"]', {"files": ["a b", "c"]}),
        ("tagged 'files:=[1]'", {"files": ["files:=[1]"]}),
        ('plot data:=[1, 2.5] style:={"colour": "red"}', {"data": [1, 2.5], "style": {"colour": "red"}}),
        ("plot 1 2.5 3", {"data": [1, 2.5, 3]}),
        ("plot data:='[1, 2]'", {"data": [1, 2]}),
        ("search x top=3 exact=yes", {"query": "x", "top": 3, "exact": True}),
        ("search 5", {"query": "5"}),
    ],
)
def test_line_becomes_arguments(read: Any, line: str, arguments: dict[str, Any]) -> None:
    assert read(line).arguments == arguments


def test_arguments_stand_in_the_order_of_the_parameters(read: Any) -> None:
    """A card names the first that says something: the note's title, not how many copies."""
    assert list(read("note copies=3 Monday hello").arguments) == ["title", "text", "copies"]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("bash ls -la | head", "ls -la | head"),
        ("bash --timeout 5 sleep 10", "sleep 10"),
        ("bash -q -o r FOO=1 echo \"$X {a}\" 'b c'", "FOO=1 echo \"$X {a}\" 'b c'"),
        ("bash echo 'unclosed", "echo 'unclosed"),
        ("bash { ls; }", "{ ls; }"),
        ("bash ls a?", "ls a?"),
        ("bash timeout=5; echo $timeout", "timeout=5; echo $timeout"),
        ("bash ls --help", "ls --help"),
        ("bash -- -odd", "-odd"),
        (r"bash grep '\bx\b' *.py; echo done;", r"grep '\bx\b' *.py; echo done;"),
        ('bash {"command": "ls", "description": "look"}', "ls"),
    ],
)
def test_bash_takes_the_line_as_it_stands(read: Any, line: str, command: str) -> None:
    assert read(line).arguments["command"] == command


def test_bash_describes_itself_by_its_command(read: Any) -> None:
    assert read("bash ls").arguments["description"] == "ls"
    assert read("bash", "\nfirst line\nsecond\n").arguments["description"] == "first line"
    assert read("bash", "# set up\nset -e\ncd src\nmake all\n").arguments["description"] == "make all"
    assert len(read("bash echo " + "x" * 100).arguments["description"]) == 60
    assert read('bash description="what for" ls').arguments == {"command": "ls", "description": "what for"}


def test_bash_takes_its_own_parameters_in_front(read: Any) -> None:
    request = read("bash workdir=sub timeout=500 ls 'a b'")
    assert request.arguments == {"workdir": "sub", "timeout": 500, "command": "ls 'a b'", "description": "ls 'a b'"}
    assert request.timeout is None


def test_options_stand_before_and_after_the_name(read: Any) -> None:
    for line in ("-q --timeout 2.5 -o hits --agent plan grep x", "grep x -q --timeout=2.5 -o hits --agent plan"):
        request = read(line)
        assert (request.tool, request.arguments) == ("grep", {"pattern": "x"})
        assert (request.quiet, request.timeout, request.output, request.agent) == (True, 2.5, "hits", "plan")
    assert read("--dry-run read a").dry_run
    assert read("read a --bg").background
    assert read("read --help").help
    assert read("read?").help
    assert read("bash --help").help


@pytest.mark.parametrize(
    ("line", "cell", "arguments"),
    [
        ("write a.txt", "x\ny\n", {"filePath": "a.txt", "content": "x\ny\n"}),
        ("write a.txt", "", {"filePath": "a.txt", "content": ""}),
        ("write filePath=a.txt", "{x} $y `z`\n", {"filePath": "a.txt", "content": "{x} $y `z`\n"}),
        ("edit a.txt old", "new\n", {"filePath": "a.txt", "oldString": "old", "newString": "new"}),
        ("edit a.txt old", "two\n\n", {"filePath": "a.txt", "oldString": "old", "newString": "two\n"}),
        ("bash workdir=w", "ls\npwd\n", {"workdir": "w", "command": "ls\npwd", "description": "ls"}),
        ("letter Ann", "Dear Ann\n", {"to": "Ann", "body": "Dear Ann"}),
        ("note hi", "text\n", {"title": "hi", "text": "text"}),
        ("tagged", '{"files": ["a"]}\n', {"files": ["a"]}),
        ("read a.txt", "  \n", {"filePath": "a.txt"}),
    ],
)
def test_body_fills_the_tools_body_field(read: Any, line: str, cell: str, arguments: dict[str, Any]) -> None:
    assert read(line, cell).arguments == arguments


CALL = {"tool": "glob", "parameters": {"pattern": "*"}}


@pytest.mark.parametrize("cell", [json.dumps([CALL], indent=1) + "\n", json.dumps({"tool_calls": [CALL]}) + "\n"])
def test_a_body_of_several_values_is_json(read: Any, cell: str) -> None:
    assert read("batch", cell).arguments == {"tool_calls": [CALL]}
    assert read("Batch", cell).tool == "batch"


@pytest.mark.parametrize(
    ("cell", "message"),
    [("a\nb\n", "can't be read: Expecting value"), ("\n", "todos"), ("{}\n", "todos"), ("[1]\n", "todos.0")],
)
def test_a_body_that_is_not_says_so(read: Any, cell: str, message: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=message):
        read("todowrite", cell)


def test_from_takes_dicts_models_dataclasses_and_strings(read: Any) -> None:
    @dataclass
    class Where:
        pattern: str
        path: str | None = None

    class Holder:
        args: dict[str, Any] = {"file_path": "x", "limit": 2}

    assert read("grep --from d", d={"pattern": "p"}).arguments == {"pattern": "p"}
    assert read("grep q --from d", d={"pattern": "p", "path": "src"}).arguments == {"pattern": "q", "path": "src"}
    assert read("plot --from m", m=Plot(data=[1.0])).arguments == {"data": [1.0]}
    assert read("grep --from w", w=Where("p")).arguments == {"pattern": "p"}
    assert read("write a.txt --from text", text="{x}\n").arguments == {"filePath": "a.txt", "content": "{x}\n"}
    assert read("bash --from cmd", cmd="ls | wc").arguments["command"] == "ls | wc"
    assert read("read --from h.args", h=Holder()).arguments == {"filePath": "x", "limit": 2}


def test_fstrings_name_variables(read: Any) -> None:
    assert read('read f"a {i + 1}.txt"', i=1).arguments == {"filePath": "a 2.txt"}
    assert read("write filePath=f'{n}.txt' content=f", n="b").arguments == {"filePath": "b.txt", "content": "f"}
    with pytest.raises(InvalidArgumentsError, match=r"NameError.*nothere"):
        read('read f"{nothere}"')


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("", "x", "name of a tool"),
        ('{"pattern": "x"}', None, "name of a tool"),
        ("pattern=x", None, "name of a tool"),
        ("read", None, "filePath (string) is missing: "),
        ("edit a.txt", None, "oldString and newString are missing:"),
        ("read a.txt b", None, "offset must be a number, not text. (offset is 'b')"),
        ("note t x copies=many", None, "copies must be a number, not text. (copies is 'many')"),
        ("note t x loud=perhaps", None, "loud must be true or false, not text. (loud is 'perhaps')"),
        ("tagged a level=middle", None, "level must be one of low, high. (level is 'middle')"),
        ("search x top=many", None, "top must be a whole number, not 'many'"),
        ('plot data:=["a"]', None, "data[0] must be a number"),
        ('plot data:=[1] style:={"colour": "blue"}', None, "style.colour"),
        ('read {"filePath": 5}', None, "filePath must be text, not a number. (filePath is 5)"),
        ("grep x inclde=y", None, "no parameter inclde. Did you mean include?"),
        ("grep a=b", None, "Put text that contains = in quotes"),
        ('grep {"patern": "x"}', None, "Did you mean pattern or path?"),
        ("read a filePath=b", None, "filePath is given twice"),
        ("read filePath=a filePath=b", None, "filePath is given twice"),
        ("write a.txt content=x", "y\n", "content is given twice"),
        ("bash ls", "pwd\n", "command is given twice"),
        ("read a 1 2 3", None, "one too many"),
        ("read --timout 3 a", None, "Did you mean --timeout?"),
        ("read -x", None, "no option -x. Quote a value that starts with -"),
        ("search --exact cats", None, "exact is a parameter, not an option: exact=true"),
        ("search cats --top=3", None, "top is a parameter, not an option: top=3"),
        ("grep --include *.py", None, "include is a parameter, not an option: include=VALUE"),
        ("read a --timeout soon", None, "number of seconds"),
        ("read a --timeout -1", None, "number of seconds"),
        ("read a --timeout", None, "--timeout needs a value"),
        ("read a --timeout=", None, "--timeout needs a value"),
        ("read a -o 1x", None, "name of a variable"),
        ("read a --bg=3", None, "--bg takes no value"),
        ("read a --bg --dry-run", None, "cannot be combined"),
        ("read --from nowhere", None, "no variable nowhere"),
        (
            "read {nowhere}",
            None,
            "There is no variable nowhere. To keep the braces, put the text in quotes: '{nowhere}'",
        ),
        ("write filePath=out/{nmber}.txt content=x", None, "no variable nmber. Did you mean number?"),
        ("read {number.size}", None, "{number.size} cannot be filled in (AttributeError: "),
        ("read --from number", None, "needs a dict"),
        ("read a", "body\n", "which field the cell's body is for"),
        ("note", "body\n", "title, text"),
        ("read offset:=True a", None, "Write true in JSON, not True"),
        ("batch tool_calls={calls}", None, ":= takes JSON or a variable unchanged: tool_calls:={calls}"),
        ("batch {calls[0]}", None, "tool_calls:={calls[0]}"),
        ('batch tool_calls=\'[{"tool": "glob",}]\'', None, "tool_calls:=[...]"),
        ("todowrite todos=hello", None, "todos= takes text; := takes JSON or a variable unchanged: todos:=[...]"),
        ("plot data:=[1] style={look}", None, "style:={look}"),
        ("place at={spot}", None, "at= takes text; := takes JSON or a variable unchanged: at:={spot}"),
        ("place at:={} spots={spots}", None, "spots:={spots}"),
        ("read offset:= a", None, "needs a JSON value"),
        ("read offset:=[1]x a", None, "ends before this"),
    ],
)
def test_errors_say_what_to_do(read: Any, line: str, cell: str | None, message: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        read(line, cell, number=3)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('read "a b', 5),
        ("read a filePath='b", 16),
        ('grep {"pattern": "x', 17),
        ('grep {"pattern":', 16),
        ("tagged files:=[1, 2", 19),
        ("grep x inclde=y", 7),
    ],
)
def test_errors_point_at_the_place(read: Any, line: str, column: int) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        read(line)
    source, caret = str(caught.value).splitlines()[-2:]
    assert source == "  " + line
    assert caret.index("^") == column + 2


def test_long_lines_are_cut_around_the_place(read: Any) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        read("read " + "x " * 500 + '"' + "y" * 1000)
    source, caret = str(caught.value).splitlines()[-2:]
    assert len(source) < 120
    assert source[caret.index("^")] == '"'


def test_unknown_tools_suggest_near_names(read: Any) -> None:
    with pytest.raises(UnknownToolError) as caught:
        read("raed a.txt")
    assert caught.value.suggestions[0] == "read"
    with pytest.raises(UnknownToolError):
        read("raed?")


def test_tools_with_an_own_formatter_speak_for_themselves(workspace: Workspace) -> None:
    @tool("strict", format_validation_error=lambda e: f"strictly {e.error_count()}")
    def strict(n: int) -> str:
        return str(n)

    workspace.registry.register(strict)
    with pytest.raises(InvalidArgumentsError, match="strictly 1"):
        parse("strict n=x", None, workspace.registry, {})


def test_tools_that_describe_themselves_late_are_read_too(workspace: Workspace) -> None:
    async def init(context: Any) -> dict[str, Any]:
        return {"description": "late", "parameters": SEARCH, "execute": lambda a, c: "x"}

    async def broken(context: Any) -> dict[str, Any]:
        raise ToolError("no server")

    workspace.registry.register(Tool.define("late", init))
    workspace.registry.register(Tool.define("broken", broken))
    assert parse("late x top=2", None, workspace.registry, {}).arguments == {"query": "x", "top": 2}
    with pytest.raises(ToolError, match="no server"):
        parse("broken x", None, workspace.registry, {})


def test_a_variable_is_given_as_it_is(read: Any) -> None:
    class Box:
        items = (1.5, 2.5)

    assert read("plot data:={numbers} title:={name}", numbers=[1.0], name="N").arguments == {
        "data": [1.0],
        "title": "N",
    }
    assert read("plot data:={box.items}", box=Box()).arguments == {"data": (1.5, 2.5)}
    assert read('plot data:=[1] style:={"colour":"red"}').arguments["style"] == {"colour": "red"}
    with pytest.raises(InvalidArgumentsError, match=r"no variable nubmers. Did you mean numbers"):
        read("plot data:={nubmers}", numbers=[1.0])
    with pytest.raises(InvalidArgumentsError, match=r"numbers\[3\] cannot be read \(IndexError"):
        read("plot data:={numbers[3]}", numbers=[1.0])


class Frame:
    path = "my data.csv"


VARIABLES: dict[str, Any] = {
    "name": "Ann Lee",
    "evil": 'it\'s; rm -rf $HOME `x` "y"',
    "n": 3,
    "files": ["a b.txt", "c.txt"],
    "pair": ("x", 1),
    "none": [],
    "d": {"k": "v w", 0: "zero"},
    "df": Frame(),
    "flags": "-l -a",
}


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("echo {name}", "echo 'Ann Lee'"),
        ("echo {n}", "echo 3"),
        ("echo {evil}", "echo " + shlex.quote(VARIABLES["evil"])),
        ("cat {files}", "cat 'a b.txt' c.txt"),
        ("echo {pair} {none}.", "echo x 1 ."),
        ("wc {df.path} {files[0]} {files[-1]}", "wc 'my data.csv' 'a b.txt' c.txt"),
        ("echo {d[\"k\"]} {d['k']} {d[0]}", "echo 'v w' 'v w' zero"),
        ("ls {flags!s} {flags}", "ls -l -a '-l -a'"),
        ("echo {{name}} {{{n}}} {{nothing}}", "echo {name} {3} {{nothing}}"),
        ("echo run{n}.txt|cat", "echo run3.txt|cat"),
        ("echo $name ${name} ${name[0]}", "echo $name ${name} ${name[0]}"),
        ("echo {nothing} {name,n} {1..3} {a,b} {} {n..5}", "echo {nothing} {name,n} {1..3} {a,b} {} {n..5}"),
        ("awk '{print $1}' x", "awk '{print $1}' x"),
        ("jq '{name}' x; echo {n} # {evil}", "jq '{name}' x; echo 3 # {evil}"),
        ("echo '{\"n\": 1}' {print}", "echo '{\"n\": 1}' {print}"),
        ('echo "Hi {name}, {d["k"]}"', 'echo "Hi Ann Lee, v w"'),
        ('echo "{evil}"', 'echo "it\'s; rm -rf \\$HOME \\`x\\` \\"y\\""'),
        ('echo "$(cat {name})"', "echo \"$(cat 'Ann Lee')\""),
        ("docker ps --format '{{.Names}}' \"{{.Names}}\"", "docker ps --format '{{.Names}}' \"{{.Names}}\""),
        ("echo $(({n}+1))", "echo $((3+1))"),
        ("echo 'it''s' \"don't\" {name}", "echo 'it''s' \"don't\" 'Ann Lee'"),
    ],
)
def test_variables_in_a_command_are_quoted_for_the_shell(read: Any, line: str, command: str) -> None:
    assert read(f"bash {line}", **VARIABLES).arguments["command"] == command


@pytest.mark.parametrize("template", ["{}", '"{}"', '"$(printf %s {})"', "a{}"])
def test_no_value_gets_out_of_its_quotes(read: Any, template: str) -> None:
    for value in (
        "'; echo broken; '",
        '"; echo broken; "',
        "$(echo broken)",
        "`echo broken`",
        "\\",
        "a\nb",
        "*",
        "#",
        "",
    ):
        command = read("bash printf %s " + template.replace("{}", "{value}"), value=value).arguments["command"]
        printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
        assert printed.removeprefix("a" if template.startswith("a") else "") in (value, " ".join(value.split("\n")))


def test_a_value_that_cannot_be_quoted_is_an_error(read: Any) -> None:
    for line in ("echo $((x[{evil}]))", "echo ${x:-{evil}}", "echo ({evil}"):
        with pytest.raises(InvalidArgumentsError, match="cannot be quoted safely"):
            read(f"bash {line}", **VARIABLES)
    with pytest.raises(InvalidArgumentsError, match=r"\{df.nope\} cannot be filled in .*\{\{df.nope\}\}"):
        read("bash echo {df.nope}", **VARIABLES)


def test_variables_are_not_filled_into_bodies_and_json(read: Any) -> None:
    assert read("bash", "echo {name}\n", **VARIABLES).arguments["command"] == "echo {name}"
    assert read('bash {"command": "echo {name}"}', **VARIABLES).arguments["command"] == "echo {name}"


@pytest.mark.parametrize(
    "line", ["read a limit={n+1}", "read a limit={n + 1}", "read a {'1'} {n + 1}", "read a limit={len(files) + 2}"]
)
def test_expressions_in_braces_where_a_number_belongs(read: Any, line: str) -> None:
    if "'1'" in line:
        line = "read a {n-2} {n+1}"
    assert read(line, **VARIABLES).arguments["limit"] == 4


def test_an_expression_that_fails_names_the_f_string(read: Any) -> None:
    with pytest.raises(InvalidArgumentsError, match=r"NameError.*limit=f\"\{nope\+1\}\""):
        read("read a limit={nope+1}", **VARIABLES)


@pytest.mark.parametrize(
    ("line", "cell", "arguments"),
    [
        ("read a.txt # the first", None, {"filePath": "a.txt"}),
        ("read a.txt limit=2  # the 'first", None, {"filePath": "a.txt", "limit": 2}),
        ("read a.txt #first", None, {"filePath": "a.txt"}),
        ("read a.txt; # first", None, {"filePath": "a.txt"}),
        ("grep #include src # C", None, {"pattern": "#include", "path": "src"}),
        ("grep '#' a#b", None, {"pattern": "#", "path": "a#b"}),
        ("write a.md # notes", "text\n", {"filePath": "a.md", "content": "text\n"}),
        ("write a.md '# Title'", None, {"filePath": "a.md", "content": "# Title"}),
    ],
)
def test_comments_after_a_call(read: Any, line: str, cell: str | None, arguments: dict[str, Any]) -> None:
    assert read(line, cell).arguments == arguments
