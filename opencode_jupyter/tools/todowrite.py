"""todowrite: replace the session's task list, which is kept here (docs/opencode/core.md 15.4 and 17)."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from ..core.call_state import Completed, ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import escaped
from .builtin import builtin

if TYPE_CHECKING:
    from ..core.host import ToolHost

log = logging.getLogger(__name__)

DONE = "completed"
"""The status that takes an item out of the count of what is left. ``cancelled`` does not, as in OpenCode."""


class Todo(Arguments):
    """One item. Any text is taken as status and priority, as OpenCode takes it; the usual ones are named.

    Releases differ about ``id``: models are asked for it as by 1.1, and an item without one is taken as by later ones.
    """

    model_config = ConfigDict(json_schema_extra={"required": ["content", "status", "priority", "id"]})

    content: str = Field(description="What is to be done, in a few words")
    status: str = Field(description="Where it stands: pending, in_progress, completed, cancelled")
    priority: str = Field(description="How much it matters: high, medium, low")
    id: str | None = Field(default=None, description="Unique identifier of the item")

    _given: list[str] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _remember_order(cls, value: Any, build: ModelWrapValidatorHandler[Self]) -> Self:
        todo = build(value)
        todo._given = [key for key in value if key in cls.model_fields] if isinstance(value, dict) else []
        return todo

    def row(self) -> dict[str, Any]:
        """The item as it is kept, its keys in the order in which they were given."""
        fields = {name: getattr(self, name) for name in self._given or type(self).model_fields}
        return {name: value for name, value in fields.items() if value is not None}


class Parameters(Arguments):
    """The list."""

    todos: list[Todo] = Field(description="The whole list as it is from now on")


def progress(arguments: dict[str, Any], part: ToolPart) -> str:
    """How many tasks are done; OpenCode's title counts those that are left."""
    todos = (part.state.metadata or {}).get("todos") if isinstance(part.state, Completed) else arguments.get("todos")
    if not isinstance(todos, list):
        return ""
    done = sum(isinstance(todo, dict) and todo.get("status") == DONE for todo in todos)
    return f"{done} of {len(todos)} task{'' if len(todos) == 1 else 's'} done" if todos else "no tasks"


@builtin(
    "todowrite",
    Parameters,
    group="agent",
    body="todos",
    effect="notes",
    example='%tool todowrite todos:=[{"content": "Read the data", "status": "pending", "priority": "high"}]',
    card=CardSpec(body="tasks", label=progress),
)
async def todowrite(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Replace the session's task list."""
    await ctx.ask("todowrite", ["*"], ["*"], {})
    ctx.proceed()

    todos = [todo.row() for todo in args.todos]
    await ctx.workspace.service(Todos).update(ctx.session_id, todos)
    return todo_result(todos)


def todo_result(todos: list[dict[str, Any]]) -> ToolResult:
    """A task list as both tools give it: how many items are left, the list as JSON, the items as rows."""
    text = escaped(json.dumps(todos, indent=2, ensure_ascii=False))
    left = sum(todo.get("status") != DONE for todo in todos)
    return ToolResult(f"{left} todos", text, {"todos": todos}, records=[dict(todo) for todo in todos])


class Todos:
    """The task lists of one workspace's sessions, in the store, or in memory where it keeps none.

    Reach it with ``workspace.service(Todos)``.
    """

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
