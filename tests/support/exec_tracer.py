"""Runs shell lines and reports which programs each started: ``python exec_tracer.py LINES.json FOLDER`` prints JSON.

Every ``execve`` that strace sees counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

MADE = ("alpha", "beta", "gamma")
LOG = "started.log"
_STARTED = re.compile(r'^(\d+) +execve\("([^"]*)".*= 0$|^(\d+) +execve\("([^"]*)".*<unfinished')
_RESUMED = re.compile(r"^(\d+) +<\.\.\. execve resumed.*= 0$")


def start(line: str, folder: Path) -> list[str]:
    """Run one line; returns the names of the programs that it started."""
    log = folder.parent / LOG
    log.unlink(missing_ok=True)
    environment = {"PATH": f"{folder.parent / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C"}
    options = ["-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-s", "9", "-o", str(log)]
    process = subprocess.Popen(
        ["strace", *options, "/bin/bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
    text = log.read_text(errors="replace") if log.exists() else ""
    names, waiting = [], {}
    for entry in text.splitlines():
        if match := _STARTED.match(entry):
            if match[2] is not None:
                names.append(match[2])
            else:
                waiting[match[3]] = match[4]
        elif (match := _RESUMED.match(entry)) and match[1] in waiting:
            names.append(waiting.pop(match[1]))
    return sorted({os.path.basename(name) for name in names[1:]})  # the first is the shell itself


def main(lines: list[str], folder: Path) -> None:
    """Make the programs that exist nowhere, run every line, print what each started."""
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    for name in MADE:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    print(json.dumps([start(line, folder) for line in lines]))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
