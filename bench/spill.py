"""1 GB of a command's output streamed into its spill file, against ``cat FILE | cat > FILE``."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import time
from pathlib import Path

from opencode_jupyter import Workspace

from ._measure import Memory, Options, Row, best, large_file

LIMIT_MBS = 400
LIMIT_MB = 20
LIMIT_UPDATES = 20
ROUNDS = 3


def run(options: Options) -> list[Row]:
    """Speed, memory, and how often a card would be drawn."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> list[Row]:
    project = options.folder / "spill"
    project.mkdir()
    source, copy = project / "source.txt", project / "copy.txt"
    large_file(source, options.megabytes)
    size = source.stat().st_size
    pipe = f"cat {shlex.quote(str(source))} | cat > {shlex.quote(str(copy))}"
    spent, bare, grown, busiest = [], [], 0.0, 0
    async with Workspace(project, data_dir=options.folder / "spill-data", store=False) as ws:
        for number in range(ROUNDS):  # turn about, so that both meet the same disturbances
            bare += best(1, lambda: subprocess.run(["bash", "-c", pipe], check=True))
            copy.unlink()
            updates: list[float] = []
            unsubscribe = ws.bus.subscribe("message.part.updated", lambda _, u=updates: u.append(time.monotonic()))
            start = time.perf_counter()
            with Memory() as memory:
                arguments = {
                    "command": f"cat {shlex.quote(str(source))} # {number}",
                    "description": "Print a large file",
                }
                result = await ws.call("bash", arguments)
            spent.append(time.perf_counter() - start)
            unsubscribe()
            grown = max(grown, memory.megabytes)
            busiest = max(busiest, _busiest_second(updates))
            spilled = Path(str(result.output_path))
            if spilled.stat().st_size != size:
                raise RuntimeError(f"{spilled} holds {spilled.stat().st_size} of {size} bytes")
            spilled.unlink()
    ours, theirs = size / min(spent) / 1e6, size / min(bare) / 1e6
    return [
        Row(
            f"{options.megabytes:,} MB of bash output to its spill file",
            f"{ours:.0f} MB/s",
            f"cat FILE | cat > FILE: {theirs:.0f} MB/s",
            theirs / ours,
            f">= {LIMIT_MBS} MB/s",
            ours >= LIMIT_MBS,
        ),
        Row(
            "its memory", f"{grown:.0f} MB", "the output's size", grown / options.megabytes,
            f"< {LIMIT_MB} MB", grown < LIMIT_MB,
        ),
        Row(
            "its card, updates in the busiest second", str(busiest), "the limit", busiest / LIMIT_UPDATES,
            f"<= {LIMIT_UPDATES}", busiest <= LIMIT_UPDATES,
        ),
    ]  # fmt: skip


def _busiest_second(moments: list[float]) -> int:
    """The most updates within any one second; the first and last, which begin and end a call, left out."""
    inner = moments[2:-1]
    return max((sum(1 for m in inner if start <= m < start + 1) for start in inner), default=0)
