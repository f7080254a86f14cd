"""The models of a config file: what they refuse, what is said of it, and the JSON schema made from them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.config import Config
from opencode_jupyter.core.config.json_schema import SHIPPED, json_schema, main, text
from opencode_jupyter.core.config.models import ConfigFile
from opencode_jupyter.core.config.validation import known_keys, normalise
from opencode_jupyter.core.errors import ConfigError

SCHEMA = jsonschema.Draft202012Validator(json_schema())


def checked(data: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    problems: list[tuple[str, str]] = []
    out = normalise(data, lambda keys, message: problems.append((".".join(keys), message)))
    return out, problems


WHOLE: dict[str, Any] = {
    "$schema": "https://opencode.ai/config.json",
    "permission": {"*": "ask", "bash": {"git *": "allow"}, "read": "allow", "my_tool": {"x": "deny"}},
    "agent": {
        "look": {
            "description": "d",
            "mode": "subagent",
            "model": "a/b",
            "temperature": 0,
            "top_p": 0.5,
            "steps": 3,
            "color": "#ff0000",
            "permission": "deny",
            "tools": {"write": False},
            "hidden": True,
            "reasoningEffort": "high",
        }
    },
    "default_agent": "look",
    "mcp": {
        "l": {"type": "local", "command": ["a", "b"], "environment": {"A": "1"}, "timeout": 5000},
        "r": {"type": "remote", "url": "https://x.y", "headers": {"a": "b"}, "oauth": False},
        "o": {"type": "remote", "url": "https://x.y", "oauth": {"clientId": "x"}, "enabled": False},
        "s": {"enabled": False},
        "c": {"type": "stdio", "command": "npx", "args": ["y"], "env": {"A": 1, "B": True}, "disabled": True},
        "h": {"type": "http", "url": "https://x.y", "timeout": 1500.5},
    },
    "plugin": ["a"],
    "instructions": ["b.md"],
    "skills": {"paths": ["~/x"], "urls": []},
    "formatter": {"black": {"command": ["black", "$FILE"], "extensions": [".py"]}, "ruff": False},
    "lsp": {"ty": {"disabled": True}, "x": {"command": ["x"], "extensions": [".x"], "env": {}, "initialization": {}}},
    "tool_output": {"max_lines": 1, "max_bytes": 1},
    "experimental": {"batch_tool": True, "primary_tools": ["a"], "shell_env_keep": ["A_*"], "hook": {"any": 1}},
    "provider": {"p": {"options": {"apiKey": "x"}}},
    "autoupdate": "notify",
}


def test_a_right_file_is_right_everywhere() -> None:
    out, problems = checked(WHOLE)
    assert problems == []
    assert list(out) == list(WHOLE)
    assert list(SCHEMA.iter_errors(WHOLE)) == []
    ConfigFile.model_validate(WHOLE, strict=True)


@pytest.mark.parametrize(
    ("data", "key", "message"),
    [
        (
            {"mcp": {"x": {"type": "local", "command": 5}}},
            "mcp.x.command",
            "is 5; it should be a list of texts",
        ),
        ({"mcp": {"x": {"type": "local", "command": ["a", 5, 6]}}}, "mcp.x.command", "a list of texts"),
        ({"mcp": {"x": {"type": "locl"}}}, "mcp.x.type", "(did you mean local?)"),
        ({"mcp": {"x": {"type": "remote", "url": 5}}}, "mcp.x.url", "it should be a text"),
        ({"mcp": {"x": {"timeout": 0}}}, "mcp.x.timeout", "a number above 0"),
        ({"mcp": {"x": {"timeout": True}}}, "mcp.x.timeout", "is True; it should be a number"),
        ({"mcp": {"x": {"headers": {"a": ["b"]}}}}, "mcp.x.headers.a", "is ['b']; it should be a text"),
        ({"mcp": {"x": {"oauth": "no"}}}, "mcp.x.oauth", "true or false"),
        ({"mcp": {"x": {"enabled": "no"}}}, "mcp.x.enabled", "it should be true or false"),
        ({"mcp": {"x": {"enabled": False, "port": 1}}}, "mcp.x.port", "is not known; there are type, command"),
        ({"mcp": []}, "mcp", "is []; it should be an object"),
        ({"experimental": {"batch_tol": True}}, "experimental.batch_tol", "did you mean batch_tool?"),
        ({"experimental": {"batch-tool": True}}, "experimental.batch-tool", "did you mean batch_tool?"),
        ({"tool_output": {"max_lines": -1}}, "tool_output.max_lines", "a number above 0"),
        ({"tool_output": {"lines": 1}}, "tool_output.lines", "is not known"),
        ({"agent": {"a": {"promt": "x"}}}, "agent.a.promt", "did you mean prompt?"),
        ({"agent": {"a": {"temperature": "hot"}}}, "agent.a.temperature", "a number"),
        ({"agent": {"a": {"temperature": float("nan")}}}, "agent.a.temperature", "a number"),
        ({"agent": {"a": {"tools": {"bash": 1}}}}, "agent.a.tools.bash", "the tool is switched off"),
        ({"agent": {"a": {"permission": {"bash": {"*": "no"}}}}}, "agent.a.permission.bash.*", "Until then it asks"),
        ({"permission": {"bahs": "deny"}}, "permission.bahs", "did you mean bash?"),
        ({"formatter": {"x": {"command": "black"}}}, "formatter.x.command", "a list of texts"),
        ({"lsp": {"x": 5}}, "lsp.x", "it should be an object"),
        ({"plugin": "x"}, "plugin", "a list of texts"),
        ({"provider": {"p": 5}}, "provider.p", "an object"),
        ({"instructions": ["a", None]}, "instructions", "a list of texts"),
        ({"model": None}, "model", "is None; it should be a text"),
        ({"permisions": {}}, "permisions", "did you mean permission?"),
    ],
)
def test_what_is_said_of_a_mistake(data: dict[str, Any], key: str, message: str) -> None:
    _, problems = checked(data)
    assert [where for where, _ in problems] == [key]
    assert message in problems[0][1]


def test_the_rest_of_an_entry_is_kept() -> None:
    out, problems = checked(
        {"mcp": {"x": {"type": "local", "command": ["a"], "timeout": "5"}, "y": 3}, "tool_output": {"max_lines": "a"}}
    )
    assert out == {"mcp": {"x": {"type": "local", "command": ["a"]}}, "tool_output": {}}
    assert len(problems) == 3


def test_the_given_data_is_not_changed() -> None:
    data = {"permission": {"bash": "no"}, "mcp": {"x": 5}, "agent": {"a": {"steps": "x"}}}
    before = json.dumps(data)
    checked(data)
    assert json.dumps(data) == before


@pytest.mark.parametrize("name", ["lint", "tests", "taskwarrior", "readme", "edit_cell", "github_list"])
def test_tools_of_ones_own_are_no_slips(name: str) -> None:
    assert checked({"permission": {name: "deny"}})[1] == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=True) | st.sampled_from(["ask", "x", "local"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["*", "a", "bash", "permission", "tools", "type", "command", "mode", "oauth", "timeout", "steps"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FILES = st.dictionaries(
    st.sampled_from(["nonsense", *(known_keys().keys() - {"formatter", "lsp"})]), VALUES, max_size=4
)


@given(FILES)
def test_what_is_left_is_right(data: dict[str, Any]) -> None:
    out, problems = checked(data)
    again, more = checked(out)
    assert again == out
    assert len(more) <= len(problems)
    ours = {key: value for key, value in out.items() if key in known_keys()}
    errors = [e for e in SCHEMA.iter_errors(ours) if not str(e.message).startswith("nan")]
    assert all("required" in str(e.message) or e.validator == "anyOf" for e in errors), errors
    if not problems and "nonsense" not in data:
        assert not [e for e in SCHEMA.iter_errors(data) if e.validator not in ("anyOf", "required")]


@given(VALUES)
def test_a_permission_never_becomes_more_than_an_ask(value: Any) -> None:
    out, _ = checked({"permission": value})
    for permission, entry in out["permission"].items():
        for pattern, action in entry.items() if isinstance(entry, dict) else [("*", entry)]:
            assert action in ("ask", "allow", "deny")
            given_value = value
            if isinstance(value, dict):
                given_value = value[permission]
                given_value = given_value[pattern] if isinstance(given_value, dict) else given_value
            assert action in ("ask", given_value)


def test_data_without_end_is_refused() -> None:
    loop: dict[str, Any] = {"a": {}}
    loop["a"]["a"] = loop
    with pytest.raises(ConfigError, match="nested too deeply"):
        normalise(loop)
    with pytest.raises(ConfigError, match="NUL"):
        normalise({"permission": {"bash": {"a\0b": "allow"}}})
    assert checked({"skills": {"paths": ["a\0b"]}})[1] == []  # whoever opens it says that it can't be


def test_the_shipped_schema_is_the_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SHIPPED.read_text(encoding="utf-8") == text(), "run python -m opencode_jupyter.core.config.json_schema FILE"
    assert Config.json_schema() == json.loads(text())
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert main([str(tmp_path / "s.json")]) == 0 and (tmp_path / "s.json").read_text(encoding="utf-8") == text()
    assert main([]) == 0 and capsys.readouterr().out == text()
    assert main(["a", "b"]) == 2


def test_the_schema_names_every_entry() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(known_keys())
    entries = [schema, *schema["$defs"].values()]
    bare = [
        name
        for entry in entries
        for name, value in entry["properties"].items()
        if "description" not in value and name not in ("type", "command", "url")
    ]
    assert bare == []


def test_models_are_loaded_when_a_file_needs_them(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom opencode_jupyter.core.config import load_config\n"
        f"load_config({str(tmp_path)!r}, home={str(tmp_path)!r}, env={{'OPENCODE_TEST_MANAGED_CONFIG_DIR': '/none'}})\n"
        "print([m for m in sys.modules if m.startswith('opencode_jupyter.core.config.models')])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.mark.parametrize("number", [0, 1, 0.0, 1.0])
def test_a_number_is_neither_true_nor_false(number: float) -> None:
    normalised, problems = checked({"autoupdate": number})
    assert normalised == {}
    assert len(problems) == 1
    assert checked({"autoupdate": False}) == ({"autoupdate": False}, [])
