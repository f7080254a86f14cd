"""The former path of `opencode_jupyter.batch`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("opencode_jupyter.batch"), name)
