"""Scores: what a scorer may return, and how it is asked."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.workspace import Workspace
    from .cases import Case

PASS = 0.5
"""From this value on a score passes, if nothing else is said."""

Scorer = Callable[["Case", Any, "Workspace"], Any]
"""A function of the case, the answer (`Answer`; the `Outcome` of a tool call) and the run's workspace, plain or async.
It returns a bool, a number, a `Score`, or a dict of names and these."""


@dataclass(frozen=True, slots=True)
class Score:
    """How good an answer is.

    Attributes:
        value: usually from 0 to 1.
        why: a word about it.
        passed: whether that is good enough; None: from `PASS` on.
        cost: US dollars that finding it out took.
    """

    value: float
    why: str = ""
    passed: bool | None = None
    cost: float = 0.0

    @property
    def good(self) -> bool:
        """True if it passes."""
        return self.value >= PASS if self.passed is None else self.passed


def scorers_of(given: Any) -> dict[str, Scorer]:
    """Scorers by name: a function, a list of them, or a dict with names of one's own.

    Raises:
        TypeError: one is no function, or makes scorers and was not called.
        ValueError: there is none, or two have the same name.
    """
    if isinstance(given, Mapping):
        named = [(str(name), scorer) for name, scorer in given.items()]
    else:
        several: Sequence[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
        named = [(_name(scorer), scorer) for scorer in several]
    if not named:
        raise ValueError("evaluate() needs at least one scorer, such as `exact`")
    for name, scorer in named:
        if not callable(scorer):
            raise TypeError(f"a scorer must be a function of (case, answer, workspace), not {scorer!r:.80}")
        if getattr(scorer, "makes_scorers", False):
            raise TypeError(f"{name} makes a scorer: call it, as in {name}(...)")
    names = [name for name, _ in named]
    double = {name for name in names if names.count(name) > 1}
    if double:
        raise ValueError(f"two scorers are named {', '.join(sorted(double))}: give a dict of names and scorers")
    return dict(named)


def _name(scorer: Any) -> str:
    return str(getattr(scorer, "__name__", "") or type(scorer).__name__)


async def score(name: str, scorer: Scorer, case: Case, answer: Any, workspace: Workspace) -> dict[str, Score]:
    """What a scorer says, by name: its own, or ``name.key`` for each key of a dict.

    Raises:
        TypeError: it returned nothing that can be a score.
    """
    if inspect.iscoroutinefunction(scorer) or inspect.iscoroutinefunction(getattr(scorer, "__call__", None)):  # noqa: B004
        outcome = await scorer(case, answer, workspace)
    else:
        outcome = await asyncio.to_thread(scorer, case, answer, workspace)
        if inspect.isawaitable(outcome):
            outcome = await outcome
    if isinstance(outcome, Mapping):
        return {f"{name}.{key}": _score(name, value) for key, value in outcome.items()}
    return {name: _score(name, outcome)}


def _score(name: str, value: Any) -> Score:
    if isinstance(value, Score):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"the scorer {name} must return a bool, a number, a Score or a dict, not {value!r:.80}"
        ) from None
    if math.isnan(number):
        raise TypeError(f"the scorer {name} returned no number (NaN)")
    return Score(number)
