"""Mistakes in config files that are worked around, and agents in files of their own."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.config.frontmatter import split
from opencode_jupyter.core.errors import ConfigError
from opencode_jupyter.core.permission import Rule
from tests.support.config_layout import ConfigLayout

# ---- mistakes that are worked around


def test_mistakes_are_said_with_their_line_and_the_rest_is_used(layout: ConfigLayout) -> None:
    path = layout.write(
        layout.here / "opencode.jsonc",
        """{
  "permision": {"bash": "deny"},
  "permission": {
    "bash": {"git *": "alow", "ls": "allow"},
    "edit": true
  },
  "snapshot": "yes",
  "experimental": {"batch_tool": 1, "mcp_timeout": 5},
  "agent": {
    "a": {"steps": "5", "mode": "primry", "temperature": 0.5},
    "b": 7
  },
  "tools": {"read": "no"},
  "model": "a/b"
}""",
    )
    config = layout.load()
    assert sorted((w.line or 0, w.key) for w in config.warnings) == [
        (2, "permision"),
        (4, "permission.bash.git *"),
        (5, "permission.edit"),
        (7, "snapshot"),
        (8, "experimental.batch_tool"),
        (10, "agent.a.mode"),
        (10, "agent.a.steps"),
        (11, "agent.b"),
        (13, "tools.read"),
    ]
    assert all(w.path == str(path) and str(w).startswith(f"{path}:{w.line}: ") for w in config.warnings)
    text = "\n".join(map(str, config.warnings))
    assert "did you mean permission?" in text and "did you mean allow?" in text and "did you mean primary?" in text
    assert config.data["model"] == "a/b" and "snapshot" not in config.data
    assert config.data["experimental"] == {"mcp_timeout": 5}
    assert config.data["agent"] == {"a": {"temperature": 0.5}}


def test_a_permission_that_is_not_understood_asks(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / "opencode.json",
        {"permission": {"*": "allow", "bash": "dney", "edit": {"*": 0}, "read": ["deny"]}},
    )
    assert [r.action for r in layout.load().permission_rules] == ["allow", "ask", "ask", "ask"]
    for value in (5, None, ["deny"], "everything", False):
        layout.write(layout.here / "opencode.json", {"permission": value})
        config = layout.load()
        assert config.permission_rules == [Rule("*", "*", "ask")] and len(config.warnings) == 1


def test_a_mistake_in_toml_has_its_key(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / ".opencode" / "config.toml",
        'modell = "x"\n\n[permission]\nedit = "ask"\n[permission.bash]\n"rm *" = "no"\n',
    )
    assert [w.key for w in layout.load().warnings] == ["modell", "permission.bash.rm *"]


# ---- agents in files


def test_modes_become_primary_agents(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / "opencode.json",
        {"mode": {"m": {"prompt": "p", "permission": {"bash": "ask"}}}, "agent": {"m": {"steps": 3}}},
    )
    config = layout.load()
    assert config.data["agent"] == {"m": {"steps": 3, "prompt": "p", "permission": {"bash": "ask"}, "mode": "primary"}}
    assert "mode" not in config.data
    assert config.rules("agent", "m", "permission")[0].origin == os.path.join("a", "b", "opencode.json")


def test_agents_written_as_markdown(layout: ConfigLayout) -> None:
    folder = layout.here / ".opencode"
    layout.write(
        folder / "agent" / "nested" / "child.md",
        "---\ndescription: Looks: at things\npermission:\n  bash:\n    'git *': allow\n---\n\nYou look.\n",
    )
    layout.write(folder / "agents" / "plain.md", "No fields at all.")
    layout.write(folder / "modes" / "m.md", "---\nmode: subagent\n---\nMode.")
    agents = layout.load().data["agent"]
    assert agents == {
        "nested/child": {
            "description": "Looks: at things",
            "permission": {"bash": {"git *": "allow"}},
            "prompt": "You look.",
        },
        "plain": {"prompt": "No fields at all."},
        "m": {"mode": "primary", "prompt": "Mode."},
    }
    folder = layout.home / ".config" / "opencode"
    layout.write(folder / "agent" / "bad.md", "---\ndescription: x\nwhat is this\n---\n")
    with pytest.raises(ConfigError, match="not YAML") as caught:
        layout.load()
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("a: 1\nb: 2.5\nc: true\nd: null\ne:\nf: ~", {"a": 1, "b": 2.5, "c": True, "d": None, "e": None, "f": None}),
        ("a: \"x: \\\"y\\\" # no\" # yes\nb: 'it''s'", {"a": 'x: "y" # no', "b": "it's"}),
        ("a: one: two: three", {"a": "one: two: three"}),
        ("a: https://x.y/z#frag # note", {"a": "https://x.y/z#frag"}),
        ("a: |\n  one\n    two\n\n  three\nb: 1", {"a": "one\n  two\n\nthree\n", "b": 1}),
        ("a: >-\n  one\n  two\n\n  three", {"a": "one two\nthree"}),
        ("a: [x, 'y, z', 3]\nb: {c: d, \"e f\": false}", {"a": ["x", "y, z", 3], "b": {"c": "d", "e f": False}}),
        ("a:\n  - x\n  - 2\nb:\n- y", {"a": ["x", 2], "b": ["y"]}),
        ("# comment\n\na:\n  b:\n    c: 1\n  d: 2\ne: 3", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
        (
            'permission:\n  "*": deny\n  bash:\n    git *: allow',
            {"permission": {"*": "deny", "bash": {"git *": "allow"}}},
        ),
        ("a: one\n  two\n\n  three\nb: 'it\n  is'", {"a": "one two\nthree", "b": "it is"}),
        ("a: yes\non: 2025-01-01\n1: 1:30\nb: 1e3", {"a": "yes", "on": "2025-01-01", "1": "1:30", "b": 1000.0}),
        ("", {}),
    ],
)
def test_front_matter(fields: str, expected: dict[str, Any]) -> None:
    assert split(f"---\n{fields}\n---\nbody") == (expected, "body")
    assert split(f"---\n{fields}\n---\nbody".replace("\n", "\r\n"))[0] == expected


@pytest.mark.parametrize(
    "fields",
    ["a: &x [1]\nb: *x", "? [a]\n: b", "- a", "a: !!bool x", "a: !!int {}", f"a: {'9' * 5000}", "[" * 5000],
)
def test_front_matter_that_is_refused(fields: str) -> None:
    with pytest.raises(ConfigError, match="front matter"):
        split(f"---\n{fields}\n---\n")


@given(st.text("ab:- #\n\"'[]{},|>\t1!&*?%@`", max_size=60))
def test_front_matter_is_read_or_refused(text: str) -> None:
    fields: object = {}
    line: object = 1
    try:
        fields, _ = split(f"---\n{text}\n---\n")
    except ConfigError as e:
        line = e.line
    assert isinstance(fields, dict)
    assert isinstance(line, int)


def test_a_server_may_be_spread_over_files_but_must_be_whole(layout: ConfigLayout) -> None:
    layout.write(
        layout.tree / "opencode.json", {"mcp": {"x": {"type": "local", "command": ["x"]}, "gone": {"enabled": False}}}
    )
    path = layout.write(
        layout.here / "opencode.json",
        '{"mcp": {\n "x": {"timeout": 5},\n "y": {"type": "remote"},\n "z": {"type": "local", "url": "https://z"}\n}}',
    )
    config = layout.load()
    assert config.data["mcp"]["x"] == {"type": "local", "command": ["x"], "timeout": 5}
    assert [(w.line, w.key) for w in config.warnings] == [(3, "mcp.y"), (4, "mcp.z")]
    assert all(w.path == str(path) for w in config.warnings)
    assert "has no url" in str(config.warnings[0]) and "has no command" in str(config.warnings[1])
