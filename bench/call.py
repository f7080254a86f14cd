"""One call of a trivial tool through the whole pipeline, no card, without and with the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from pathlib import Path
from types import FrameType

from opencode_jupyter import Workspace, tool

from ._measure import Options, Row, median_us

WITHOUT_STORE_US = 40
WITH_STORE_US = 1150
MOST_WAIT_US = {1: 1000, 10: 60}
"""How much longer a call may take, by the number of calls at once, because it waits until its rows are committed."""
MOST_FUNCTIONS = 136
"""Functions that one call runs, Python's and C's: what a longer pipeline would cost, without a clock."""
MANY = 3000
ROUNDS = 5
"""Ours and the floor are measured in turn, and the best round of each counts: other work disturbs both alike."""


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


async def bare(a: int, b: int) -> str:
    """What `add` does, with nothing around it."""
    return str(a + b)


def run(options: Options) -> list[Row]:
    """The floor, then ours in two forms."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> list[Row]:
    without, floor = await _pipeline(options.folder / "without", store=False)
    with_store, floor_too = await _pipeline(options.folder / "with", store=True)
    floor = min(floor, floor_too)
    rows_floor = await _rows_floor(options.folder / "floor.db")
    beside = f"a bare task and three rows in SQLite: {floor + rows_floor:.0f} µs"
    return [
        Row(
            "a call through the pipeline, no store",
            f"{without:.0f} µs",
            f"a bare asyncio task: {floor:.1f} µs",
            without / floor,
            f"<= {WITHOUT_STORE_US} µs",
            without <= WITHOUT_STORE_US,
        ),
        Row(
            "a call through the pipeline, with the store",
            f"{with_store:.0f} µs",
            beside,
            with_store / (floor + rows_floor),
            f"<= {WITH_STORE_US} µs",
            with_store <= WITH_STORE_US,
        ),
        await _functions(options.folder / "functions"),
        *[await _commit(options.folder / f"commit{number}", number, most) for number, most in MOST_WAIT_US.items()],
    ]


async def _functions(folder: Path) -> Row:
    """The functions that one call without the store runs; the fewest of 30."""
    project = folder / "project"
    project.mkdir(parents=True)
    counts: list[int] = []

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            counts[-1] += 1

    async with Workspace(project, data_dir=folder / "data", store=False) as ws:
        ws.registry.register(add)
        for number in range(30):
            counts.append(0)
            sys.setprofile(count)
            try:
                await ws.call("add", {"a": number, "b": 2})
            finally:
                sys.setprofile(None)
    fewest = min(counts)
    return Row(
        "functions that a call runs",
        str(fewest),
        "the limit",
        fewest / MOST_FUNCTIONS,
        f"<= {MOST_FUNCTIONS}",
        fewest <= MOST_FUNCTIONS,
    )


async def _commit(folder: Path, at_once: int, most: int) -> Row:
    """The mean of calls made by `at_once` tasks, beside the same calls that do not wait for the commit."""
    project = folder / "project"
    project.mkdir(parents=True)

    async def calls(ws: Workspace, number: int) -> None:
        for n in range(MANY // ROUNDS // at_once):
            await ws.call("add", {"a": n, "b": number})

    async with Workspace(project, data_dir=folder / "data") as ws:
        ws.registry.register(add)
        store = ws.store
        assert store is not None
        means: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(ROUNDS * 2):
            for waits in (False, True):
                if not waits:
                    store.committed = _at_once  # type: ignore[method-assign]
                start = time.perf_counter()
                await asyncio.gather(*(calls(ws, number) for number in range(at_once)))
                means[waits].append((time.perf_counter() - start) / (MANY // ROUNDS // at_once * at_once) * 1e6)
                if not waits:
                    del store.committed
                await store.flush()
    ours, without = min(means[True]), min(means[False])
    return Row(
        f"a call that is committed before it is reported, {at_once} at once, mean",
        f"{ours:.0f} µs",
        f"without the wait: {without:.0f} µs",
        ours / without,
        f"<= {most} µs more",
        ours - without <= most,
    )


async def _at_once() -> None:
    """Wait for nothing."""


async def _pipeline(folder: Path, *, store: bool) -> tuple[float, float]:
    """In microseconds: median of a call, median of a bare task."""
    project = folder / "project"
    project.mkdir(parents=True)
    loop = asyncio.get_running_loop()
    async with Workspace(project, data_dir=folder / "data", store=store) as ws:
        ws.registry.register(add)
        medians, floors = [], []
        for _ in range(ROUNDS):
            floors.append(await median_us(lambda n: loop.create_task(bare(n, 2)), MANY // ROUNDS))
            medians.append(await median_us(lambda n: ws.call("add", {"a": n, "b": 2}), MANY // ROUNDS))
        return min(medians), min(floors)


async def _rows_floor(path: Path) -> float:
    """Three rows of a call's size, each in a transaction of its own, by sqlite3 alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE parts (id TEXT PRIMARY KEY, data TEXT)")

    async def three(number: int) -> None:
        for state in ("pending", "running", "completed"):
            part = {"id": f"prt_{number}", "tool": "add", "state": {"status": state, "input": {"a": number, "b": 2}}}
            row = (part["id"], json.dumps(part))
            connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", row)

    spent = await median_us(three, count=1000)
    connection.close()
    return spent
