"""Start-up files that a sandboxed program makes, changes or deletes: undone until a person approves.

bubblewrap makes those that exist read-only. What does not exist yet, and with Landlock all of them, can only be looked
at afterwards: what is new is moved out of the project, and what was there is put back as it was.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..core import atomic
from ..core.errors import ToolError
from ..core.paths import make_private_folder
from .policy import SandboxPolicy

if TYPE_CHECKING:
    from ..core.result import ToolResult

log = logging.getLogger(__name__)
_FILES = (("", "opencode.json"), ("", "opencode.jsonc"), ("", ".envrc"), ("", ".opencode"))
_REPOSITORY = ("config", "config.worktree", "commondir", "info/attributes", "hooks")
_NAMES = (
    *_FILES,
    *((".git", f".git/{name}") for name in _REPOSITORY),
    *(("HEAD", name) for name in _REPOSITORY),
)
"""Start-up files and folders below a writable folder, each after what has to be there before the command for that."""
DEPTH = 2
"""Levels of such a folder that are looked at."""
LARGEST = 1 << 20
"""Bytes of a file that is put back."""
SHOWN = 8
"""Start-up files that are named to a person."""


class _State(NamedTuple):
    """What shows that a file is another: its kind and mode, number, size and times.

    The time of change cannot be set, so that it shows what was written in place.
    """

    mode: int
    inode: int
    size: int
    modified: int
    changed: int


_Content = bytes | str
"""A file's bytes, or where a link leads."""
_contents: dict[str, tuple[_State, _Content]] = {}
"""What the start-up files hold that were read; a file that stays the same is not read again."""
_watches: weakref.WeakSet[StartupFiles] = weakref.WeakSet()
"""Those whose program still runs: calls run side by side."""
_numbers = itertools.count()


class StartupFiles:
    """Looks for start-up files that change in the folders of a policy; without a policy, for none.

    Attributes:
        moved: where each is now that was made or changed, by where it was; "" for one that was only deleted.
        stuck: those that could not be put back as they were.
    """

    def __init__(self, policy: SandboxPolicy | None, storage: Path) -> None:
        self._storage = storage
        self._roots = () if policy is None else policy.writable
        self._paths = [
            f"{root}/{name}"
            for root in self._roots
            for base, name in _NAMES
            if not base or os.path.lexists(f"{root}/{base}")
        ]
        self._before = dict(self._present())
        self._old: dict[str, tuple[_State, _Content]] = {}
        for path, state in self._before.items():
            content = _read(path, state)
            if content is not None:
                self._old[path] = state, content
        self.moved: dict[str, str] = {}
        self.stuck: list[str] = []
        self._number = next(_numbers)
        _watches.add(self)

    def move(self) -> None:
        """Undo what was made, changed or deleted; what was written goes into the storage folder."""
        _watches.discard(self)
        now = dict(self._present())
        for path, state in now.items():
            before = self._before.get(path)
            new = before is None or stat.S_IFMT(before.mode) != stat.S_IFMT(state.mode)
            if not (new or (path in self._old and self._changed(path, state))) or not os.path.lexists(path):
                continue  # the last: it was moved with its folder
            if not atomic.is_own(path):
                self._take(path)
        deleted_repositories = tuple(f"{root}/.git/" for root in self._roots if not _is_folder(f"{root}/.git"))
        for path, (state, content) in self._old.items():
            if (
                not os.path.lexists(path)
                and not path.startswith(deleted_repositories)
                and self._link_above(path) is None
            ):
                self._put_back(path, state, content)

    def restore(self) -> None:
        """Put back what was moved, unless something else is there now."""
        for path, target in tuple(self.moved.items()):
            if path in self._old and os.path.lexists(path) and _read(path, _state(path)) == self._old[path][1]:
                os.unlink(path)
            if not os.path.lexists(path):
                if target:
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    shutil.move(target, path)
                    atomic.note_own(Path(path))
                del self.moved[path]

    def describe(self) -> str:
        """Where the files are now that were moved, for people and models."""
        lines = [f"{path} could not be put back as it was: look at it" for path in self.stuck]
        lines += [f"{path} is {f'now {target}' if target else 'as before'}" for path, target in self.moved.items()]
        return "; ".join(lines[:SHOWN])

    def add_note(self, result: ToolResult) -> ToolResult:
        """The result of a call, which names the files that were moved."""
        if self.moved or self.stuck:
            undone = "The sandbox undid changes of files that other programs run or obey"
            result.output = f"{result.output}\n\n{undone}: {self.describe()}"
        return result

    def _changed(self, path: str, state: _State) -> bool:
        before, content = self._old[path]
        return state != before and (state.mode != before.mode or _read(path, state) != content)

    def _take(self, path: str) -> None:
        target = str(self._storage / f"{len(self.moved)}-{os.path.basename(path)}")
        try:
            make_private_folder(self._storage)
            _make_movable(path)
            shutil.move(path, target)
        except (OSError, shutil.Error):
            self._give_up(path)
            return
        self.moved[path] = target
        self._update_later_watches(path)
        log.warning("a sandboxed program wrote the start-up file %s; it is now %s", path, target)

    def _put_back(self, path: str, state: _State, content: _Content) -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(content, str):
                os.symlink(content, path)
            else:
                atomic.write(path, content, mode=stat.S_IMODE(state.mode))
        except (OSError, ToolError):
            self._give_up(path)
            return
        atomic.disown(path)  # an earlier call may have to undo it again
        self.moved.setdefault(path, "")
        self._update_later_watches(path)

    def _give_up(self, path: str) -> None:
        self.stuck.append(path)
        log.warning("the start-up file %s, which a sandboxed program changed, cannot be put back", path)

    def _update_later_watches(self, path: str) -> None:
        """Give watches that started later the state before this one as the state before theirs."""
        for other in [watch for watch in _watches if watch._number > self._number]:
            for below in [name for name in other._before if f"{name}/".startswith(f"{path}/")]:
                del other._before[below]
                other._old.pop(below, None)
            if path in self._old:
                other._before[path], other._old[path] = self._old[path][0], self._old[path]

    def _present(self) -> Iterator[tuple[str, _State]]:
        """What there is; nothing that lies behind a link, which may lead out of the folder."""
        repositories = [f"{root}/.git" for root in self._roots if not _is_folder(f"{root}/.git")]
        for path in dict.fromkeys(self._link_above(path) or path for path in [*self._paths, *repositories]):
            with contextlib.suppress(OSError):
                state = _state(path)
                yield path, state
                if stat.S_ISDIR(state.mode):
                    yield from _entries(path, DEPTH)

    def _link_above(self, path: str) -> str | None:
        """The outermost link among the folders between the writable folder and a path."""
        root = next(root for root in self._roots if path.startswith(f"{root}/"))
        folder = os.path.dirname(path)
        links = []
        while len(folder) > len(root):
            if os.path.islink(folder):
                links.append(folder)
            folder = os.path.dirname(folder)
        return links[-1] if links else None


def _is_folder(path: str) -> bool:
    """Whether it is a folder itself, and no link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _make_movable(path: str) -> None:
    """Let a path and what is in it be moved by its owner, whatever modes a program has set."""
    for folder in [os.path.dirname(path), path] if _is_folder(path) else [os.path.dirname(path)]:
        os.chmod(folder, os.stat(folder).st_mode | stat.S_IRWXU)
    if _is_folder(path):
        for folder, names, _ in os.walk(path):
            for name in names:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner):
                    os.chmod(inner, os.stat(inner).st_mode | stat.S_IRWXU)


def _state(path: str) -> _State:
    status = os.lstat(path)
    if stat.S_ISDIR(status.st_mode):  # its times change with its entries, which are looked at by themselves
        return _State(status.st_mode, status.st_ino, 0, 0, 0)
    return _State(status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _read(path: str, state: _State) -> _Content | None:
    """What a file holds; None for a folder and for what is too large."""
    cached = _contents.get(path)
    if cached is not None and cached[0] == state:
        return cached[1]
    content: _Content | None = None
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(state.mode):
            content = os.readlink(path)
        elif stat.S_ISREG(state.mode) and state.size <= LARGEST:
            content = Path(path).read_bytes()
    if content is not None:
        if len(_contents) > 1_000:
            _contents.clear()
        _contents[path] = state, content
    return content


def _entries(folder: str, depth: int) -> Iterator[tuple[str, _State]]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            yield entry.path, _state(entry.path)
            if depth > 1 and entry.name != "node_modules" and entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, depth - 1)
