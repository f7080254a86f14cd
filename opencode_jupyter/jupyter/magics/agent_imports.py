"""Loads beforehand what the first ``%%agent`` needs, half a second of work, while nobody waits for it."""

from __future__ import annotations

from importlib import import_module

NEEDED = (
    "opencode_jupyter.agent.loop",
    "opencode_jupyter.agent.models.resolving",
    "opencode_jupyter.jupyter.magics.agent",
    "opencode_jupyter.jupyter.magics.agent_run",
    "httpx2",
)


def warm() -> None:
    """Import it all; any thread may."""
    for name in NEEDED:
        import_module(name)
