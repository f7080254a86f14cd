"""A plugin in a package that is built and installed as anybody would, in a Python of its own that calls its tool."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

CALLER = """
import sys
from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import HookRefusedError
from opencode_jupyter.sources.plugins import PluginTools

with Workspace(sys.argv[1], data_dir=sys.argv[2]) as ws:
    print(ws.call_sync("shout", {"text": "hi"}).output)
    try:
        ws.call_sync("list", {})
    except HookRefusedError as error:
        print(error)
    for row in ws.service(PluginTools).describe():
        print(row["plugin"], row["source"], row["state"], row["gives"], sep=" | ")
"""


def test_a_built_and_installed_package_brings_its_plugin(tmp_path: Path) -> None:
    source, site, project = tmp_path / "source", tmp_path / "site", tmp_path / "project"
    for folder in (source / "house_rules", project / ".git"):
        folder.mkdir(parents=True)
    (source / "pyproject.toml").write_text(
        textwrap.dedent(
            """
            [build-system]
            requires = ["hatchling"]
            build-backend = "hatchling.build"
            [project]
            name = "house-rules"
            version = "2.5"
            [project.entry-points."opencode_jupyter.plugins"]
            house = "house_rules:plugin"
            """
        )
    )
    (source / "house_rules" / "__init__.py").write_text(
        textwrap.dedent(
            """
            async def plugin(input):
                def shout(text: str) -> str:
                    return text.upper()
                def before(call, output):
                    if call["tool"] == "list":
                        raise PermissionError("look with your eyes")
                return {"tool": {"shout": shout}, "tool.execute.before": before}
            """
        )
    )
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=source, check=True, capture_output=True
    )
    (wheel,) = (source / "dist").glob("*.whl")
    uv = Path(sys.executable).with_name("uv")
    installer = [str(uv), "pip"] if uv.is_file() else [sys.executable, "-m", "pip"]
    subprocess.run([*installer, "install", "-q", "--no-deps", "--target", str(site), str(wheel)], check=True)
    env = {**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path / "home")}
    env.pop("XDG_CONFIG_HOME", None)
    command = [sys.executable, "-c", CALLER, str(project), str(tmp_path / "data")]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "HI",
        "Refused by the hook tool.execute.before of the plugin house: look with your eyes",
        "house | house-rules 2.5 (installed) | runs | tools shout; hooks tool.execute.before",
    ]
