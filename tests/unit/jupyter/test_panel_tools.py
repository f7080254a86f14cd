"""What the panels of tools and permissions ask a kernel: the answers of its magics, and changes by a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.shells import Shell, shell

SHAPES = """
from opencode_jupyter import tool
@tool
def shapes(name: str, count: int = 3, words: list[str] | None = None) -> str:
    "Takes several."
    return name
"""


@pytest.fixture
def ip(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    with shell(tmp_path) as instance:
        instance.run("%tools")
        yield instance


def send(ip: Shell, operation: str, **fields: Any) -> dict[str, Any]:
    answer = ip.notebook.panel.on_message({"what": operation, **fields})
    json.dumps(answer)  # it goes into a message
    return answer


def ours(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(r["permission"], r["pattern"], r["action"], r["kind"]) for r in answer["rules"] if r["kind"]]


def test_tools_are_told_as_the_magic_lists_them(ip: Shell) -> None:
    ip.run(SHAPES)
    ip.run("%permissions deny shapes")
    tools = {entry["name"]: entry for entry in send(ip, "tools")["tools"]}
    rows = {row["tool"]: row for row in ip.run("%tools list").records}
    assert set(tools) == set(rows)
    for name, entry in tools.items():
        assert (entry["user"]["action"], entry["source"]) == (rows[name]["now"], rows[name]["source"])
    assert (tools["read"]["kind"], tools["shapes"]["kind"]) == ("builtin", "cell")
    assert (tools["bash"]["user"]["action"], tools["bash"]["model"]["action"]) == ("allow", "ask")
    assert tools["shapes"]["model"]["action"] == "deny" and "this session" in tools["shapes"]["user"]["rule"]
    assert tools["shapes"]["summary"] == "Takes several."


def test_one_tool_and_whether_a_line_means_its_arguments(ip: Shell) -> None:
    ip.run(SHAPES)
    shapes = send(ip, "tool", name="shapes")
    kinds = {field["name"]: (field["kind"], field["required"], field["default"]) for field in shapes["fields"]}
    assert kinds == {"name": ("text", True, None), "count": ("number", False, 3), "words": ("list", False, None)}
    assert "There is no tool" in (wrong := send(ip, "tool", name="shape"))["error"] or "shapes" in wrong["error"]

    def check(source: str, **arguments: Any) -> dict[str, Any]:
        return send(ip, "tool_check", name="shapes", source=source, input=arguments)

    assert check("%tool shapes name=a count:=2", name="a", count=2) == {"errors": []}
    assert check("%tool shapes name=a --timeout 3", name="a") == {"errors": []}
    assert "means the same" in check("%tool shapes name=a", name="b")["error"]
    assert "means the same" in check("%tool read name=a", name="a")["error"]
    assert "means the same" in check("!rm x", name="a")["error"]
    assert "means the same" in check("%tool shapes name=a\n!rm x", name="a")["error"]
    paths = [error["path"] for error in check("%tool shapes", count="x", words=[1])["errors"]]
    assert ["name"] in paths and ["count"] in paths and ["words", 0] in [path[:1] + path[-1:] for path in paths]
    cell = {"name": "bash", "source": "%%tool bash\nls\nls -la", "input": {"command": "ls\nls -la"}}
    assert send(ip, "tool_check", **cell) == {"errors": []}


def test_a_rule_of_the_session_comes_and_goes(ip: Shell) -> None:
    assert send(ip, "rule_add", permission="bash", pattern="git *", action="deny") == {"notes": []}
    answer = send(ip, "rules")
    assert ours(answer) == [("bash", "git *", "deny", "session")]
    assert answer["rules"][-1]["origin"] == "this session, from the panel"
    assert [row["n"] for row in ip.run("%permissions").records] == [rule["n"] for rule in answer["rules"]]
    with pytest.raises(Exception, match="git"):
        ip.run("%tool bash git status")
    rule = answer["rules"][-1]
    assert "changed meanwhile" in send(ip, "rule_revoke", n=rule["n"] - 1, rule=rule)["error"]
    assert send(ip, "rule_revoke", n=rule["n"], rule=rule) == {"notes": []}
    assert ours(send(ip, "rules")) == []
    assert "changed meanwhile" in send(ip, "rule_revoke", n=rule["n"], rule=rule)["error"]
    decisions = [(row["by"], row["message"]) for row in ip.run("%permissions history").records if row["by"] == "panel"]
    assert decisions == [
        ("panel", "rule added in the panel, for this session"),
        ("panel", "rule revoked in the panel"),
    ]


def test_a_rule_of_the_project_is_written_and_taken_out(ip: Shell) -> None:
    addition = send(ip, "rule_add", permission="bash", pattern="rm *", action="deny", project=True)
    assert addition == {"notes": ["Saved in opencode.json."]}
    file = Path("opencode.json")
    assert '"rm *": "deny"' in file.read_text()
    answer = send(ip, "rules", by="model")
    rules = [rule for rule in answer["rules"] if rule["pattern"] == "rm *"]
    assert [(rule["kind"], rule["origin"]) for rule in rules] == [("project", "opencode.json")]
    notes = send(ip, "rule_revoke", n=rules[0]["n"], rule=rules[0], by="model")["notes"]
    assert "Removed from opencode.json" in notes[0]
    assert "rm *" not in file.read_text()


def test_rules_that_are_none(ip: Shell) -> None:
    assert "Did you mean bash" in send(ip, "rule_add", permission="bahs", pattern="*", action="allow")["error"]
    assert "allow, deny or ask" in send(ip, "rule_add", permission="bash", action="maybe")["error"]
    assert "needs a permission" in send(ip, "rule_add", permission=" ", action="allow")["error"]
    assert "too long" in send(ip, "rule_add", permission="bash", pattern="x" * 20_000, action="allow")["error"]
    builtin = send(ip, "rules")["rules"][0]
    assert "was not added here" in send(ip, "rule_revoke", n=1, rule=builtin)["error"]
    assert "no agent" in send(ip, "rules", agent="nobody")["error"]
    assert "no mode" in send(ip, "rule_mode", mode="fast")["error"]
    assert "Mode bypass is off" in send(ip, "rule_mode", mode="bypass")["error"]


def test_the_mode(ip: Shell) -> None:
    assert send(ip, "rule_mode", mode="plan") == {"before": "default"}
    answer = send(ip, "rules")
    assert answer["mode"] == "plan" and {kind for *_, kind in ours(answer)} == {"mode"}
    rule = next(rule for rule in answer["rules"] if rule["kind"] == "mode")
    assert "choose another mode" in send(ip, "rule_revoke", n=rule["n"], rule=rule)["error"]
    assert send(ip, "rule_test", name="write", text="a.txt")["verdict"] == "deny"
    assert send(ip, "rule_mode", mode="default") == {"before": "plan"}
    messages = [row["message"] for row in ip.run("%permissions history").records if row["by"] == "panel"]
    assert messages[0] == "mode plan, in the panel" and messages[-1] == "mode default, in the panel"


def test_what_would_happen_is_what_happens(ip: Shell) -> None:
    send(ip, "rule_add", permission="bash", pattern="git *", action="allow")
    send(ip, "rule_add", permission="bash", pattern="touch *", action="deny")
    outcome = send(ip, "rule_test", name="bash", text="git --version && touch made", by="model")
    assert (outcome["how"], outcome["verdict"]) == ("call", "deny")
    assert [(row["pattern"], row["action"]) for row in outcome["rows"]] == [
        ("git --version", "allow"),
        ("touch made", "deny"),
    ]
    assert outcome["rows"][1]["rule"]["origin"] == "this session, from the panel"
    assert [r["action"] for r in ip.run("%tool --dry-run bash git --version && touch made").records] == [
        "allow",
        "deny",
    ]
    assert send(ip, "rule_test", name="bash", text="pwd", by="user")["verdict"] == "allow"
    assert send(ip, "rule_test", name="bash", text="pwd", by="model")["verdict"] == "ask"
    write = json.dumps({"filePath": "x.txt", "content": "a"})
    assert send(ip, "rule_test", name="write", text=write, by="model")["rows"][0]["pattern"] == "x.txt"
    assert not Path("x.txt").exists() and not Path("made").exists()
    assert send(ip, "rule_test", name="edit", text="*.py")["how"] == "pattern"
    assert "not a JSON object" in send(ip, "rule_test", name="write", text="{")["error"]
    assert "filePath" in send(ip, "rule_test", name="write", text="{}")["error"]
    assert "Name a tool" in send(ip, "rule_test", name="", text="x")["error"]
    assert "Did you mean bash" in send(ip, "rule_test", name="bahs", text="x")["error"]


def test_a_click_on_an_ask_shows_as_a_rule_of_the_session(ip: Shell) -> None:
    from opencode_jupyter.core.permission import Rule

    ip.notebook.workspace.permissions.remember(Rule("bash", "ls *", "allow", "this session"))
    rule = send(ip, "rules")["rules"][-1]
    assert (rule["kind"], rule["approval"]) == ("session", True)
    assert send(ip, "rule_revoke", n=rule["n"], rule=rule) == {"notes": []}
    assert ip.notebook.workspace.permissions.approved == []


def test_a_form_describes_a_tool_for_people(ip: Shell) -> None:
    answer = send(ip, "tool", name="read")
    assert answer["description"] == "Read a file or directory."
    assert "absolute" not in json.dumps(answer)
