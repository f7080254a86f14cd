"""A provider's model, by the protocol of `agent.model`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...tools.web import sse
from ..errors import ModelError
from ..events import Event
from ..model import ModelInfo, Request
from . import provider_errors
from .api_keys import Key, redacted
from .connection import ProviderConnection
from .event_assembler import EventAssembler
from .provider_adapter import (
    BlockedPromptError,
    MalformedCallError,
    ProviderAdapter,
    ResponseParser,
    call_ids,
    original_names,
    wire_name,
)
from .provider_errors import RequestContext
from .trust import LOOPBACK

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)
MAX_JSON_BYTES = 32 * 1024 * 1024
"""Bytes of an answer that is no stream."""
DRAIN_SECONDS = 0.25
"""Seconds to wait for the end of a stream after its last event, so that its connection can be used again."""
USAGE_SECONDS = 3.0
"""Seconds to wait for more once the provider has sent why it stopped."""
SHOWN_CHARS = 120
"""Characters of an event that can't be read that an error shows."""


class ProviderModel:
    """A model of a provider.

    Args:
        wire: the format.
        key: gives the key; asked at each request, so that one that is set later is found.
        connection: the provider's.
        similar_models: model ids that resemble an unknown one.
    """

    def __init__(
        self,
        wire: ProviderAdapter,
        key: Callable[[], Awaitable[Key | None]],
        connection: ProviderConnection,
        similar_models: Callable[[str], list[str]] = lambda name: [],
    ) -> None:
        self.adapter, self._key, self._connection, self._similar_models = wire, key, connection, similar_models

    @property
    def info(self) -> ModelInfo:
        """Information about the model."""
        return self.adapter.info

    def __repr__(self) -> str:
        return f"<model {self.info.full}>"

    async def aclose(self) -> None:
        """Let go of its connections. Twice is harmless."""
        await self._connection.aclose()

    async def close_idle(self) -> None:
        """Close the connections that are kept for the next request: a run that was stopped leaves nothing open."""
        await self._connection.close_idle()

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """See `agent.model.Model.stream`."""
        request = self.adapter.with_noop(request)
        key = await self._key()
        provider = self.adapter.provider
        url = self.adapter.url()
        context = RequestContext(
            provider=provider.id,
            model=self.info.model,
            url=url.split("?")[0],
            secrets=[*([key.value] if key else []), *(v for v in provider.headers.values() if len(v) >= 8)],
            key_from=key.source if key else "",
            key_names=provider.keys,
            similar_models=lambda: self._similar_models(self.info.model),
            local=provider.keyless or urlsplit(url).hostname in LOOPBACK,
        )
        if (
            key is None
            and not provider.keyless
            and provider.keys
            and "authorization" not in _lower_names(provider.headers)
        ):
            raise no_key(context)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "opencode-jupyter",
            **self.adapter.headers(key),
            **_lower_names(provider.headers),
            **_lower_names(self.adapter.settings.headers),
        }
        try:
            body = self.adapter.body(request)
        except (TypeError, ValueError) as error:
            reason = redacted(str(error), context.secrets)
            text = f"the request can't be written as JSON ({reason}); look at the configuration's options"
            raise context.error("setup", text) from None
        names = [tool.name for tool in request.tools]
        tool_names = {wire_name(name) for name in names}
        assembler = EventAssembler(tool_names, original_names(names), lambda: set(call_ids(request.turns)))
        reader = self.adapter.parser(assembler)
        began = False
        await self._connect(context)
        try:
            async with self._connection.post(url, headers, body) as response:
                await _check_status(response, context)
                began = True
                if "event-stream" not in response.headers.get("content-type", "") and not await _is_stream(response):
                    reader.feed_complete(await _read_json(response, context))
                    assembler.end_all()
                else:
                    async with contextlib.aclosing(_read_stream(response, reader, context)) as read:
                        async for event in read:
                            yield event
        except (ModelError, asyncio.CancelledError, GeneratorExit):
            raise
        except BlockedPromptError as error:
            text = f"{provider.id} refused the request because of what is in it: {error}"
            raise ModelError(text, "refused", provider=provider.id, status=200) from None
        except MalformedCallError as error:
            text = f"the model wrote a call that can't be read: {error}"
            raise context.error("protocol", text, status=200, retryable=True) from None
        except Exception as error:
            library = self._connection.library
            if isinstance(
                error, library.HTTPError | library.InvalidURL | library.StreamError | OSError | sse.LineTooLongError
            ):
                raise provider_errors.network_error(context, error, began=began, httpx2=library) from None
            log.debug("%s: %s", provider.id, type(error).__name__, exc_info=True)
            reason = redacted(f"{type(error).__name__}: {error}", context.secrets)
            raise context.error("protocol", f"the answer is not in its provider's form ({reason})") from None
        for event in assembler.take_events():
            yield event
        yield reader.finish()

    async def _connect(self, context: RequestContext) -> None:
        """Create the HTTP client; a failure is caused by the environment."""
        try:
            await self._connection.open()
        except (ImportError, ValueError, OSError) as error:
            advice = "Look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR in the environment"
            reason = redacted(str(error), context.secrets)
            raise context.error("setup", f"cannot create an HTTP client: {reason}. {advice}.") from None


def no_key(context: RequestContext) -> ModelError:
    """The error for a request that can't be sent for want of a key."""
    names = " or ".join(context.key_names)
    text = (
        f"{context.provider} needs a key and none is set. Set {names} in the environment, put it into the system's "
        f"keyring (`keyring set opencode-jupyter {context.provider}`), or name it in your own config: "
        f'{{"provider": {{"{context.provider}": {{"options": {{"apiKey": "{{env:{context.key_names[0]}}}"}}}}}}}}'
    )
    return ModelError(text, "auth", provider=context.provider)


async def _check_status(response: httpx2.Response, context: RequestContext) -> None:
    """Raise what a response other than 200 means."""
    status = response.status_code
    if status == 200:
        return
    if 300 <= status < 400:
        location = redacted(response.headers.get("location", "nowhere"), context.secrets)
        text = f"{context.url} moved to {location}; put its new address into options.baseURL"
        raise context.error("not_found", text, status=status)
    body = await _read_at_most(response.aiter_bytes(), 256 * 1024)
    raise provider_errors.response_error(context, status, response.headers, body)


async def _read_at_most(body: AsyncIterator[bytes], most: int) -> bytes:
    out = bytearray()
    async for piece in body:
        out += piece
        if len(out) > most:
            break
    return bytes(out)


async def _is_stream(response: httpx2.Response) -> bool:
    """Return whether a response with another type is a stream all the same: some servers name none, or plain text."""
    kind = response.headers.get("content-type", "")
    return not any(format in kind for format in ("json", "html", "xml"))


async def _read_json(response: httpx2.Response, context: RequestContext) -> dict[str, Any]:
    """An answer that is no stream, as JSON."""
    text = (await _read_at_most(response.aiter_bytes(), MAX_JSON_BYTES)).decode("utf-8", "replace")
    if not text.strip():
        raise context.error("cut", "the answer is empty", status=200)
    try:
        value = json.loads(text)
    except ValueError:
        if text.lstrip().startswith("<"):
            raise provider_errors.web_page_error(context, 200, text) from None
        shown = redacted(text, context.secrets)[:SHOWN_CHARS]
        raise context.error("protocol", f"the answer is not JSON: {shown}", status=200) from None
    if isinstance(value, list) and value:
        value = value[-1]
    if not isinstance(value, dict):
        raise context.error("protocol", "the answer is not an object", status=200)
    if value.get("error"):
        raise provider_errors.stream_error(context, value)
    return value


async def _read_stream(
    response: httpx2.Response, reader: ResponseParser, context: RequestContext
) -> AsyncGenerator[Event, None]:
    assembler = reader.assembler
    body = response.aiter_bytes()
    first = True
    async with contextlib.aclosing(sse.events(body)) as events:
        while not reader.closed:
            try:
                # after the reason to stop only a count of tokens follows: no long wait for a server that stays open
                data = await (asyncio.wait_for(anext(events), USAGE_SECONDS) if reader.finished else anext(events))
            except StopAsyncIteration:
                break
            except Exception:
                if reader.finished:
                    break
                raise
            if data.strip() == b"[DONE]":
                reader.closed = True
                break
            reader.feed(_parse_event(data, context))
            first = False
            for event in assembler.take_events():
                yield event
    if reader.closed:
        await _drain(body)
    elif not reader.finished:
        text = "the answer is empty" if first else "the answer broke off before its end"
        raise context.error("cut", text, status=200)
    assembler.end_all()
    for event in assembler.take_events():
        yield event


def _parse_event(data: bytes, context: RequestContext) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        text = redacted(data.decode("utf-8", "replace"), context.secrets)
        if text.lstrip().startswith("<"):
            raise provider_errors.web_page_error(context, 200, text) from None
        problem, body = f"a part of the answer cannot be read: {text[:SHOWN_CHARS]}", text[: provider_errors.MAX_BODY]
        raise context.error("protocol", problem, status=200, retryable=True, body=body) from None
    if not isinstance(value, dict):
        raise context.error("protocol", "a part of the answer is not an object")
    if value.get("error"):
        raise provider_errors.stream_error(context, value)
    return value


async def _drain(body: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in body:
                pass


def _lower_names(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}
