"""OpenCode's tool system inside the IPython kernel.

``%load_ext opencode_jupyter`` brings the magics; `Workspace` is the same from Python. Nothing heavy is
imported here: names are found at their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .core.import_guard import install as _install_import_guard

if TYPE_CHECKING:
    from .core.context import InitContext, ToolContext
    from .core.errors import (
        ConfigError,
        InvalidArgumentsError,
        InvalidDefinitionError,
        InvalidResultError,
        PermissionCorrectedError,
        PermissionDeniedError,
        PermissionRejectedError,
        QuestionRejectedError,
        ToolAbortedError,
        ToolError,
        ToolTimeoutError,
        UnknownSessionError,
        UnknownToolError,
    )
    from .core.permission import PermissionRequest, Reply, Rule
    from .core.result import Attachment, ToolResult
    from .core.tool import Definition, Tool, tool
    from .demos import demo
    from .jupyter.extension_state import current
    from .workspace import Workspace

_HOMES = {
    name: module
    for module, names in {
        "workspace": "Workspace",
        "core.tool": "Tool tool Definition",
        "core.context": "ToolContext InitContext",
        "core.result": "ToolResult Attachment",
        "core.permission": "PermissionRequest Reply Rule",
        "core.errors": "ToolError UnknownSessionError UnknownToolError InvalidArgumentsError InvalidDefinitionError "
        "InvalidResultError ToolAbortedError ToolTimeoutError PermissionDeniedError PermissionRejectedError "
        "PermissionCorrectedError QuestionRejectedError ConfigError",
        "jupyter.extension_state": "current",
        "demos": "demo",
    }.items()
    for name in names.split()
}

__all__ = [
    "Attachment",
    "ConfigError",
    "Definition",
    "InitContext",
    "InvalidArgumentsError",
    "InvalidDefinitionError",
    "InvalidResultError",
    "PermissionCorrectedError",
    "PermissionDeniedError",
    "PermissionRejectedError",
    "PermissionRequest",
    "QuestionRejectedError",
    "Reply",
    "Rule",
    "Tool",
    "ToolAbortedError",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolTimeoutError",
    "UnknownSessionError",
    "UnknownToolError",
    "Workspace",
    "__version__",
    "current",
    "demo",
    "load_ipython_extension",
    "tool",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _install_import_guard()
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(ip: Any) -> None:
    """``%load_ext opencode_jupyter``."""
    _install_import_guard()
    from .jupyter.extension import load

    load(ip)


def unload_ipython_extension(ip: Any) -> None:
    """``%unload_ext opencode_jupyter``: takes everything back."""
    from .jupyter.extension import unload

    unload(ip)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "opencode-jupyter"}]
