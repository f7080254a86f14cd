"""Settled cards for pages that missed them: a reloaded page shows a live card, but not what takes its place.

Such a page asks for it on the control channel when it finds the live card gone.
"""

from __future__ import annotations

from typing import Any

from .display import Bundle

KEPT = 50
"""Cards kept, the last ones; each of a call has at most some 200 KB."""
CHARS = 20_000_000
"""Most characters of them together, by their HTML: a run's card can have some MB."""


class SettledCards:
    """What live cards became, by the id of their call."""

    def __init__(self) -> None:
        self._cards: dict[str, Bundle] = {}

    def keep(self, call_id: str, bundle: Bundle) -> None:
        """Keep a card's MIME bundle; the oldest goes."""
        self._cards[call_id] = bundle
        while len(self._cards) > 1 and (len(self._cards) > KEPT or self._size() > CHARS):
            del self._cards[next(iter(self._cards))]

    def _size(self) -> int:
        return sum(len(str(data.get("text/html", ""))) for data, _ in self._cards.values())

    def on_message(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Answer a page: ``cards`` (MIME bundles by call id) of those that are kept, and their ``metadata``.

        On the control thread.
        """
        wanted = asked.get("callIDs")
        names = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else []
        kept = {name: self._cards[name] for name in names if name in self._cards}
        return {
            "cards": {name: data for name, (data, _) in kept.items()},
            "metadata": {name: metadata for name, (_, metadata) in kept.items()},
        }
