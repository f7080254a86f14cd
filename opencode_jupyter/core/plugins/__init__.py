"""Plugins: Python functions that bring tools and hooks (reference: core.md 20).

What only a plugin's own code needs is imported when that code asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .service import PluginTools

if TYPE_CHECKING:
    from .contents import PluginError
    from .context import PluginClient, PluginInput

__all__ = ["PluginClient", "PluginError", "PluginInput", "PluginTools"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import contents, context

    return getattr(contents if name == "PluginError" else context, name)
