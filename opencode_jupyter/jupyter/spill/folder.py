"""The one folder whose files the viewer may read."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path

from ...core.spill import current_path
from ...core.truncation import RETENTION_DAYS


class SpillFolder:
    """Opens the files in one folder of spilled outputs; no other file, and nothing through a link.

    Args:
        directory: The workspace's ``tool-output`` folder.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def open(self, path: str) -> FileIO:
        """The file, for reading.

        Raises:
            ValueError: it is not a regular file of this folder.
            OSError: it can't be opened.
        """
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.realpath(folder) != os.path.realpath(self.directory):
            raise ValueError(f"only full outputs in {self.directory} are shown here")
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(current_path(os.path.join(folder, name)), flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ValueError("it is not a regular file")
        return FileIO(descriptor)


def error_reply(error: Exception) -> dict[str, str]:
    """A reply that says why a file could not be read."""
    if isinstance(error, FileNotFoundError):
        return {"error": f"The file was deleted: full outputs are kept for {RETENTION_DAYS:g} days."}
    return {"error": f"The file can't be read: {error}"}


def read_at(file: FileIO, offset: int, count: int) -> bytes:
    """Up to `count` bytes from `offset` on; fewer only at the file's end."""
    file.seek(offset)
    data = file.read(count) or b""
    while len(data) < count:
        more = file.read(count - len(data))
        if not more:
            break
        data += more
    return data
