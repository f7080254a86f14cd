"""Receive the response of a login: at a page on this machine that the browser is sent to, or pasted by a person.

The response of another login, or a guess, is rejected by its ``state`` and does not end the wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qs, urlsplit

from .errors import LoginFailedError

HOST = "127.0.0.1"
PORT = 19876
"""OpenCode's own, so that what was registered for it works here; a free one if it is taken."""
PATH = "/mcp/oauth/callback"
LIMIT = 300.0
"""Seconds that a login may take a person; OpenCode's limit."""
_HEAD = 16384
"""Bytes of a request's head that are read."""
_HEAD_SECONDS = 10.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n"
)


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """The parameters that an authorization server sent the browser back with."""

    code: str = field(repr=False)
    state: str = field(repr=False)
    issuer: str | None = None


class Redirect:
    """One login's redirect address. Made by `open_redirect`; used on one event loop.

    Attributes:
        uri: the address that the authorization server sends the browser to.
        listening: this machine listens there; if not, the response must be pasted.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.listening = False
        self._state: str | None = None
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._response: asyncio.Future[AuthorizationResponse] = asyncio.get_running_loop().create_future()
        self._response.add_done_callback(lambda f: f.cancelled() or f.exception())  # nobody may be waiting yet

    async def listen(self, host: str, port: int) -> bool:
        """Begin to listen; False if the port is taken."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD)
        except OSError:
            return False
        self.listening = True
        return True

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def expect_state(self, state: str) -> None:
        """Accept the response with this ``state``."""
        self._state = state

    def paste(self, text: str) -> None:
        """Take the answer from what a person pasted: the address the browser ended at, or the code alone.

        Raises:
            LoginFailedError: it is no answer, or that of another login; the wait goes on.
        """
        text = text.strip().strip("'\"")
        if self._state is None:
            raise LoginFailedError("The login has not got that far; try again in a moment.")
        if "code=" not in text and "error=" not in text:
            if not text or any(c.isspace() for c in text) or "://" in text:
                raise LoginFailedError(
                    "That address contains no code; paste the complete address the browser ended at."
                )
            # A code typed into the cell of whoever began the login: there is nobody to confuse with.
            self._settle(AuthorizationResponse(text, self._state))
            return
        problem = self._accept(_fields(text if "?" not in text else text.partition("?")[2]))
        if problem:
            raise LoginFailedError(problem)

    async def wait_for_response(self, seconds: float = LIMIT) -> AuthorizationResponse:
        """Wait for the response.

        Raises:
            LoginFailedError: the server refused, or nothing came in `seconds`.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(self._response), seconds)
        except TimeoutError:
            raise LoginFailedError(
                f"No answer came in {seconds:g} s; the login was cancelled. If the page did not know this program: "
                "%mcp auth NAME --forget, then again"
            ) from None

    async def close(self) -> None:
        """Stop listening. Twice is harmless."""
        self.listening = False
        self._response.cancel()
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for writer in list(self._writers):
                writer.close()
            with contextlib.suppress(Exception):
                await asyncio.wait_for(server.wait_closed(), 1.0)

    # ------------------------------------------------------------------ responses

    def _accept(self, query: dict[str, list[str]]) -> str:
        """Accept a response's fields; returns why not, if it is none."""
        state = query.get("state", [""])[0]
        if self._state is None or not secrets.compare_digest(_bytes(state), _bytes(self._state)):
            return "This is the answer of another login, or of one that has ended. Start again: %mcp auth NAME"
        issuer = query["iss"][0] if query.get("iss") else None
        if "error" in query:
            fields = [query[key][0] for key in ("error", "error_description") if query.get(key)]
            line = " ".join(": ".join(fields).split())[:200]
            if not self._response.done():
                self._response.set_exception(LoginFailedError(f"The login was refused: {line}"))
            return f"The login was refused: {line}"
        code = query.get("code", [""])[0]
        if not code:
            return "There is no code in this answer. Start again: %mcp auth NAME"
        self._settle(AuthorizationResponse(code, state, issuer))
        return ""

    def _settle(self, response: AuthorizationResponse) -> None:
        if not self._response.done():
            self._response.set_result(response)

    # ------------------------------------------------------------------ the page

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
                writer.write(self.page_for(head.split(b"\r\n", 1)[0].decode("latin-1")))
                await asyncio.wait_for(writer.drain(), _HEAD_SECONDS)
        finally:
            self._writers.discard(writer)
            writer.close()

    def page_for(self, request: str) -> bytes:
        """The response to a request's first line, which may settle the login."""
        method, _, target = request.partition(" ")
        path, _, query = target.rpartition(" ")[0].partition("?")
        if method != "GET":
            return _page("405 Method Not Allowed", "This page is for a browser that comes back from a login.")
        if path != urlsplit(self.uri).path:
            return _page("404 Not Found", "There is no such page.")
        problem = self._accept(_fields(query))
        if problem:
            return _page("400 Bad Request", problem)
        return _page("200 OK", "You are logged in. You can close this page and go back to the notebook.")


async def open_redirect(registered: str | None = None, *, fixed: bool = False) -> Redirect:
    """Open a login's redirect address.

    Args:
        registered: the address that was registered; OpenCode's own if left out.
        fixed: it must be that address; if its port is taken, the answer has to be pasted.
    """
    uri = registered or default_uri()
    redirect = Redirect(uri)
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # no address at all; its user reports that
        return redirect
    if host in _LOOPBACK and parts.scheme == "http":
        if await redirect.listen("::1" if host == "::1" else HOST, 80 if port is None else port) or fixed:
            return redirect
        if await redirect.listen(HOST, 0):
            redirect.uri = f"http://{HOST}:{redirect.port}{PATH}"
    return redirect


def default_uri() -> str:
    """OpenCode's own address."""
    return f"http://{HOST}:{PORT}{PATH}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _fields(query: str) -> dict[str, list[str]]:
    try:
        return parse_qs(query.partition("#")[0], keep_blank_values=True)
    except ValueError:  # more of them than anybody sends
        return {}


def _page(status: str, text: str) -> bytes:
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Login</title>'
        '<body style="font:16px sans-serif;margin:4em auto;max-width:34em;color-scheme:light dark">'
        f"<p>{escape(text)}</p></body></html>"
    ).encode()
    return f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
