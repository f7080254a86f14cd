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
from tests.support.config_layout import ConfigLayout

ENTRY = {"type": "remote", "url": "https://example.org/mcp"}


def files(layout: ConfigLayout, **more: Any) -> ConfigFiles:
    return ConfigFiles(layout.here, layout.tree, home=layout.home, env=layout.env, **more)


def own(layout: ConfigLayout, name: str = "opencode.json") -> Path:
    return layout.home / ".config" / "opencode" / name


def test_a_file_that_is_not_there_is_made(layout: ConfigLayout) -> None:
    path = files(layout).save_server("far", ENTRY)
    assert path == layout.tree / "opencode.json"
    assert path.read_text() == (
        '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "far": {\n      "type": "remote",\n'
        '      "url": "https://example.org/mcp"\n    }\n  }\n}\n'
    )
    assert layout.load().get("mcp", "far") == ENTRY
    assert files(layout).remove_server("far", path)
    assert not files(layout).remove_server("far", path)
    assert not files(layout).remove_server("far", layout.tree / "none.json")
    assert layout.load().get("mcp") == {}


def test_every_other_byte_stays(layout: ConfigLayout) -> None:
    text = '{\r\n\t"model" : "a/b",\t"numbers": [1.0, 1e3,\r\n 2],\r\n\t"mcp": {"one":{"enabled":false}}\r\n\r\n}'
    path = layout.tree / "opencode.json"
    path.write_bytes(text.encode())
    files(layout).save_server("far", ENTRY)
    before, _, after = text.partition('{"one":{"enabled":false}}')
    content = path.read_bytes().decode()
    assert content.startswith(before)
    assert content.endswith(after)
    assert json.loads(content)["mcp"] == {"one": {"enabled": False}, "far": ENTRY}


def test_another_of_the_same_name_is_replaced(layout: ConfigLayout) -> None:
    local = {"type": "local", "command": ["x"], "environment": {"A": "b"}}
    files(layout).save_server("far", local)
    files(layout).save_server("other", local)
    path = files(layout).save_server("far", ENTRY)
    assert json.loads(path.read_text())["mcp"] == {"far": ENTRY, "other": local}


@pytest.mark.parametrize("name", ["opencode.jsonc", ".opencode/opencode.jsonc", ".opencode/config.toml"])
def test_where_the_project_has_another_form_it_goes_into_the_later_file(layout: ConfigLayout, name: str) -> None:
    content = 'model = "a/b"\n' if name.endswith("toml") else '{ /* mine */ "model": "a/b", }'
    path = layout.write(layout.tree / name, content)
    assert files(layout).save_server("far", ENTRY) == layout.tree / ".opencode/opencode.json"
    assert path.read_text() == content
    assert layout.load().get("mcp", "far") == ENTRY


def test_files_with_comments_are_left(layout: ConfigLayout) -> None:
    path = layout.write(layout.tree / "opencode.json", '{ // mine\n "mcp": {"far": {"enabled": false}} }')
    later = layout.write(layout.tree / ".opencode/opencode.json", "{} // mine")
    with pytest.raises(ToolError, match=r'add "far": \{"type": "remote".* to its "mcp" yourself'):
        files(layout).save_server("far", ENTRY)
    with pytest.raises(ToolError, match="remove far there yourself"):
        files(layout).remove_server("far", path)
    assert "mine" in path.read_text()
    assert later.read_text() == "{} // mine"


def test_the_users_own_file(layout: ConfigLayout) -> None:
    path = files(layout).save_server("far", ENTRY, "user")
    assert path == own(layout)
    assert layout.load().get("mcp", "far") == ENTRY
    layout.write(own(layout, "opencode.jsonc"), {"model": "a/b"})  # read later, and plain JSON
    assert files(layout).save_server("near", ENTRY, "user") == own(layout, "opencode.jsonc")
    layout.write(own(layout, "opencode.jsonc"), "{ // mine\n}")
    assert files(layout).save_server("third", ENTRY, "user") == own(layout)
    assert files(layout).remove_server("far", own(layout))
    assert list(json.loads(own(layout).read_text())["mcp"]) == ["third"]


def test_what_another_file_overrules_is_not_written(layout: ConfigLayout) -> None:
    layout.write(layout.here / "opencode.json", {"mcp": {"far": {"type": "local", "command": ["x"]}}})
    whose: Scope
    for whose in ("project", "user"):
        with pytest.raises(ToolError, match=r"its type would have no effect, because a/b/opencode.json overrides it"):
            files(layout).save_server("far", ENTRY, whose)
    assert not (layout.tree / "opencode.json").exists()
    assert not own(layout).exists()
    with pytest.raises(ToolError, match="overrides it"):
        files(layout, overrides={"mcp": {"near": {"url": "https://other"}}}).save_server("near", ENTRY)


def test_references_stay_references(layout: ConfigLayout) -> None:
    layout.env["TOKEN"] = "sesame"
    entry = {**ENTRY, "headers": {"Authorization": "Bearer {env:TOKEN}"}}
    path = files(layout).save_server("far", entry)
    assert "sesame" not in path.read_text()
    assert layout.load().get("mcp", "far", "headers") == {"Authorization": "Bearer sesame"}


def test_a_project_whose_config_is_not_read(layout: ConfigLayout) -> None:
    layout.env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    with pytest.raises(ToolError, match="OPENCODE_DISABLE_PROJECT_CONFIG"):
        files(layout).save_server("far", ENTRY)
    assert files(layout).save_server("far", ENTRY, "user") == own(layout)


@pytest.mark.parametrize("content", ['{"mcp": []}', "[1]"])
def test_what_makes_no_sense_is_not_touched(layout: ConfigLayout, content: str) -> None:
    path = layout.write(layout.tree / "opencode.json", content)
    with pytest.raises(ToolError):
        files(layout).save_server("far", ENTRY)
    assert path.read_text() == content


def test_a_link_out_of_the_project_is_not_followed(layout: ConfigLayout, tmp_path: Path) -> None:
    outside = layout.write(tmp_path / "outside.json", {"mcp": {"far": ENTRY}})
    (layout.tree / "opencode.json").symlink_to(outside)
    with pytest.raises(ToolError, match="outside the project"):
        files(layout).save_server("near", ENTRY)
    with pytest.raises(ToolError, match="outside the project"):
        files(layout).remove_server("far", layout.tree / "opencode.json")
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
    layout = ConfigLayout(tmp_path_factory.mktemp("saved").resolve())
    path = layout.write(layout.tree / "opencode.json", {"mcp": first, "model": "a/b"})
    assert files(layout).save_server(name, entry) == path
    assert layout.load().get("mcp") == {**first, name: entry}
    assert files(layout).remove_server(name, path)
    assert json.loads(path.read_text()) == {
        "mcp": {key: value for key, value in first.items() if key != name},
        "model": "a/b",
    }
