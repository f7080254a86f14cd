"""%%agent at terminals: the words as they come, an ask by prompt, Ctrl-C, and the session that goes on."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest

from tests.support.model_servers.openai import ScriptedServer
from tests.terminal.test_terminals import PROGRAMS, environment, terminal

__all__ = ["environment"]  # a fixture

TURNS = (
    {"text": "I want to read it.", "calls": [["read", {"filePath": ".env"}]]},
    {"text": "It says **A=1**."},
    {"text": "counting " * 50, "delay": 0.05, "hold": 20},
    {"text": "Here again."},
    {"text": "And again."},
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_agent(program: str, environment: dict[str, str], tmp_path: Path) -> None:
    with ScriptedServer(TURNS, side={"text": "A title"}) as server:
        entry = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": server.url, "apiKey": "k"},
            "models": {"m": {}},
        }
        (tmp_path / "work" / "opencode.json").write_text(json.dumps({"model": "loop/m", "provider": {"loop": entry}}))
        with terminal(PROGRAMS[program], environment, tmp_path / "work") as child:
            child.logfile_read = log = io.StringIO()
            ask = "get_ipython().run_cell_magic('agent', '-o r', {!r}); print('over', len(r.text))"
            child.sendline(ask.format("Read it."))
            if program == "ipython":
                child.expect(r"I want to read it.\r?\n")  # the request begins a line
            child.expect(r"Read this file\? [^\n]*\.env")
            child.expect("reason] > ")
            child.sendline("1")
            if program == "ipython":
                child.expect(r"✓ read [^\n]*\.env")
            child.expect(r"It says \*\*A=1\*\*\.")  # where the text is not printed as it comes, at the end
            child.expect("over 1[0-9]")
            child.expect(r"In \[3\]: ")
            child.sendline(ask.format("Count."))
            if program == "ipython":
                child.expect("counting counting")
            deadline = time.monotonic() + 20
            while len(server.requests) < 3 or not server.requests[2].began.is_set():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            child.sendintr()
            child.expect("KeyboardInterrupt" if program == "ipython" else "Interrupted by you")
            child.expect(r"In \[4\]: ")
            child.sendline(ask.format("And now?"))
            child.expect("over 11")
            child.expect(r"In \[5\]: ")
            awaited = "a = await get_ipython().run_cell_magic('agent', '', 'Once more?'); print('awaited', a.text)"
            child.sendline(awaited)
            child.expect("awaited And again.")
            child.expect(r"In \[6\]: ")
            assert "No such comm" not in log.getvalue()
            assert server.requests[2].gone.wait(5), "the connection was left open"
