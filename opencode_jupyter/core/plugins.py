"""The former path of `opencode_jupyter.sources`, which plugins import `PluginInput` from."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("PluginClient", "PluginError", "PluginInput"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("opencode_jupyter.sources"), name)
