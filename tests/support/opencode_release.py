"""A real OpenCode release, in folders of its own and without the network.

Set ``OPENCODE_BIN`` to its program (``npm i opencode-ai@1.18.33`` puts one at ``node_modules/.bin/opencode``) and the
tests that ask a real release run too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BINARY = os.environ.get("OPENCODE_BIN", "")
_FOLDERS = {
    "HOME": "home",
    "XDG_DATA_HOME": "data",
    "XDG_CONFIG_HOME": "config",
    "XDG_CACHE_HOME": "cache",
    "XDG_STATE_HOME": "state",
}
_OFFLINE = (
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_SHARE",
)


class Release:
    """A release at work in one folder.

    Args:
        root: an empty folder for its project and its data.
        program: the release's program.
    """

    def __init__(self, root: Path, program: str = BINARY) -> None:
        self._program = program
        self.project = root / "project"
        self.project.mkdir(parents=True)
        ripgrep = Path(sys.executable).parent  # else it would be downloaded
        paths = {"PATH": f"{ripgrep}{os.pathsep}{os.environ['PATH']}", "PWD": str(self.project)}  # it believes PWD
        self._environment = {**os.environ, **dict.fromkeys(_OFFLINE, "1"), **paths}
        for name, folder in _FOLDERS.items():
            (root / folder).mkdir()
            self._environment[name] = str(root / folder)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command of it."""
        command = [self._program, *arguments]
        return subprocess.run(
            command,
            cwd=self.project,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def import_(self, file: Path) -> str:
        """Import a file.

        Returns:
            The session's id.

        Raises:
            AssertionError: the release would not take it.
        """
        done = self.run("import", str(file))
        assert "Imported session: " in done.stdout, done.stdout + done.stderr
        return done.stdout.partition("Imported session: ")[2].split()[0]

    def export(self, session: str) -> dict[str, Any]:
        """A session as the release exports it."""
        done = self.run("export", session)
        assert done.returncode == 0, done.stderr
        data: dict[str, Any] = json.loads(done.stdout)
        return data
