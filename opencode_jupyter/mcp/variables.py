"""Variables in the files of Claude and VS Code: ``${NAME}``, ``${NAME:-other}``, ``${env:NAME}``, ``${userHome}``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_VARIABLE = re.compile(r"\$\{([A-Za-z_][\w:./]*?)(?::-([^}]*))?\}")


class UnsetVariableError(ValueError):
    """A variable has no value here."""


def substitute(value: Any, folder: Path, home: Path, env: Mapping[str, str] | None = None) -> Any:
    """A JSON value with the variables in its texts replaced.

    Args:
        value: any JSON.
        folder: what ``${workspaceFolder}`` stands for.
        home: what ``${userHome}`` stands for.
        env: environment variables; the process's own if left out.

    Raises:
        UnsetVariableError: a variable is not set and has no other value.
    """
    variables = os.environ if env is None else env
    own = {
        "workspaceFolder": str(folder),
        "workspaceFolderBasename": folder.name,
        "userHome": str(home),
        "pathSeparator": os.sep,
        "/": os.sep,
    }

    def one(found: re.Match[str]) -> str:
        name, other = found[1], found[2]
        if name in own:
            return own[name]
        if name.startswith("input:"):
            raise UnsetVariableError(
                f"it requests an input ({found[0]}), which only VS Code supports; "
                "write ${env:NAME} there and set that variable"
            )
        name = name.removeprefix("env:")
        if name in variables and (variables[name] or other is None):
            return variables[name]
        if other is not None:
            return other
        raise UnsetVariableError(f"the environment variable {name} is not set; set it before the kernel starts")

    def walk(node: Any) -> Any:
        if isinstance(node, str):
            return _VARIABLE.sub(one, node)
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, dict):
            return {key: walk(item) for key, item in node.items()}
        return node

    return walk(value)
