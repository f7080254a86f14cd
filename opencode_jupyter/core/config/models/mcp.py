"""MCP servers (docs/opencode/core.md 19.1), also in the spellings of other programs' files."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from .section import TAG, Milliseconds, Section, Texts, Unknown, doc


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("scalar_type", "a text is expected")
    return value


Scalar = Annotated[Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A text; a number or truth is written out."""


class McpOAuth(Section):
    """How to sign in; what is left out is found out from the server."""

    clientId: str = doc("The client's id, if it was registered beforehand.")  # noqa: N815 - OpenCode's spelling
    clientSecret: str = doc("The client's secret.")  # noqa: N815
    scope: Any = doc("The scopes to request.")
    redirectUri: str = doc("Where the browser comes back to.")  # noqa: N815


def _command(value: Any) -> str:
    return TAG + ("text" if isinstance(value, str) else "list")


def _sign_in(value: Any) -> str:
    return TAG + ("object" if isinstance(value, dict | Section) else "switch")


class McpServer(Section):
    """A server: a program on this computer (local) or an address (remote).

    It may be spread over several files; one of them may say no more than `{"enabled": false}`.
    """

    unknown: ClassVar[Unknown] = "wrong"
    type: Literal["local", "remote", "stdio", "http", "streamable-http", "sse"] = doc(
        "local (or stdio) for a program, remote (or http, sse) for an address."
    )
    command: Annotated[
        Annotated[str, Tag(TAG + "text")] | Annotated[Texts, Tag(TAG + "list")], Discriminator(_command)
    ] = doc("Program and arguments of a local server.")
    args: Texts = doc("More arguments; OpenCode's files list them in command.")
    environment: dict[str, Scalar] = doc("Set in a local server's environment.")
    env: dict[str, Scalar] = doc("The same as environment, OpenCode's name for it.")
    cwd: str = doc("The folder a local server runs in; default: the project's.")
    url: str = doc("Address of a remote server.")
    headers: dict[str, Scalar] = doc("Sent with every request to a remote server.")
    oauth: Annotated[
        Annotated[McpOAuth, Tag(TAG + "object")] | Annotated[bool, Tag(TAG + "switch")], Discriminator(_sign_in)
    ] = doc("How to sign in to a remote server; false for never.")
    enabled: bool = doc("Connect to it when its tools are first needed.")
    disabled: bool = doc("Never connect to it; OpenCode's name for the opposite is enabled.")
    timeout: Milliseconds = doc("Milliseconds for connecting and for each answer.")
