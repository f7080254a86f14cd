"""A request of 1, 100 and 200 tool steps, beside a bare pydantic-ai Agent, against one scripted server on loopback."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ._measure import Options, Row

ROUNDS = 3
STEPS = (1, 100, 200)
MEMORY_MB = 200
ROOT = Path(__file__).parents[1]


def run(options: Options) -> list[Row]:
    """Each in turn, so that what else the machine does hits both."""
    rows = []
    for steps in STEPS:
        with _server(steps) as url:
            pairs = [(_child("ours", url, steps), _child("peer", url, steps)) for _ in range(ROUNDS)]
        ours, peer = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
        memory, others = (statistics.median(pair[i][1] for pair in pairs) for i in (0, 1))
        most = 1.0 if steps >= 100 else None
        rows.append(
            Row(
                f"an agent's {steps} tool step{'s' * (steps > 1)}",
                f"{ours / steps * 1000:.1f} ms a step",
                f"pydantic-ai's Agent: {peer / steps * 1000:.1f} ms",
                ours / peer,
                "<= 1.0x" if most else "",
                ours / peer <= most if most else None,
            )
        )
        rows.append(
            Row(
                "its memory",
                f"{memory:.0f} MB",
                f"pydantic-ai's Agent: {others:.0f} MB",
                memory / others,
                f"< {MEMORY_MB} MB",
                memory < MEMORY_MB,
            )
        )
    return rows


def _child(who: str, url: str, steps: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench._agent_child", who, url, str(steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{who} failed: {done.stderr.strip()[-2000:]}")
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory


@contextmanager
def _server(steps: int) -> Iterator[str]:
    command = [sys.executable, "-m", "bench._agent_server", str(steps)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.communicate(timeout=10)
