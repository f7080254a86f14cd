"""A server's result as a tool's result (docs/opencode/core.md 6.4, steps 5 to 7)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..core.result import Attachment, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(?:;\s*[\w.+=-]+)*")
OCTETS = "application/octet-stream"


def result_of(given: CallToolResult) -> ToolResult:
    """Texts joined by a blank line; pictures, sounds and files as attachments; rows where the result is a table."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for item in given.content:
        if item.type == "text":
            texts.append(item.text)
        elif item.type in ("image", "audio"):
            attachments.append(_attachment(item.mime_type, item.data))
        elif item.type == "resource_link":
            said = [f"{item.title or item.name}: {item.uri}", item.description or ""]
            texts.append(" - ".join(word for word in said if word))
        elif item.type == "resource":
            text = getattr(item.resource, "text", None)
            if isinstance(text, str):
                texts.append(text)
            else:
                blob = getattr(item.resource, "blob", "")
                attachments.append(_attachment(item.resource.mime_type, blob, str(item.resource.uri)))
    metadata: dict[str, Any] = {}
    extra = (given.model_extra or {}).get("metadata")
    if isinstance(extra, dict):
        metadata.update(extra)
        for name in ("truncated", "outputPath"):  # only the pipeline says these
            metadata.pop(name, None)
    structured = given.structured_content
    if structured is not None:
        metadata["structuredContent"] = structured
        if not texts:
            texts.append(json.dumps(structured, indent=2, ensure_ascii=False))
    return ToolResult(output="\n\n".join(texts), metadata=metadata, attachments=attachments, records=_rows(structured))


def error_of(given: CallToolResult) -> str:
    """What a result that is an error says."""
    return result_of(given).output or "the tool failed without a message"


def _attachment(mime: str | None, data: str, filename: str | None = None) -> Attachment:
    kind = mime if mime and _MIME.fullmatch(mime) else OCTETS
    return Attachment(kind, f"data:{kind};base64,{data}", filename)


def _rows(structured: Any) -> list[dict[str, Any]] | None:
    """The rows of a table: a list of objects, alone or as the only entry of an object."""
    if isinstance(structured, dict) and len(structured) == 1:
        structured = next(iter(structured.values()))
    if isinstance(structured, list) and structured and all(isinstance(row, dict) for row in structured):
        return list(structured)
    return None
