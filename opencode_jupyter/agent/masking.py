"""Masks secrets on the way to a model and back; every request goes through here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from .events import CallDelta, CallEnd, CallStart, Event, ReasoningDelta, ReasoningEnd, TextDelta, TextEnd

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ..core.secrets import Masker
    from .model import Model, Request


def stream_masked(workspace: ToolHost, model: Model, request: Request) -> AsyncGenerator[Event, None]:
    """Ask a model. No known secret is sent to it; one in its answer is masked.

    The arguments of its calls are not masked here: a call masks what it shows of them.
    """
    masker = workspace.masker()
    return model.stream(request) if masker is None else _masked(masker, model, masker.value(request))


async def _masked(masker: Masker, model: Model, request: Request) -> AsyncGenerator[Event, None]:
    held: dict[int, TextDelta | ReasoningDelta] = {}
    changed: set[int] = set()
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta | ReasoningDelta):
                before = held.pop(event.index, None)
                whole = event.text if before is None else before.text + event.text
                ready, rest = masker.chunk(whole)
                if ready + rest != whole:
                    changed.add(event.index)
                if rest:
                    held[event.index] = replace(event, text=rest)
                if ready:
                    yield replace(event, text=ready)
                continue
            if not isinstance(event, CallStart | CallDelta | CallEnd):
                ending = [event.index] if isinstance(event, TextEnd | ReasoningEnd) else list(held)
                for index in ending:
                    if (rest_of := held.pop(index, None)) is not None:
                        last = masker.last(rest_of.text)
                        if last != rest_of.text:
                            changed.add(index)
                        yield replace(rest_of, text=last)
                if isinstance(event, ReasoningEnd) and event.index in changed:
                    yield replace(event, metadata=None)  # its signature no longer fits
                    continue
            yield event
