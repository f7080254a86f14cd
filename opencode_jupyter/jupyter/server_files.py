"""The path of a file of the kernel's machine on its Jupyter server, and the address that serves it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote


def files_url(path: str) -> str | None:
    """The address of `path` on the Jupyter server that started this kernel, from the host's root (``/files/...``).

    None where no server is known, or it would refuse.
    """
    served = _served_location(path)
    return None if served is None else f"{served[0].rstrip('/')}/files/{quote(served[1])}"


def served_path(request: dict[str, Any]) -> dict[str, Any]:
    """Where the server has the file at ``path``, for a page that wants to open it.

    Returns:
        ``path``: from the folder that the server shows; None if it does not show it. Nothing where `path` is relative,
        so that only the page can tell what it counts from.
    """
    path = request.get("path")
    if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
        return {}
    served = _served_location(path)
    return {"path": None if served is None else served[1]}


def _served_location(path: str) -> tuple[str, str] | None:
    """The server's base address, and `path` from the folder that it shows.

    None where no server is known, or it would refuse: the file is outside that folder, or hidden (a folder or name
    with a dot at its start, which servers hand out only when told to). jupyter_client gives a kernel its server's
    process in ``JPY_PARENT_PID``; the server writes what it serves to ``jpserver-<pid>.json`` in Jupyter's runtime
    folder.
    """
    server = os.environ.get("JPY_PARENT_PID", "")
    if not server.isdigit():
        return None
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        server_info = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{server}.json").read_text(encoding="utf-8"))
        root, base = server_info["root_dir"], server_info.get("base_url") or "/"
        relative = Path(os.path.realpath(path)).relative_to(os.path.realpath(root))
    except (ImportError, OSError, ValueError, KeyError, TypeError):
        return None
    if any(name.startswith(".") for name in relative.parts):
        return None
    return base, relative.as_posix()
