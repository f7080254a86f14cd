"""webfetch: a page as Markdown, text or HTML; images and PDFs as attachments. See docs/opencode/tools.md 10."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import Attachment, ToolResult
from ..core.schema import Arguments
from ..core.state import ToolPart
from .builtin import builtin
from .web import charset, content, target
from .web.decoding import ACCEPTED
from .web.fetching import Clock, Fetched, fetch
from .web.page import Converted, convert
from .web.rules import Visit

TIMEOUT = 30.0
"""Seconds when none are given."""
LONGEST, SHORTEST = 120.0, 1.0
"""Between these a timeout is moved."""
USER_AGENT = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36"
)
ACCEPT = {
    "markdown": "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1",
    "text": "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
    "html": "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, text/markdown;q=0.7, */*;q=0.1",
}
TITLE_TYPE = 200
"""Characters of a content type in the title."""


class Parameters(Arguments):
    """What to fetch, and how it should come back."""

    # OpenCode's schema calls the format required beside its default; a model is sent the same.
    model_config = ConfigDict(json_schema_extra={"required": ["url", "format"]})

    url: str = Field(description="The URL to fetch content from")
    format: Literal["text", "markdown", "html"] = Field(
        "markdown", description="The format to return the content in (text, markdown, or html). Defaults to markdown."
    )
    timeout: float | None = Field(None, description="Optional timeout in seconds (max 120)", allow_inf_nan=False)


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    return str(getattr(part.state, "title", None) or arguments.get("url") or "")


@builtin(
    "webfetch",
    Parameters,
    group="web",
    effect="fetches",
    example="%tool webfetch https://example.com",
    card=CardSpec(label=_label, question="Fetch this page?"),
)
async def webfetch(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Fetch a web page."""
    where = target.parse(args.url)
    visit = Visit(ctx, _given(args))
    await visit.ask(where)
    if where.address is not None:
        visit.check(where, where.address)  # a dry run tells of it too
    ctx.proceed()

    seconds = TIMEOUT if args.timeout is None else min(max(args.timeout, SHORTEST), LONGEST)
    clock = Clock(seconds)
    headers = {
        "User-Agent": USER_AGENT,
        "Accept": ACCEPT[args.format],
        "Accept-Language": "en-US,en;q=0.9",
        "Accept-Encoding": ACCEPTED,
    }
    ctx.metadata(metadata=_progress(f"asking {where.host}"))

    def received(count: int, total: int | None) -> None:
        of = f" of {size(total)}" if total is not None else ""
        ctx.metadata(metadata=_progress(size(count) + of, count, total))

    fetched = await fetch(where, headers, clock, visit, received)
    return await _result(args, ctx, fetched, clock)


async def _result(args: Parameters, ctx: ToolContext, fetched: Fetched, clock: Clock) -> ToolResult:
    kind = content.kind(fetched.body, fetched.content_type)
    title = f"{args.url} ({fetched.content_type[:TITLE_TYPE]})"
    metadata: dict[str, Any] = {}
    if fetched.target.url != target.parse(args.url).url:
        metadata["redirected"] = fetched.target.url
    if kind.attachment is not None:
        what = "PDF" if kind.attachment == "application/pdf" else "Image"
        attachment = Attachment.from_bytes(fetched.body, kind.attachment)
        return ToolResult(title, f"{what} fetched successfully", metadata, [attachment])
    codec = charset.codec(fetched.body, fetched.content_type, markup=kind.html or kind.xml)
    if not kind.html or args.format == "html":
        text = charset.decode(fetched.body, codec)
        if content.is_binary(text):
            raise ToolError(
                f"{fetched.target.url} is not text: {fetched.content_type or 'no content type'}, "
                f"{size(len(fetched.body))}. Download it with a command (curl -L -o FILE URL) and look at the file."
            )
        return ToolResult(title, text, metadata)
    ctx.metadata(metadata=_progress(f"converting {size(len(fetched.body))}"))
    late = (
        f'The page came, but could not be converted to {args.format} within {clock.seconds:g} seconds. Ask for "html".'
    )
    with clock.running(late):
        converted: Converted = await convert(fetched.body, args.format, codec, clock.seconds)
    if converted.note:
        metadata["note"] = converted.note
        return ToolResult(title, f"({converted.note})\n\n{converted.text}", metadata)
    return ToolResult(title, converted.text, metadata)


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _given(args: Parameters) -> dict[str, Any]:
    given: dict[str, Any] = {"format": args.format}
    if args.timeout is not None:
        given["timeout"] = args.timeout
    return given


def _progress(message: str, value: int | None = None, total: int | None = None) -> dict[str, Any]:
    progress = {"message": message, "value": value, "total": total}
    return {"progress": {key: entry for key, entry in progress.items() if entry is not None}}
