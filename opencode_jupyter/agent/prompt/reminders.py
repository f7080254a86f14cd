"""Reminders for the model in the user's message: which agent answers now, and what that changes."""

from __future__ import annotations

from ...core.agents import Agent

LAST_STEP = (
    "This is your last turn for this request: the limit of turns is reached, and no further calls are possible. Answer "
    "in text: what is complete, what is not, and what should come next."
)
"""Said to a model whose next answer is the last that its agent's ``steps`` allow."""

PLAN = "plan"


def reminders(agent: Agent, previous: str | None = None, *, plan: str | None = None) -> list[str]:
    """Texts to put behind the user's text, as synthetic parts.

    `previous` is the agent that answered before in this session; `plan` is the path of the session's plan.
    """
    if agent.name == PLAN:
        exempt = f"the plan itself, in {plan}" if plan else "plan files (.opencode/plans/*.md)"
        text = (
            "Plan mode is on. Look, think and ask, but change nothing: no edits, no commands that write, no commits, "
            f"no installs, whatever else you were told. The one exception is {exempt}. End with a plan that somebody "
            "could carry out without asking: what changes where, in which order, how it is checked, what is open."
        )
        return [text]
    if previous == PLAN:
        text = "Plan mode is over: from now on you may change files and run commands, as far as the rules allow."
        if plan:
            text += f" The plan is in {plan}: read it if you do not have it before you, and carry it out."
        return [text]
    return []
