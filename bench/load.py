"""What ``%load_ext opencode_jupyter`` adds to a kernel's start, and what it must not load."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from ._measure import Options, Row

LIMIT_MS = 150
ROUNDS = 7
FORBIDDEN = ("pydantic_ai", "mcp", "pandas", "numpy", "openai", "anthropic")

_TIMED = """
import json, sys, time
start = time.perf_counter()
{statement}
spent = (time.perf_counter() - start) * 1000
print("@" + json.dumps([spent, [m for m in {forbidden!r} if m in sys.modules]]))
"""
_SHELL = "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
_FIRST = "get_ipython().run_line_magic('tool', 'read first.txt')"
_LOADED = "import time\n%load_ext opencode_jupyter", 1.0
"""A cell before the measured one, and the seconds that a person takes to write that."""
_LOAD = "{shell}.run_line_magic('load_ext', 'opencode_jupyter')"


def run(options: Options) -> list[Row]:
    """In a bare IPython shell, then in a real kernel; beside the import of pydantic alone."""
    pydantic = min(_shell("import pydantic", options.folder)[0] for _ in range(ROUNDS))
    bare = [_shell(_LOAD.format(shell="shell"), options.folder) for _ in range(ROUNDS)]
    kernel = [_kernel(_LOAD.format(shell="get_ipython()"), options.folder) for _ in range(ROUNDS)]
    (options.folder / "first.txt").write_text("x")
    first = [_kernel(_FIRST, options.folder, before=_LOADED) for _ in range(ROUNDS)]
    together = [_kernel(f"{_LOAD.format(shell='get_ipython()')}; {_FIRST}", options.folder) for _ in range(ROUNDS)]
    return [
        _row("%load_ext in a bare IPython shell", bare, pydantic),
        _row("%load_ext in a kernel", kernel, pydantic),
        _row("the first %tool, a second after %load_ext", first, pydantic),
        _row("%load_ext and the first %tool in one cell", together, pydantic, limit=None),
    ]


def _row(what: str, runs: list[tuple[float, list[str]]], pydantic: float, limit: float | None = LIMIT_MS) -> Row:
    spent = min(ms for ms, _ in runs)
    loaded = sorted({name for _, names in runs for name in names})
    note = f", but it loads {', '.join(loaded)}" if loaded else ""
    return Row(
        what,
        f"{spent:.0f} ms{note}",
        f"import pydantic: {pydantic:.0f} ms",
        spent / pydantic,
        f"<= {limit} ms; no model, MCP or pandas" if limit else "",
        (spent <= limit and not loaded) if limit else None,
    )


def _code(statement: str) -> str:
    return _TIMED.format(statement=statement, forbidden=FORBIDDEN)


def _parsed(text: str) -> tuple[float, list[str]]:
    found = next(line for line in text.splitlines() if line.startswith("@"))
    spent, loaded = json.loads(found[1:])
    return spent, loaded


def _shell(statement: str, folder: Path) -> tuple[float, list[str]]:
    code = _SHELL + _code(statement)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return _parsed(done.stdout)


def _kernel(statement: str, folder: Path, before: tuple[str, float] | None = None) -> tuple[float, list[str]]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(folder), stderr=subprocess.DEVNULL)
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
