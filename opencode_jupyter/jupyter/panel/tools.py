"""The tools of this kernel for the panel: lists with their rules, parameters as forms, checks of lines."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError, ToolError, UnknownToolError
from ..magics.help import source_of, summary
from ..magics.parameters import Field, choices, kinds, spec_of
from ..magics.rules import deciding_rule, rules_in_force
from ..magics.tool_line import parse
from ..magics.tool_preparation import prepare_in_background

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.call import By
    from ...core.permission import Rule
    from ...core.tool import Tool
    from .service import Panel

SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Endings of tool files in JavaScript and TypeScript."""
WORDS = 300
"""Characters of a summary or a reason."""
DESCRIPTION = 20_000
"""Characters of a description."""
BY: tuple[By, ...] = ("user", "model")
_MAGIC = "%tool "


def tools(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """All tools, with the rule that decides a call of each; ``agent``: whose rules.

    Tools that are not loaded yet are loaded in the background, as for ``%tools``; pages are then notified.

    Returns:
        ``tools``: of each ``name``, ``source``, ``kind`` (`kind_of`), ``summary``, and under ``user`` and ``model`` the
        ``action`` and the ``rule``. ``missing``: ``name``, ``source`` and ``reason`` of those that can't be called.
    """
    panel.watch("permission.replied", "rules")
    panel.watch("tools.changed", "tools")
    _prepare(panel)
    workspace = panel.notebook.workspace
    agent = request.get("agent") or None
    rules = {by: rules_in_force(workspace, agent, by) for by in BY}
    entries = []
    for name in workspace.registry.names():
        tool = workspace.registry.get(name)
        if tool is not None and tool.manifest.group != "internal":
            entry: dict[str, Any] = {"name": name, "source": source_of(tool), "kind": kind_of(tool)}
            entry["summary"] = summary(tool)[:WORDS]
            for by in BY:
                entry[by] = _decide(panel, tool, rules[by])
            entries.append(entry)
    missing = [
        {"name": tool.id, "source": tool.source, "reason": tool.reason[:WORDS]}
        for tool in workspace.registry.unavailable()
    ]
    return {"tools": entries, "missing": missing}


def tool(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """One tool, by ``name``: ``fields`` (its parameters, as a form shows them) and ``description``.

    Raises:
        ToolError: there is no tool of that name, or it does not describe itself in time.
    """
    requested_tool = _find_tool(panel, request)
    spec = panel.run_on_thread(spec_of, requested_tool, panel.notebook.workspace.registry)
    return {
        "name": requested_tool.id,
        "fields": [_form_field(field) for field in spec.fields],
        "description": (summary(requested_tool) if requested_tool.builtin else spec.bound.description)[:DESCRIPTION],
    }


def check(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Check that ``source``, a ``%tool`` line or cell, makes the call of ``name`` with exactly the arguments ``input``.

    Returns:
        ``errors``: problems of the arguments, each a ``message`` and, where it is known, the ``path`` to it;
        empty if there are none.

    Raises:
        ToolError: the line makes another call.
    """
    requested_tool = _find_tool(panel, request)
    arguments, source = request.get("input"), request.get("source")
    if not isinstance(arguments, dict) or not isinstance(source, str):
        raise ToolError("The arguments must be one JSON object, and the line a text")
    try:
        same = panel.run_on_thread(_reads_back, panel, requested_tool, source, arguments)
    except InvalidArgumentsError as error:
        return {"errors": _errors(error)}
    if not same:
        raise ToolError("These arguments can't be written as a line that means the same; call the tool from Python")
    return {"errors": []}


def kind_of(tool: Tool) -> str:
    """Where a tool comes from: ``builtin``, ``cell``, ``mcp``, ``javascript``, ``file`` or ``package``."""
    if tool.builtin:
        return "builtin"
    source = tool.source or ""
    if source == "__main__":
        return "cell"
    if source == "mcp" or source.startswith("mcp:"):
        return "mcp"
    if source.endswith(SCRIPTS):
        return "javascript"
    return "file" if source.endswith(".py") else "package"


def _decide(panel: Panel, tool: Tool, rules: Sequence[Rule]) -> dict[str, str]:
    rule = deciding_rule(panel.notebook.workspace, tool, rules)
    origin = f" ({rule.origin})" if rule.origin else ""
    return {"action": rule.action, "rule": f"{rule.permission} {rule.pattern}{origin}"}


def _prepare(panel: Panel) -> None:
    """Load tools that are not loaded yet, on another thread; notify pages if that brought some."""
    registry = panel.notebook.workspace.registry

    def tool_state() -> tuple[Any, ...]:
        return registry.names(), [(tool.id, tool.reason) for tool in registry.unavailable()]

    def prepare() -> None:
        before = tool_state()
        prepare_in_background(panel.notebook, lambda: panel.changed("tools") if tool_state() != before else None)

    threading.Thread(target=prepare, name="opencode-panel", daemon=True).start()


def _find_tool(panel: Panel, request: dict[str, Any]) -> Tool:
    name = str(request.get("name"))
    registry = panel.notebook.workspace.registry
    tool = registry.get(name)
    if tool is None:
        raise UnknownToolError(name, registry.names(), registry.why_not(name))
    return tool


def _form_field(field: Field) -> dict[str, Any]:
    """A parameter with the kind of its form field: JSON where no other fits."""
    types = kinds(field.schema) - {"null"}
    options = [*field.schema.get("anyOf", ()), *field.schema.get("oneOf", ())]
    closed = all(choices(option) for option in options or [field.schema])
    kind = "json"
    if closed and "array" not in types:
        kind = "choice"
    elif types == {"string"}:
        kind = "text"
    elif types and types <= {"integer", "number"}:
        kind = "number"
    elif types == {"array"} and kinds(field.schema.get("items") or {}) == {"string"}:
        kind = "list"
    about = {"name": field.name, "kind": kind, "type": field.type, "required": field.required}
    more = {"description": field.description, "default": field.schema.get("default")}
    return {**about, **more, "choices": field.choices if kind == "choice" else []}


def _reads_back(panel: Panel, tool: Tool, source: str, arguments: dict[str, Any]) -> bool:
    registry = panel.notebook.workspace.registry
    spec = spec_of(tool, registry)
    if spec.raw and "description" not in arguments and spec.find("description"):
        spec.bound.validate({**arguments, "description": ""})
    else:
        spec.bound.validate(arguments)
    cell = None
    line = source
    if source.startswith("%" + _MAGIC):
        line, _, body = source[1:].partition("\n")
        cell = body if body.endswith("\n") else body + "\n"
    if not line.startswith(_MAGIC) or (cell is None and "\n" in line):
        return False
    try:
        request = parse(line.removeprefix(_MAGIC), cell, registry, {})
    except ToolError:  # the arguments fit the tool, so it is the line that can't be read
        return False
    if spec.raw and "description" not in arguments:
        request.arguments.pop("description", None)
    return request.tool == tool.id and not request.help and request.arguments == arguments


def _errors(error: InvalidArgumentsError) -> list[dict[str, Any]]:
    cause: Any = error.cause
    if cause is not None and hasattr(cause, "errors"):  # pydantic's
        return [{"path": [*issue["loc"]], "message": str(issue["msg"])} for issue in cause.errors(include_url=False)]
    path = getattr(cause, "absolute_path", None)  # jsonschema's
    return [{"path": list(path or ()), "message": str(getattr(cause, "message", error))}]


HANDLERS: dict[str, Any] = {"tools": tools, "tool": tool, "tool_check": check}
