"""Requests of a server for a model's answer (sampling): refused unless ``experimental.mcp_sampling`` is set.

The answer is paid for by the person, so each request goes by the rules (permission ``mcp_sampling``, the server's name
as its pattern) and shows on the card of the call that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    ImageContent,
    SamplingMessage,
    TextContent,
)

from ..core.completer import CompletionRequest, Media
from ..core.errors import PermissionDeniedError, PermissionRejectedError, ToolError

if TYPE_CHECKING:
    from mcp.client.session import SamplingFnT

    from ..core.host import ToolHost
    from .calls import ServerCall
    from .connection import ServerConnection

KEY = "mcp_sampling"
"""Key under ``experimental``: true for the configuration's small model, or its model; or a model's name."""
PERMISSION = "mcp_sampling"
REFUSED = -1
"""The protocol's code for a request that a person refused."""
MOST = 20
"""Requests that one call may make: a server must not spend without end."""
SHOWN = 20_000
"""Characters of a request that the permission request shows."""
_REASONS = {"length": "maxTokens"}


def allowed(workspace: ToolHost) -> bool:
    """Return whether servers are told that they may ask for a model's answer."""
    setting = workspace.config.get("experimental", KEY)
    return setting is True or (isinstance(setting, str) and bool(setting))


def sampling(
    workspace: ToolHost, connection: ServerConnection, call_of: Callable[[], ServerCall | None]
) -> SamplingFnT:
    """The callback that answers the requests of one server.

    Args:
        workspace: whose configuration and models.
        connection: the server.
        call_of: the call that a request most likely belongs to.
    """

    async def reply(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        call, server = call_of(), connection.spec.name
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="there is no call that this request could belong to")
        call.samplings += 1
        if call.samplings > MOST:
            return ErrorData(code=INVALID_REQUEST, message=f"a call may request at most {MOST} answers of a model")
        try:
            request = _request(params)
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        model, complete = _model_of(workspace), workspace.complete
        if not model or complete is None:
            message = f'no model is named: "experimental": {{"{KEY}": "provider:model"}} of the configuration names one'
            return ErrorData(code=INTERNAL_ERROR, message=message)
        shown = "\n\n".join(filter(None, [params.system_prompt, *(_shown(message) for message in params.messages)]))
        try:
            with call.paused():  # for a person, then for the model: the server is not slow meanwhile
                metadata = {"server": server, "model": model, "command": f"{server} asks {model}:\n{shown[:SHOWN]}"}
                await call.ctx.ask(PERMISSION, [server], [server], metadata)
                answer = await complete(model, request)
        except (PermissionRejectedError, PermissionDeniedError) as error:
            return ErrorData(code=REFUSED, message=f"sampling was refused: {error}")
        except ToolError as error:
            connection.log.add(f"asked {model}, which failed: {error}", "client")
            return ErrorData(code=INTERNAL_ERROR, message=f"the model could not be asked: {error}")
        connection.log.add(f"asked {model}", "client")
        content = TextContent(type="text", text=answer.text)
        reason = _REASONS.get(answer.reason, "endTurn")
        return CreateMessageResult(role="assistant", content=content, model=model, stop_reason=reason)

    return reply


def _model_of(workspace: ToolHost) -> str:
    """The model that answers; "" if none is named."""
    setting = workspace.config.get("experimental", KEY)
    names = (setting, workspace.config.get("small_model"), workspace.config.get("model"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _request(params: CreateMessageRequestParams) -> CompletionRequest:
    """A server's request as one for a model.

    Raises:
        ValueError: it has a part that a model cannot be sent here.
    """
    messages = []
    for message in params.messages:
        pieces: list[str | Media] = []
        for content in message.content if isinstance(message.content, list) else [message.content]:
            if isinstance(content, TextContent):
                pieces.append(content.text)
            elif isinstance(content, (ImageContent, AudioContent)):
                pieces.append(Media(content.mime_type, content.data))
            else:
                raise ValueError(f"{content.type} cannot be part of a request here: servers get no tools")  # noqa: TRY004 - data
        messages.append((message.role, pieces))
    return CompletionRequest(messages, params.system_prompt or "", params.temperature, params.max_tokens)


def _shown(message: SamplingMessage) -> str:
    """A message as the permission request shows it."""
    parts = message.content if isinstance(message.content, list) else [message.content]
    return f"{message.role}: " + " ".join(
        part.text if isinstance(part, TextContent) else f"[{part.type}]" for part in parts
    )
