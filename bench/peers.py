"""One call of a small tool in other libraries, each in an environment of its own (`_peer_child`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from uv import find_uv_bin

from ._measure import Options, Row

CHILD = Path(__file__).with_name("_peer_child.py")
PEERS = {
    "pydantic_ai": ("pydantic-ai-slim", "pydantic-ai, validation and the function alone"),
    "openai_agents": ("openai-agents", "openai-agents, a function tool"),
    "langchain": ("langchain-core", "LangChain, `ainvoke`"),
    "inspect_ai": ("inspect-ai", "inspect_ai, `execute_tools`"),
    "fastmcp": ("fastmcp", "fastmcp, a client in the same process"),
}
"""By the name of the child's function: the package, and what is measured of it."""
ROUNDS = 3


def run(options: Options) -> list[Row]:
    """A row for each peer; ours is measured anew beside each."""
    del options
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    rows = []
    for peer, (package, what) in PEERS.items():
        environment = (
            find_uv_bin(),
            "run",
            "--quiet",
            "--no-project",
            "--isolated",
            "--python",
            python,
            "--with",
            package,
        )
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(_median_us(sys.executable, str(CHILD), "opencode_jupyter"))
            theirs.append(_median_us(*environment, "python", str(CHILD), peer))
        best, beside = min(ours), min(theirs)
        label = "a call with validation, permission, hooks and events"
        rows.append(Row(label, f"{best:.0f} µs", f"{what}: {beside:.1f} µs", best / beside, "", None))
    return rows


def _median_us(*command: str) -> float:
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
