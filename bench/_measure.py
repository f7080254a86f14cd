"""What the benchmarks share: a row of the table, timing, memory."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    ours: str
    peer: str
    """What it is held against, with its own number."""
    ratio: float | None
    """Ours divided by the peer's, so that less is better; None where only the target counts."""
    target: str
    met: bool | None
    """None for a row that is there to compare with."""


@dataclass(frozen=True)
class Options:
    """What the command line sets."""

    folder: Path
    """An empty folder, removed afterwards."""
    megabytes: int = 1000
    """Size of the large file (10**6 bytes)."""
    files: int = 50_000
    """Files of the tree that is searched."""


def best(times: int, *works: Callable[[], object]) -> list[float]:
    """The shortest of `times` runs of each, in seconds; they take turns, so that other work disturbs all alike."""
    rounds = [[_timed(work) for work in works] for _ in range(times)]
    return [min(runs) for runs in zip(*rounds, strict=True)]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """One run, in seconds."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def median_us(work: Callable[[int], Awaitable[object]], count: int = 3000, warm: int = 300) -> float:
    """Median of `count` single runs, in microseconds; `work` is given a number that is never the same."""
    for number in range(warm):
        await work(-number)
    await asyncio.sleep(0.1)  # what the warm-up left to write is written
    spent = []
    for number in range(count):
        start = time.perf_counter_ns()
        await work(number)
        spent.append(time.perf_counter_ns() - start)
    return statistics.median(spent) / 1000


class Memory:
    """Growth of this process's resident memory over a stretch of work (Linux; elsewhere it says 0)."""

    def __enter__(self) -> Self:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # begin the high-water mark anew (man 5 proc)
        except OSError:
            self._before: int | None = None
        else:
            self._before = _kilobytes("VmRSS")
        self.megabytes = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self.megabytes = max(0, _kilobytes("VmHWM") - self._before) / 1024


def _kilobytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


def large_file(path: Path, megabytes: int) -> int:
    """Write `megabytes` of numbered text lines; returns how many lines."""
    line = "{:012d} the quick brown fox jumps over the lazy dog, and over the log behind it\n"
    width = len(line.format(0))
    total = megabytes * 1_000_000 // width
    step = 100_000
    with path.open("w") as sink:
        for first in range(0, total, step):
            sink.write("".join(line.format(n) for n in range(first, min(first + step, total))))
    return total
