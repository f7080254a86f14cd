"""The login of a remote server, as an authentication that its HTTP client carries (docs/opencode/core.md 19.2).

The flow itself is the library's: discovery, PKCE, registration, the exchange, the resource it is for. What is added:
tokens that outlive the kernel with their time of expiry and the address to renew them at; a renewal before anybody is
asked to log in again; the config's client and scope; and no login at all unless a person began one (`logins`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, PrivateAttr, ValidationError

from .auth_errors import AuthError, LoginFailedError, NeedsAuthError, NeedsScopeError, auth_error
from .login_memory import BASIC, POST, Memory, model, wire
from .redirect import Redirect, default_uri
from .tokens import TokenStore, canonical

if TYPE_CHECKING:
    from ..core.workspace import Workspace

CLIENT_NAME = "OpenCode (Jupyter)"
"""What a person reads when a service asks whether to let this program in."""
EARLY = 30.0
"""Seconds before its end from which on a token is renewed."""


class RemoteServer(Protocol):
    """What is used of a configured server."""

    @property
    def name(self) -> str:
        """Its key in the config."""

    @property
    def url(self) -> str:
        """Its address; "" for one that runs here."""

    @property
    def oauth(self) -> Any:
        """``{clientId?, clientSecret?, scope?, redirectUri?}``; False for no logins."""


class Interactive(Protocol):
    """How a person takes part in a login."""

    redirect: Redirect
    """Where the answer comes in."""

    async def show(self, url: str) -> None:
        """Let the person open this address."""


def auth_for(workspace: Workspace, spec: RemoteServer, interactive: Interactive | None = None) -> Auth | None:
    """The authentication of a server's HTTP client; None for a server that takes no logins.

    Args:
        workspace: in whose data folder the tokens are.
        spec: the server.
        interactive: how a person takes part. Without it a server that wants a login ends the request with an
            `AuthError`, which `auth_error` finds in whatever the transport makes of it, and `Auth.problem` keeps.
    """
    if not spec.url or spec.oauth is False:
        return None
    return Auth(spec.name, spec.url, settings_of(spec), token_store(workspace), interactive)


def settings_of(spec: RemoteServer) -> Mapping[str, Any]:
    """The ``oauth`` of a server's config; empty if it has none."""
    return spec.oauth if isinstance(spec.oauth, Mapping) else {}


def token_store(workspace: Workspace) -> TokenStore:
    """The tokens of this user, as this workspace's data folder has them."""
    return workspace.service(_store)


def _store(workspace: Workspace) -> TokenStore:
    return TokenStore(workspace.data_dir)


class Auth(OAuthClientProvider):
    """The login of one server.

    Attributes:
        problem: what the last login or renewal failed with; None after one that went well.
        on_problem: called when there is one. A transport may lose the error itself; its request then waits for ever.
    """

    def __init__(
        self,
        name: str,
        url: str,
        settings: Mapping[str, Any],
        store: TokenStore,
        interactive: Interactive | None = None,
    ) -> None:
        self.name = name
        self.problem: AuthError | None = None
        self.on_problem: Callable[[], None] | None = None
        self._interactive = interactive
        self._renewed = False
        self._code = ""
        self._memory = Memory(name, url, settings, store, keep=interactive is None)
        uri = interactive.redirect.uri if interactive is not None else str(settings.get("redirectUri") or default_uri())
        self._wanted = store.wanted
        self._wants = (name, canonical(url))
        more = store.wanted.get(self._wants) if interactive is not None else None
        self._anew = more is not None
        scope = more or _scope(settings.get("scope"))
        try:
            metadata = _ClientMetadata(client_name=CLIENT_NAME, redirect_uris=[AnyUrl(uri)], scope=scope)
        except ValidationError:
            text = f'the "redirectUri" of {name} is no address: {uri}'
            raise LoginFailedError(text, server=name, state="failed") from None
        metadata.keep_scope(scope is not None)
        self._memory.uri = uri
        super().__init__(
            url,
            metadata,
            self._memory,
            redirect_handler=self._show,
            callback_handler=self._wait,
        )

    def __repr__(self) -> str:
        return f"<Auth of {self.name}>"

    # ------------------------------------------------------------------ the person's part

    async def _show(self, url: str) -> None:
        assert self._interactive is not None
        address = httpx2.URL(url)
        if address.scheme not in ("https", "http"):
            raise LoginFailedError(
                f"{self.name} asks to log in at an address that is not a web page ({address.scheme}:)"
            )
        self._interactive.redirect.expect(address.params.get("state", ""))
        await self._interactive.show(url)

    async def _wait(self) -> AuthorizationCodeResult:
        assert self._interactive is not None
        answer = await self._interactive.redirect.answer()
        self._code = answer.code
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    # ------------------------------------------------------------------ what the library's flow is added

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The library's flow, a renewal before a login, and a note of what went wrong."""
        try:
            flow = super()._auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    if outgoing is request:
                        if response.status_code == 401 and self._can_renew():
                            await flow.aclose()
                            async with self.context.lock:
                                answered = yield await self._refresh_token()
                                await self._handle_refresh_response(answered)
                                self._renewed = True
                            flow = super()._auth_flow(request)
                            outgoing = await anext(flow)
                            continue
                        self._renewed = False
                        self._metadata.grow(response.status_code == 403)
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                self.problem = None
            finally:
                await flow.aclose()
        except Exception as error:
            self.problem = auth_error(error, self.name, self._secrets())
            if self.problem is not None and self.on_problem is not None:
                self.on_problem()
            if self.problem is None or self.problem is error:
                raise
            raise self.problem from None  # the library's text may repeat what must not be seen

    @property
    def _metadata(self) -> _ClientMetadata:
        assert isinstance(self.context.client_metadata, _ClientMetadata)
        return self.context.client_metadata

    def _can_renew(self) -> bool:
        """Whether a token that was refused may be renewed; once, or a server that refuses all would be asked for ever.

        A server need not say how long a token lives, and may end it early.
        """
        return not self._renewed and self.context.can_refresh_token()

    async def _initialize(self) -> None:
        """Take what is kept, with the token's end, which the library forgets."""
        entry = await self._memory.read()
        await super()._initialize()
        if self._anew:  # for more than the token is good for; until there is another it counts
            self.context.current_tokens = None
        self.context.token_expiry_time = entry.expires_at - EARLY if entry.expires_at is not None else None
        self.context.oauth_metadata = model(OAuthMetadata, entry.metadata)
        self.context.protected_resource_metadata = model(ProtectedResourceMetadata, entry.resource)

    async def _perform_authorization(self) -> httpx2.Request:
        if self._interactive is None:
            if self._metadata.growing:
                self._wanted[self._wants] = self._metadata.scope or ""
                raise NeedsScopeError(self.name, self._metadata.scope or "")
            raise NeedsAuthError(self.name)
        self._choose_method()
        return await super()._perform_authorization()

    def _choose_method(self) -> None:
        """Show the config's secret in the way that the server knows."""
        metadata, client = self.context.oauth_metadata, self.context.client_info
        known = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        if client is None or not known or client.token_endpoint_auth_method != POST or POST in known:
            return
        if BASIC in known:
            client.token_endpoint_auth_method = BASIC

    async def _refresh_token(self) -> httpx2.Request:
        self._choose_method()
        return await super()._refresh_token()

    def _secrets(self) -> list[str]:
        client, tokens = self.context.client_info, self.context.current_tokens
        found = [self._code, self._memory.secret, client.client_secret if client is not None else None]
        found += [tokens.access_token, tokens.refresh_token] if tokens is not None else []
        return [text for text in found if text]

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        self._remember()
        await super()._handle_token_response(response)
        self._wanted.pop(self._wants, None)

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        if response.status_code >= 500 or response.status_code == 429:
            raise LoginFailedError(
                f"The login of {self.name} could not be renewed: the authorization server answered "
                f"{response.status_code}. Try again later: %mcp connect {self.name}",
                server=self.name,
                state="failed",
            )
        if response.status_code != 200:
            # Another kernel may have renewed it in the meantime, which ends the old one.
            before = self.context.current_tokens
            entry = await self._memory.read()
            tokens = model(OAuthToken, entry.tokens)
            if tokens is not None and before is not None and tokens.access_token != before.access_token:
                self.context.current_tokens = tokens
                self.context.token_expiry_time = entry.expires_at - EARLY if entry.expires_at is not None else None
                return True
        self._remember()
        return await super()._handle_refresh_response(response)

    def _remember(self) -> None:
        """What is kept along with the tokens."""
        self._memory.entry.metadata = wire(self.context.oauth_metadata)
        self._memory.entry.resource = wire(self.context.protected_resource_metadata)


class _ClientMetadata(OAuthClientMetadata):
    """How this program makes itself known.

    A scope that the config names stays, but for what a server asks in addition.
    """

    _kept: bool = PrivateAttr(default=False)
    _growing: bool = PrivateAttr(default=False)

    def keep_scope(self, keep: bool) -> None:
        """Return whether the scope is the config's."""
        self._kept = keep

    def grow(self, growing: bool) -> None:
        """Return whether what comes next is a scope that was asked in addition."""
        self._growing = growing

    @property
    def growing(self) -> bool:
        """True if a scope was asked in addition."""
        return self._growing

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope" and self._kept and not self._growing:
            return
        super().__setattr__(name, value)


def _scope(given: Any) -> str | None:
    words = given if isinstance(given, list) else [given]
    return " ".join(str(word) for word in words if word) or None


class _Quiet(logging.Filter):
    """Drops what the library logs of a failed login or renewal: it is raised or mended, and traces repeat secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        own = record.exc_info is not None and isinstance(record.exc_info[1], AuthError)
        said = str(record.msg).startswith(("OAuth flow error", "Token refresh failed", "Invalid refresh response"))
        return not own and not said


for _name in ("mcp.client.auth.oauth2", "mcp.client.sse", "mcp.client.streamable_http"):
    if not any(type(found).__name__ == _Quiet.__name__ for found in logging.getLogger(_name).filters):
        logging.getLogger(_name).addFilter(_Quiet())
