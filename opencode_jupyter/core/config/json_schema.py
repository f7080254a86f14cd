"""The JSON schema of a config file, for editors: made from `models`, shipped beside this module.

``python -m opencode_jupyter.core.config.json_schema`` prints it, or writes it to the file that is named. In a config
file, ``"$schema"`` may name that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).with_name("opencode.schema.json")
"""The schema as it comes with the package."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema, made anew from the models."""
    from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

    from .models import ConfigFile

    class Schema(GenerateJsonSchema):
        def default_schema(self, schema: Any) -> JsonSchemaValue:
            """Without the default: an entry that is left out is not the same as one that is null."""
            return self.generate_inner(schema["schema"])

        def get_title_from_name(self, name: str) -> str:
            """The key as it is written."""
            return name

    made = _plain(ConfigFile.model_json_schema(schema_generator=Schema))
    # An unknown key is a warning here and an error in OpenCode: an editor should show it.
    made["additionalProperties"] = False
    return {"$schema": DIALECT, "title": "opencode.json", **made}


def text() -> str:
    """The schema as the shipped file has it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Print the schema, or write it to the file that is named."""
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write("usage: python -m opencode_jupyter.core.config.json_schema [FILE]\n")
        return 0 if len(arguments) == 1 else 2
    if arguments:
        from ..atomic import write

        write(Path(arguments[0]), text().encode())
    else:
        sys.stdout.write(text())
    return 0


def _plain(node: Any) -> Any:
    """Without names of Python classes; a union's members may overlap, as those of MCP do."""
    if isinstance(node, list):
        return [_plain(entry) for entry in node]
    if isinstance(node, str):
        return node.replace("``", "`")
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        # The keys of properties and $defs are names, of which one may be "title".
        named = key in ("properties", "$defs") and isinstance(value, dict)
        keyword = "anyOf" if key == "oneOf" else key
        out[keyword] = {name: _plain(entry) for name, entry in value.items()} if named else _plain(value)
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
