"""Many runs at once (`Workspace.map`), on this machine or on Dask, and their evaluation (`Workspace.evaluate`)."""

from __future__ import annotations

from .cases import Case
from .evaluation import Evaluation, evaluate
from .map import Batch, map_runs
from .options import EvaluateOptions, MapOptions
from .results import Lost, Outcome, Progress, Results, RunTimeoutError, WorkerLostError
from .scorers import Score, command, contains, exact, files_equal, json_equal, model_graded, regex

__all__ = [
    "Batch",
    "Case",
    "EvaluateOptions",
    "Evaluation",
    "Lost",
    "MapOptions",
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
