"""What %tool NAME? and %tool say, in text and HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import pytest

from opencode_jupyter import Rule, Workspace, tool
from opencode_jupyter.jupyter.magics.help import ToolHelp, tool_list
from opencode_jupyter.jupyter.magics.parameters import Spec
from opencode_jupyter.jupyter.magics.tool_line import parse
from opencode_jupyter.jupyter.tables import Table


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path, data_dir=tmp_path / "data", store=False) as ws:
        yield ws


def help_of(workspace: Workspace, name: str) -> ToolHelp:
    registered = workspace.registry.get(name)
    assert registered is not None
    return ToolHelp(Spec(registered))


class Closed(HTMLParser):
    """Fails on a tag that is not closed, and keeps the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.tags: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_help_names_parameters_types_and_the_body(workspace: Workspace) -> None:
    text = repr(help_of(workspace, "edit"))
    assert "%tool edit [options] filePath oldString newString [replaceAll=true|false]" in text
    assert "the body fills newString" in text
    row = next(line for line in text.splitlines() if line.startswith("filePath "))
    assert row.split()[1:3] == ["string", "required"]
    assert "--dry-run" in text


def test_every_example_can_be_read_as_a_call(workspace: Workspace) -> None:
    @tool
    def mix(name: str, kind: Literal["a", "b"], share: float, deep: bool, tags: list[str], log_file: str) -> str:
        """Mix everything."""
        return name

    workspace.registry.register(mix)
    for name in workspace.registry.names():
        example = help_of(workspace, name).example
        assert example.startswith("%tool ")
        assert parse(example.removeprefix("%tool "), None, workspace.registry, {}).tool == name


def test_html_is_closed_escaped_and_says_the_same(workspace: Workspace) -> None:
    @tool("evil", description="<script>alert(1)</script> & co")
    def evil(text: str = "<b>") -> str:
        return text

    workspace.registry.register(evil)
    page = Closed(help_of(workspace, "evil")._repr_html_())
    assert "script" not in page.tags
    assert "<script>alert(1)</script> & co" in page.text
    assert '"<b>"' in page.text
    for name in workspace.registry.names():
        assert name in Closed(help_of(workspace, name)._repr_html_()).text


def test_a_tool_without_parameters_says_so(workspace: Workspace) -> None:
    @tool
    def now() -> str:
        """The time."""
        return ""

    workspace.registry.register(now)
    assert "It takes no parameters." in repr(help_of(workspace, "now"))
    assert help_of(workspace, "now").example == "%tool now"


def test_the_list_says_where_tools_come_from_and_whether_they_would_ask(workspace: Workspace) -> None:
    @tool
    def mine(x: int) -> str:
        """Do my thing. And more."""
        return ""

    workspace.registry.register(mine)
    workspace.rules += [Rule("edit", "*", "deny", "this session"), Rule("mine", "*", "ask", "because")]
    rows = {row["tool"]: row for row in tool_list(workspace)}
    assert (rows["write"]["now"], rows["write"]["by"]) == ("deny", "this session")
    assert (rows["mine"]["now"], rows["mine"]["by"]) == ("ask", "because")
    assert rows["mine"]["description"] == "Do my thing."
    assert rows["read"]["source"] == "built in"
    assert rows["read"]["now"] == "allow"
    assert rows["read"]["calls"] == "you: runs · a model: runs"
    assert rows["bash"]["calls"] == "you: runs · a model: asks"
    assert rows["write"]["calls"] == "you: denied · a model: denied"


def test_the_list_groups_tools_and_fits_80_columns(workspace: Workspace) -> None:
    @tool("a_tool_with_a_name_of_more_than_thirty_characters")
    def mine() -> str:
        """Do something that takes a description of more than the columns that are left for it."""
        return ""

    workspace.registry.register(mine)
    overview = tool_list(workspace)
    lines = repr(overview).splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if line and not line.startswith((" ", "%"))]
    assert headings[:7] == ["files", "search", "run", "web", "agent", "notebook", "your own"]
    assert "  invalid" not in repr(overview) and "<td>invalid" not in overview._repr_html_()
    below = lines[lines.index("web") : lines.index("agent")]
    assert [line.split()[0] for line in below[1:-1]] == ["webfetch", "websearch"]
    assert "your own" in Closed(overview._repr_html_()).text


def test_tables_align_cut_and_escape() -> None:
    table = Table([{"a": "x" * 300, "b": None}, {"a": ["p", "q"], "b": "two\nlines"}], title="T", notes=["end"])
    lines = repr(table).splitlines()
    assert lines[0] == "T"
    assert lines[-1] == "end"
    assert lines[1].index("b") == lines[3].index("two lines")
    assert len(lines[2]) < 70
    assert table.records[0]["a"] == "x" * 300
    assert Closed(Table([{"<i>": "<b>&"}])._repr_html_()).text == "<i><b>&"
    assert repr(Table([], ("a",), empty="none")) == "none"
    assert list(table.df.columns) == ["a", "b"]
    assert list(Table([], ("a",)).df.columns) == ["a"]
    assert len(table) == 2
    assert table[1]["a"] == ["p", "q"]


PATHS = ["read", "edit", "multiedit", "write", "list", "lsp", "notebook_read", "notebook_edit", "glob", "grep"]


@pytest.mark.parametrize("name", PATHS)
def test_a_persons_help_asks_for_no_absolute_path(workspace: Workspace, name: str) -> None:
    assert "absolute" not in repr(help_of(workspace, name)).lower()
    for field in help_of(workspace, name).spec.fields:
        assert "absolute" not in field.description


def test_a_models_schema_keeps_opencodes_descriptions(workspace: Workspace) -> None:
    bound = help_of(workspace, "read").spec.bound
    assert bound.parameters["properties"]["filePath"]["description"].startswith("The absolute path to the file")
    assert bound.parameters_for_person["properties"]["filePath"]["description"] == "The file or folder to read"
