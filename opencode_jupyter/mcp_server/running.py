"""One call that a client waits for: its task, its asks, its progress.

There are two ways to ask a person through a client. Up to 2025-11-25 the server sends a request of its own while the
client waits for the call. From 2026-07-28 on it can't: the request for the call is answered with "input is needed", and
the client sends it again with the answers. Meanwhile the call itself goes on waiting here: it is parked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
from mcp import MCPError, types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..core.state import Pending, Running
from .asks import can_ask

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from ..core.call import Call
    from ..core.state import ToolPart

log = logging.getLogger(__name__)

LINGER = 5.0
"""Seconds a stopped call has to end its children; they need less than 3."""
SHOWN = 200
"""Characters of a progress message."""


class CantAskError(Exception):
    """The client can't be asked; the message is a clause that says why."""


class RunningCall:
    """A call in progress for a client.

    Args:
        call: not begun.
        key: the tool and the arguments.
        ended: called when it has ended.

    Attributes:
        call: the call.
        key: what it was asked with: a request that is sent again must ask for the same.
    """

    def __init__(self, call: Call, key: tuple[str, dict[str, Any]], ended: Callable[[], object]) -> None:
        self.call = call
        self.key = key
        self._context: ServerRequestContext[Any, Any] | None = None
        self._open: dict[str, tuple[types.ElicitRequest, asyncio.Future[types.ElicitResult]]] = {}
        self._asked = 0
        self._news = asyncio.Event()
        self._steps = 0
        self._told = ""
        self._telling: asyncio.Task[None] | None = None
        call.on_update = self._updated
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: ended())

    async def _run(self) -> None:
        # how it ended is in its part
        with contextlib.suppress(Exception):
            await self.call.run()

    @property
    def done(self) -> bool:
        """True if it has ended."""
        return self._task.done()

    # ------------------------------------------------------------------ the client's request

    async def attend(self, context: ServerRequestContext[Any, Any]) -> dict[str, types.InputRequest]:
        """Wait, on behalf of a client's request, until the call has ended or needs input.

        What cancels the request ends the call.

        Returns:
            What the client is to ask; nothing if the call has ended.
        """
        self._context = context
        try:
            while not self.done and not self._open:
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                try:
                    await asyncio.wait({self._task, news}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
            if self._telling is not None:
                await self._telling
        except asyncio.CancelledError:
            await self.stop()
            raise
        finally:
            self._context = None
        return {key: request for key, (request, _) in self._open.items()} if not self.done else {}

    def answer(self, responses: types.InputResponses | None) -> None:
        """Take the answers that came with a request that was sent again; what is still open is asked once more."""
        for key, response in (responses or {}).items():
            if isinstance(response, types.ElicitResult) and key in self._open:
                _, waiting = self._open.pop(key)
                if not waiting.done():
                    waiting.set_result(response)

    async def stop(self, reason: str = "stopped") -> None:
        """End the call and wait for its end, child processes with it."""
        self.call.abort(reason)
        with anyio.CancelScope(shield=True):
            await asyncio.wait({self._task}, timeout=LINGER)

    # ------------------------------------------------------------------ asking

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Put a form to the client's person and wait for it to come back.

        Raises:
            CantAskError: the client can't be asked, or its answer is none.
        """
        context = self._context
        if context is None:
            return await self._ask_later(form)  # parked: it is asked with the next answer
        if not can_ask(context.session.client_capabilities):
            raise CantAskError("the client cannot ask a person (it does not support elicitation)")
        if context.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return await self._ask_later(form)
        if not context.session.can_send_request:
            raise CantAskError("this client's connection cannot carry questions")
        try:
            return await context.session.elicit_form(
                form.message, form.requested_schema, related_request_id=context.request_id
            )
        except (MCPError, ValueError) as error:
            raise CantAskError(f"the client could not ask a person: {error}") from error

    async def _ask_later(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        self._asked += 1
        key = f"ask{self._asked}"
        waiting: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        self._open[key] = (types.ElicitRequest(params=form), waiting)
        self._news.set()
        try:
            return await waiting
        finally:
            self._open.pop(key, None)

    # ------------------------------------------------------------------ progress

    def _updated(self, part: ToolPart) -> None:
        context = self._context
        if context is None or not isinstance(part.state, Running | Pending):
            return
        if (context.meta or {}).get("progress_token") is None:
            return
        self._told = _told(self.call)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(context))

    async def _tell(self, context: ServerRequestContext[Any, Any]) -> None:
        said: str | None = None
        while said != self._told:
            said = self._told
            self._steps += 1
            try:
                await context.session.report_progress(float(self._steps), message=said or None)
            except Exception:
                log.debug("progress could not be reported", exc_info=True)
                return


def _told(call: Call) -> str:
    """What a call is doing, in a line: the end of its output, else its title."""
    if call.asked:
        return "waiting for a person"
    state = call.part.state
    if not isinstance(state, Running):
        return ""
    output = (state.metadata or {}).get("output")
    if isinstance(output, str) and (lines := output.rstrip().rsplit("\n", 1)) and lines[-1].strip():
        return lines[-1].strip()[-SHOWN:]
    return (state.title or "")[:SHOWN]


class Parked:
    """Calls that wait for their client to come back with answers.

    Args:
        limit: seconds after which a call whose client did not come back is ended.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._calls: dict[str, tuple[RunningCall, asyncio.TimerHandle]] = {}

    def put(self, running: RunningCall, make_token: Callable[[], str]) -> str:
        """Keep a call; the token gives it back, once."""
        token = make_token()
        timer = asyncio.get_running_loop().call_later(self._limit, self._expired, token)
        self._calls[token] = (running, timer)
        return token

    def take(self, token: str, key: tuple[str, dict[str, Any]]) -> RunningCall | None:
        """The call behind a token; None if there is none, or it was another one that was asked for."""
        kept = self._calls.get(token)
        if kept is None or kept[0].key != key:
            return None
        running, timer = self._calls.pop(token)
        timer.cancel()
        return running

    def _expired(self, token: str) -> None:
        running, _ = self._calls.pop(token)
        running.call.abort("unanswered")
