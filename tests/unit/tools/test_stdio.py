"""Programs that are talked to over stdin and stdout: all bytes both ways, no wait without end, nothing left."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from opencode_jupyter.tools.process import stdio
from opencode_jupyter.tools.process.stdio import Stdio, start_stdio

pytestmark = pytest.mark.anyio


class Heard:
    """What a program said, and whether it has ended."""

    def __init__(self, program: Stdio) -> None:
        self.data = bytearray()
        self.ends = 0
        program.listen(self.data.extend, self._end)

    def _end(self) -> None:
        self.ends += 1


async def start(command: str) -> tuple[Stdio, Heard]:
    program = await start_stdio(["/bin/sh", "-c", command], cwd="/", env=dict(os.environ))
    return program, Heard(program)


async def until(true: Callable[[], bool], seconds: float = 5) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not come about"
        await anyio.sleep(0.005)


@pytest.fixture(params=["supervised", "group"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of starting: behind a supervisor, and in a process group."""
    if request.param == "group":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    return request.param


async def test_both_directions_and_stderr_apart(way: str) -> None:
    program, heard = await start("echo trouble >&2; exec cat")
    data = os.urandom(3_000_000)
    program.write(data[:10])
    program.write(data[10:])
    await until(lambda: bytes(heard.data) == data)
    await until(lambda: program.errors == "trouble")
    program.close_stdin()  # cat ends at the end of its input
    await until(lambda: heard.ends == 1)
    assert (await program.wait()).code == 0
    with pytest.raises(BrokenPipeError):
        program.write(b"more")
    program.close()
    assert heard.ends == 1


async def test_its_stdin_is_not_ours(way: str) -> None:
    program, heard = await start(f"exec {sys.executable} -S -c \"import os; print(len(os.listdir('/proc/self/fd')))\"")
    await until(lambda: heard.ends == 1)
    assert int(heard.data) <= 4  # stdin, stdout, stderr, and the folder that is listed
    program.close()


async def test_a_program_that_does_not_read_blocks_nobody(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "UNREAD", 1 << 20)
    program, _ = await start("exec sleep 60")
    program.write(b"x" * (2 << 20))
    with pytest.raises(BufferError, match="does not read"):
        program.write(b"x")
    await program.stop()


async def test_stop_ends_what_it_started_too(tmp_path: Path) -> None:
    program, heard = await start(
        f"setsid sh -c 'echo $$ > {tmp_path}/pid; sleep 60' & trap '' TERM; echo up; wait; sleep 60"
    )
    await until(lambda: (tmp_path / "pid").exists() and b"up" in heard.data)
    await program.stop()
    assert heard.ends == 1
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists(), 1)


async def test_the_end_is_its_exit_not_that_of_a_pipe_held_open_by_a_child(way: str) -> None:
    program, heard = await start("echo said; sleep 60 & kill -9 $$")
    await until(lambda: heard.ends == 1)
    assert heard.data == b"said\n"
    assert (await program.wait()).signal == 9
    await program.stop()


async def test_what_cannot_be_started(way: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        await start_stdio(["/no/such/program"], cwd="/", env={})
    with pytest.raises(OSError, match=r"."):
        await start_stdio(["/bin/sh"], cwd="/no/such/folder", env={})
    with pytest.raises(ValueError, match="NUL"):
        await start_stdio(["/bin/sh", "a\0b"], cwd="/", env={})
    await asyncio.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # the launcher's own socket may be new
