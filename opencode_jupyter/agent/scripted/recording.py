"""A model that keeps what another one says, as a script that plays it again without a key."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from ...core.errors import ToolError
from ..errors import ModelError
from ..events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from ..model import Model, ModelInfo, Request
from .parts import Call, Part, Thought, Words
from .recorded import Recording
from .seen import Seen
from .turn_data import turn_of
from .writing import WrittenBlock


class Recorder:
    """Passes requests on to a model and keeps its answers in a file.

    The file is written before the first request and after every answer, so nothing is lost when the kernel dies. An
    answer is never lost for the file: if it can't be written any more, the end of the answer says so
    (``Finish.metadata["recording"]["error"]``), and it is tried again with the next one.

    Sessions that other agents open with the same recorder (the tool ``task``) go into the same file.

    Args:
        model: the model that answers.
        path: the file (``.yaml``).
        overwrite: begin the file anew. Else an existing one must be a recording of the same session, which is gone on
            with.
        secrets: texts that must not be kept (`scrub.secrets_of` finds a configuration's), beside the environment's keys
            and what looks like a secret.
    """

    def __init__(self, model: Model, path: Path, *, overwrite: bool = False, secrets: Iterable[str] = ()) -> None:
        self._model = model
        self.path = Path(path).absolute()
        self._overwrite = overwrite
        self._known = tuple(secrets)
        self._recording: Recording | None = None

    @property
    def info(self) -> ModelInfo:
        """Of the model that answers."""
        return self._model.info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask the model, and keep its answer.

        Raises:
            ModelError: the model's; or kind ``setup``: the file can't be written, or holds something else.
        """
        seen = Seen(request)
        recording = await self._opened(seen)
        block = recording.block_for(seen, self.info)
        said = _Said()
        try:
            async with aclosing(self._model.stream(request)) as stream:
                async for event in stream:
                    said.take(event)
                    if isinstance(event, Finish):
                        trouble = self._keep(recording, block, seen, said, event)
                        yield event if trouble is None else _with(event, trouble)
                    else:
                        yield event
        except ModelError as error:
            if error.kind != "script":
                self._keep(recording, block, seen, said, error)
            raise

    async def aclose(self) -> None:
        """Let go of the model."""
        await self._model.aclose()

    async def _opened(self, seen: Seen) -> Recording:
        if self._recording is not None:
            return self._recording
        await asyncio.to_thread(importlib.import_module, "yaml")
        recording = Recording.open(self.path, seen.session, overwrite=self._overwrite, secrets=self._known)
        try:
            recording.block_for(seen, self.info)
            recording.save()
        except ToolError as error:
            raise ModelError(f"The conversation can't be recorded: {error}", "setup") from error
        self._recording = recording
        return recording

    def _keep(
        self, recording: Recording, block: WrittenBlock | None, seen: Seen, said: _Said, end: Finish | ModelError
    ) -> str | None:
        if block is None:
            return None
        scrubber, parts = recording.scrubber(seen), said.parts()
        if isinstance(end, Finish):
            turn = turn_of(parts, scrubber, usage=end.usage, finish=end.reason)
        else:
            turn = turn_of(parts, scrubber, error=end, broken=said.broken)
        block.turns.append(turn)
        return recording.save_or_say()


class _Said:
    """An answer, gathered from its events."""

    def __init__(self) -> None:
        self._order: list[int] = []
        self._texts: dict[int, list[str]] = {}
        self._kinds: dict[int, type[Words | Thought] | Call] = {}
        self._open: set[int] = set()

    @property
    def broken(self) -> bool:
        """True if the last part was not whole."""
        return bool(self._order) and self._order[-1] in self._open

    def take(self, event: Event) -> None:
        match event:
            case TextStart(index) | TextDelta(index):
                self._begin(index, Words)
            case ReasoningStart(index) | ReasoningDelta(index):
                self._begin(index, Thought)
            case CallStart(index, id, name):
                self._begin(index, Call(name, "", id))
            case CallEnd(index, id, name, arguments):
                self._begin(index, Call(name, "", id))
                self._kinds[index], self._texts[index] = Call(name, "", id), [arguments]
                self._open.discard(index)
            case TextEnd(index) | ReasoningEnd(index):
                self._open.discard(index)
            case _:
                pass
        if isinstance(event, (TextDelta, ReasoningDelta, CallDelta)) and event.index in self._texts:
            self._texts[event.index].append(event.text)

    def _begin(self, index: int, kind: type[Words | Thought] | Call) -> None:
        if index not in self._kinds:
            self._kinds[index], self._texts[index] = kind, []
            self._order.append(index)
            self._open.add(index)

    def parts(self) -> list[Part]:
        """What was said, in the order it began; empty texts left out."""
        made: list[Part] = []
        for index in self._order:
            kind, text = self._kinds[index], "".join(self._texts[index])
            if isinstance(kind, Call):
                made.append(Call(kind.tool, text, kind.id))
            elif text:
                made.append(kind(text))
        return made


def _with(finish: Finish, trouble: str) -> Finish:
    return replace(finish, metadata={**(finish.metadata or {}), "recording": {"error": trouble}})
