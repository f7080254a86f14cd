"""What a client gets back: a call's end as the protocol's result.

Text and attachments are content. Title and metadata go into ``_meta``, not into ``structuredContent``: clients that
find the latter show their model that alone, and the text, which is what a tool says to a model, would be lost.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcp import types

from ..core.repair import INVALID
from ..core.state import Completed, Failed

if TYPE_CHECKING:
    from ..core.result import Attachment
    from ..core.state import ToolPart
    from .outputs import Outputs

TITLE, METADATA = "opencode/title", "opencode/metadata"
"""Keys of a result's ``_meta``."""
SMALL, SMALL_ENTRY = 4096, 1024
"""Characters of JSON that metadata may take, and each entry of it; what is larger repeats the text, and is left out."""
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take as pictures; others are embedded files."""


def result_of(part: ToolPart, outputs: Outputs) -> types.CallToolResult:
    """The result of a call that has ended.

    Args:
        part: its state.
        outputs: remembers the whole output behind a cut one.
    """
    state = part.state
    if isinstance(state, Completed):
        content: list[types.ContentBlock] = [types.TextContent(text=state.output)]
        content += [_content(one) for one in state.attachments]
        link = None if part.result is None else outputs.link(part.result)
        if link is not None:
            content.append(link)
        meta: dict[str, Any] = {TITLE: state.title}
        if small := _small(state.metadata):
            meta[METADATA] = small
        return types.CallToolResult(content=content, is_error=part.tool == INVALID, _meta=meta)
    error = state.error if isinstance(state, Failed) else "The call did not end"
    return failed(error)


def failed(text: str) -> types.CallToolResult:
    """A call that ended with an error: the model reads why, and its turn goes on."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _content(one: Attachment) -> types.ContentBlock:
    name = one.filename or one.id or "attachment"
    try:
        data = one.data
    except ValueError:
        return types.ResourceLink(uri=one.url, name=name, mime_type=one.mime)
    encoded = base64.b64encode(data).decode()
    if one.mime in PICTURES:
        return types.ImageContent(data=encoded, mime_type=one.mime)
    if one.mime.startswith("audio/"):
        return types.AudioContent(data=encoded, mime_type=one.mime)
    address = f"attachment:{quote(one.id)}/{quote(name)}"
    return types.EmbeddedResource(resource=types.BlobResourceContents(uri=address, mime_type=one.mime, blob=encoded))


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    """The entries that are JSON and small, as long as all together are."""
    kept: dict[str, Any] = {}
    room = SMALL
    for key, value in metadata.items():
        try:
            size = len(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue
        if size <= min(room, SMALL_ENTRY):
            kept[key] = value
            room -= size
    return kept
