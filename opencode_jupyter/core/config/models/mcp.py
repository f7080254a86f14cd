"""MCP servers (reference: core.md 19.1)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Tag

from .section import TAG, Count, Section, Texts, Unknown, doc


class McpOAuth(Section):
    """How to sign in; what is left out is found out from the server."""

    unknown: ClassVar[Unknown] = "wrong"
    clientId: str = doc("The client's id, if it was registered beforehand.")  # noqa: N815 - OpenCode's spelling
    clientSecret: str = doc("The client's secret.")  # noqa: N815
    scope: str = doc("The scopes to ask for.")


class McpLocal(Section):
    """A server that is a program on this computer."""

    unknown: ClassVar[Unknown] = "wrong"
    type: Literal["local"]
    command: Texts
    environment: dict[str, str] = doc("Set in its environment.")
    enabled: bool = doc("Connect to it when its tools are first needed.")
    timeout: Count = doc("Milliseconds for connecting and for each answer.")


def _sign_in(value: Any) -> str:
    return TAG + ("object" if isinstance(value, dict | Section) else "off")


class McpRemote(Section):
    """A server that is reached over HTTP."""

    unknown: ClassVar[Unknown] = "wrong"
    type: Literal["remote"]
    url: str
    headers: dict[str, str] = doc("Sent with every request.")
    oauth: Annotated[
        Annotated[McpOAuth, Tag(TAG + "object")] | Annotated[Literal[False], Tag(TAG + "off")], Discriminator(_sign_in)
    ] = doc("How to sign in; false for never.")
    enabled: bool = doc("Connect to it when its tools are first needed.")
    timeout: Count = doc("Milliseconds for connecting and for each answer.")


class McpPart(Section):
    """A change to a server that another file describes, such as ``{"enabled": false}``."""

    unknown: ClassVar[Unknown] = "wrong"
    type: Literal["local", "remote"] = doc("What kind of server it is.")
    command: Texts = doc("Program and arguments.")
    environment: dict[str, str] = doc("Set in its environment.")
    url: str = doc("Its address.")
    headers: dict[str, str] = doc("Sent with every request.")
    oauth: Annotated[
        Annotated[McpOAuth, Tag(TAG + "object")] | Annotated[Literal[False], Tag(TAG + "off")], Discriminator(_sign_in)
    ] = doc("How to sign in; false for never.")
    enabled: bool = doc("Connect to it when its tools are first needed.")
    timeout: Count = doc("Milliseconds for connecting and for each answer.")


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return TAG + (kind if kind in ("local", "remote") else "part")


McpServer = Annotated[
    Annotated[McpLocal, Tag(TAG + "local")]
    | Annotated[McpRemote, Tag(TAG + "remote")]
    | Annotated[McpPart, Tag(TAG + "part")],
    Discriminator(_kind),
]
