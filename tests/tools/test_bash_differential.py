"""What generated commands start, held against what the analysis says of them."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opencode_jupyter.core.permission.rules import NOT_ANALYSED
from opencode_jupyter.tools.shell.analysis import analyse
from opencode_jupyter.tools.shell.shell_requests import ShellRequests

TRACER = Path(__file__).parents[1] / "support" / "exec_tracer.py"
LINES = int(os.environ.get("DIFFERENTIAL_LINES", "180"))
"""How many lines to compare; by hand, with another seed, it may be many thousands."""
BATCH = 60
GRAMMAR: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "data" / "generated_commands.json").read_text())
_KIND = re.compile(rf"<({'|'.join(GRAMMAR)}|quoted)>")
HELPERS = {"xargs": "echo", "flock": "sh"}
"""What programs start of their own accord."""


class Lines:
    """Makes lines of shell text that start the harmless programs alpha, beta and gamma, openly or hidden."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, kind: str = "line", depth: int = 3) -> str:
        """A text of a kind: one of its forms, each name in pointed brackets replaced by a text of that kind."""
        if kind == "quoted":
            return self.make("line", depth).replace("'", "'\\''")
        form = self._random.choice(GRAMMAR["command" if kind == "line" and depth <= 0 else kind])
        return _KIND.sub(lambda match: self.make(match[1], depth - 1), form)


def named(asks: ShellRequests) -> set[str] | None:
    """The programs that an analysis names; None if it requests approval."""
    readings = [*asks.patterns, *(reading.pattern for reading in asks.readings)]
    if any(reading.startswith(NOT_ANALYSED) for reading in readings):
        return None
    return {os.path.basename(reading.split(None, 1)[0]) for reading in readings if reading.strip()}


def started(lines: list[str], folder: Path) -> list[list[str]]:
    """The programs that lines start, run in a PID and mount namespace of their own where the machine has them."""
    (folder.parent / "lines.json").write_text(json.dumps(lines))
    run = [sys.executable, str(TRACER), str(folder.parent / "lines.json"), str(folder)]
    for options in (["--pid", "--fork", "--mount-proc"], ["-r", "--pid", "--fork", "--mount-proc"]):
        unshare = [shutil.which("unshare") or "", *options, "--kill-child"]
        if unshare[0] and subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0:
            run = [*unshare, *run]
            break
    return json.loads(subprocess.run(run, capture_output=True, check=True, text=True).stdout)


def can_trace() -> bool:
    """Whether strace is installed and allowed to trace."""
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "-o", "/dev/null", "true"], check=False).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="strace is missing (apt-get install strace), or may not trace here")
def test_programs_that_start_were_named_or_approval_was_requested(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    seed = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
    generator, compared = Lines(seed), 0
    unnamed: dict[str, list[str]] = {}
    all_programs: set[str] = set()
    while compared < LINES:
        lines = [line for line in (generator.make() for _ in range(BATCH * 6)) if len(line) < 400]
        analysed = [
            (line, names) for line in lines if (names := named(analyse(line, folder, lambda path: True))) is not None
        ]
        for name in ("a", "b", "r", "keep"):
            (folder / name).write_text("keep\n")
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        for (line, names), programs in zip(analysed, started([line for line, _ in analysed], folder), strict=True):
            compared += 1
            if more := set(programs) - names - {helper for name, helper in HELPERS.items() if name in line}:
                unnamed[line] = sorted(more)
            all_programs.update(programs)
    assert {"alpha", "beta", "gamma", "env", "xargs"} <= all_programs
    assert unnamed == {}
