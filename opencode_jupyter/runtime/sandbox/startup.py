"""Start-up files that a sandboxed command makes: moved out of the project until a person wants them.

bubblewrap makes those that exist read-only; what does not exist yet can only be looked for afterwards.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...core.paths import make_private_folder
from .policy import SandboxPolicy

log = logging.getLogger(__name__)
_FILES = ("opencode.json", "opencode.jsonc", ".envrc", ".opencode")
_FOLDERS = ((".git", ".git/hooks"), (".opencode", ".opencode"), ("HEAD", "hooks"))
"""Folders in which every entry counts, each after what has to be there before the command for that."""
DEPTH = 2
"""Levels of such a folder that are looked at."""


class StartupFiles:
    """Looks for start-up files that come to be in the folders of a policy.

    Attributes:
        moved: where each is now that was moved, by where it was.
    """

    def __init__(self, policy: SandboxPolicy, storage: Path) -> None:
        self._storage = storage
        self._roots = policy.writable
        self._folders = [
            f"{root}/{name}" for root in self._roots for base, name in _FOLDERS if os.path.lexists(f"{root}/{base}")
        ]
        self._before = set(self._present())
        self.moved: dict[str, str] = {}

    def move(self) -> None:
        """Move what is new into the storage folder."""
        new = [path for path in self._present() if path not in self._before]
        for path in new:
            if not any(path.startswith(f"{other}/") for other in new) and os.path.lexists(path):
                make_private_folder(self._storage)
                target = str(self._storage / f"{len(self.moved)}-{os.path.basename(path)}")
                shutil.move(path, target)
                self.moved[path] = target
                log.warning("a sandboxed command made the start-up file %s; it is now %s", path, target)

    def restore(self) -> None:
        """Put back what was moved, but over nothing that came to be meanwhile."""
        for path, target in tuple(self.moved.items()):
            if not os.path.lexists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.move(target, path)
                del self.moved[path]

    def _present(self) -> Iterator[str]:
        for root in self._roots:
            yield from (path for name in _FILES if os.path.lexists(path := f"{root}/{name}"))
        for folder in self._folders:
            if os.path.isdir(folder) and not os.path.islink(folder):
                yield folder
                yield from _entries(folder, DEPTH)


def _entries(folder: str, depth: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            yield entry.path
            if depth > 1 and entry.name != "node_modules" and entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, depth - 1)
