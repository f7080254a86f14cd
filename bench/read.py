"""The last page of a file of 1 GB, against ``sed -n``."""

from __future__ import annotations

import asyncio
import subprocess

from opencode_jupyter import Workspace

from ._measure import Memory, Options, Row, best, large_file, timed

LIMIT = 1.5
LIMIT_MB = 64
ROUNDS = 3
PAGE = 100


def run(options: Options) -> list[Row]:
    """Time and memory."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> list[Row]:
    project = options.folder / "read"
    project.mkdir()
    path = project / "large.txt"
    lines = large_file(path, options.megabytes)
    first = lines - PAGE + 1
    command = ["sed", "-n", f"{first},{lines}p", str(path)]
    async with Workspace(project, data_dir=options.folder / "read-data", store=False) as ws:
        arguments = {"filePath": str(path), "offset": first, "limit": PAGE}
        with Memory() as memory:
            result = await ws.call("read", {**arguments, "limit": PAGE - 1})
            if f"{lines - 2:012d} the quick" not in result.output:
                raise RuntimeError("read does not show the last page")
        spent, bare = [], []
        for number in range(ROUNDS):  # turn about, so that both meet the same disturbances
            spent.append(await timed(lambda n=number: ws.call("read", {**arguments, "limit": PAGE + n})))
            bare += best(1, lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))
    ours, sed = min(spent), min(bare)
    path.unlink()
    size = f"{options.megabytes:,} MB"
    return [
        Row(
            f"read the last page of {size}",
            f"{ours * 1000:.0f} ms",
            f"sed -n: {sed * 1000:.0f} ms",
            ours / sed,
            f"<= {LIMIT}x",
            ours / sed <= LIMIT,
        ),
        Row(
            "its memory", f"{memory.megabytes:.0f} MB", "the file's size", memory.megabytes / options.megabytes,
            f"<= {LIMIT_MB} MB", memory.megabytes <= LIMIT_MB,
        ),
    ]  # fmt: skip
