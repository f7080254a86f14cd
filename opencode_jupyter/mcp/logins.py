"""Logins in progress: begun in one cell, answered by a browser or in another cell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2

from .errors import AuthError, LoginFailedError
from .oauth import Auth, settings_of, token_store
from .redirect import Redirect, default_uri, open_redirect
from .tokens import TokenStore

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .configuration import ServerSpec

log = logging.getLogger(__name__)

REQUEST = 30.0
"""Seconds for one request to the server or its authorization server."""
PROTOCOL = "2025-06-18"
"""The first release of the protocol that names the resource a token is for; a ping is the same in any release."""


class Login:
    """One login: an address for the browser, and an answer that is waited for.

    Attributes:
        server: the server's name.
        url: the address to open; "" until the authorization server was found, and if no login is needed.
        redirect: receives the answer.
    """

    def __init__(self, spec: ServerSpec, store: TokenStore, redirect: Redirect) -> None:
        self.server = spec.name
        self.url = ""
        self.redirect = redirect
        self._spec = spec
        self.auth = Auth(spec, store, redirect, self._show)
        self._url_known = asyncio.Event()
        self._task: asyncio.Task[str] | None = None

    def start(self, on_success: Callable[[], Awaitable[object]] | None) -> None:
        """Begin; `on_success` is run after a login that went well."""
        self._task = asyncio.create_task(self._run(on_success), name=f"login at {self.server}")
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # maybe nobody waits

    async def wait_for_url(self) -> str:
        """Wait until there is an address to open.

        Returns:
            The address; "" if the server wants no login (then `wait` says so).

        Raises:
            AuthError: it failed before that.
        """
        await self._url_known.wait()
        if not self.url:
            await self.wait()
        return self.url

    async def wait(self) -> str:
        """Wait for the end.

        Returns:
            A sentence about its outcome.

        Raises:
            AuthError: it failed, or was cancelled.
        """
        assert self._task is not None
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._task.cancelled():
                raise _cancelled_error(self.server) from None
            raise

    @property
    def is_over(self) -> bool:
        """True if it has ended."""
        return self._task is not None and self._task.done()

    async def cancel(self) -> None:
        """Cancel it. Twice is harmless."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def __repr__(self) -> str:
        return f"<Login at {self.server}: {'over' if self.is_over else 'under way'}>"

    async def _show(self, url: str) -> None:
        self.url = url
        self._url_known.set()

    async def _run(self, on_success: Callable[[], Awaitable[object]] | None) -> str:
        try:
            status = await self._ping()
            if self.url:
                if status in (401, 403):
                    text = f"{self.server} refuses the login it has just granted ({status}); its logs may say why."
                    raise LoginFailedError(text, server=self.server)
                summary = f"Logged in at {self.server}."
            elif status in (401, 403):
                raise LoginFailedError(f"{self.server} answered {status} and offers no login.", server=self.server)
            elif self.auth.has_tokens:
                summary = (
                    f"You are logged in at {self.server} already; to change that: %mcp auth {self.server} --forget"
                )
            else:
                summary = f"{self.server} wants no login."
        except httpx2.HTTPError as error:
            text = f"{self.server} can't be reached: {type(error).__name__} {error}".strip()
            raise LoginFailedError(text, server=self.server) from None
        finally:
            self._url_known.set()
            await self.redirect.close()
        if on_success is not None:
            with contextlib.suppress(Exception):  # its status says what is wrong
                await on_success()
        return summary

    async def _ping(self) -> int:
        """Send a request that needs a login; returns the status of the response."""
        headers = {**self._spec.headers, "MCP-Protocol-Version": PROTOCOL}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        async with httpx2.AsyncClient(auth=self.auth, headers=headers, timeout=REQUEST) as client:
            status = 405
            if self._spec.transport != "sse":
                sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                async with client.stream("POST", self._spec.url, content=body, headers=sent) as response:
                    status = response.status_code
            if status in (404, 405) and not self.url:  # the older transport is opened with a GET
                async with client.stream("GET", self._spec.url, headers={"Accept": "text/event-stream"}) as response:
                    status = response.status_code
        return status


class Logins:
    """The logins of a workspace in progress, one for a server. Used on the workspace's loop."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._logins: dict[str, Login] = {}
        self._cancelled: Counter[str] = Counter()
        """How often logins at a server were cancelled: so one that is just beginning notices it."""

    def get(self, server: str) -> Login | None:
        """The login at a server that is in progress."""
        login = self._logins.get(server)
        return login if login is not None and not login.is_over else None

    async def begin(self, spec: ServerSpec, on_success: Callable[[], Awaitable[object]] | None = None) -> Login:
        """Begin a login; one in progress at the same server is cancelled.

        Args:
            spec: the server.
            on_success: run after a login that went well, such as connecting.

        Raises:
            AuthError: the server takes no logins, or this one was cancelled before it began.
        """
        if not spec.url:
            raise AuthError(f"{spec.name} is a program on this machine; it does not use logins.", server=spec.name)
        if spec.oauth is False:
            raise AuthError(f'{spec.name} does not use logins: the config says "oauth": false.', server=spec.name)
        await self.cancel(spec.name)
        before = self._cancelled[spec.name]
        store = token_store(self._workspace)
        redirect = await self._redirect(spec, store)
        try:
            if self._cancelled[spec.name] != before:
                raise _cancelled_error(spec.name)
            login = Login(spec, store, redirect)
        except AuthError:
            await redirect.close()
            raise
        self._logins[spec.name] = login
        login.start(on_success)
        return login

    async def cancel(self, server: str) -> bool:
        """Cancel the login at a server, also one that is about to begin; False if none is in progress."""
        self._cancelled[server] += 1
        login = self._logins.pop(server, None)
        if login is None:
            return False
        in_progress = not login.is_over
        await login.cancel()
        return in_progress

    async def forget(self, server: str) -> bool:
        """Log out here: forget the tokens; the service itself may have a page that ends them. False if there were none.

        Raises:
            ToolError: the file can't be written.
        """
        await self.cancel(server)
        return await asyncio.to_thread(token_store(self._workspace).forget, server)

    async def close(self) -> None:
        """Cancel every login."""
        for server in list(self._logins):
            await self.cancel(server)

    @staticmethod
    async def _redirect(spec: ServerSpec, store: TokenStore) -> Redirect:
        settings = settings_of(spec)
        if settings.get("redirectUri") or settings.get("clientId"):
            return await open_redirect(str(settings.get("redirectUri") or default_uri()), fixed=True)
        entry = await asyncio.to_thread(store.load, spec.name, spec.url)
        registered: Any = (entry.client or {}).get("redirect_uris")
        return await open_redirect(registered[0] if registered and isinstance(registered[0], str) else None)


def _cancelled_error(server: str) -> LoginFailedError:
    return LoginFailedError(f"The login at {server} was cancelled.", server=server)
