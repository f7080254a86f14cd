"""True if a request goes through a proxy: only if the person who started the kernel said so.

Through a proxy the connection is made elsewhere, so that the address a name leads to can't be held to what was
checked here. That is why the usual variables are not read on their own, and why no project's file can set one.
"""

from __future__ import annotations

import os

from .target import Target

SWITCH = "OPENCODE_WEB_PROXY"
"""Environment: a proxy's URL, or ``env`` for HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; NO_PROXY counts for both."""


def proxy_for(target: Target) -> str | None:
    """The proxy's URL for a request, or None to go straight there."""
    said = os.environ.get(SWITCH, "").strip()
    if said.lower() in ("", "0", "false", "off") or _direct(target):
        return None
    if said.lower() in ("1", "true", "env"):
        said = _variable(f"{target.scheme}_proxy") or _variable("all_proxy")
    if not said:
        return None
    return said if "://" in said else f"http://{said}"


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
