"""A session as OpenCode's export command writes it: a real release imports it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core import atomic
from ...core.sessions import Session
from .fitting import fitted
from .reading import read, shown

if TYPE_CHECKING:
    from ...core.workspace import Workspace


async def export(workspace: Workspace, session: str | Session) -> dict[str, Any]:
    """A session with all its messages and parts: ``{"info", "messages"}``.

    What is in it is what the session holds: tools' arguments and outputs, answers, attachments as ``data:`` URLs.
    Rules that a mode of the session made, and what else only this program knows, are left out.

    Raises:
        KeyError: there is none of that id.
    """
    info, messages = workspace.masked(await read(workspace, session))
    return await asyncio.to_thread(lambda: fitted(info, shown(messages)))


async def export_file(workspace: Workspace, session: str | Session, path: str | os.PathLike[str]) -> Path:
    """`export` into a file; one that is there is replaced as a whole.

    Raises:
        KeyError: there is none of that id.
        ToolError: the file can't be written.
    """
    data = await export(workspace, session)
    return await asyncio.to_thread(lambda: write_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n"))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a file whole or not at all. Half of a surrogate pair is written as JSON's escape.

    Raises:
        ToolError: it can't be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:  # only strings of JSON can hold one, and there \ud800 means the same
        data = text.encode("utf-8", "backslashreplace")
    return atomic.write(path, data)
