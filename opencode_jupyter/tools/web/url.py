"""A URL, read once and strictly: what is judged by rules is what is connected to.

Anything that two parsers might read differently is refused: user names, backslashes, control characters. A host is
put into its one spelling: lower case, IDNA, and an IPv4 address in dotted form however it was written (``0x7f.1``,
``2130706433``), as browsers do it (WHATWG URL, section 3.5).
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from urllib.parse import quote, urljoin, urlsplit

from ...core.errors import ToolError
from .public_addresses import Address, parse_address

PORTS = {"http": 80, "https": 443}
LONGEST = 8192
"""Characters of a URL; servers take no more."""
_SAFE = "!$%&'()*+,/:;=?@[]~"
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", re.ASCII)
_BAD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\]")
_BAD_HOST = re.compile(r"[^a-z0-9._-]")
_DOT = re.compile("%2e", re.IGNORECASE)
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a request.

    Attributes:
        written: the URL as it was given.
        scheme: ``http`` or ``https``.
        host: in its one spelling; an IPv6 address without brackets.
        port: always a number.
        path: path and query, percent-encoded, beginning with a slash.
        address: the host, if it is an address and no name.
    """

    written: str
    scheme: str
    host: str
    port: int
    path: str
    address: Address | None = field(default=None, compare=False)

    @property
    def authority(self) -> str:
        """Host and, where it is not the scheme's own, port: the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its one spelling."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def redirected(self, location: str) -> Target:
        """The destination of a redirect from here.

        Raises:
            ToolError: nowhere a web page is.
        """
        try:
            joined = urljoin(self.url, location.strip(" \t"))
        except ValueError as error:
            raise ToolError(f"{self.url} redirects to {shown(location)}, which is not a URL ({error})") from None
        if not joined.lower().startswith(("http://", "https://")):
            raise ToolError(f"{self.url} redirects to {shown(location)}; only http:// and https:// are followed")
        return parse(joined)


def parse(url: str) -> Target:
    """Read a URL.

    Raises:
        ToolError: it is none of http or https, or can be read in more than one way; the message says what is wrong.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise ToolError("URL must start with http:// or https://")
    if len(url) > LONGEST:
        raise ToolError(f"The URL has {len(url)} characters; at most {LONGEST} are taken")
    bad = _BAD.search(url)
    if bad is not None:
        what = "a backslash" if bad[0] == "\\" else f"the character U+{ord(bad[0]):04X}"
        raise ToolError(f"The URL has {what} at position {bad.start() + 1}; write it percent-encoded or leave it out")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ToolError(f"The URL {shown(url)} can't be read: {error}") from None
    if "@" in parts.netloc:
        raise ToolError("The URL has a user name or password before the host; leave it out")
    match = _AUTHORITY.fullmatch(parts.netloc)
    if match is None or not match[1]:
        raise ToolError(f"The URL {shown(url)} has no host that can be read")
    scheme = parts.scheme.lower()
    port = int(match[2]) if match[2] else PORTS[scheme]
    if not 0 < port < 65536:
        raise ToolError(f"The URL's port is {port}; a port is between 1 and 65535")
    host, address = _host(match[1])
    path = _path(quote(parts.path or "/", safe=_SAFE)) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return Target(url, scheme, host, port, path, address)


def shown(text: str, limit: int = 200) -> str:
    """A text from outside, fit for a message: in quotes, escaped, not too long."""
    return ascii(text if len(text) <= limit else text[:limit] + "...")


def _path(path: str) -> str:
    """A path without ``.`` and ``..``: a rule for one folder must not be got round through another."""
    if "." not in path and "%2" not in path:
        return path
    out: list[str] = []
    segments = path.split("/")[1:]
    for i, segment in enumerate(segments):
        plain = _DOT.sub(".", segment) if len(segment) <= 6 else segment
        last = i == len(segments) - 1
        if plain == "..":
            del out[-1:]
        if plain not in (".", ".."):
            out.append(segment)
        elif last:
            out.append("")
    return "/" + "/".join(out)


def _host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        address = parse_address(text[1:-1])
        if address is None or "%" in text or address.version == 4:
            raise ToolError(f"The host {shown(text)} is not an IPv6 address")
        return str(address), address
    name = _ascii(text).rstrip(".") if text.strip(".") else ""
    if not name or _BAD_HOST.search(name) or ".." in name or name.startswith(".") or len(name) > 253:
        raise ToolError(f"The host {shown(text)} is not a host name")
    last = name.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        address = _ipv4(name)
        return str(address), address
    return name, None


def _ascii(text: str) -> str:
    if text.isascii():
        return text.lower()
    import idna  # comes with httpx2

    try:
        return idna.encode(text, uts46=True, std3_rules=False, transitional=False).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise ToolError(f"The host {shown(text)} is not a host name ({error})") from None


def _ipv4(name: str) -> Address:
    """An IPv4 address in any of the spellings that a system's resolver takes."""
    try:
        return IPv4Address(socket.inet_aton(name))
    except OSError:
        raise ToolError(f"The host {shown(name)} ends in a number and is not an IPv4 address") from None
