"""What a script says to requests that are not about its lesson: a session's title, a summary of what was done."""

from __future__ import annotations

from .parts import Say, Words
from .script import shown
from .seen import Seen

TITLE = "title"
SUMMARIES = ("compaction", "summary")
"""Agents that sum up a conversation."""
LONGEST_TITLE = 50


def answer(seen: Seen) -> Say | None:
    """The answer to such a request, made of the conversation; None if it is none.

    A script can say something else under ``agents:``.
    """
    if seen.agent == TITLE:
        lines = seen.prompts[0].text.strip().splitlines() if seen.prompts else []
        return Say((Words(shown(lines[0].strip(), LONGEST_TITLE) if lines else "Conversation"),))
    if seen.agent not in SUMMARIES:
        return None
    told = ["What was done, as the scripted model puts it:"]
    for prompt in seen.prompts[:-1] or seen.prompts:
        told.append(f"- asked: {shown(' '.join(prompt.text.split()), 200)}")
        told += [f"  - {result.tool}: {result.outcome}" for step in prompt.steps for result in step.results]
    return Say((Words("\n".join(told)),))
