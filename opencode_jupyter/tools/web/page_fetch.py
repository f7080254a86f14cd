"""One page fetched: redirects by hand, each hop checked, one deadline, the body counted while it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio

from ...core.errors import ToolError
from .http_client import UnreachableError, WebResponse, proxy_for, resolve_addresses, send
from .public_addresses import Address
from .url import Target

LIMIT = 5 << 20
"""Bytes of a body (docs/opencode/tools.md 10)."""
TOO_LARGE = "Response too large (exceeds 5MB limit)"
REDIRECTS = 10
"""Redirects followed."""
_REDIRECT = (301, 302, 303, 307, 308)
PLAIN_AGENT = "opencode"
"""User-Agent of the second try where a bot check refused the first."""

Progress = Callable[[int, int | None], None]
"""Receives how many bytes have come, and how many there will be, if that is known."""


class Guard(Protocol):
    """Decides which addresses a fetch may reach."""

    def check(self, target: Target, address: Address) -> None:
        """Raise `ToolError` if the address must not be reached."""

    async def ask_redirect(self, before: Target, after: Target) -> None:
        """Return when a redirect may be followed."""


class Clock:
    """The time a fetch has. It stands still while a person is asked."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds

    @contextmanager
    def running(self, late: str = "") -> Iterator[None]:
        """Spend time; when there is none left, what is inside is cancelled.

        Raises:
            ToolError: the time is up: `late`, or that the request timed out.
        """
        began = time.monotonic()
        try:
            with anyio.fail_after(max(self._left, 0)):
                yield
        except TimeoutError:
            raise ToolError(late or f"Request timed out after {self.seconds:g} seconds") from None
        finally:
            self._left -= time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page as it came.

    Attributes:
        target: where it was at last.
        content_type: the header, or an empty text.
        body: its bytes, compression undone.
    """

    target: Target
    content_type: str
    body: bytes


async def fetch(target: Target, headers: dict[str, str], clock: Clock, guard: Guard, progress: Progress) -> Fetched:
    """GET a page.

    Args:
        target: where it is; asked for already.
        headers: of every request.
        clock: the time there is.
        guard: who decides where it may go.
        progress: receives the number of the body's bytes as they come.

    Raises:
        ToolError: it is not to be had; the message says why.
    """
    agent = headers
    first = target
    for _ in range(REDIRECTS + 1):
        outcome = await _hop(target, agent, clock, guard, progress)
        if outcome == "challenge" and agent is headers:
            agent = {**headers, "User-Agent": PLAIN_AGENT}
            outcome = await _hop(target, agent, clock, guard, progress)
        if isinstance(outcome, Fetched):
            return outcome
        if not isinstance(outcome, Target):
            raise ToolError("Request failed with status code: 403")
        await guard.ask_redirect(target, outcome)
        target = outcome
    raise ToolError(f"{first.url} redirects more than {REDIRECTS} times, at last to {target.url}")


async def _hop(
    target: Target, headers: dict[str, str], clock: Clock, guard: Guard, progress: Progress
) -> Fetched | Target | str:
    """One request: the page, where it redirects to, or "challenge" if a bot check stands before it."""
    with clock.running():
        addresses = await _addresses(target, guard)
        async with send(target, addresses, headers) as answer:
            if answer.status in _REDIRECT and answer.headers.get("location", "").strip():
                return target.redirected(answer.headers["location"])
            if answer.status == 403 and answer.headers.get("cf-mitigated", "").strip().lower() == "challenge":
                return "challenge"
            if not 200 <= answer.status < 300:
                raise ToolError(f"Request failed with status code: {answer.status}")
            body = await _body(answer, progress)
            return Fetched(target, answer.headers.get("content-type", "").strip(), body)


async def _addresses(target: Target, guard: Guard) -> list[Address]:
    """The host's addresses, each checked."""
    try:
        addresses = await resolve_addresses(target)
    except UnreachableError:
        if proxy_for(target) is None:
            raise
        addresses = []  # behind a proxy, names may be known to the proxy alone
    for address in addresses:
        guard.check(target, address)
    return addresses


async def _body(answer: WebResponse, progress: Progress) -> bytes:
    length = answer.length
    if length is not None and length > LIMIT:
        raise ToolError(TOO_LARGE)
    body = bytearray()
    async for piece in answer.body():
        body += piece
        if len(body) > LIMIT or answer.received > LIMIT:
            raise ToolError(TOO_LARGE)
        progress(answer.received, length)
    return bytes(body)
