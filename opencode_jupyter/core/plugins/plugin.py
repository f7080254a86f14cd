"""A plugin that was started, or could not be."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..hooks import DEFINITION, Hook
from .contents import described
from .found import Found
from .listeners import Listener
from .offer import Offer
from .threads import off_loop

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plugin:
    """One plugin.

    Attributes:
        found: where it was.
        offer: what it gives; None if it failed, or has not come to an end yet.
        error: why there is no offer.
        listeners: its ``event`` hooks.
        module: what its file became; "" for a package's.
    """

    found: Found
    offer: Offer | None = None
    error: str = ""
    listeners: list[Listener] = field(default_factory=list)
    module: str = ""

    @property
    def name(self) -> str:
        """As a person reads it."""
        return self.found.name

    def trouble(self, said: str) -> None:
        """Keep and log what went wrong without ending anything."""
        log.warning("plugin %s: %s", self.name, said)
        if self.offer is not None and said not in self.offer.problems:
            self.offer.problems.append(said)

    def guarded(self, name: str, fn: Callable[..., Any]) -> Hook:
        """A hook of it, off the loop; one that words tools for a model never fails, for that would take all of them."""
        run = off_loop(fn)
        if name != DEFINITION:
            return run

        async def reword(input: dict[str, Any], output: dict[str, Any]) -> None:
            try:
                await run(input, output)
            except Exception as error:
                self.trouble(f"its hook {name} failed: {described(error)}")

        return reword
