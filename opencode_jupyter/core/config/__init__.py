"""Configuration: OpenCode's files, where they are looked for and how they add up (docs/opencode/core.md 14)."""

from __future__ import annotations

from ..flags import flag
from .load import Config, load_config
from .merge import deep_merge, merge_config
from .schema import normalise
from .warning import ConfigWarning

__all__ = ["Config", "ConfigWarning", "deep_merge", "flag", "load_config", "merge_config", "normalise"]
