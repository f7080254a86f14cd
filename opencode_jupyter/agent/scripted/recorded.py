"""A recording as it grows: which prompt of which session an answer belongs to, and the file that holds it all."""

from __future__ import annotations

import hashlib
import re
import weakref
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import atomic
from ...core.errors import ToolError
from ..errors import ModelError
from ..model import ModelInfo
from . import nodes
from .hidden import SUMMARIES, TITLE
from .reading import script_of_node
from .scrub import Scrubber, Secrets
from .seen import Prompt, Seen
from .turn_data import results_of
from .writing import VERSION, WrittenBlock, WrittenTurn, script_text

_open: weakref.WeakValueDictionary[str, Recording] = weakref.WeakValueDictionary()
_secrets: dict[str, Secrets] = {}
"""By file, for as long as this process lives: the same secret keeps its placeholder from one prompt to the next."""


class Recording:
    """What one file is to hold.

    Attributes:
        session: the session it is a recording of; "" before the first request.
        agent: who answered its first prompt.
        prompts: of that session and that agent.
        agents: of other agents (those of the tool ``task``, and those that sum up).
    """

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self.path = path
        self.secrets = secrets
        self.session = ""
        self.agent = ""
        self.model: dict[str, Any] = {}
        self.date = ""
        self.prompts: list[WrittenBlock] = []
        self.agents: dict[str, list[WrittenBlock]] = {}
        self._scrubber: Scrubber | None = None
        self._stamp: tuple[int, int] | None = None

    # ------------------------------------------------------------------ opening

    @classmethod
    def open(cls, path: Path, session: str, *, overwrite: bool = False, secrets: Iterable[str] = ()) -> Recording:
        """The recording in a file, begun anew if there is none.

        Args:
            path: the file.
            session: the session that is to be recorded.
            overwrite: begin anew, whatever is there.
            secrets: texts that must not be kept, beside those that look like secrets.

        Raises:
            ModelError: kind ``setup``: the file holds something else.
        """
        key = str(path)
        known = _secrets.setdefault(key, Secrets())
        known.learn(secrets)
        made = _open.get(key)
        if made is None or overwrite or made._stamp != _stamp(path):  # else it was edited, or is gone
            made = cls(path, known)
            if path.exists() and not overwrite:
                made._load()
            _open[key] = made
        if made.session and session != made.session and session not in made._sessions():
            raise ModelError(
                f"{path} is a recording of another session ({made.session}). "
                "Record into another file, continue that session, or overwrite.",
                "setup",
            )
        return made

    def _load(self) -> None:
        words = f"{self.path} exists and is not a recording that can be continued. Use another file, or overwrite."
        try:
            root = nodes.read(self.path)
            script = script_of_node(root, self.path.name)
        except ModelError as error:
            raise ModelError(f"{words} ({error})", "setup") from error
        data = root.plain
        head = script.recording
        if not head or head.get("version") != VERSION:
            raise ModelError(words, "setup")
        self.session, self.agent = str(head.get("session") or ""), str(head.get("agent") or "")
        self.date, self.model = str(head.get("date") or ""), {"recorded": head.get("model"), **script.model}
        self.prompts = [_block(entry) for entry in data.get("prompts") or ()]
        self.agents = {
            name: [_block(entry) for entry in body.get("prompts") or ()]
            for name, body in (data.get("agents") or {}).items()
        }
        self.secrets.skip(self.path.read_text("utf-8"))
        self._stamp = _stamp(self.path)

    def _sessions(self) -> set[str]:
        return {str(block.recorded.get("session")) for block in self._blocks()}

    def _blocks(self) -> Iterator[WrittenBlock]:
        yield from self.prompts
        for blocks in self.agents.values():
            yield from blocks

    # ------------------------------------------------------------------ requests and answers

    def scrubber(self, seen: Seen) -> Scrubber:
        """What takes out of this session's texts what is not to be kept."""
        directory = str(seen.directory)
        if self._scrubber is None or self._scrubber.directory != directory:
            self._scrubber = Scrubber(self.secrets, directory)
        return self._scrubber

    def block_for(self, seen: Seen, info: ModelInfo) -> WrittenBlock | None:
        """Where the answer to a request belongs; what came back from the calls before it is noted on the way.

        An answer that was recorded already and is asked for again (after a revert) is dropped, with all behind it.
        """
        prompt = seen.prompt
        if prompt is None:
            return None
        if not self.session:
            self.session, self.agent = seen.session, seen.agent
            self.date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.model = _model(info)
        blocks = self._section(seen)
        for earlier in seen.prompts[-2:]:
            self._note_results(blocks, earlier, seen)
        found = self._find(blocks, prompt, seen)
        if found is not None:
            if found.cut(len(prompt.steps)):
                self._drop(blocks, seen, prompt.number + 1)
            return found
        self._drop(blocks, seen, prompt.number)
        where = {"session": seen.session, "number": prompt.number, "start": _start(seen)}
        made = WrittenBlock(self.scrubber(seen).text(prompt.text), where)
        if blocks is self.prompts and seen.agent != self.agent:
            made.agent = seen.agent
        if seen.agent in SUMMARIES:  # they are all asked in the same words
            made.number = prompt.number
        blocks.append(made)
        return made

    def _section(self, seen: Seen) -> list[WrittenBlock]:
        hidden = seen.agent == TITLE or seen.agent in SUMMARIES
        if not hidden and (seen.session == self.session or seen.agent == self.agent):
            return self.prompts
        return self.agents.setdefault(seen.agent, [])

    def _find(self, blocks: list[WrittenBlock], prompt: Prompt, seen: Seen) -> WrittenBlock | None:
        where = {"session": seen.session, "number": prompt.number, "start": _start(seen)}
        text = self.scrubber(seen).text(prompt.text)
        return next((block for block in blocks if block.recorded == where and block.prompt == text), None)

    def _drop(self, blocks: list[WrittenBlock], seen: Seen, number: int) -> None:
        """Drop the prompts from this one on: they were taken back."""
        start = _start(seen)
        blocks[:] = [
            block
            for block in blocks
            if block.recorded.get("session") != seen.session
            or block.recorded.get("start") != start
            or int(block.recorded.get("number") or 0) < number
        ]

    def _note_results(self, blocks: list[WrittenBlock], prompt: Prompt, seen: Seen) -> None:
        block = self._find(blocks, prompt, seen)
        if block is None:
            return
        for turn, step in zip(block.answered(), prompt.steps, strict=False):
            if step.results and "results" not in turn.data:
                turn.set_results(results_of(step.results, self.scrubber(seen)))

    # ------------------------------------------------------------------ the file

    def save(self) -> None:
        """Write the file, whole or not at all.

        Raises:
            ToolError: it can't be written.
        """
        recorded = self.model.get("recorded") or ""
        head = {"version": VERSION, "model": recorded, "date": self.date, "session": self.session, "agent": self.agent}
        model = {key: value for key, value in self.model.items() if key != "recorded"}
        agents = {name: blocks for name, blocks in self.agents.items() if any(block.turns for block in blocks)}
        text = script_text({"recording": head, "model": model}, self.prompts, agents)
        atomic.write(self.path, text.encode())
        self._stamp = _stamp(self.path)

    def save_or_say(self) -> str | None:
        """Write the file; what went wrong instead of an error, since an answer must not be lost for it."""
        try:
            self.save()
        except ToolError as error:
            return str(error)
        return None


def _block(entry: dict[str, Any]) -> WrittenBlock:
    turns = [WrittenTurn(turn, _answered(turn)) for turn in entry.get("turns") or () if isinstance(turn, dict)]
    recorded = dict(entry.get("recorded") or {})
    agent, number = str(entry.get("agent") or ""), entry.get("number")
    prompt = entry.get("prompt")
    text = None if prompt is None else str(prompt)
    return WrittenBlock(text, recorded, turns, agent, number if isinstance(number, int) else 0)


def _answered(turn: dict[str, Any]) -> bool:
    if "error" not in turn and not turn.get("cut"):
        return True
    calls = [part for part in turn.get("parts") or turn.get("calls") or () if isinstance(part, dict)]
    return len(calls) > bool(turn.get("cut")) and (turn.get("error") or {}).get("times") == 1


def _model(info: ModelInfo) -> dict[str, Any]:
    """What is kept of a model, so that its window and prices are the same when it is replayed."""
    made: dict[str, Any] = {"recorded": info.full, "name": info.name or info.full}
    for key in ("context", "output"):
        if getattr(info, key):
            made[key] = getattr(info, key)
    if info.cost is not None:
        cost = info.cost
        made["cost"] = {name: getattr(cost, name) for name in ("input", "output", "cache_read", "cache_write")}
    return made


def _start(seen: Seen) -> str:
    first = re.sub(r"\s+", " ", seen.prompts[0].text)
    return hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _stamp(path: Path) -> tuple[int, int] | None:
    """What tells that a file is as it was left; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
