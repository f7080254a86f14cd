"""Processes killed at a random moment: what they reported is kept, and nothing is half-written or left behind.

``FAULTS=100`` runs each a hundred times.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from tests.support import fault_driver
from tests.support.fault_workers import content

TIMES = int(os.environ.get("FAULTS", "2"))
NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def _has_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not _has_namespaces(), reason="needs PID namespaces (Linux, as root)"),
]


@pytest.mark.parametrize("worker", ["calls", "commands", "writes", "patches", "spills", "approvals"])
async def test_nothing_reported_is_lost(tmp_path: Path, worker: str) -> None:
    command = [*NAMESPACE, sys.executable, fault_driver.__file__, worker, str(TIMES), str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + 10 * TIMES)
    assert process.returncode == 0, process.stdout + process.stderr
    reported = 0
    for folder in sorted(tmp_path.iterdir()):
        ready, *lines = [json.loads(line) for line in (folder / "reported").read_text().splitlines()]
        assert ready == {"ready": True}
        reported += len(lines)
        await _check(folder, lines)
    assert reported


async def _check(folder: Path, lines: list[dict[str, Any]]) -> None:
    async with Workspace(folder / "project", config={}, data_dir=folder / "data") as ws:
        assert ws.store is not None
        parts = {part["id"]: part["state"] for part in await ws.store.parts()}
        assert ws.store.moved_aside is None
    for line in lines:
        state = parts[line["id"]]
        assert state["status"] == "completed"
        assert state["output"].startswith(line["output"])
    assert {state["status"] for state in parts.values()} <= {"completed", "error"}
    for path in (folder / "project").rglob("*"):
        assert not path.name.endswith(".tmp"), path
        if path.is_file() and path.parent == folder / "project":
            text = path.read_text()
            assert text == content(int(text.split()[1])), path


def test_a_full_disk_leaves_no_half_written_file(tmp_path: Path) -> None:
    code = f"from tests.support import fault_workers; fault_workers.fill_disk({str(tmp_path)!r})"
    mounted = f'mount -t tmpfs -o size=4m none "{tmp_path}" && exec "$0" -c "$1"'
    command = [*NAMESPACE, "--mount", "sh", "-c", mounted, sys.executable, code]
    root = Path(fault_driver.__file__).parents[2]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.returncode == 0, process.stderr
    assert '"full"' in process.stdout
