"""What a config file may hold, as pydantic models: the one description that validation and the JSON schema come from.

OpenCode's keys that concern tools and permissions are described in full (docs/opencode/core.md 14, 19.1); what else it
reads (themes, keys, providers) is let through, so that one file serves both programs.
"""

from __future__ import annotations

from .agent import AgentEntry
from .file import ConfigFile
from .mcp import McpServer
from .permission import PermissionRules
from .section import Section

__all__ = ["AgentEntry", "ConfigFile", "McpServer", "PermissionRules", "Section"]
