"""Landlock: rules of the Linux kernel that a process gives itself, without root or a library (ABI 1 to 7).

The rules are built here and handed to the supervisor as a descriptor; the process that becomes the command then needs
two system calls. Landlock can only allow, so a folder with something hidden in it is allowed entry by entry.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import sys
import threading
from collections.abc import Iterator
from functools import cache

from .policy import SandboxPolicy, is_within

_CREATE_RULESET, _ADD_RULE = 444, 445
_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR, _IOCTL_DEV = 1 << 2, 1 << 3, 1 << 15
_READ = 1 | _READ_FILE | _READ_DIR
_OF_FILES = 1 | 1 << 1 | _READ_FILE | 1 << 14 | _IOCTL_DEV
"""Rights that make sense for a file: execute, write, read, truncate, ioctl."""
_ALL = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF}
_ALL_SINCE_5 = 0xFFFF
_TCP = 0b11
_SCOPE_SOCKETS, _SCOPE_SIGNALS = 0b01, 0b10
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm")  # noqa: S108
ACCELERATORS = ("/dev/nvidia*", "/dev/dri", "/dev/kfd")
CACHED = 8
"""Rulesets that are cached for the next command."""

_lock = threading.Lock()
_rulesets: dict[object, int] = {}


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def abi() -> int:
    """Which version of Landlock the kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return int(max(0, _libc().syscall(_CREATE_RULESET, None, 0, _VERSION)))


def ruleset(policy: SandboxPolicy) -> int:
    """A descriptor of a policy's rules; the caller closes it.

    Raises:
        OSError: the kernel refuses them.
    """
    hidden = [path for path in policy.hidden if not any(is_within(path, own) for own in policy.readable)]
    with _lock:
        key = (policy, *_state_of(policy, hidden))
        descriptor = _rulesets.get(key)
        if descriptor is None:
            descriptor = _build(policy, hidden)
            while len(_rulesets) >= CACHED:
                os.close(_rulesets.pop(next(iter(_rulesets))))
            _rulesets[key] = descriptor
        return os.dup(descriptor)


def _build(policy: SandboxPolicy, hidden: list[str]) -> int:
    version = abi()
    rights = _ALL.get(version, _ALL_SINCE_5)
    attributes = (ctypes.c_uint64 * 3)(
        rights, 0 if policy.network else _TCP, _SCOPE_SIGNALS | (0 if policy.network else _SCOPE_SOCKETS)
    )
    size = 8 if version < 4 else 16 if version < 6 else 24
    descriptor = _libc().syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses the sandbox's rules")
    try:
        _allow(descriptor, "/", _READ, hidden)
        for path in policy.readable:
            _allow(descriptor, path, _READ, [])
        for path in (*policy.writable, policy.temporary):
            _allow(descriptor, path, rights & ~_IOCTL_DEV, [h for h in hidden if is_within(h, path)])
        for path in (*DEVICES, *(path for pattern in ACCELERATORS for path in glob.glob(pattern))):
            _allow(descriptor, path, rights, [])
    except BaseException:
        os.close(descriptor)
        raise
    return int(descriptor)


def _allow(ruleset: int, path: str, rights: int, hidden: list[str]) -> None:
    """Allow `rights` below `path`, but for what is hidden; what does not exist is passed over."""
    if path in hidden:
        return
    below = [hidden_path for hidden_path in hidden if is_within(hidden_path, path)]
    with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            allowed = rights & (_READ_DIR if below else rights if os.path.isdir(path) else _OF_FILES)
            beneath = ctypes.create_string_buffer(
                allowed.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
            )
            if allowed and _libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, beneath, 0):
                raise OSError(ctypes.get_errno(), f"Landlock refuses a rule for {path}")
        finally:
            os.close(descriptor)
        if below:
            for entry in os.scandir(path):
                if not entry.is_symlink():  # where it leads has a rule of its own, or none
                    _allow(ruleset, entry.path, rights, below)


def _state_of(policy: SandboxPolicy, hidden: list[str]) -> Iterator[tuple[int, ...] | None]:
    """What the rules depend on: which folders these are, and the entries of those that are allowed entry by entry."""
    parents: dict[str, None] = {}
    for path in hidden:
        while path != os.sep and (path := os.path.dirname(path)) not in parents:
            parents[path] = None
    for path in (policy.temporary, *policy.writable, *policy.readable, *parents):
        try:
            status = os.stat(path)
        except OSError:
            yield None
        else:
            yield status.st_dev, status.st_ino, status.st_mtime_ns if path in parents else 0
