"""Cards for calls that no cell's magic made: code began them by itself, and they ask.

`Workspace.call` goes through the notebook, so such a call has its card from the start. What is left are calls that
code runs on a loop of its own (``workspace.start(...).run()``, ``workspace.sessions.prompt(...)``): they get a card
when they ask the first time, so that nothing waits unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.state import ToolPart
from ...core.threads import call_soon
from ..cards.call_card import Card
from ..tools.capture_context import outside
from . import ipykernel_compat
from .waiting import HEARTBEAT

if TYPE_CHECKING:
    from ...core.call import Call
    from ..notebook import Notebook

Told = Callable[[ToolPart], None]


def both(first: Told | None, second: Told) -> Told:
    """Tell both of a change: who began the call may listen too."""
    if first is None:
        return second
    one = first

    def tell(part: ToolPart) -> None:
        one(part)
        second(part)

    return tell


def adopt(notebook: Notebook, call: Call) -> Card:
    """Give a call a card that shows its asks, until it ends. On the engine's thread.

    No cell waits for it that could lend its thread, so the card is shown from here, as the busy main thread can't.
    """
    card = Card(call, None, **notebook.card_options())

    def over() -> None:
        notebook.detach(card)
        if not ipykernel_compat.call_later_on_main(notebook.kernel, lambda: notebook.settle(card)):
            notebook.settle(card)

    def update(part: ToolPart) -> None:
        if call.part.outcome:
            over()
        else:
            card.update(part)

    def tell(part: ToolPart) -> None:
        call_soon(notebook.engine.loop, update, part)

    def beat() -> None:
        if not call.part.outcome and notebook.alive:
            notebook.wake_main()
            notebook.engine.loop.call_later(HEARTBEAT, beat)

    call.on_update = both(call.on_update, tell)
    beat()
    notebook.attach(card)
    if card.can_live:
        with outside():
            card.show()
    return card
