"""The card contract as JSON schema, and what the front end knows of built-in tools and of the package's version:
``labextension/contract.mjs`` makes TypeScript of them.

From the project's folder, with nothing but pydantic installed::

    python -m opencode_jupyter.jupyter.cards.contract_schema labextension/card.schema.json
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from ..._version import __version__
from .contract import CardPart, CardTail
from .run_contract import RunPart, RunUpdate, RunWhole

TOOL_FOLDERS = ("tools", "agent/tools", "jupyter/tools")
"""Where built-in tools are, below the package."""


@with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
class CardContract(TypedDict, total=False):
    """Everything that the kernel sends to a card, and that a notebook keeps of one."""

    part: CardPart
    """A call, live or saved."""
    run: RunPart
    """A run, live or saved."""
    tail: CardTail
    """A message to a live call's card."""
    update: RunUpdate
    """A message to a live run's card."""
    whole: RunWhole
    """Another message to a live run's card."""


class _Untitled(GenerateJsonSchema):
    """JSON schema without a title for each field, of which TypeScript would make a type."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The contract as JSON schema."""
    schema = TypeAdapter(CardContract).json_schema(schema_generator=_Untitled)
    definitions = schema["$defs"]
    for child, parent in (("RunPart", "RunHead"), ("CardTail", "TailUpdate")):  # whose fields lose their descriptions
        for field, inherited in definitions[parent]["properties"].items():
            definitions[child]["properties"][field].setdefault("description", inherited["description"])
    return schema


def tool_bodies() -> dict[str, str]:
    """The argument that the body of a ``%%tool`` cell fills, by the tool, as the tools' manifests name it.

    The manifests are read, not imported: the build has none of the tools' dependencies.
    """
    package = Path(__file__).parents[2]
    modules = [path for folder in TOOL_FOLDERS for path in sorted((package / folder).glob("*.py"))]
    bodies: dict[str, str] = {}
    for call in (node for path in modules for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in {"builtin", "Tool"}:
            for keyword in call.keywords:
                if keyword.arg == "body" and isinstance(keyword.value, ast.Constant):
                    bodies[ast.literal_eval(call.args[0])] = str(keyword.value.value)
    return bodies


if __name__ == "__main__":
    text = json.dumps(
        {**json_schema(), "toolBodies": tool_bodies(), "version": __version__}, indent=1, ensure_ascii=False
    )
    Path(sys.argv[1]).write_text(f"{text}\n", encoding="utf-8")
