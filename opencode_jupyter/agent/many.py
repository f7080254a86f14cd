"""The former path of `opencode_jupyter.batch`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from .. import batch

    return getattr(batch, name)
