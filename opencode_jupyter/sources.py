"""The places that a workspace's tools come from besides this package's own: `attach` puts them into its registry.

It stands outside the layers, since it knows them all. A place does nothing before a tool is wanted from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core.discovery import FileTools
from .core.plugins import PluginTools
from .mcp.source import McpTools

if TYPE_CHECKING:
    from .core.tool_files import Loader
    from .core.workspace import Workspace


def attach(workspace: Workspace) -> None:
    """Add every place to a workspace's registry."""
    workspace.registry.add_source(FileTools(workspace, lambda: _scripts(workspace)))
    workspace.registry.add_source(workspace.service(PluginTools))
    workspace.registry.add_source(McpTools(workspace))


def _scripts(workspace: Workspace) -> Loader:
    from .javascript import JavaScriptTools

    return workspace.service(JavaScriptTools)
