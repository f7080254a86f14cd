"""The MCP server's process: what it reads and writes, and that nothing is left when it ends."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from pathlib import Path

import pytest

from ..support.mcp_process import Place, alive, answer, pid_in, send, shake_hands, wait_for


@pytest.fixture
def layout(tmp_path: Path) -> Place:
    return Place.make(tmp_path)


def test_rubbish_is_passed_over_and_the_end_of_input_ends_it(layout: Place) -> None:
    mark = layout.project / "pid"
    command = {"command": f"echo $$ > {mark}; sleep 300", "description": "sleep"}
    with layout.process("--allow", "*") as process:
        for rubbish in ("rubbish", "{", "[]", '{"jsonrpc": "2.0"}', "\u00e9\x00\ud7ff" * 1000, ""):
            send(process, rubbish)
        assert shake_hands(process)["result"]["serverInfo"]["name"] == "opencode-jupyter"
        send(process, "more rubbish")
        send(process, {"id": 2, "method": "tools/call", "params": {"name": "bash", "arguments": command}})
        send(process, {"id": 3, "method": "ping"})
        assert answer(process, 3)["result"] == {}
        pid = wait_for(lambda: pid_in(mark))
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(20) == 0
        wait_for(lambda: not alive(pid))
        assert [message["id"] for message in rest if "id" in message] in ([], [2])


def test_a_signal_ends_it_and_what_it_started(layout: Place) -> None:
    """Also when the command ignores signals, and the client writes and does not read."""
    mark = layout.project / "pid"
    command = {"command": f"trap '' TERM INT; echo $$ > {mark}; while :; do sleep 0.1; done", "description": "stay"}
    (layout.project / "big.txt").write_text("x" * 1000 + "\n")
    with layout.process("--allow", "*") as process:
        shake_hands(process)
        send(process, {"id": 2, "method": "tools/call", "params": {"name": "bash", "arguments": command}})
        pid = wait_for(lambda: pid_in(mark))
        call = {"name": "read", "arguments": {"filePath": "big.txt"}}

        def flood() -> None:  # more answers than a pipe holds
            with contextlib.suppress(OSError):
                for i in range(3, 400):
                    send(process, {"id": i, "method": "tools/call", "params": call})

        writer = threading.Thread(target=flood)
        writer.start()
        writer.join(2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        wait_for(lambda: not alive(pid))
        writer.join()


def test_a_client_that_is_gone(layout: Place) -> None:
    with layout.process() as process:
        shake_hands(process)
        assert process.stdout is not None
        process.stdout.close()
        send(process, {"id": 2, "method": "tools/list"})
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "config", "words"),
    [
        (("--agent", "nobody"), "{}", "no agent 'nobody'. The agents are build"),
        ((), "{ rubbish", "opencode.json"),
    ],
)
def test_what_keeps_it_from_starting(layout: Place, arguments: tuple[str, ...], config: str, words: str) -> None:
    (layout.project / "opencode.json").write_text(config)
    with layout.process(*arguments) as process:
        status = process.wait(60)  # though the client keeps standard input open
        assert process.stdout is not None and process.stderr is not None
        out, error = process.stdout.read(), process.stderr.read()
    assert (status, out) == (2, "") and words in error and "Traceback" not in error
