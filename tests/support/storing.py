"""What the tests of the store share: parts to keep, and other processes that keep some too."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from opencode_jupyter.core.call_state import Completed, Pending, ToolPart


def tool_part(number: int = 1, session: str = "ses_a", **changes: Any) -> ToolPart:
    values: dict[str, Any] = {
        "id": f"prt_{session}_{number:06d}",
        "session_id": session,
        "message_id": f"msg_{session}",
        "call_id": f"call_{number}",
        "tool": "read",
        "state": Pending({"filePath": "a.txt"}),
    }
    return ToolPart(**{**values, **changes})


def completed(output: str = "text", title: str = "a.txt") -> Completed:
    return Completed({"filePath": "a.txt"}, start=1000, end=3500, title=title, output=output, metadata={})


CHILD = """
import asyncio, os, sys, time
from pathlib import Path
from opencode_jupyter.core.call_state import *
from opencode_jupyter.core.store.store import Store
def part(n, session, state):
    return ToolPart(f"prt_{session}_{n:06d}", session, "msg_x", f"call_{n}", "bash", state)
"""


def run_child(code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Run `code`, with `CHILD` before it, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + textwrap.dedent(code), *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        **options,
    )
