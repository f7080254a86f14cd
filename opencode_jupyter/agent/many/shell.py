"""A command of the user's own: a case's setup, or a scorer's check. No rule judges it, since no model wrote it."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from ...tools.process.child import spawn

LIMIT = 300.0
"""Seconds a command may take."""
KEPT = 100_000
"""Bytes of its output that are kept, from the end."""


async def run_command(command: str, folder: Path, limit: float = LIMIT) -> tuple[int, str]:
    """Run a command in a folder.

    Returns:
        Its exit code (124 if it took too long, 128 and the signal's number if one ended it) and its output.
    """
    output = bytearray()

    def more(data: bytes) -> None:
        output.extend(data)
        del output[:-KEPT]

    shell = ["cmd", "/c", command] if os.name == "nt" else ["/bin/sh", "-c", command]
    child = await spawn(shell, cwd=str(folder), env=dict(os.environ), on_output=more)
    code = 124
    try:
        with anyio.move_on_after(limit):
            outcome = await child.wait()
            code = 128 + (outcome.signal or 0) if outcome.code is None else outcome.code
        if code == 124:
            await child.stop()
    except BaseException:
        await child.stop()
        raise
    finally:
        child.close()
    return code, bytes(output).decode("utf-8", "replace")
