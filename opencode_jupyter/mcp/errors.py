"""What goes wrong with MCP servers, in words that say what to do."""

from __future__ import annotations

from importlib.util import find_spec

from ..core.errors import ToolError


class McpError(ToolError):
    """A server can't be reached, ended, did not answer in time, or answered with an error.

    Attributes:
        server: its name in the configuration.
    """

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server


def missing_sdk() -> str:
    """What to install before MCP can be used; "" where the MCP SDK is installed."""
    try:
        installed = find_spec("mcp_types") is not None  # version 1 of the SDK has no such module
    except (ImportError, ValueError):
        installed = False
    return "" if installed else 'MCP needs the MCP SDK 2, which is not installed: pip install "opencode-jupyter[mcp]"'


def innermost(error: BaseException) -> BaseException:
    """The first real error inside groups of them."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def words_of(error: BaseException) -> str:
    """One line about an error of a connection."""
    error = innermost(error)
    text = " ".join(str(error).split())
    if type(error).__name__ == "ValidationError":  # pydantic's, of the SDK's types; its whole text is a page
        first = error.errors(include_url=False)[0]  # type: ignore[attr-defined]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, TimeoutError):
        return text or "it did not answer in time"
    kind = type(error).__name__
    if not text:
        return kind
    return text if kind in ("MCPError", "McpError") else f"{kind}: {text}"
