"""Find out from a failed command's output whether its sandbox was the reason."""

from __future__ import annotations

import os
import re

from ..core.errors import ToolError
from ..core.paths import follow_links
from .policy import SandboxPolicy, is_within

_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file system|device or resource busy|PermissionError"
    r"|\bE(?:ACCES|PERM|ROFS|BUSY)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file or directory|ENOENT", re.IGNORECASE)
_NETWORK = re.compile(
    r"network is unreachable|(?:could ?n[o']t|failed to|unable to) (?:resolve|connect)"
    r"|temporary failure in name resolution|name or service not known|getaddrinfo|\bconnect(?:ion)?\b|https?://"
    r"|ENETUNREACH|EAI_AGAIN|urlopen",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?:^|[\s'\"`=(\[])((?:~|\.{1,2})?/[^\0\s'\"`:;,()\[\]]*|[\w.-]+(?:/[\w.-]+)*)(?=$|[\s'\"`:;,()\[\]])"
)
_PROGRAM = re.compile(r"^(?:/\S+|[\w.-]+):(?: line \d+:)? ")
"""Begins a message: the program whose message it is."""
LINES = 400
"""Lines of the output's end that are looked at."""


def blocked_by(policy: SandboxPolicy, output: str, cwd: str) -> str | None:
    """What the sandbox kept a failed command from doing: ``writing /etc/hosts``; None if nothing shows that it did.

    A path counts only where this process could do what the command could not.
    """
    network = False
    for line in output.splitlines()[-LINES:]:
        refused, missing = _REFUSED.search(line), _MISSING.search(line)
        if refused or missing:
            for word in _PATH.findall(_PROGRAM.sub("", line)):
                try:
                    path = follow_links(os.path.join(cwd, os.path.expanduser(word)))
                except ToolError:
                    continue
                if any(is_within(path, hidden) for hidden in policy.hidden) and os.path.exists(path):
                    return f"reading {path}"
                if refused and os.sep in path and _only_outside(policy, path, "/" in word or os.path.lexists(path)):
                    return f"writing {path}"
        network = network or bool(_NETWORK.search(line))
        if refused and re.search(r"\bkill\b", line):
            return "a signal to another process"
    return "a connection to the network" if network and not policy.network else None


def _only_outside(policy: SandboxPolicy, path: str, is_path: bool) -> bool:
    """Whether a path can be written, but not in the sandbox."""
    if not is_path or path.startswith(("/dev/", "/proc/", "/sys/")):
        return False
    allowed = any(is_within(path, folder) for folder in (*policy.writable, policy.temporary))
    if allowed and not any(is_within(path, own) for own in policy.protected):
        return False
    there = path if os.path.lexists(path) else os.path.dirname(path)
    return os.path.exists(there) and os.access(there, os.W_OK)
