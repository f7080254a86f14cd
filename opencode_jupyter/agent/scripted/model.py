"""The model that a script plays."""

from __future__ import annotations

import functools
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..events import Event, Usage
from ..model import Cost, ModelInfo, Request
from ..turns import CallPiece, MediaPiece, ResultPiece, Turn
from . import hidden, nodes
from .parts import Say, Thought, Words
from .python_script import PythonScript, ScriptFunction, python_script
from .reading import MODEL, script_of_file, script_of_node
from .replay import Difference, differences
from .script import Chosen, Script, choose
from .scrub import Scrubber, Secrets, home_folder, user_name
from .seen import Seen
from .streaming import ids_for, speed_of, stream, written
from .templates import Scope

SUFFIXES = (".yaml", ".yml", ".json", ".py")
"""Files that can be a script."""
PER_TOKEN = 4
"""Characters of a token, for estimates."""
_TOOL_TOKENS = 50
"""Tokens that a tool's schema is taken to have, beside its description."""

AnyScript = Script | PythonScript


class ScriptedModel:
    """A model without a provider: it says what a script says.

    What it says next is told by the conversation in the request alone (see `seen`), but for failures that go away: they
    are counted for as long as the same request comes again.

    Args:
        turns: a list of turns for any prompt, each as in a YAML script (a dict, or a text) or made by `say`; or a
            generator function as in a Python script; or a `Script` that was read.
        prompts: in place of `turns`, entries as under ``prompts:``.
        agents: turns of agents of their own, as under ``agents:``.
        name: the model's id.
        speed: milliseconds between two pieces of a stream; 0 for no waiting.
        strict: a replay that differs from its recording is an error.
        info: what `ModelInfo` is to say, as under ``model:``.
        variables: for templates.

    Attributes:
        differences: what a replay found other than it was recorded, oldest first.

    Raises:
        ModelError: kind ``script``: there is a mistake in what was given.
    """

    def __init__(
        self,
        turns: Sequence[Any] | ScriptFunction | AnyScript | None = None,
        *,
        prompts: Sequence[Mapping[str, Any]] | None = None,
        agents: Mapping[str, Any] | None = None,
        name: str = "script",
        speed: float | None = None,
        strict: bool = False,
        info: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(turns, (Script, PythonScript)):
            self._script: AnyScript = turns
        elif callable(turns):
            functions = dict(agents or {})
            self._script = PythonScript(name, turns, functions, dict(info or {}), speed, strict=strict)
        else:
            top = {"turns": turns, "prompts": prompts, "agents": agents, "speed": speed, "strict": strict}
            top |= {"model": info, "variables": variables}
            given = {key: value for key, value in top.items() if value is not None}
            self._script = script_of_node(nodes.of(given, name), name)
        self._name = name
        self._stamp: tuple[int, int] | None = None
        self._info = _info(self._script, name)
        self._failures: weakref.WeakKeyDictionary[Turn, int] = weakref.WeakKeyDictionary()
        self._told: set[tuple[Any, ...]] = set()
        self._plains: tuple[str, Callable[[str], str]] | None = None
        self.differences: list[Difference] = []

    @property
    def info(self) -> ModelInfo:
        """Information about the model."""
        return self._info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Say the next turn.

        Raises:
            ModelError: kind ``script``: the script has no turn for this, or a mistake since it was edited; or what the
                script wants to fail with.
        """
        script = self._current()
        seen = Seen(request)
        chosen = self._next(script, seen)
        found = self._compare(script, chosen, seen)
        metadata: dict[str, Any] | None = {"replay": {"differences": [str(one) for one in found]}} if found else None
        said = chosen.said
        usage = said.usage if said.usage is not None else _estimate(request, said)
        ids = ids_for(said.calls, seen.call_ids, seen.turns + 1)
        seconds = speed_of(script.speed)
        try:
            async for event in stream(said, ids=ids, seconds=seconds, usage=usage, metadata=metadata):
                yield event
        except ModelError:
            if seen.key is not None:
                self._failures[seen.key] = self._failures.get(seen.key, 0) + 1
            raise

    async def aclose(self) -> None:
        """Nothing is held."""

    def _next(self, script: AnyScript, seen: Seen) -> Chosen:
        failures = self._failures.get(seen.key, 0) if seen.key is not None else 0
        said = hidden.answer(seen)
        if said is not None and not (script.speaks_for(seen.agent) and self._has_words(script, seen)):
            return Chosen(said, None)
        prompt = seen.prompt
        if prompt is None:
            text = f"The script {script.name}: the request holds no prompt to answer."
            raise ModelError(text, "script", provider="scripted")
        if isinstance(script, PythonScript):
            return script.next(seen, prompt, failures)
        directory = str(seen.directory)
        scope = Scope(prompt, seen.agent, seen.session, directory, home_folder(), user_name(), seen.tools)
        scope.variables.update(script.variables)
        plain = self._plain(directory) if script.recording is not None else str
        return script.body(seen.agent).next(script.name, seen, scope, failures, plain)

    def _has_words(self, script: AnyScript, seen: Seen) -> bool:
        """Return whether a script has something of its own for such a request."""
        if isinstance(script, PythonScript):
            return True
        blocks = script.agents[seen.agent].blocks
        return choose(blocks, seen, plain=self._plain(str(seen.directory))) is not None

    # ------------------------------------------------------------------ replays

    def _plain(self, directory: str) -> Callable[[str], str]:
        """Takes out of a text what a recorder takes out; prompts are looked at again and again."""
        if self._plains is None or self._plains[0] != directory:
            self._plains = directory, functools.lru_cache(256)(Scrubber(Secrets(), directory).text)
        return self._plains[1]

    def _compare(self, script: AnyScript, chosen: Chosen, seen: Seen) -> list[Difference]:
        """What of the conversation's end is not as it was recorded; each is told once.

        Raises:
            ModelError: kind ``script``, where the script is strict.
        """
        found: list[Difference] = []
        prompt = seen.prompt
        if prompt is None:
            return found
        if chosen.prompt_differs and not prompt.steps:
            found.append(Difference("prompt", chosen.place))
        if chosen.before is not None and chosen.before.results is not None:
            plain = self._plain(str(seen.directory))
            found += differences(chosen.before, prompt.steps[-1].results, plain)
        if found and script.strict:
            told = "\n".join(map(str, found))
            raise ModelError(f"The replay of {script.name} does not fit: {told}", "script", provider="scripted")
        for one in found:
            key = (seen.session, prompt.number, len(prompt.steps), one)
            if key not in self._told:
                self._told.add(key)
                self.differences.append(one)
        return found

    # ------------------------------------------------------------------ the file

    def _current(self) -> AnyScript:
        """The script, read again if its file has changed."""
        path = self._script.path
        if path is None:
            return self._script
        stamp = _stamp(path)
        if stamp != self._stamp or stamp is None:
            self._script = _read(path)
            self._info = _info(self._script, self._name)
            self._stamp = stamp
        return self._script

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: all but what only means something here."""
        return {**self.__dict__, "_failures": None, "_plains": None, "_told": None, "differences": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._failures, self._plains, self._told = weakref.WeakKeyDictionary(), None, set()
        self.differences = []

    def __repr__(self) -> str:
        return f"<scripted model {self._name}>"


def load(path: Path | str, *, name: str | None = None) -> ScriptedModel:
    """The model that a script plays.

    Args:
        path: a YAML (``.yaml``, ``.yml``, ``.json``) or Python (``.py``) file; it is read again when it has changed.
            The ending optional.
        name: the model's id; the file's name without its ending if left out.

    Raises:
        ModelError: kind ``script``: there is no such file, or it has a mistake; the message names line and column.
    """
    path = Path(path)
    if not path.suffix or not path.exists():
        with_suffix = (path.with_name(path.name + suffix) for suffix in SUFFIXES)
        path = next((one for one in with_suffix if one.is_file()), path)
    if path.suffix not in SUFFIXES and path.exists():
        text = f"A script is a file ending in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, not {path.name}"
        raise ModelError(text, "script", provider="scripted")
    stamp = _stamp(path)
    model = ScriptedModel(_read(path), name=name or path.stem)
    model._stamp = stamp
    return model


def _read(path: Path) -> AnyScript:
    return python_script(path) if path.suffix == ".py" else script_of_file(path)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _info(script: AnyScript, name: str) -> ModelInfo:
    given = {key: value for key, value in script.model.items() if key in MODEL}
    cost = given.pop("cost", None)
    given.setdefault("reasons", True)
    given.setdefault("documents", True)
    given.setdefault("name", name)
    return ModelInfo("scripted", name, media_in_results=True, cost=None if cost is None else Cost(**cost), **given)


def _estimate(request: Request, said: Say) -> Usage:
    """Tokens of a request and its answer, by their length."""
    sent = sum(map(len, request.system)) + sum(len(tool.description) for tool in request.tools)
    for turn in request.turns:
        for piece in turn.pieces:
            if isinstance(piece, CallPiece):
                sent += len(piece.name) + sum(len(str(value)) for value in piece.arguments.values())
            elif isinstance(piece, MediaPiece):
                sent += 1000 * PER_TOKEN
            else:
                sent += len(piece.text)
                sent += 1000 * PER_TOKEN * len(piece.media) if isinstance(piece, ResultPiece) else 0
    thought = sum(len(part.text) for part in said.parts if isinstance(part, Thought))
    words = sum(len(part.text) for part in said.parts if isinstance(part, Words))
    words += sum(len(call.tool) + len(written(call)) for call in said.calls)
    tools = _TOOL_TOKENS * len(request.tools)
    return Usage(sent // PER_TOKEN + tools, -(-words // PER_TOKEN), -(-thought // PER_TOKEN))
