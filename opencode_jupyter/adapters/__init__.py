"""Tools of other libraries as tools of ours, and the other way (`exports`).

An object is recognised by the names of its classes: a library is imported only when one of its tools is passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.tool import Tool

_NO_OPTIONS = "nothing"


def adapt(source: Any, **options: Any) -> list[Tool] | None:
    """Convert another library's object to tools.

    Taken are LangChain's ``BaseTool`` and toolkits, pydantic-ai's ``Tool`` and toolsets, an MCP ``Tool``, a tool as
    OpenAI's or Anthropic's API takes it (a dict), and lists of all these.

    Args:
        source: the object.
        **options: what some need besides: ``deps`` for pydantic-ai tools that use ``ctx.deps``, ``session`` (a
            ``mcp.Client`` or ``ClientSession``) for an MCP tool, ``call`` (a function) for a dict.

    Returns:
        The tools; None if the object is of none of these kinds.

    Raises:
        TypeError: an option is missing, or is not for this kind; or the tool needs what is unavailable here.
    """
    if isinstance(source, (list, tuple)):
        return [tool for item in source for tool in _of_a_list(item, options)]
    if isinstance(source, dict):
        from . import provider_apis

        return [provider_apis.tool_of(source, **_only(options, "call", "a dict"))]
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(source).__mro__}
    if kinds & {"langchain_core.BaseTool", "langchain_core.BaseToolkit"}:
        from . import langchain

        _only(options, _NO_OPTIONS, "a LangChain tool")
        return langchain.tools_of(source)
    if kinds & {"pydantic_ai.Tool", "pydantic_ai.AbstractToolset"}:
        from . import pydantic_ai

        return pydantic_ai.tools_of(source, **_only(options, "deps", "a pydantic-ai tool"))
    if kinds & {"mcp_types.Tool", "mcp.Tool"}:
        from . import mcp_tool

        return [mcp_tool.tool_of(source, **_only(options, "session", "an MCP tool"))]
    return None


def _of_a_list(item: Any, options: dict[str, Any]) -> list[Tool]:
    from ..core.tool import Tool, tool

    if isinstance(item, Tool):
        return [item]
    tools = adapt(item, **options)
    return [tool(item)] if tools is None else tools


def _only(options: dict[str, Any], option: str, kind: str) -> dict[str, Any]:
    unknown = sorted(options.keys() - {option})
    if unknown:
        raise TypeError(f"register() takes no {', '.join(unknown)}= for {kind}; it takes {option}")
    return options
