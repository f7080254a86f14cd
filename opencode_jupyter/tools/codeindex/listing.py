"""Which files of a project are searched, and which of them have changed: quick, since every search asks."""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import ToolError
from .._ripgrep import Search
from .extract import KNOWN

MOST = 200_000
"""Files; of a larger project the rest is not searched."""
_MARK = b"pyvenv.cfg"
"""In the top folder of a Python environment, which is not the project's code."""


class Listing:
    """The files of a folder as ripgrep lists them: ignore files are honoured, hidden files and links left out.

    Attributes:
        paths: relative to the folder, with slashes.
        cut: whether there are more than `MOST`.
        engine: ``ripgrep`` or ``python``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: list[str] = []
        self.cut = False
        self.engine = "ripgrep"
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
        self.engine = search.engine
        if search.code not in (0, 1) and not raw:
            raise ToolError(f"The project's files can't be listed: {search.errors or f'exit code {search.code}'}")
        if raw == self._raw:
            return False
        before, self._raw = self.paths, raw
        self.paths, self.cut = _wanted(raw)
        return self.paths != before


def _wanted(raw: bytes) -> tuple[list[str], bool]:
    names = [name.removeprefix(b"./") for name in raw.split(b"\0")]
    environments = {name.removesuffix(_MARK) for name in names if name.endswith(b"/" + _MARK)}
    out: list[str] = []
    known = tuple(os.fsencode(extension) for extension in KNOWN)
    for name in names:
        if not name.endswith(known) and not name.lower().endswith(known):
            continue
        if b"node_modules/" in name or (environments and _under(name, environments)):
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


def _under(name: bytes, folders: set[bytes]) -> bool:
    at = name.find(b"/")
    while at >= 0:
        if name[: at + 1] in folders:
            return True
        at = name.find(b"/", at + 1)
    return False


def states(root: Path, paths: list[str]) -> dict[str, tuple[int, int]]:
    """Time of change (ns) and size of files; those that are gone are left out."""
    base = str(root).rstrip(os.sep) + os.sep
    look = os.lstat
    found = {}
    for path in paths:
        try:
            one = look(base + path)
        except OSError:
            continue
        found[path] = (one.st_mtime_ns, one.st_size)
    return found
