"""Which files of a project are searched, and whether they have changed: quick, since every search asks.

The kernel notes changes in the folders that are watched (inotify, man 7 inotify; Linux). Where that can't be had
(another system, too many folders), they may always have changed. It is never more than a hint to look again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ...core.errors import ToolError
from ..ripgrep import Search
from .pieces import KNOWN

MOST = 200_000
"""Files; of a larger project the rest is not searched."""
_MARK = b"pyvenv.cfg"
"""In the top folder of a Python environment, which is not the project's code."""
TRUSTED = 60.0
"""Seconds for which silence is believed: a folder shared over a network changes without a word."""
FOLDERS = 20_000
"""Folders of a project that are watched; a larger one is looked at every time."""
_MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x01000000
"""MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF; ONLYDIR."""
_LOST = 0x400 | 0x800 | 0x2000 | 0x4000 | 0x8000
"""DELETE_SELF, MOVE_SELF, UNMOUNT, Q_OVERFLOW, IGNORED: what is watched is not what it was."""
_FOLDER = 0x40000000
_HEADER = struct.Struct("iIII")
_SKIPPED = ("__pycache__", "node_modules")


class Listing:
    """The files of a folder as ripgrep lists them: ignore files are honoured, hidden files and links left out.

    Attributes:
        paths: relative to the folder, with slashes.
        cut: whether there are more than `MOST`.
        engine_note: for a result's metadata, where ripgrep is missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: list[str] = []
        self.cut = False
        self.engine_note: dict[str, str] = {}
        self._raw: bytes | None = None

    async def update(self) -> bool:
        """List anew; True if `paths` are not what they were.

        Raises:
            ToolError: the folder can't be listed.
        """
        globs = ["--glob=!.git", "--glob=!node_modules"]
        # one thread: the order stays the same, so that an unchanged tree is known by comparing bytes
        search = Search(["--files", "--null", "--threads=1", *globs, "--", "./"], self.root)
        raw = b"".join([chunk async for chunk in search.chunks()])
        self.engine_note = search.engine_note
        if search.code not in (0, 1) and not raw:
            raise ToolError(f"The project's files can't be listed: {search.errors or f'exit code {search.code}'}")
        if raw == self._raw:
            return False
        before, self._raw = self.paths, raw
        self.paths, self.cut = _indexed_paths(raw)
        return self.paths != before


def _indexed_paths(raw: bytes) -> tuple[list[str], bool]:
    names = [name.removeprefix(b"./") for name in raw.split(b"\0")]
    environments = {name.removesuffix(_MARK) for name in names if name.endswith(b"/" + _MARK)}
    out: list[str] = []
    suffixes = tuple(os.fsencode(extension) for extension in KNOWN)
    for name in names:
        if not name.endswith(suffixes) and not name.lower().endswith(suffixes):
            continue
        if b"node_modules/" in name or (environments and _is_under(name, environments)):
            continue
        try:
            path = os.fsdecode(name)
            path.encode()
        except UnicodeError:
            continue  # SQLite keeps text, and this name is none
        out.append(path.replace("\\", "/") if os.sep == "\\" else path)
        if len(out) > MOST:
            break
    out.sort()
    return out[:MOST], len(out) > MOST


def _is_under(name: bytes, folders: set[bytes]) -> bool:
    at = name.find(b"/")
    while at >= 0:
        if name[: at + 1] in folders:
            return True
        at = name.find(b"/", at + 1)
    return False


def file_states(root: Path, paths: list[str]) -> dict[str, tuple[int, int]]:
    """Time of change (ns) and size of files; those that are gone are left out."""
    base = str(root).rstrip(os.sep) + os.sep
    lstat = os.lstat
    out = {}
    for path in paths:
        try:
            status = lstat(base + path)
        except OSError:
            continue
        out[path] = (status.st_mtime_ns, status.st_size)
    return out


class FolderWatch:
    """Watches the folders of one project. Not for several threads at once.

    Args:
        root: the project's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._descriptor: int | None = None
        self._since = 0.0

    def start(self, paths: Iterable[str]) -> None:
        """Watch the folders of these files, and those that are empty by now; call it before looking at the files.

        Args:
            paths: relative to the root.
        """
        self.close()
        libc = load_libc()
        if libc is None:
            return
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor >= 0:
            self._descriptor = descriptor
            self._since = time.monotonic()
            self.add(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Watch the folders of further files too."""
        if self._descriptor is None:
            return
        libc, descriptor = load_libc(), self._descriptor
        folders = _folders(self._root, paths)
        if folders is None or any(libc.inotify_add_watch(descriptor, os.fsencode(f), _MASK) < 0 for f in folders):
            self.close()

    def is_quiet(self) -> bool:
        """Return whether nothing relevant has changed since `start`; once False, it stays so until the next `start`."""
        if self._descriptor is None:
            return False
        if time.monotonic() - self._since > TRUSTED or self._has_relevant_event(self._descriptor):
            self.close()
            return False
        return True

    def close(self) -> None:
        """Watch no more."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _has_relevant_event(self, descriptor: int) -> bool:
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                return False
            except OSError:
                return True
            at = 0
            while at < len(data):
                _, mask, _, length = _HEADER.unpack_from(data, at)
                name = data[at + _HEADER.size : at + _HEADER.size + length].rstrip(b"\0")
                at += _HEADER.size + length
                if _is_relevant(mask, os.fsdecode(name)):
                    return True


def _is_relevant(mask: int, name: str) -> bool:
    if mask & _LOST:
        return True
    if mask & _FOLDER:
        return bool(name) and not name.startswith(".") and name not in _SKIPPED
    ignoring = name in (".gitignore", ".ignore", ".rgignore", "pyvenv.cfg")
    return ignoring or os.path.splitext(name)[1].lower() in KNOWN


def _folders(root: str, paths: Iterable[str]) -> set[str] | None:
    """The folders to watch; None if they are too many."""
    folders = {root}
    for folder in {path.rpartition("/")[0] for path in paths}:
        relative = folder
        while relative and (full := f"{root}/{relative}") not in folders:
            folders.add(full)
            relative = relative.rpartition("/")[0]
    todo = list(folders)
    while todo:  # a file may come into a folder that has none yet
        if len(folders) > FOLDERS:
            return None
        try:
            with os.scandir(todo.pop()) as entries:
                inner = [e.path for e in entries if e.is_dir(follow_symlinks=False) and _is_relevant(_FOLDER, e.name)]
        except OSError:
            continue
        new = [path for path in inner if path not in folders]
        folders.update(new)
        todo += new
    return folders


@cache
def load_libc() -> Any:
    """The C library with inotify; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.inotify_init1.argtypes = (ctypes.c_int,)
        libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    except (OSError, AttributeError):
        return None
    return libc
