"""Configuration: OpenCode's files, where they are looked for and how they are merged (docs/opencode/core.md 14)."""

from __future__ import annotations

from .config import Config, ConfigWarning, deep_merge, merge_config
from .load import load_config

__all__ = ["Config", "ConfigWarning", "deep_merge", "load_config", "merge_config"]
