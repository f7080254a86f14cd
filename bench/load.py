"""What ``%load_ext opencode_jupyter`` adds to a kernel's start, and what it must not load.

It is work without waiting, so the processor time of the kernel counts: on a busy machine the clock shows the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ._measure import Options, Row

LIMIT_MS = 150
MOST_RATIO = 4.0
"""Of the cell that loads the extension and calls a tool, to what its libraries alone take."""
ROUNDS = 7
FORBIDDEN = ("pydantic_ai", "mcp", "pandas", "numpy", "openai", "anthropic")

_TIMED = """
import json, sys, time
start = time.process_time()
{statement}
spent = (time.process_time() - start) * 1000
print("@" + json.dumps([spent, [m for m in {forbidden!r} if m in sys.modules]]))
"""
_SHELL = "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
_FIRST = "get_ipython().run_line_magic('tool', 'read first.txt')"
_PEER = """import anyio
from pydantic import BaseModel, Field
class Peer(BaseModel):
    path: str = Field(description="what to read")
    limit: int | None = None
Peer(path="first.txt")"""
"""What every tool needs that checks its arguments and can be cancelled."""
_LOADED = "import time\n%load_ext opencode_jupyter", 1.0
"""A cell before the measured one, and the seconds that a person takes to write that."""
_ALONE = "from opencode_jupyter.jupyter.extension_state import find_state; find_state()._timer.cancel()"
"""Without the background, which gives way to a cell, but on a slow machine not for as long as that one takes."""
_LOAD = "{shell}.run_line_magic('load_ext', 'opencode_jupyter')"


Measure = tuple[float, list[str]]
"""Milliseconds, and which modules were loaded that must not be."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Modules are compiled by the first of several rounds at the latest, as those of an installed package are."""


def run(options: Options) -> list[Row]:
    """In a bare IPython shell, then in a real kernel; beside the import of pydantic alone."""
    (options.folder / "first.txt").write_text("x")
    load = _LOAD.format(shell="get_ipython()")
    measures: tuple[Callable[[], Measure], ...] = (
        lambda: _shell("import pydantic", options.folder),
        lambda: _shell(_LOAD.format(shell="shell"), options.folder),
        lambda: _kernel(load, options.folder),
        lambda: _kernel(_FIRST, options.folder, before=_LOADED),
        lambda: _kernel(_PEER, options.folder),
        lambda: _kernel(f"{load}; {_ALONE}; {_FIRST}", options.folder),
    )
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]  # what else the machine does meets them all
    pydantic, bare, kernel, first, peer, together = zip(*rounds, strict=True)
    return [
        _row("%load_ext in a bare IPython shell", bare, "import pydantic", pydantic),
        _row("%load_ext in a kernel", kernel, "import pydantic", pydantic),
        _row("the first %tool, a second after %load_ext", first, "import pydantic", pydantic),
        _row(
            "%load_ext and the first %tool in one cell", together, "anyio and a pydantic model", peer, most=MOST_RATIO
        ),
    ]


def _row(what: str, runs: Sequence[Measure], peer: str, its_runs: Sequence[Measure], most: float | None = None) -> Row:
    spent, its = (min(ms for ms, _ in measured) for measured in (runs, its_runs))
    loaded = sorted({name for _, names in runs for name in names})
    note = f", but it loads {', '.join(loaded)}" if loaded else ""
    return Row(
        what,
        f"{spent:.0f} ms CPU{note}",
        f"{peer}: {its:.0f} ms",
        spent / its,
        f"<= {most:g}x; no model, MCP or pandas" if most else f"<= {LIMIT_MS} ms; no model, MCP or pandas",
        not loaded and (spent / its <= most if most else spent <= LIMIT_MS),
    )


def _code(statement: str) -> str:
    return _TIMED.format(statement=statement, forbidden=FORBIDDEN)


def _parsed(text: str) -> Measure:
    found = next(line for line in text.splitlines() if line.startswith("@"))
    spent, loaded = json.loads(found[1:])
    return spent, loaded


def _shell(statement: str, folder: Path) -> Measure:
    code = _SHELL + _code(statement)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return _parsed(done.stdout)


def _kernel(statement: str, folder: Path, before: tuple[str, float] | None = None) -> Measure:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(
        kernel_name="python3", cwd=str(folder), env=ENVIRONMENT, stderr=subprocess.DEVNULL
    )
    try:
        if before is not None:
            client.execute_interactive(before[0], timeout=60)
            time.sleep(before[1])
        printed: list[str] = []
        client.execute_interactive(
            _code(statement), timeout=60, output_hook=lambda m: printed.append(m["content"].get("text", ""))
        )
        return _parsed("".join(printed))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
