"""A server asks for a model's answer while it works (sampling): refused unless ``experimental.mcp_sampling`` is set.

The answer is paid for by the person, so each request goes by the rules (permission ``mcp_sampling``, the server's name
as its pattern) and shows on the card of the call that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
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

from ..core.errors import PermissionDeniedError, PermissionRejectedError, ToolError

if TYPE_CHECKING:
    from mcp.client.session import SamplingFnT

    from ..agent.turns import Turn
    from ..core.host import ToolHost
    from .calls import Running
    from .connection import Connection

KEY = "mcp_sampling"
"""Key under ``experimental``: true for the configuration's small model, or its model; or a model's name."""
PERMISSION = "mcp_sampling"
REFUSED = -1
"""The protocol's code for a request that a person refused."""
MOST = 20
"""Requests that one call may make: a server must not spend without end."""
SHOWN = 20_000
"""Characters of a request that an ask shows."""
_REASONS = {"length": "maxTokens"}


def allowed(workspace: ToolHost) -> bool:
    """Return whether servers are told that they may ask for a model's answer."""
    given = workspace.config.get("experimental", KEY)
    return given is True or (isinstance(given, str) and bool(given))


def sampling(workspace: ToolHost, connection: Connection, call_of: Callable[[], Running | None]) -> SamplingFnT:
    """What answers the requests of one server.

    Args:
        workspace: whose configuration and models.
        connection: the server.
        call_of: the call that a request most likely belongs to.
    """

    async def answer(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        call, server = call_of(), connection.spec.name
        if call is None:
            return ErrorData(code=INVALID_REQUEST, message="there is no call that this request could belong to")
        call.sampled += 1
        if call.sampled > MOST:
            return ErrorData(code=INVALID_REQUEST, message=f"a call may request at most {MOST} answers of a model")
        try:
            turns = _turns(params.messages)
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        model = _model_of(workspace)
        if not model:
            words = f'no model is named: "experimental": {{"{KEY}": "provider:model"}} of the configuration names one'
            return ErrorData(code=INTERNAL_ERROR, message=words)
        shown = "\n\n".join(filter(None, [params.system_prompt, *(_shown(one) for one in params.messages)]))
        try:
            with call.waiting():  # for a person, then for the model: the server is not slow meanwhile
                metadata = {"server": server, "model": model, "command": f"{server} asks {model}:\n{shown[:SHOWN]}"}
                await call.ctx.ask(PERMISSION, [server], [server], metadata)
                text, name, reason = await _asked(workspace, model, params, turns)
        except (PermissionRejectedError, PermissionDeniedError) as error:
            return ErrorData(code=REFUSED, message=f"sampling was refused: {error}")
        except ToolError as error:
            connection.log.add(f"asked {model}, which failed: {error}", "client")
            return ErrorData(code=INTERNAL_ERROR, message=f"the model could not be asked: {error}")
        connection.log.add(f"asked {name}", "client")
        content = TextContent(type="text", text=text)
        return CreateMessageResult(role="assistant", content=content, model=name, stop_reason=reason)

    return answer


def _model_of(workspace: ToolHost) -> str:
    """The model that is lent; "" if none is named."""
    given = workspace.config.get("experimental", KEY)
    names = (given, workspace.config.get("small_model"), workspace.config.get("model"))
    return next((name for name in names if isinstance(name, str) and name), "")


async def _asked(
    workspace: ToolHost, name: str, params: CreateMessageRequestParams, turns: Sequence[Turn]
) -> tuple[str, str, str]:
    """The model's words, its name, and why it stopped."""
    from ..agent.events import Finish, TextDelta
    from ..agent.masking import stream_masked
    from ..agent.model import Request
    from ..agent.models import resolve

    model = await resolve(workspace, name)
    request = Request(
        system=(params.system_prompt,) if params.system_prompt else (),
        turns=turns,
        temperature=params.temperature,
        max_output=params.max_tokens,
        agent="sampling",
    )
    words: list[str] = []
    reason = "endTurn"
    async with aclosing(stream_masked(workspace, model, request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                words.append(event.text)
            elif isinstance(event, Finish):
                reason = _REASONS.get(event.reason, reason)
    return "".join(words), name, reason


def _turns(messages: Sequence[SamplingMessage]) -> list[Turn]:
    from ..agent.turns import MediaPiece, Piece, TextPiece, Turn

    turns = []
    for message in messages:
        pieces: list[Piece] = []
        for one in message.content if isinstance(message.content, list) else [message.content]:
            if isinstance(one, TextContent):
                pieces.append(TextPiece(one.text))
            elif isinstance(one, (ImageContent, AudioContent)):
                pieces.append(MediaPiece(one.mime_type, one.data))
            else:
                raise ValueError(f"{one.type} cannot be part of a request here: servers get no tools")  # noqa: TRY004 - data
        turns.append(Turn(message.role, tuple(pieces)))
    return turns


def _shown(message: SamplingMessage) -> str:
    """A message as an ask shows it."""
    parts = message.content if isinstance(message.content, list) else [message.content]
    return f"{message.role}: " + " ".join(
        one.text if isinstance(one, TextContent) else f"[{one.type}]" for one in parts
    )
