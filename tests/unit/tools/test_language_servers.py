"""Names, positions and the table of servers: the parts of the language-server client that need no server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.tools.language_servers import servers
from opencode_jupyter.tools.language_servers.documents import language_id, to_path
from opencode_jupyter.tools.language_servers.operations import rows

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)


@given(st.lists(names, min_size=1, max_size=4))
def test_a_path_survives_its_uri(parts: list[str]) -> None:
    path = Path("/", *parts)
    uri = path.as_uri()
    assert uri.isascii()
    assert not {" ", "#", "?"} & set(uri)
    assert to_path(uri) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c.py", "/a/b c.py"),
        ("file:///a/b c#d?e.py", "/a/b c#d?e.py"),
        ("file://localhost/a", "/a"),
        ("file:///a/%E6%97%A5", "/a/日"),
        ("file:///a/%FF", "/a/\udcff"),
        ("untitled:x", None),
        ("jdt://contents/x.class", None),
        ("file:///a%00b", None),
    ],
)
def test_uris_of_servers(uri: str, path: str | None) -> None:
    assert to_path(uri) == (None if path is None else Path(path))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///C:/a/b%20c.py", "C:/a/b c.py"),
        ("file:///c%3A/a", "c:/a"),
        ("file://server/share/a", "//server/share/a"),
        ("file://localhost/C:/a", "C:/a"),
    ],
)
def test_uris_of_servers_on_windows(uri: str, path: str) -> None:
    assert to_path(uri, windows=True) == Path(path)


def test_languages() -> None:
    assert [language_id(Path(n)) for n in ("a.py", "b.TSX", "Dockerfile", "x")] == [
        "python",
        "typescriptreact",
        "dockerfile",
        "plaintext",
    ]


def test_the_config_is_laid_over_the_table() -> None:
    own = {"mine": {"command": ["mine", "--stdio"], "extensions": [".mine", ".py"], "env": {"A": 1}}}
    made = servers.table({**own, "ty": {"initialization": {"a": 1}}, "gopls": {"disabled": True}, "rust": False})
    assert made.requested
    assert made.enabled
    assert [s.name for s in made.serving(Path("x.mine"))] == ["mine"]
    python = made.serving(Path("x.py"))
    assert (python[0].name, python[0].initialization, python[-1].name) == ("ty", {"a": 1}, "mine")
    assert python[-1].env == {"A": "1"}
    assert made.serving(Path("x.go")) == made.serving(Path("x.rs")) == []
    assert not made.problems


def test_switching_off_and_on() -> None:
    assert servers.table(False).serving(Path("x.py")) == []
    assert not servers.table(None).requested
    assert servers.table(True).requested


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("yes", "lsp is 'yes'"),
        ({"x": 3}, "lsp.x is 3"),
        ({"x": {"extensions": [".x"]}}, "lsp.x needs a command"),
        ({"x": {"command": ["x"]}}, "lsp.x needs extensions"),
        ({"x": {"command": "x --stdio", "extensions": [".x"]}}, "lsp.x.command is 'x --stdio'"),
        ({"ty": {"command": ["ty", 3]}}, "lsp.ty.command"),
    ],
)
def test_mistakes_in_the_config_are_told(config: Any, words: str) -> None:
    made = servers.table(config)
    assert words in made.problems[0]
    assert next(s.name for s in made.serving(Path("x.py"))) == "ty"


def test_the_root_is_the_nearest_marked_folder(tmp_path: Path) -> None:
    ty = servers.table(None).serving(Path("x.py"))[0]
    deep = tmp_path / "top" / "package" / "inner"
    deep.mkdir(parents=True)
    assert servers.root(ty, deep / "x.py", tmp_path / "top") == tmp_path / "top"
    (tmp_path / "setup.py").touch()  # above the top: not looked at
    assert servers.marked_folder(ty, deep / "x.py", tmp_path / "top") is None
    (tmp_path / "top" / "package" / "pyproject.toml").touch()
    assert servers.root(ty, deep / "x.py", tmp_path / "top") == tmp_path / "top" / "package"
    assert servers.root(ty, Path("/elsewhere/x.py"), tmp_path / "top") == tmp_path / "top"


def test_a_file_outside_belongs_to_a_project_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    top, other = tmp_path / "top", tmp_path / "other"
    for folder in (tmp_path, top, other):
        folder.mkdir(exist_ok=True)
        (folder / "setup.py").touch()
    ty = servers.table(None).serving(Path("x.py"))[0]
    assert servers.root(ty, other / "src" / "x.py", top) == other
    (other / "setup.py").unlink()
    assert servers.root(ty, other / "src" / "x.py", top) == top, "the home folder is no project"


@pytest.mark.parametrize(
    "answer",
    [
        {"uri": 7, "range": "no"},
        {"uri": "untitled:1", "range": {"start": {"line": "a", "character": None}}},
        {"targetUri": None, "targetSelectionRange": {"start": 5}},
        {"name": None, "kind": "x", "children": [5, {"name": []}], "location": 5, "selectionRange": []},
        {"from": 5, "to": {"name": "f", "uri": "file:///a"}, "fromRanges": 3},
        {},
    ],
)
def test_any_answer_makes_rows(answer: Any) -> None:
    for operation in ("goToDefinition", "documentSymbol", "hover"):
        for row in rows([answer, None, 5, "x"], operation, Path("/a.py"), 1, 1):
            assert row["line"] == row["character"] == 1


def test_a_projects_own_environment_is_what_its_servers_see(tmp_path: Path) -> None:
    ty = servers.table(None).serving(Path("x.py"))[0]
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    assert servers.environment(ty, tmp_path).get("VIRTUAL_ENV") != str(folder)
    (folder / "pyvenv.cfg").touch()
    assert servers.environment(ty, tmp_path)["VIRTUAL_ENV"] == str(folder)
    assert servers.settings(ty, tmp_path)["python"] == {"pythonPath": str(folder / "bin" / "python")}
