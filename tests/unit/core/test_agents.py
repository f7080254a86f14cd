from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.agents import Agent, build_agents, default_agent, list_agents
from opencode_jupyter.core.config import load_config
from opencode_jupyter.core.errors import ConfigError
from opencode_jupyter.core.permission import Rule, disabled, evaluate

GLOB = "/data/opencode/tool-output/*"
TREE, DATA = Path("/work/project"), Path("/data/opencode")


def agents(config: dict[str, Any] | None = None, **more: Any) -> dict[str, Agent]:
    merged = load_config("/", overrides=config, home="/nonexistent", env={})
    return build_agents(merged, directory=TREE, worktree=TREE, data_dir=DATA, truncate_glob=GLOB, **more)


def action(agent: Agent, permission: str, pattern: str = "*", *, model: bool = False) -> str:
    return evaluate(permission, pattern, agent.model_permission if model else agent.permission).action


def test_the_built_in_agents() -> None:
    built = agents()
    assert list(built) == ["build", "plan", "general", "explore", "compaction", "title", "summary"]
    assert {n: a.mode for n, a in built.items()} == {
        "build": "primary",
        "plan": "primary",
        "general": "subagent",
        "explore": "subagent",
        "compaction": "primary",
        "title": "primary",
        "summary": "primary",
    }
    assert [n for n, a in built.items() if a.hidden] == ["compaction", "title", "summary"]
    assert all(a.native for a in built.values())
    assert built["title"].temperature == 0.5
    assert built["explore"].prompt


def test_the_default_rules_in_their_order() -> None:
    build = agents()["build"]
    assert [(r.permission, r.pattern, r.action) for r in build.permission] == [
        ("*", "*", "allow"),
        ("doom_loop", "*", "ask"),
        ("external_directory", "*", "ask"),
        ("external_directory", GLOB, "allow"),
        ("question", "*", "deny"),
        ("plan_enter", "*", "deny"),
        ("plan_exit", "*", "deny"),
        ("read", "*", "allow"),
        ("read", "*.env", "ask"),
        ("read", "*.env.*", "ask"),
        ("read", "*.env.example", "allow"),
        ("question", "*", "allow"),
        ("plan_enter", "*", "allow"),
        ("external_directory", GLOB, "allow"),
    ]


def test_every_rule_has_an_origin() -> None:
    for agent in agents({"permission": {"bash": "ask"}, "agent": {"x": {"permission": {"edit": "deny"}}}}).values():
        assert all(r.origin for r in [*agent.permission, *agent.model_permission]), agent.name


def test_build() -> None:
    build = agents()["build"]
    assert action(build, "bash", "rm -rf /") == action(build, "edit", "a.py") == "allow"
    assert action(build, "external_directory", "/etc/*") == "ask"
    assert action(build, "external_directory", GLOB.replace("*", "tool_1")) == "allow"
    assert action(build, "doom_loop", "bash") == "ask"
    assert action(build, "question") == action(build, "plan_enter") == "allow"
    assert action(build, "plan_exit") == "deny"
    assert [action(build, "read", p) for p in (".env", "a/.env", ".env.local", ".env.example", "environment.py")] == [
        "ask",
        "ask",
        "ask",
        "allow",
        "allow",
    ]


def test_plan_edits_plans_only() -> None:
    plan = agents()["plan"]
    assert action(plan, "edit", "a.py") == "deny"
    assert action(plan, "edit", ".opencode/plans/a.md") == "allow"
    assert action(plan, "edit", "../../data/opencode/plans/a.md") == "allow"
    assert action(plan, "edit", "../../data/opencode/a.md") == "deny"
    assert action(plan, "external_directory", "/data/opencode/plans/*") == "allow"
    assert action(plan, "plan_exit") == "allow" and action(plan, "plan_enter") == "deny"
    assert disabled(["edit", "write", "bash"], plan.permission) == set()


def test_a_models_commands_ask_whoever_it_works_for() -> None:
    for name in ("build", "plan", "general", "explore"):
        rules = agents()[name].model_permission
        assert evaluate("bash", "ls", rules).action == "ask", name
        assert evaluate("webfetch", "https://example.org", rules).action == "ask", name
    allowed = agents({"permission": {"bash": "allow"}})["explore"].model_permission
    assert evaluate("bash", "ls", allowed).action == "allow", "the user's own rules have the last word"
    assert evaluate("edit", "a.py", agents()["explore"].model_permission).action == "deny"


def test_general_and_explore_and_the_hidden_ones() -> None:
    built = agents()
    tools = [
        "bash",
        "edit",
        "write",
        "read",
        "grep",
        "glob",
        "list",
        "webfetch",
        "websearch",
        "codesearch",
        "task",
        "todowrite",
        "todoread",
    ]
    assert disabled(tools, built["general"].permission) == {"todowrite", "todoread"}
    assert disabled(tools, built["explore"].permission) == {"edit", "write", "task", "todowrite", "todoread"}
    assert action(built["explore"], "external_directory", GLOB) == "allow"
    assert action(built["explore"], "external_directory", "/etc/*") == "deny"
    for name in ("compaction", "title", "summary"):
        assert disabled(tools, built[name].permission) == set(tools)


def test_the_users_rules_come_last_everywhere() -> None:
    built = agents({"permission": {"*": "allow"}})
    assert action(built["explore"], "edit", "x") == action(built["plan"], "edit", "x") == "allow"
    built = agents({"permission": "deny"})
    assert action(built["build"], "bash", "ls") == "deny"


# ---- the notebook's defaults for a model's calls


def test_what_a_model_asks_for() -> None:
    build = agents()["build"]
    permissions = {
        p
        for p in (
            "bash",
            "edit",
            "webfetch",
            "python",
            "inspect",
            "read",
            "grep",
            "task",
            "todowrite",
            "websearch",
            "mcp_x",
        )
        if action(build, p, "x", model=True) == "ask"
    }
    assert permissions == {"bash", "edit", "webfetch", "python"}
    assert action(build, "external_directory", "/etc/*", model=True) == "ask"
    assert action(build, "external_directory", GLOB, model=True) == "allow"
    assert action(build, "doom_loop", "bash", model=True) == "ask"
    assert action(build, "question", model=True) == "allow"
    assert action(build, "plan_exit", model=True) == "deny"
    assert [r for r in build.model_permission if r.origin == "notebook default"] == [
        Rule("bash", "*", "ask"),
        Rule("edit", "*", "ask"),
        Rule("webfetch", "*", "ask"),
        Rule("python", "*", "ask"),
        Rule("external_directory", "*", "ask"),
        Rule("doom_loop", "*", "ask"),
    ]


def test_an_agents_and_the_users_rules_outrank_the_notebooks() -> None:
    built = agents({"permission": {"bash": {"git *": "allow"}}, "agent": {"x": {"permission": {"edit": "allow"}}}})
    assert action(built["build"], "bash", "git log", model=True) == "allow"
    assert action(built["build"], "bash", "rm x", model=True) == "ask"
    assert action(built["plan"], "edit", "a.py", model=True) == "deny"
    assert action(built["x"], "edit", "a.py", model=True) == "allow"
    assert action(built["title"], "bash", "x", model=True) == "deny"


def test_skill_folders_may_be_read() -> None:
    build = agents(skill_directories=["/skills/a"])["build"]
    for model in (True, False):
        assert action(build, "external_directory", "/skills/a/x", model=model) == "allow"
        assert action(build, "external_directory", "/skills/b/x", model=model) == "ask"


# ---- agents of the config


def test_a_new_agent() -> None:
    config = {
        "agent": {
            "reviewer": {
                "description": "Reviews",
                "model": "openai/gpt-5/mini",
                "temperature": 0.2,
                "top_p": 0.9,
                "prompt": "You review.",
                "maxSteps": 5,
                "color": "#ff0000",
                "effort": "high",
                "options": {"a": 1},
                "tools": {"write": False, "bash": True},
                "permission": {"bash": "ask", "webfetch": "deny"},
            }
        }
    }
    reviewer = agents(config)["reviewer"]
    assert (reviewer.mode, reviewer.native, reviewer.hidden) == ("all", False, False)
    assert reviewer.model == {"providerID": "openai", "modelID": "gpt-5/mini"}
    assert (reviewer.temperature, reviewer.top_p, reviewer.steps) == (0.2, 0.9, 5)
    assert reviewer.options == {"effort": "high", "a": 1}
    assert [action(reviewer, p, "x") for p in ("edit", "bash", "webfetch", "read")] == ["deny", "ask", "deny", "allow"]
    assert reviewer.to_wire()["topP"] == 0.9 and "steps" in reviewer.to_wire() and "hidden" not in reviewer.to_wire()


def test_a_built_in_agent_is_changed_or_removed() -> None:
    built = agents(
        {
            "agent": {
                "build": {"prompt": "Be brief.", "permission": {"bash": "deny"}, "name": "Builder"},
                "general": {"disable": True},
                "ghost": {"disable": True},
                "title": {"temperature": 0},
            }
        }
    )
    assert "general" not in built and "ghost" not in built
    assert built["build"].native and built["build"].prompt == "Be brief." and built["build"].name == "Builder"
    assert action(built["build"], "bash", "ls") == "deny" and action(built["build"], "edit", "x") == "allow"
    assert built["title"].temperature == 0


def test_options_are_merged_deeply() -> None:
    agent = agents({"agent": {"a": {"x": {"p": 1}, "options": {"y": {"q": 2}}}}})["a"]
    assert agent.options == {"x": {"p": 1}, "y": {"q": 2}}


def test_saved_outputs_stay_readable_unless_exactly_they_are_denied() -> None:
    config = {
        "permission": {"external_directory": "deny"},
        "agent": {"a": {"permission": {"external_directory": "deny"}}},
    }
    for model in (True, False):
        assert action(agents(config)["build"], "external_directory", GLOB, model=model) == "allow"
        assert action(agents(config)["a"], "external_directory", GLOB, model=model) == "allow"
        assert action(agents(config)["build"], "external_directory", "/etc/*", model=model) == "deny"
    exact = agents({"permission": {"external_directory": {"*": "deny", GLOB: "deny"}}})["build"]
    assert action(exact, "external_directory", GLOB) == "deny"


def test_a_plain_dict_is_read_like_a_file_and_left_alone() -> None:
    config: dict[str, Any] = {"permission": "deny", "agent": {"a": {"tools": {"read": True}}}}
    assert action(agents(config)["a"], "read", "x") == "allow"
    assert config == {"permission": "deny", "agent": {"a": {"tools": {"read": True}}}}


def test_rules_name_the_file_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text(
        '{"permission": {"bash": "ask"}, "agent": {"plan": {"permission": {"edit": "ask"}}}}'
    )
    config = load_config(tmp_path, tmp_path, home=tmp_path / "home", env={})
    plan = build_agents(config, directory=tmp_path, worktree=tmp_path, data_dir=DATA, truncate_glob=GLOB)["plan"]
    assert evaluate("bash", "x", plan.permission).origin == "opencode.json"
    assert evaluate("edit", "x", plan.permission).origin == "agent plan, opencode.json"
    assert evaluate("plan_exit", "x", plan.permission).origin == "agent plan"
    assert evaluate("grep", "x", plan.permission).origin == "OpenCode's defaults"
    assert evaluate("webfetch", "x", plan.model_permission).origin == "notebook default"


# ---- which agent


def test_list_agents_begins_with_the_default() -> None:
    built = agents({"agent": {"mine": {}}})
    assert [a.name for a in list_agents(built, {})][:2] == ["build", "plan"]
    assert [a.name for a in list_agents(built, {"default_agent": "mine"})][:2] == ["mine", "build"]
    assert len(list_agents(built, {"default_agent": "nobody"})) == len(built)


def test_default_agent() -> None:
    built = agents({"agent": {"mine": {}}})
    assert default_agent(built, {}) == "build"
    assert default_agent(built, {"default_agent": "mine"}) == "mine"
    for name, message in (
        ("nobody", 'default agent "nobody" not found'),
        ("explore", 'default agent "explore" is a subagent'),
        ("title", 'default agent "title" is hidden'),
    ):
        with pytest.raises(ConfigError, match=message):
            default_agent(built, {"default_agent": name})
    assert default_agent(agents({"agent": {"build": {"disable": True}}}), {}) == "plan"
    none = agents({"agent": {"build": {"disable": True}, "plan": {"mode": "subagent"}}})
    with pytest.raises(ConfigError, match="no primary visible agent found"):
        default_agent(none, {})
