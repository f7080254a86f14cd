"""Options of `Workspace.map` and `Workspace.evaluate`, and the settings of a batch that are made of them."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .approvals import OnAsk
from .jobs import BatchJob
from .results import OnProgress, Outcome
from .run_folders import Isolate

if TYPE_CHECKING:
    from ..core.host import ToolHost


@dataclass(kw_only=True)
class RunOptions:
    """Options of many runs.

    Attributes:
        model: for prompts that name none: a name or a `Model`; None: the workspace's own.
        agent: for requests that name none.
        tools: which tools prompts may use, as in ``sessions.prompt``.
        format: the form of the answers: a JSON schema or a pydantic type; the objects are the outcomes' ``value``.
        system: more for the system prompt.
        max_steps: most steps of a prompt.
        timeout: seconds for each run, waiting for a person not counted.
        concurrency: runs at once; 8 in this process, all that there are workers for on Dask.
        client: a ``distributed.Client``, whose workers do the runs. Models must then be given by name.
        isolate: where a run works: ``copy``: in a copy of the project; ``worktree``: in a git worktree of its last
            commit; ``fresh``: in an empty folder; None: all in the same folder.
        on_ask: who answers permission requests: ``reject``, a function of the `PermissionRequest`, None: as for any
            other call.
        on_progress: called with a `Progress` at the start and after each run; left out, a notebook shows a line.

    Raises:
        ValueError: an option has a wrong value.
    """

    model: Any = None
    agent: str | None = None
    tools: Any = None
    format: Any = None
    system: str | None = None
    max_steps: int | None = None
    timeout: float | None = None
    concurrency: int | None = None
    client: Any = None
    isolate: Isolate | None = None
    on_ask: OnAsk = None
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        if self.isolate not in (None, "copy", "worktree", "fresh"):
            raise ValueError(f'isolate={self.isolate!r}: it takes "copy", "worktree" or None')
        if self.concurrency is not None and (not isinstance(self.concurrency, int) or self.concurrency < 1):
            raise ValueError(f"concurrency={self.concurrency!r}: it must be a whole number above 0")
        if self.on_ask is not None and self.on_ask != "reject" and not callable(self.on_ask):
            raise ValueError(f'on_ask={self.on_ask!r}: it takes "reject", a function of the request, or None')

    def prompt_options(self) -> dict[str, Any]:
        """The options of ``sessions.prompt`` among them, without the model."""
        return {name: getattr(self, name) for name in ("agent", "tools", "format", "system", "max_steps")}


@dataclass(kw_only=True)
class MapOptions(RunOptions):
    """Options of `Workspace.map`.

    Attributes:
        files: files that go with every prompt.
        on_error: ``keep``: a failed run's outcome carries its error; ``raise``: the first error ends all runs.
    """

    files: Sequence[Any] | None = None
    on_error: Literal["keep", "raise"] = "keep"

    def __post_init__(self) -> None:
        if self.on_error not in ("keep", "raise"):
            raise ValueError(f'on_error={self.on_error!r}: it takes "keep" or "raise"')
        super().__post_init__()


@dataclass(kw_only=True)
class EvaluateOptions(RunOptions):
    """Options of `Workspace.evaluate`. The case's files are put into the run's folder, whatever `isolate` is.

    Attributes:
        models: several models, side by side: a list, or a dict of labels and models.
        n: how often each model runs each case.
        keep: leave the folders of the runs where they are, under ``runs`` of the data folder.
        path: a file in which each row is saved as soon as it exists; rows that it already has are not run again,
            unless they failed, or their case, model or settings have changed.
        seed: for the order in which the cases are run.

    Raises:
        TypeError: both `model` and `models` are given.
        ValueError: an option has a wrong value.
    """

    models: Sequence[Any] | Mapping[str, Any] | None = None
    n: int = 1
    keep: bool = False
    path: str | Path | None = None
    seed: int = 0
    isolate: Isolate | None = "fresh"
    on_ask: OnAsk = "reject"

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or self.n < 1:
            raise ValueError(f"n={self.n!r}: it must be a whole number above 0")
        if self.model is not None and self.models is not None:
            raise TypeError("give model= or models=, not both")
        super().__post_init__()


Before = Callable[["ToolHost", BatchJob], Awaitable[None]]
After = Callable[["ToolHost", BatchJob, Outcome], Awaitable[None]]


@dataclass
class BatchSettings:
    """The settings of a batch.

    Attributes:
        options: where and by whom they are run.
        on_error: see `MapOptions`.
        before: called before each run (an evaluation puts the case's files into the folder).
        after: called after each run (an evaluation scores it).
        keep: leave fresh folders where they are.
        batch: the batch's name.
    """

    options: RunOptions
    on_error: Literal["keep", "raise"] = "keep"
    before: Before | None = None
    after: After | None = None
    keep: bool = True
    batch: str = field(default_factory=lambda: secrets.token_hex(6))
