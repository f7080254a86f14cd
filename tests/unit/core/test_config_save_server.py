"""Saving an MCP server in a config file: it counts, and nothing else changes or is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.config.save import ConfigFiles, Scope
from opencode_jupyter.core.errors import ToolError
from tests.support.config_place import Place

ENTRY = {"type": "remote", "url": "https://example.org/mcp"}


def files(place: Place, **more: Any) -> ConfigFiles:
    return ConfigFiles(place.here, place.tree, home=place.home, env=place.env, **more)


def own(place: Place, name: str = "opencode.json") -> Path:
    return place.home / ".config" / "opencode" / name


def test_a_file_that_is_not_there_is_made(place: Place) -> None:
    path = files(place).save_server("far", ENTRY)
    assert path == place.tree / "opencode.json"
    assert path.read_text() == (
        '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "far": {\n      "type": "remote",\n'
        '      "url": "https://example.org/mcp"\n    }\n  }\n}\n'
    )
    assert place.load().get("mcp", "far") == ENTRY
    assert files(place).remove_server("far", path)
    assert not files(place).remove_server("far", path)
    assert not files(place).remove_server("far", place.tree / "none.json")
    assert place.load().get("mcp") == {}


def test_every_other_byte_stays(place: Place) -> None:
    text = '{\r\n\t"model" : "a/b",\t"numbers": [1.0, 1e3,\r\n 2],\r\n\t"mcp": {"one":{"enabled":false}}\r\n\r\n}'
    path = place.tree / "opencode.json"
    path.write_bytes(text.encode())
    files(place).save_server("far", ENTRY)
    before, _, after = text.partition('{"one":{"enabled":false}}')
    now = path.read_bytes().decode()
    assert now.startswith(before)
    assert now.endswith(after)
    assert json.loads(now)["mcp"] == {"one": {"enabled": False}, "far": ENTRY}


def test_another_of_the_same_name_is_replaced(place: Place) -> None:
    local = {"type": "local", "command": ["x"], "environment": {"A": "b"}}
    files(place).save_server("far", local)
    files(place).save_server("other", local)
    path = files(place).save_server("far", ENTRY)
    assert json.loads(path.read_text())["mcp"] == {"far": ENTRY, "other": local}


@pytest.mark.parametrize("name", ["opencode.jsonc", ".opencode/opencode.jsonc", ".opencode/config.toml"])
def test_where_the_project_has_another_form_it_goes_into_the_later_file(place: Place, name: str) -> None:
    content = 'model = "a/b"\n' if name.endswith("toml") else '{ /* mine */ "model": "a/b", }'
    path = place.write(place.tree / name, content)
    assert files(place).save_server("far", ENTRY) == place.tree / ".opencode/opencode.json"
    assert path.read_text() == content
    assert place.load().get("mcp", "far") == ENTRY


def test_files_with_comments_are_left(place: Place) -> None:
    path = place.write(place.tree / "opencode.json", '{ // mine\n "mcp": {"far": {"enabled": false}} }')
    later = place.write(place.tree / ".opencode/opencode.json", "{} // mine")
    with pytest.raises(ToolError, match=r'add "far": \{"type": "remote".* to its "mcp" yourself'):
        files(place).save_server("far", ENTRY)
    with pytest.raises(ToolError, match="remove far there yourself"):
        files(place).remove_server("far", path)
    assert "mine" in path.read_text()
    assert later.read_text() == "{} // mine"


def test_the_users_own_file(place: Place) -> None:
    path = files(place).save_server("far", ENTRY, "user")
    assert path == own(place)
    assert place.load().get("mcp", "far") == ENTRY
    place.write(own(place, "opencode.jsonc"), {"model": "a/b"})  # read later, and plain JSON
    assert files(place).save_server("near", ENTRY, "user") == own(place, "opencode.jsonc")
    place.write(own(place, "opencode.jsonc"), "{ // mine\n}")
    assert files(place).save_server("third", ENTRY, "user") == own(place)
    assert files(place).remove_server("far", own(place))
    assert list(json.loads(own(place).read_text())["mcp"]) == ["third"]


def test_what_another_file_overrules_is_not_written(place: Place) -> None:
    place.write(place.here / "opencode.json", {"mcp": {"far": {"type": "local", "command": ["x"]}}})
    whose: Scope
    for whose in ("project", "user"):
        with pytest.raises(ToolError, match=r"its type would have no effect, because a/b/opencode.json overrides it"):
            files(place).save_server("far", ENTRY, whose)
    assert not (place.tree / "opencode.json").exists()
    assert not own(place).exists()
    with pytest.raises(ToolError, match="overrides it"):
        files(place, overrides={"mcp": {"near": {"url": "https://other"}}}).save_server("near", ENTRY)


def test_references_stay_references(place: Place) -> None:
    place.env["TOKEN"] = "sesame"
    entry = {**ENTRY, "headers": {"Authorization": "Bearer {env:TOKEN}"}}
    path = files(place).save_server("far", entry)
    assert "sesame" not in path.read_text()
    assert place.load().get("mcp", "far", "headers") == {"Authorization": "Bearer sesame"}


def test_a_project_whose_config_is_not_read(place: Place) -> None:
    place.env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    with pytest.raises(ToolError, match="OPENCODE_DISABLE_PROJECT_CONFIG"):
        files(place).save_server("far", ENTRY)
    assert files(place).save_server("far", ENTRY, "user") == own(place)


@pytest.mark.parametrize("content", ['{"mcp": []}', "[1]"])
def test_what_makes_no_sense_is_not_touched(place: Place, content: str) -> None:
    path = place.write(place.tree / "opencode.json", content)
    with pytest.raises(ToolError):
        files(place).save_server("far", ENTRY)
    assert path.read_text() == content


def test_a_link_out_of_the_project_is_not_followed(place: Place, tmp_path: Path) -> None:
    outside = place.write(tmp_path / "outside.json", {"mcp": {"far": ENTRY}})
    (place.tree / "opencode.json").symlink_to(outside)
    with pytest.raises(ToolError, match="outside the project"):
        files(place).save_server("near", ENTRY)
    with pytest.raises(ToolError, match="outside the project"):
        files(place).remove_server("far", place.tree / "opencode.json")
    assert json.loads(outside.read_text()) == {"mcp": {"far": ENTRY}}


TEXT = st.text(st.characters(exclude_characters="{}\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
SERVER = st.fixed_dictionaries(
    {"type": st.just("local"), "command": st.lists(TEXT, min_size=1, max_size=3)},
    optional={"environment": st.dictionaries(TEXT, TEXT, max_size=2), "timeout": st.integers(1, 10**6)},
)


@settings(max_examples=25, deadline=None)
@given(first=st.dictionaries(TEXT, SERVER, max_size=3), name=TEXT, entry=SERVER)
def test_what_goes_in_comes_out(
    first: dict[str, Any], name: str, entry: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = Place(tmp_path_factory.mktemp("saved").resolve())
    path = place.write(place.tree / "opencode.json", {"mcp": first, "model": "a/b"})
    assert files(place).save_server(name, entry) == path
    assert place.load().get("mcp") == {**first, name: entry}
    assert files(place).remove_server(name, path)
    assert json.loads(path.read_text()) == {
        "mcp": {key: value for key, value in first.items() if key != name},
        "model": "a/b",
    }
