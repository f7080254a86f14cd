"""Apply a patch to a folder without asking anybody: for code, not for tools (docs/opencode/tools.md 9.9)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ...core import atomic
from ...core.atomic_many import Write, write_all
from ...core.errors import ToolError
from ...core.paths import check_file_name
from .errors import PatchError
from .grammar import Hunk, parse
from .plan import FileChange, Plan, plan


def apply(patch_text: str, directory: str | os.PathLike[str] = ".", *, final_newline: bool = False) -> list[FileChange]:
    """Apply a patch to the files in a folder: all of it or nothing.

    Args:
        patch_text: the patch.
        directory: where relative paths start; ``~`` is the home folder.
        final_newline: end added files with a newline, as the tool does; OpenCode's function of this name does not.

    Returns:
        What was done, in the order of the patch.

    Raises:
        PatchError: it is no patch, or does not fit the files.
        ToolError: a file can't be read or written, or a path can't be the name of a file.
    """
    made = verify(parse(patch_text), directory, final_newline=final_newline)
    write_all([Write(one.path, one.after, one.before, one.mode) for one in made.results])
    return made.changes


def verify(hunks: list[Hunk], directory: str | os.PathLike[str] = ".", *, final_newline: bool = False) -> Plan:
    """What `hunks` would do to the files in a folder; nothing is written.

    Raises:
        PatchError: there are none, or they do not fit the files.
        ToolError: a file can't be read.
    """
    if not hunks:
        raise PatchError("No files were modified.")
    base = Path(os.path.abspath(directory))

    def resolve(path: str) -> Path:
        check_file_name(path)
        return Path(os.path.normpath(os.path.join(base, os.path.expanduser(path))))

    return plan(hunks, resolve, _read, final_newline=final_newline)


def _read(path: Path) -> bytes | None:
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise ToolError(f"Path is a directory, not a file: {path}")
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"Not a regular file: {path}")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(atomic.explain(error, str(path)).replace("write", "read", 1)) from error
