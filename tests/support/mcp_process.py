"""`python -m opencode_jupyter mcp` as a process, spoken to by the official client or line by line."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, types

ROOT = Path(__file__).parents[2]
GENERATIONS = ("legacy", "2026-07-28")
"""The client's two ways to speak: with a handshake, up to 2025-11-25, and with an envelope on every request."""


class Person:
    """Answers forms and keeps them; set `reply` to a form's content, or None to decline."""

    def __init__(self, reply: Any = None) -> None:
        self.reply = reply
        self.forms: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.forms.append(params)
        reply = self.reply(params) if callable(self.reply) else self.reply
        if reply is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=reply)


class Place:
    """A project folder, and servers for it."""

    def __init__(self, project: Path, data: Path, home: Path) -> None:
        self.project, self.data, self.home = project, data, home

    @classmethod
    def make(cls, root: Path) -> Place:
        """An empty git repository below `root`, with a home and a data folder of its own."""
        project, home = root / "project", root / "home"
        project.mkdir()
        home.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        settings = home / ".config" / "opencode" / "opencode.json"  # process ids mean something outside this sandbox
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps({"experimental": {"sandbox": {"backend": "landlock"}}}))
        return cls(project, root / "data", home)

    def configure(self, **config: Any) -> None:
        """Write the project's opencode.json."""
        (self.project / "opencode.json").write_text(json.dumps(config))

    def arguments(self, *options: str) -> list[str]:
        folders = ("--directory", str(self.project), "--data-dir", str(self.data))
        return ["-m", "opencode_jupyter", "mcp", *folders, *options]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "OPENCODE_TEST_HOME": str(self.home), "PYTHONPATH": str(ROOT)}

    @contextlib.asynccontextmanager
    async def client(
        self, mode: str = "legacy", *options: str, person: Person | None = None, **more: Any
    ) -> AsyncIterator[Client]:
        """A client of a new server process."""
        command = StdioServerParameters(command=sys.executable, args=self.arguments(*options), env=self.env)
        async with Client(command, mode=mode, elicitation_callback=person, **more) as client:
            yield client

    @contextlib.contextmanager
    def process(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """A server process, with pipes; killed at the end if it still runs."""
        with subprocess.Popen(
            [sys.executable, *self.arguments(*options)],
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            try:
                yield running
            finally:
                running.kill()


def send(process: subprocess.Popen[str], message: dict[str, Any] | str) -> None:
    """Write one line."""
    assert process.stdin is not None
    text = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
    process.stdin.write(text + "\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str], id: int) -> dict[str, Any]:
    """The answer to a request; every line before it must be a message too."""
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == id:
            return dict(message)
    raise AssertionError(f"the server ended before it answered {id}")


def shake_hands(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Initialise a connection of the old generation."""
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    send(process, {"id": 1, "method": "initialize", "params": params})
    welcome = answer(process, 1)
    send(process, {"method": "notifications/initialized"})
    return welcome


def alive(pid: int) -> bool:
    """Whether a process runs (one that ended and was not waited for counts as ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what: Any, limit: float = 20.0) -> Any:
    """Poll until something is true, and give it back."""
    end = time.monotonic() + limit
    while not (result := what()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
    return result


def pid_in(path: Path) -> int | None:
    """The process id that a command wrote into a file; None if it did not yet."""
    text = path.read_text().strip() if path.exists() else ""
    return int(text) if text else None
