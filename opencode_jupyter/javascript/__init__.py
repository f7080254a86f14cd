"""OpenCode's own tool files, in TypeScript and JavaScript, run by Node.js or Bun in a process beside the kernel."""

from __future__ import annotations

from .errors import JavaScriptError
from .service import JavaScriptTools

__all__ = ["JavaScriptError", "JavaScriptTools"]
