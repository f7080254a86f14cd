"""The operating system's own limits on what a command can do: Landlock, bubblewrap, ``sandbox-exec``."""

from __future__ import annotations

from .confine import Confined, backend, confine, describe
from .policy import PROFILES, Limits, Profile, SandboxPolicy

__all__ = ["PROFILES", "Confined", "Limits", "Profile", "SandboxPolicy", "backend", "confine", "describe"]
