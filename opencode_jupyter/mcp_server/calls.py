"""One call that a client waits for: its task, its questions to a person, its progress, its result.

There are two ways to ask a person through a client. Up to 2025-11-25 the server sends a request of its own while the
client waits for the call. From 2026-07-28 on it can't: the request for the call is answered with "input is needed", and
the client sends it again with the answers. Meanwhile the call itself goes on waiting here.

Text and attachments of a result are content. Title and metadata go into ``_meta``, not into ``structuredContent``:
clients that find the latter show their model that alone, and the text, which is what a tool says to a model, would be
lost.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
from mcp import MCPError, types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..core.call_state import Completed, Failed, Pending, Running
from ..core.repair import INVALID
from .forms import supports_forms

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from ..core.call import Call
    from ..core.call_state import ToolPart
    from ..core.result import Attachment, ToolResult

log = logging.getLogger(__name__)

LINGER = 5.0
"""Seconds a stopped call has to end its children; they need less than 3."""
PROGRESS_WIDTH = 200
"""Characters of a progress message."""
TITLE, METADATA = "opencode/title", "opencode/metadata"
"""Keys of a result's ``_meta``."""
METADATA_SIZE, ENTRY_SIZE = 4096, 1024
"""Characters of JSON that metadata may take, and each entry of it; what is larger repeats the text, and is left out."""
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take as pictures; others are embedded files."""
OUTPUTS_KEPT = 1000
"""Saved outputs remembered, the last ones."""
LARGEST = 5 * 1024 * 1024
"""Bytes of the largest saved output given whole; of a larger one the read tool gives the part that is asked for."""


class CantAskError(Exception):
    """The client can't be asked; the message is a clause that says why."""


class RunningCall:
    """A call in progress for a client.

    Args:
        call: not begun.
        key: the tool and the arguments.
        on_end: called when it has ended.

    Attributes:
        call: the call.
        key: what it was asked with: a request that is sent again must ask for the same.
    """

    def __init__(self, call: Call, key: tuple[str, dict[str, Any]], on_end: Callable[[], object]) -> None:
        self.call = call
        self.key = key
        self._context: ServerRequestContext[Any, Any] | None = None
        self._forms: dict[str, tuple[types.ElicitRequest, asyncio.Future[types.ElicitResult]]] = {}
        self._form_count = 0
        self._changed = asyncio.Event()
        self._steps = 0
        self._has_progress = False
        self._expiry: asyncio.TimerHandle | None = None
        call.on_update = self._updated
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(lambda _: self._changed.set())
        self._task.add_done_callback(lambda _: on_end())

    async def _run(self) -> None:
        # how it ended is in its part
        with contextlib.suppress(Exception):
            await self.call.run()

    # ------------------------------------------------------------------ the client's request

    async def attend(self, context: ServerRequestContext[Any, Any]) -> dict[str, types.InputRequest]:
        """Wait, on behalf of a client's request, until the call has ended or needs input.

        What cancels the request ends the call.

        Returns:
            What the client is to ask; nothing if the call has ended.
        """
        self._context = context
        try:
            while not self._task.done() and not self._forms:
                self._changed.clear()
                await self._report_progress(context)
                await self._changed.wait()
        except asyncio.CancelledError:
            self.call.abort("stopped")
            with anyio.CancelScope(shield=True):  # child processes end with it
                await asyncio.wait({self._task}, timeout=LINGER)
            raise
        finally:
            self._context = None
        return {key: request for key, (request, _) in self._forms.items()} if not self._task.done() else {}

    def expect_answers(self, seconds: float) -> None:
        """End the call unless `answer` is called in time."""
        self._expiry = asyncio.get_running_loop().call_later(seconds, self.call.abort, "unanswered")

    def answer(self, responses: types.InputResponses | None) -> None:
        """Take the answers that came with a request that was sent again; what is still open is asked once more."""
        if self._expiry is not None:
            self._expiry.cancel()
        for key, response in (responses or {}).items():
            if isinstance(response, types.ElicitResult) and key in self._forms:
                _, future = self._forms.pop(key)
                if not future.done():
                    future.set_result(response)

    # ------------------------------------------------------------------ asking

    async def ask(self, form: types.ElicitRequestFormParams) -> types.ElicitResult:
        """Put a form to the client's person and wait for it to come back.

        Raises:
            CantAskError: the client can't be asked, or its answer is none.
        """
        context = self._context
        if context is None:  # it is asked with the next answer
            return await self._ask_later(form)
        if not supports_forms(context.session.client_capabilities):
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
        self._form_count += 1
        key = f"ask{self._form_count}"
        future: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        self._forms[key] = (types.ElicitRequest(params=form), future)
        self._changed.set()
        try:
            return await future
        finally:
            self._forms.pop(key, None)

    # ------------------------------------------------------------------ progress

    def _updated(self, part: ToolPart) -> None:
        if isinstance(part.state, Running | Pending):
            self._has_progress = True
            self._changed.set()

    async def _report_progress(self, context: ServerRequestContext[Any, Any]) -> None:
        if not self._has_progress or (context.meta or {}).get("progress_token") is None:
            return
        self._has_progress = False
        self._steps += 1
        try:
            await context.session.report_progress(float(self._steps), message=_progress_message(self.call) or None)
        except Exception:
            log.debug("progress could not be reported", exc_info=True)


def _progress_message(call: Call) -> str:
    """What a call is doing, in a line: the end of its output, else its title."""
    if call.waiting:
        return "waiting for a person"
    state = call.part.state
    if not isinstance(state, Running):
        return ""
    output = (state.metadata or {}).get("output")
    if isinstance(output, str) and (lines := output.rstrip().rsplit("\n", 1)) and lines[-1].strip():
        return lines[-1].strip()[-PROGRESS_WIDTH:]
    return (state.title or "")[:PROGRESS_WIDTH]


# ---------------------------------------------------------------------- results


def result_of(part: ToolPart, outputs: SavedOutputs) -> types.CallToolResult:
    """The result of a call that has ended.

    Args:
        part: its state.
        outputs: remembers the whole output behind a cut one.
    """
    state = part.state
    if not isinstance(state, Completed):
        return error_result(state.error if isinstance(state, Failed) else "The call did not end")
    content: list[types.ContentBlock] = [types.TextContent(text=state.output)]
    content += [_content(attachment) for attachment in state.attachments]
    if part.result is not None and (link := outputs.link(part.result)) is not None:
        content.append(link)
    meta: dict[str, Any] = {TITLE: state.title}
    if metadata := _small_metadata(state.metadata):
        meta[METADATA] = metadata
    return types.CallToolResult(content=content, is_error=part.tool == INVALID, _meta=meta)


def error_result(text: str) -> types.CallToolResult:
    """A call that ended with an error: the model reads why, and its turn goes on."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _content(attachment: Attachment) -> types.ContentBlock:
    name = attachment.filename or attachment.id or "attachment"
    try:
        data = attachment.data
    except ValueError:
        return types.ResourceLink(uri=attachment.url, name=name, mime_type=attachment.mime)
    encoded = base64.b64encode(data).decode()
    if attachment.mime in PICTURES:
        return types.ImageContent(data=encoded, mime_type=attachment.mime)
    if attachment.mime.startswith("audio/"):
        return types.AudioContent(data=encoded, mime_type=attachment.mime)
    address = f"attachment:{quote(attachment.id)}/{quote(name)}"
    return types.EmbeddedResource(
        resource=types.BlobResourceContents(uri=address, mime_type=attachment.mime, blob=encoded)
    )


def _small_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """The entries that are JSON and small, as long as all together are."""
    small: dict[str, Any] = {}
    characters_left = METADATA_SIZE
    for key, value in metadata.items():
        try:
            size = len(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue
        if size <= min(characters_left, ENTRY_SIZE):
            small[key] = value
            characters_left -= size
    return small


class SavedOutputs:
    """The whole outputs behind cut ones, as resources by address. Nothing else can be read by its address."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, dict[str, Any]]] = {}

    def link(self, result: ToolResult) -> types.ResourceLink | None:
        """A link to a result's whole output, which can be read from now on; None if the result is whole."""
        path = result.output_path
        if not result.truncated or not isinstance(path, str):
            return None
        file = Path(path)
        try:
            size, address = file.stat().st_size, file.as_uri()
        except (OSError, ValueError):
            return None
        title = f"Whole output: {result.title}" if result.title else "Whole output"
        described: dict[str, Any] = {"uri": address, "name": file.name, "title": title, "mime_type": "text/plain"}
        self._files[address] = (file, described)
        while len(self._files) > OUTPUTS_KEPT:
            del self._files[next(iter(self._files))]
        return types.ResourceLink(**described, size=size)

    def list(self) -> list[types.Resource]:
        """Those that still exist, the newest first."""
        return [
            types.Resource(**described, size=file.stat().st_size)
            for file, described in reversed(self._files.values())
            if file.exists()
        ]

    def read(self, address: str) -> types.ReadResourceResult:
        """The text behind an address that `link` gave.

        Raises:
            MCPError: no output of this client is there, or it is too large.
        """
        if address not in self._files:
            raise _refusal(f"No such resource: {address}. Only saved outputs of this connection's calls can be read.")
        file, described = self._files[address]
        try:
            size = file.stat().st_size
            if size > LARGEST:
                raise _refusal(
                    f"{file} has {size} bytes, more than the {LARGEST} that are given at once; use the read tool with "
                    "offset and limit, or grep"
                )
            text = file.read_text("utf-8", "replace")
        except OSError as error:
            raise _refusal(f"{file} can't be read any more: {error.strerror}") from error
        content = types.TextResourceContents(uri=address, mime_type=described["mime_type"], text=text)
        return types.ReadResourceResult(contents=[content])


def _refusal(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)
