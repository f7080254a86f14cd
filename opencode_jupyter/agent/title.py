"""A session's title: the first line of its first prompt, or what a small model makes of it."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import aclosing
from typing import TYPE_CHECKING

from .errors import ModelError
from .events import TextDelta
from .masking import stream_masked
from .model import agent_request
from .turns import TextPiece, Turn

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.sessions import Session

log = logging.getLogger(__name__)

MAX_CHARS = 50
"""Characters of a title."""
TIMEOUT = 30.0
"""Seconds a small model has for one."""
PROMPT_CHARS = 4_000
"""Characters of the prompt that it is shown."""
_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)


async def title(workspace: ToolHost, session: Session, text: str) -> str:
    """The title for a session that begins with this prompt; no request is made for it.

    If the config names a ``small_model``, it is asked in the background, and its title takes this one's place when it
    comes, unless somebody has given the session another one meanwhile.
    """
    first = first_line(text)
    name = workspace.config.get("small_model")
    if isinstance(name, str) and name and text.strip():
        workspace.service(TitleWriter).ask(name, session, text, first)
    return first


def first_line(text: str) -> str:
    """The first line with text, cut at the end of a word."""
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    if len(line) <= MAX_CHARS:
        return line
    cut = line[: MAX_CHARS + 1].rpartition(" ")[0].rstrip(" ,;:.-")
    return cut or line[:MAX_CHARS]


class TitleWriter:
    """Titles that small models are writing for the sessions of a workspace."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, model: str, session: Session, text: str, instead_of: str) -> None:
        """Ask in the background."""
        task = asyncio.create_task(self._ask(model, session, text, instead_of))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Return when no title is being made any more."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self) -> None:
        """Cancel the requests."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, model: str, session: Session, text: str, instead_of: str) -> None:
        try:
            text_of_model = await asyncio.wait_for(self._ask_model(model, session, text), TIMEOUT)
        except (ModelError, TimeoutError) as error:
            log.info("no title from %s: %s", model, error)
            return
        except Exception:  # a title is not worth a failure
            log.exception("no title from %s", model)
            return
        better = first_line(_THOUGHT.sub("", text_of_model).strip()).strip("\"'`*# ")
        if better and session.title in ("", instead_of):
            session.title = better
            self._workspace.sessions.save(session)

    async def _ask_model(self, name: str, session: Session, text: str) -> str:
        from .models import resolve

        agent = self._workspace.agents.get("title")
        if agent is None:  # switched off
            return ""
        if agent.model is not None:
            name = f"{agent.model['providerID']}:{agent.model['modelID']}"
        model = await resolve(self._workspace, name)
        prompt = f"Write the title of a conversation that begins with this:\n\n{text[:PROMPT_CHARS]}"
        turns = (Turn("user", (TextPiece(prompt),)),)
        request = agent_request(self._workspace, session, "title", agent, system=(agent.prompt or "",), turns=turns)
        async with aclosing(stream_masked(self._workspace, model, request)) as stream:
            return "".join([event.text async for event in stream if isinstance(event, TextDelta)])
