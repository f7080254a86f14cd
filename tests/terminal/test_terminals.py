"""People at terminals: plain ipython, jupyter console, and ipython with nobody at the keyboard."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.kernel import acts
from tests.support.kernels import CHECKOUT

START = 60
"""Seconds that a program may take to start here."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Folders of its own; a file whose reading asks in the working folder."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".env").write_text("A=1\n")
    return {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "TERM": "dumb",
        "NO_COLOR": "1",
    }


@contextmanager
def terminal(arguments: list[str], environment: dict[str, str], folder: Path) -> Iterator[pexpect.spawn]:
    """A program in a pseudo-terminal, at its first prompt."""
    child = pexpect.spawn(
        sys.executable, arguments, env=environment, cwd=str(folder), encoding="utf-8", timeout=20, echo=False
    )
    try:
        child.expect(r"In \[1\]: ", timeout=START)
        child.sendline("%load_ext opencode_jupyter")
        child.expect(r"In \[2\]: ", timeout=START)
        yield child
    finally:
        child.close(force=True)


PROGRAMS = {
    "ipython": ["-m", "IPython", "--simple-prompt", "--colors=NoColor", "--no-confirm-exit"],
    "console": ["-m", "jupyter_console", "--simple-prompt", "--ZMQTerminalInteractiveShell.kernel_timeout=60"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_prompt(program: str, environment: dict[str, str], tmp_path: Path) -> None:
    with terminal(PROGRAMS[program], environment, tmp_path / "work") as child:
        child.sendline("r = %tool read .env")
        child.expect(r"Read this file\? [^\n]*\.env")
        child.expect(r"\[1\] once \[2\] for this session .* \[n\] deny \[n REASON: deny with a reason\] > ")
        child.sendline("use the sample")
        child.expect("'use the sample' is not an answer. Type one of those in brackets.")
        child.expect("reason] > ")
        child.sendline("1")
        child.expect(r"In \[3\]: ")
        child.sendline("print('count', r.output.count('A=1'))")
        child.expect("count 1")
        child.expect(r"In \[4\]: ")
        child.sendline("%tool read .env")
        child.expect("reason] > ")
        child.sendline("n use the sample")
        child.expect("PermissionCorrectedError: .*use the sample")
        child.expect(r"In \[5\]: ")
        child.sendline("def f(): return get_ipython().run_line_magic('tool', 'read .env').output.count('A=1')\n")
        child.expect(r"In \[6\]: ")
        child.sendline("print('inner', f())")
        child.expect("reason] > ")
        child.sendline("2")
        child.expect("inner 1")
        child.expect(r"In \[7\]: ")
        child.sendline("print('inner', f() + 1)")
        child.expect("inner 2")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_result_of_a_slow_call_is_shown(program: str, environment: dict[str, str], tmp_path: Path) -> None:
    """A front end without widgets passes over what replaces a display."""
    with terminal(PROGRAMS[program], environment, tmp_path / "work") as child:
        child.logfile_read = log = io.StringIO()
        child.sendline("%tool bash sleep 0.6; echo $((40 + 2))x")
        child.expect(r"completed(, [0-9.]+ s)?\)\r?\n42x")
        child.expect(r"In \[3\]: ")
        child.sendline("%tool read .env")
        child.expect("reason] > ")
        child.sendline("1")
        child.expect("A=1")
        child.expect(r"In \[4\]: ")
        child.sendline("_.title")
        child.expect(r"Out\[4\]: '\.env'")  # the value is kept, though there is no Out[3]
        child.expect(r"In \[5\]: ")
        child.sendline("r = await get_ipython().run_line_magic('tool', 'read .env')")
        child.expect("reason] > ")
        child.sendline("1")
        child.expect(r"In \[6\]: ")
        child.sendline("await get_ipython().run_line_magic('tool', 'bash echo by await')")
        child.expect(r"\r?\nby await")
        child.expect(r"In \[7\]: ")
        shown = log.getvalue()
        assert "No such comm" not in shown
        assert re.findall(r"Out\[\d+\]", shown) == ["Out[4]"]
        assert shown.count("42x") == 1


def test_interrupt_at_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    with terminal(PROGRAMS["ipython"], environment, tmp_path / "work") as child:
        child.sendline("%tool bash sleep 900001")
        acts.wait_processes("sleep\x00900001", True, 20)
        time.sleep(0.3)
        start = time.monotonic()
        child.sendintr()
        child.expect("KeyboardInterrupt")
        child.expect(r"In \[3\]: ")
        took = time.monotonic() - start
        print(f"MEASURED terminal interrupt {took:.3f}")
        assert took < 20
        acts.wait_processes("sleep\x00900001", False, 5)
        child.sendline("%tool read .env")
        child.expect("reason] > ")
        time.sleep(0.3)  # readline misses an interrupt in the moment between its prompt and its reading
        child.sendintr()
        child.expect("KeyboardInterrupt")
        child.expect(r"In \[4\]: ")
        child.sendline("r = %tool bash echo still here")
        child.expect(r"In \[5\]: ")
        child.sendline("print('output:', r.output)")
        child.expect("output: still here")


def test_no_process_outlives_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    with terminal(PROGRAMS["ipython"], environment, tmp_path / "work") as child:
        child.sendline("h = %tool --bg bash sleep 900002")
        acts.wait_processes("sleep\x00900002", True, 20)
        child.expect(r"In \[3\]: ")
        child.sendline("exit")
        child.expect(pexpect.EOF)
    acts.wait_processes("sleep\x00900002", False, 4)


def test_nobody_at_the_keyboard(environment: dict[str, str], tmp_path: Path) -> None:
    code = "%load_ext opencode_jupyter\n%tool read .env\n"
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", code]
    options = {"cwd": tmp_path / "work", "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(command, env=environment, timeout=START, check=False, **options)
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert "PermissionRejectedError: read needs approval for" in said
    assert "%permissions allow read" in said
    assert done.returncode != 0
    allowed = {**environment, "OPENCODE_JUPYTER_ON_ASK": "allow"}
    done = subprocess.run(command, env=allowed, timeout=START, check=False, **options)
    assert "A=1" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_questions(program: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Numbered options, several, own words; an empty line dismisses, and so does Ctrl-C at ipython's own prompt."""
    with terminal(PROGRAMS[program], environment, tmp_path / "work") as child:
        setup = (
            "q = {'questions': [{'question': 'Which?', 'header': 'DB', 'multiple': True, 'options': "
            "[{'label': 'Lite', 'description': 'a file'}, {'label': 'Post', 'description': ''}]}]}"
        )
        child.sendline(setup)
        child.expect(r"In \[3\]: ")
        for prompt, typed, said in ((3, "1,2", r"\['Lite', 'Post'\]"), (5, "duck it", r"\['duck it'\]")):
            child.sendline("r = %tool question --from q")
            child.expect(r"DB: Which\?\r?\n  \[1\] Lite: a file\r?\n  \[2\] Post\r?\n")
            child.expect(r"empty: dismiss\) > ")
            child.sendline(typed)
            child.expect(rf"In \[{prompt + 1}\]: ")
            child.sendline("print('said', r.metadata['answers'][0])")
            child.expect("said " + said)
            child.expect(rf"In \[{prompt + 2}\]: ")
        child.sendline("r = %tool question --from q")
        child.expect(r"empty: dismiss\) > ")
        child.sendline("")
        child.expect("QuestionRejectedError: You dismissed this question")
        child.expect(r"In \[8\]: ")
        if program == "ipython":
            child.sendline("r = %tool question --from q")
            child.expect(r"empty: dismiss\) > ")
            time.sleep(0.3)  # readline misses an interrupt in the moment between its prompt and its reading
            child.sendintr()
            child.expect("QuestionRejectedError: You dismissed this question")
            child.expect(r"In \[9\]: ")
        child.sendline("6 * 7")
        child.expect("42")
