"""Reading shell commands before they run: how long a usual one takes, and whether a long one takes in proportion."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from opencode_jupyter.tools.shell.analysis import analyse

from ._measure import Options, Row, best

USUAL = (
    "git status",
    "grep -rn 'def train' src --include='*.py'",
    "cut -d, -f1,3 data.csv | sort | uniq -c | sort -rn | head",
    "python -m pytest -q tests/ && git add -A && git commit -m 'Add features'",
    'for f in *.csv; do wc -l "$f"; done',
    "n=$(wc -l < data.csv); echo $((n - 1))",
)
LIMIT = 0.002
"""Seconds that a usual command may take."""


def run(options: Options) -> list[Row]:
    """The rows of the table."""

    def read(command: str) -> Callable[[], object]:
        return lambda: analyse(command, options.folder, contains)

    def contains(path: Path) -> bool:
        return path.is_relative_to(options.folder)

    read("ls")()
    pairs = [
        best(20, read(command), partial(subprocess.run, ["bash", "-n", "-c", command], check=True)) for command in USUAL
    ]
    usual, shells = zip(*pairs, strict=True)
    ours, peer = statistics.median(usual), statistics.median(shells)
    rows = [
        Row(
            "read a usual command",
            f"{ours * 1000:.2f} ms (longest {max(usual) * 1000:.2f})",
            f"`bash -n`: {peer * 1000:.2f} ms",
            ours / peer,
            "under 2 ms",
            max(usual) < LIMIT,
        )
    ]
    for name, words in (("words", "wc {}"), ("redirections", "ls {}")):
        item = "data/x{} " if name == "words" else "> data/x{} "
        short, long = (
            words.format("".join(item.format(at) for at in range(size // (len(item) + 2)))) for size in (9_500, 95_000)
        )
        small, large = best(3, read(short), read(long))
        rows.append(
            Row(
                f"read 95 kB of {name}",
                f"{large * 1000:.0f} ms",
                f"ten times 9.5 kB: {small * 10_000:.0f} ms",
                large / (small * 10),
                "linear: at most 1.5",
                large / (small * 10) <= 1.5,
            )
        )
    return rows
