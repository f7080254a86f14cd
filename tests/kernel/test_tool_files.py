"""Tools that stand in files, in a notebook: a project's file is asked for on a card, the user's own is not."""

from __future__ import annotations

from pathlib import Path

from tests.kernel import acts
from tests.support import kernels
from tests.support.kernels import Kernel

TOOL = "def weather(city: str) -> str:\n    'Says the weather.'\n    return f'{city} sunny'\n"
AWAITED = "r = %tool weather Bonn\nprint(r.output)"
BLOCKED = "def f():\n    r = %tool weather Bonn\n    return r\nprint(f().output)"


def answered(kernel: Kernel, code: str, reply: str) -> tuple[kernels.Execution, str]:
    """Run a cell that asks for trust, and answer; the cell, and the code that the card showed."""
    cell = kernel.submit(code)
    (part,) = acts.asking(kernel, cell=cell)
    assert part["tool"] == "trust"
    acts.see(kernel, part)
    acts.click(kernel, part, reply)
    kernel.finish(cell)
    return cell, part["ui"]["ask"]["command"]


def test_a_projects_file_is_asked_for_and_ones_own_is_not(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(acts.LOAD)
    file = tmp_path / "work" / ".opencode" / "tool" / "weather.py"
    file.parent.mkdir(parents=True)
    file.write_text(TOOL)
    cell, shown = answered(kernel, AWAITED, "reject")
    assert cell.error
    assert shown.endswith(TOOL)
    cell, _ = answered(kernel, BLOCKED, "once")
    assert cell.check().stdout.strip() == "Bonn sunny"
    for code in (AWAITED, BLOCKED):
        assert kernel.run(code).check().stdout.strip() == "Bonn sunny"
    file.write_text(TOOL.replace("sunny", "rain"))
    cell, shown = answered(kernel, AWAITED, "once")
    assert "rain" in shown
    assert cell.check().stdout.strip() == "Bonn rain"

    own = tmp_path / "config" / "opencode" / "tools" / "mine.py"
    own.parent.mkdir(parents=True)
    own.write_text("print('loud')\n" + TOOL.replace("weather", "mine"))
    cell = kernel.run("%tool mine Bonn")
    assert "sunny" in str(cell.check().messages)
    assert cell.stdout == "loud\n"  # what a file prints while it loads is the person's to see


def test_an_endless_file_can_be_interrupted(kernel: Kernel, tmp_path: Path) -> None:
    kernel.run(acts.LOAD)
    own = tmp_path / "config" / "opencode" / "tool" / "endless.py"
    own.parent.mkdir(parents=True)
    own.write_text("while True:\n    pass\n" + TOOL)
    cell = kernel.submit("%tool endless_weather Bonn")
    kernel.idle_for(1.0)
    assert not cell.done
    kernel.interrupt()
    kernel.finish(cell, 5)
    assert "KeyboardInterrupt" in str(cell.error)
    own.write_text(TOOL)
    assert "sunny" in kernel.run("r = %tool endless_weather Bonn\nprint(r.output)").check().stdout
