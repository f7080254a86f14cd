"""invalid: what a model's malformed call becomes (core/repair.py). See docs/opencode/core.md 15.1."""

from __future__ import annotations

from pydantic import Field

from ..core.call_state import FOR_PERSON
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.repair import INVALID
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import printable
from .builtin import builtin


class Parameters(Arguments):
    """What was called, and what was wrong with it."""

    tool: str = Field(description="The tool that was meant to be called")
    error: str = Field(description="Why the call could not be made")


@builtin(
    INVALID,
    Parameters,
    group="internal",
    effect="notes",
    card=CardSpec(label=lambda arguments, part: "invalid call"),
)
async def invalid(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Tell a model what was wrong with its call."""
    ctx.proceed()
    from ..core.result import PRINTED

    for_person = ctx.extra.get(FOR_PERSON)
    return ToolResult(
        "Invalid Tool",
        printable(f"The arguments provided to the tool are invalid: {args.error}"),
        {} if for_person is None else {PRINTED: printable(for_person)},
    )
