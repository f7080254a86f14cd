"""``%mcp prompts``, ``prompt``, ``resources`` and ``read``: what servers have besides tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.suggestions import near_names, suggestion
from ...text.visible import visible
from ..tables import Notice, Table
from .mcp import problem_of

if TYPE_CHECKING:
    from ...core.result import Attachment, ToolResult
    from .mcp import McpLine

RESOURCE_CHARS = 20_000
"""Characters of a resource that a cell shows."""


class Content:
    """The content of a resource: ``.text``, and ``.attachments`` for what is no text."""

    def __init__(self, uri: str, result: ToolResult) -> None:
        self.uri = uri
        self.text = result.output
        self.attachments: list[Attachment] = result.attachments

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self.text
        if len(text) > RESOURCE_CHARS:
            text = f"{text[:RESOURCE_CHARS]}…\n[{len(self.text):,} characters; .text has all of them]"
        others = [f"[{file.mime}: .attachments[{index}].data]" for index, file in enumerate(self.attachments)]
        return "\n".join([*([visible(text)] if text else []), *others]) or f"{self.uri} is empty."

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if len(self.attachments) == 1 and self.attachments[0].mime in ("image/png", "image/jpeg"):
            bundle[self.attachments[0].mime] = self.attachments[0].url.partition(",")[2]
        return bundle


def list_prompts(line: McpLine) -> Table:
    """``%mcp prompts``: the prompts of the servers."""
    server = _optional_server(line)
    prompts = list(line.wait(line.servers.prompts(server)).values())
    rows = [
        {
            "prompt": f"{prompt.server}/{prompt.name}",
            "arguments": [a["name"] if a.get("required") else f"[{a['name']}]" for a in prompt.arguments],
            "description": prompt.description,
        }
        for prompt in prompts
    ]
    notes = []
    if rows:
        example = " ".join(f"{a['name']}=..." for a in prompts[0].arguments if a.get("required"))
        notes.append(f"%mcp prompt {rows[0]['prompt']} {example}".rstrip())
    return Table(rows, ("prompt", "arguments", "description"), notes=notes, empty="No prompts.")


def show_prompt(line: McpLine) -> Notice:
    """``%mcp prompt``: a prompt's messages, with arguments filled in."""
    server, key = _split(line, line.next("Which prompt?"))
    if not key and line.rest and line.rest[0].key is None:
        key = line.next("")
    if not key:
        raise InvalidArgumentsError(f"Which prompt of {server}? {line.usage}")
    arguments: dict[str, str] = {}
    for word in line.rest:
        if word.key is None:
            raise InvalidArgumentsError(f"{word.text} has no name: {line.usage}")
        arguments[word.key] = word.text
    try:
        messages = line.wait(line.servers.prompt(server, key, arguments))
    except ToolError as error:  # many servers report only that there was an error
        _explain(line, server, key, arguments)
        raise error from None
    if len(messages) == 1:
        return Notice(messages[0]["text"])
    return Notice("\n\n".join(f"{message['role']}: {message['text']}" for message in messages))


def list_resources(line: McpLine) -> Table:
    """``%mcp resources``: the resources of the servers."""
    server = _optional_server(line)
    resources = list(line.wait(line.servers.resources(server)).values())
    columns = ("server", "uri", "name", "type", "description")
    rows = [dict(zip(columns, (r.server, r.uri, r.name, r.mime, r.description), strict=True)) for r in resources]
    notes = [f"%mcp read {rows[0]['server']} {rows[0]['uri']}"] if rows else []
    return Table(rows, columns, notes=notes, empty="No resources.")


def read_resource(line: McpLine) -> Content:
    """``%mcp read``: a resource's content."""
    server = line.server()
    uri = line.next(f"Which resource of {server}? %mcp resources {server} shows them:")
    line.end()
    return Content(uri, line.wait(line.servers.read_resource(server, uri)))


def _optional_server(line: McpLine) -> str | None:
    """The server that the line names, if it names one.

    Raises:
        ToolError: it can't be connected.
    """
    server = line.server() if line.rest else None
    line.end()
    if server is not None:
        status = line.connect(server)
        if status.state != "connected":
            raise ToolError(problem_of(status) or f"{server} is not connected.")
    return server


def _split(line: McpLine, text: str) -> tuple[str, str]:
    """A server and the name of a prompt; either may have a ``/`` in it."""
    for name in sorted(line.servers.specs(), key=len, reverse=True):
        if text == name or text.startswith((f"{name}/", f"{name}:")):
            return name, text[len(name) + 1 :]
    head = text.partition("/")[0]
    return line.server_name(head), text.partition("/")[2]


def _explain(line: McpLine, server: str, key: str, arguments: dict[str, str]) -> None:
    """Raise an error about a prompt's name or arguments if they are wrong."""
    prompts = {prompt.name: prompt for prompt in line.wait(line.servers.prompts(server)).values()}
    if prompts and key not in prompts:
        near = [f"{server}/{name}" for name in near_names(key, prompts)]
        hint = suggestion(near) or f" It has {', '.join(prompts)}."
        raise InvalidArgumentsError(f"{server} has no prompt {key}.{hint}")
    declared = {argument["name"]: argument for argument in prompts[key].arguments} if prompts else {}
    missing = [name for name, argument in declared.items() if argument.get("required") and name not in arguments]
    unknown = [name for name in arguments if name not in declared] if prompts else []
    if missing or unknown:
        problems = [f"wants {', '.join(missing)}" if missing else "", f"has no {', '.join(unknown)}" if unknown else ""]
        raise InvalidArgumentsError(f"The prompt {server}/{key} {' and '.join(filter(None, problems))}.")
