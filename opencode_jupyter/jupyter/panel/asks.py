"""What waits for a person in this kernel, as cards: for the panel of asks, whatever keeps the kernel busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..view import Extras, card_part
from ..view_asks import AskView

if TYPE_CHECKING:
    from ..approvals import Ask
    from .service import Panel


def pending(panel: Panel, asked: dict[str, Any]) -> dict[str, Any]:
    """What waits, oldest first.

    Returns:
        ``{"asks": [...]}``. Of each: ``id``, ``callID``, ``agent``; ``commID`` and ``key`` of the card in its cell;
        ``card``, the call's own card, with its ask.
    """
    answer: dict[str, Any] = panel.on_engine(_pending, panel)
    return answer


def _pending(panel: Panel) -> dict[str, Any]:
    waiting = panel.notebook.broker.pending()
    return {"asks": [_one(panel, ask, (place, len(waiting))) for place, ask in enumerate(waiting, 1)]}


def _one(panel: Panel, ask: Ask, position: tuple[int, int]) -> dict[str, Any]:
    workspace = panel.notebook.workspace
    call = workspace.calls.get(ask.call_id)
    view = AskView(ask.request, ask.digest, position)
    found: dict[str, Any] = {"id": ask.id, "callID": ask.call_id, "commID": ask.card.comm_id, "key": ask.card.key}
    if call is not None:
        found["card"] = card_part(call.part, Extras(asks=view, base=workspace.directory), live=True)
        found["agent"] = getattr(ask.request, "agent", "")
    return found


def stop(panel: Panel, asked: dict[str, Any]) -> dict[str, Any]:
    """Stop all that runs in this kernel: ``{"stopped": how many cards}``."""
    return {"stopped": panel.notebook.broker.stop()}


HANDLERS = {"asks": pending, "stop": stop}
