"""The decorator that declares this package's own tools, each beside its description for the model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, WithJsonSchema

from ..core.card_spec import PLAIN, CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.tool import Definition, Effect, FormatValidationError, Manifest, Tool, ToolGroup

Number = Annotated[int, WithJsonSchema({"type": "number"})]
"""A whole number that OpenCode's schemas call a number."""
P = TypeVar("P", bound=BaseModel)
Body = Callable[[P, ToolContext], Awaitable[ToolResult]]


def builtin(
    id: str,
    parameters: type[P],
    *,
    group: ToolGroup,
    effect: Effect = "",
    permission: str | None = None,
    example: str = "",
    body: str | None = None,
    card: CardSpec = PLAIN,
    format_validation_error: FormatValidationError | None = None,
) -> Callable[[Body[P]], Tool]:
    """Make a built-in tool of ``async def fn(args, ctx)``.

    Args:
        id: the tool's id; its description stands in ``{id}.md`` beside the function's module.
        parameters: the model of its arguments.
        group: the heading under which lists show it; ``internal`` hides it there.
        effect: what a call does; see `Manifest`.
        permission: the permission that its requests use, by default its id.
        example: a line that calls it.
        body: the parameter that a ``%%tool`` cell's body fills, as on the wire.
        card: how its calls are shown.
        format_validation_error: makes the message for arguments that do not fit.
    """

    def decorate(fn: Body[P]) -> Tool:
        text = description_file(inspect.getfile(fn), id)
        tool = Tool(
            id,
            Definition(text, parameters, fn, format_validation_error),
            body=body,
            manifest=Manifest(True, group, effect, permission, example, card),
            source=fn.__module__,
        )
        tool.__doc__ = fn.__doc__
        return tool

    return decorate


@cache
def description_file(module_file: str, name: str) -> str:
    """The text of ``{name}.md`` beside a module."""
    return (Path(module_file).parent / f"{name}.md").read_text(encoding="utf-8").strip()
