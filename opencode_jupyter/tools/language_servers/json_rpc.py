"""JSON-RPC 2.0 as language servers speak it: messages after ``Content-Length`` headers, requests in both directions.

Source of the format: the Language Server Protocol's base protocol. Knows nothing of processes: it is given a function
that sends bytes, and is fed the bytes that come.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import ToolError

log = logging.getLogger(__name__)

MAX_MESSAGE = 128 << 20
"""Bytes of one message; more is taken for garbage."""
MAX_HEADER = 1 << 16
"""Bytes without a header after which what came is thrown away (a server that prints to stdout)."""
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
RETRY = frozenset({-32801, -32802})
"""Codes that say "ask again": the content was changed meanwhile, or the server put something else first."""
CANCEL = 1.0
"""Seconds in which a server has to answer a request that was cancelled; else it counts as hung."""
_HEADER = re.compile(rb"content-length:[ \t]*(\d{1,12})[ \t]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n", re.IGNORECASE)


class ServerFailedError(ToolError):
    """A language server ended, did not answer in time, or can't be started. It is started again at its next use."""


class HungError(TimeoutError):
    """A request was not answered in time, nor the word to cancel it."""


class RpcError(Exception):
    """A language server answered a request with an error.

    Attributes:
        code: JSON-RPC's or the protocol's.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def frame(message: dict[str, Any]) -> bytes:
    """A message with its header."""
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Frames:
    """Cuts what a server sends into messages; what is no message is passed over."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take in a chunk of any size; gives the messages that are now whole."""
        self._buffer += data
        while True:
            if self._length is None:
                header = _HEADER.search(self._buffer)
                if header is None:
                    del self._buffer[:-MAX_HEADER]
                    return
                self._length = int(header[1])
                del self._buffer[: header.end()]
                if self._length > MAX_MESSAGE:
                    log.warning("a language server announced %d bytes, which are not read", self._length)
                    self._length = None
                    continue
            if len(self._buffer) < self._length:
                return
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
            self._length = None
            try:
                message = json.loads(body, parse_constant=_nothing)
            except (ValueError, RecursionError):
                log.warning("a language server sent %d bytes that are not JSON", len(body))
                continue
            if isinstance(message, dict):
                yield message


def _nothing(name: str) -> None:
    """``NaN`` and the infinities, which Python writes and JSON does not have."""


class Connection:
    """Requests and notifications in both directions, on one event loop.

    Args:
        send: sends bytes to the server; may raise OSError or BufferError.
        on_request: answers a request of the server (method, params); raises `RpcError` for one it does not know.
        on_notification: receives the server's notifications.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        on_request: Callable[[str, Any], Any],
        on_notification: Callable[[str, Any], None],
    ) -> None:
        self._send = send
        self._on_request = on_request
        self._on_notification = on_notification
        self._frames = Frames()
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._closed: Exception | None = None

    def feed(self, data: bytes) -> None:
        """Take in what the server sent; answers wake who waits for them."""
        for message in self._frames.feed(data):
            try:
                self._dispatch(message)
            except Exception:
                log.exception("a language server's message could not be handled")

    async def request(self, method: str, params: Any, timeout: float) -> Any:
        """Ask the server and wait for its answer.

        Args:
            method: the protocol's name.
            params: its parameters.
            timeout: seconds; then, and when the caller is cancelled, the server receives a cancellation.

        Raises:
            RpcError: the server's answer is an error.
            TimeoutError: it did not answer in time; `HungError` if not within `CANCEL` seconds more either.
            ServerFailedError: the connection ended.
        """
        if self._closed is not None:
            raise self._closed
        self._next += 1
        number = self._next
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        try:
            self._send_message(message)
            await asyncio.wait([future], timeout=timeout)
            if future.done():
                return future.result()
            self._cancel(number)
            await asyncio.wait([future], timeout=CANCEL)
            if future.done():
                with contextlib.suppress(RpcError):
                    return future.result()  # late, but here
                raise TimeoutError
            raise HungError
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self._waiting.pop(number, None)

    def _cancel(self, number: int) -> None:
        with contextlib.suppress(ServerFailedError):
            self.notify("$/cancelRequest", {"id": number})

    def notify(self, method: str, params: Any) -> None:
        """Tell the server something.

        Raises:
            ServerFailedError: the connection ended.
        """
        if self._closed is not None:
            raise self._closed
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._send_message(message)

    def close(self, error: Exception) -> None:
        """The connection is over: every waiting request ends with `error`. The first error stays."""
        if self._closed is None:
            self._closed = error
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # looked at: who waited may be gone
        self._waiting.clear()

    def _send_message(self, message: dict[str, Any]) -> None:
        try:
            self._send(frame(message))
        except (OSError, BufferError) as error:
            raise self._closed or ServerFailedError(str(error)) from error

    def _dispatch(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._handle_response(number, message)
        elif "id" in message:
            self._handle_request(method, number, message.get("params"))
        else:
            self._on_notification(method, message.get("params"))

    def _handle_response(self, number: Any, message: dict[str, Any]) -> None:
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return  # a late answer to a request that was abandoned
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            number_of = code if isinstance(code, int) else INTERNAL_ERROR
            future.set_exception(RpcError(number_of, str(error.get("message") or "error")))
        else:
            future.set_result(message.get("result"))

    def _handle_request(self, method: str, number: Any, params: Any) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        try:
            answer["result"] = self._on_request(method, params)
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": str(error)}
        except Exception as error:
            log.exception("a language server's request %s failed", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(ServerFailedError):
            self._send_message(answer)
