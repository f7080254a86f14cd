"""MCP servers for tests, and how a workspace is told of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def local(script: str, *arguments: str, **more: Any) -> dict[str, Any]:
    """An entry of ``mcp`` for a script beside this file."""
    return {"type": "local", "command": [sys.executable, str(HERE / script), *arguments], **more}
