"""Agents: who calls tools, and under which rules (docs/opencode/core.md 13).

An agent has two rule sets. `Agent.permission` is OpenCode's, and holds for what a person types in a cell.
`Agent.model_permission` holds for calls a model makes: the same, with the notebook's defaults put in after OpenCode's,
so that an agent's own rules and the user's still decide last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .config.config import deep_merge
from .errors import ConfigError
from .paths import relative
from .permission import Rule, RuleConfig, from_config, merge
from .wildcard import match

if TYPE_CHECKING:
    from .config import Config

Mode = Literal["primary", "subagent", "all"]

OPENCODE = "OpenCode's defaults"
NOTEBOOK = "notebook default"

NOTEBOOK_RULES: dict[str, str | dict[str, str]] = {
    "bash": "ask",
    "edit": "ask",
    "webfetch": "ask",
    "python": "ask",
    "external_directory": {"*": "ask"},
    "doom_loop": "ask",
}
"""A model's calls need approval for these in a notebook, unless an agent's or the user's rules decide otherwise."""

_EXPLORE_PROMPT = """You find things in a code base and report them.
Use glob for names, grep for content and read for a file you know; use bash only to list or look, never to change.
Answer with absolute paths and line numbers. Create no files and leave everything as you found it."""

_COMPACTION_PROMPT = """You summarise a conversation so that another can go on from it.
Say what was done, what is being worked on, which files matter, what comes next, and what the user asked for
that must not be forgotten. Answer no question in the conversation; write the summary alone."""

_TITLE_PROMPT = """You write the title of a conversation: one line, at most 50 characters, in the user's language.
Name the subject; keep file names, numbers and technical terms as they stand; no quotes, no explanation."""

_SUMMARY_PROMPT = """You say in two or three sentences, in the first person, what was done in this conversation,
as in the description of a change. Do not mention running tests, and ask nothing."""


@dataclass
class Agent:
    """One agent.

    Attributes:
        name: shown name; the key it is found by is that of `build_agents`' result.
        permission: its rules for calls a person makes.
        model_permission: its rules for calls a model makes.
        description: when to use it, for a model that may hand it a task.
        mode: ``primary`` (a person talks to it), ``subagent`` (it is given tasks) or ``all``.
        native: built in.
        hidden: not offered in lists.
        top_p: sampling, None for the model's own.
        temperature: sampling, None for the model's own.
        color: for a front end.
        model: ``{"providerID", "modelID"}``, None for the session's.
        variant: the model's variant (reasoning effort).
        prompt: its system prompt, None for the provider's default.
        options: passed to the provider.
        steps: most model turns for one prompt, None for no limit.
    """

    name: str
    permission: list[Rule] = field(default_factory=list)
    model_permission: list[Rule] = field(default_factory=list)
    description: str | None = None
    mode: Mode = "all"
    native: bool = False
    hidden: bool = False
    top_p: float | None = None
    temperature: float | None = None
    color: str | None = None
    model: dict[str, str] | None = None
    variant: str | None = None
    prompt: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    _allowed: dict[tuple[str, int, int], bool] = field(default_factory=dict, repr=False, compare=False)

    def allows_all_of(self, name: str, rules: list[Rule]) -> bool:
        """Return whether `rules` are this agent's own and every one that matches the permission `name` allows."""
        if rules is not self.permission and rules is not self.model_permission:
            return False
        key = (name, id(rules), len(rules))
        allowed = self._allowed.get(key)
        if allowed is None:
            allowed = all(rule.action == "allow" for rule in rules if match(name, rule.permission))
            self._allowed[key] = allowed
        return allowed

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form; entries that are not set are left out."""
        wire: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "mode": self.mode,
            "native": self.native,
            "hidden": self.hidden or None,
            "topP": self.top_p,
            "temperature": self.temperature,
            "color": self.color,
            "permission": [rule.to_wire() for rule in self.permission],
            "model": self.model,
            "variant": self.variant,
            "prompt": self.prompt,
            "options": self.options,
            "steps": self.steps,
        }
        return {key: value for key, value in wire.items() if value is not None}


def build_agents(
    config: Config,
    *,
    directory: Path,
    worktree: Path,
    data_dir: Path,
    truncate_glob: str,
    skill_directories: Iterable[str | Path] = (),
) -> dict[str, Agent]:
    """The built-in agents, changed and added to by the config, by key: built-in ones first, then in its order.

    Every agent may read saved outputs (`truncate_glob`) and the `skill_directories`; plans are in `data_dir`.
    """
    builder = _Builder(config.permission_rules, truncate_glob, [str(d) for d in skill_directories])
    agents = builder.built_in(directory, worktree, data_dir)
    for name, entry in (config.get("agent") or {}).items():
        if entry.get("disable"):
            agents.pop(name, None)
            continue
        if name not in agents:
            agents[name] = builder.agent(name, mode="all")
        _override(agents[name], entry, config.rules("agent", name, "permission", origin=f"agent {name}"))
    for agent in agents.values():
        builder.keep_outputs_readable(agent)
    return agents


def list_agents(agents: Mapping[str, Agent], config: Mapping[str, Any]) -> list[Agent]:
    """All agents, the default one (else ``build``) first."""
    first = config.get("default_agent") or "build"
    return [a for k, a in agents.items() if k == first] + [a for k, a in agents.items() if k != first]


def default_agent(agents: Mapping[str, Agent], config: Mapping[str, Any]) -> str:
    """The key of the agent that runs if none is named.

    Raises:
        ConfigError: ``default_agent`` names none that a person can talk to, or there is no such agent at all.
    """
    name = config.get("default_agent")
    if name:
        agent = agents.get(name)
        if agent is None:
            raise ConfigError(f'default agent "{name}" not found; agents: ' + ", ".join(agents))
        if agent.mode == "subagent":
            raise ConfigError(f'default agent "{name}" is a subagent; name a primary one')
        if agent.hidden:
            raise ConfigError(f'default agent "{name}" is hidden; name a visible one')
        return cast("str", name)
    for key, agent in agents.items():
        if agent.mode != "subagent" and not agent.hidden:
            return key
    raise ConfigError("no primary visible agent found")


class _Builder:
    """Puts an agent's rules together from their layers."""

    def __init__(self, user: list[Rule], truncate_glob: str, skills: list[str]) -> None:
        self.user = user
        self.truncate_glob = truncate_glob
        outside = {"*": "ask", truncate_glob: "allow", **{f"{folder}/*": "allow" for folder in skills}}
        self.defaults = from_config(
            {
                "*": "allow",
                "doom_loop": "ask",
                "external_directory": outside,
                "question": "deny",
                "plan_enter": "deny",
                "plan_exit": "deny",
                "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
            },
            OPENCODE,
            source="default",
        )
        readable = {f"{folder}/*": "allow" for folder in skills}
        self.notebook = merge(
            from_config(NOTEBOOK_RULES, NOTEBOOK, source="default"),
            from_config({"external_directory": readable}, OPENCODE, source="default"),
        )

    def agent(self, name: str, rules: RuleConfig | None = None, **fields: Any) -> Agent:
        own = from_config(rules, f"agent {name}", source="default")
        # What OpenCode allows its own agents (explore: bash, webfetch) still needs approval in a notebook.
        allowing = [rule for rule in own if rule.action == "allow" and rule.permission in NOTEBOOK_RULES]
        asks = [
            Rule(rule.permission, "*", "ask", NOTEBOOK, source="default") for rule in allowing if rule.pattern == "*"
        ]
        return Agent(
            name,
            permission=merge(self.defaults, own, self.user),
            model_permission=merge(self.defaults, self.notebook, own, asks, self.user),
            **fields,
        )

    def built_in(self, directory: Path, worktree: Path, data_dir: Path) -> dict[str, Agent]:
        plans = os.path.join(data_dir, "plans", "*.md")
        readers = ("grep", "glob", "list", "bash", "webfetch", "websearch", "codesearch", "read")
        agents = [
            self.agent(
                "build",
                {"question": "allow", "plan_enter": "allow"},
                mode="primary",
                description="The default agent. Executes tools based on configured permissions.",
            ),
            self.agent(
                "plan",
                {
                    "question": "allow",
                    "plan_exit": "allow",
                    "external_directory": {os.path.join(data_dir, "plans", "*"): "allow"},
                    "edit": {
                        "*": "deny",
                        ".opencode/plans/*.md": "allow",
                        _relative_path(plans, directory, worktree): "allow",
                    },
                },
                mode="primary",
                description="Plan mode. Disallows all edit tools.",
            ),
            self.agent(
                "general",
                {"todoread": "deny", "todowrite": "deny"},
                mode="subagent",
                description="General-purpose agent for researching questions and for tasks of several steps.",
            ),
            self.agent(
                "explore",
                {
                    "*": "deny",
                    **dict.fromkeys(readers, "allow"),
                    "external_directory": {self.truncate_glob: "allow"},
                },
                mode="subagent",
                description="Fast agent for exploring a code base: finds files by pattern, searches their content, "
                "and answers questions about it. Say how thorough it should be: quick, medium or very thorough.",
                prompt=_EXPLORE_PROMPT,
            ),
        ]
        prompts = {"compaction": _COMPACTION_PROMPT, "title": _TITLE_PROMPT, "summary": _SUMMARY_PROMPT}
        for name, prompt in prompts.items():
            agents.append(self.agent(name, {"*": "deny"}, mode="primary", hidden=True, prompt=prompt))
        for agent in agents:
            agent.native = True
        by_name = {agent.name: agent for agent in agents}
        by_name["title"].temperature = 0.5
        return by_name

    def keep_outputs_readable(self, agent: Agent) -> None:
        """Let the agent read saved outputs, unless a rule denies exactly those."""
        glob = self.truncate_glob
        if Rule("external_directory", glob, "deny") in agent.permission:
            return
        rule = Rule("external_directory", glob, "allow", OPENCODE, source="default")
        agent.permission.append(rule)
        agent.model_permission.append(rule)


def _override(agent: Agent, entry: Mapping[str, Any], own: list[Rule]) -> None:
    if entry.get("model"):
        provider, _, model = entry["model"].partition("/")
        agent.model = {"providerID": provider, "modelID": model}
    for key in ("variant", "prompt", "description", "temperature", "top_p", "mode", "color", "hidden", "name", "steps"):
        if entry.get(key) is not None:
            setattr(agent, key, entry[key])
    agent.options = deep_merge(agent.options, entry.get("options") or {})
    agent.permission = merge(agent.permission, own)
    agent.model_permission = merge(agent.model_permission, own)


def _relative_path(path: str, directory: Path, worktree: Path) -> str:
    """A path as the request of an edit has it."""
    try:
        return relative(path, directory, worktree)
    except ValueError:  # another drive
        return path
