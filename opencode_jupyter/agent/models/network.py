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

    `began` is true after the first part of the answer; `httpx2` is the library, which is imported late.
    """
    host = context.url.split("/")[2] if context.url.count("/") >= 2 else context.url
    reason = redacted(str(error), context.secrets) or type(error).__name__
    causes = list(_chain(error))
    if isinstance(error, LineTooLongError):
        return context.error("protocol", "an event of the answer never ends")
    if isinstance(error, httpx2.ConnectTimeout):
        return context.error("timeout", f"no connection to {host} in time")
    if isinstance(error, httpx2.TimeoutException):
        limit = "options.timeout (ms) of the provider changes the limit"
        return context.error("timeout", f"nothing came from {host} for too long; {limit}")
    if isinstance(error, httpx2.ProxyError):
        login = "407" in reason
        text = f"the proxy refused the request: {reason}"
        return context.error("network", text, status=407 if login else None, retryable=not login)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        text = f"{context.url!r} is not an address; options.baseURL must start with https:// or http://"
        return context.error("setup", text)
    if isinstance(error, httpx2.LocalProtocolError):
        return context.error("setup", "the key or a header has characters in it that can't be sent (a line end?)")
    if any(isinstance(cause, ssl.SSLError) for cause in causes) or "CERTIFICATE_VERIFY" in reason:
        text = f"no secure connection to {host}: {reason}."
        text += " Behind a proxy of your own, name its certificate in SSL_CERT_FILE"
        return context.error("network", text, retryable=False)
    if any(isinstance(cause, socket.gaierror) for cause in causes) or "Name or service not known" in reason:
        text = f"the name {host} can't be found. Is there a network, and is options.baseURL right?"
        return context.error("network", text)
    if isinstance(error, httpx2.ConnectError):
        proxy = _proxy(context.url)
        if proxy:
            text = f"no connection to {host} through the proxy {proxy}: {reason}. Is it running? It is named in"
            text += f" HTTP_PROXY, HTTPS_PROXY or ALL_PROXY; NO_PROXY={host.split(':')[0]} goes without"
            return context.error("network", text)
        hint = " Is its server running?" if context.local else " Is there a network?"
        return context.error("network", f"no connection to {host}: {reason}.{hint}")
    if isinstance(error, httpx2.DecodingError):
        return context.error("protocol", f"the answer cannot be decompressed: {reason}")
    if began:
        return context.error("cut", f"the answer was cut off: {reason}")
    return context.error("network", f"the connection to {host} broke: {reason}")


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
