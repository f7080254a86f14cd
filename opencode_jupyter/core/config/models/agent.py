"""An agent as a config file or a Markdown file describes it (docs/opencode/core.md 13.1, 14.6)."""

from typing import Any, Literal

from .permission import Permission
from .section import Count, Number, Section, doc


class AgentEntry(Section):
    """One entry of ``agent`` or ``mode``. A key that is not among these becomes one of its ``options``."""

    name: str = doc("The name that is shown.")
    description: str = doc("When to use it; a model that may hand it a task reads this.")
    mode: Literal["primary", "subagent", "all"] = doc("Who may use it: a person, other agents, or both.")
    model: str = doc("Its model as provider/model; default: the session's.")
    variant: str = doc("The model's variant, such as how hard it thinks.")
    prompt: str = doc("Its system prompt.")
    temperature: Number = doc("Sampling temperature.")
    top_p: Number = doc("Nucleus sampling.")
    steps: Count = doc("The most model turns for one prompt.")
    maxSteps: Count = doc("Use steps.", deprecated=True)  # noqa: N815 - OpenCode's spelling
    color: str = doc("For a front end.")
    disable: bool = doc("Take the agent away.")
    hidden: bool = doc("Hide it in lists.")
    options: dict[str, Any] = doc("Passed to the model's provider.")
    permission: Permission = doc("Its own rules, judged after everyone's.")
    tools: dict[str, bool] = doc("Tools switched on or off; use permission.", deprecated=True)
