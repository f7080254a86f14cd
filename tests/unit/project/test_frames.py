"""What a tool's own error shows in a cell: the cell, the tool, and what it was raised from."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shells import Shell, shell

TOOLS = """
from opencode_jupyter import tool
import json

@tool
def chained():
    try:
        json.loads("{")
    except ValueError as e:
        raise LookupError("no such thing") from e

@tool
async def raises():
    return 1 / 0

@tool
def endless():
    def inner(n):
        return inner(n + 1)
    return inner(0)

class Broken(Exception):
    def __str__(self):
        raise TypeError("nothing to say")

@tool
def broken():
    raise Broken
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Shell]:
    with shell(tmp_path) as instance:
        instance.run(TOOLS)
        yield instance


def functions(error: BaseException) -> list[str]:
    """The functions of its traceback from the call's own frame on."""
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return names[names.index("run_sync") + 1 :]


def test_only_the_tool_is_shown_and_the_cause_stays(running: Shell) -> None:
    with pytest.raises(LookupError) as raised:
        running.run("%tool chained")
    assert functions(raised.value) == ["chained"]
    assert isinstance(raised.value.__cause__, ValueError)
    assert [f.name for f in traceback.extract_tb(raised.value.__cause__.__traceback__)][:2] == ["chained", "loads"]
    with pytest.raises(ZeroDivisionError) as divided:
        running.run("%tool raises")
    assert functions(divided.value) == ["raises"]


def test_the_middle_of_an_endless_recursion_is_left_out(running: Shell) -> None:
    with pytest.raises(RecursionError) as raised:
        running.run("%tool endless")
    assert functions(raised.value) == ["endless", *["inner"] * 39]
    assert "frames in the middle of its traceback omitted" in raised.value.__notes__[0]


def test_an_error_that_can_not_be_read_still_ends_the_call(running: Shell) -> None:
    running.run("try:\n    %tool broken\nexcept Broken:\n    print('caught')")
    assert running.printed == "caught\n"
    assert "Broken: (its message can't be had: TypeError)" in running.shown[-1]["text/plain"]


def test_the_notes_of_an_error_stand_on_its_card(running: Shell) -> None:
    with pytest.raises(Exception, match=r"^NotFound: FileSystem.access \(/no/such\)\nThis folder does not exist"):
        running.run('%tool bash {"command": "ls", "workdir": "/no/such"}')
    assert "This folder does not exist. Pass an" in running.shown[-1]["text/plain"]
