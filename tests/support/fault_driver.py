"""Kills workers at random moments, as process 1 of a PID namespace of its own; see `tests/unit/core/test_killed.py`.

``python fault_driver.py WORKER TIMES FOLDER``: for each round, start the worker ``WORKER`` (a function of
`fault_workers`) in ``FOLDER/<round>``, kill it with SIGKILL, wait until no process is left, and write what the worker
had reported as lines of ``FOLDER/<round>/reported``.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_S = 5.0
"""Seconds after a kill in which all that the worker started must end."""


def others() -> list[int]:
    """The processes of this namespace besides this one; those that ended are reaped."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def main(worker: str, times: int, folder: Path) -> None:
    """Run the rounds; a process that is left over ends the driver with a message."""
    assert os.getpid() == 1, "only in a PID namespace of its own"
    for number in range(times):
        base = folder / str(number)
        (base / "project").mkdir(parents=True)
        code = f"from tests.support import fault_workers; fault_workers.run({worker!r}, {str(base)!r})"
        reader, writer = os.pipe()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=writer, cwd=base / "project", env=environment, start_new_session=True
        )
        os.close(writer)
        with os.fdopen(reader, "rb") as lines, (base / "reported").open("wb") as reported:
            fewest = 1 if number else 2  # the first line says that it is ready; the first round must report a call too
            for _ in range(random.randint(fewest, 8)):
                reported.write(lines.readline())
            time.sleep(random.uniform(0, 0.02))
            os.kill(child.pid, signal.SIGKILL)
            deadline = time.monotonic() + LEFT_S
            while left := others():
                if time.monotonic() > deadline:
                    names = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
                    sys.exit(f"round {number}: left after {LEFT_S:g} s: {names}")
                time.sleep(0.01)
            reported.write(lines.read())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
