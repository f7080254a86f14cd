"""Workspaces and runs for tests of the model loop."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from opencode_jupyter import Workspace
from opencode_jupyter.core.call_state import Completed, Failed, ToolPart

QUIET = {"permission": {"*": "allow"}}
"""A configuration in which nothing asks."""


@asynccontextmanager
async def project(
    folder: Path,
    *,
    config: dict[str, Any] | None = None,
    approve: Callable[..., Any] | None = None,
    git: bool = False,
    store: bool = True,
    **files: str,
) -> AsyncGenerator[Workspace, None]:
    """A workspace in a fresh folder below `folder`; keyword names are files (``a_txt`` is a.txt)."""
    directory = folder / "project"
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".")).write_text(text)
    if git:
        subprocess.run(["git", "init", "-q", str(directory)], check=True)
    async with Workspace(
        directory, config=QUIET if config is None else config, data_dir=folder / "data", approve=approve, store=store
    ) as workspace:
        yield workspace


def ends(parts: list[ToolPart]) -> list[tuple[str, str, str]]:
    """Of each call its tool, its state, and its output or error."""
    states = []
    for part in parts:
        state = part.state
        text = state.output if isinstance(state, Completed) else state.error if isinstance(state, Failed) else ""
        states.append((part.tool, state.status, text))
    return states
