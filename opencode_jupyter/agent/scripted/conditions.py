"""``when:`` of a script: what must be true of the last results, the prompt or the agent for a turn to be said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .seen import Prompt, Result


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a conversation stands: the prompt, what the last calls gave, who answers with which tools."""

    prompt: Prompt
    results: Sequence[Result]
    agent: str = ""
    tools: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class When:
    """All that is given must hold.

    Attributes:
        result: regular expressions; each is found in the text of one of the last results.
        contains: texts; each stands in one of the last results.
        outcome: one of the last results ended in one of these ways (`seen.OUTCOMES`).
        tool: only results of these tools are looked at; there must be one.
        call: only the result with this number is looked at, from 0.
        prompt: regular expressions, found in the prompt.
        number: which prompt of the conversation it is, from 1.
        agent: who answers.
        offered: tools that the model may call.
        never: conditions none of which may hold.
        any: conditions one of which must hold.
    """

    result: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    call: int | None = None
    prompt: tuple[str, ...] = ()
    number: tuple[int, ...] = ()
    agent: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    never: tuple[When, ...] = ()
    any: tuple[When, ...] = ()

    def holds(self, moment: Moment) -> dict[str, str] | None:
        """The named groups that were caught, or None if it does not hold."""
        if self.number and moment.prompt.number not in self.number:
            return None
        if self.agent and moment.agent not in self.agent:
            return None
        if not set(self.offered) <= set(moment.tools):
            return None
        caught: dict[str, str] = {}
        if not catch(self.prompt, [moment.prompt.whole], caught) or not self._results_hold(moment.results, caught):
            return None
        if any_of(self.never, moment) is not None:
            return None
        if self.any:
            more = any_of(self.any, moment)
            return None if more is None else caught | more
        return caught

    def _results_hold(self, results: Sequence[Result], caught: dict[str, str]) -> bool:
        if self.call is not None:
            results = results[self.call : self.call + 1]
        if self.tool:
            results = [result for result in results if result.tool in self.tool]
        if not results and (self.call is not None or self.tool):
            return False
        texts = [result.output for result in results]
        if not all(any(wanted in text for text in texts) for wanted in self.contains):
            return False
        if self.outcome and not any(result.is_(outcome) for result in results for outcome in self.outcome):
            return False
        return catch(self.result, texts, caught)


def any_of(conditions: Sequence[When], moment: Moment) -> dict[str, str] | None:
    """What the first condition that holds has caught; None if none does."""
    return next((caught for one in conditions if (caught := one.holds(moment)) is not None), None)


def catch(patterns: Sequence[str], texts: Sequence[str], caught: dict[str, str]) -> bool:
    """Return whether each regular expression is found in one of the texts; their named groups go into `caught`."""
    for pattern in patterns:
        compiled = re.compile(pattern, re.MULTILINE)  # kept by re itself
        found = next((match for text in texts if (match := compiled.search(text))), None)
        if found is None:
            return False
        caught.update({name: value for name, value in found.groupdict().items() if value is not None})
    return True
