"""Requests over HTTP that reach the address that was checked, and nothing else.

A request goes to an address, not to a name: the name is looked up once, every address it has is checked, and the
connection is made to one of those, with the name in the Host header and in TLS. No cookie is kept, no `.netrc` read,
no redirect followed; that is for the caller (`page_fetch`).
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ...core.errors import ToolError
from ...core.threads import run_in_thread
from .public_addresses import Address, parse_address
from .url import Target, shown

if TYPE_CHECKING:
    import httpx2

CONNECT = 10.0
"""Seconds that one address has to take the connection while there are others to try."""
UNREACHABLE = "Unable to connect. Is the computer able to access the url?"
"""OpenCode's words."""


class UnreachableError(ToolError):
    """The host can't be found or does not take a connection: there is no answer at all."""


class WebResponse:
    """A response: status and headers at once, the body as it comes.

    Attributes:
        status: HTTP status code.
        headers: by lower-case name; several of one name are joined by commas.
        received: bytes of the body so far, as they came over the network.
    """

    def __init__(self, response: httpx2.Response, host: str) -> None:
        self.status = response.status_code
        self.headers: dict[str, str] = {}
        for name, value in response.headers.raw:
            key, text = name.decode("latin-1").lower(), _text(value)
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        self.received = 0
        self._host = host
        self._stream: Any = response.stream

    @property
    def length(self) -> int | None:
        """The body's length as announced, in bytes, if it is."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    async def body(self) -> AsyncIterator[bytes]:
        """The body in pieces of at most `PIECE` bytes, its compression undone; some are empty.

        Raises:
            ToolError: the connection broke, or the compression is damaged or not one that was asked for.
        """
        decoder = Decoder(self.headers.get("content-encoding", ""), self._host)
        with _translate_errors(self._host):
            async for chunk in self._stream:
                self.received += len(chunk)
                yield b""  # lets the caller count what came, even if it unfolds to nothing
                for piece in decoder.feed(chunk):
                    yield piece
        decoder.end()


async def resolve_addresses(target: Target) -> list[Address]:
    """The addresses of a target's host, in the system's order.

    Raises:
        UnreachableError: it has none.
    """
    if target.address is not None:
        return [target.address]
    try:
        entries = await run_in_thread(lambda: socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreachableError(
            f"The host {shown(target.host)} can't be found ({reason}). Is the name right, and the computer online?"
        ) from None
    addresses = [parse_address(str(entry[4][0])) for entry in entries]
    return list(dict.fromkeys(address for address in addresses if address is not None))


@asynccontextmanager
async def send(
    target: Target,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    *,
    method: str = "GET",
    content: bytes | None = None,
) -> AsyncIterator[WebResponse]:
    """Make one request and hand out its answer; the connection is closed at the end.

    Args:
        target: what is asked for.
        addresses: where its host is, checked by the caller; the first that takes a connection is used.
        headers: besides Host.
        method: HTTP method.
        content: the request's body.

    Raises:
        UnreachableError: no address takes a connection.
        ToolError: TLS fails, or what comes back is no HTTP. There is no time limit here; cancel from outside.
    """
    httpx2 = await anyio.to_thread.run_sync(_httpx2)
    context = await anyio.to_thread.run_sync(_tls) if target.scheme == "https" else None
    proxy = proxy_for(target)
    transport = httpx2.AsyncHTTPTransport(
        verify=context or False, trust_env=False, proxy=httpx2.Proxy(proxy) if proxy else None
    )
    try:
        response = await _first(httpx2, transport, target, addresses, headers, method, content, bool(proxy))
        try:
            yield WebResponse(response, target.host)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
    finally:
        with anyio.CancelScope(shield=True):
            await transport.aclose()


async def _first(
    httpx2: Any,
    transport: httpx2.AsyncHTTPTransport,
    target: Target,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    method: str,
    content: bytes | None,
    proxied: bool,
) -> httpx2.Response:
    """The answer from the first address that takes a connection."""
    hosts = [target.host] if proxied else [str(address) for address in addresses]
    for host in hosts:
        url = httpx2.URL(scheme=target.scheme, host=host, port=target.port, raw_path=target.path.encode("ascii"))
        last = host == hosts[-1]
        request = httpx2.Request(
            method,
            url,
            headers={"Host": target.authority, **headers},
            content=content,
            extensions={
                "sni_hostname": target.host,
                "timeout": {"connect": None if last else CONNECT, "read": None, "write": None, "pool": None},
            },
        )
        try:
            with _translate_errors(target.host):
                return await transport.handle_async_request(request)
        except UnreachableError:
            if last:
                raise
    raise UnreachableError(UNREACHABLE)


@contextmanager
def _translate_errors(host: str) -> Iterator[None]:
    """Turns the transport's errors into ones a person can act on."""
    import httpx2

    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        tls = _find_cause(error, ssl.SSLError)
        if isinstance(tls, ssl.SSLCertVerificationError):
            raise ToolError(f"{host} has no trusted certificate: {tls.verify_message}") from error
        if tls is not None:
            raise ToolError(f"No TLS connection to {host}: {getattr(tls, 'reason', None) or tls}") from error
        if isinstance(error, httpx2.ProxyError):
            raise UnreachableError(f"The proxy gives no connection to {host}: {error}") from error
        raise UnreachableError(UNREACHABLE) from error
    except httpx2.RemoteProtocolError as error:
        text = str(error)
        if "without sending complete message body" in text or "incomplete chunked read" in text:
            raise ToolError(f"The connection to {host} ended before the whole answer arrived") from error
        if "without sending a response" in text:
            raise ToolError(f"{host} closed the connection without an answer") from error
        if "Receive buffer too long" in text:
            text = "its headers are too long"
        raise ToolError(f"{host} answered with something that is not HTTP: {text}") from error
    except (httpx2.ReadError, httpx2.WriteError, httpx2.CloseError) as error:
        raise ToolError(f"The connection to {host} broke while the answer came") from error
    except httpx2.HTTPError as error:
        raise ToolError(f"The request to {host} failed: {type(error).__name__} {error}") from error


def _find_cause(error: BaseException | None, kind: type[BaseException]) -> Any:
    """The error of a kind among those that led to another."""
    for _ in range(10):
        if error is None or isinstance(error, kind):
            return error
        error = error.__cause__ or error.__context__
    return None


def _text(value: bytes) -> str:
    """A header's value: UTF-8 in practice, Latin-1 by the book."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _httpx2() -> Any:
    """The library, imported at the first request: it takes a quarter of a second."""
    import httpx2

    return httpx2


def _tls() -> ssl.SSLContext:
    return _context(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(maxsize=4)
def _context(file: str, folder: str) -> ssl.SSLContext:
    """Which certificates are trusted: the system's, or those of the usual two variables."""
    import httpx2

    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    return httpx2.create_ssl_context()


PIECE = 256 << 10
"""Bytes of one decoded piece at the most."""
MEMBERS = 10_000
"""Parts that a gzip body may be put together from; empty ones cost time and make nothing."""
ACCEPTED = "gzip, deflate"
"""The Accept-Encoding of requests."""


class Decoder:
    """Undoes ``Content-Encoding``.

    Args:
        encoding: the header.
        host: for messages.

    Raises:
        ToolError: it is one that was not asked for.
    """

    def __init__(self, encoding: str, host: str) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > 1 or (names and names[0] not in ("gzip", "x-gzip", "deflate")):
            raise ToolError(
                f"{host} compressed its answer with {encoding[:60]!a}, which was not asked for. "
                "Download it with a command (curl --compressed -L -o FILE URL) and look at the file."
            )
        self._host = host
        self._kind = names[0] if names else ""
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if self._kind.endswith("gzip") else None
        self._begun = False
        self._members = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The decoded pieces of what came, each at most `PIECE` long.

        Raises:
            ToolError: the data is damaged.
        """
        if not self._kind:
            for start in range(0, len(chunk), PIECE):
                yield chunk[start : start + PIECE]
            return
        self._begun = self._begun or bool(chunk)
        while chunk:
            try:
                inflate = self._inflate or self._deflate(chunk)
                piece = inflate.decompress(chunk, PIECE)
            except zlib.error as error:
                raise ToolError(f"The compressed answer of {self._host} is damaged ({error})") from None
            if piece:
                yield piece
            chunk = inflate.unconsumed_tail
            if inflate.eof:  # another member may follow; padding after the last one is left
                chunk = inflate.unused_data.lstrip(b"\0")
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._members += 1
                if self._members > MEMBERS:
                    raise ToolError(f"The compressed answer of {self._host} has more than {MEMBERS} parts")
                if self._kind == "deflate" or not chunk.startswith(b"\x1f"):
                    self._kind, chunk = "done", b""

    def end(self) -> None:
        """Say that the body is whole.

        Raises:
            ToolError: it ends in the middle of compressed data.
        """
        if self._kind not in ("", "done") and self._begun:
            raise ToolError(f"The compressed answer of {self._host} is cut off")

    def _deflate(self, chunk: bytes) -> zlib._Decompress:
        """Servers send "deflate" with and without zlib's frame."""
        framed = chunk[0] & 15 == 8 and (len(chunk) < 2 or int.from_bytes(chunk[:2], "big") % 31 == 0)
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
        return self._inflate


SWITCH = "OPENCODE_WEB_PROXY"
"""Environment: a proxy's URL, or ``env`` for HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; NO_PROXY counts for both."""


def proxy_for(target: Target) -> str | None:
    """The proxy's URL for a request, or None to go straight there, unless the person who started the kernel said so.

    Through a proxy the connection is made elsewhere, so that the address a name leads to can't be held to what was
    checked here. That is why the usual variables are not read on their own, and no project's file can set one.
    """
    setting = os.environ.get(SWITCH, "").strip()
    if setting.lower() in ("", "0", "false", "off") or _direct(target):
        return None
    if setting.lower() in ("1", "true", "env"):
        setting = _variable(f"{target.scheme}_proxy") or _variable("all_proxy")
    if not setting:
        return None
    return setting if "://" in setting else f"http://{setting}"


def _direct(target: Target) -> bool:
    """Return whether NO_PROXY names the host, a domain it is in, or everything."""
    for entry in _variable("no_proxy").split(","):
        name, _, port = entry.strip().lower().lstrip("*").lstrip(".").partition(":")
        if entry.strip() == "*":
            return True
        if name and (target.host == name or target.host.endswith("." + name)) and port in ("", str(target.port)):
            return True
    return False


def _variable(name: str) -> str:
    return os.environ.get(name, "") or os.environ.get(name.upper(), "")
