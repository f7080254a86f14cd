"""Scripts in Python: a generator function that yields answers and receives the results of their calls.

    from opencode_jupyter.agent.scripted import call, say

    def script(prompt):
        results = yield say("I look first.", call("read", filePath="shapes.py"))
        if "3.14" in results[0].output:
            yield call("edit", filePath="shapes.py", oldString="3.14", newString="math.pi")
        yield "Done."

It runs from its beginning at every request, with the results in the conversation, up to the turn that is needed. So it
must not count, wait or write: the same results must lead it the same way.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ..model import Request
from .answers import Say, as_say, missing_script_error, script_error
from .script import NextTurn, next_turn
from .script_conversation import AnsweredPrompt, CallResult, ScriptConversation

Turns = Generator[Any, list[CallResult], Any]
ScriptFunction = Callable[["ScriptPrompt"], Turns]


@dataclass(frozen=True, slots=True)
class ScriptPrompt:
    """The prompt, as a Python script receives it.

    Attributes:
        text: the user's text.
        number: of the prompt in the conversation, from 1.
        agent: the agent that answers.
        tools: names of the available tools.
        request: all that a model receives.
    """

    text: str
    number: int
    agent: str
    tools: tuple[str, ...]
    request: Request


@dataclass(frozen=True, slots=True)
class PythonScript:
    """A script whose turns come from a generator function.

    Attributes:
        name: for messages.
        main: for every agent that is not in `agents`.
        model, speed, strict: as in a YAML script.
        path: its file, if it has one.
    """

    name: str
    main: ScriptFunction
    agents: dict[str, ScriptFunction] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    speed: float | None = None
    path: Path | None = None
    strict: bool = False
    recording: None = None

    def answers(self, conversation: ScriptConversation, scrub: object = None) -> bool:
        """True if it has turns of its own for a request to title or summarise the conversation."""
        return conversation.agent in self.agents

    def next(
        self, conversation: ScriptConversation, prompt: AnsweredPrompt, failures: int, scrub: object = None
    ) -> NextTurn:
        """The turn that comes next.

        Raises:
            ModelError: kind ``script``: it is no generator, fails, yields something else, or yields too little.
        """
        function = self.agents.get(conversation.agent, self.main)
        value = ScriptPrompt(prompt.text, prompt.number, conversation.agent, conversation.tools, conversation.request)
        turns: Any = function(value)
        if not isinstance(turns, Generator):
            problem = f"must be a generator (it must yield turns); it returned {type(turns).__name__}"
            raise script_error(self.name, f"{function.__name__} {problem}")
        return next_turn(self.name, self._run_generator(turns), prompt, failures)

    def _run_generator(self, turns: Turns) -> Generator[Say, list[CallResult]]:
        results: list[CallResult] | None = None
        try:
            while True:
                try:
                    value = next(turns) if results is None else turns.send(results)
                except StopIteration:
                    return
                except Exception as error:
                    raise script_error(
                        self.name, f"{_line_prefix(error, self.path)}{type(error).__name__}: {error}"
                    ) from error
                frame = getattr(turns, "gi_frame", None)
                place = f"line {frame.f_lineno}" if frame is not None else "its end"
                try:
                    turn = replace(as_say(value), place=place)
                except (TypeError, ValueError) as error:
                    raise script_error(self.name, f"{place}: {error}") from error
                results = yield turn
        finally:
            turns.close()


def python_script(path: Path) -> PythonScript:
    """The script in a Python file: its function ``script``; ``agents``, ``model`` and ``speed`` if it has them.

    Raises:
        ModelError: kind ``script``: it cannot be read or run, or has no such function; the message names the line.
    """
    try:
        code = compile(path.read_bytes(), str(path), "exec")
    except FileNotFoundError:
        raise missing_script_error(path) from None
    except OSError as error:
        raise script_error(path.name, f"it cannot be read: {error.strerror or error}") from None
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        raise script_error(path.name, f"{line}{error.msg if isinstance(error, SyntaxError) else error}") from None
    module = ModuleType(f"opencode_jupyter_script_{path.stem}")
    module.__file__ = str(path)
    linecache.checkcache(str(path))
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses look their module up while it runs
    try:
        exec(code, module.__dict__)  # noqa: S102  the user named this file to be run
    except Exception as error:
        raise script_error(path.name, f"{_line_prefix(error, path)}{type(error).__name__}: {error}") from error
    finally:
        sys.modules.pop(module.__name__)
        if before is not None:
            sys.modules[module.__name__] = before
    return _check_module(path, vars(module))


def _check_module(path: Path, names: dict[str, Any]) -> PythonScript:
    main, speed = names.get("script"), names.get("speed")
    agents, model = names.get("agents", {}), names.get("model", {})
    if not callable(main):
        raise script_error(path.name, "it needs a generator function `def script(prompt):` that yields turns")
    if not isinstance(agents, dict) or not all(map(callable, agents.values())):
        raise script_error(path.name, "`agents` must be a dict of an agent's name and its generator function")
    if speed is not None and not (isinstance(speed, (int, float)) and speed >= 0):
        raise script_error(path.name, "`speed` must be milliseconds between two pieces, 0 or more")
    if not isinstance(model, dict):
        raise script_error(path.name, "`model` must be a dict, as model: of a YAML script")
    return PythonScript(path.name, main, agents, model, speed, path)


def _line_prefix(error: BaseException, path: Path | None) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if path and frame.filename == str(path)]
    return f"line {lines[-1]}: " if lines else ""
