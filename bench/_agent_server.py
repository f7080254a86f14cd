"""The scripted provider of `bench.agent`, in a process of its own: ``python -m bench._agent_server STEPS``.

It prints its address and serves until standard input ends. Which turn comes next is seen from the conversation, so that
one client after the other can begin anew.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.support.model_servers.openai import ScriptedServer
from tests.support.model_servers.server import Request


def main() -> None:
    """See the module."""
    steps = int(sys.argv[1])

    def turn(request: Request) -> dict[str, Any]:
        done = request.raw.count(b'"tool_call_id"')  # quicker than reading the JSON: this is not what is measured
        if done >= steps:
            return {"text": "That is all of it."}
        return {"text": "I add.", "calls": [["add", {"a": done, "b": 1}, f"call_{done}"]]}

    with ScriptedServer(turn) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
