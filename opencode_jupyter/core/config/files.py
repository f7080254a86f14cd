"""Where config files may be, and reading the text of one."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..errors import ConfigError

LARGEST = 1_000_000
"""Bytes a file may have. A long configuration has 20,000; what is larger was not meant, and would take seconds."""
AGENT_FOLDERS = ("agent", "agents", "mode", "modes")
"""Folders of a config folder that hold agents as Markdown files."""


def read_text(path: Path) -> str | None:
    """A config file's text without a byte order mark, None if there is no such file.

    Raises:
        ConfigError: it is there and can't be read as text.
    """
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(_not_utf8(error), path=str(path), line=_line(error)) from None
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror or error}", path=str(path)) from None


def read(path: Path) -> str:
    """Read a file like `read`, but raise Python's own errors.

    Raises:
        OSError: it can't be read, is no plain file, or is too large.
        UnicodeDecodeError: it is no UTF-8.
    """
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(0, "it is a folder, and a file is expected here")
    if not stat.S_ISREG(status.st_mode):  # a pipe would never end, or never begin
        raise OSError(0, "it is no plain file")
    if status.st_size > LARGEST:
        raise OSError(0, f"it has {status.st_size:,} bytes; at most {LARGEST:,} are read")
    return path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("utf-8")


def upwards(start: Path, stop: Path) -> Iterator[Path]:
    """`start` and its parents up to `stop`; `start` alone if `stop` is not above it."""
    if not start.is_relative_to(stop):
        yield start
        return
    for folder in (start, *start.parents):
        yield folder
        if folder == stop:
            return


def display(path: Path, project: Path, home: Path) -> str:
    """A file's name for a person: relative to the project, else with ``~``, else whole."""
    for base, prefix in ((project, ""), (home, "~" + os.sep)):
        if path.is_relative_to(base) and base != Path(base.anchor):
            return prefix + str(path.relative_to(base))
    return str(path)


def _line(error: UnicodeDecodeError) -> int:
    return error.object.count(b"\n", 0, error.start) + 1


def _not_utf8(error: UnicodeDecodeError) -> str:
    if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is not UTF-8 text but UTF-16; save it as UTF-8"
    return f"is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
