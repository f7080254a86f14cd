"""The cards of a notebook: made with its settings, shown while their work is running, settled when it ends."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from ...core.threads import call_soon
from ..cards.call_card import CallCard, widget_class
from ..cards.display import SettledCards, outside_capture
from .ipykernel_compat import has_no_cell
from .waiting import HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.call import Call
    from ...core.call_state import ToolPart
    from ..cards.display import LiveDisplay
    from ..settings import Settings
    from .approvals import Broker
    from .engine import Engine
    from .link import KernelLink

log = logging.getLogger(__name__)


class CardHost:
    """Attaches cards to the broker, and knows whether a person can see them.

    Args:
        link: the kernel's connection.
        engine: where calls run.
        settings: the person's settings.

    Attributes:
        broker: shows requests for approval on the cards; set by the notebook.
        settled: the MIME bundles that replaced live cards, for pages that missed them.
    """

    broker: Broker

    def __init__(self, link: KernelLink, engine: Engine, settings: Settings) -> None:
        self._link = link
        self._engine = engine
        self._settings = settings
        self._accepts_input: dict[str, bool] = {}
        """By card: whether the client that ran its cell answers `input()`."""
        self.settled = SettledCards()

    def options(self) -> dict[str, Any]:
        """The options of every card of this notebook."""
        return {
            "on_message": self.broker.on_message,
            "kernel_id": self._link.kernel_id,
            "live": False,
            "live_after": self._settings.card_after,
            "durations": self._link.kernel is None,  # nobody saves what a terminal shows
        }

    def add_call(self, call: Call, **options: Any) -> CallCard:
        """A card for a call; see `CallCard`."""
        card = CallCard(call, **options, **self.options())
        call.on_update = compose(call.on_update, card.update)
        self.attach(card)
        return card

    def attach(self, card: LiveDisplay) -> None:
        """Start of a card's work: its requests for approval are shown on it."""
        link, accepts_input = self._link, self._link.accepts_input
        self._accepts_input[card.key] = accepts_input
        shows_cards = link.kernel is not None and self._settings.cards and self.is_card_attended(card)
        card.can_live = shows_cards and _has_widgets()
        in_console = accepts_input and has_no_cell(link.kernel)
        if in_console and not self.broker.has_page and link.kernel_id.isdigit():
            card.can_live = False  # a console's own kernel, which it names by its process: it draws no widgets
        card.may_be_unseen = lambda: in_console and not self.broker.has_page
        self.broker.attach(card)

    def detach(self, card: LiveDisplay) -> None:
        """Forget a card whose work has ended. On any thread."""
        self.broker.detach(card)
        self._accepts_input.pop(card.key, None)

    def end(self, card: LiveDisplay) -> None:
        """Settle a card whose work and whose cell's wait have ended; on the thread that waits."""
        self.detach(card)
        self.settle(card)

    def end_later(self, card: LiveDisplay) -> None:
        """Settle a card without a waiting cell, whose work has ended, on the main thread. On any thread."""
        self.detach(card)
        if not self._link.call_later(lambda: self.settle(card)):
            self.settle(card)

    def settle(self, card: LiveDisplay) -> None:
        """Put the finished card in place of the live one; on the thread that waits."""
        try:
            is_live = card.is_shown
            card.settle()  # first: it holds interrupts off
            if is_live:
                self.settled.keep(card.key, card.bundle())
        except Exception:  # a card that can't be drawn must not hide the call's result
            log.exception("the card %s could not be settled", card.key)

    def show_in_background(self, card: LiveDisplay) -> None:
        """Show a live card for which no cell waits."""
        if card.can_live and not card.quiet:
            with outside_capture():
                card.show()

    def show_call(self, call_id: str) -> None:
        """Show a call's live card (or that of the call it is part of) though the main thread is busy with its work."""
        card = self.broker.card_of(call_id)
        if card is not None:
            self.show_in_background(card)

    def add_late_card(self, call: Call) -> CallCard:
        """Add a card for a call without one that requests approval, until it ends. On the engine's thread.

        `Workspace.call` goes through the notebook, so such a call has its card from the start. What is left are calls
        that code runs on a loop of its own (``workspace.start(...).run()``). No cell waits for them that could lend its
        thread, so the card is shown from here.
        """
        card = CallCard(call, None, **self.options())

        def update(part: ToolPart) -> None:
            if call.part.outcome:
                self.end_later(card)
            else:
                card.update(part)

        def beat() -> None:
            if not call.part.outcome and self._engine.alive:
                self._link.wake_main()
                self._engine.loop.call_later(HEARTBEAT, beat)

        def report(part: ToolPart) -> None:
            call_soon(self._engine.loop, update, part)

        call.on_update = compose(call.on_update, report)
        beat()
        self.attach(card)
        self.show_in_background(card)
        return card

    # ------------------------------------------------------------------ whether a person is present

    def is_attended(self, accepts_input: bool | None = None) -> bool:
        """Whether a person may be present.

        A client that takes no input need not be an unattended run: a server may run the cells of an open page. So a
        page or card that has reported counts, and a server's kernel is given the time that a page takes to report.

        Args:
            accepts_input: whether the client that runs the cell does; left out, the one that runs a cell now.
        """
        accepts_input = self._link.accepts_input if accepts_input is None else accepts_input
        return accepts_input or self.broker.has_page or bool(self._link.kernel_id)

    def is_card_attended(self, card: LiveDisplay) -> bool:
        """Whether a person may be present where a card's cell was run."""
        return self.is_attended(self.can_prompt(card))

    def can_prompt(self, card: LiveDisplay) -> bool:
        """Whether the client that ran a card's cell answers `input()`."""
        return self._accepts_input.get(card.key, False)

    def needs_whole_error(self, card: LiveDisplay) -> bool:
        """Whether the cell's error needs the whole text: no card has it, or nobody watches."""
        return (card.quiet and not card.is_shown) or not self.is_attended(self._accepts_input.get(card.key))


def compose(first: Callable[[ToolPart], None] | None, second: Callable[[ToolPart], None]) -> Callable[[ToolPart], None]:
    """Report a change to both: the caller may have its own listener."""
    if first is None:
        return second
    listener = first

    def report(part: ToolPart) -> None:
        listener(part)
        second(part)

    return report


def _has_widgets() -> bool:
    """Whether live cards can be made; looks without importing anything heavy."""
    if "anywidget" in sys.modules:
        return widget_class() is not None
    from importlib.util import find_spec

    return find_spec("anywidget") is not None
