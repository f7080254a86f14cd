"""A plain IPython shell with the extension loaded, in a folder of its own."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from opencode_jupyter.jupyter.notebook import Notebook, current


class Shell:
    """Runs cells in it and keeps what they showed."""

    def __init__(self, ip: Any) -> None:
        self.ip = ip
        self.shown: list[dict[str, Any]] = []
        self.printed = ""

    @property
    def notebook(self) -> Notebook:
        workspace = current(self.ip)
        assert workspace is not None
        return workspace

    def run(self, cell: str) -> Any:
        """The value of a cell; its exception is raised."""
        with capture_output() as captured:
            outcome = self.ip.run_cell(cell, store_history=True)
        self.shown = [output.data for output in captured.outputs]
        self.printed = captured.stdout
        outcome.raise_error()
        return outcome.result

    def __getitem__(self, name: str) -> Any:
        return self.ip.user_ns[name]

    def complete(self, text: str) -> list[str]:
        """What the completer offers at the end of `text`: each as the line would read then (its last line)."""
        with provisionalcompleter():
            completions = list(self.ip.Completer.completions(text, len(text)))
        return [(text[: c.start] + c.text).rpartition("\n")[2] for c in completions]


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    """A shell whose current folder is ``work`` in `folder`; the extension's data goes beside it."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(work)
    for name in ("DATA_HOME", "CONFIG_HOME"):
        os.environ[f"XDG_{name}"] = str(folder / name.lower())
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    ip = InteractiveShell.instance(config=config)
    try:
        ip.run_line_magic("load_ext", "opencode_jupyter")
        made = Shell(ip)
        yield made
        notebook = current(ip)
        ip.run_line_magic("unload_ext", "opencode_jupyter")
        if notebook is not None:
            notebook.close()
    finally:
        atexit.unregister(ip.atexit_operations)
        ip.atexit_operations()
        InteractiveShell.clear_instance()
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
