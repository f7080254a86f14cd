"""The contract of a run's card; see `contract`."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

from .contract import LIVE, CardPart, TailUpdate

RunStatus = TypeAliasType(
    "RunStatus",
    Literal["waiting", "working", "retrying", "compacting", "done", "rejected", "stopped", "failed"],
)


class WordsItem(TypedDict):
    """Text: the model's answer, its reasoning, a summary of the conversation, or a note of ours."""

    kind: Literal["text", "reasoning", "summary", "note"]
    """Which of them."""
    id: str
    """The part's id."""
    text: str
    """The text so far."""
    done: NotRequired[bool]
    """It is complete."""


class CallItem(TypedDict):
    """A tool call, without the calls inside it."""

    kind: Literal["call"]
    """The item's kind."""
    id: str
    """The call's id."""
    parent: NotRequired[str]
    """The id of the call inside which it was made (task, batch)."""
    part: CardPart
    """The call's card."""


class GoneItem(TypedDict):
    """An item that was withdrawn: a stream broke off and is requested again. No notebook keeps it."""

    kind: Literal["gone"]
    """The item's kind."""
    id: str
    """Its id."""


RunItem = TypeAliasType("RunItem", WordsItem | CallItem | GoneItem)


class RunRetry(TypedDict):
    """A run that waits before it requests the model again."""

    attempt: int
    """Which attempt failed, from 1."""
    message: str
    """Why it failed."""
    next: float
    """When the next one begins, in milliseconds since 1970."""


class RunEnd(TypedDict):
    """The last line of a run that did not just end well."""

    tone: Literal["err", "ask", "off"]
    """Its colour."""
    text: str
    """What happened."""
    advice: NotRequired[str]
    """What to do."""


class RunHead(TypedDict):
    """A run without its items."""

    v: Literal[1]
    """Version of this contract."""
    id: str
    """The card's id."""
    sessionID: str
    """The session's id."""
    title: NotRequired[str]
    """The session's title."""
    agent: str
    """The agent's name."""
    model: str
    """`provider:model`."""
    mode: NotRequired[str]
    """The session's permission mode, if it is not the default one."""
    status: RunStatus
    """How far the run is."""
    outcome: NotRequired[str]
    """How a stopped run ended: `stopped`, `interrupted`, or `ended` with its kernel."""
    step: int
    """How many times the model was requested."""
    tokens: int
    """Tokens of all requests."""
    cost: NotRequired[float]
    """US dollars; absent: not known."""
    started: int
    """When it began, in milliseconds since 1970 (the kernel's clock)."""
    ended: NotRequired[int]
    """When it ended, in milliseconds since 1970 (the kernel's clock)."""
    waited: NotRequired[int]
    """Milliseconds that its calls waited for a person."""
    retry: NotRequired[Annotated[RunRetry, LIVE]]
    """What it waits for before the next request."""
    end: NotRequired[RunEnd]
    """What to report at the end."""


class RunPart(RunHead):
    """One run: `application/vnd.opencode.run.v1+json` in a saved notebook, the trait `run` of a live card.

    The ids and times of a saved run are in its output's metadata (`saved.split_run`).
    """

    items: list[RunItem]
    """What it shows, in order."""


class RunUpdate(TypedDict):
    """What has changed."""

    kind: Literal["run"]
    """The message's kind."""
    head: RunHead
    """The run without its items."""
    items: NotRequired[list[tuple[int, RunItem]]]
    """Items, new or changed, by their index."""
    deltas: NotRequired[list[tuple[int, int, str]]]
    """Index of a text, its length before, and what was added to it."""
    tails: NotRequired[list[tuple[int, TailUpdate]]]
    """Index of a running call, and the new end of its output."""


class RunWhole(TypedDict):
    """The whole, for a page that may have missed something."""

    kind: Literal["whole"]
    """The message's kind."""
    run: RunPart
    """The run."""
