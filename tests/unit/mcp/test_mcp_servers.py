"""Which MCP servers a project has, whose they are, and what a person is shown of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.config import load_config
from opencode_jupyter.core.fingerprint import Fingerprint
from opencode_jupyter.core.ids import clean_tool_id
from opencode_jupyter.mcp.configuration import (
    ServerSpec,
    UnsetVariableError,
    configured,
    files_of_others,
    spec_of,
    substitute,
)
from opencode_jupyter.mcp.pool import schema_of, tool_prefix


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".config" / "opencode").mkdir(parents=True)
    for name in ("HOME", "OPENCODE_TEST_HOME"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CONFIG_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    return folder


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def read(directory: Path, worktree: Path, overrides: dict[str, Any] | None = None) -> dict[str, ServerSpec]:
    return configured(load_config(directory, worktree, overrides=overrides), directory, worktree)


def test_opencode_entries() -> None:
    spec = spec_of("a", {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}, "timeout": 1500})
    assert (spec.command, spec.environment, spec.timeout, spec.enabled) == (("npx", "-y", "x"), {"A": "1"}, 1.5, True)
    spec = spec_of("a", {"type": "remote", "url": "https://x.test/mcp?key=1", "headers": {"A": "Bearer secret1"}})
    assert (spec.url, spec.transport, spec.is_local) == ("https://x.test/mcp?key=1", "", False)
    assert spec.target == "https://x.test/mcp"
    assert spec_of("a", {"enabled": False}).enabled is False
    assert spec_of("a", {"enabled": False}).problem == ""


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("npx", "must be an object"),
        ({"type": "local"}, "command must be a list"),
        ({"type": "local", "command": []}, "command must be a list"),
        ({"type": "local", "command": ["x"], "environment": {"A": {}}}, "environment must be an object of texts"),
        ({"type": "remote", "url": "ftp://x"}, "must be an address"),
        ({"type": "remote"}, "must be an address"),
        ({"type": "other"}, "should be local or remote"),
        ({"enabled": True}, 'neither "command" nor "url"'),
    ],
)
def test_a_wrong_entry_says_what_is_wrong(entry: Any, message: str) -> None:
    assert message in spec_of("name", entry).problem


def test_claudes_and_vs_codes_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_NAME", "from outside")
    monkeypatch.delenv("B_NAME", raising=False)
    write(
        project / ".mcp.json",
        {
            "mcpServers": {
                "one": {"command": "${A_NAME}", "args": ["-x", "${B_NAME:-other}"], "env": {"K": "${A_NAME}"}},
                "two": {"type": "http", "url": "https://x.test/${A_NAME}"},
                "three": {"type": "sse", "url": "https://x.test/"},
                "four": {"command": "x", "env": {"K": "${B_NAME}"}},
            }
        },
    )
    write(
        project / ".vscode" / "mcp.json",
        """{
          // comments are fine here
          "servers": {
            "five": {"type": "stdio", "command": "x", "args": ["${workspaceFolder}", "${env:A_NAME}"],},
            "six": {"command": "x", "env": {"K": "${input:key}"}},
            "one": {"command": "hidden by the other file"},
          },
        }""",
    )
    specs = read(project, project)
    assert specs["one"].command == ("from outside", "-x", "other")
    assert specs["one"].environment == {"K": "from outside"}
    assert (specs["two"].url, specs["two"].transport) == ("https://x.test/from outside", "http")
    assert specs["three"].transport == "sse"
    assert "B_NAME is not set" in specs["four"].problem
    assert specs["five"].command == ("x", str(project), "from outside")
    assert "only VS Code supports" in specs["six"].problem
    assert not any(spec.own for spec in specs.values())


def test_a_file_that_is_no_json_is_told_of(project: Path) -> None:
    write(project / ".mcp.json", "{")
    [spec] = read(project, project).values()
    assert "is no JSON" in spec.problem


def test_the_nearer_file_wins_and_changes_are_seen(project: Path) -> None:
    write(project / ".mcp.json", {"mcpServers": {"a": {"command": "far"}, "b": {"command": "far"}}})
    before = Fingerprint(files_of_others(project / "sub", project))
    write(project / "sub" / ".mcp.json", {"mcpServers": {"a": {"command": "near"}}})
    specs = read(project / "sub", project)
    assert (specs["a"].command, specs["b"].command) == (("near",), ("far",))
    assert not before.matches()


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc", ".opencode/opencode.json"])
def test_what_a_file_of_the_project_starts_is_not_the_users_own(project: Path, home: Path, name: str) -> None:
    write(project / name, {"mcp": {"theirs": {"type": "local", "command": ["x"]}}})
    write(
        home / ".config" / "opencode" / "opencode.json",
        {"mcp": {"mine": {"type": "local", "command": ["y"]}, "off": {"type": "local", "command": ["z"]}}},
    )
    specs = read(project, project, {"mcp": {"given": {"type": "local", "command": ["w"]}}})
    assert {name: spec.own for name, spec in specs.items()} == {
        "mine": True,
        "off": True,
        "theirs": False,
        "given": True,
    }
    assert specs["theirs"].source == str(project / name)


def test_a_project_may_switch_a_server_but_not_change_it_unseen(project: Path, home: Path) -> None:
    mine = {"type": "local", "command": ["y"], "enabled": False}
    write(home / ".config" / "opencode" / "opencode.json", {"mcp": {"a": mine, "b": mine}})
    write(project / "opencode.json", {"mcp": {"a": {"enabled": True}, "b": {"environment": {"PATH": "/tmp/x"}}}})
    specs = read(project, project)
    assert (specs["a"].own, specs["a"].enabled) == (True, True)
    assert specs["b"].own is False


def test_a_home_that_is_a_repository_keeps_its_own_configuration_trusted(home: Path) -> None:
    (home / ".git").mkdir()
    write(home / ".config" / "opencode" / "opencode.json", {"mcp": {"mine": {"type": "local", "command": ["y"]}}})
    write(home / "opencode.json", {"mcp": {"here": {"type": "local", "command": ["y"]}}})
    specs = read(home, home)
    assert {name: spec.own for name, spec in specs.items()} == {"mine": True, "here": False}


def test_a_switch_reaches_a_server_of_another_programs_file(project: Path) -> None:
    write(project / ".mcp.json", {"mcpServers": {"a": {"command": "x", "args": ["y"]}}})
    write(project / "opencode.json", {"mcp": {"a": {"enabled": False}}})
    spec = read(project, project)["a"]
    assert (spec.enabled, spec.command, spec.own) == (False, ("x", "y"), False)


def test_trust_is_for_the_command_and_the_variables_not_for_the_secrets_values() -> None:
    def subject(command: list[str], **environment: str) -> str:
        entry = {"type": "local", "command": command, "environment": environment}
        return spec_of("a", entry, source="f", own=False).subject().digest

    base = subject(["x"], A_TOKEN="1", MODE="1")
    assert base == subject(["x"], A_TOKEN="2", MODE="1")
    assert base != subject(["x", "y"], A_TOKEN="1", MODE="1")
    assert base != subject(["x"], A_TOKEN="1", MODE="2")
    assert base != subject(["x"], A_TOKEN="1", MODE="1", LD_PRELOAD="e")
    shown = spec_of(
        "a",
        {
            "type": "local",
            "command": ["x", "sesame-open"],
            "environment": {"A_TOKEN": "sesame-open", "LD_PRELOAD": "a b"},
        },
    ).subject()
    assert shown.shown["command"] == "A_TOKEN=*** LD_PRELOAD='a b' x ***"
    assert shown.shown["environment"] == ["A_TOKEN", "LD_PRELOAD"]
    entry = {"type": "local", "command": ["x", "db://me:sesame@host/a"], "environment": {"DB": "db://me:sesame@host"}}
    assert spec_of("a", entry).subject().shown["command"] == "DB=db://me:***@host x db://me:***@host/a"


def test_a_remote_server_is_remembered_by_its_address_and_header_names() -> None:
    entry = {"type": "remote", "url": "https://x.test/", "headers": {"Authorization": "Bearer sesame"}}
    subject = spec_of("a", entry, source="f", own=False).subject()
    assert "sesame" not in repr(subject)
    assert subject.shown["content"] == "connects to https://x.test/\nsends Authorization"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(ANY)
def test_any_json_is_an_entry_or_a_problem(entry: Any) -> None:
    spec = spec_of("a", entry)
    assert spec.problem or spec.command or spec.url or not spec.enabled


@given(st.text())
def test_names_have_only_what_providers_take(name: str) -> None:
    assert len(clean_tool_id(name)) == len(name)
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in clean_tool_id(name))
    assert tool_prefix(name).endswith("_")


def test_schemas_are_objects_that_take_nothing_else() -> None:
    assert schema_of(None) == {"type": "object", "properties": {}, "additionalProperties": False}
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": True}
    assert schema_of(schema) == {**schema, "additionalProperties": False}
    assert schema["additionalProperties"] is True, "the server's own is not changed"


@given(st.text())
def test_text_without_variables_is_kept(text: str) -> None:
    if "${" not in text:
        assert substitute(text, Path("/w"), Path("/h"), {}) == text


def test_variables() -> None:
    env = {"A": "1", "EMPTY": ""}
    assert substitute(["${A}${env:A}", {"k": "${userHome}"}, 3], Path("/w"), Path("/h"), env) == ["11", {"k": "/h"}, 3]
    assert substitute("${EMPTY:-x} ${EMPTY}. ${C:-}.", Path("/w"), Path("/h"), env) == "x . ."
    assert substitute("$A ${1} ${}", Path("/w"), Path("/h"), env) == "$A ${1} ${}"
    with pytest.raises(UnsetVariableError, match="C is not set"):
        substitute("${C}", Path("/w"), Path("/h"), env)
