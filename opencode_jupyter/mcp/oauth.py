"""The login of a remote server as an authentication of its HTTP client (docs/opencode/core.md 19.2).

The flow is the SDK's: discovery, PKCE, registration, the exchange. `Auth` uses its public hooks and its public context
to add: tokens that outlive the kernel with their expiry and renewal address, a renewal before a login is requested, the
configuration's client and scope, and no login at all unless a person began one (`logins`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from ..core.threads import run_in_thread
from .errors import AuthError, LoginFailedError, NeedsAuthError, NeedsScopeError, auth_error
from .redirect import Redirect, default_uri
from .tokens import StoredLogin, TokenStore, canonical

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthContext

    from ..core.host import ToolHost
    from .configuration import ServerSpec

CLIENT_NAME = "OpenCode (Jupyter)"
"""What a person reads when a service asks whether to let this program in."""
RENEW_EARLY = 30.0
"""Seconds before its end from which on a token is renewed."""
KEYRING_SECONDS = 60.0
"""How long a keyring may take; it may ask a person to unlock it."""
POST, BASIC = "client_secret_post", "client_secret_basic"
"""Ways to send a client's secret: in the request's form, in its header."""
_CONFIGURED = "configured"
"""Marks a client that is the config's, and counts only as long as it is there."""
_EXPIRED = 1.0
"""A time of expiry that is over; the SDK takes 0 for none."""
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


ShowAddress = Callable[[str], Awaitable[None]]
"""Shows a person the address to open."""


def auth_for(workspace: ToolHost, spec: ServerSpec) -> Auth | None:
    """The authentication of a server's HTTP client where nobody can log in; None for a server that takes no logins.

    A server that wants a login ends the request with an `AuthError`, which `auth_error` finds in whatever the transport
    makes of it, and `Auth.problem` keeps.
    """
    if not spec.url or spec.oauth is False:
        return None
    return Auth(spec, token_store(workspace))


def settings_of(spec: ServerSpec) -> Mapping[str, Any]:
    """The ``oauth`` of a server's config; empty if it has none."""
    return spec.oauth if isinstance(spec.oauth, Mapping) else {}


def token_store(workspace: ToolHost) -> TokenStore:
    """The tokens of this user, as this workspace's data folder has them."""
    return workspace.service(_store)


def _store(workspace: ToolHost) -> TokenStore:
    return TokenStore(workspace.data_dir)


class Auth(httpx2.Auth):
    """The login of one server.

    Args:
        spec: the server.
        store: where its tokens are kept.
        redirect: receives the answer of a person's login; None where nobody can log in.
        show: shows that person the address to open.

    Attributes:
        problem: the error of the last login or renewal; None after one that succeeded.
        on_problem: called when there is one. A transport may lose the error itself; its request then waits for ever.
    """

    requires_response_body = True

    def __init__(
        self,
        spec: ServerSpec,
        store: TokenStore,
        redirect: Redirect | None = None,
        show: ShowAddress | None = None,
    ) -> None:
        settings = settings_of(spec)
        self.name = spec.name
        self.problem: AuthError | None = None
        self.on_problem: Callable[[], None] | None = None
        self._redirect = redirect
        self._show_address = show
        self._step_up = False
        self._code = ""
        uri = redirect.uri if redirect is not None else str(settings.get("redirectUri") or default_uri())
        self._storage = _LoginStorage(spec, store, uri, login=redirect is not None)
        self._scope = self._storage.extra_scope or _scope(settings.get("scope"))
        try:
            metadata = OAuthClientMetadata(client_name=CLIENT_NAME, redirect_uris=[AnyUrl(uri)], scope=self._scope)
        except ValidationError:
            text = f'the "redirectUri" of {self.name} is no address: {uri}'
            raise LoginFailedError(text, server=self.name, state="failed") from None
        self._provider = OAuthClientProvider(
            spec.url, metadata, self._storage, redirect_handler=self.show, callback_handler=self._wait_for_code
        )
        self._context = self._storage.context = self._provider.context

    def __repr__(self) -> str:
        return f"<Auth of {self.name}>"

    @property
    def has_tokens(self) -> bool:
        """True if there are tokens to send."""
        return self._context.current_tokens is not None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The SDK's flow with a renewal before a login; `problem` keeps the error."""
        try:
            flow = self._provider.async_auth_flow(request)
            got_response = False
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    again = False
                    if outgoing is request:
                        self._step_up = response.status_code == 403
                        again = not got_response and response.status_code == 401 and self._context.can_refresh_token()
                        if again:  # a server need not say how long a token lives, and may end it early
                            self._context.token_expiry_time = _EXPIRED
                        got_response = True
                    elif b"grant_type=refresh_token" in outgoing.content and response.status_code != 200:
                        again = await self._take_renewed_elsewhere(response.status_code)
                    if again:
                        await flow.aclose()
                        flow = self._provider.async_auth_flow(request)
                        outgoing = await anext(flow)
                    else:
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
            raise self.problem from None  # the SDK's text may repeat secrets

    async def _take_renewed_elsewhere(self, status: int) -> bool:
        """A renewal was refused: use what another kernel has renewed in the meantime, which ends the old token.

        Raises:
            LoginFailedError: the authorization server is out of order; the login stays.
        """
        if status >= 500 or status == 429:
            raise LoginFailedError(
                f"The login of {self.name} could not be renewed: the authorization server answered {status}. "
                f"Try again later: %mcp connect {self.name}",
                server=self.name,
                state="failed",
            )
        before, tokens = self._context.current_tokens, await self._storage.get_tokens()
        if tokens is None or before is None or tokens.access_token == before.access_token:
            return False
        self._context.current_tokens = tokens
        return True

    # ------------------------------------------------------------------ the person's part

    async def show(self, url: str) -> None:
        """Have the person open the server's page."""
        address = urlsplit(url)
        query = dict(parse_qsl(address.query))
        if self._redirect is None or self._show_address is None:
            if self._step_up:
                scope = self._storage.extra_scope = query.get("scope", "")
                raise NeedsScopeError(self.name, scope)
            raise NeedsAuthError(self.name)
        if address.scheme not in ("https", "http"):
            raise LoginFailedError(
                f"{self.name} asks to log in at an address that is not a web page ({address.scheme}:)"
            )
        self._storage.choose_method()
        if self._scope:  # the SDK puts what the server names in its place
            self._context.client_metadata.scope = query["scope"] = self._scope
            if "offline_access" in self._scope.split():
                query["prompt"] = "consent"
            url = address._replace(query=urlencode(query)).geturl()
        self._redirect.expect_state(query.get("state", ""))
        await self._show_address(url)

    async def _wait_for_code(self) -> AuthorizationCodeResult:
        assert self._redirect is not None
        response = await self._redirect.wait_for_response()
        self._code = response.code
        return AuthorizationCodeResult(code=response.code, state=response.state, iss=response.issuer)

    def _secrets(self) -> list[str]:
        client, tokens = self._context.client_info, self._context.current_tokens
        secrets = [self._code, self._storage.secret, client.client_secret if client is not None else None]
        secrets += [tokens.access_token, tokens.refresh_token] if tokens is not None else []
        return [text for text in secrets if text]


class _LoginStorage:
    """The SDK's storage for one server, in the `TokenStore`: tokens, and this program as it was registered.

    Args:
        spec: the server.
        store: where it is kept.
        uri: where answers come in.
        login: a person logs in. A login keeps a registration only with its tokens: until then the old ones count, and
            they belong to the old registration.
    """

    context: OAuthContext
    """The SDK's; it has no place in its storage for the time of expiry and for what was discovered."""

    def __init__(self, spec: ServerSpec, store: TokenStore, uri: str, *, login: bool) -> None:
        self._name = spec.name
        self._url = spec.url
        self._settings = settings_of(spec)
        self._store = store
        self._uri = uri
        self._login = login
        self._entry = StoredLogin()

    @property
    def secret(self) -> str | None:
        """The config's ``clientSecret``."""
        secret = self._settings.get("clientSecret")
        return str(secret) if secret else None

    @property
    def extra_scope(self) -> str | None:
        """What the next login is to grant, since the server has asked for it in addition."""
        return self._store.extra_scope.get((self._name, canonical(self._url))) if self._login else None

    @extra_scope.setter
    def extra_scope(self, scope: str) -> None:
        self._store.extra_scope[self._name, canonical(self._url)] = scope

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens that are kept; what belongs to another client than the config's counts for nothing."""
        entry = await _within_keyring_limit(self._store.load, self._name, self._url)
        client_id = self._settings.get("clientId")
        client = entry.client or {}
        if client and (client.get("client_id") != str(client_id) if client_id else client.get(_CONFIGURED)):
            entry = StoredLogin()
        self._entry = entry
        self.context.token_expiry_time = entry.expires_at - RENEW_EARLY if entry.expires_at is not None else None
        self.context.oauth_metadata = _parse(OAuthMetadata, entry.metadata)
        self.context.protected_resource_metadata = _parse(ProtectedResourceMetadata, entry.resource)
        # for more than the token is good for; until there is another it counts
        return None if self.extra_scope is not None else _parse(OAuthToken, entry.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens, when they end, and where to renew them."""
        self._entry.tokens = _dump(tokens)
        self._entry.expires_at = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        self._entry.metadata = _dump(self.context.oauth_metadata)
        self._entry.resource = _dump(self.context.protected_resource_metadata)
        await self._write()
        if self._login:
            self._store.extra_scope.pop((self._name, canonical(self._url)), None)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """This program as the server knows it: the config's client, else what was registered for this address."""
        if client_id := self._settings.get("clientId"):
            self._entry.client = {"client_id": str(client_id), _CONFIGURED: True}  # the secret stays in the config
            return OAuthClientInformationFull(
                client_id=str(client_id),
                client_secret=self.secret,
                token_endpoint_auth_method=self._secret_method(),
                redirect_uris=[AnyUrl(self._uri)],
            )
        client_info = _parse(OAuthClientInformationFull, self._entry.client)
        if client_info is None:
            return None
        ended = client_info.client_secret_expires_at
        uris = [str(uri) for uri in client_info.redirect_uris or []]
        if (ended and ended < time.time()) or (self._login and uris and self._uri not in uris):
            return None
        return client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what the server registered."""
        if client_info.redirect_uris is None:
            client_info.redirect_uris = [AnyUrl(self._uri)]
        self._entry.client = _dump(client_info)
        if not self._login and not self._entry.tokens:
            await self._write()

    def choose_method(self) -> None:
        """Show the config's secret in the way that the server knows, now that it was discovered."""
        if self.context.client_info is not None and self._settings.get("clientId"):
            self.context.client_info.token_endpoint_auth_method = self._secret_method()

    def _secret_method(self) -> Any:
        metadata = self.context.oauth_metadata
        methods = (metadata.token_endpoint_auth_methods_supported if metadata is not None else None) or [POST]
        if not self.secret:
            return "none"
        return BASIC if BASIC in methods and POST not in methods else POST

    async def _write(self) -> None:
        await _within_keyring_limit(self._store.save, self._name, self._url, self._entry)


async def _within_keyring_limit(fn: Callable[..., T], *args: Any) -> T:
    """Run what may wait for a person to unlock a keyring."""
    try:
        with anyio.fail_after(KEYRING_SECONDS):
            return await run_in_thread(fn, *args)
    except TimeoutError:
        raise LoginFailedError(
            f"The system's keyring did not answer in {KEYRING_SECONDS:g} s. Unlock it, or keep tokens in a file: set "
            "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring before the kernel starts"
        ) from None


def _parse(kind: type[M], data: dict[str, Any] | None) -> M | None:
    """What is kept of a model; None if there is nothing, or it does not fit any more."""
    try:
        return kind.model_validate(data) if data else None
    except ValidationError:  # of another release, or edited: as if it were not there
        return None


def _dump(model: BaseModel | None) -> dict[str, Any] | None:
    return model.model_dump(mode="json", exclude_none=True) if model is not None else None


def _scope(configured: Any) -> str | None:
    scopes = configured if isinstance(configured, list) else [configured]
    return " ".join(str(scope) for scope in scopes if scope) or None


class _AuthLogFilter(logging.Filter):
    """Drops what the SDK logs of a failed login or renewal: it is raised or repaired, and traces repeat secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_ours = record.exc_info is not None and isinstance(record.exc_info[1], AuthError)
        is_flow_error = str(record.msg).startswith(
            ("OAuth flow error", "Token refresh failed", "Invalid refresh response")
        )
        return not is_ours and not is_flow_error


for _name in ("mcp.client.auth.oauth2", "mcp.client.sse", "mcp.client.streamable_http"):
    if not any(type(existing).__name__ == _AuthLogFilter.__name__ for existing in logging.getLogger(_name).filters):
        logging.getLogger(_name).addFilter(_AuthLogFilter())
