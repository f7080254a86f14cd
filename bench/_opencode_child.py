"""One prompt of `bench.opencode` in a process of its own: ``python -m bench._opencode_child KIND PROJECT PROMPT``.

The kind is workspace or kernel. The configuration comes from standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


async def in_workspace(project: Path, prompt: str, config: dict[str, Any]) -> None:
    """A run in a workspace: no cards."""
    from opencode_jupyter import Workspace

    async with Workspace(project, config=config, data_dir=project.parent / "data") as workspace:
        await workspace.sessions.prompt(prompt, model="fake:m")


async def in_kernel(project: Path, prompt: str, config: dict[str, Any]) -> None:
    """A run in a notebook's cell, whose card is sent to a client."""
    import os

    from jupyter_client.manager import start_new_async_kernel

    folder = project.parent / "config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(config))
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder.parent),
        "XDG_DATA_HOME": str(project.parent / "data"),
    }
    manager, client = await start_new_async_kernel(cwd=str(project), env=environment)
    try:
        for cell in ("%load_ext opencode_jupyter", f"%%agent -m fake:m\n{prompt}"):
            reply = await client.execute_interactive(cell, output_hook=lambda message: None, timeout=120)
            if reply["content"]["status"] != "ok":
                raise SystemExit("\n".join(reply["content"]["traceback"]))
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def main() -> None:
    """See the module."""
    kind, project, prompt = sys.argv[1:]
    run = {"workspace": in_workspace, "kernel": in_kernel}[kind]
    asyncio.run(run(Path(project), prompt, json.load(sys.stdin)))


if __name__ == "__main__":
    main()
