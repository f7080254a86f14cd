"""The parts of the reference that are made of the code when the site is built: Markdown, by the name of the part."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import opencode_jupyter
from opencode_jupyter import Tool, Workspace
from opencode_jupyter.core.config.json_schema import json_schema as config_schema
from opencode_jupyter.jupyter.cards.contract_schema import json_schema as card_schema
from opencode_jupyter.jupyter.magics import commands
from opencode_jupyter.jupyter.magics.help import ToolHelp, summary
from opencode_jupyter.jupyter.magics.parameters import Spec, type_words, usage
from opencode_jupyter.jupyter.tools import kernel_tools


def table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    cells = [[re.sub(r"\s+", " ", cell).replace("|", r"\|") for cell in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """Text as inline code; nothing for no text."""
    return f"`{text}`" if text else ""


def magics() -> str:
    """The options of %tool and %%agent, and the subcommands of the others."""
    parts = []
    for magic, options in (("%tool and %%tool", commands.TOOL_OPTIONS), ("%%agent", commands.AGENT_OPTIONS)):
        rows = [(code(option.usage), option.help) for option in options.all]
        parts.append(f"## {magic}\n\n{table(('option', 'what it does'), rows)}")
    for group in (commands.TOOLS, commands.PERMISSIONS, commands.SESSIONS, commands.MCP):
        names = [(name, command.help) for name, command in group.by_name.items()]
        rows = [(code(group.usage(name).replace(f" {commands.LIST}", "")), help) for name, help in names]
        parts.append(f"## {group.magic}\n\n{table(('line', 'what it does'), rows)}")
    return "\n\n".join(parts)


def built_in_tools() -> Iterator[Tool]:
    """Every tool of this package that can be called."""
    with tempfile.TemporaryDirectory() as folder, Workspace(folder, store=False, data_dir=Path(folder) / "data") as ws:
        for name in ws.registry.names():
            tool = ws.registry.get(name)
            if tool is not None and tool.manifest.group != "internal":
                yield tool
    for make in kernel_tools(SimpleNamespace(shell=None)).values():  # only a call needs a notebook
        yield make()


def tools() -> str:
    """Every tool: its parameters from its schema, the rest from its manifest."""
    return "\n\n".join(map(tool_section, sorted(built_in_tools(), key=lambda tool: tool.id)))


def tool_section(tool: Tool) -> str:
    """One tool."""
    spec = Spec(tool)
    help = ToolHelp(spec)
    rows = [
        (code(name), kind, default if default == "required" else code(default), description)
        for name, kind, default, description in (row.values() for row in help.table().records)
    ]
    parameters = table(("parameter", "type", "default", "what it is"), rows) if rows else "It takes no parameters."
    permission, manifest = code(tool.permission) or "none", tool.manifest
    facts = f"Permission: {permission}. Group: {manifest.group}. Effect: {manifest.effect or 'none'}."
    description = f"````text\n{spec.bound.description}\n````"
    return (
        f"## {tool.id}\n\n{summary(tool)}\n\n```python\n{help.example}\n```\n\n```text\n{usage(spec)}\n```\n\n"
        f"{parameters}\n\n{facts}\n\n"
        f"<details><summary>Description for a model</summary>\n\n{description}\n\n</details>"
    )


def settings() -> str:
    """Every key of the configuration."""
    schema = config_schema()
    rows = list(keys(schema, schema["$defs"], ""))
    return table(("key", "type", "what it is"), ((code(key), kind, text) for key, kind, text in rows))


def keys(schema: dict[str, Any], definitions: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """The keys of an object and of the objects in it, in dots."""
    for name, entry in schema.get("properties", {}).items():
        yield prefix + name, setting_type(entry), entry.get("description", "")
        inner, path = entry, f"{prefix}{name}."
        if isinstance(inner.get("additionalProperties"), dict):
            inner, path = inner["additionalProperties"], f"{path}NAME."
        for part in (inner, *inner.get("anyOf", ()), *inner.get("oneOf", ())):
            reference = part.get("$ref", "").rpartition("/")[2]
            if reference and reference not in prefix:
                yield from keys(definitions[reference], definitions, path)


def setting_type(schema: dict[str, Any]) -> str:
    """A key's type in words; what the schema refers to are objects."""
    if "$ref" in schema:
        return "object"
    variants = schema.get("anyOf", ())
    return " or ".join(dict.fromkeys(map(setting_type, variants))) if variants else type_words(schema)


def card() -> str:
    """Every type of the card's JSON."""
    parts = []
    for name, entry in card_schema()["$defs"].items():
        if "properties" not in entry:
            continue
        required = entry.get("required", ())
        rows = [
            (code(field), type_of(value), "" if field in required else "may be absent", value.get("description", ""))
            for field, value in entry["properties"].items()
        ]
        text = entry.get("description", "")
        parts.append(f"## {name}\n\n{text}\n\n{table(('field', 'type', '', 'what it is'), rows)}")
    return "\n\n".join(parts)


def type_of(schema: dict[str, Any]) -> str:
    """A field's type, with a link where it is a type of the contract."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name[:4] in ("Card", "RunP") else name
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {type_of(schema['items'])}"
    return type_words(schema)


def python() -> str:
    """Every public name, from its docstring."""
    names = [name for name in opencode_jupyter.__all__ if not name.startswith("__")]
    return "\n\n".join(f"## {name}\n\n```{{eval-rst}}\n{directive(name)}\n```" for name in names)


def directive(name: str) -> str:
    """What Sphinx is told to document a name."""
    value = getattr(opencode_jupyter, name)
    kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
    options = "\n   :no-value:" if kind == "data" else ""
    if isinstance(value, type):
        options = "\n   :members:"
        if not issubclass(value, Exception):
            options += "\n   :inherited-members: object, tuple"
    return f".. auto{kind}:: opencode_jupyter.{name}{options}"


SERVICES = {
    "registry": "register unregister get ids names all tools sources unavailable",
    "permissions": "pending reply",
    "questions": "pending reply reject",
    "bus": "subscribe",
    "hooks": "add",
    "trust": "grant grant_temporarily revoke entries",
    "sessions": "prompt create get open list delete",
    "config": "get json_schema",
    "tools": "for_openai for_anthropic for_langchain for_pydantic_ai run_openai run_anthropic",
    "truncation": "output glob",
}
"""Attributes of a workspace, and the names of each that other programs use."""

MODULES = {
    "opencode_jupyter.agent.answer": "Answer",
    "opencode_jupyter.agent.prompt_options": "PromptOptions",
    "opencode_jupyter.agent.exchange": "export export_file import_ export_jsonl export_otlp send",
    "opencode_jupyter.agent.scripted": "ScriptedModel say call thought failure load Recorder script_of",
    "opencode_jupyter.batch": "MapOptions EvaluateOptions Results Outcome Case Score Evaluation exact contains regex "
    "json_equal files_equal command model_graded",
    "opencode_jupyter.batch.options": "RunOptions",
    "opencode_jupyter.core.permission.modes": "mode_of set_mode",
    "opencode_jupyter.core.tool": "Manifest",
}
"""Modules below the package that other programs import, and what they take from each."""


def services() -> str:
    """What stands in the attributes of a workspace, from the docstrings."""
    parts = []
    with tempfile.TemporaryDirectory() as folder, Workspace(folder, store=False, data_dir=Path(folder) / "data") as ws:
        for attribute, members in SERVICES.items():
            kind = type(getattr(ws, attribute))
            lines = []
            for name in members.split():
                directive = "property" if isinstance(getattr(kind, name), property) else "method"
                lines.append(f".. auto{directive}:: {kind.__module__}.{kind.__qualname__}.{name}")
            parts.append(f"### ws.{attribute}\n\n```{{eval-rst}}\n{chr(10).join(lines)}\n```")
    return "\n\n".join(parts)


def modules() -> str:
    """What modules below the package offer, from the docstrings."""
    parts = []
    for module, names in MODULES.items():
        lines = []
        for name in names.split():
            value = getattr(import_module(module), name)
            lines.append(f".. auto{'class' if isinstance(value, type) else 'function'}:: {module}.{name}")
            if isinstance(value, type):
                lines += ["   :members:", "   :inherited-members: object, list"]
        parts.append(f"### {module}\n\n```{{eval-rst}}\n{chr(10).join(lines)}\n```")
    return "\n\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "magics": magics,
    "tools": tools,
    "settings": settings,
    "card": card,
    "python": python,
    "services": services,
    "modules": modules,
}
