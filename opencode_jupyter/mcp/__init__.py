"""MCP servers as tools (docs/opencode/core.md 6.4, 19). The SDK is imported when the first server is started."""

from __future__ import annotations

from .configuration import ServerSpec
from .manager import McpServers

__all__ = ["McpServers", "ServerSpec"]
