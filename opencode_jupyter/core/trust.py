"""Which code of a project a person trusts: remembered by what it is and by the hash of its content.

Files that a project brings (tools, plugins, programs that a config file starts) run with the user's rights as soon as
they are loaded. So none is loaded before a person has approved exactly this content; new content needs a new approval,
one that was trusted before (another branch of a repository, say) does not.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .fingerprint import Stamp, stamp
from .paths import make_private_folder
from .permission.request import TRUST

if TYPE_CHECKING:
    from .permission.decision import Decision

log = logging.getLogger(__name__)

MOST_CONTENTS = 50
"""Contents remembered of one subject; of more, the longest trusted ones need approval again."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to trust: a tool file, a plugin, a server or a provider."""

    kind: str
    """``tool file``, ``plugin``, ``mcp server``."""
    name: str
    """A path or a command, for people; trust is remembered by `kind` and name."""
    digest: str
    """`digest` of the content; other content needs another approval."""
    shown: dict[str, Any] = field(default_factory=dict, hash=False, compare=False)
    """More for the card of the request: ``content``, ``command``."""


def digest(content: bytes | str) -> str:
    """SHA-256 of a content, as hexadecimal digits."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


class TrustAsker(Protocol):
    """A call that can request a person's trust."""

    async def ask_trust(self, permission: str, pattern: str, metadata: dict[str, Any]) -> Decision:
        """Request it; see `core.call_approval`."""


class Trust:
    """The trusted subjects, stored in a file of the user's data folder. Thread-safe.

    Args:
        path: the file, ``trust.json``; made at the first grant.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[str, list[str]] | None = None
        self._stamp: Stamp | None = None
        self._temporary: dict[str, str] = {}
        """Trust as long as this workspace is open: a policy's, or one that can't be stored."""
        self.requested: set[Subject] = set()
        """Projects for which trust was requested; once is enough."""

    def known(self, subject: Subject) -> bool:
        """Return whether a person trusted exactly this."""
        with self._lock:
            key = _key(subject)
            return subject.digest in self._read().get(key, ()) or subject.digest == self._temporary.get(key)

    def is_stored(self, subject: Subject) -> bool:
        """Return whether it is trusted beyond this workspace."""
        with self._lock:
            return subject.digest in self._read().get(_key(subject), ())

    def entries(self) -> list[tuple[str, str]]:
        """Kind and name of everything that a person trusted, whatever it holds now."""
        with self._lock:
            return [(kind, name) for kind, _, name in (key.partition(": ") for key in self._read())]

    def grant(self, *subjects: Subject) -> None:
        """Trust these from now on, in every workspace of this user."""
        with self._lock:
            known = dict(self._read())
            for subject in subjects:
                before = [old for old in known.get(_key(subject), ()) if old != subject.digest]
                known[_key(subject)] = [*before, subject.digest][-MOST_CONTENTS:]
            self._write(known)

    def grant_temporarily(self, *subjects: Subject) -> None:
        """Trust these as long as this workspace is open."""
        with self._lock:
            self._temporary |= {_key(subject): subject.digest for subject in subjects}

    def revoke(self, subject: Subject) -> bool:
        """Trust it no more, whatever its content; False if it was not trusted."""
        with self._lock:
            known = dict(self._read())
            temporary = self._temporary.pop(_key(subject), None) is not None
            if known.pop(_key(subject), None) is None:
                return temporary
            self._write(known)
            return True

    async def require(self, subject: Subject, call: TrustAsker, *more: Subject) -> None:
        """Request trust on a call's card, unless it is granted already.

        Args:
            subject: what to trust.
            call: the call that shows it.
            *more: what its card lists too, trusted with it.

        Raises:
            PermissionRejectedError: the person denied it, or nobody is there.
            PermissionCorrectedError: the person denied it with a reason.
        """
        if self.known(subject):
            return
        decision = await call.ask_trust(TRUST, subject.name, {"kind": subject.kind, **subject.shown})
        if decision.by != "policy":
            try:
                self.grant(subject, *more)
            except OSError as error:
                log.warning("what was trusted could not be saved in %s: %s", self._path, error.strerror or error)
            else:
                return
        self.grant_temporarily(subject, *more)

    def _read(self) -> dict[str, list[str]]:
        """Digests by kind and name, the newest last."""
        state = stamp(self._path)
        if state is None:
            self._known, self._stamp = {}, None
        elif self._known is None or state != self._stamp:
            try:
                data = json.loads(self._path.read_text("utf-8"))
                self._known = {
                    str(k): [str(content) for content in (v if isinstance(v, list) else [v])] for k, v in data.items()
                }
            except (OSError, ValueError, AttributeError):
                log.warning("%s cannot be read: trust is requested again", self._path)
                self._known = {}
            self._stamp = state
        return self._known

    def _write(self, known: dict[str, list[str]]) -> None:
        from . import atomic

        make_private_folder(self._path.parent)
        text = json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True)
        atomic.write(self._path, text.encode(), mode=0o600)
        self._known, self._stamp = known, None


def _key(subject: Subject) -> str:
    return f"{subject.kind}: {subject.name}"
