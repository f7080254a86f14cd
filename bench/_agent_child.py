"""One run of an agent in a process of its own, for `bench.agent`: prints seconds and its most memory (MB) as JSON.

``python -m bench._agent_child ours|peer URL STEPS``
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

PROMPT = "Add them up"


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}: " + "the sum of two numbers, and some words around it. " * 4


async def ours(url: str) -> tuple[float, int]:
    """A run in a workspace with its store, every built-in tool offered; no notebook, so no cards."""
    from opencode_jupyter import Workspace, tool

    config = {
        "permission": {"*": "allow"},
        "provider": {"fake": {"options": {"baseURL": url, "apiKey": "none"}, "models": {"m": {}}}},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace(folder, config=config, data_dir=f"{folder}/data") as workspace:
            workspace.registry.register(tool(add))
            start = time.perf_counter()
            answer = await workspace.sessions.prompt(PROMPT, model="fake:m")
            return time.perf_counter() - start, len(answer.calls)


async def peer(url: str) -> tuple[float, int]:
    """pydantic-ai's Agent with this one tool, and nothing kept."""
    from pydantic_ai import Agent, ToolCallPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent: Agent[None, str] = Agent(model)
    agent.tool_plain(add)
    start = time.perf_counter()
    result = await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=None))
    calls = sum(isinstance(part, ToolCallPart) for message in result.all_messages() for part in message.parts)
    return time.perf_counter() - start, calls


def main() -> None:
    """See the module."""
    seconds, calls = asyncio.run({"ours": ours, "peer": peer}[sys.argv[1]](sys.argv[2]))
    if calls != int(sys.argv[3]):
        raise SystemExit(f"{calls} calls were made in place of {sys.argv[3]}")
    # Not ru_maxrss, which begins with what the process had that started this one.
    status = Path("/proc/self/status").read_text().splitlines()
    memory = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    print(json.dumps([seconds, memory]))


if __name__ == "__main__":
    main()
