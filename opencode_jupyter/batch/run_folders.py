"""The folder of a run: the workspace's, another one, a copy of it, a git worktree, or a fresh folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from ..agent.sessions import sessions_of
from ..core.errors import ToolError
from ..core.host import ToolHost
from ..core.paths import find_worktree, make_private_folder

if TYPE_CHECKING:
    from ..agent.sessions import AgentSession
    from .jobs import BatchJob


Isolate = Literal["copy", "worktree", "fresh"]
RUNS = "runs"
"""The folder of the data folder that copies are made in."""


class RunFolders:
    """Gives each run its folder.

    Args:
        workspace: whose runs they are.
        batch: names the folder of the copies.
        isolate: ``copy``: of the whole project (its worktree, or the folder where there is no git); ``worktree``: a git
            worktree at the last commit; ``fresh``: an empty folder; None: all in the workspace's folder.

    Raises:
        ToolError: worktrees are requested and this is no git repository with a commit.
    """

    def __init__(self, workspace: ToolHost, batch: str, isolate: Isolate | None = None) -> None:
        self.workspace = workspace
        self.folder = workspace.data_dir / RUNS / batch
        self.isolate = isolate
        versioned = str(workspace.worktree) != workspace.worktree.anchor
        self.root = workspace.worktree if versioned else workspace.directory
        self._git = asyncio.Lock()
        if isolate == "worktree" and (not versioned or _git(self.root, "rev-parse", "--verify", "HEAD")):
            raise ToolError(
                f'isolate="worktree" needs a git repository with a commit, and {workspace.directory} has none; '
                'isolate="copy" copies the folder as it is'
            )

    @asynccontextmanager
    async def open(self, job: BatchJob) -> AsyncIterator[tuple[ToolHost, AgentSession, str]]:
        """A run's workspace, its session (a new one if it names none), the root of the copy made for it ("" for none).

        Raises:
            ToolError: its folder can't be made.
            NotADirectoryError: its folder is none.
            UnknownSessionError: there is no session of the id it names.
            ConfigError: another folder's configuration can't be read.
        """
        workspace = self.workspace
        if self.isolate is None and job.directory is None:
            session_id = job.options.get("session")
            session = None if session_id is None else await sessions_of(workspace).open(session_id)
            yield workspace, session or sessions_of(workspace).create(job.title), ""
            return
        if job.options.get("session") is not None:
            raise ToolError("an isolated run always starts its own session: remove session=")
        directory, copied = await self._folder(job)
        async with workspace_in(workspace, directory, own_config=not copied) as other:
            session = sessions_of(other).create(job.title)
            workspace.sessions.add(session)
            with _share_state(workspace, other):
                yield other, session, copied
            for child in other.sessions.list():
                if child is not session:
                    workspace.sessions.add(child)

    async def _folder(self, job: BatchJob) -> tuple[Path, str]:
        directory = Path(job.directory or self.workspace.directory)
        if not directory.is_absolute():
            directory = self.workspace.directory / directory
        if self.isolate is None:
            return directory, ""
        copy_folder = self.folder / str(job.index)
        try:
            if copy_folder.exists():  # of an attempt whose worker was lost
                await asyncio.to_thread(discard, copy_folder)
            make_private_folder(copy_folder.parent)
            if self.isolate == "fresh":
                copy_folder.mkdir()
                return copy_folder, str(copy_folder)
            if not directory.is_relative_to(self.root):
                raise ToolError(f"{directory} is outside {self.root}, so a copy of that does not have it")
            with anyio.CancelScope(shield=True):  # a thread can't be stopped, and half a copy must not be left
                if self.isolate == "copy":
                    await asyncio.to_thread(_copy, self.root, copy_folder, self.workspace.data_dir)
                else:
                    async with self._git:
                        problem = await asyncio.to_thread(
                            _git, self.root, "worktree", "add", "--quiet", "--detach", str(copy_folder), "HEAD"
                        )
                    if problem:
                        raise ToolError(f"git could not make a worktree for run {job.index}: {problem}")
        except (OSError, shutil.Error) as error:
            raise ToolError(f"the folder of run {job.index} could not be made in {self.folder}: {error}") from error
        return copy_folder / directory.relative_to(self.root), str(copy_folder)


@asynccontextmanager
async def workspace_in(workspace: ToolHost, directory: Path, *, own_config: bool) -> AsyncIterator[ToolHost]:
    """A workspace for another folder: registered tools, rules and what runs tools are those of `workspace`.

    Args:
        workspace: the workspace whose tools and rules it shares.
        directory: its folder.
        own_config: go by that folder's config files; else by the configuration of `workspace`.
    """
    other = type(workspace)(directory, workspace.overrides, workspace.data_dir, store=False)
    other_request, own_request = other.config.trust_subject, workspace.config.trust_subject
    if not own_config:
        other.use_config(workspace.config)
    elif (
        own_request and other_request and own_request.digest == other_request.digest and not workspace.config.withheld
    ):  # a copy of the project
        other.trust.grant_temporarily(other_request)
        other.reload_config()
    for tool in workspace.registry.registered:
        other.registry.register(tool)
    other.rules = workspace.rules
    other.execute, other.present, other.flags = workspace.execute, workspace.present, workspace.flags
    async with other:
        yield other


SHARED_ATTRIBUTES = ("bus", "hooks", "permissions", "questions", "store", "calls")


@contextmanager
def _share_state(workspace: ToolHost, other: ToolHost) -> Iterator[None]:
    """Let another workspace publish, ask and store through this one; it gets its own objects back when it closes."""
    original = {name: getattr(other, name) for name in SHARED_ATTRIBUTES}
    for name in SHARED_ATTRIBUTES:
        setattr(other, name, getattr(workspace, name))
    try:
        yield
    finally:
        for name, value in original.items():
            setattr(other, name, value)


def _copy(source: Path, target: Path, without: Path) -> None:
    def ignore(folder: str, names: list[str]) -> set[str]:
        excluded = set()
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
            if special or path == str(without):
                excluded.add(name)
        return excluded

    try:
        shutil.copytree(source, target, symlinks=True, ignore=ignore)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def discard(copied: Path) -> None:
    """Remove a copy; of a git worktree also what its repository knows of it."""
    link = copied / ".git"
    home = find_worktree(Path(link.read_text().partition(":")[2].strip())) if link.is_file() else None
    shutil.rmtree(copied, ignore_errors=True)
    if home is not None:
        _git(home, "worktree", "prune")


def _git(folder: Path, *arguments: str) -> str:
    """Run git; "" if it succeeded, else its error message."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"git ended with {done.returncode}"
