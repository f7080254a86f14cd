"""The address under which a Jupyter server hands out a file, where it does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote


def files_url(path: str) -> str | None:
    """The address of `path` on the Jupyter server that started this kernel, from the host's root (``/files/...``).

    None where no server is known, or it would refuse: the file is outside the folder that it serves, or hidden (a
    folder or name with a dot at its start, which servers hand out only when told to). jupyter_client gives a kernel
    its server's process in ``JPY_PARENT_PID``; the server writes what it serves to ``jpserver-<pid>.json`` in
    Jupyter's runtime folder.
    """
    server = os.environ.get("JPY_PARENT_PID", "")
    if not server.isdigit():
        return None
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        told = json.loads((Path(jupyter_runtime_dir()) / f"jpserver-{server}.json").read_text(encoding="utf-8"))
        root, base = told["root_dir"], told.get("base_url") or "/"
        relative = Path(os.path.realpath(path)).relative_to(os.path.realpath(root))
    except (ImportError, OSError, ValueError, KeyError, TypeError):
        return None
    if any(name.startswith(".") for name in relative.parts):
        return None
    return f"{base.rstrip('/')}/files/{quote(relative.as_posix())}"
