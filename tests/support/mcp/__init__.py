"""MCP servers for tests, and how a workspace is told of them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NPM = HERE / "npm"
CHECKOUT = HERE.parents[2]


def local(script: str, *arguments: str, **more: Any) -> dict[str, Any]:
    """An entry of ``mcp`` for a script beside this file."""
    return {"type": "local", "command": [sys.executable, str(HERE / script), *arguments], **more}


def module(name: str, *arguments: str) -> dict[str, Any]:
    """An entry for a server that is installed beside this Python."""
    return {"type": "local", "command": [sys.executable, "-m", name, *arguments]}


def npm(name: str, *arguments: str) -> dict[str, Any]:
    """An entry for a server of ``npm/package.json``, installed at its first use.

    Raises:
        RuntimeError: npm could not install it; with npm's words.
    """
    binaries = _installed() / "node_modules" / ".bin"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {"type": "local", "command": [str(binaries / name), *arguments], "environment": {"PATH": path}}


def _installed() -> Path:
    folder = CHECKOUT / ".venvs" / "mcp-npm"
    stamp = folder / "lock.stamp"
    digest = hashlib.sha256((NPM / "package-lock.json").read_bytes()).hexdigest()
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "mcp-npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs at once make it once
        if stamp.exists() and stamp.read_text() == digest:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(NPM, folder)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            ["npm", "ci", "--silent"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            raise RuntimeError(f"npm ci failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        stamp.write_text(digest)
    return folder
