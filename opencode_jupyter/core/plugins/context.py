"""The input of a plugin function."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..permission import PermissionRequest, Reply
    from ..result import ToolResult
    from ..workspace import Workspace

log = logging.getLogger("opencode_jupyter.plugin")


class PluginClient:
    """What a plugin does with its workspace, in place of OpenCode's HTTP client. Calls go the way of every call."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def config(self) -> dict[str, Any]:
        """The merged configuration. To change it, offer a ``config`` hook."""
        return self.workspace.config.data

    async def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
        """Call a tool, with its rules and asks; the options are those of `Workspace.call`.

        Raises:
            ToolError: see `core.errors`. What the tool itself raises passes through.
        """
        return await self.workspace.call(tool, arguments, **options)

    async def tool_ids(self) -> list[str]:
        """Ids of all tools."""
        return await self.workspace.registry.ids()

    def pending(self) -> list[PermissionRequest]:
        """The permission requests that wait for an answer."""
        return self.workspace.permissions.pending()

    def reply(self, request_id: str, reply: Reply, message: str | None = None) -> bool:
        """Answer a permission request; False if it waits no more."""
        return self.workspace.permissions.reply(request_id, reply, message, by="plugin")

    def subscribe(self, event: str, fn: Callable[[dict[str, Any]], Any]) -> Callable[[], None]:
        """Call `fn` for every `event` (``*``: all of them); the returned function ends that."""
        return self.workspace.bus.subscribe(event, fn)

    def log(self, message: str, level: int = logging.INFO) -> None:
        """Write to the log ``opencode_jupyter.plugin``."""
        log.log(level, message)


@dataclass(frozen=True, slots=True)
class PluginInput:
    """The argument of a plugin function.

    Attributes:
        client: the workspace's tools, asks and events.
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
    workspace: Workspace
    server_url: None = None

    @classmethod
    def of(cls, workspace: Workspace) -> PluginInput:
        """For the plugins of a workspace."""
        worktree = workspace.worktree
        project = {"id": "global" if worktree == Path(worktree.anchor) else str(worktree), "worktree": str(worktree)}
        return cls(PluginClient(workspace), project, workspace.directory, worktree, workspace)
