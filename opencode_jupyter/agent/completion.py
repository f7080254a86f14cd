"""One answer of a model without tools or a session (`core.sampling.Completer`)."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from ..core.sampling import Completion, CompletionRequest, Media
from .events import Finish, TextDelta
from .masking import stream_masked
from .model import Request
from .models import resolve
from .turns import MediaPiece, Piece, TextPiece, Turn

if TYPE_CHECKING:
    from ..core.host import ToolHost


async def complete(workspace: ToolHost, model: str, request: CompletionRequest) -> Completion:
    """Ask a model of a workspace; see `core.sampling.Completer`."""
    resolved = await resolve(workspace, model)
    turns = [Turn(role, tuple(map(_piece, pieces))) for role, pieces in request.messages]
    wire = Request(
        system=(request.system,) if request.system else (),
        turns=turns,
        temperature=request.temperature,
        max_output=request.max_output,
        agent="sampling",
    )
    texts: list[str] = []
    reason = ""
    async with aclosing(stream_masked(workspace, resolved, wire)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                texts.append(event.text)
            elif isinstance(event, Finish):
                reason = event.reason
    return Completion("".join(texts), reason)


def _piece(content: str | Media) -> Piece:
    return MediaPiece(content.mime, content.data) if isinstance(content, Media) else TextPiece(content)
