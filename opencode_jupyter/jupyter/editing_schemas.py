"""The tools as a page keeps them: names, parameters and their values, for a kernel that can't answer just now."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from ..core.permission.modes import MODES
from .agent.options import OPTIONS as AGENT_OPTIONS
from .agent.options import VALUED as AGENT_VALUED
from .arguments import OPTIONS
from .arguments_schema import Field, Spec, spec_of
from .completion import PERMISSIONS_COMMANDS, TOOLS_COMMANDS, VALUED
from .help import source_of, summary
from .magic_mcp import COMMANDS as MCP_COMMANDS
from .magic_sessions import COMMANDS as SESSIONS_COMMANDS

if TYPE_CHECKING:
    from ..core.registry import Registry
    from ..core.tool import Tool

log = logging.getLogger(__name__)

MOST_CHOICES = 200
"""Values of one parameter that are told."""
DESCRIPTION = 1_000
"""Characters of a description that are told."""


class Schemas:
    """What a page is told; made anew only for tools that were not there before."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._seen: list[Tool] = []
        self._missing: list[str] = []
        self._count = 0
        self._told: dict[str, tuple[Tool, dict[str, Any]]] = {}

    @property
    def revision(self) -> int:
        """A number that grows when tools come, go or are replaced."""
        with self._lock:
            return self._look()

    def reply(self, known: Any = None) -> dict[str, Any]:
        """Everything, or the revision alone where it is the one that the page knows."""
        with self._lock:
            revision = self._look()
            if known == revision:
                return {"revision": revision}
            tools = [self._tell(tool) for tool in self._seen]
            missing = [
                {"name": one.id, "source": one.source, "summary": one.reason[:DESCRIPTION], "fields": []}
                for one in self._registry.unavailable()
                if not one.id.endswith("*") and self._registry.get(one.id) is None
            ]
        return {
            "revision": revision,
            "tools": [*tools, *missing],
            "options": dict(OPTIONS),
            "valued": list(VALUED),
            "agent": dict(AGENT_OPTIONS),
            "agentValued": list(AGENT_VALUED),
            "modes": list(MODES),
            "commands": {
                "tools": list(TOOLS_COMMANDS),
                "permissions": list(PERMISSIONS_COMMANDS),
                "mcp": list(MCP_COMMANDS),
                "sessions": list(SESSIONS_COMMANDS),
            },
        }

    def _look(self) -> int:
        registry = self._registry
        found = [tool for tool in map(registry.get, registry.names()) if tool is not None]
        missing = [one.id for one in registry.unavailable()]
        same = len(found) == len(self._seen) and all(a is b for a, b in zip(found, self._seen, strict=True))
        if not same or missing != self._missing:
            self._seen, self._missing = found, missing
            self._count += 1
        return self._count

    def _tell(self, tool: Tool) -> dict[str, Any]:
        kept = self._told.get(tool.id)
        if kept is None or kept[0] is not tool:
            kept = self._told[tool.id] = (tool, described(tool, self._registry))
        return kept[1]


def described(tool: Tool, registry: Registry) -> dict[str, Any]:
    """One tool; without parameters where it can't describe itself."""
    told: dict[str, Any] = {"name": tool.id, "source": source_of(tool), "summary": "", "fields": []}
    try:
        spec = spec_of(tool, registry)
        told["summary"] = tool_described(spec)
        told["fields"] = [field_of(field) for field in spec.positional]
        told["raw"] = spec.raw
        told["body"] = spec.body.name if spec.body is not None else None
    except Exception:  # its call says why
        log.debug("%s can't be described for completion", tool.id, exc_info=True)
    return told


def field_of(field: Field) -> dict[str, Any]:
    """One parameter."""
    told: dict[str, Any] = {
        "name": field.name,
        "type": field.type[:DESCRIPTION],
        "required": field.required,
        "description": field.description[:DESCRIPTION],
        "choices": field.choices[:MOST_CHOICES],
        "list": field.takes("array"),
    }
    if "default" in field.schema:
        told["default"] = field.schema["default"]
    return told


def tool_described(spec: Spec) -> str:
    """A tool's first sentence, from wherever it says one."""
    return (summary(spec.tool) or _first_line(spec.bound.description))[:DESCRIPTION]


def _first_line(text: str) -> str:
    return next((line.strip(" #-*") for line in text.splitlines() if line.strip(" #-*")), "")
