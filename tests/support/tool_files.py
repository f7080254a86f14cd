"""A project, a home and a workspace over them, for tools that stand in files."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.sources.tool_files import FileTools


class ToolFolders:
    """Folders that hold tool files. `asked` keeps what a person was asked, `answer` is what they say."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.home, self.project, self.config = root / "home", root / "project", root / "config" / "opencode"
        for folder in (self.home, self.project / ".git"):
            folder.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        for name in ("OPENCODE_TEST_HOME", "OPENCODE_CONFIG_DIR", "OPENCODE_DISABLE_PROJECT_CONFIG"):
            monkeypatch.delenv(name, raising=False)
        self.asked: list[dict[str, Any]] = []
        self.answer: Any = "once"

    def own(self, name: str, text: str) -> Path:
        """Write a file of the user's own config folder."""
        return write(self.config / name, text)

    def theirs(self, name: str, text: str) -> Path:
        """Write a file of the project's ``.opencode``."""
        return write(self.project / ".opencode" / name, text)

    async def approve(self, request: Any) -> Any:
        if request.permission != "trust":
            return "once"
        self.asked.append({"pattern": request.patterns[0], **request.metadata})
        return self.answer

    @asynccontextmanager
    async def open(self, folder: Path | None = None) -> AsyncIterator[Workspace]:
        async with Workspace(
            folder or self.project, data_dir=self.root / "data", store=False, approve=self.approve
        ) as workspace:
            yield workspace


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def files_of(workspace: Workspace) -> FileTools:
    """The workspace's tools of files."""
    return next(source for source in workspace.registry.sources if isinstance(source, FileTools))


async def custom(workspace: Workspace) -> list[str]:
    """Ids of the tools that are not built in."""
    return [tool.id for tool in await workspace.registry.all() if not tool.builtin]


async def call_output(workspace: Workspace, id: str, **arguments: Any) -> str:
    """The output of a person's call."""
    return (await workspace.call(id, arguments, by="user")).output
