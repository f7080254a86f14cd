"""Commands end with everything they started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest

from opencode_jupyter.tools.process import _supervisor
from opencode_jupyter.tools.process.child import Child, Exit, spawn
from opencode_jupyter.tools.process.environment import clean_environment

pytestmark = pytest.mark.anyio
linux = pytest.mark.skipif(sys.platform != "linux", reason="supervisors are Linux's; elsewhere process groups do this")


async def start(command: str, cwd: Path | str = "/", out: list[bytes] | None = None) -> Child:
    sink: list[bytes] = [] if out is None else out
    return spawn(["/bin/bash", "-c", command], cwd=str(cwd), env=dict(os.environ), on_output=sink.append)


async def run(command: str, cwd: Path | str = "/") -> tuple[Exit, str]:
    out: list[bytes] = []
    child = await start(command, cwd, out)
    try:
        return await child.wait(), b"".join(out).decode()
    finally:
        child.close()


def alive(marker: str) -> list[int]:
    """Processes whose command line contains `marker`."""
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker in line and state != "Z" and int(name) != os.getpid():
                pids.append(int(name))
    return pids


async def none_alive(marker: str, seconds: float = 1.0) -> bool:
    end = time.monotonic() + seconds
    while alive(marker):
        if time.monotonic() > end:
            return False
        await anyio.sleep(0.01)
    return True


async def test_exit_codes_and_signals() -> None:
    assert await run("echo hi; echo there >&2") == (Exit(0), "hi\nthere\n")
    assert (await run("exit 3"))[0] == Exit(3)
    assert (await run("kill -SEGV $$"))[0] == Exit(None, signal.SIGSEGV)


async def test_no_exit_of_many_short_commands_is_lost() -> None:
    """Some end before their supervisor has begun to watch them, and some are orphans it must not take for them."""
    async with asyncio.timeout(60):
        for code in range(150):
            exits = await asyncio.gather(*(run(f"true & (true &) ; exit {code % 100 + n}") for n in range(2)))
            assert [outcome.code for outcome, _ in exits] == [code % 100, code % 100 + 1]


async def test_stdin_is_closed_and_the_folder_is_right(tmp_path: Path) -> None:
    assert await run("cat; pwd", tmp_path) == (Exit(0), f"{tmp_path}\n")


async def test_what_can_not_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await run("true", tmp_path / "none")
    with pytest.raises(ValueError, match="NUL"):
        await run("a\0b")
    with pytest.raises(OSError, match="too long"):
        await run("#" + "x" * 200_000)
    with pytest.raises(FileNotFoundError):
        await spawn(["/nowhere/sh"], cwd="/", env={}, on_output=lambda data: None).wait()


async def test_signals_are_as_a_shell_expects_them() -> None:
    assert (await run("yes | head -1"))[1] == "y\n"  # SIGPIPE is not ignored
    masks = (await run("grep -E '^Sig(Blk|Ign)' /proc/self/status"))[1]
    of_the_c_library = 1 << 31 | 1 << 32  # signals 32 and 33, which no program can block or ignore by itself
    assert {int(line.split()[1], 16) & ~of_the_c_library for line in masks.splitlines()} == {0}
    descriptors = (await run("ls /proc/self/fd"))[1].split()
    assert descriptors == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


SHAPES = [
    "sleep {n}",
    "sleep {n} & wait",
    "(sleep {n}; true) | cat",
    "trap '' TERM; sleep {n}; sleep {n}",
    "setsid sleep {n} & sleep {n}",
    "(setsid sleep {n} & ) ; sleep {n}",
    "nohup setsid -f sleep {n}; sleep {n}",
    "env -i setsid bash -c 'trap \"\" TERM; (sleep {n} &) ; sleep {n}; true' & sleep {n}",
    "nohup sleep {n} > /dev/null 2>&1 & disown; trap '' TERM INT HUP; sleep {n}; sleep {n}",
    "(exec 0<&- 1>&- 2>&-; setsid bash -c 'trap \"\" TERM HUP; kill -STOP $$; sleep {n}; :' &) ; sleep {n}",
    "unshare -pf sleep {n} & sleep {n}",
    "setsid bash -c 'trap \"\" TERM; while :; do (exec -a kworker sleep {n} &); sleep 0.1; done' & sleep {n}",
    "kill -STOP $$; sleep {n}",
]


COMET = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    with open(sys.argv[1], "a") as file:
        file.write("x")
    if os.fork():
        os._exit(0)
    if len(sys.argv) > 2:
        os.setsid()
"""


@linux
@pytest.mark.parametrize("ending", ["stopped", "closed"])
@pytest.mark.parametrize("sessions", ["", " new"])
async def test_what_forks_faster_than_it_can_be_listed(ending: str, sessions: str, tmp_path: Path) -> None:
    (tmp_path / "comet.py").write_text(COMET)
    run_on = "; sleep 30.7" if ending == "stopped" else ""
    child = await start(f"{sys.executable} -S comet.py trail{sessions}{run_on}", tmp_path)
    trail = tmp_path / "trail"
    while not trail.exists() or trail.stat().st_size < 20:
        await anyio.sleep(0.01)
    if ending == "stopped":
        await child.stop()
    else:
        await child.wait()
    child.close()
    end = time.monotonic() + 1
    size = -1
    while size != trail.stat().st_size and time.monotonic() < end:
        size = trail.stat().st_size
        await anyio.sleep(0.1)
    assert size == trail.stat().st_size


@linux
@pytest.mark.parametrize("shape", SHAPES)
async def test_stopping_leaves_no_process(shape: str) -> None:
    marker = f"sleep {8000 + SHAPES.index(shape)}.{os.getpid()}"
    child = await start(shape.format(n=marker.split()[1]))
    if "STOP" not in shape:
        while not alive(marker):
            await anyio.sleep(0.01)
    await anyio.sleep(0.05)
    outcome = await child.stop()
    child.close()
    assert outcome.code is None
    assert await none_alive(marker, 0.3)


async def test_a_polite_command_may_clean_up(tmp_path: Path) -> None:
    child = await start("trap 'echo bye > said; exit 0' TERM; touch ready; while :; do sleep 0.01; done", tmp_path)
    while not (tmp_path / "ready").exists():
        await anyio.sleep(0.01)
    await child.stop()
    child.close()
    assert (tmp_path / "said").read_text() == "bye\n"


@linux
async def test_the_end_is_the_exit_not_the_end_of_the_pipe() -> None:
    with anyio.fail_after(20):
        outcome, text = await run("sleep 30.5 & echo x")
    assert text == "x\n"
    assert outcome.code == 0
    assert len(outcome.left) == 1
    assert await none_alive("sleep 30.5")  # closing the child ended it


@linux
async def test_what_is_left_runs_on_until_it_is_ended(tmp_path: Path) -> None:
    child = await start("(while :; do echo more; echo x >> grows; sleep 0.02; done) & echo started", tmp_path)
    await child.wait()
    handle = child.leave()
    child.close()
    await anyio.sleep(0.1)
    size = (tmp_path / "grows").stat().st_size
    await anyio.sleep(0.2)
    assert (tmp_path / "grows").stat().st_size > size  # its writes go nowhere, but do not fail
    handle.end()
    await asyncio.wait_for(asyncio.shield(handle.gone), 1)
    size = (tmp_path / "grows").stat().st_size
    await anyio.sleep(0.1)
    assert (tmp_path / "grows").stat().st_size == size
    handle.close()


@linux
async def test_a_command_that_kills_its_parent_hurts_nobody_else() -> None:
    outcome, _ = await run("(setsid sleep 31.5 &); kill -9 $PPID; sleep 31.5")
    assert outcome == Exit(None, signal.SIGKILL)
    assert await none_alive("sleep 31.5")
    assert (await run("echo still"))[1] == "still\n"


@linux
async def test_the_supervisor_program_is_started_again() -> None:
    from opencode_jupyter.tools.process._launcher import Program

    await run("true")
    assert Program.process is not None
    first = Program.process
    first.kill()
    first.wait()
    assert (await run("echo again"))[1] == "again\n"
    assert Program.process is not first


KERNEL = """
import asyncio, os, sys
from opencode_jupyter.tools.process.child import spawn

async def main():
    spawn(["/bin/bash", "-c", sys.argv[1]], cwd="/", env=dict(os.environ), on_output=lambda data: None)
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_outlives_the_kernel(number: signal.Signals) -> None:
    marker = f"sleep 90{number}.{os.getpid()}"
    command = f"setsid -f {marker}; ({marker} &); trap '' TERM HUP; {marker}; true"
    kernel = subprocess.Popen(
        [sys.executable, "-c", KERNEL, command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert kernel.stdout is not None
    assert kernel.stdout.readline() == b"ready\n"
    kernel.stdout.close()
    while len(alive(marker)) < 3:
        await anyio.sleep(0.01)
    kernel.send_signal(number)
    kernel.wait()
    assert await none_alive(marker, 2)
    assert await none_alive(f"_supervisor.py {kernel.pid} ", 5)  # the blank: not another whose number begins so


async def test_it_works_on_a_loop_in_another_thread() -> None:
    outputs: list[str] = []

    def work() -> None:
        outputs.append(asyncio.run(run("echo there"))[1])

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        await anyio.sleep(0.01)
    assert outputs == ["there\n"]


@linux
async def test_many_at_once() -> None:
    done = await asyncio.gather(*(run(f"echo {i}; sleep 0.1") for i in range(30)))
    assert [text for _, text in done] == [f"{i}\n" for i in range(30)]


async def test_process_groups_where_there_are_no_supervisors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert await run("echo hi; exit 4") == (Exit(4), "hi\n")
    child = await start("trap '' TERM; sleep 32.5; sleep 32.5")
    while not (pids := alive("sleep 32.5")):
        await anyio.sleep(0.01)
    assert Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
    outcome = await child.stop()
    child.close()
    assert outcome == Exit(None, signal.SIGKILL)
    assert await none_alive("sleep 32.5")


def test_the_environment_is_cleaned() -> None:
    environment = {
        "PATH": "/bin",
        "KEYBOARD": "de",
        "TOKENIZERS_PARALLELISM": "false",
        "SSH_AUTH_SOCK": "/run/agent",
        "DATABASE_URL": "s",
        "SENTRY_DSN": "s",
        "JWT": "s",
        "LC_ALL": "C.UTF-8",
        "VIRTUAL_ENV": "/venv",
        "CONDA_PREFIX": "/conda",
        "CONDA_TOKEN": "s",
        "https_proxy": "http://proxy",
        "SSL_CERT_FILE": "/certs",
        "OPENCODE_CONFIG": "/c",
        "OPENCODE_CONFIG_CONTENT": "s",
        "OPENCODE_SERVER_PASSWORD": "s",
        "OPENAI_API_KEY": "s",
        "GITHUB_TOKEN": "s",
        "MY_SECRET": "s",
        "DB_PASSWORD": "s",
        "AWS_SECRET_ACCESS_KEY": "s",
        "JPY_API_TOKEN": "s",
        "BASH_ENV": "/tmp/x",
        "FORCE_COLOR": "1",
        "PAGER": "less",
    }
    clean = clean_environment(environment, extra={"X": "1"})
    usual = {"PATH", "LC_ALL", "VIRTUAL_ENV", "CONDA_PREFIX", "https_proxy", "SSL_CERT_FILE", "OPENCODE_CONFIG"}
    assert set(clean) & set(environment) == {*usual, "PAGER"}
    assert (clean["PAGER"], clean["TERM"], clean["GIT_TERMINAL_PROMPT"], clean["X"]) == ("cat", "dumb", "0", "1")
    assert clean_environment(environment, keep=["GITHUB_*"])["GITHUB_TOKEN"] == "s"
    assert "MY_SECRET" in clean_environment(environment, keep=True)


@linux
def test_a_busy_machine_lets_no_process_go_without_its_kill() -> None:
    """However late the supervisor is woken, it leaves nothing that it has not killed."""
    code = """
import os, signal, subprocess, sys, time
from opencode_jupyter.tools.process import _supervisor
_supervisor.prctl(_supervisor.PR_SET_CHILD_SUBREAPER, 1)
child = subprocess.Popen(["bash", "-c", "trap '' TERM; echo; sleep 60; sleep 60"], stdout=subprocess.PIPE)
child.stdout.read(1)
sleep = time.sleep
time.sleep = lambda seconds: sleep(seconds + 1)
_supervisor.end_all()
sys.exit(not _supervisor.childless())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@linux
async def test_a_supervisor_that_is_late_ends_the_command_of_a_killed_kernel() -> None:
    """The kernel is killed when its command runs, but the supervisor has not been scheduled since it was told."""
    code = """
import asyncio, os, sys
from opencode_jupyter.tools.process.child import spawn

async def main():
    await start("true").wait()
    await asyncio.sleep(1)  # the next supervisor stands by
    print(flush=True)
    sys.stdin.readline()
    await start("sleep 77.3 & echo; wait").wait()

def start(command):
    return spawn(["/bin/bash", "-c", command], cwd="/", env=dict(os.environ), on_output=lambda _: print(flush=True))

asyncio.run(main())
"""
    kernel = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert kernel.stdin is not None and kernel.stdout is not None
    kernel.stdout.readline()
    program, supervisor = _supervisor.descendants(kernel.pid)[:2]  # parents come first
    try:
        os.kill(supervisor, signal.SIGSTOP)
        kernel.stdin.write(b"\n")
        kernel.stdin.flush()
        assert kernel.stdout.readline()
        kernel.kill()
        kernel.communicate()
        with anyio.fail_after(5):
            while program in alive("_supervisor.py"):
                await anyio.sleep(0.01)
    finally:
        kernel.kill()
        os.kill(supervisor, signal.SIGCONT)
    assert await none_alive("sleep 77.3", 5)
