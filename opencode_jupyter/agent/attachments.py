"""Files that go along with a prompt: pictures and PDF files as they are, texts as text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.errors import InvalidArgumentsError
from ..core.messages import Message, new_part
from ..core.result import Attachment

LARGEST = 20 * 1024 * 1024
"""Bytes of one file; providers take no more."""
LONGEST_TEXT = 50 * 1024
"""Bytes of a text file; a longer one is to be read with the read tool."""


def file_parts(message: Message, files: Iterable[Any], directory: Path) -> list[dict[str, Any]]:
    """The parts of a user's message for its files.

    Args:
        message: where they go.
        files: paths (relative ones start at `directory`), or `Attachment` objects.
        directory: the workspace's folder.

    Raises:
        InvalidArgumentsError: one can't be read, or is too large; it says which.
    """
    parts: list[dict[str, Any]] = []
    for given in files:
        if isinstance(given, Attachment):
            parts.append(new_part(message, "file", mime=given.mime, url=given.url, filename=given.filename or "file"))
        elif isinstance(given, (str, os.PathLike)):
            parts += _of_path(message, Path(directory, os.path.expanduser(given)))
        else:
            kind = type(given).__name__
            raise InvalidArgumentsError(f"a file must be a path or an Attachment, not {kind}")
    return parts


def _of_path(message: Message, path: Path) -> list[dict[str, Any]]:
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidArgumentsError(f"{path} is larger than {LARGEST // 1024**2} MB; it cannot be sent to a model")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentsError(f"{path} can't be read: {error.strerror or error}") from error
    mime = _mime(path, data)
    if mime is not None:
        attachment = Attachment.from_bytes(data, mime, path.name)
        return [new_part(message, "file", mime=mime, url=attachment.url, filename=path.name)]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentsError(
            f"{path} is neither a picture, a PDF file nor text; it cannot be sent to a model"
        ) from None
    if len(data) > LONGEST_TEXT:
        raise InvalidArgumentsError(
            f"{path} is longer than {LONGEST_TEXT // 1024} KB; name it in the prompt, and the model reads what it needs"
        )
    return [new_part(message, "text", text=f"<file path={str(path)!r}>\n{text}\n</file>", synthetic=True)]


def _mime(path: Path, data: bytes) -> str | None:
    for start, mime in ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")):
        if data.startswith(start):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if data.startswith(b"%PDF-") else None
