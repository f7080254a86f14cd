"""Tries an installed wheel: a kernel of its environment loads the extension and uses it.

``python -I try_wheel.py VERSION``, from a folder outside the checkout.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from jupyter_client.manager import start_new_kernel

import opencode_jupyter

CELLS = {
    "%load_ext opencode_jupyter": "",
    '%tool write note.md content="teh draft"': "note.md",
    '%tool edit note.md oldString="teh" newString="the"': "note.md",
    "r = %tool read note.md\nprint(r.output)": "the draft",
    'hits = %tool grep "draft"\nprint(len(hits.df))': "1",
    '%tool glob "*.md"': "note.md",
    "%tool bash echo $((6 * 7))": "42",
    "%%tool python\nsum(range(4))": "6",
    'import opencode_jupyter\nopencode_jupyter.demo("penguins")': "penguins.csv",
    "%%tool write hello.yaml\nturns:\n  - good morning": "hello.yaml",
    "%%agent -m scripted:hello.yaml\nHello": "good morning",
    "%tools doctor": "",
}
"""Cells, and what their output contains."""


def main(version: str) -> None:
    """Run the cells.

    Raises:
        SystemExit: another version is installed, a cell fails, or an output lacks what it should contain.
    """
    if opencode_jupyter.__version__ != version:
        sys.exit(f"version {opencode_jupyter.__version__} is installed instead of {version}")
    with tempfile.TemporaryDirectory() as folder:
        manager, client = start_new_kernel(cwd=folder, startup_timeout=120)
        try:
            for code, expected in CELLS.items():
                _run(client, code, expected)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def _run(client: Any, code: str, expected: str) -> None:
    output: list[str] = []

    def collect(message: dict[str, Any]) -> None:
        output.append(str(message["content"]))

    reply = client.execute_interactive(code, output_hook=collect, timeout=120)
    if reply["content"]["status"] != "ok" or expected not in "\n".join(output):
        sys.exit(f"{code}\n{reply['content']}\n{output}")


if __name__ == "__main__":
    main(sys.argv[1])
