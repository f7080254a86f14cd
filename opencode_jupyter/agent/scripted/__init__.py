"""Models without a provider, for lessons, notebooks and tests: scripts of turns, recordings, replays.

`ScriptedModel` and `load` play a script; `say`, `call` and `thought` make turns in Python; `Recorder` records a real
conversation as a script; `script_of` makes one from a stored session.
"""

from .answers import Call, Failure, Say, call, failure, say, thought
from .model import ScriptedModel, load
from .recorder import Recorder
from .replay import Difference
from .session_script import script_of

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
