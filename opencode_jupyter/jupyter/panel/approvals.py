"""The pending requests of this kernel as cards, for the panel of approvals; a busy kernel answers too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ..cards.approval_json import RequestView
from ..cards.call_json import Extras, card_part

if TYPE_CHECKING:
    from ..kernel.approvals import CardRequest
    from .service import Panel


def pending(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """The pending requests, oldest first.

    Returns:
        ``{"asks": [...]}``. Of each: ``id``, ``callID``, ``agent``; ``commID`` and ``key`` of the card in its cell;
        ``card``, the call's own card, with its request.
    """
    answer: dict[str, Any] = panel.on_engine(_pending, panel)
    return answer


def _pending(panel: Panel) -> dict[str, Any]:
    waiting = panel.notebook.broker.pending()
    for entry in waiting:
        entry.is_in_panel = True
    return {"asks": [_request_json(panel, entry, (number, len(waiting))) for number, entry in enumerate(waiting, 1)]}


def _request_json(panel: Panel, entry: CardRequest, position: tuple[int, int]) -> dict[str, Any]:
    workspace = panel.notebook.workspace
    call = workspace.calls.get(entry.call_id)
    view = RequestView(entry.request, entry.digest, position)
    card = entry.card
    fields: dict[str, Any] = {"id": entry.id, "callID": entry.call_id, "commID": card.comm_id, "key": card.key}
    if call is not None:
        fields["card"] = card_part(call.part, Extras(request=view, base=workspace.directory), live=True)
        fields["agent"] = getattr(entry.request, "agent", "")
    return fields


def stop(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Stop everything that runs in this kernel: ``{"stopped": number of cards}``."""
    return {"stopped": panel.notebook.broker.stop()}


def revise(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Have a call request approval again with other arguments: ``id`` of the request, its ``digest``, ``input``.

    Raises:
        ToolError: the arguments do not fit; the request stays pending.
    """
    arguments = request.get("input")
    if not isinstance(arguments, dict):
        raise ToolError("The arguments must be one JSON object")
    if not panel.on_engine(_revise, panel, str(request.get("id")), request.get("digest"), arguments):
        raise ToolError("This request has been answered already")
    return {}


async def _revise(panel: Panel, request_id: str, digest: Any, arguments: dict[str, Any]) -> bool:
    entry = next((entry for entry in panel.notebook.broker.pending() if entry.id == request_id), None)
    call = panel.notebook.workspace.calls.get(entry.call_id) if entry is not None else None
    if entry is None or call is None or digest != entry.digest:
        return False
    return await call.revise(request_id, arguments, by="control")


HANDLERS = {"asks": pending, "stop": stop, "revise": revise}
