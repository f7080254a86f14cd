"""``%permissions sandbox``: which sandbox commands run in, and another profile until the kernel ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...core.errors import InvalidArgumentsError
from ...runtime.sandbox import PROFILES, Profile, describe
from ...runtime.sandbox.service import Sandbox
from ..tables import Table

if TYPE_CHECKING:
    from ...workspace import Workspace

DEFAULT = "default"
USER, NETWORK, NO_NETWORK = "--user", "--network", "--no-network"
WORDS = (*PROFILES, DEFAULT)
OPTIONS = (USER, NETWORK, NO_NETWORK)
_MEANING = {
    "off": "everything is possible",
    "workspace-write": "changes the project and a private temporary folder; reads no secrets",
    "read-only": "changes only a private temporary folder; reads no secrets",
}


def sandbox(workspace: Workspace, rest: list[str]) -> Table:
    """``%permissions sandbox [PROFILE|default] [--user] [--network|--no-network]``.

    Raises:
        InvalidArgumentsError: there is no such profile or option.
    """
    service = workspace.service(Sandbox)
    words = [word for word in rest if word not in OPTIONS]
    if len(words) > 1 or any(word not in WORDS for word in words):
        wrong = next((word for word in words if word not in WORDS), words[-1])
        raise InvalidArgumentsError(
            f"%permissions sandbox takes one of {', '.join(WORDS)}, and {', '.join(OPTIONS)}; not {wrong}."
        )
    if NETWORK in rest or NO_NETWORK in rest:
        service.network = NO_NETWORK not in rest
    for word in words:
        profile = None if word == DEFAULT else cast("Profile", word)
        if USER in rest:
            service.user = profile
        else:
            service.chosen = profile
        if word == DEFAULT and len(rest) == 1:
            service.user = service.network = None
    return shown(workspace)


def shown(workspace: Workspace) -> Table:
    """Who runs in which profile."""
    service = workspace.service(Sandbox)
    agent = workspace.agent()
    rows = [
        ("a model's commands", service.profile("model", agent.name, agent.model_permission)),
        ("your commands", service.profile("user", agent.name)),
        *((f"{kind}: {what}", service.settings.program(kind)) for kind, what in _PROGRAMS.items()),
    ]
    network = service.settings.network if service.network is None else service.network
    notes = [
        f"Enforced by {service.backend}." if service.backend else "This machine has no sandbox: nothing is enforced.",
        f"Commands in the sandbox {'may use' if network else 'have no access to'} the network.",
        f"Sandboxes of this machine: {describe()}.",
        "%permissions sandbox read-only|workspace-write|off|default [--user] [--network|--no-network]",
    ]
    columns = ("for", "profile", "what")
    return Table(
        [{"for": who, "profile": profile, "what": _MEANING[profile]} for who, profile in rows],
        columns,
        title=f"Sandbox (agent {agent.name})",
        notes=notes,
    )


_PROGRAMS = {
    "formatter": "formatters",
    "lsp": "language servers",
    "tools": "JavaScript tool files",
    "mcp": "local MCP servers",
}
