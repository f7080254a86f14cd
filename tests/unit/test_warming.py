"""What the first ``%%agent`` needs is loaded in the background where a model is configured, and not elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, time
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "opencode_jupyter")
assert not [name for name in sys.modules if name.startswith("opencode_jupyter.agent")], "load_ext itself stays quick"
from opencode_jupyter.jupyter.loaded import loaded

loaded(shell)._timer.join()
print("httpx2" in sys.modules, "opencode_jupyter.agent.loop" in sys.modules)
shell.run_line_magic("unload_ext", "opencode_jupyter")
"""


@pytest.mark.parametrize(("config", "said"), [({"model": "ollama/x"}, "True True"), ({}, "False False")])
def test_the_model_loop_is_loaded_where_a_model_is_named(tmp_path: Path, config: dict[str, str], said: str) -> None:
    (tmp_path / "opencode.json").write_text(json.dumps(config))
    folders = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR")}
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, **folders, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == said.split(), done.stdout + done.stderr
