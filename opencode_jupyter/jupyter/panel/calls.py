"""The calls of this kernel for the timeline: those of the store since the page's last answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ..cards.labels import label_of_wire, project_folder

if TYPE_CHECKING:
    from .service import Panel

MOST = 10_000
"""Most calls of one answer, the newest: some 3 MB."""


def calls(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """The calls and their sessions; ``since`` is that of the last answer, 0 for all.

    Returns:
        ``calls`` (as `core.store.queries` has them; a wait that goes on has no end),
        ``since``, ``sessions`` (titles by id), ``now`` (the kernel's clock in Unix milliseconds).
    """
    since = request.get("since")
    # from now on: notifications cost nothing until a page asks for calls
    panel.watch("message.part.updated", "calls")
    answer: dict[str, Any] = panel.on_engine(_calls, panel, since if isinstance(since, int) else 0)
    return answer


async def _calls(panel: Panel, since: int) -> dict[str, Any]:
    workspace = panel.notebook.workspace
    if workspace.store is None:
        raise ToolError("This workspace keeps no history of calls (it was opened without a store).")
    log = await workspace.store.own_calls(since, MOST)
    waiting = _waiting(panel)
    for call in log["calls"]:
        part = call.pop("part", None)
        if part is not None:
            call["title"] = label_of_wire(part, workspace.directory, project_folder(workspace))
        call["waits"] += waiting.get(call["id"], [])
    session_ids = {call["session"] for call in log["calls"]}
    titles = {}
    for session_id in session_ids:
        info = await workspace.store.session(session_id)
        titles[session_id] = {"title": (info or {}).get("title") or "", "parent": (info or {}).get("parentID")}
    return {**log, "sessions": titles, "now": time.time_ns() // 1_000_000}


def _waiting(panel: Panel) -> dict[str, list[tuple[int, None]]]:
    """Present waits for a person, by the ids of the calls' parts: each a start without an end."""
    waits: dict[str, list[tuple[int, None]]] = {}
    for entry in panel.notebook.broker.pending():
        call = panel.notebook.workspace.calls.get(entry.call_id)
        if call is not None:
            waits.setdefault(call.part.id, []).append((entry.request.asked, None))
    return waits


HANDLERS = {"calls": calls}
