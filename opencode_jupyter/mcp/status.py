"""A server's status as people are shown it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ServerState = Literal["connected", "disabled", "failed", "needs_auth", "needs_client_registration"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a server.

    Attributes:
        state: OpenCode's word.
        error: why it failed.
        tools: how many tools it has.
        target: its command line or address, without secrets.
        source: the file that configures it.
        name: what it calls itself, and its version.
        pid: process of a local server.
    """

    state: ServerState
    error: str = ""
    tools: int = 0
    target: str = ""
    source: str = ""
    name: str = ""
    pid: int = 0
