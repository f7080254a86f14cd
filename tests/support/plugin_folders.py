"""A home, a project and a folder of installed packages for tests of plugins; packages lie there as pip leaves them."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.sources.plugins import PluginTools


class PluginFolders:
    """Where plugins may come from.

    Attributes:
        home: the user's home; its ``.config/opencode`` is the global config folder.
        project: a folder under version control.
        site: a folder on ``sys.path``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.project, self.site = root / "home", root / "project", root / "lib" / "site-packages"
        for folder in (self.home, self.project / ".git", self.site):
            folder.mkdir(parents=True)

    @property
    def own(self) -> Path:
        """The user's config folder."""
        return self.home / ".config" / "opencode"

    def write(self, path: Path, content: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content) if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def mine(self, name: str, code: str) -> Path:
        """A plugin file of the user."""
        return self.write(self.own / "plugin" / f"{name}.py", code)

    def local(self, name: str, code: str) -> Path:
        """A plugin file of the project."""
        return self.write(self.project / ".opencode" / "plugin" / f"{name}.py", code)

    def config(self, **data: Any) -> Path:
        """The project's config file."""
        return self.write(self.project / "opencode.json", data)

    def package(self, name: str, code: str, entries: dict[str, str], version: str = "1.0") -> Path:
        """Install a package of one module, with entry points."""
        module = name.replace("-", "_")
        info = self.site / f"{module}-{version}.dist-info"
        self.write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
        self.write(info / "entry_points.txt", f"[opencode_jupyter.plugins]\n{lines}")
        self.write(info / "INSTALLER", "pip\n")
        return self.write(self.site / f"{module}.py", code)

    def open(self, **options: Any) -> Workspace:
        """A workspace of the project."""
        return Workspace(self.project, data_dir=self.root / "data", **options)


def recording_code(path: Path) -> str:
    """Code of a function that adds what it is given to a file, one JSON text a line."""
    return f"""
import json
def recording_code(*given):
    with open({str(path)!r}, "a") as f:
        print(json.dumps(given, default=str), file=f)
"""


def recorded(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def plugins_of(ws: Workspace) -> PluginTools:
    return ws.service(PluginTools)


def states(ws: Workspace) -> dict[str, str]:
    """The state of each plugin, by name."""
    return {row["plugin"]: row["state"] for row in plugins_of(ws).describe()}


def running(ws: Workspace) -> list[str]:
    """The plugins that run, in order."""
    return [row["plugin"] for row in plugins_of(ws).describe() if row["state"] == "runs"]


@pytest.fixture
def plugin_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginFolders]:
    made = PluginFolders(tmp_path.resolve())
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("OPENCODE_TEST_MANAGED_CONFIG_DIR", str(made.root / "managed"))
    for name in ("OPENCODE_TEST_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENCODE_CONFIG_CONTENT", "OPENCODE_DISABLE_DEFAULT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path, str(made.site)])
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(made.root)):
            del sys.modules[name]
