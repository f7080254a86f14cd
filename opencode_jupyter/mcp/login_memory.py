"""What the library's login keeps of one server, in the `TokenStore`: tokens, and this program as it was registered."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError

from .auth_errors import LoginFailedError
from .tokens import Entry, TokenStore

if TYPE_CHECKING:
    from pydantic import BaseModel

KEYRING_SECONDS = 60.0
"""How long a keyring may take; it may ask a person to unlock it."""
POST, BASIC = "client_secret_post", "client_secret_basic"
"""Ways to show a client's secret: in the request's form, in its head."""
_CONFIGURED = "configured"
"""Marks a client that is the config's, and counts only as long as it is there."""
T = TypeVar("T")
M = TypeVar("M", bound="BaseModel")


class Memory:
    """What the library keeps of one server, in the `TokenStore`.

    Args:
        name: the server's name.
        url: its address.
        settings: the config's ``oauth``.
        store: where it is kept.
        keep: keep a registration as it comes. A login keeps it only with its tokens: until then the old ones count,
            and they belong to the old registration.
    """

    def __init__(self, name: str, url: str, settings: Mapping[str, Any], store: TokenStore, *, keep: bool) -> None:
        self._name = name
        self._url = url
        self._settings = settings
        self._store = store
        self._keep = keep
        self.uri = ""
        self.entry = Entry()

    @property
    def secret(self) -> str | None:
        """The config's ``clientSecret``."""
        found = self._settings.get("clientSecret")
        return str(found) if found else None

    async def read(self) -> Entry:
        """What is kept now. What belongs to another client than the config's counts for nothing."""
        entry = await _in_thread(self._store.load, self._name, self._url)
        own = self._settings.get("clientId")
        client = entry.client or {}
        if client and (client.get("client_id") != str(own) if own else client.get(_CONFIGURED)):
            entry = Entry()
        self.entry = entry
        return entry

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens that are kept."""
        return model(OAuthToken, self.entry.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens, and when they end."""
        self.entry.tokens = tokens.model_dump(mode="json", exclude_none=True)
        self.entry.expires_at = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        await self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """This program as the server knows it: the config's client, else what was registered for this address."""
        own, secret = self._settings.get("clientId"), self.secret
        if own:
            client = OAuthClientInformationFull(
                client_id=str(own),
                client_secret=secret,
                token_endpoint_auth_method=POST if secret else "none",
                redirect_uris=[AnyUrl(self.uri)],
            )
            self.entry.client = {"client_id": client.client_id, _CONFIGURED: True}  # the secret stays in the config
            return client
        client_info = model(OAuthClientInformationFull, self.entry.client)
        if client_info is None:
            return None
        ended = client_info.client_secret_expires_at
        known = [str(uri) for uri in client_info.redirect_uris or []]
        if (ended and ended < time.time()) or (not self._keep and known and self.uri not in known):
            return None
        return client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep what the server registered."""
        if client_info.redirect_uris is None:
            client_info.redirect_uris = [AnyUrl(self.uri)]
        self.entry.client = client_info.model_dump(mode="json", exclude_none=True)
        if self._keep and not self.entry.tokens:
            await self._write()

    async def _write(self) -> None:
        await _in_thread(self._store.save, self._name, self._url, self.entry)


async def _in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Run what may wait for a person to unlock a keyring."""
    try:
        with anyio.fail_after(KEYRING_SECONDS):
            return await anyio.to_thread.run_sync(fn, *args, abandon_on_cancel=True)
    except TimeoutError:
        raise LoginFailedError(
            f"The system's keyring did not answer in {KEYRING_SECONDS:g} s. Unlock it, or keep tokens in a file: set "
            "PYTHON_KEYRING_BACKEND=keyring.backends.null.Keyring before the kernel starts"
        ) from None


def model(kind: type[M], data: dict[str, Any] | None) -> M | None:
    """What is kept of a model; None if there is nothing, or it does not fit any more."""
    try:
        return kind.model_validate(data) if data else None
    except ValidationError:  # of another release, or edited: as if it were not there
        return None


def wire(model: BaseModel | None) -> dict[str, Any] | None:
    """A model as it is kept."""
    return model.model_dump(mode="json", exclude_none=True) if model is not None else None
