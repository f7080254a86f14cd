"""Where the tokens of remote servers are kept: the system's keyring, else a file that only its owner can read.

The file also says which servers there are entries for, since a keyring can't be listed. An entry belongs to a server's
name and its URL, so that a config that gives another URL to a known name gets no token.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from ..core import atomic
from ..core.file_lock import lock_file
from ..core.paths import make_private_folder
from ..core.secrets import learn_from

log = logging.getLogger(__name__)

FILE = "mcp-auth.json"
"""In the data folder; OpenCode's own has the same name."""
SERVICE = "opencode-jupyter mcp"
"""What the entries are called in the system's keyring."""
OWNER_ONLY = 0o600
RECOMMENDED = 1.0
"""Priority from which on `keyring` calls a backend fit for use; those that write plain files are below."""


Keyring = Any
"""A backend of the ``keyring`` package, which need not be installed."""


@dataclass(slots=True, repr=False)
class StoredLogin:
    """The login at one server, in the forms of the wire.

    Attributes:
        tokens: the token response: ``access_token``, ``refresh_token``, ``scope``.
        expires_at: when the access token ends, in seconds since 1970; None if the server did not say.
        client: this program as the authorization server knows it: ``client_id``, ``client_secret``, ``redirect_uris``.
        metadata: the authorization server's own description, so that a refresh finds its token endpoint.
        resource: the server's description of itself as a resource.
    """

    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<StoredLogin: {'with' if self.tokens else 'without'} tokens>"


class TokenStore:
    """The tokens of one user. Its calls block: a keyring may ask a person to unlock it.

    Args:
        folder: the data folder, which has `FILE`.
        keyring: a backend; the system's own if left out, None for the file alone.
    """

    def __init__(self, folder: Path, keyring: Keyring | Literal["system"] | None = "system") -> None:
        self.path = folder / FILE
        self._keyring = keyring
        self._lock = threading.Lock()
        self.extra_scope: dict[tuple[str, str], str] = {}
        """By a server's name and URL: the scope it has requested in addition. Not stored: it requests it again."""

    @property
    def keyring(self) -> Keyring | None:
        """The keyring in use; None where tokens go into the file."""
        if self._keyring == "system":
            self._keyring = system_keyring()
        return self._keyring

    def load(self, name: str, url: str) -> StoredLogin:
        """The login at a server; an empty `StoredLogin` if there is none."""
        stored = self._read().get(name, {}).get(canonical(url))
        if not isinstance(stored, dict):
            return StoredLogin()
        if stored.get("keyring") is True:
            stored = self._from_keyring(name, url)
        learn_from(stored, f"mcp.{name}")
        fields = {key: stored.get(key) for key in StoredLogin.__slots__}
        return StoredLogin(**{key: value if _fits(key, value) else None for key, value in fields.items()})

    def save(self, name: str, url: str, entry: StoredLogin) -> None:
        """Store the login at a server.

        Raises:
            ToolError: it can't be written.
        """
        fields: dict[str, Any] = {key: value for key, value in asdict(entry).items() if value is not None}
        learn_from(fields, f"mcp.{name}")
        if self._into_keyring(name, url, fields):
            fields = {"keyring": True}
        with self._locked_data() as data:
            data.setdefault(name, {})[canonical(url)] = fields

    def forget(self, name: str) -> bool:
        """Delete the logins at a server, whatever its URL was; False if there were none.

        Raises:
            ToolError: the file can't be written.
        """
        with self._locked_data() as data:
            removed = data.pop(name, {})
        for url, entry in removed.items():
            if isinstance(entry, dict) and entry.get("keyring") is True and self.keyring is not None:
                with contextlib.suppress(Exception):  # not there any more, or locked: it is of no use without the file
                    self.keyring.delete_password(SERVICE, _user(name, url))
        return bool(removed)

    def __repr__(self) -> str:
        return f"<TokenStore {self.path}>"

    # ------------------------------------------------------------------ the keyring

    def _from_keyring(self, name: str, url: str) -> dict[str, Any]:
        if self.keyring is None:
            return {}
        try:
            data = json.loads(self.keyring.get_password(SERVICE, _user(name, url)) or "{}")
        except Exception as error:
            log.warning("the system's keyring did not return the tokens of %s: %s", name, type(error).__name__)
            return {}
        return data if isinstance(data, dict) else {}

    def _into_keyring(self, name: str, url: str, entry: dict[str, Any]) -> bool:
        if self.keyring is None:
            return False
        try:
            self.keyring.set_password(SERVICE, _user(name, url), json.dumps(entry))
        except Exception as error:  # locked, too long (Windows takes 2.5 KB), or no keyring after all
            log.info("the system's keyring did not save the tokens of %s: %s", name, type(error).__name__)
            return False
        return True

    # ------------------------------------------------------------------ the file

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            self._make_private()
            data = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            log.warning("%s can't be read: log in to the servers again", self.path)
            return {}
        if not isinstance(data, dict):
            return {}
        return {str(name): urls for name, urls in data.items() if isinstance(urls, dict)}

    def _make_private(self) -> None:
        """Make the file private, in case it was copied here."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if os.name == "posix" and mode & ~OWNER_ONLY:
            self.path.chmod(OWNER_ONLY)

    @contextlib.contextmanager
    def _locked_data(self) -> Iterator[dict[str, dict[str, Any]]]:
        make_private_folder(self.path.parent)
        with self._lock, _process_lock(self.path.with_suffix(".lock")):
            data = self._read()
            yield data
            text = json.dumps({name: urls for name, urls in data.items() if urls}, indent=1)
            atomic.write(self.path, text.encode(), mode=OWNER_ONLY)


def system_keyring() -> Keyring | None:
    """The system's keyring; None if the package is not installed or has nothing fit for secrets here."""
    try:
        import keyring
        from keyring.backends.chainer import ChainerBackend

        backend = keyring.get_keyring()
        best = next(iter(backend.backends), None) if isinstance(backend, ChainerBackend) else backend
        is_fit = best is not None and float(best.priority) >= RECOMMENDED
    except Exception:  # a broken backend must not stand in the way of a login
        return None
    # Of a chain its best backend alone: what that refuses must not go to one that writes plain files.
    return best if is_fit else None


def canonical(url: str) -> str:
    """A server's URL as entries are kept by: without a fragment, names of hosts in lower case."""
    parts = urlsplit(url.strip())
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path or "/", parts.query, ""))


def _user(name: str, url: str) -> str:
    return f"{name} {canonical(url)}"


def _fits(key: str, value: Any) -> bool:
    if key == "expires_at":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, dict)


@contextlib.contextmanager
def _process_lock(path: Path) -> Iterator[None]:
    """One process at a time; several kernels may log in or refresh at once (Windows may lose a login by it)."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), OWNER_ONLY)
    try:
        lock_file(descriptor)
        yield
    finally:
        os.close(descriptor)
