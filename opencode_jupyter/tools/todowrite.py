"""todowrite: replace the session's task list. See docs/opencode/core.md 15.4."""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from ..core.call_state import Completed, ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.todos import Todos, count_open
from ..text.encoding import escaped
from .builtin import builtin


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
    done = sum(isinstance(todo, dict) and todo.get("status") == "completed" for todo in todos)
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
    return ToolResult(f"{count_open(todos)} todos", text, {"todos": todos}, records=[dict(todo) for todo in todos])
