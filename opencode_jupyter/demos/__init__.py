"""Practice folders for notebooks: a small project with real data, and a scripted model that works in it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from ..core.suggestions import did_you_mean

FILES = Path(__file__).parent
ABOUT = "about.txt"
"""In each demo: a line for each file, which is shown and not copied."""


class DemoFolder:
    """A practice folder; a notebook shows what is in it.

    Attributes:
        path: the folder, a git repository. It is removed when the kernel ends.
    """

    def __init__(self, path: Path, about: str) -> None:
        self.path = path
        self._about = about

    def __repr__(self) -> str:
        return f"The current folder is now {self.path}. It is removed when the kernel ends.\n\n{self._about}"


def demo(name: str = "penguins") -> DemoFolder:
    """Make a practice folder and make it the current folder.

    Args:
        name: which demo: ``penguins``, 344 measured penguins (Gorman, Williams and Fraser 2014, Palmer Station LTER;
            CC0) and a small program; ``sensors``, a program with a bug and a check that fails; ``shop``, prices, a
            till, and an MCP server.

    Returns:
        The folder; its representation lists the files.

    Raises:
        ValueError: there is no such demo.
    """
    source = FILES / name
    if not (source / ABOUT).is_file():
        known = sorted(path.parent.name for path in FILES.glob(f"*/{ABOUT}"))
        raise ValueError(f"There is no demo {name!r}.{did_you_mean(name, known)} The demos are {', '.join(known)}.")
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-")).resolve()
    atexit.register(_remove, folder)
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(ABOUT, "__pycache__"))
    author = ("-c", "user.name=Demo", "-c", "user.email=demo@localhost")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Add the practice files")):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    os.chdir(folder)
    return DemoFolder(folder, (source / ABOUT).read_text(encoding="utf-8").strip())


def _remove(folder: Path) -> None:
    """Remove a practice folder, and leave it first: what ends after this may ask for the current folder."""
    with suppress(OSError):
        os.chdir(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
