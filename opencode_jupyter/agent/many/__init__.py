"""Many runs at once (`Workspace.map`), on this machine or on Dask, and their evaluation (`Workspace.evaluate`)."""

from __future__ import annotations

from .mapping import Many, map_runs
from .outcome import Lost, Outcome, Results, RunTimeoutError, WorkerLostError
from .progress import Progress

__all__ = ["Lost", "Many", "Outcome", "Progress", "Results", "RunTimeoutError", "WorkerLostError", "map_runs"]
