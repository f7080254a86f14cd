"""What goes wrong with MCP servers and logins at them, and what to do about it (docs/opencode/core.md 19).

Nothing here ever carries a token, a code or a secret: what a server says about an error is taken from the two fields
that the standard has for it, and cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Literal

from ..core import secrets
from ..core.errors import ToolError


class McpError(ToolError):
    """A server can't be reached, ended, did not answer in time, or answered with an error.

    Attributes:
        server: its name in the configuration.
    """

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server


def missing_sdk() -> str:
    """What to install before MCP can be used; "" where the MCP SDK is installed."""
    try:
        installed = find_spec("mcp_types") is not None  # version 1 of the SDK has no such module
    except (ImportError, ValueError):
        installed = False
    return "" if installed else 'MCP needs the MCP SDK 2, which is not installed: pip install "opencode-jupyter[mcp]"'


def innermost(error: BaseException) -> BaseException:
    """The first real error inside groups of them."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def words_of(error: BaseException) -> str:
    """One line about an error of a connection."""
    error = innermost(error)
    text = " ".join(str(error).split())
    if type(error).__name__ == "ValidationError":  # pydantic's, of the SDK's types; its whole text is a page
        first = error.errors(include_url=False)[0]  # type: ignore[attr-defined]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, TimeoutError):
        return text or "it did not answer in time"
    kind = type(error).__name__
    if not text:
        return kind
    return text if kind in ("MCPError", "McpError") else f"{kind}: {text}"


AuthState = Literal["needs_auth", "needs_client_registration", "failed"]
"""What a server's status becomes (docs/opencode/core.md 19.2)."""
_SHOWN = 200
"""Characters of a server's own words that an error repeats."""
_BODY = re.compile(
    r"^(?:Token exchange failed|Registration failed)[^{]*?(?P<status>\d{3})[^{]*(?P<body>\{.*\})?", re.DOTALL
)
_REGISTRATION = re.compile(r"regist|client_id", re.IGNORECASE)


class AuthError(McpError):
    """A server can't be used before somebody has done something about who is there.

    Attributes:
        server: its name.
        state: what its status becomes.
    """

    state: AuthState = "needs_auth"

    def __init__(self, message: str, *, server: str = "", state: AuthState | None = None) -> None:
        super().__init__(server, message)
        self.state = state or self.state


class NeedsAuthError(AuthError):
    """A person has to log in."""

    def __init__(self, server: str) -> None:
        super().__init__(f"{server} wants you to log in: %mcp auth {server}", server=server)


class NeedsScopeError(AuthError):
    """A person is logged in, and has not given leave for what was asked now."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(
            f"{server} requests more access than was granted ({scope}); to grant it: %mcp auth {server}",
            server=server,
        )


class NeedsRegistrationError(AuthError):
    """The authorization server knows no way to make this program known to it by itself."""

    state: AuthState = "needs_client_registration"

    def __init__(self, server: str, said: str = "") -> None:
        because = f" ({said})" if said else ""
        super().__init__(
            f"{server} does not let programs register themselves{because}. Register one in the service's settings and "
            f'put its id into the config: "{server}": {{..., "oauth": {{"clientId": "...", "clientSecret": "..."}}}}',
            server=server,
        )


class LoginFailedError(AuthError):
    """A login was begun and did not come to its end."""


def auth_error(error: BaseException, server: str, hide: Sequence[str] = ()) -> AuthError | None:
    """The trouble with authorization that is somewhere in an error, its causes or its group; None if there is none.

    Args:
        error: what a connection ended with. Transports wrap what an authorization raised in groups of errors.
        server: the server's name, for the message.
        hide: secrets that a server's own words may repeat.
    """
    from mcp.client.auth import OAuthFlowError, OAuthRegistrationError

    for found in _chain(error):
        if isinstance(found, AuthError):
            return found
        if not isinstance(found, OAuthFlowError):
            continue
        text = said(str(found), hide)
        if isinstance(found, OAuthRegistrationError) or _REGISTRATION.search(text):
            return NeedsRegistrationError(server, text)
        return LoginFailedError(f"The login at {server} failed: {text}. Again: %mcp auth {server}", server=server)
    return None


def said(text: str, hide: Sequence[str] = ()) -> str:
    """An error of the library; of a server's answer that it repeats only the two fields the standard has for errors."""
    if "State parameter mismatch" in text:  # it repeats both
        return "the answer belongs to another login"
    found = _BODY.match(text)
    if found is None:
        return _cut(text.partition(": {")[0], hide)
    what = text.partition(" failed")[0].lower()
    fields = _fields(found["body"] or "")
    return f"the {what} was answered with {found['status']}" + (f", {_cut(fields, hide)}" if fields else "")


def _fields(body: str) -> str:
    try:
        data = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    return ": ".join(data[key] for key in ("error", "error_description") if isinstance(data.get(key), str))


def _cut(text: str, hide: Sequence[str]) -> str:
    text = secrets.hide(text, hide)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _chain(error: BaseException) -> Iterator[BaseException]:
    todo, seen = [error], set[int]()
    while todo:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            todo.extend(one.exceptions)
        todo.extend(e for e in (one.__cause__, one.__context__) if e is not None)
