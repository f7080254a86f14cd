"""A bash call in each sandbox of this machine, beside one without."""

from __future__ import annotations

import asyncio
import subprocess
import time

from opencode_jupyter import Workspace
from opencode_jupyter.sandbox.confine import backend

from ._measure import Options, Row

ROUNDS = 60
LIMITS_MS = {"Landlock": 2.0, "bubblewrap": 20.0}
"""What a sandbox may add to a call."""


def run(options: Options) -> list[Row]:
    """One row for each sandbox, after the bare call."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> list[Row]:
    project = options.folder / "project"
    project.mkdir()
    kinds = [kind for kind in LIMITS_MS if backend(kind.lower()) == kind]
    spaces = {"": Workspace(project, {"permission": "allow"}, data_dir=options.folder / "data")}
    for kind in kinds:
        config = {"permission": "allow", "experimental": {"sandbox": {"backend": kind.lower()}}}
        spaces[kind] = Workspace(project, config, data_dir=options.folder / kind)
    bare: list[float] = []
    times: dict[str, list[float]] = {kind: [] for kind in spaces}
    for number in range(ROUNDS):  # in turn, so that other work disturbs all alike
        start = time.perf_counter()
        subprocess.run(["/bin/bash", "-c", ":"], check=True)
        bare.append(time.perf_counter() - start)
        for kind, workspace in spaces.items():
            arguments = {"command": f": {number}", "description": "nothing"}
            start = time.perf_counter()
            await workspace.call("bash", arguments, by="model" if kind else "user")
            times[kind].append(time.perf_counter() - start)
    for workspace in spaces.values():
        await workspace.aclose()
    plain, floor = _quick(times.pop("")), _quick(bare)
    rows = [Row("a bash call", f"{plain:.1f} ms", f"a bare spawn: {floor:.1f} ms", plain / floor, "", None)]
    for kind, values in times.items():
        ours = _quick(values)
        beside, limit = f"without a sandbox: {plain:.1f} ms", LIMITS_MS[kind]
        target, met = f"<= {limit:g} ms more", ours - plain <= limit
        rows.append(Row(f"a bash call with {kind}", f"{ours:.1f} ms", beside, ours / plain, target, met))
    return rows


def _quick(values: list[float]) -> float:
    """The lower quartile in milliseconds: what others disturbed little."""
    return sorted(values)[len(values) // 4] * 1000
