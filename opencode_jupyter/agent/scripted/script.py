"""A script as data, and the walk through it: which turn of it comes next in a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .conditions import Moment, When, catch
from .parts import Call, Say, Thought, Words
from .seen import Prompt, Seen
from .templates import Scope, TemplateError, expand, expand_json, expand_value

MOST_JUMPS = 1000
"""Jumps without a turn after which a script is taken to go in circles."""
SHOWN = 300
"""Characters of a text that a message shows."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Turns of which the first that fits is said."""

    of: tuple[Say, ...]
    place: str = ""


Item = Say | Cases


@dataclass(frozen=True, slots=True)
class Block:
    """The turns that answer one prompt.

    Attributes:
        prompt: the prompt's text; None if any will do.
        when: what else must hold of the prompt.
        labels: where in `items` each label stands.
        info: what a recorder keeps with the block.
    """

    items: tuple[Item, ...]
    prompt: str | None = None
    when: When | None = None
    labels: dict[str, int] = field(default_factory=dict)
    place: str = ""
    info: dict[str, Any] = field(default_factory=dict)

    def fits(self, prompt: Prompt, seen: Seen, *, plain: Any = str) -> dict[str, str] | None:
        """What its condition has caught of the prompt; None if it is not meant for it."""
        if self.prompt is not None:
            wanted = _folded(plain(self.prompt))
            if wanted not in {_folded(plain(text)) for text in (*prompt.texts, prompt.whole)}:
                return None
        return {} if self.when is None else self.when.holds(Moment(prompt, (), seen.agent, seen.tools))

    @property
    def conditional(self) -> bool:
        """True if it is meant for some prompts only."""
        return self.prompt is not None or self.when is not None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The turn that comes next.

    Attributes:
        said: it, its templates filled in.
        before: the turn before it in this prompt, as the script has it; None for the first.
        place: of the block they stand in.
        prompt_differs: in a recording: the prompt was another then.
    """

    said: Say
    before: Say | None
    place: str = ""
    prompt_differs: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A block for a prompt, and what its condition caught."""

    block: Block
    caught: dict[str, str]
    differs: bool = False


def choose(blocks: Sequence[Block], seen: Seen, *, recorded: bool = False, plain: Any = str) -> Choice | None:
    """The block for the last prompt of a conversation.

    Blocks with a condition go before those without. Of several that fit, each serves one prompt after the other, and
    the last one all that follow: so the same words can be said twice, and a cell can run again.

    Args:
        blocks: in the script's order.
        seen: the conversation.
        recorded: where none fits, the one with the prompt's number does.
        plain: what makes two prompts comparable.
    """
    used: set[int] = set()
    chosen: Choice | None = None
    for prompt in seen.prompts:
        fitting = [
            (index, caught)
            for index, block in enumerate(blocks)
            if (caught := block.fits(prompt, seen, plain=plain)) is not None
        ]
        fitting = [one for one in fitting if blocks[one[0]].conditional] or fitting
        chosen = None
        if fitting:
            index, caught = next((one for one in fitting if one[0] not in used), fitting[-1])
            used.add(index)
            chosen = Choice(blocks[index], caught)
        elif recorded and prompt.number <= len(blocks):
            chosen = Choice(blocks[prompt.number - 1], {}, differs=True)
    return chosen


class Walk:
    """One way through a block's turns, along what the conversation holds."""

    def __init__(self, name: str, choice: Choice, seen: Seen, scope: Scope) -> None:
        self._name = name
        self._block = choice.block
        self._seen = seen
        self._scope = scope
        scope.variables.update(choice.caught)
        self._differs = choice.differs
        self._at = 0

    def next(self, failures: int = 0) -> Chosen:
        """The turn that comes after those the conversation holds.

        Args:
            failures: how often the request has failed already as the script wanted.

        Raises:
            ModelError: kind ``script``: no turn is left, none fits, or a template has no value.
        """
        prompt = self._scope.prompt
        before: Say | None = None
        for step in prompt.steps:
            before = self._turn(passed=True)
            self._scope.results = step.results
            if before.label:
                self._scope.labelled[before.label] = step.results
        said = self._turn(failures=failures)
        self._scope.round = said.round
        return Chosen(self._filled(said), before, self._block.place, self._differs)

    def _turn(self, *, passed: bool = False, failures: int = 0) -> Say:
        """The next turn, and the place moved behind it; failures leave none, so those passed are not looked for."""
        for _ in range(MOST_JUMPS + len(self._block.items)):
            if self._at >= len(self._block.items):
                raise self._over()
            item = self._block.items[self._at]
            fitting = self._fitting(item)
            self._at += 1
            if fitting is None:
                continue
            if fitting.fails:
                times = fitting.failure.times if fitting.failure is not None else None
                if passed or (times is not None and failures >= times):
                    failures -= times or 0
                    continue
                return fitting
            if fitting.goto:
                self._at = self._block.labels[fitting.goto]
            if not fitting.jumps:
                return fitting
        raise self._error(f"goto leads in a circle without a turn at {self._block.items[self._at].place}")

    def _fitting(self, item: Item) -> Say | None:
        if isinstance(item, Say):
            return item if self._holds(item) else None
        for one in item.of:
            if self._holds(one):
                return one
        results = self._results()
        raise self._error(f"none of the cases ({item.place}) fits. {results} Add a case without when: for all others.")

    def _holds(self, said: Say) -> bool:
        moment = Moment(self._scope.prompt, self._scope.results, self._seen.agent, self._seen.tools)
        caught = {} if said.when is None else said.when.holds(moment)
        if caught is None:
            return False
        texts = [result.output for result in moment.results]
        for pattern in said.capture:
            if not catch([pattern], texts, caught):
                raise self._error(f"capture: {pattern!r} ({said.place}) is not found. {self._results()}")
        self._scope.variables.update(caught)
        return True

    def _filled(self, said: Say) -> Say:
        try:
            parts = tuple(self._filled_part(part) for part in said.parts)
        except TemplateError as error:
            raise self._error(f"{error} ({said.place})") from error
        return replace(said, parts=parts)

    def _filled_part(self, part: Any) -> Any:
        if isinstance(part, (Words, Thought)):
            return type(part)(expand(part.text, self._scope))
        if isinstance(part.arguments, str):
            return Call(part.tool, expand_json(part.arguments, self._scope), part.id)
        return Call(part.tool, expand_value(part.arguments, self._scope), part.id)

    # ------------------------------------------------------------------ what went wrong

    def _error(self, message: str) -> ModelError:
        return ModelError(f"The script {self._name}: {message}", "script", provider="scripted")

    def _over(self) -> ModelError:
        prompt, items = self._scope.prompt, self._block.items
        wanted = len(prompt.steps) + 1
        where = f" (the last is at {items[-1].place})" if items and items[-1].place else ""
        plural = "s" * (len(items) != 1)
        return self._error(
            f"turn {wanted} of prompt {prompt.number} ({shown(prompt.text, 60)!r}) was wanted, but only "
            f"{len(items)} turn{plural} stand{'' if plural else 's'} there{where}. {self._results()} "
            "Add a turn; one without calls ends the answer."
        )

    def _results(self) -> str:
        results = self._scope.results
        if not results:
            return "There are no results yet."
        told = "; ".join(f"{result.tool} {result.outcome}: {shown(result.output)!r}" for result in results[:5])
        return f"The last results: {told}."


def labels_of(items: Iterable[Item]) -> dict[str, int]:
    """Where each label stands first; those within cases are places of the cases."""
    found: dict[str, int] = {}
    for index, item in enumerate(items):
        for one in (item,) if isinstance(item, Say) else item.of:
            if one.label:
                found.setdefault(one.label, index)
    return found


@dataclass(frozen=True, slots=True)
class Body:
    """The turns of a script, or of one of its agents."""

    blocks: tuple[Block, ...]
    flat: bool = False
    """True if it is one list of turns for any prompt."""
    recorded: bool = False

    def next(self, name: str, seen: Seen, scope: Scope, failures: int, plain: Any = str) -> Chosen:
        """The turn that comes next.

        Raises:
            ModelError: kind ``script``: no block is meant for the prompt, or what `Walk.next` says.
        """
        choice = choose(self.blocks, seen, recorded=self.recorded, plain=plain)
        if choice is None:
            raise ModelError(self._nothing(name, scope.prompt), "script", provider="scripted")
        return Walk(name, choice, seen, scope).next(failures)

    def _nothing(self, name: str, prompt: Prompt) -> str:
        there = [f"{block.place}: {_condition(block)}" for block in self.blocks]
        what = f"no entry of prompts: is meant for prompt {prompt.number}, {shown(prompt.text, 120)!r}"
        return f"The script {name}: {what}. There are:\n" + "\n".join(there)


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script.

    Attributes:
        name: for messages.
        main: for every agent that is not in `agents`.
        agents: turns of agents of their own.
        model: what `ModelInfo` is to say, by the names of its attributes.
        speed: milliseconds between two pieces; None for the default.
        strict: a replay that differs from the recording is an error.
        variables: for templates.
        spawned: agents that `main` hands work to by calls of ``task``.
        recording: what a recorder keeps of itself; None for a script by hand.
    """

    name: str
    main: Body
    agents: dict[str, Body] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    speed: float | None = None
    strict: bool = False
    variables: dict[str, Any] = field(default_factory=dict)
    spawned: frozenset[str] = frozenset()
    recording: dict[str, Any] | None = None
    path: Path | None = None

    def speaks_for(self, agent: str) -> bool:
        """Return whether it has turns for this agent alone."""
        return agent in self.agents

    def body(self, agent: str) -> Body:
        """The turns of an agent.

        Raises:
            ModelError: kind ``script``: it works for another one, and the script has no turns for it.
        """
        if agent in self.agents:
            return self.agents[agent]
        if self.main.flat and agent in self.spawned:
            raise ModelError(
                f"The script {self.name} hands work to the agent {agent} but has no turns for it. "
                f"Add them under agents: {agent}:",
                "script",
                provider="scripted",
            )
        return self.main


def shown(text: str, most: int = SHOWN) -> str:
    """A text as a message shows it."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _condition(block: Block) -> str:
    if block.prompt is not None:
        return f"prompt {shown(_folded(block.prompt), 80)!r}"
    when = block.when
    if when is None:
        return "any prompt"
    told = [f"match {pattern!r}" for pattern in when.prompt]
    told += [f"number {', '.join(map(str, when.number))}"] if when.number else []
    told += [f"agent {', '.join(when.agent)}"] if when.agent else []
    return ", ".join(told) or "a condition"
