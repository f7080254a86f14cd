"""batch: several calls at once, each a call like any other. See docs/opencode/core.md 15.2."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Annotated, Any

import anyio
from pydantic import ConfigDict, Field, ValidationError, WithJsonSchema

from ..core.call import Call
from ..core.call_state import UNSUCCESSFUL, Completed, Failed, ToolPart, failure_of
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError, UnknownToolError
from ..core.registry import Registry
from ..core.repair import INVALID
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.validation_issues import javascript_type
from .builtin import builtin

LIMIT = 25
"""Calls that run; what is over is refused."""
DISALLOWED = ("batch",)
NOT_SUGGESTED = (INVALID, "patch", "apply_patch", *DISALLOWED)
"""Left out where the message of an unknown tool names those there are: OpenCode's list, with an older `patch`."""


ANYTHING = {"type": "object", "properties": {}, "additionalProperties": {}}
EXPECTED = {"tool_calls": "array", "tool": "string", "parameters": "object"}


class ToolCall(Arguments):
    """One call."""

    model_config = ConfigDict(alias_generator=None)

    tool: str = Field(description="The name of the tool to call")
    parameters: Annotated[dict[str, Any], WithJsonSchema(ANYTHING)] = Field(description="Its parameters")


class Parameters(Arguments):
    """The calls."""

    model_config = ConfigDict(alias_generator=None)  # tool_calls on the wire too

    tool_calls: list[ToolCall] = Field(min_length=1, description="The calls to run at once, 1 to 25")


def format_validation_error(error: ValidationError) -> str:
    """OpenCode's text for parameters that do not fit."""
    lines = []
    for issue in error.errors(include_url=False, include_context=False):
        path = ".".join(map(str, issue["loc"])) or "root"
        if issue["type"] == "too_short":
            message = "Provide at least one tool call"
        else:
            kind = "undefined" if issue["type"] == "missing" else javascript_type(issue["input"])
            field = issue["loc"][-1] if issue["loc"] else ""
            message = f"Invalid input: expected {EXPECTED.get(str(field), 'object')}, received {kind}"
        lines.append(f"  - {path}: {message}")
    payload = '[{"tool": "tool_name", "parameters": {...}}, {...}]'
    issues = "\n".join(lines)
    return f"Invalid parameters for tool 'batch':\n{issues}\n\nExpected payload format:\n  {payload}"


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    calls = arguments.get("tool_calls") or arguments.get("toolCalls")
    count = len(calls) if isinstance(calls, list) else 0
    return f"{count} call{'' if count == 1 else 's'}" if count else ""


def _summary(state: Completed) -> str | None:
    """How many calls failed; OpenCode's text tells a model to use more of them."""
    total = state.metadata.get("totalCalls")
    if not isinstance(total, int):
        return None
    failure = failure_of("batch", state.metadata)
    return f"{failure}." if failure else "1 call completed." if total == 1 else f"{total} calls completed."


@builtin(
    "batch",
    Parameters,
    group="run",
    body="tool_calls",
    format_validation_error=format_validation_error,
    effect="acts",
    permission="",
    example='%tool batch tool_calls:=[{"tool": "read", "parameters": {"filePath": "notes.txt"}}]',
    card=CardSpec(label=_label, text=_summary),
)
async def batch(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Run several calls at once."""
    registry = ctx.workspace.registry
    for name in dict.fromkeys(requested.tool for requested in args.tool_calls):
        if not registry.is_fresh(name):  # a tool of a file, say, that was not called before
            await registry.prepare(name)
    names = [tool.id for tool in registry.offered() if not tool.external]
    calls: list[Call] = []
    for index, requested in enumerate(args.tool_calls):
        call = ctx.child(requested.tool, requested.parameters)
        calls.append(call)
        refusal = _refusal(call.part.tool, index, names, registry)
        if refusal is not None:
            call.refuse(refusal)
    runnable = [call for call in calls if call.error is None]
    if ctx.dry_run:
        for call in runnable:
            with contextlib.suppress(Exception):  # a call that could not begin asks for nothing
                await call.preview()
    ctx.proceed()

    def report() -> None:
        ended = sum(call.part.outcome != "" for call in calls)
        progress = {"value": ended, "total": len(calls), "message": f"{ended} of {len(calls)} calls have ended"}
        ctx.metadata(metadata={"progress": progress})

    async def run(call: Call) -> None:
        with contextlib.suppress(Exception):  # it stands in the call's part, and the others go on
            await call.run()
        report()

    report()
    async with anyio.create_task_group() as group:
        for call in runnable:
            group.start_soon(run, call)
    return _result(calls)


def _refusal(name: str, index: int, names: list[str], registry: Registry) -> ToolError | None:
    """The error of a call that can't run in a batch; None if it can."""
    if index >= LIMIT:
        return ToolError(f"Maximum of {LIMIT} tools allowed in batch")
    if name in DISALLOWED:
        return ToolError(f"Tool '{name}' is not allowed in batch. Disallowed tools: {', '.join(DISALLOWED)}")
    if name in names:
        return None
    reason = next((tool.reason for tool in registry.unavailable() if tool.id == name), "")
    if reason:  # it is known of: a file that nobody trusts yet, or that could not be loaded. A batch asks for no trust.
        return ToolError(f"Tool '{name}' can't be called: {reason}")
    external = "External tools (MCP, environment) cannot be batched - call them directly."
    available = ", ".join(tool for tool in names if tool not in NOT_SUGGESTED)
    is_external = any(tool.id == name for tool in registry.offered())
    for_person = f"A batch cannot call {name}, an external tool." if is_external else str(UnknownToolError(name, names))
    return ToolError(f"Tool '{name}' not in registry. {external} Available tools: {available}", for_person=for_person)


def _result(calls: list[Call]) -> ToolResult:
    rows = [_row(call) for call in calls]
    total, successful = len(rows), sum(row["success"] for row in rows)
    unsuccessful = sum(_is_failure(call) for call in calls)
    if successful < total:
        output = f"Executed {successful}/{total} tools successfully. {total - successful} failed."
    else:
        output = (
            f"All {total} tools executed successfully.\n\n"
            "Keep using the batch tool for optimal performance in your next response!"
        )
    return ToolResult(
        f"Batch execution ({successful}/{total} successful)",
        output,
        {
            "totalCalls": total,
            "successful": successful,
            "failed": total - successful,
            "tools": [row["tool"] for row in rows],
            "details": [{"tool": row["tool"], "success": row["success"]} for row in rows],
            **({UNSUCCESSFUL: unsuccessful} if unsuccessful > total - successful else {}),
        },
        # copies: each result's attachments get ids of their own
        [replace(attached) for call in calls if call.part.result for attached in call.part.result.attachments],
        rows,
    )


def _is_failure(call: Call) -> bool:
    """Return whether a call failed for a person: OpenCode counts a command with any exit code as successful."""
    state = call.part.state
    return not isinstance(state, Completed) or bool(failure_of(call.part.tool, state.metadata))


def _row(call: Call) -> dict[str, Any]:
    """A call's outcome as a row of the result's table."""
    state = call.part.state
    success = isinstance(state, Completed)
    return {
        "tool": call.part.tool,
        "success": success,
        "title": state.title if isinstance(state, Completed) else "",
        "output": state.output if isinstance(state, Completed) else "",
        "error": state.error if isinstance(state, Failed) else "",
    }
