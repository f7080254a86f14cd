"""Many runs at once (`Workspace.map`), on this machine or on Dask, and their evaluation (`Workspace.evaluate`)."""

from __future__ import annotations

from .cases import Case
from .evaluating import evaluate
from .evaluation import Evaluation
from .mapping import Many, map_runs
from .outcome import Lost, Outcome, Results, RunTimeoutError, WorkerLostError
from .progress import Progress
from .scorers import command, contains, exact, files_equal, json_equal, model_graded, regex
from .scoring import Score

__all__ = [
    "Case",
    "Evaluation",
    "Lost",
    "Many",
    "Outcome",
    "Progress",
    "Results",
    "RunTimeoutError",
    "Score",
    "WorkerLostError",
    "command",
    "contains",
    "evaluate",
    "exact",
    "files_equal",
    "json_equal",
    "map_runs",
    "model_graded",
    "regex",
]
