"""What a tool takes, from its schema, and the list of tools: for ``%tool NAME?`` and ``%tool`` alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from itertools import groupby
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any, get_args

from ...core.call_approval import rules_for
from ...core.permission import EDIT_TOOLS
from ...core.tool import ToolGroup
from ..tables import Table, cell, td, text_width, without_math, wrap_line
from .commands import TOOL_OPTIONS
from .parameters import Field, Spec

if TYPE_CHECKING:
    from ...core.call import By
    from ...core.permission import Rule
    from ...core.tool import Tool
    from ...workspace import Workspace

EFFECTS = {"allow": "runs", "ask": "asks", "deny": "denied"}
"""What a rule does with a call."""
UNAVAILABLE = "unavailable"
OWN, MCP = "your own", "MCP servers"
NAME_CHARS = 24
"""A longer name of a tool is cut in the text form."""
HINT = "%tool NAME ... calls a tool, %tool NAME? shows its arguments. See also %tools and %permissions."
_WORDS = {"integer": "3", "number": "0.5", "boolean": "true", "array": ":=[]", "object": ":={}"}


class ToolHelp:
    """A tool's usage, parameters and description; text in a terminal, HTML in a notebook."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def usage(self) -> str:
        """The line that shows how to call it."""
        if self.spec.raw:
            return f"%tool {self.spec.tool.id} [options] {self._body_name} ({self.spec.rest_of_line})"
        pieces = [f.name if f.required else f"[{f.name}={_hint(f)}]" for f in self.spec.positional]
        return " ".join(["%tool", self.spec.tool.id, "[options]", *pieces])

    @property
    def example(self) -> str:
        """A call that could be typed."""
        if self.spec.tool.example:
            return self.spec.tool.example
        pieces: list[str] = []
        for field in (f for f in self.spec.positional if f.required):
            word = _example(field)
            # Behind a value that has to be named, places would be counted wrongly: the others are named too.
            named = any("=" in piece for piece in pieces) and not word.startswith(field.name)
            pieces.append(f"{field.name}={word}" if named else word)
        return " ".join(["%tool", self.spec.tool.id, *pieces])

    @property
    def body(self) -> str:
        """What the body of a ``%%tool`` cell fills."""
        if self.spec.body is None:
            return "%%tool: the body fills the one required text field that the first line leaves open"
        return f"%%tool: the body fills {self._body_name}"

    @property
    def _body_name(self) -> str:
        return self.spec.body.name if self.spec.body is not None else "command"

    def table(self) -> Table:
        """The parameters."""
        rows = [
            {
                "parameter": f.name,
                "type": f.type,
                "required": "required" if f.required else "",
                "default": json.dumps(f.schema["default"], ensure_ascii=False) if "default" in f.schema else "",
                "description": f.description,
            }
            for f in self.spec.positional
        ]
        return Table(rows, ("parameter", "type", "required", "default", "description"), empty="It takes no parameters.")

    def __repr__(self) -> str:
        tool = self.spec.tool
        lines = [f"{tool.id} ({source_of(tool)}): {summary(tool)}".rstrip(" :"), ""]
        lines += [f"Usage:   {self.usage}", f"Example: {self.example}", f"Body:    {self.body}", "", repr(self.table())]
        lines += [
            "",
            "Options:",
            indent(TOOL_OPTIONS.help(), "  "),
            "",
            "Description for a model:",
            self.spec.bound.description,
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tool = self.spec.tool
        options = "".join(f"<li><code>{o.usage}</code> {escape(o.help)}</li>" for o in TOOL_OPTIONS.all)
        description = escape(self.spec.bound.description)
        return without_math(
            f"<div><b>{escape(tool.id)}</b> <span>({escape(source_of(tool))})</span></div>"
            f"<pre>{escape(self.usage)}\n{escape(self.example)}</pre>"
            f"<div>{escape(self.body)}</div>{self.table()._repr_html_()}"
            f"<details><summary>Options of the magic</summary><ul>{options}</ul></details>"
            "<details><summary>Description for a model</summary>"
            f'<pre style="white-space:pre-wrap">{description}</pre></details>'
        )


class ToolTable(Table):
    """The tools under the headings of their groups; the text form fits the terminal."""

    def __repr__(self) -> str:
        names = max((len(row["tool"]) for row in self.records), default=0)
        calls = max((len(row["calls"]) for row in self.records), default=0)
        names = min(names, NAME_CHARS)
        width = text_width()
        room = max(width - names - calls - 6, 1)
        lines = [] if self.records else [self.empty]
        for group, rows in self._groups():
            lines += ["", group] if lines else [group]
            for row in rows:
                start = f"  {cell(row['tool'], names):<{names}}  "
                if row["now"] == UNAVAILABLE:
                    reason = f"{UNAVAILABLE}: {row['by']}"
                    lines += wrap(reason, width, initial_indent=start, subsequent_indent=" " * len(start))
                else:
                    lines.append(f"{start}{cell(row['description'], room):<{room}}  {row['calls']}".rstrip())
        notes = [line for note in self.notes for line in wrap_line(note, width)]
        return "\n".join([*lines, "", *notes])

    def _repr_html_(self) -> str:
        if not self.records:
            return super()._repr_html_()
        left = 'style="text-align:left"'
        body = ""
        for group, rows in self._groups():
            body += f'<tr><th colspan="4" {left}>{escape(group)}</th></tr>'
            for row in rows:
                shown = (row["tool"], row["description"] or row["by"], row["source"], row["calls"])
                body += "<tr>" + "".join(td("", cell(value)) for value in shown) + "</tr>"
        head = "".join(f"<th {left}>{name}</th>" for name in self.columns)
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        return without_math(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}")

    def _groups(self) -> Iterable[tuple[str, Iterable[dict[str, Any]]]]:
        return groupby(self.records, lambda row: str(row["group"]))


def tool_list(workspace: Workspace, agent: str | None = None) -> ToolTable:
    """Every tool but internal ones, by group, with what the rules do with a person's call and with a model's.

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
        if tool is None or tool.group == "internal":
            continue
        permission = permission_of(name)
        (rule,) = workspace.permissions.check(permission, ["*"], person)
        (model_rule,) = workspace.permissions.check(permission, ["*"], model)
        rows.append(
            {
                "group": group_of(tool.group, tool.source),
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
    columns = ("tool", "description", "source", "calls")
    return ToolTable(rows, columns, notes=[HINT], empty="There are no tools.")


def group_of(group: str, source: str) -> str:
    """The heading under which a list shows a tool."""
    return group or (MCP if source == "mcp" or source.startswith("mcp:") else OWN)


def rules_in_force(workspace: Workspace, agent: str | None = None, by: By = "user") -> list[Rule]:
    """The rules that a call from a cell (`by` a person or a model) is judged by, but for this session's approvals."""
    return list(rules_for(workspace, workspace.agent(agent), workspace.sessions.default, by))


def rule_now(workspace: Workspace, permission: str, pattern: str, agent: str | None = None, by: By = "user") -> Rule:
    """The rule that would decide this now, approvals included."""
    return workspace.permissions.check(permission, [pattern], rules_in_force(workspace, agent, by))[0]


def permission_of(tool: str) -> str:
    """The permission that a tool asks for."""
    return "edit" if tool in EDIT_TOOLS else tool


def source_of(tool: Tool) -> str:
    """Where a tool comes from, in words."""
    if tool.builtin:
        return "built in"
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


def _hint(field: Field) -> str:
    choices = field.choices
    if choices and len(choices) <= 4:
        return "|".join(c if isinstance(c, str) else json.dumps(c) for c in choices)
    return field.type.replace(" ", "_")


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
