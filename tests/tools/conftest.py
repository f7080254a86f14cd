"""A Workspace in a temporary git repository."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.workspace import Workspace

from ..support.site import Site


class Approver:
    """Answers every ask and remembers it; set `reply` to answer otherwise."""

    def __init__(self) -> None:
        self.reply: Any = "once"
        self.asks: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.asks.append(request)
        return self.reply(request) if callable(self.reply) else self.reply

    def named(self, permission: str) -> list[Any]:
        """The asks of one permission, in order."""
        return [ask for ask in self.asks if ask.permission == permission]


@pytest.fixture
def approver() -> Approver:
    return Approver()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository, and a home folder of its own."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "OPENCODE_TEST_HOME"):
        monkeypatch.setenv(name, str(home))
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_CONFIG_CONTENT",
    ):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
async def workspace(project: Path, approver: Approver, tmp_path: Path) -> AsyncIterator[Workspace]:
    """A Workspace in which everything asks and `approver` answers."""
    config = {"permission": {"*": "ask"}, "experimental": {"sandbox": {"writable": [str(tmp_path)]}}}
    async with Workspace(project, config, data_dir=tmp_path / "data", approve=approver) as ws:
        yield ws


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site on loopback."""
    with Site() as running:
        yield running


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """A name server: host to addresses."""
    known: dict[str, list[str]] = {"site.test": ["127.0.0.1"]}
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host in known:
            return [entry for address in known[host] for entry in real(address, port, *args, **kwargs)]
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known
