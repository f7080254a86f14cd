"""Providers' keys: where they come from, and how they are kept out of what people and logs see."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ...core.secrets import HIDDEN, hide, known
from ..errors import ModelError
from .providers import BUILT_IN
from .settings import Provider
from .trust import LOOPBACK

log = logging.getLogger(__name__)
SERVICE = "opencode-jupyter"
"""Under which name the system's keyring has keys; the user's name there is the provider's id."""
KEYRING_SECONDS = 20.0
"""Time limit of the system's keyring, which may ask a person to unlock it."""
_LOOKS = re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_]?[A-Za-z0-9_*.-]{12,}|(?<=[Bb]earer )[^\s\"']{8,}")
"""Texts that look like a key, or a part of one that a provider shows."""


@dataclass(frozen=True, slots=True)
class Key:
    """A provider's key; its `repr` does not show it."""

    value: str = field(repr=False)
    source: str
    """Its source, for a person: ``OPENAI_API_KEY``, the config, the keyring."""


class KeySource:
    """Finds a provider's key; searched for again as long as there is none."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keyring: Key | None = None
        self._asked = False

    async def key(self) -> Key | None:
        """The configuration's key, else the environment's, else the keyring's."""
        provider = self._provider
        if provider.key:
            return Key(provider.key, f"provider.{provider.id}.options.apiKey of the configuration")
        key = from_environment(provider.keys) or self._keyring
        if key is None and self._may_be_in_keyring():
            self._asked = True
            try:
                async with asyncio.timeout(KEYRING_SECONDS):
                    key = self._keyring = await asyncio.to_thread(_from_keyring, provider.id)
            except TimeoutError:
                text = f"the system's keyring did not answer in {KEYRING_SECONDS:g} s; unlock it"
                raise ModelError(text, "auth", provider=provider.id) from None
        if key is not None and not (key.value.isascii() and key.value.isprintable()):
            text = f"the key from {key.source} has characters in it that no key has; copy it once more"
            raise ModelError(text, "auth", provider=provider.id)
        return key

    def _may_be_in_keyring(self) -> bool:
        """Return whether to ask the keyring: each time where there must be a key, once where there may be one."""
        provider = self._provider
        if not provider.keyless:
            return True
        is_local = urlsplit(provider.url).hostname in LOOPBACK
        return provider.id not in BUILT_IN and not is_local and not self._asked


def from_environment(names: Iterable[str]) -> Key | None:
    """The first of these variables that is set."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return Key(value, name)
    return None


def _from_keyring(provider: str) -> Key | None:
    """A key from the system's keyring, if the ``keyring`` package and a safe backend are installed.

    Blocks: a person may have to unlock it.
    """
    try:
        import keyring

        backend: Any = keyring.get_keyring()
        if backend.priority < 1:  # those below write plain files, or fail
            return None
        value = backend.get_password(SERVICE, provider)
    except Exception as error:
        log.debug("no key from the system's keyring: %s", type(error).__name__)
        return None
    if not value or not value.strip():
        return None
    known.learn(f"{provider} key", value.strip())
    return Key(value.strip(), "the system's keyring")


def redacted(text: str, secrets: Sequence[str] = ()) -> str:
    """A text without these secrets and without what looks like a key."""
    return _LOOKS.sub(HIDDEN, hide(text, secrets))
