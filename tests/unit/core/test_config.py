from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.config import deep_merge, load_config, merge_config
from opencode_jupyter.core.errors import ConfigError
from opencode_jupyter.core.flags import flag
from opencode_jupyter.core.permission import Rule
from tests.support.config_layout import ConfigLayout

# ---- merging


def test_deep_merge_keeps_places_and_appends() -> None:
    base = {"permission": {"bash": {"*": "ask", "x": "deny"}, "edit": "ask"}, "l": [1, 2]}
    over = {"new": 1, "permission": {"edit": "deny", "bash": {"y": "allow", "*": "deny"}}, "l": [3]}
    merged = deep_merge(base, over)
    assert json.dumps(merged) == json.dumps(
        {"permission": {"bash": {"*": "deny", "x": "deny", "y": "allow"}, "edit": "deny"}, "l": [3], "new": 1}
    )
    assert base["l"] == [1, 2]


def test_a_text_replaces_an_object_and_the_reverse() -> None:
    assert deep_merge({"a": {"x": 1}}, {"a": "s"}) == {"a": "s"}
    assert deep_merge({"a": "s"}, {"a": {"x": 1}}) == {"a": {"x": 1}}


def test_two_lists_grow() -> None:
    base, over = {"plugin": ["a", "b"], "instructions": ["x"], "other": [1]}, {"plugin": ["b", "c"], "other": [2]}
    assert merge_config(base, over) == {"plugin": ["a", "b", "c"], "instructions": ["x"], "other": [2]}


TREES = st.recursive(
    st.sampled_from(["allow", 1, None]), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
)
DICTS = st.dictionaries(st.sampled_from("abcd"), TREES, max_size=4)


@given(DICTS, DICTS, DICTS)
def test_merging_properties(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    assert deep_merge(a, {}) == a and deep_merge({}, a) == a and deep_merge(a, a) == a
    assert list(deep_merge(a, b)) == list(dict.fromkeys([*a, *b]))
    assert list(deep_merge(deep_merge(a, b), c)) == list(dict.fromkeys([*a, *b, *c]))


# ---- flags


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("true", True),
        ("TRUE", True),
        ("True", True),
        ("1", True),
        ("0", False),
        ("yes", False),
        ("", False),
        ("2", False),
        (" true", False),
    ],
)
def test_flag(value: str, on: bool) -> None:
    assert flag("X", {"X": value}) is on


def test_flag_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not flag("X", {})
    monkeypatch.setenv("OPENCODE_SOME_FLAG", "1")
    assert flag("OPENCODE_SOME_FLAG")


# ---- order of sources


def test_nothing_there(layout: ConfigLayout) -> None:
    config = layout.load()
    assert (config.data, config.sources, config.permission_rules, config.warnings) == ({}, [], [], [])
    assert config.directories == [layout.home / ".config" / "opencode"]


def test_each_source_overrides_those_before_it(layout: ConfigLayout) -> None:
    """Every source sets `username` to its own number; the sources are added weakest first."""
    own, managed = layout.home / "own", Path(layout.env["OPENCODE_TEST_MANAGED_CONFIG_DIR"])
    glob = layout.home / ".config" / "opencode"
    files = [
        glob / "config.json",
        glob / "opencode.json",
        glob / "opencode.jsonc",
        glob / "config.toml",
        layout.home / "named.json",
        layout.tree / "opencode.jsonc",
        layout.here.parent / "opencode.jsonc",
        layout.here / "opencode.jsonc",
        layout.tree / "opencode.json",
        layout.here.parent / "opencode.json",
        layout.here / "opencode.json",
        # .opencode folders: the nearest first, so the farther one wins here
        layout.here / ".opencode" / "opencode.jsonc",
        layout.here / ".opencode" / "opencode.json",
        layout.here / ".opencode" / "config.toml",
        layout.tree / ".opencode" / "opencode.jsonc",
        layout.tree / ".opencode" / "opencode.json",
        layout.tree / ".opencode" / "config.toml",
        layout.home / ".opencode" / "opencode.json",
        own / "opencode.json",
    ]
    layout.env |= {"OPENCODE_CONFIG": str(layout.home / "named.json"), "OPENCODE_CONFIG_DIR": str(own)}
    for i, path in enumerate(files):
        layout.write(path, f'username = "{i}"' if path.suffix == ".toml" else {"username": str(i)})
        config = layout.load()
        assert config.data["username"] == str(i), path
        assert [s[0] for s in config.sources] == [str(f) for f in files[: i + 1]]
    layout.env["OPENCODE_CONFIG_CONTENT"] = '{"username": "content"}'
    assert layout.load().data["username"] == "content"
    assert layout.load(overrides={"username": "code"}).data["username"] == "code"
    layout.write(managed / "opencode.json", {"username": "admin"})
    assert layout.load(overrides={"username": "code"}).data["username"] == "admin"


def test_directories_in_order_without_repeats(layout: ConfigLayout) -> None:
    for folder in (layout.here, layout.tree, layout.home):
        (folder / ".opencode").mkdir()
    layout.env["OPENCODE_CONFIG_DIR"] = str(layout.tree / ".opencode")
    assert layout.load().directories == [
        layout.home / ".config" / "opencode",
        layout.here / ".opencode",
        layout.tree / ".opencode",
        layout.home / ".opencode",
    ]
    layout.env["OPENCODE_CONFIG_DIR"] = str(layout.home / "own")
    assert layout.load().directories[-1] == layout.home / "own"


def test_files_above_the_worktree_do_not_count(layout: ConfigLayout) -> None:
    layout.write(layout.tree.parent / "opencode.json", {"username": "above"})
    layout.write(layout.tree.parent / ".opencode" / "opencode.json", {"username": "above"})
    assert layout.load().data == {}
    assert load_config(layout.here, "/", home=layout.home, env=layout.env).data == {"username": "above"}


def test_a_folder_outside_the_worktree_has_its_own_files_only(layout: ConfigLayout) -> None:
    outside = layout.home / "other"
    layout.write(outside / "opencode.json", {"username": "other"})
    layout.write(layout.home / "opencode.json", {"model": "a/b"})
    assert load_config(outside, layout.tree, home=layout.home / "none", env=layout.env).data == {"username": "other"}


def test_config_given_in_code_may_be_wrong_too(layout: ConfigLayout) -> None:
    with pytest.raises(ConfigError, match="the workspace's config: must be a dict, not list"):
        layout.load(overrides=[1])
    config = layout.load(overrides={1: 2, "agent": {3: 4}, "permission": {5: "no"}, "model": "a/b"})
    assert len(config.warnings) == 3
    assert config.data["model"] == "a/b"
    assert [w.path for w in config.warnings] == ["the workspace's config"] * 3


def test_project_config_can_be_switched_off(layout: ConfigLayout) -> None:
    layout.write(layout.here / "opencode.json", {"username": "project"})
    layout.write(layout.here / ".opencode" / "opencode.json", {"username": "folder"})
    layout.write(layout.home / ".opencode" / "opencode.json", {"model": "a/b"})
    layout.env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    config = layout.load()
    assert config.data == {"model": "a/b"}
    assert config.directories == [layout.home / ".config" / "opencode", layout.home / ".opencode"]


def test_where_home_and_the_global_folder_are(layout: ConfigLayout) -> None:
    layout.write(layout.home / ".config" / "opencode" / "opencode.json", {"username": "home"})
    layout.write(layout.home / "xdg" / "opencode" / "opencode.json", {"username": "xdg"})
    env = layout.env | {"OPENCODE_TEST_HOME": str(layout.home)}
    assert load_config(layout.here, layout.tree, env=env).data["username"] == "home"
    env["XDG_CONFIG_HOME"] = str(layout.home / "xdg")
    assert load_config(layout.here, layout.tree, env=env).data["username"] == "xdg"


def test_a_named_file_that_is_not_there_is_said(layout: ConfigLayout) -> None:
    layout.env["OPENCODE_CONFIG"] = "~/nowhere.json"
    [warning] = layout.load().warnings
    assert "nowhere.json, which does not exist" in str(warning) and "~" not in str(warning)


def test_no_file_is_written(layout: ConfigLayout) -> None:
    path = layout.write(layout.here / "opencode.json", '{"username": "x"}')
    before = sorted(p for p in layout.tree.parent.rglob("*"))
    layout.load()
    assert path.read_text() == '{"username": "x"}'
    assert sorted(p for p in layout.tree.parent.rglob("*")) == before


# ---- formats


def test_comments_trailing_commas_and_a_mark_at_the_start(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / "opencode.jsonc", '\ufeff{\n // why\n "username": "a//b", /* and */ "plugin": ["x",],\n}\n'
    )
    assert layout.load().data == {"username": "a//b", "plugin": ["x"]}


@pytest.mark.parametrize("content", ["", "  \n\n", "{}", "\ufeff"])
def test_an_empty_file_is_no_config(layout: ConfigLayout, content: str) -> None:
    layout.write(layout.here / "opencode.json", content)
    assert layout.load().data == {}


def test_toml(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / ".opencode" / "config.toml",
        'model = "a/b"\n[permission]\nedit = "ask"\n[permission.bash]\n"*" = "ask"\n"git *" = "allow"\n',
    )
    config = layout.load()
    assert config.permission_rules == [
        Rule("edit", "*", "ask"),
        Rule("bash", "*", "ask"),
        Rule("bash", "git *", "allow"),
    ]
    assert config.permission_rules[0].origin == os.path.join("a", "b", ".opencode", "config.toml")


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("opencode.json", '{\n  "a": 1,\n  "b": }\n', 3, "Expecting value"),
        ("opencode.json", '{"a": 1', 1, "Expecting ',' delimiter"),
        ("opencode.json", "[1]", 1, "must be an object"),
        ("opencode.json", '"allow"', 1, "must be an object"),
        (".opencode/config.toml", "a = 1\nb = = 2\n", 2, "Invalid value"),
        (".opencode/config.toml", 'a = "x', 1, "TOML|Unterminated|Illegal"),
        ("opencode.json", "[" * 100_000, None, "nested too deeply"),
        ("opencode.json", '{"a": "{file:gone.txt}"}', 1, "bad file reference.*gone.txt does not exist"),
        ("opencode.json", '{\n"a": "{file:.}"}', 2, "bad file reference.*can't be read"),
    ],
)
def test_a_file_that_does_not_parse(
    layout: ConfigLayout, name: str, content: str, line: int | None, message: str
) -> None:
    path = layout.write(layout.here / name, content)
    with pytest.raises(ConfigError, match=message) as caught:
        layout.load()
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 600


def test_the_caret_stands_under_the_fault(layout: ConfigLayout) -> None:
    layout.write(layout.here / "opencode.json", '{\n  "b": }\n')
    with pytest.raises(ConfigError) as caught:
        layout.load()
    _, source, caret = str(caught.value).split("\n")
    assert source[caret.index("^")] == "}"


def test_files_that_can_not_be_read(layout: ConfigLayout) -> None:
    (layout.here / "opencode.json").write_bytes(b'{"username": "\xff"}')
    with pytest.raises(ConfigError, match="not UTF-8"):
        layout.load()
    (layout.here / "opencode.json").unlink()
    (layout.here / "opencode.json").mkdir()
    with pytest.raises(ConfigError, match="can't be read"):
        layout.load()


def test_env_and_file_are_filled_in(layout: ConfigLayout) -> None:
    layout.env |= {"WHO": "me"}
    layout.write(layout.here / "prompt.txt", '  Say "hi"\nand\\or é  \n')
    layout.write(layout.home / "h.txt", "from home")
    layout.write(
        layout.here / "opencode.jsonc",
        '{\n// {file:not-there.txt}\n"username": "{env:WHO}{env:NOBODY}!",'
        '"agent": {"a": {"prompt": "{file:prompt.txt}",'
        f'"description": "{{file:~/h.txt}}", "color": "{{file:{layout.home}/h.txt}}"}}}}}}',
    )
    data = layout.load().data
    assert data["username"] == "me!"
    assert data["agent"]["a"]["prompt"] == 'Say "hi"\nand\\or é'
    assert data["agent"]["a"]["description"] == data["agent"]["a"]["color"] == "from home"


# ---- permissions


def test_one_action_means_everything(layout: ConfigLayout) -> None:
    layout.write(layout.tree / "opencode.json", {"permission": "allow"})
    layout.write(layout.here / "opencode.json", {"permission": {"bash": "ask"}})
    config = layout.load()
    assert config.data["permission"] == {"*": "allow", "bash": "ask"}
    assert [(r.permission, r.action, r.origin) for r in config.permission_rules] == [
        ("*", "allow", "opencode.json"),
        ("bash", "ask", os.path.join("a", "b", "opencode.json")),
    ]


def test_each_rule_names_the_last_file_that_set_it(layout: ConfigLayout) -> None:
    layout.write(
        layout.home / ".config" / "opencode" / "opencode.json",
        {"permission": {"bash": {"*": "ask", "rm *": "deny"}, "edit": {"*": "deny"}, "read": "ask", "x": "ask"}},
    )
    layout.write(
        layout.tree / "opencode.json", {"permission": {"bash": {"*": "allow"}, "edit": "ask", "read": {"*.md": "deny"}}}
    )
    config = layout.load(overrides={"permission": {"x": "deny"}})
    user = os.path.join("~", ".config", "opencode", "opencode.json")
    assert [(r.permission, r.pattern, r.action, r.origin) for r in config.permission_rules] == [
        ("bash", "*", "allow", "opencode.json"),
        ("bash", "rm *", "deny", user),
        ("edit", "*", "ask", "opencode.json"),
        ("read", "*.md", "deny", "opencode.json"),
        ("x", "*", "deny", "the workspace's config"),
    ]


def test_home_in_patterns(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / "opencode.json", {"permission": {"external_directory": {"~/data/*": "allow", "$HOME": "deny"}}}
    )
    assert [r.pattern for r in layout.load().permission_rules] == [f"{layout.home}/data/*", str(layout.home)]


def test_permission_from_the_environment_is_merged_over(layout: ConfigLayout) -> None:
    layout.write(layout.here / "opencode.json", {"permission": {"bash": {"a": "ask"}, "edit": "ask"}})
    layout.env["OPENCODE_PERMISSION"] = '{"bash": {"b": "deny"}, "edit": "deny"}'
    config = layout.load()
    assert config.data["permission"] == {"bash": {"a": "ask", "b": "deny"}, "edit": "deny"}
    assert config.permission_rules[-1].origin == "OPENCODE_PERMISSION"
    layout.env["OPENCODE_PERMISSION"] = "{bad"
    with pytest.raises(ConfigError, match="OPENCODE_PERMISSION"):
        layout.load()
    layout.env["OPENCODE_PERMISSION"] = '"deny"'
    assert layout.load().permission_rules[-1] == Rule("*", "*", "deny")


def test_legacy_tools_come_before_explicit_permissions(layout: ConfigLayout) -> None:
    layout.write(layout.tree / "opencode.json", {"tools": {"write": False, "bash": False, "mcp_x": True}})
    layout.write(layout.here / "opencode.json", {"permission": {"bash": {"ls": "allow"}, "edit": "ask", "read": "ask"}})
    config = layout.load()
    assert json.dumps(config.data["permission"]) == json.dumps(
        {"edit": "ask", "bash": {"ls": "allow"}, "mcp_x": "allow", "read": "ask"}
    )
    assert [r.origin for r in config.permission_rules] == [
        os.path.join("a", "b", "opencode.json"),
        os.path.join("a", "b", "opencode.json"),
        "opencode.json",
        os.path.join("a", "b", "opencode.json"),
    ]


@pytest.mark.parametrize("tool", ["write", "edit", "patch", "multiedit", "apply_patch"])
def test_every_editing_tool_is_edit(layout: ConfigLayout, tool: str) -> None:
    layout.write(layout.here / "opencode.json", {"tools": {tool: False}})
    assert layout.load().permission_rules == [Rule("edit", "*", "deny")]
