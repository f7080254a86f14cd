"""A file of the notebook's folder does not stand in for a module that a library imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NAMES = "tarfile zipfile lzma bz2 gzip tree_sitter tree_sitter_bash anyio json5 nbformat".split()
FILES = f"""
from pathlib import Path
for name in {NAMES}:
    Path(name + ".py").write_text("open('ran', 'a').write(__name__)")
"""
SCRIPT = f"""
import asyncio, sys
{FILES}
from opencode_jupyter import Workspace

async def main():
    async with Workspace(".", {{"permission": "allow"}}, sys.argv[1]) as ws:
        await ws.call("bash", {{"command": "tar tf x.tar; unzip x.tar", "description": "d"}})

asyncio.run(main())
import json5
print(Path("ran").read_text())
"""
KERNEL = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
{FILES}
shell.run_line_magic("load_ext", "opencode_jupyter")
shell.run_cell('%tool bash "tar tf x.tar; unzip x.tar"')
shell.run_line_magic("unload_ext", "opencode_jupyter")
shell.run_cell("import json5")
print(Path("ran").read_text())
"""


@pytest.mark.parametrize("code", [SCRIPT, KERNEL])
def test_only_the_users_code_imports_files_of_the_folder(tmp_path: Path, code: str) -> None:
    (tmp_path / "start.py").write_text(code)
    (tmp_path / "x.tar").write_text("no archive")
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "start.py", str(tmp_path / "data")]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == "json5"
