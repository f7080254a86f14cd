"""Models without a provider, for lessons, notebooks and tests: scripts of turns, recordings, replays.

`ScriptedModel` and `load` play a script; `say`, `call` and `thought` make turns in Python; `Recorder` keeps a real
conversation as a script; `script_of` makes one of a stored session.
"""

from .export import script_of
from .model import ScriptedModel, load
from .parts import Call, Failure, Say, call, failure, say, thought
from .recording import Recorder
from .replay import Difference

__all__ = [
    "Call",
    "Difference",
    "Failure",
    "Recorder",
    "Say",
    "ScriptedModel",
    "call",
    "failure",
    "load",
    "say",
    "script_of",
    "thought",
]
