"""bubblewrap, where it is installed: a file system, a process table and a network of the command's own.

It adds what Landlock cannot: read-only start-up files inside the project, empty folders in place of secrets, no view of
other processes. What runs in the background ends with the command.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache

from .landlock import ACCELERATORS
from .policy import SandboxPolicy

PROBE = 5.0
"""Seconds that the first, empty sandbox may take."""
_SEPARATE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_RESOLVERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf")


@cache
def program() -> str | None:
    """The path of bubblewrap; None where there is none, or it can make no sandbox (in many containers)."""
    path = shutil.which("bwrap") if sys.platform == "linux" else None
    if path is None:
        return None
    try:
        made = subprocess.run(
            [path, *_SEPARATE, "--unshare-net", *_SYSTEM, "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if made.returncode == 0 else None


def command(policy: SandboxPolicy, argv: Sequence[str], cwd: str) -> list[str]:
    """`argv` inside a sandbox."""
    bwrap = program()
    assert bwrap is not None
    mounts = sorted(_mounts(policy), key=lambda mount: mount[-1].count(os.sep))  # what lies deeper comes later
    system = [*_SYSTEM, *(word for path in _accelerators() for word in ("--dev-bind", path, path))]
    network = [] if policy.network else ["--unshare-net", "--tmpfs", "/run", *_try_read_only(_RESOLVERS)]
    options = [word for mount in mounts for word in mount]
    return [bwrap, *_SEPARATE, *system, *network, *options, "--chdir", cwd, "--", *argv]


def _mounts(policy: SandboxPolicy) -> Iterator[tuple[str, ...]]:
    for path in (*policy.writable, policy.temporary):
        yield "--bind", path, path
    for path in policy.protected:
        yield "--ro-bind", path, path
    for path in policy.hidden:
        yield ("--tmpfs", path) if os.path.isdir(path) else ("--ro-bind", os.devnull, path)
    for path in policy.readable:
        yield "--ro-bind", path, path
    if not policy.network:
        for path in _sockets():
            yield "--ro-bind", os.devnull, path


def _sockets() -> list[str]:
    """Sockets of other programs (tmux, an SSH agent) in the temporary folders: through them a command could escape."""
    try:
        with open("/proc/net/unix") as file:
            paths = {line.split(maxsplit=7)[-1].strip() for line in file}
    except OSError:
        return []
    return [path for path in paths if path.startswith(("/tmp/", "/var/tmp/")) and os.path.exists(path)]  # noqa: S108


def _accelerators() -> list[str]:
    return [path for pattern in ACCELERATORS for path in glob.glob(pattern)]


def _try_read_only(paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", path, path)]
