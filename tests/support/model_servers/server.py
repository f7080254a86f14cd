"""An HTTP/1.1 server on a thread of its own that answers from a script and sees when a client goes away."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any, Self

from .script import Turn

Given = dict[str, Any] | Callable[["Request"], dict[str, Any]]


class Request:
    """What a client sent.

    Attributes:
        at: when it was whole, in `time.monotonic` seconds.
        answered: set when the answer is out whole.
        gone: set when the client has closed the connection before that.
        began: set when the first event of the answer has been written.
    """

    def __init__(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> None:
        self.method, self.path, self.headers, self.raw = method, path, headers, raw
        self.at = time.monotonic()
        self.answered, self.gone, self.began = threading.Event(), threading.Event(), threading.Event()
        self.gone_at = 0.0

    @cached_property
    def body(self) -> Any:
        """The JSON in it; None if there is none."""
        return json.loads(self.raw) if self.raw else None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation (OpenAI and Anthropic)."""
        return list(self.body["messages"])


class Server(ABC):
    """Serve a script: one turn for each request, in order, or what a function of the request gives.

    Args:
        turns: see `script.Turn`; items may be functions of the request.
        side: the answer to requests that offer no tools (such as for a title), which then use up no turn; None if they
            are as the others.
        models: what a list of models names.
    """

    def __init__(
        self,
        turns: Sequence[Given] | Callable[[Request], dict[str, Any]],
        *,
        side: dict[str, Any] | None = None,
        models: Sequence[str] = ("m",),
    ) -> None:
        self.turns, self.side, self.models = turns, side, list(models)
        self.requests: list[Request] = []
        self.open = 0
        """Connections that are open now."""
        self.connections = 0
        """Connections that were ever made."""
        self._number = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -------------------------------------------------------------- what a format adds

    prefix = ""
    """What stands between the address and the format's own paths."""

    @abstractmethod
    def events(self, turn: Turn, request: Request) -> list[bytes]:
        """The server-sent events of an answer."""

    @abstractmethod
    def whole(self, turn: Turn, request: Request) -> dict[str, Any]:
        """The answer to a client that wants no stream."""

    def streams(self, request: Request) -> bool:
        """Whether the client wants a stream."""
        return bool(request.body.get("stream"))

    # -------------------------------------------------------------- life

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._transports: set[asyncio.Transport] = set()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)

    # -------------------------------------------------------------- answers

    def turn(self, request: Request) -> Turn:
        """What is said to a request."""
        if self.side is not None and not request.body.get("tools"):
            return Turn(**self.side)
        number, self._number = self._number, self._number + 1
        if callable(self.turns):
            turn: Given = self.turns(request)
        elif number < len(self.turns):
            turn = self.turns[number]
        else:
            return Turn(status=400, body={"error": {"message": f"the script has {len(self.turns)} turns"}})
        fields = turn(request) if callable(turn) else turn
        return Turn(**{"number": number, **fields})

    async def answer(self, request: Request, write: Callable[[bytes], None]) -> bool:
        """Write the answer; whether the connection stays open."""
        if request.method == "GET" and request.path.endswith("/models"):
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
            write(_head(200, {"content-type": "application/json"}, json.dumps(listed).encode()))
            return True
        turn = self.turn(request)
        if turn.wait:
            await asyncio.sleep(turn.wait)
        plain = turn.plain()
        if plain is None and turn.raw is None and not self.streams(request):
            plain = json.dumps(self.whole(turn, request)).encode()
        if plain is not None:
            write(_head(turn.status, {"content-type": "application/json", **turn.headers}, plain))
            return True
        events = [] if turn.raw is not None else self.events(turn, request)
        write(_head(turn.status, {"content-type": "text/event-stream", **turn.headers}, None))
        await self._stream(turn.stream(events), turn, request, write)
        if turn.cut is not None:
            return False
        write(b"0\r\n\r\n")
        return True

    async def _stream(
        self, pieces: Iterable[bytes], turn: Turn, request: Request, write: Callable[[bytes], None]
    ) -> None:
        for at, piece in enumerate(pieces):
            if at and turn.delay:
                await asyncio.sleep(turn.delay)
            if piece:
                write(b"%x\r\n%b\r\n" % (len(piece), piece))
            request.began.set()
        if turn.hold is not None:
            await asyncio.sleep(3600)


def _head(status: int, headers: dict[str, str], body: bytes | None) -> bytes:
    lines = [f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}", *(f"{k}: {v}" for k, v in headers.items())]
    lines.append("transfer-encoding: chunked" if body is None else f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.task: asyncio.Task[None] | None = None
        self.request: Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server._transports.add(transport)
        self.server.open += 1
        self.server.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.server._transports.discard(self.transport)
        self.server.open -= 1
        if self.request is not None and not self.request.answered.is_set():
            self.request.gone_at = time.monotonic()
            self.request.gone.set()
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.task is None or self.task.done():
            self._next()

    def _next(self) -> None:
        head, separator, rest = (
            bytes(self.buffer).partition(b"\r\n\r\n") if b"\r\n\r\n" in self.buffer else (b"", b"", b"")
        )
        if not separator:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            parsed = _dechunk(rest)
            if parsed is None:
                return
            body, used = parsed
        else:
            used = int(headers.get("content-length", 0))
            if len(rest) < used:
                return
            body = rest[:used]
        del self.buffer[: len(head) + 4 + used]
        self.request = request = Request(method, path, headers, body)
        self.server.requests.append(request)
        self.task = asyncio.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            stays = await self.server.answer(request, self.transport.write)
        except Exception:  # a mistake in a script must not look like a slow server
            text = traceback.format_exc()
            self.transport.write(_head(500, {"content-type": "text/plain"}, text.encode()))
            stays = False
        if not stays:
            request.answered.set()
            self.transport.abort() if self.transport.get_write_buffer_size() else self.transport.close()
            return
        request.answered.set()
        self._loop_next()

    def _loop_next(self) -> None:
        self.task = None
        self._next()


def _dechunk(data: bytes) -> tuple[bytes, int] | None:
    """A chunked body and how many bytes it took; None if it is not whole."""
    body, at = b"", 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        size = int(data[at:end].split(b";")[0], 16)
        at = end + 2 + size + 2
        if at > len(data):
            return None
        body += data[end + 2 : end + 2 + size]
        if not size:
            return body, at


def serve_from_command_line(kind: Callable[[list[Any]], Server]) -> None:
    """Serve the script of the file named on the command line until standard input ends; print the base URL."""
    import sys
    from pathlib import Path

    script = json.loads(Path(sys.argv[1]).read_text())
    with kind(script["turns"] if isinstance(script, dict) else script) as server:
        print(server.url, flush=True)
        sys.stdin.read()
