"""A project with config files, and what is loaded there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.config import Config, load_config


class ConfigLayout:
    """A home, and a project with a folder in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree, self.here = root / "home", root / "project", root / "project" / "a" / "b"
        for folder in (self.home, self.here):
            folder.mkdir(parents=True)
        self.env: dict[str, str] = {"OPENCODE_TEST_MANAGED_CONFIG_DIR": str(root / "managed")}

    def write(self, path: Path, content: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def load(self, **more: Any) -> Config:
        return load_config(self.here, self.tree, home=self.home, env=self.env, **more)


@pytest.fixture
def layout(tmp_path: Path) -> ConfigLayout:
    return ConfigLayout(tmp_path.resolve())
