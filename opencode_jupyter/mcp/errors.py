"""Errors of MCP servers and of logins, with what to do about them (docs/opencode/core.md 19).

No error contains a token, a code or a secret: of a server's error only the two fields of the standard are used, and
shortened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..core import secrets
from ..core.errors import ToolError

if TYPE_CHECKING:
    from .status import ServerState


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


def describe_error(error: BaseException) -> str:
    """One line about an error of a connection."""
    error = innermost(error)
    text = " ".join(str(error).split())
    if isinstance(error, ValidationError):  # of the SDK's types; its whole text is a page
        issue = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, issue['loc']))}: {issue['msg']}"
    if isinstance(error, TimeoutError):
        return text or "it did not answer in time"
    kind = type(error).__name__
    if not text:
        return kind
    return text if kind in ("MCPError", "McpError") else f"{kind}: {text}"


_SHOWN = 200
"""Characters of a server's message that an error repeats."""
_BODY = re.compile(
    r"^(?:Token exchange failed|Registration failed)[^{]*?(?P<status>\d{3})[^{]*(?P<body>\{.*\})?", re.DOTALL
)
_REGISTRATION = re.compile(r"regist|client_id", re.IGNORECASE)


class AuthError(McpError):
    """A server can't be used without a login.

    Attributes:
        server: its name.
        state: what its status becomes (docs/opencode/core.md 19.2).
    """

    state: ServerState = "needs_auth"

    def __init__(self, message: str, *, server: str = "", state: ServerState | None = None) -> None:
        super().__init__(server, message)
        self.state = state or self.state


class NeedsAuthError(AuthError):
    """A person has to log in."""

    def __init__(self, server: str) -> None:
        super().__init__(f"{server} wants you to log in: %mcp auth {server}", server=server)


class NeedsScopeError(AuthError):
    """A person is logged in, but did not grant what is requested now."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(
            f"{server} requests more access than was granted ({scope}); to grant it: %mcp auth {server}",
            server=server,
        )


class NeedsRegistrationError(AuthError):
    """The authorization server does not let programs register themselves."""

    state: ServerState = "needs_client_registration"

    def __init__(self, server: str, detail: str = "") -> None:
        because = f" ({detail})" if detail else ""
        super().__init__(
            f"{server} does not let programs register themselves{because}. Register one in the service's settings and "
            f'put its id into the config: "{server}": {{..., "oauth": {{"clientId": "...", "clientSecret": "..."}}}}',
            server=server,
        )


class LoginFailedError(AuthError):
    """A login was started and failed."""


def auth_error(error: BaseException, server: str, hide: Sequence[str] = ()) -> AuthError | None:
    """The authorization error in an error, its causes or its group; None if there is none.

    Args:
        error: what a connection ended with. Transports wrap what an authorization raised in groups of errors.
        server: the server's name, for the message.
        hide: secrets that a server's message may repeat.
    """
    from mcp.client.auth import OAuthFlowError, OAuthRegistrationError

    for cause in _causes(error):
        if isinstance(cause, AuthError):
            return cause
        if not isinstance(cause, OAuthFlowError):
            continue
        text = _describe_flow_error(str(cause), hide)
        if isinstance(cause, OAuthRegistrationError) or _REGISTRATION.search(text):
            return NeedsRegistrationError(server, text)
        return LoginFailedError(f"The login at {server} failed: {text}. Again: %mcp auth {server}", server=server)
    return None


def _describe_flow_error(text: str, hide: Sequence[str] = ()) -> str:
    """The SDK's error text; of a response that it repeats only the two fields that the standard has for errors."""
    if "State parameter mismatch" in text:  # it repeats both
        return "the answer belongs to another login"
    match = _BODY.match(text)
    if match is None:
        return _shorten(text.partition(": {")[0], hide)
    step = text.partition(" failed")[0].lower()
    fields = _error_fields(match["body"] or "")
    return f"the {step} was answered with {match['status']}" + (f", {_shorten(fields, hide)}" if fields else "")


def _error_fields(body: str) -> str:
    try:
        data = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    return ": ".join(data[key] for key in ("error", "error_description") if isinstance(data.get(key), str))


def _shorten(text: str, hide: Sequence[str]) -> str:
    text = secrets.hide(text, hide)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, the errors of its group and their causes, each once."""
    queue, visited = [error], set[int]()
    while queue:
        cause = queue.pop(0)
        if id(cause) in visited:
            continue
        visited.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            queue.extend(cause.exceptions)
        queue.extend(e for e in (cause.__cause__, cause.__context__) if e is not None)
