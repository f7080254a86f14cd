"""One call of a trivial tool through the whole pipeline, no card, without and with the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from pathlib import Path

from opencode_jupyter import Workspace, tool

from ._measure import Options, Row, median_us

WITHOUT_STORE_US = 40
WITH_STORE_US = 150
MANY = 3000


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
    floor = await median_us(lambda n: asyncio.get_running_loop().create_task(bare(n, 2)))
    rows_floor = await _rows_floor(options.folder / "floor.db")
    without, _ = await _pipeline(options.folder / "without", store=False)
    with_store, written = await _pipeline(options.folder / "with", store=True)
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
            f"a bare task and three rows in SQLite: {floor + rows_floor:.0f} µs",
            with_store / (floor + rows_floor),
            f"<= {WITH_STORE_US} µs",
            with_store <= WITH_STORE_US,
        ),
        Row(
            "the same, mean until all is in the file",
            f"{written:.0f} µs",
            f"a bare task and three rows in SQLite: {floor + rows_floor:.0f} µs",
            written / (floor + rows_floor),
            f"<= {WITH_STORE_US} µs",
            written <= WITH_STORE_US,
        ),
    ]


async def _pipeline(folder: Path, *, store: bool) -> tuple[float, float]:
    """Median of a call, and the mean over many until the store has written them, in microseconds."""
    project = folder / "project"
    project.mkdir(parents=True)
    async with Workspace(project, data_dir=folder / "data", store=store) as ws:
        ws.registry.register(add)
        median = await median_us(lambda n: ws.call("add", {"a": n, "b": 2}))
        start = time.perf_counter()
        for number in range(MANY):
            await ws.call("add", {"a": number, "b": 3})
        if ws.store is not None:
            await ws.store.flush()
        return median, (time.perf_counter() - start) / MANY * 1e6


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
