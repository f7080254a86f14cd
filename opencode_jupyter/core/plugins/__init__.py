"""Plugins: Python functions that bring tools and hooks (reference: core.md 20)."""

from .contents import PluginError
from .context import PluginClient, PluginInput
from .service import PluginTools

__all__ = ["PluginClient", "PluginError", "PluginInput", "PluginTools"]
