"""A tool's help from its schema, and the list of tools: for ``%tool NAME?`` and ``%tool`` alone."""

from __future__ import annotations

import json
from html import escape
from textwrap import indent
from typing import TYPE_CHECKING, Any, get_args

from ...core.tool import ToolGroup
from ..tables import Table, cell, without_math
from .commands import TOOL_OPTIONS
from .parameters import Field, Spec, usage
from .rules import deciding_rule, rules_in_force

if TYPE_CHECKING:
    from ...core.tool import Tool
    from ...workspace import Workspace

EFFECTS = {"allow": "runs", "ask": "asks", "deny": "denied"}
"""The effect of a rule on a call."""
UNAVAILABLE = "unavailable"
BUILT_IN = "built in"
OWN, MCP = "your own", "MCP servers"
HINT = "%tool NAME ... calls a tool, %tool NAME? shows its arguments. See also %tools and %permissions."
_WORDS = {"integer": "3", "number": "0.5", "boolean": "true", "array": ":=[]", "object": ":={}"}


class ToolHelp:
    """A tool's usage, parameters and description; text in a terminal, HTML in a notebook."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def example(self) -> str:
        """A call that could be typed."""
        if self.spec.tool.manifest.example:
            return self.spec.tool.manifest.example
        pieces: list[str] = []
        for field in (f for f in self.spec.positional if f.required):
            word = _example(field)
            # After a named value positions would be counted wrongly: the others are named too.
            named = any("=" in piece for piece in pieces) and not word.startswith(field.name)
            pieces.append(f"{field.name}={word}" if named else word)
        return " ".join(["%tool", self.spec.tool.id, *pieces])

    @property
    def body(self) -> str:
        """The parameter that the body of a ``%%tool`` cell fills."""
        if self.spec.body is None:
            return "%%tool: the body fills the one required text field that the first line leaves open"
        return f"%%tool: the body fills {self.spec.body_name}"

    def table(self) -> Table:
        """The parameters."""
        rows = [
            {
                "parameter": f.name,
                "type": f.type,
                "default": "required" if f.required else _default(f.schema),
                "description": f.description,
            }
            for f in self.spec.positional
        ]
        return Table(rows, ("parameter", "type", "default", "description"), empty="It takes no parameters.")

    def __repr__(self) -> str:
        tool = self.spec.tool
        head = f"{tool.id} ({source_of(tool)}): {summary(tool)}".rstrip(" :")
        call = f"Usage:   {usage(self.spec)}\nExample: {self.example}\nBody:    {self.body}"
        options = f"Options:\n{indent(TOOL_OPTIONS.help(), '  ')}"
        description = f"Description for a model:\n{self.spec.bound.description}"
        return "\n\n".join([head, call, repr(self.table()), options, description])

    def _repr_html_(self) -> str:
        tool = self.spec.tool
        options = "".join(f"<li><code>{o.usage}</code> {escape(o.help)}</li>" for o in TOOL_OPTIONS.all)
        description = escape(self.spec.bound.description)
        return without_math(
            f"<div><b>{escape(tool.id)}</b> <span>({escape(source_of(tool))})</span></div>"
            f"<pre>{escape(usage(self.spec))}\n{escape(self.example)}</pre>"
            f"<div>{escape(self.body)}</div>{self.table()._repr_html_()}"
            f"<details><summary>Options of the magic</summary><ul>{options}</ul></details>"
            "<details><summary>Description for a model</summary>"
            f'<pre style="white-space:pre-wrap">{description}</pre></details>'
        )


def tool_list(workspace: Workspace, agent: str | None = None) -> Table:
    """Every tool but internal ones, by group, with the rules' action for a person's call and for a model's.

    Args:
        workspace: whose tools.
        agent: whose rules.

    Returns:
        Rows with ``group``, ``tool``, ``description``, ``source``, ``calls`` ("you: runs · a model: asks"); ``now``
        and ``by``: the action for a person's call and the origin of its rule (for a missing tool the reason).
    """
    person, model = rules_in_force(workspace, agent), rules_in_force(workspace, agent, "model")
    rows = []
    for name in workspace.registry.names():
        tool = workspace.registry.get(name)
        if tool is None or tool.manifest.group == "internal":
            continue
        rule, model_rule = deciding_rule(workspace, tool, person), deciding_rule(workspace, tool, model)
        rows.append(
            {
                "group": group_of(tool.manifest.group, tool.source),
                "tool": name,
                "description": summary(tool),
                "source": source_of(tool),
                "calls": f"you: {EFFECTS[rule.action]} · a model: {EFFECTS[model_rule.action]}",
                "now": rule.action,
                "by": rule.origin,
            }
        )
    rows += [
        {
            "group": group_of("", missing.source),
            "tool": missing.id,
            "description": "",
            "source": missing.source,
            "calls": UNAVAILABLE,
            "now": UNAVAILABLE,
            "by": missing.reason,
        }
        for missing in workspace.registry.unavailable()
    ]
    headings = (*get_args(ToolGroup), OWN, MCP)
    rows.sort(key=lambda row: headings.index(row["group"]))
    display = [
        {
            **row,
            "description": row["description"] or row["by"],
            "source": "" if row["source"] == BUILT_IN else row["source"],
        }
        for row in rows
    ]
    source = ("source",) if any(row["source"] for row in display) else ()
    return Table(
        rows,
        ("tool", "description", *source, "calls"),
        notes=[HINT],
        empty="There are no tools.",
        display=display,
        group_by="group",
        optional=("source",),
    )


def group_of(group: str, source: str) -> str:
    """The heading under which a list shows a tool."""
    return group or (MCP if source == "mcp" or source.startswith("mcp:") else OWN)


def source_of(tool: Tool) -> str:
    """A tool's source as a text."""
    if tool.builtin:
        return BUILT_IN
    return "this notebook" if tool.source == "__main__" else tool.source or "custom"


def summary(tool: Tool) -> str:
    """The first sentence of a tool's description; a built-in tool's own is for a person, not for a model."""
    text = (
        tool.__doc__ or ""
        if tool.builtin
        else tool.static.description
        if tool.static is not None
        else vars(tool).get("__doc__") or ""
    )
    for line in text.splitlines():
        if line.strip(" #-*"):
            sentence, dot, _ = line.strip(" #-*").partition(". ")
            return cell(sentence + ("." if dot else ""))
    return ""


def _default(schema: dict[str, Any]) -> str:
    return json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else ""


def _example(field: Field) -> str:
    if field.choices:
        first = field.choices[0]
        return first if isinstance(first, str) else json.dumps(first)
    if field.is_path:
        return "notes.txt"
    for kind, word in _WORDS.items():
        if field.takes(kind) and not field.takes("string"):
            return f"{field.name}{word}" if word.startswith(":=") else word
    return f"'some {field.name}'"
