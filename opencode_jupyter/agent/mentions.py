"""``@agent`` in a prompt: the person names the sub-agent that is to do it (docs/opencode/core.md 2, 6.6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.messages import Message, new_part

if TYPE_CHECKING:
    from ..core.host import ToolHost

_MENTION = re.compile(r"(?<![\w@./`])@([A-Za-z][\w./-]*)")


def mention_parts(workspace: ToolHost, message: Message, text: str) -> list[dict[str, Any]]:
    """The parts for the sub-agents that a prompt names: OpenCode's ``agent`` part, and what it means in words.

    Other words behind an ``@`` (decorators, addresses) are left alone.
    """
    parts: list[dict[str, Any]] = []
    for found in _MENTION.finditer(text):
        name = found[1].rstrip(".-/")
        agent = workspace.agents.get(name)
        if agent is None or agent.mode == "primary" or any(part.get("name") == name for part in parts):
            continue
        source = {"value": f"@{name}", "start": found.start(), "end": found.start() + len(name) + 1}
        parts.append(new_part(message, "agent", name=name, source=source))
    if parts:
        names = ", ".join(part["name"] for part in parts)
        said = (
            f"The user wants a sub-agent to do this: call the task tool with subagent_type {names} and write its prompt"
        )
        parts.append(new_part(message, "text", text=said, synthetic=True))
    return parts
