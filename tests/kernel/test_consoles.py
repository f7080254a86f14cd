"""Front ends that show no widgets (jupyter console, qtconsole) beside those that do: what each is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import WIDGET_MIME, Execution, Kernel, start

pytestmark = acts.OLDEST_AND_NEWEST

SLOW = "%tool bash sleep 0.6; echo $((40 + 2))x"
RECORD_WARNINGS = """
import logging
warnings_seen = []
class Recorder(logging.Handler):
    def emit(self, record):
        warnings_seen.append(record.getMessage())
logging.getLogger("Comm").addHandler(Recorder())
"""


class Console(Kernel):
    """Reads messages as qtconsole does: closes every comm that is opened, passes over what updates a display."""

    def _on_iopub(self, message: dict[str, Any]) -> None:
        super()._on_iopub(message)
        if message["msg_type"] == "comm_open":
            self.send("shell", "comm_close", {"comm_id": message["content"]["comm_id"], "data": {}})


@pytest.fixture(params=["own", "existing"])
def console(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> Iterator[Kernel]:
    """A console with the kernel it started (named by a process id, as by jupyter console), or with another's."""
    name = tmp_path / "kernel-4711.json" if request.param == "own" else None
    env = {variable: str(tmp_path / variable) for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR")}
    with start(version, cwd=tmp_path, env=env, connection_file=name) as kernel:
        client = Console(kernel.manager, kernel.client)
        acts.prepare(client)
        client.run(RECORD_WARNINGS)
        client.opens_widgets = request.param == "existing"  # type: ignore[attr-defined]
        yield client


def shown_text(cell: Execution) -> str:
    """What a console prints of a cell."""
    bundles = [content["data"].get("text/plain", "") for content in cell.contents("display_data", "execute_result")]
    return "\n".join([cell.stdout, *bundles])


def test_a_console_prints_the_result_once(console: Kernel) -> None:
    cell = console.run(SLOW)
    assert shown_text(cell).count("42x") == 1
    asking = console.submit("%tool read .env")
    console.answer("y")
    assert shown_text(console.finish(asking).check()).count("A=1") == 1
    opened = asking.contents("comm_open")
    assert bool(opened) == console.opens_widgets  # type: ignore[attr-defined]
    console.idle_for(0.5)  # the kernel reads that the comms were closed
    warnings = console.run("print(warnings_seen)").stdout
    assert not re.search("No such comm: ", warnings)


def test_a_page_that_has_reported_is_sent_the_result_once(version: str, tmp_path: Path) -> None:
    """Its requests name no cell, as those of other front ends than JupyterLab, Notebook and VS Code may not."""
    with start(version, cwd=tmp_path, env={"XDG_DATA_HOME": str(tmp_path / "data")}) as kernel:
        acts.prepare(kernel)
        kernel.run(RECORD_WARNINGS)
        cell = kernel.submit("%tool read .env")
        (part,) = acts.asking(kernel, cell=cell)
        comm_id = acts.see(kernel, part)
        acts.click(kernel, part, "once")
        kernel.finish(cell).check()
        assert "A=1" not in shown_text(cell)  # it takes the widget's place
        assert "A=1" in str(cell.contents("update_display_data"))
        slow = kernel.run(SLOW)
        assert "42x" not in shown_text(slow)
        assert any(WIDGET_MIME in content["data"] for content in slow.contents("display_data"))
        acts.send(kernel, comm_id, {"kind": "hello"}, "shell")  # late: the card has settled
        kernel.idle_for(0.3)
        assert kernel.run("print(warnings_seen)").stdout == "[]\n"
