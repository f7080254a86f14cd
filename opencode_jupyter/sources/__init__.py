"""Where a workspace's tools come from besides this package: tool files, plugins and MCP servers.

`attach` adds these sources to a workspace's registry. A source does nothing before one of its tools is requested.

`tool_files` and `plugins` are the sources. Each finds its files (`tool_file_discovery`, `plugin_discovery`) and has a
person trust what `source_code` read, before `python_modules` runs it for `tool_file_loader` and `plugin_loader`, which
make tools and hooks of the exports. `plugin_hooks` calls a plugin's hooks off the event loop, with the `PluginInput` of
`plugin_input`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.tool_source import ToolFileLoader
    from .plugin_input import PluginClient, PluginError, PluginInput

__all__ = ["PluginClient", "PluginError", "PluginInput", "attach"]


def attach(workspace: ToolHost) -> None:
    """Add every source to a workspace's registry."""
    from ..mcp.manager import McpServers
    from .plugins import PluginTools
    from .tool_files import FileTools

    workspace.registry.add_source(FileTools(workspace, lambda: _script_loader(workspace)))
    workspace.registry.add_source(workspace.service(PluginTools))
    workspace.registry.add_source(workspace.service(McpServers))


def _script_loader(workspace: ToolHost) -> ToolFileLoader:
    from ..javascript.service import JavaScriptTools

    return workspace.service(JavaScriptTools)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import plugin_input

    return getattr(plugin_input, name)
