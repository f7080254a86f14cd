"""What a worker does until it is killed (`fault_driver`): it reports on stdout what it was told is complete."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from opencode_jupyter import ToolError, Workspace, tool

LINES = 20_000


@tool
async def double(number: int) -> str:
    """Double a number."""
    return str(number * 2)


def content(number: int) -> str:
    """A file's content of which every line says which it belongs to."""
    return f"content {number}\n" * LINES


def report(**fields: Any) -> None:
    """Write a line at once: it must not stay in a buffer that dies with the process."""
    os.write(1, json.dumps(fields).encode() + b"\n")


def run(worker: str, folder: str) -> None:
    """Run one of the workers below, for ever."""
    asyncio.run(_run(worker, Path(folder)))


async def _run(worker: str, folder: Path) -> None:
    config = {"permission": {"*": "allow", "ask_first": "ask"}}
    async with Workspace(
        folder / "project", config=config, data_dir=folder / "data", approve=lambda request: "once"
    ) as ws:
        ws.registry.register(double)
        await ws.call("double", {"number": 1})
        report(ready=True)
        await asyncio.gather(*(WORKERS[worker](ws, worker_number) for worker_number in range(3)))


async def _call(ws: Workspace, name: str, arguments: dict[str, Any]) -> None:
    call = ws.start(name, arguments, by="python")
    result = await call.run()
    report(id=call.part.id, output=result.output[:100], arguments=arguments if name != "write" else None)


async def calls(ws: Workspace, worker: int) -> None:
    """Calls of a small tool, three at once: kills hit transactions."""
    for number in range(10**9):
        await _call(ws, "double", {"number": 3 * number + worker})


async def commands(ws: Workspace, worker: int) -> None:
    """Commands with children of their own."""
    for number in range(10**9):
        await _call(
            ws, "bash", {"command": f"sleep 60 & echo {worker}-{number}; sleep 0.02; kill %1", "description": "x"}
        )


async def writes(ws: Workspace, worker: int) -> None:
    """A file overwritten again and again."""
    path = str(ws.directory / f"file{worker}.txt")
    for number in range(10**9):
        await _call(ws, "read", {"filePath": path}) if number else None
        await _call(ws, "write", {"filePath": path, "content": content(number)})


async def patches(ws: Workspace, worker: int) -> None:
    """A patch that adds files, then one that changes and deletes them."""
    names = [f"w{worker}/{n}.txt" for n in range(5)]
    for number in range(10**9):
        added = "".join(f"*** Add File: {name}\n+a\n+{number}\n" for name in names)
        await _call(ws, "apply_patch", {"patchText": f"*** Begin Patch\n{added}*** End Patch"})
        deletions = "".join(f"*** Delete File: {name}\n" for name in names)
        await _call(ws, "apply_patch", {"patchText": f"*** Begin Patch\n{deletions}*** End Patch"})


async def spills(ws: Workspace, worker: int) -> None:
    """Output so long that it goes to a spill file."""
    for number in range(10**9):
        await _call(ws, "bash", {"command": f"seq 1 20000; echo {worker}-{number}", "description": "x"})


async def approvals(ws: Workspace, worker: int) -> None:
    """Calls that are approved first."""
    del ws.rules[:]
    from opencode_jupyter.core.permission import Rule

    ws.rules.append(Rule("double", "*", "ask"))
    for number in range(10**9):
        await _call(ws, "double", {"number": 3 * number + worker})


WORKERS = {
    "calls": calls,
    "commands": commands,
    "writes": writes,
    "patches": patches,
    "spills": spills,
    "approvals": approvals,
}


def fill_disk(base: str) -> None:
    """Write larger and larger files until the disk is full; then there must be no half-written one."""

    async def fill() -> None:
        folder = Path(base) / "project"
        folder.mkdir()
        async with Workspace(folder, config={"permission": "allow"}, data_dir=Path(base) / "data") as ws:
            for number in range(1, 100):
                path, text = folder / f"{number % 2}.txt", f"{number}\n" * 20_000 * number
                before = path.read_text() if path.exists() else None
                try:
                    await ws.start("write", {"filePath": str(path), "content": text}, by="user").run()
                except ToolError as error:
                    message = str(error)
                else:
                    assert path.read_text() == text
                    continue
                assert "No space left" in message, message
                assert (path.read_text() if path.exists() else None) == before
                assert not list(folder.glob(".opencode-*"))
                report(full=number)
                return
            raise AssertionError("the disk never filled up")

    asyncio.run(fill())
