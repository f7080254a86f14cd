"""Loopback servers that speak model providers' wire formats from a script of turns.

    with openai.ScriptedServer([{"text": "Hi", "calls": [["read", {"filePath": "a"}]]}, {"text": "Done"}]) as server:
        ...  # base URL: server.url; what came in: server.requests

Modules: `openai` (chat completions), `anthropic` (messages), `google` (generateContent); `script` says what a turn may
hold, faults included. ``python -m tests.support.model_servers.openai script.json`` serves a script from a process of
its own and prints the base URL.
"""
