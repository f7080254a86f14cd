"""Instructions that the config names by address: fetched with a time limit, kept for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...core.errors import ToolError
from ...tools._instructions import LIMIT

if TYPE_CHECKING:
    from ...tools.web.public_addresses import Address
    from ...tools.web.url import Target

TIMEOUT = 5.0
"""Seconds a page has (OpenCode's limit)."""
FRESH_SECONDS = 600.0
"""Seconds after which a page is fetched again."""
RETRY_SECONDS = 60.0
"""Seconds after which a page that could not be fetched is tried again."""


class InstructionPages:
    """The pages of one workspace.

    `from_project` is true for an address that only files of the project name.
    """

    def __init__(self, from_project: Callable[[str], bool]) -> None:
        self._from_project = from_project
        self._pages: dict[str, tuple[float, str, str]] = {}

    async def texts(self, urls: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """The fetched pages with their addresses, and a sentence about each page that failed."""
        if not urls:
            return [], []
        urls = list(dict.fromkeys(urls))
        now = time.monotonic()
        due = [url for url in urls if url not in self._pages or now >= self._pages[url][0]]
        for url, (text, problem) in zip(due, await asyncio.gather(*map(self._fetch, due)), strict=True):
            before = self._pages[url][1] if url in self._pages else ""
            next_try = time.monotonic() + (RETRY_SECONDS if problem else FRESH_SECONDS)
            self._pages[url] = (next_try, text or before, problem)  # an old copy is better than none
        texts = [(url.partition("?")[0], self._pages[url][1]) for url in urls if self._pages[url][1]]
        return texts, [self._pages[url][2] for url in urls if self._pages[url][2]]

    async def _fetch(self, url: str) -> tuple[str, str]:
        # loaded with the first page: most projects name none
        from ...tools.web import content_type
        from ...tools.web.http_client import ACCEPTED
        from ...tools.web.page_fetch import Clock, fetch
        from ...tools.web.url import parse, shown

        name = shown(url.partition("?")[0])  # what follows may be a key
        try:
            target = parse(url)
            headers = {"User-Agent": "opencode", "Accept": "text/markdown, text/plain, */*;q=0.5"}
            guard = _Guard(own=not self._from_project(url))
            page = await fetch(
                target, {**headers, "Accept-Encoding": ACCEPTED}, Clock(TIMEOUT), guard, lambda count, total: None
            )
            text = content_type.decode(page.body, content_type.codec(page.body, page.content_type, markup=False))
            if content_type.kind(page.body, page.content_type).attachment or content_type.is_binary(text):
                return "", f"{name} was not read: it is no text"
        except ToolError as error:
            return "", f"{name} could not be fetched: {str(error).replace(url, name)}"
        except (OSError, ValueError) as error:
            return "", f"{name} could not be fetched: {type(error).__name__}"
        size = len(text.encode("utf-8", "replace"))
        if size > LIMIT:
            text = text.encode("utf-8", "replace")[:LIMIT].decode("utf-8", "ignore")
            return f"{text}\n(cut here: the page has {size:,} bytes)", ""
        return text.strip(), ""


class _Guard:
    """Allows public addresses, and private ones that the user's own configuration names."""

    def __init__(self, own: bool) -> None:
        self._own = own

    def check(self, target: Target, address: Address) -> None:
        """Let an address pass, or raise `ToolError`."""
        from ...tools.web.public_addresses import is_metadata, not_public

        why = not_public(address)
        if why is not None and (not self._own or is_metadata(address)):
            raise ToolError(f"{target.host} is {why}; a project's config can only name public addresses")

    async def ask_redirect(self, before: Target, after: Target) -> None:
        """Redirects are followed; where they lead is checked like the first address."""
