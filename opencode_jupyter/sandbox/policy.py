"""What a sandboxed program may do: the profile, the folders it may write, what it must not read, its limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Profile = Literal["off", "workspace-write", "read-only"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
"""From the loosest to the strictest."""

_SECRETS = tuple(
    ".ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .pgpass .my.cnf .git-credentials .password-store "
    ".mozilla .config/gh .config/gcloud .config/git/credentials .config/rclone .config/google-chrome .config/chromium "
    ".local/share/keyrings .local/share/opencode .local/share/jupyter/runtime Library/Keychains "
    "Library/Jupyter/runtime".split()
)
"""Files and folders of the home folder that hold keys, logins or tokens."""
_STARTUP = tuple(
    ".git/hooks .git/config .git/info/attributes .opencode opencode.json opencode.jsonc .envrc .bashrc .bash_profile "
    ".bash_logout .profile .zshrc .zshenv .zprofile .gitconfig .config/opencode .config/git .config/autostart "
    ".config/systemd .ipython .jupyter".split()
)
"""Files and folders below a writable folder that other programs run or obey."""
_REPOSITORY = ("hooks", "config", "info/attributes")


@cache
def physical_memory() -> int | None:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use up; None for no limit.

    Attributes:
        processes: processes and threads beyond those that the machine runs already.
        memory: bytes of one process's data.
        file_size: bytes of one file that it writes.
    """

    processes: int | None = 4096
    memory: int | None = field(default_factory=physical_memory)
    file_size: int | None = 16 << 30

    def rlimits(self) -> dict[int, int]:
        """As `resource.setrlimit` takes them."""
        import resource

        processes = None if self.processes is None else self.processes + _running()
        values = {
            resource.RLIMIT_NPROC: processes,
            resource.RLIMIT_DATA: self.memory,
            resource.RLIMIT_FSIZE: self.file_size,
        }
        return {number: value for number, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a sandboxed program may do. Paths are real paths; those that do not exist are ignored.

    Attributes:
        profile: ``read-only`` or ``workspace-write``, for people; `writable` has its folders.
        temporary: the private temporary folder, always writable.
        writable: folders that it may change.
        hidden: what it must not read.
        readable: what it may read although it lies in `hidden`.
        protected: what it must not change although it lies in `writable`; Landlock can't enforce that.
        network: whether it may open TCP connections and use the sockets of other programs.
        limits: what it may use up.
        backend: ``landlock`` or ``bubblewrap`` where only that is wanted; ``auto`` for the strongest one.
    """

    profile: Profile
    temporary: str
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    backend: str = "auto"


def secrets(home: str) -> list[str]:
    """Where keys, logins and tokens are."""
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR")
    return [*(f"{home}/{name}" for name in _SECRETS), *([runtime] if runtime else [])]


def startup_files(folders: Iterable[str]) -> list[str]:
    """The start-up files and folders below `folders`, and those of a repository itself."""
    return [f"{folder}/{name}" for folder in folders for name in (*_STARTUP, *(_REPOSITORY if _is_git(folder) else ()))]


def real_paths(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Their real paths, each once, without those that do not exist."""
    expanded = (os.path.expanduser(path) for path in paths)
    return tuple(dict.fromkeys(os.path.realpath(path) for path in expanded if os.path.exists(path)))


def is_within(path: str, folder: str) -> bool:
    """Whether a real path is `folder` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def stricter(first: Profile, second: Profile) -> Profile:
    """The stricter of two profiles."""
    return max(first, second, key=PROFILES.index)


def worktree_folders(worktree: Path) -> list[str]:
    """The folders outside a linked git worktree that git writes; none for an ordinary checkout.

    ``.git`` is a file there, which the program could have written; so the repository has to name the worktree too.
    """
    marker = worktree / ".git"
    try:
        folder = Path(os.path.join(worktree, marker.read_text().partition("gitdir:")[2].strip()))
        if not marker.is_file() or os.path.realpath((folder / "gitdir").read_text().strip()) != os.path.realpath(
            marker
        ):
            return []
        return [os.path.realpath(folder / (folder / "commondir").read_text().strip())]
    except (OSError, ValueError):
        return []


def _is_git(folder: str) -> bool:
    return os.path.exists(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects")


def _running() -> int:
    """Processes and threads that run now, whoever's they are."""
    if sys.platform != "linux":
        return 0
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 1 << 16
