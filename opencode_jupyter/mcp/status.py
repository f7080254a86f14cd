"""The status of the servers: their state, why one has no tools, their logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from .configuration import UNTRUSTED, ServerConfiguration, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .connection import ServerConnection

State = Literal["connected", "disabled", "failed", "needs_auth", "needs_client_registration"]


@dataclass(frozen=True, slots=True)
class Status:
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

    state: State
    error: str = ""
    tools: int = 0
    target: str = ""
    source: str = ""
    name: str = ""
    pid: int = 0


class StatusReport:
    """Reports on the servers of a configuration; any thread may use it.

    Args:
        configuration: which servers there are.
        connections: those that were started, by name.
    """

    def __init__(self, configuration: ServerConfiguration, connections: Mapping[str, ServerConnection]) -> None:
        self._configuration = configuration
        self._connections = connections

    def status(self, spec: ServerSpec) -> Status:
        """A server's status. One that was not needed yet is ``disabled``, and ``error`` says so."""
        unused = Status("disabled", target=spec.shown, source=spec.source)
        if spec.problem:
            return replace(unused, state="failed", error=spec.problem)
        if not self._configuration.startable(spec):
            return replace(unused, error=self.switched_off(spec))
        connection = self._connections.get(spec.name)
        if connection is None:
            return replace(unused, error="not started yet" if self._configuration.trusted(spec) else UNTRUSTED)
        status = connection.status()
        return replace(status, error="starting") if connection.connecting and not status.error else status

    def why_unavailable(self, spec: ServerSpec) -> str:
        """Why a server has no tools now, and what to do about it; "" if it has, or was not needed yet."""
        if spec.problem or not self._configuration.startable(spec):
            return spec.problem
        if not self._configuration.trusted(spec):
            return UNTRUSTED
        connection = self._connections.get(spec.name)
        return connection.error if connection is not None and connection.state != "connected" else ""

    def switched_off(self, spec: ServerSpec) -> str:
        """How to start a server that is switched off; "" for another one."""
        is_off = not spec.problem and not self._configuration.startable(spec)
        return f"{spec.name} is switched off; start it: %mcp connect {spec.name}" if is_off else ""

    def logs(self, name: str) -> list[str]:
        """The last lines of a server's stderr and log messages, oldest first, without secrets."""
        connection = self._connections.get(name)
        return connection.log.lines() if connection is not None else []
