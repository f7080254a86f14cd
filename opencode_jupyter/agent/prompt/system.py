"""A model's system prompt (the same object while nothing in it has changed), and reminders in the user's message."""

from __future__ import annotations

import datetime
import platform
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.agents import Agent
from ...core.permission import Rule
from ...core.permission.modes import DEFAULT, MODES, mode_of, rules_of
from ...core.wildcard import match
from ..model import ModelInfo, ToolSpec
from .instructions import Instructions

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from ...core.permission import PermissionService
    from ...core.sessions import Session

T = TypeVar("T")

CACHE_SIZE = 128
"""Prompts that are remembered, one for each session and agent."""
IN_THE_KERNEL = frozenset({"python", "inspect"})
"""The tools that ``notebook.md`` is about."""
LAST_STEP = (
    "This is your last turn for this request: the limit of turns is reached, and no further calls are possible. Answer "
    "in text: what is complete, what is not, and what should come next."
)
"""The text for a model whose next answer is the last that its agent's ``steps`` allow."""
_PLAN = "plan"

MAX_LINES = 12
"""Lines about single permissions; the others are counted."""
MAX_PATTERNS = 5
"""Patterns that are named of one kind; the others are counted."""
MAX_NAMES = 20
"""Tools that are named as not offered."""
MAX_CHARS = 120
"""Characters of a pattern that are shown."""

_OF_SOME_AGENTS = frozenset({"question", "plan_enter", "plan_exit"})
"""Tools that OpenCode gives to some agents only: no rule of the user is the reason where one is missing."""
_ABOUT_FILES = frozenset({"read", "edit", "list", "glob", "grep", "bash"})
"""Permissions of tools that request external_directory too when they leave the project."""
_ANYTHING = "\0\0"
"""Stands for what no pattern names but ``*``."""
_ACTION_TEXTS = {"deny": "is denied", "ask": "asks a person first", "allow": "goes through"}
_SHORT_TEXTS = {"deny": "denied", "ask": "asks", "allow": "goes through"}


async def system_prompt(
    workspace: ToolHost,
    agent: Agent,
    info: ModelInfo,
    session: Session,
    tools: Sequence[ToolSpec],
    extra: str | None = None,
) -> tuple[str, ...]:
    """The paragraphs of a request's system prompt, the ones that change least first.

    The agent's own prompt takes the place of the default; `extra` is what the caller adds.

    Returns:
        The same tuple as last time if nothing has changed.
    """
    return await workspace.service(SystemPrompts).build(agent, info, session, tools, extra)


class SystemPrompts:
    """The system prompts of one workspace."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._last_prompts: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self._rule_texts: OrderedDict[tuple[str, str], tuple[list[Any], str]] = OrderedDict()

    async def build(
        self, agent: Agent, info: ModelInfo, session: Session, tools: Sequence[ToolSpec], extra: str | None
    ) -> tuple[str, ...]:
        """See `system_prompt`."""
        workspace = self._workspace
        tool_names = [tool.name for tool in tools]
        begins = not session.messages or session.messages[-1].role == "user"
        instructions = await workspace.service(Instructions).texts(at_once=begins)
        parts = [
            agent.prompt or default_prompt(tool_names),
            environment(workspace, info),
            *instructions,
            self._rules(agent, session, tool_names),
            extra or "",
        ]
        paragraphs = tuple(part for part in parts if part.strip())
        key = (session.id, agent.name)
        last = self._last_prompts.get(key)
        if last == paragraphs:
            paragraphs = last
        _remember(self._last_prompts, key, paragraphs)
        return paragraphs

    def _rules(self, agent: Agent, session: Session, tool_names: list[str]) -> str:
        """The paragraph on the rules; rewritten only when one of them has changed."""
        workspace = self._workspace
        rules = model_rules(workspace, agent, session)
        mode = mode_of(workspace, session)
        now = [rules, list(workspace.permissions.approved), tool_names, workspace.registry.names(), mode]
        key = (session.id, agent.name)
        cached = self._rule_texts.get(key)
        if cached is None or cached[0] != now:
            cached = (now, describe_rules(workspace, agent, session, tool_names))
            _remember(self._rule_texts, key, cached)
        return cached[1]


def _remember(cache: OrderedDict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > CACHE_SIZE:
        cache.popitem(last=False)


def default_prompt(tools: Sequence[str]) -> str:
    """Our own prompt, for an agent that has none; with a text about the kernel where a tool works in it."""
    return _text("default.md") + ("\n\n" + _text("notebook.md") if IN_THE_KERNEL & set(tools) else "")


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8").strip()


def environment(workspace: ToolHost, info: ModelInfo, today: datetime.date | None = None) -> str:
    """The folder, the project, the platform, the date and the model's name."""
    day = today or datetime.datetime.now().astimezone().date()
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    project = f"a git repository with its top in {workspace.worktree}" if versioned else "not under git"
    name = f"{info.name} ({info.full})" if info.name and info.name != info.model else info.full
    return "\n".join(
        [
            "Where you are:",
            f"- Working folder: {workspace.directory} ({project}); relative paths start there",
            f"- Platform: {_platform()}",
            f"- Date: {day:%Y-%m-%d}, {day:%A}",
            f"- Model: {name}",
        ]
    )


@cache
def _platform() -> str:
    return f"{platform.system() or 'unknown'} {platform.machine()}, Python {platform.python_version()}"


# ---------------------------------------------------------------------- the rules in force


def describe_rules(workspace: ToolHost, agent: Agent, session: Session, tools: Iterable[str]) -> str:
    """A paragraph about the rules in force for a model's calls; "" if everything that it is offered goes through."""
    rules = model_rules(workspace, agent, session)
    grouped: dict[str, list[str]] = {}
    for key in _permissions_of(workspace, tools):
        description = _describe_permission(workspace.permissions, key, rules)
        if description:
            grouped.setdefault(description, []).append(key)
    lines = [f"- {', '.join(keys)}: {description}" for description, keys in grouped.items()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"- and {len(lines) - MAX_LINES} more; a call reports which rule denies it"]
    names = [name for name in workspace.registry.names() if _permission_of(workspace, name)]
    unavailable = sorted(workspace.registry.disabled(names, rules))
    if unavailable:
        lines.append(f"- unavailable, because a rule denies every use of them: {_listed(unavailable, MAX_NAMES)}")
    mode = mode_of(workspace, session)
    if mode != DEFAULT:
        lines.insert(0, f"- permission mode {mode}: {MODES[mode].description}")
    return "\n".join(["The user's rules for your calls, which no call can change:", *lines]) if lines else ""


def model_rules(workspace: ToolHost, agent: Agent, session: Session) -> list[Rule]:
    """The rules that a model's calls are judged by, but for a person's approvals."""
    return [*agent.model_permission, *workspace.rules, *rules_of(workspace, session)]


def _permissions_of(workspace: ToolHost, tools: Iterable[str]) -> list[str]:
    """The permissions that these tools request."""
    keys = dict.fromkeys(key for name in tools if (key := _permission_of(workspace, name)))
    if _ABOUT_FILES & set(keys):
        keys["external_directory"] = None
    return list(keys)


def _permission_of(workspace: ToolHost, name: str) -> str:
    """The permission that a tool requests by its manifest; "" if rules are not what decides about it."""
    tool = workspace.registry.get(name)
    return "" if tool is None or tool.manifest.group == "internal" or name in _OF_SOME_AGENTS else tool.permission


def _describe_permission(permissions: PermissionService, key: str, rules: Sequence[Rule]) -> str:
    """A description of the rules for one permission; "" if they allow everything."""
    # What a rule's own pattern gets is asked too, so that rules which later ones overrule are left out.
    usual = permissions.check(key, [_ANYTHING], rules)[0].action
    other: dict[str, dict[str, None]] = {"deny": {}, "ask": {}, "allow": {}}
    for rule in (*rules, *permissions.approved):
        if rule.pattern != "*" and rule.action != usual and match(key, rule.permission):
            decided = permissions.check(key, [rule.pattern], rules)[0].action
            if decided == rule.action:
                other[decided][rule.pattern] = None
    if usual == "allow" and not other["deny"] and not other["ask"]:
        return ""
    exceptions = [
        f"{_SHORT_TEXTS[action]}: {_listed([_shortened(p) for p in patterns], MAX_PATTERNS)}"
        for action, patterns in other.items()
        if patterns
    ]
    return "; ".join([_ACTION_TEXTS[usual], *exceptions])


def _listed(names: Sequence[str], most: int) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _shortened(pattern: str) -> str:
    text = " ".join(pattern.split())
    return f"`{text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + '…'}`"


# ---------------------------------------------------------------------- reminders


def reminders(agent: Agent, previous: str | None = None, *, plan: str | None = None) -> list[str]:
    """Texts to put after the user's text, as synthetic parts: which agent answers now, and what that changes.

    `previous` is the agent that answered before in this session; `plan` is the path of the session's plan.
    """
    if agent.name == _PLAN:
        exempt = f"the plan itself, in {plan}" if plan else "plan files (.opencode/plans/*.md)"
        text = (
            "Plan mode is on. Look, think and ask, but change nothing: no edits, no commands that write, no commits, "
            f"no installs, whatever else you were told. The one exception is {exempt}. End with a plan that somebody "
            "could carry out without asking: what changes where, in which order, how it is checked, what is open."
        )
        return [text]
    if previous == _PLAN:
        text = "Plan mode is over: from now on you may change files and run commands, as far as the rules allow."
        if plan:
            text += f" The plan is in {plan}: read it if you do not have it before you, and carry it out."
        return [text]
    return []
