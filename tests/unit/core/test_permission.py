from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import wildcard
from opencode_jupyter.core.errors import ConfigError
from opencode_jupyter.core.permission import Rule, disabled, evaluate, from_config, merge, relevant


def R(permission: str, pattern: str, action: str, origin: str = "") -> Rule:
    return Rule(permission, pattern, action, origin)  # type: ignore[arg-type]


# ---- from_config


def test_from_config_keeps_the_order_of_keys() -> None:
    config = {"zoo": "allow", "bash": {"*": "ask", "a": "deny", "*b": "allow"}, "*": "deny"}
    assert from_config(config) == [
        R("zoo", "*", "allow"),
        R("bash", "*", "ask"),
        R("bash", "a", "deny"),
        R("bash", "*b", "allow"),
        R("*", "*", "deny"),
    ]


def test_from_config_of_nothing_and_of_one_action() -> None:
    assert from_config({}) == []
    assert from_config(None) == []
    assert from_config({"bash": {}}) == []
    assert from_config("allow") == [R("*", "*", "allow")]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("~", "/home/u"),
        ("~/x/*", "/home/u/x/*"),
        ("$HOME", "/home/u"),
        ("$HOME/x", "/home/u/x"),
        ("$HOMEX", "/home/uX"),
        ("~bob/x", "~bob/x"),
        ("a/~/x", "a/~/x"),
        ("a$HOME", "a$HOME"),
    ],
)
def test_from_config_expands_the_home_folder_at_the_start(pattern: str, expected: str) -> None:
    assert from_config({"external_directory": {pattern: "allow"}}, home="/home/u") == [
        R("external_directory", expected, "allow")
    ]


def test_from_config_expands_patterns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_TEST_HOME", "/tmp/h")
    assert from_config({"~/x": "allow", "read": {"~/y": "deny"}}) == [
        R("~/x", "*", "allow"),
        R("read", "/tmp/h/y", "deny"),
    ]
    monkeypatch.delenv("OPENCODE_TEST_HOME")
    assert from_config({"read": {"~": "deny"}}) == [R("read", str(Path.home()), "deny")]


@pytest.mark.parametrize(
    "config", [{"bash": "alow"}, {"bash": {"x": True}}, {"bash": 3}, {"bash": None}, "yes", 5, ["allow"]]
)
def test_from_config_refuses_what_it_does_not_know(config: object) -> None:
    with pytest.raises(ConfigError, match=r"allow, deny or ask|write an action"):
        from_config(config)  # type: ignore[arg-type]


def test_from_config_names_the_origin_and_equality_ignores_it() -> None:
    rule = from_config({"bash": "ask"}, "opencode.json")[0]
    assert rule.origin == "opencode.json"
    assert rule == R("bash", "*", "ask", "elsewhere")
    assert rule.to_wire() == {"permission": "bash", "pattern": "*", "action": "ask"}


# ---- merge


def test_merge_is_concatenation() -> None:
    a, b = [R("bash", "*", "allow")], [R("bash", "*", "allow"), R("x", "*", "deny")]
    assert merge(a, b) == [*a, *b]
    assert merge() == []


# ---- evaluate


@pytest.mark.parametrize(
    ("permission", "pattern", "rules", "action"),
    [
        ("bash", "rm", [("bash", "rm", "deny")], "deny"),
        ("bash", "rm", [("bash", "*", "allow")], "allow"),
        ("bash", "rm", [("bash", "*", "allow"), ("bash", "rm", "deny")], "deny"),
        ("bash", "rm", [("bash", "rm", "deny"), ("bash", "*", "allow")], "allow"),
        ("edit", "src/foo.ts", [("edit", "src/*", "allow")], "allow"),
        (
            "edit",
            "src/components/Button.tsx",
            [("edit", "src/*", "deny"), ("edit", "src/components/*", "allow")],
            "allow",
        ),
        (
            "edit",
            "src/components/Button.tsx",
            [("edit", "src/components/*", "allow"), ("edit", "src/*", "deny")],
            "deny",
        ),
        ("unknown", "anything", [("bash", "*", "allow")], "ask"),
        ("bash", "rm", [], "ask"),
        ("edit", "etc/passwd", [("edit", "src/*", "allow")], "ask"),
        ("bash", "rm", [("*", "*", "deny")], "deny"),
        ("bash", "rm", [("*", "*", "deny"), ("bash", "*", "allow")], "allow"),
        ("bash", "rm", [("bash", "*", "allow"), ("*", "*", "deny")], "deny"),
        ("mcp_server_tool", "x", [("mcp_*", "*", "allow")], "allow"),
        ("mcp_dangerous", "x", [("*", "*", "ask"), ("mcp_*", "*", "allow"), ("mcp_dangerous", "*", "deny")], "deny"),
        ("todoread", "*", [("todo?ead", "*", "deny")], "deny"),
        ("bash", "ls", [("bash", "ls *", "allow")], "allow"),
        ("bash", "lsof", [("bash", "ls *", "allow")], "ask"),
        ("read", ".env", [("read", "*", "allow"), ("read", "*.env", "ask")], "ask"),
    ],
)
def test_evaluate(permission: str, pattern: str, rules: list[tuple[str, str, str]], action: str) -> None:
    assert evaluate(permission, pattern, [R(*r) for r in rules]).action == action


def test_evaluate_without_a_rule_asks_for_everything() -> None:
    rule = evaluate("bash", "rm -rf /")
    assert (rule.permission, rule.pattern, rule.action) == ("bash", "*", "ask")
    assert rule.origin


def test_evaluate_reads_rulesets_one_after_the_other() -> None:
    config, approved = [R("bash", "*", "ask")], [R("bash", "rm", "allow")]
    assert evaluate("bash", "rm", config, approved).action == "allow"
    assert evaluate("bash", "rm", approved, config).action == "ask"
    assert evaluate("bash", "rm", config, []).action == "ask"


WORDS = st.sampled_from(["*", "bash", "b*", "edit", "ba?h", "src/*", "src/a", "rm *", "rm", "x"])
RULES = st.builds(R, WORDS, WORDS, st.sampled_from(["allow", "deny", "ask"]))


@given(st.lists(st.lists(RULES, max_size=6), max_size=3), WORDS, WORDS)
def test_the_last_match_wins(rulesets: list[list[Rule]], permission: str, pattern: str) -> None:
    fitting = [
        rule
        for ruleset in rulesets
        for rule in ruleset
        if wildcard.match(permission, rule.permission) and wildcard.match(pattern, rule.pattern)
    ]
    decision = evaluate(permission, pattern, *rulesets)
    assert decision is fitting[-1] if fitting else decision == R(permission, "*", "ask")


@given(st.lists(RULES, max_size=6), RULES)
def test_a_rule_for_everything_at_the_end_decides(rules: list[Rule], last: Rule) -> None:
    final = R("*", "*", last.action)
    assert evaluate("bash", "rm x", rules, [final]) is final


# ---- disabled


@pytest.mark.parametrize(
    ("tools", "rules", "expected"),
    [
        (["bash", "edit", "read"], [("bash", "*", "deny")], {"bash"}),
        (["bash", "edit", "read"], [], set()),
        (["bash", "read"], [("*", "*", "deny")], {"bash", "read"}),
        (
            ["edit", "write", "patch", "multiedit", "apply_patch", "bash"],
            [("edit", "*", "deny")],
            {"edit", "write", "patch", "multiedit", "apply_patch"},
        ),
        (["bash"], [("bash", "rm *", "deny")], set()),
        (["bash"], [("bash", "*", "deny"), ("bash", "git *", "allow")], set()),
        (["bash"], [("bash", "*", "deny"), ("bash", "rm", "deny")], set()),
        (["bash"], [("bash", "*", "ask")], set()),
        (["bash"], [("bash", "*", "deny"), ("bash", "*", "allow")], set()),
        (["bash"], [("bash", "*", "allow"), ("*", "*", "deny")], {"bash"}),
        (["bash", "edit"], [("*", "*", "deny"), ("bash", "*", "allow")], {"edit"}),
        (["mcp_a", "mcp_b", "bash"], [("mcp_*", "*", "deny"), ("mcp_b", "*", "allow")], {"mcp_a"}),
        (["write"], [("write", "*", "deny")], set()),
        (["bash"], [("bash", "**", "deny")], set()),
        ([], [("*", "*", "deny")], set()),
    ],
)
def test_disabled(tools: list[str], rules: list[tuple[str, str, str]], expected: set[str]) -> None:
    assert disabled(tools, [R(*r) for r in rules]) == expected


def test_relevant_rules_speak_of_the_permission_whatever_they_say() -> None:
    rules = [R("bash", "x", "allow"), R("edit", "*", "deny"), R("*", "*", "ask"), R("b*", "y", "deny")]
    assert relevant("bash", rules) == [rules[0], rules[2], rules[3]]
