"""Providers' keys: where they come from, and how they are kept out of what people and logs see."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.secrets import HIDDEN, hide, known

log = logging.getLogger(__name__)
SERVICE = "opencode-jupyter"
"""Under which name the system's keyring has keys; the user's name there is the provider's id."""
_LOOKS = re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_]?[A-Za-z0-9_*.-]{12,}|(?<=[Bb]earer )[^\s\"']{8,}")
"""Texts that look like a key, or a part of one that a provider shows."""


@dataclass(frozen=True, slots=True)
class Key:
    """A provider's key; its `repr` does not show it."""

    value: str = field(repr=False)
    source: str
    """Its source, for a person: ``OPENAI_API_KEY``, the config, the keyring."""


def from_environment(names: Iterable[str]) -> Key | None:
    """The first of these variables that is set."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            return Key(value, name)
    return None


def from_keyring(provider: str) -> Key | None:
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
