"""The audit log: what it keeps of each decision, its chain, and several processes at once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from opencode_jupyter import PermissionDeniedError, PermissionRejectedError
from opencode_jupyter.core.audit import FIRST, AuditLog, audit_log
from opencode_jupyter.jupyter.magics.permissions import show_log
from tests.support.workspaces import OpenWorkspace


@pytest.mark.anyio
async def test_every_decision_is_logged_with_who_decided(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / "a.txt").write_text("x")
    rules = {"permission": {"*": "allow", "edit": "ask", "glob": "deny"}}
    replies = iter(["once", "reject"])
    ws = await open_workspace(rules, approve=lambda request: next(replies))
    await ws.call("read", {"filePath": "a.txt"})
    await ws.call("write", {"filePath": "b.txt", "content": "x"})
    with pytest.raises(PermissionRejectedError):
        await ws.call("write", {"filePath": "c.txt", "content": "x"})
    with pytest.raises(PermissionDeniedError):
        await ws.call("glob", {"pattern": "*"})
    log = audit_log(ws.data_dir)
    entries = log.last(10)[::-1]
    assert [(e["tool"], e["permission"], e["action"], e["by"], e["reply"]) for e in entries] == [
        ("read", "read", "allow", "rule", None),
        ("write", "edit", "allow", "approve", "once"),
        ("write", "edit", "deny", "approve", "reject"),
        ("glob", "glob", "deny", "rule", None),
    ]
    assert all(rule["origin"] for entry in entries for rule in entry["rules"])
    arguments = json.dumps({"filePath": "a.txt"}, separators=(",", ":"))
    assert entries[0]["arguments"] == hashlib.sha256(arguments.encode()).hexdigest()
    assert {"time", "session", "call", "request_id", "sandbox"} <= entries[0].keys()
    assert entries[0]["previous"] == FIRST
    assert log.path.parent == ws.data_dir and log.path.stat().st_mode & 0o777 == 0o600
    table = show_log(ws, 2)
    assert [row["tool"] for row in table.records] == ["glob", "write"]
    assert table.records[0]["rule"] == "glob * deny"
    assert "4 decisions; the chain is intact" in repr(show_log(ws, verify=True))
    lines = log.path.read_text().splitlines(keepends=True)
    log.path.write_text("".join([lines[0], lines[1].replace("b.txt", "z.txt"), *lines[2:]]))
    assert [row["line"] for row in show_log(ws, verify=True)] == [2]
    log.path.write_text("".join([*lines[:1], *lines[2:]]))
    assert [row["line"] for row in show_log(ws, verify=True)] == [2]


WRITER = """
import sys
from pathlib import Path
from opencode_jupyter.core.audit import AuditLog
log = AuditLog(Path(sys.argv[1]))
for n in range(200):
    log.append({"time": n, "writer": sys.argv[2], "text": "x" * n})
"""


def test_several_processes_keep_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "data" / "audit.jsonl"
    children = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    log = AuditLog(path)
    assert log.verify() == (600, [])
    with path.open("ab") as file:
        file.write(b'{"time": 1')  # cut by a crash
    log.append({"time": 2})
    assert log.verify() == (602, [(601, "the line is no entry of the log")])
