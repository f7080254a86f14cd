"""``python _peer_child.py PEER``: the median time of one call of a small tool in another library, in microseconds.

`peers` starts it in an environment that has that library alone.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

COUNT, WARM = 1000, 200
Call = Callable[[int], Awaitable[object]]


async def double(number: int) -> str:
    """Double a number.

    Args:
        number: The number.
    """
    return str(number * 2)


@asynccontextmanager
async def opencode_jupyter() -> AsyncIterator[Call]:
    import tempfile

    from opencode_jupyter import Workspace, tool

    with tempfile.TemporaryDirectory() as folder:
        async with Workspace(folder, {"permission": "allow"}, data_dir=f"{folder}/data", store=False) as ws:
            ws.registry.register(tool(double))
            yield lambda number: ws.call("double", {"number": number})


@asynccontextmanager
async def pydantic_ai() -> AsyncIterator[Call]:
    from pydantic_ai import RunContext, RunUsage, Tool
    from pydantic_ai.models.test import TestModel

    schema = Tool(double).function_schema
    context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    yield lambda number: schema.call(schema.validator.validate_python({"number": number}), context)


@asynccontextmanager
async def langchain() -> AsyncIterator[Call]:
    from langchain_core.tools import tool

    own = tool(double)
    yield lambda number: own.ainvoke({"number": number})


@asynccontextmanager
async def fastmcp() -> AsyncIterator[Call]:
    from fastmcp import Client, FastMCP

    server: Any = FastMCP("peer")
    server.tool(double)
    async with Client(server) as client:
        yield lambda number: client.call_tool("double", {"number": number})


@asynccontextmanager
async def openai_agents() -> AsyncIterator[Call]:
    from agents import function_tool
    from agents.tool_context import ToolContext

    own = function_tool(double)

    def call(number: int) -> Awaitable[object]:
        arguments = f'{{"number": {number}}}'
        context: Any = ToolContext(context=None, tool_name="double", tool_call_id=str(number), tool_arguments=arguments)
        return own.on_invoke_tool(context, arguments)

    yield call


@asynccontextmanager
async def inspect_ai() -> AsyncIterator[Call]:
    from inspect_ai.model import ChatMessageAssistant, execute_tools
    from inspect_ai.tool import Tool, ToolCall, tool

    @tool
    def doubler() -> Tool:
        return double

    tools = [doubler()]

    def call(number: int) -> Awaitable[object]:
        request = ToolCall(id=str(number), function="doubler", arguments={"number": number})
        return execute_tools([ChatMessageAssistant(content="", tool_calls=[request])], tools)

    yield call


async def main(peer: str) -> None:
    """Print the median time of a call."""
    async with globals()[peer]() as call:
        result = await call(21)
        if "42" not in str(result):
            sys.exit(f"{peer} answered {result}")
        for number in range(WARM):
            await call(-number)
        spent = []
        for number in range(COUNT):
            start = time.perf_counter_ns()
            await call(number)
            spent.append(time.perf_counter_ns() - start)
    print(statistics.median(spent) / 1000)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
