"""Tool files in TypeScript and JavaScript for tests: written, loaded, called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opencode_jupyter.javascript.service import JavaScriptTools
from opencode_jupyter.workspace import Workspace

HEAD = 'import { tool } from "@opencode-ai/plugin"\nconst z = tool.schema\n'


class ToolFiles:
    """A folder of tool files in a workspace's project; not the one that is looked through, which needs trust."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = workspace.directory / "own" / "tool"
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def service(self) -> JavaScriptTools:
        return self.workspace.service(JavaScriptTools)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def load(self, name: str, text: str | None = None) -> list[str]:
        """Write a file, load it and register its tools; their ids."""
        path = self.folder / name if text is None else self.write(name, text)
        tools = await self.service.load(path, path.stem)
        for tool in tools:
            self.workspace.registry.register(tool)
        return [tool.id for tool in tools]

    async def tool(self, body: str, args: str = "{}", name: str = "t", more: str = "") -> None:
        """Load a file with one tool whose execute has this body; `more` are other fields of it."""
        fields = f'description: "d", args: {args}, {more} async execute(args, ctx) {{ {body} }}'
        assert await self.load(f"{name}.ts", f"{HEAD}export default tool({{ {fields} }})") == [name]

    async def call(self, name: str = "t", **arguments: Any) -> str:
        return (await self.workspace.call(name, arguments, by="user")).output  # a person may repeat a call

    def schema(self, name: str = "t") -> dict[str, Any]:
        tool = self.workspace.registry.get(name)
        assert tool is not None
        assert tool.static is not None
        return tool.static.parameters
