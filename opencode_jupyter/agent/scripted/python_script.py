"""Scripts in Python: a generator function that yields what is said and is sent what came of it.

    from opencode_jupyter.agent.scripted import call, say

    def script(prompt):
        results = yield say("I look first.", call("read", filePath="shapes.py"))
        if "3.14" in results[0].output:
            yield call("edit", filePath="shapes.py", oldString="3.14", newString="math.pi")
        yield "Done."

It runs from its beginning at every request, with the results that the conversation holds, up to the turn that is
wanted. So it must not count, wait or write: the same results must lead it the same way.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ..errors import ModelError
from ..model import Request
from .parts import Say, as_say
from .script import Chosen, shown
from .seen import Prompt, Result, Seen

Turns = Generator[Any, list[Result], Any]
ScriptFunction = Callable[["Asked"], Generator[Any, list[Result], Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a Python script is told of the prompt.

    Attributes:
        text: the user's words.
        number: which prompt of the conversation it is, from 1.
        agent: who is to answer.
        tools: names of the tools that can be called.
        request: all that a model is sent.
    """

    text: str
    number: int
    agent: str
    tools: tuple[str, ...]
    request: Request


@dataclass(frozen=True, slots=True)
class PythonScript:
    """A script whose turns a generator function gives.

    Attributes:
        agents: functions for agents of their own.
        model: what `ModelInfo` is to say.
        speed: milliseconds between two pieces; None for the default.
    """

    name: str
    main: ScriptFunction
    agents: dict[str, ScriptFunction] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    speed: float | None = None
    path: Path | None = None
    strict: bool = False
    recording: dict[str, Any] | None = None

    def speaks_for(self, agent: str) -> bool:
        """Return whether it has turns for this agent alone."""
        return agent in self.agents

    def next(self, seen: Seen, prompt: Prompt, failures: int) -> Chosen:
        """The turn that comes after those the conversation holds.

        Raises:
            ModelError: kind ``script``: the function failed, yielded something else, or has no turn left.
        """
        function = self.agents.get(seen.agent, self.main)
        asked = Asked(prompt.text, prompt.number, seen.agent, seen.tools, seen.request)
        turns = self._begin(function, asked)
        try:
            passed, sent, before = 0, None, None
            while True:
                said = self._yielded(turns, sent, prompt, passed)
                last = passed >= len(prompt.steps)
                if said.fails and said.failure is not None:
                    times = said.failure.times
                    if last and (times is None or failures < times):
                        break
                    failures -= times or 0
                    sent = []
                    continue
                if last:
                    break
                sent, before = list(prompt.steps[passed].results), said
                passed += 1
            return Chosen(said, before)
        finally:
            turns.close()

    def _begin(self, function: ScriptFunction, asked: Asked) -> Turns:
        made: Any = function(asked)
        if inspect.isgenerator(made):
            return cast("Turns", made)
        kind = type(made).__name__
        raise self._error(f"{function.__name__} must be a generator (it must yield turns); it returned {kind}")

    def _yielded(self, turns: Turns, sent: list[Result] | None, prompt: Prompt, passed: int) -> Say:
        try:
            given = next(turns) if sent is None else turns.send(sent)
            frame = getattr(turns, "gi_frame", None)
            place = f"line {frame.f_lineno}" if frame is not None else "its end"
        except StopIteration:
            raise self._error(
                f"turn {passed + 1} of prompt {prompt.number} ({shown(prompt.text, 60)!r}) was requested, but "
                f"it yields only {passed}. Yield one more; one without calls ends the answer."
            ) from None
        except Exception as error:
            raise self._error(f"{_where(error, self.path)}{type(error).__name__}: {error}") from error
        try:
            return replace(as_say(given), place=place)
        except (TypeError, ValueError) as error:
            raise self._error(f"{place}: {error}") from error

    def _error(self, message: str) -> ModelError:
        return ModelError(f"The script {self.name}: {message}", "script", provider="scripted")


def python_script(path: Path) -> PythonScript:
    """The script in a Python file: its function ``script``; ``agents``, ``model`` and ``speed`` if it has them.

    Raises:
        ModelError: kind ``script``: it can't be read or run, or has no such function; the message names the line.
    """

    def wrong(message: str) -> ModelError:
        return ModelError(f"The script {path.name}: {message}", "script", provider="scripted")

    try:
        source = path.read_bytes()
        code = compile(source, str(path), "exec")
    except FileNotFoundError:
        raise ModelError(f"There is no script {path}", "script", provider="scripted") from None
    except OSError as error:
        raise wrong(f"it can't be read: {error.strerror or error}") from None
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise wrong(f"{line}{error.msg if isinstance(error, SyntaxError) else error}") from None
    module = ModuleType(f"opencode_jupyter_script_{path.stem}")
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses look their module up while it runs
    try:
        exec(code, module.__dict__)  # noqa: S102  the user named this file to be run
    except Exception as error:
        raise wrong(f"{_where(error, path)}{type(error).__name__}: {error}") from error
    finally:
        sys.modules.pop(module.__name__)
        if before is not None:
            sys.modules[module.__name__] = before
    main = getattr(module, "script", None)
    if not callable(main):
        raise wrong("it needs a generator function `def script(prompt):` that yields what the model says")
    agents = getattr(module, "agents", {})
    if not isinstance(agents, dict) or not all(callable(function) for function in agents.values()):
        raise wrong("`agents` must be a dict of an agent's name and its generator function")
    speed = getattr(module, "speed", None)
    if speed is not None and not (isinstance(speed, (int, float)) and speed >= 0):
        raise wrong("`speed` must be milliseconds between two pieces, 0 or more")
    model = getattr(module, "model", {})
    if not isinstance(model, dict):
        raise wrong("`model` must be a dict, as model: of a YAML script")
    return PythonScript(path.name, main, agents, model, speed, path)


def _where(error: BaseException, path: Path | None) -> str:
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if path and frame.filename == str(path)
    ]
    return f"line {lines[-1]}: " if lines else ""
