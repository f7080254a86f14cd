"""webfetch: a page as Markdown, text or HTML; images and PDFs as attachments. See docs/opencode/tools.md 10."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field

from ..core.call_state import ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.permission import Rule
from ..core.result import Attachment, ToolResult
from ..core.schema import Arguments
from ..core.wildcard import match
from .builtin import builtin
from .web import content_type
from .web.html_converter import Converted, convert
from .web.http_client import ACCEPTED
from .web.page_fetch import Clock, Fetched, fetch
from .web.public_addresses import METADATA_NAMES, Address, is_metadata, not_public
from .web.url import PORTS, Target, parse

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
    where = parse(args.url)
    visit = Visit(ctx, _input_metadata(args))
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
    kind = content_type.kind(fetched.body, fetched.content_type)
    title = f"{args.url} ({fetched.content_type[:TITLE_TYPE]})"
    metadata: dict[str, Any] = {}
    if fetched.target.url != parse(args.url).url:
        metadata["redirected"] = fetched.target.url
    if kind.attachment is not None:
        what = "PDF" if kind.attachment == "application/pdf" else "Image"
        attachment = Attachment.from_bytes(fetched.body, kind.attachment)
        return ToolResult(title, f"{what} fetched successfully", metadata, [attachment])
    codec = content_type.codec(fetched.body, fetched.content_type, markup=kind.html or kind.xml)
    if not kind.html or args.format == "html":
        text = content_type.decode(fetched.body, codec)
        if content_type.is_binary(text):
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


def _input_metadata(args: Parameters) -> dict[str, Any]:
    out: dict[str, Any] = {"format": args.format}
    if args.timeout is not None:
        out["timeout"] = args.timeout
    return out


def _progress(message: str, value: int | None = None, total: int | None = None) -> dict[str, Any]:
    progress = {"message": message, "value": value, "total": total}
    return {"progress": {key: entry for key, entry in progress.items() if entry is not None}}


PERMISSION = "webfetch"
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_PATTERN = re.compile(r"(?:(https?|\*)://)?(\[[0-9a-f:.]+\]|[^\[\]:/?*#@\\\s]+)(.*)", re.IGNORECASE | re.DOTALL)


def names_host(pattern: str, target: Target) -> bool:
    """Return whether a rule's pattern names the target's host in full, and fits its port and path."""
    parts = _PATTERN.fullmatch(pattern)
    if parts is None:
        return False
    scheme, host, rest = (parts[1] or "*").lower(), parts[2], parts[3]
    if scheme not in ("*", target.scheme):
        return False
    try:
        if parse(f"{target.scheme}://{host}").host != target.host:
            return False
    except ToolError:
        return False
    if not rest:
        return parts[1] is None or target.port == PORTS[target.scheme]
    if re.fullmatch(r":[0-9]+", rest):
        rest += "/*"  # an origin stands for all that is there
    forms = [f":{target.port}{target.path}"]
    if target.port == PORTS[target.scheme]:
        forms.append(target.path)
    return any(match(form, rest) for form in forms)


def is_named(rules: Iterable[Rule], target: Target) -> bool:
    """Return whether one of the rules names the target."""
    return any(
        rule.action != "deny" and match(PERMISSION, rule.permission) and names_host(rule.pattern, target)
        for rule in rules
    )


class Visit:
    """The permission requests and checks of one fetch.

    A host that is not public is only reached when a rule of the permission `webfetch` names it: one that allows or asks
    and whose pattern has the host in full, not after a ``*``. These name 127.0.0.1:

        http://127.0.0.1:8000/*      that port        http://127.0.0.1:*     any port
        127.0.0.1:8000               that port        127.0.0.1              any port, both schemes

    The host is compared whole, so ``http://10.0.0.1*`` names 10.0.0.1 and neither 10.0.0.11 nor 10.0.0.1.evil.org.

    Args:
        ctx: the call.
        metadata: of its asks, besides the URL.
    """

    def __init__(self, ctx: ToolContext, metadata: dict[str, object]) -> None:
        self._ctx = ctx
        self._metadata = metadata

    async def ask(self, target: Target) -> None:
        """Ask for a URL, as it is written and, where rules or eyes could be misled by that, in its one spelling.

        Raises:
            PermissionDeniedError: a rule forbids it, or a person does; see `ToolContext.ask`.
        """
        patterns = [target.written]
        if self._action(target.url) > self._action(target.written) or target.authority not in target.written.lower():
            patterns.append(target.url)
        await self._ctx.ask(PERMISSION, patterns, ["*"], {"url": target.written, **self._metadata})

    async def ask_redirect(self, before: Target, after: Target) -> None:
        """Ask again where a redirect leads to another host, or to a place that the rules treat more strictly."""
        same = before.host == after.host and (before.port == after.port or _upgraded(before, after))
        if not same or self._action(after.url) > self._action(before.url):
            await self.ask(after)

    def check(self, target: Target, address: Address) -> None:
        """Let an address of the target pass, or not.

        Raises:
            ToolError: it is not public and no rule names the host.
        """
        why = not_public(address)
        if target.address is None and target.host in METADATA_NAMES:
            why = why or "a cloud metadata host"
        if why is None:
            return
        if self._named(target):
            is_explicit = target.address is not None or target.host in METADATA_NAMES
            if is_explicit or not is_metadata(address):
                return
            raise ToolError(
                f"Refused: {target.host} leads to {address}, {why}. Only a rule that names this very address opens it."
            )
        where = "is" if target.address is not None else f"leads to {address},"
        raise ToolError(
            f"Refused: {target.host} {where} {why}. webfetch goes to public addresses only, unless a rule names the "
            f'host: %permissions allow webfetch "{target.scheme}://{target.authority}/*"'
        )

    def _rules(self) -> tuple[Sequence[Rule], list[Rule]]:
        call = self._ctx.workspace.calls.get(self._ctx.call_id)
        return (call.ruleset if call is not None else []), self._ctx.workspace.permissions.approved

    def _named(self, target: Target) -> bool:
        return any(is_named(rules, target) for rules in self._rules())

    def _action(self, url: str) -> int:
        rules, _ = self._rules()
        decided = self._ctx.workspace.permissions.check(PERMISSION, [url], rules)
        return _STRICTNESS[decided[0].action]


def _upgraded(before: Target, after: Target) -> bool:
    """Return whether a redirect only goes from http to https."""
    return (before.scheme, after.scheme) == ("http", "https") and (before.port, after.port) == (80, 443)
