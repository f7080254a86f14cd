"""The argument of a plugin function, and the error of a plugin that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.permission import PermissionRequest, Reply
    from ..core.result import ToolResult

log = logging.getLogger("opencode_jupyter.plugin")


class PluginError(ToolError):
    """A plugin cannot be loaded, or returned something unusable."""


class PluginClient:
    """What a plugin does with its workspace, in place of OpenCode's HTTP client. Calls run the whole call pipeline."""

    def __init__(self, workspace: ToolHost) -> None:
        self.workspace = workspace

    @property
    def config(self) -> dict[str, Any]:
        """The merged configuration. To change it, return a ``config`` hook."""
        return self.workspace.config.data

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
        """Call a tool, under its rules; the options are those of `Workspace.call`.

        Raises:
            ToolError: see `core.errors`. A tool's own exception passes through.
        """
        return await self.workspace.call(tool, arguments, **options)

    async def tool_ids(self) -> list[str]:
        """Ids of all tools."""
        return await self.workspace.registry.ids()

    def pending(self) -> list[PermissionRequest]:
        """The permission requests that wait for a reply."""
        return self.workspace.permissions.pending()

    def reply(self, request_id: str, reply: Reply, message: str | None = None) -> bool:
        """Answer a permission request; False if it is no longer pending."""
        return self.workspace.permissions.reply(request_id, reply, message, by="plugin")

    def subscribe(self, event: str, fn: Callable[[dict[str, Any]], Any]) -> Callable[[], None]:
        """Call `fn` for every `event` (``*``: all of them); the returned function ends the subscription."""
        return self.workspace.bus.subscribe(event, fn)

    def log(self, message: str, level: int = logging.INFO) -> None:
        """Write to the log ``opencode_jupyter.plugin``."""
        log.log(level, message)


@dataclass(frozen=True, slots=True)
class PluginInput:
    """The argument of a plugin function.

    Attributes:
        client: the workspace's tools, permission requests and events.
        project: ``id`` and ``worktree`` of the project.
        directory: where calls run when the plugin starts.
        worktree: top of the project; ``/`` without version control.
        workspace: all of it; what is not documented of it may change.
        server_url: always None: there is no server.
    """

    client: PluginClient
    project: dict[str, str]
    directory: Path
    worktree: Path
    workspace: ToolHost
    server_url: None = None

    @classmethod
    def of(cls, workspace: ToolHost) -> PluginInput:
        """For the plugins of a workspace."""
        worktree = workspace.worktree
        project = {"id": "global" if worktree == Path(worktree.anchor) else str(worktree), "worktree": str(worktree)}
        return cls(PluginClient(workspace), project, workspace.directory, worktree, workspace)


def describe_error(error: BaseException) -> str:
    """An exception in one line, with the line of a file that does not parse."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
