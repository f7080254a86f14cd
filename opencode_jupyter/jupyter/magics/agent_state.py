"""What ``%agent`` has set for a notebook: who answers the next request, and which model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...agent.run import Run


@dataclass(slots=True)
class AgentState:
    """The choices.

    Attributes:
        name: the agent's key; "" for the session's own, or the default one.
        model: set by ``%agent -m``; "" for the session's, the agent's or the configuration's.
        last_model: the one that was asked last.
    """

    name: str = ""
    model: str = ""
    last_model: str = ""

    def used(self, run: Run) -> None:
        """A run is over: the next one goes to the agent that it ended with (a plan may have been approved)."""
        if run.session.agent:
            self.name = run.session.agent
        model = getattr(run, "model", None)
        if model is not None:
            wanted = run.options.model
            self.last_model = wanted if isinstance(wanted, str) else model.info.full
