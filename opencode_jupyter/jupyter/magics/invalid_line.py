"""The card of a ``%tool`` line that is no valid call."""

from __future__ import annotations

import logging

from ...core import ids
from ...core.call_state import ERROR_CODE, Failed, ToolPart, error_code, now_ms
from ...core.errors import InvalidArgumentsError, ToolError, UnknownToolError, full_text
from ...workspace import Workspace
from ..cards.call_json import card_part
from ..cards.call_mimebundle import settled_bundle
from ..cards.display import show_bundle

log = logging.getLogger(__name__)


def show_refusal(workspace: Workspace, line: str, error: ToolError) -> bool:
    """Display a finished card with the typed line and the error. Never raises.

    Returns:
        Whether one is displayed; with ``-q`` none is.
    """
    if {"-q", "--quiet"} & set(line.split()):
        return False
    name = error.name if isinstance(error, UnknownToolError) else getattr(error, "tool", "")
    outcome = "invalid arguments" if isinstance(error, InvalidArgumentsError) else "failed"
    typed = line.strip()
    tool = name or (typed.split() or ["tool"])[0]
    rest = typed.removeprefix(tool).strip()
    now = now_ms()
    text, code = full_text(error, for_person=True), {ERROR_CODE: error_code(error)}
    part_id = ids.create("part")
    session = workspace.sessions.default
    part = ToolPart(
        part_id,
        session.id,
        session.message_id or ids.create("message"),
        part_id,
        tool,
        workspace.masked(Failed({"line": rest} if rest else {}, now, now, text, code)),
        outcome=outcome,
    )
    try:
        show_bundle(settled_bundle(card_part(part)))
    except Exception:  # the error itself is on its way to the cell
        log.debug("the card of a refused line could not be shown", exc_info=True)
        return False
    return True
