"""Network errors on the way to a provider, as `ModelError`."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...tools.web.sse import LineTooLongError
from ..errors import ModelError
from .failures import RequestContext
from .keys import redacted
from .trust import LOOPBACK


def network_error(context: RequestContext, error: Exception, *, began: bool, httpx2: Any) -> ModelError:
    """The error for what the HTTP library raised.

    `began` says that a part of the answer was there already; `httpx2` is the library, which is imported late.
    """
    who, host = context.provider, context.url.split("/")[2] if context.url.count("/") >= 2 else context.url
    reason = redacted(str(error), context.secrets) or type(error).__name__
    chain = list(_chain(error))

    def is_(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in chain)

    if isinstance(error, LineTooLongError):
        return ModelError(f"{who}: an event of the answer never ends", "protocol", provider=who)
    if isinstance(error, httpx2.ConnectTimeout):
        return ModelError(f"{who}: no connection to {host} in time", "timeout", provider=who)
    if isinstance(error, httpx2.TimeoutException):
        words = f"{who}: nothing came from {host} for too long; options.timeout (ms) of the provider changes the limit"
        return ModelError(words, "timeout", provider=who)
    if isinstance(error, httpx2.ProxyError):
        login = "407" in reason
        words = f"{who}: the proxy refused the request: {reason}"
        return ModelError(words, "network", provider=who, status=407 if login else None, retryable=not login)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        words = f"{who}: {context.url!r} is not an address; options.baseURL must start with https:// or http://"
        return ModelError(words, "setup", provider=who)
    if isinstance(error, httpx2.LocalProtocolError):
        words = f"{who}: the key or a header has characters in it that can't be sent (a line end?)"
        return ModelError(words, "setup", provider=who)
    if is_(ssl.SSLError) or "CERTIFICATE_VERIFY" in reason:
        words = f"{who}: no secure connection to {host}: {reason}."
        words += " Behind a proxy of your own, name its certificate in SSL_CERT_FILE"
        return ModelError(words, "network", provider=who, retryable=False)
    if is_(socket.gaierror) or "Name or service not known" in reason:
        words = f"{who}: the name {host} can't be found. Is there a network, and is options.baseURL right?"
        return ModelError(words, "network", provider=who)
    if isinstance(error, httpx2.ConnectError):
        proxy = _proxy(context.url)
        if proxy:
            words = f"{who}: no connection to {host} through the proxy {proxy}: {reason}. Is it running? It is named in"
            words += f" HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; NO_PROXY={host.split(':')[0]} goes without"
            return ModelError(words, "network", provider=who)
        hint = " Is its server running?" if context.local else " Is there a network?"
        return ModelError(f"{who}: no connection to {host}: {reason}.{hint}", "network", provider=who)
    if isinstance(error, httpx2.DecodingError):
        return ModelError(f"{who}: the answer cannot be decompressed: {reason}", "protocol", provider=who)
    if began:
        return ModelError(f"{who}: the answer was cut off: {reason}", "cut", provider=who)
    return ModelError(f"{who}: the connection to {host} broke: {reason}", "network", provider=who)


def _proxy(url: str) -> str:
    """The proxy that the environment names for an address, without what logs in to it; "" if there is none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or proxy_bypass(host):
        return ""
    known = getproxies()
    proxy = known.get(parts.scheme) or known.get("all") or ""
    return proxy.rpartition("@")[2].rpartition("//")[2].rstrip("/")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
