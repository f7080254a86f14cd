"""``sandbox-exec`` of macOS. Not tried on a Mac by this project."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from .policy import SandboxPolicy

_PROGRAM = "/usr/bin/sandbox-exec"


def available() -> bool:
    """Whether this is a Mac that has it."""
    return sys.platform == "darwin" and os.access(_PROGRAM, os.X_OK)


def command(policy: SandboxPolicy, argv: Sequence[str]) -> list[str]:
    """`argv` inside a sandbox. The last rule that fits decides."""
    writable = [*policy.writable, policy.temporary, "/dev"]
    rules = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        *(f"(allow file-write* (subpath {json.dumps(path)}))" for path in writable),
        *(f"(deny file-write* (subpath {json.dumps(path)}))" for path in policy.protected),
        *(f"(deny file-read* file-write* (subpath {json.dumps(path)}))" for path in policy.hidden),
        *(f"(allow file-read* (subpath {json.dumps(path)}))" for path in policy.readable),
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        *([] if policy.network else ["(deny network*)"]),
    ]
    return [_PROGRAM, "-p", "\n".join(rules), *argv]
