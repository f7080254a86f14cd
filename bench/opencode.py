"""An agent's step beside OpenCode's own release: one model server's answers, the same tools, the same files.

A step is the time from the end of an answer that calls one tool to the arrival of the next request: the tool's run, and
what the program keeps of it. Both keep their defaults, among them a store and a snapshot by git.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.model_servers.openai import ScriptedServer
from tests.support.model_servers.server import Request
from tests.support.opencode_release import Release

from ._measure import Options, Row

ROOT = Path(__file__).parents[1]
PACKAGE = "opencode-linux-x64"
VERSION = "1.18.33"
TURNS = 2
"""Runs of each program; they take turns, so that other work disturbs all alike."""
ROUNDS = 8
"""Steps with each tool in a run."""
WARM = 2
"""The first of them, which are not counted."""
PLACES = {"workspace": "in a workspace", "kernel": "in a notebook, with its card"}
"""Where ours runs: the kind of its child process, and what the table says."""
PROMPT = "Work through it"


def run(options: Options) -> list[Row]:
    """A row for each tool and place; without a release, a line that says how to get one."""
    program = find_release()
    if program is None:
        print(f"no OpenCode release (set OPENCODE_BIN, or npm i {PACKAGE}@{VERSION}):", end=" ", file=sys.stderr)
        return []
    theirs: dict[str, list[float]] = {}
    ours: dict[str, dict[str, list[float]]] = {kind: {} for kind in PLACES}
    for turn in range(TURNS):
        release = Release(options.folder / f"release{turn}", program)
        measure(release.project, partial(run_release, release), theirs)
        for kind, times in ours.items():
            project = options.folder / f"{kind}{turn}" / "project"
            project.mkdir(parents=True)
            measure(project, partial(run_child, kind, project), times)
    version = release.run("--version").stdout.strip()
    return [
        _row(f"an agent's step with {tool}, {place}", ours[kind][tool], f"OpenCode {version}", theirs[tool])
        for kind, place in PLACES.items()
        for tool in theirs
    ]


def _row(what: str, ours: list[float], peer: str, theirs: list[float]) -> Row:
    step, other = statistics.median(ours), statistics.median(theirs)
    return Row(what, f"{step:.1f} ms", f"{peer}: {other:.1f} ms", step / other, "<= 1.0x", step <= other)


def run_release(release: Release, url: str) -> None:
    """The release's run."""
    folder = release.project.parent / "config" / "opencode"
    folder.mkdir(exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(configuration(url)))
    release.run("run", "--model", "fake/m", PROMPT)


def find_release() -> str | None:
    """The program that OPENCODE_BIN names, or that npm installed in this folder or one above."""
    folders = (Path.cwd(), *Path.cwd().parents)
    installed = (folder / "node_modules" / PACKAGE / "bin" / "opencode" for folder in folders)
    return os.environ.get("OPENCODE_BIN") or next((str(path) for path in installed if path.is_file()), None)


def configuration(url: str) -> dict[str, Any]:
    """OpenCode's format: everything is allowed, and no formatter or language server runs."""
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url, "apiKey": "none"}, "models": {"m": {}}}
    return {"permission": {"*": "allow"}, "provider": {"fake": provider}, "formatter": False, "lsp": False}


def calls(project: Path) -> list[tuple[str, dict[str, Any]]]:
    """What the model calls, a step each; no call is made twice."""
    file = str(project / "numbers.py")
    steps: list[tuple[str, dict[str, Any]]] = []
    for n in range(ROUNDS):
        steps += [
            ("read", {"filePath": file, "offset": n + 1, "limit": 50}),
            ("grep", {"pattern": rf"value_{n}\b"}),
            ("bash", {"command": f"echo {n}", "description": "Print a number"}),
            ("edit", {"filePath": file, "oldString": f"step = {n}\n", "newString": f"step = {n + 1}\n"}),
        ]
    return steps


def fill(project: Path) -> None:
    """A repository with one commit: a file to edit, and some to search."""
    for number in range(200):
        (project / f"module_{number}.py").write_text(f"value_{number} = {number}\n" * 20)
    (project / "numbers.py").write_text("step = 0\n" + "".join(f"line_{n} = {n}\n" for n in range(200)))
    git = ["git", "-C", str(project), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*git, *command], check=True)


class TimedServer(ScriptedServer):
    """The server also knows when the answer to each request was out."""

    def __init__(self, script: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(self._next, side={"text": "Work"})
        self.script = script
        self.ends: dict[Request, float] = {}

    def _next(self, request: Request) -> dict[str, Any]:
        done = request.raw.count(b'"tool_call_id"')  # quicker than reading the JSON
        if done >= len(self.script):
            return {"text": "That is all of it."}
        return {"text": "Next.", "calls": [[*self.script[done], f"call_{done}"]]}

    async def answer(self, request: Request, write: Callable[[bytes], None]) -> bool:
        stays = await super().answer(request, write)
        self.ends[request] = time.monotonic()
        return stays


def measure(project: Path, client: Callable[[str], None], times: dict[str, list[float]]) -> None:
    """Add the steps of each tool to `times`, in ms; `client` runs the prompt with the server's address."""
    fill(project)
    script = calls(project)
    with TimedServer(script) as server:
        client(server.url)
        requests = [request for request in server.requests if request.method == "POST" and request.body.get("tools")]
    if len(requests) != len(script) + 1 or f"step = {ROUNDS}\n" not in (project / "numbers.py").read_text():
        raise RuntimeError(f"{len(requests)} requests in place of {len(script) + 1}, or a step failed")
    steps = list(zip(script, requests, requests[1:], strict=False))
    for (tool, _), request, following in steps[WARM * len(script) // ROUNDS :]:
        times.setdefault(tool, []).append((following.at - server.ends[request]) * 1000)


def run_child(kind: str, project: Path, url: str) -> None:
    """Our run, in a process of its own."""
    command = [sys.executable, "-m", "bench._opencode_child", kind, str(project), PROMPT]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(configuration(url)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{kind} failed: {done.stderr.strip()[-2000:]}")
