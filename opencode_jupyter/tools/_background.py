"""What commands leave running: it goes on until the workspace closes or the kernel ends, and is named in the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .process.child import Child, Exit, Handle

if TYPE_CHECKING:
    from ..core.host import ToolHost

_kept: WeakKeyDictionary[ToolHost, list[Handle]] = WeakKeyDictionary()


def keep(workspace: ToolHost, child: Child, outcome: Exit) -> list[dict[str, Any]]:
    """Let the processes that a command left run on, under their supervisor.

    Returns:
        ``{"pid", "command"}`` of each; empty when nothing is left.
    """
    left = [(pid, _command(pid)) for pid in outcome.left]
    running = [{"pid": pid, "command": command} for pid, command in left if command]
    if not running:
        return []
    handle = child.leave()
    handles = _kept.get(workspace)
    if handles is None:
        handles = _kept[workspace] = []

        def end(_: dict[str, Any], handles: list[Handle] = handles) -> None:
            for handle in handles:
                handle.end()
            handles.clear()

        workspace.bus.subscribe("server.instance.disposed", end)
    handles[:] = [h for h in handles if not h.gone.done()]
    handles.append(handle)
    return running


def _command(pid: int) -> str:
    """The command line of a process; empty if it is gone (or a zombie)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""
