"""Jobs of a batch, made of the requests that a user writes; options of `Workspace.map` and `Workspace.evaluate`."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.option_checks import check_timeout
from .approvals import OnAsk
from .results import OnProgress, Outcome
from .run_folders import Isolate

if TYPE_CHECKING:
    from ..core.host import ToolHost

PROMPT_OPTIONS = ("model", "agent", "session", "files", "format", "max_steps", "tools", "system", "title")
"""Options of a prompt, as in ``sessions.prompt``."""
CALL_OPTIONS = ("agent", "session")
"""Options of a tool call."""
COMMON_OPTIONS = ("directory", "timeout")
TITLE_LENGTH = 60
"""Characters of a request that name its session."""


@dataclass(slots=True)
class BatchJob:
    """One request.

    Attributes:
        index: its place among the requests.
        request: as the user gave it.
        text: the prompt; "" for a tool call.
        tool: the tool to call; "" for a prompt.
        arguments: the call's.
        options: what else `PROMPT_OPTIONS` or `CALL_OPTIONS` names and the user gave.
        directory: where to run; None: the workspace's folder.
        timeout: seconds, waiting for a person not counted; None: no limit.
    """

    index: int
    request: Any
    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    directory: str | None = None
    timeout: float | None = None

    @property
    def title(self) -> str:
        """A name for its session."""
        if self.options.get("title"):
            return str(self.options["title"])
        text = " ".join((self.text or self.tool).split())
        return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"


def jobs_of(requests: Iterable[Any], defaults: Mapping[str, Any], timeout: float | None = None) -> list[BatchJob]:
    """Jobs from requests.

    Args:
        requests: texts; dicts with ``text`` or with ``tool`` and ``arguments``, and options of their own; pairs of a
            tool's name and its arguments.
        defaults: options of all that name none of their own.
        timeout: seconds for each that names none.

    Raises:
        TypeError: it is no list of requests, or one of them is invalid; the message says which and what is allowed.
    """
    if isinstance(requests, (str, bytes, Mapping)) or not isinstance(requests, Iterable):
        raise TypeError("map() takes a list of requests: map(['first', 'second'], model=...)")
    options = {name: value for name, value in defaults.items() if value is not None}
    return [_job(index, request, options, timeout) for index, request in enumerate(requests)]


def _job(index: int, request: Any, defaults: Mapping[str, Any], timeout: float | None) -> BatchJob:
    where = f"request {index}"
    if isinstance(request, str):
        fields: dict[str, Any] = {"text": request}
    elif isinstance(request, Mapping):
        fields = dict(request)
    elif isinstance(request, (tuple, list)) and len(request) == 2 and isinstance(request[0], str):
        fields = {"tool": request[0], "arguments": request[1]}
    else:
        raise TypeError(
            f"{where} is {request!r:.80}; a request is a text, a dict with 'text' or with 'tool' and 'arguments', "
            "or a pair of a tool's name and its arguments"
        )
    if ("text" in fields) == ("tool" in fields):
        raise TypeError(f"{where} needs either 'text' (a prompt) or 'tool' (a call): {fields!r:.120}")
    option_names = PROMPT_OPTIONS if "text" in fields else CALL_OPTIONS
    request_names = {"text"} if "text" in fields else {"tool", "arguments"}
    allowed = {*option_names, *COMMON_OPTIONS, *request_names}
    unknown = [str(name) for name in fields if name not in allowed]
    if unknown:
        raise TypeError(f"{where} has {', '.join(unknown)}; it takes {', '.join(sorted(allowed))}")
    job = BatchJob(index, request, timeout=fields.get("timeout", timeout))
    check_timeout(job.timeout, f"{where}: timeout")
    if fields.get("directory") is not None:
        job.directory = str(fields["directory"])
    job.options = {name: value for name, value in defaults.items() if name in option_names}
    job.options |= {name: fields[name] for name in option_names if fields.get(name) is not None}
    if "text" in fields:
        if not isinstance(fields["text"], str) or not fields["text"].strip():
            raise TypeError(f"{where} has no text")
        job.text = fields["text"]
        return job
    if not isinstance(fields["tool"], str) or not fields["tool"]:
        raise TypeError(f"{where}: 'tool' must be the name of a tool")
    arguments = fields.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise TypeError(f"{where}: the arguments of {fields['tool']} must be a dict, not {type(arguments).__name__}")
    job.tool, job.arguments = fields["tool"], dict(arguments)
    return job


# ---------------------------------------------------------------------- options


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
