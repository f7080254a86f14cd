"""Which sandbox this machine can make, and a command put into it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from . import bubblewrap, landlock
from .policy import SandboxPolicy

_SEATBELT = "/usr/bin/sandbox-exec"


@dataclass(slots=True)
class Confined:
    """A command as it is started inside a sandbox.

    Attributes:
        argv: the program and its arguments.
        env: its whole environment.
        ruleset: a descriptor of Landlock rules that the process gives itself; the one who starts it closes it.
        limits: resource limits, as `resource.setrlimit` takes them.
    """

    argv: list[str]
    env: dict[str, str]
    ruleset: int | None = None
    limits: dict[int, int] = field(default_factory=dict)


def backend(setting: str = "auto") -> str | None:
    """The sandbox that is used here: ``bubblewrap``, ``Landlock``, ``sandbox-exec``; None where there is none.

    Args:
        setting: ``landlock`` or ``bubblewrap`` for that one alone, ``auto`` for the strongest.
    """
    if setting != "landlock" and bubblewrap.program() is not None:
        return "bubblewrap"
    if setting != "bubblewrap" and landlock.abi():
        return "Landlock"
    return "sandbox-exec" if _has_seatbelt() else None


def confine(policy: SandboxPolicy, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Confined:
    """Put a command into a sandbox.

    Raises:
        OSError: the sandbox can't be made.
    """
    selected = backend(policy.backend)
    own_env = dict(env) | dict.fromkeys(("TMPDIR", "TMP", "TEMP"), policy.temporary)
    limits = policy.limits.rlimits()
    if selected == "bubblewrap":
        return Confined(bubblewrap.command(policy, argv, cwd), own_env, limits=limits)
    if selected == "Landlock":
        return Confined(list(argv), own_env, landlock.ruleset(policy), limits)
    if selected == "sandbox-exec":
        return Confined(seatbelt_command(policy, argv), own_env)
    raise OSError(0, "this machine has no sandbox")


def describe() -> str:
    """What this machine can do, for people."""
    parts = []
    if bubblewrap.program():
        parts.append("bubblewrap")
    if version := landlock.abi():
        lacking = [what for since, what in ((4, "TCP"), (6, "signals")) if version < since]
        parts.append(f"Landlock (ABI {version}{', without ' + ' and '.join(lacking) if lacking else ''})")
    if _has_seatbelt():
        parts.append("sandbox-exec")
    return ", ".join(parts) or "none"


def _has_seatbelt() -> bool:
    return sys.platform == "darwin" and os.access(_SEATBELT, os.X_OK)


def _quoted(path: str) -> str:
    r"""A path as a string of a profile, which has no ``\u`` escapes."""
    return json.dumps(path, ensure_ascii=False)


def seatbelt_command(policy: SandboxPolicy, argv: Sequence[str]) -> list[str]:
    """`argv` inside a sandbox of macOS, whose last matching rule decides. Not tried on a Mac by this project."""
    writable = [*policy.writable, policy.temporary, "/dev"]
    rules = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        *(f"(allow file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f"(deny file-write* (subpath {_quoted(path)}))" for path in policy.protected),
        *(f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in policy.hidden),
        *(f"(allow file-read* (subpath {_quoted(path)}))" for path in policy.readable),
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        *([] if policy.network else ["(deny network*)"]),
    ]
    return [_SEATBELT, "-p", "\n".join(rules), *argv]
