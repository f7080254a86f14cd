"""The protocol of models, which providers, scripts and recordings implement."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .events import Event, Usage
from .turns import Turn

if TYPE_CHECKING:
    from ..core.agents import Agent
    from ..core.host import ToolHost
    from ..core.sessions import Session


@dataclass(frozen=True, slots=True)
class Cost:
    """Prices in US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    def of(self, usage: Usage) -> float:
        """The cost of a request in US dollars; reasoning is charged as output."""
        return (
            usage.input * self.input
            + (usage.output + usage.reasoning) * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        ) / 1e6


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Information about a model: window, prices, what it accepts.

    Attributes:
        provider: its id, as in ``provider:model``.
        model: its id, as in ``provider:model``.
        api_id: the name the provider's API is given, where it differs from `model`.
        name: for people.
        context: tokens that fit into its window; 0 if not known (then nothing is compacted by size).
        output: most tokens of one answer; 0 if not known.
        images: it takes pictures.
        documents: it takes PDF files.
        media_in_results: a tool's result may hold pictures; where not, they follow in a message of the user's.
        reasons: it has reasoning that is shown.
        cost: None if not known.
    """

    provider: str
    model: str
    api_id: str = ""
    name: str = ""
    context: int = 0
    output: int = 0
    images: bool = True
    documents: bool = False
    media_in_results: bool = False
    reasons: bool = False
    cost: Cost | None = None

    @property
    def full(self) -> str:
        """``provider:model``."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is described to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of its arguments, already in the form that suits the model (`agent.models.tool_schema`)."""


@dataclass(slots=True)
class Request:
    """One request to a model.

    Attributes:
        system: paragraphs of the system prompt, the ones that change least first.
        turns: the conversation, oldest first.
        tools: what it may call, in order. The same list object is passed while the tools are the same.
        tool_choice: ``auto``, ``none``, ``required`` (some tool), or a tool's name.
        temperature: None for the provider's default.
        top_p: None for the provider's default.
        max_output: most tokens of the answer; None for the model's own limit.
        options: passed to the provider as they are (an agent's ``options``).
        session: the session's id, for caches on the provider's side and for recordings.
        agent: the name of the agent that asks (``build``, ``explore``, ``compaction``, ``title``).
        directory: the folder that the session works in; "" if there is none.
    """

    system: Sequence[str] = ()
    turns: Sequence[Turn] = ()
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    temperature: float | None = None
    top_p: float | None = None
    max_output: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    session: str = ""
    agent: str = ""
    directory: str = ""


def agent_request(workspace: ToolHost, session: Session, name: str, agent: Agent | None, **fields: Any) -> Request:
    """A request of an agent, with its settings; None for the agent if it is switched off."""
    settings: dict[str, Any] = {}
    if agent is not None:
        settings = {"temperature": agent.temperature, "top_p": agent.top_p, "options": agent.options}
    return Request(session=session.id, agent=name, directory=str(workspace.directory), **settings, **fields)


class Model(Protocol):
    """A model that can be asked."""

    @property
    def info(self) -> ModelInfo:
        """Information about the model."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask it. Closing the generator (or cancelling its reader) closes the connection at once.

        Raises:
            ModelError: from the generator; see `agent.errors` for its kinds. No other error of a provider's library
                gets out.
        """

    async def aclose(self) -> None:
        """Close its connections. Twice is harmless."""
