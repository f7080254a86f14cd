"""The task list of each session: in the store, or in memory where a workspace keeps none (docs/opencode/core.md 17)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .host import ToolHost

log = logging.getLogger(__name__)

DONE = "completed"
"""The status that takes an item out of the count of what is left. ``cancelled`` does not, as in OpenCode."""


class Todos:
    """The task lists of one workspace's sessions; reach it with ``workspace.service(Todos)``."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._kept: dict[str, list[dict[str, Any]]] = {}

    async def update(self, session_id: str, todos: list[dict[str, Any]]) -> None:
        """Make `todos` the session's whole list, and publish ``todo.updated``."""
        store = self._workspace.store
        todos = self._workspace.masked([dict(todo) for todo in todos])
        copies = [dict(todo) for todo in todos]  # the caller's may change later
        if store is None:
            self._kept[session_id] = copies
        else:
            await store.replace_todos(session_id, copies)
        self._workspace.publish("todo.updated", lambda: {"sessionID": session_id, "todos": todos})

    async def get(self, session_id: str) -> list[dict[str, Any]]:
        """The session's list; empty if it has none, or none that can be read."""
        store = self._workspace.store
        if store is None:
            return [dict(todo) for todo in self._kept.get(session_id, ())]
        try:
            todos = await store.todos(session_id)
        except Exception:
            log.exception("the task list of %s could not be read", session_id)
            return []
        return [todo for todo in todos if isinstance(todo, dict)]


def count_open(todos: list[dict[str, Any]]) -> int:
    """How many items are not completed."""
    return sum(todo.get("status") != DONE for todo in todos)
