"""`Workspace.evaluate`: cases, run by models, scored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .approvals import OnAsk
from .cases import Case, Journal, cases_of
from .evaluation import Evaluation
from .folders import Isolate
from .map import Many, Settings
from .requests import Job, jobs_of
from .results import OnProgress, Outcome, error_text
from .scorers import Score, Scorer, score, scorers_of

if TYPE_CHECKING:
    from ..core.host import ToolHost


@dataclass
class Bench:
    """What is done around each run: the case's files before, the scores after. It can be sent to a worker.

    Attributes:
        cases: all of them.
        scorers: by name.
        repeats: how often each model runs each case.
        models: labels, in the order of the jobs.
    """

    cases: list[Case]
    scorers: dict[str, Scorer]
    repeats: int
    models: list[str]

    def at(self, index: int) -> tuple[Case, str, int]:
        """Case, model and repeat of a job."""
        of_case, repeat = divmod(index, self.repeats)
        case, model = divmod(of_case, len(self.models))
        return self.cases[case], self.models[model], repeat

    async def before(self, workspace: ToolHost, job: Job) -> None:
        """Lay the case's files."""
        await self.at(job.index)[0].lay(workspace)

    async def after(self, workspace: ToolHost, job: Job, outcome: Outcome) -> None:
        """Score the answer; a scorer's own error is the row's."""
        if outcome.error is not None:
            return
        case = self.at(job.index)[0]
        answer = outcome if outcome.answer is None else outcome.answer
        scores: dict[str, Score] = {}
        for name, scorer in self.scorers.items():
            try:
                scores |= await score(name, scorer, case, answer, workspace)
            except Exception as error:
                outcome.extra["scorer"] = f"the scorer {name} failed: {error_text(error)}"
        outcome.extra["scores"] = scores


async def evaluate(
    workspace: ToolHost,
    cases: Iterable[Any],
    scorers: Any,
    *,
    model: Any = None,
    models: Sequence[Any] | Mapping[str, Any] | None = None,
    n: int = 1,
    agent: str | None = None,
    tools: Any = None,
    format: Any = None,
    system: str | None = None,
    max_steps: int | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    client: Any = None,
    isolate: Isolate | None = "fresh",
    keep: bool = False,
    path: str | os.PathLike[str] | None = None,
    seed: int = 0,
    on_ask: OnAsk = "reject",
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Run cases with one or several models, and score the answers.

    Args:
        workspace: whose configuration, tools and store are used.
        cases: `Case` objects, dicts with their names (``input``, ``expected``, ``files``, ``setup``, ``tags``, ``id``,
            ``metadata``), or bare prompts.
        scorers: functions of (case, answer, workspace), plain or async, that return a bool, a number, a `Score` or a
            dict of these; one, a list, or a dict of names. `batch.scorers` has some.
        model: who runs them; None: the workspace's own model.
        models: several, side by side: a list, or a dict of labels and models.
        n: how often each model runs each case.
        agent: as in ``sessions.prompt``.
        tools: as in ``sessions.prompt``.
        format: as in ``sessions.prompt``.
        system: as in ``sessions.prompt``.
        max_steps: as in ``sessions.prompt``.
        timeout: seconds for each run.
        concurrency: runs at once.
        client: a ``distributed.Client`` whose workers do the runs and the scoring.
        isolate: where a run works: ``fresh``: an empty folder with the case's files; ``copy``, ``worktree`` or None as
            for `Workspace.map`, the case's files laid over what is there.
        keep: leave the folders of the runs where they are, under ``runs`` of the data folder.
        path: a file in which each row is kept as soon as it is there; rows that it has already are not run again,
            unless they failed, or their case, model or settings are others now.
        seed: for the order in which the cases are run.
        on_ask: who answers asks; left out, each is refused, since nobody watches.
        on_progress: as for `Workspace.map`.

    Raises:
        TypeError: something is no case or no scorer.
        ValueError: there is nothing to do, or names are there twice.
        ToolError: `path` is no file of an evaluation, or can't be written.
        ToolAbortedError: it was stopped; the rows that were done are in `path`.
    """
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n={n!r}: it must be a whole number above 0")
    if model is not None and models is not None:
        raise TypeError("give model= or models=, not both")
    labelled = _labelled([model] if models is None else models)
    bench = Bench(cases_of(cases), scorers_of(scorers), n, list(labelled))
    options = {"agent": agent, "tools": tools, "format": format, "system": system, "max_steps": max_steps}
    requests = [_request(case, labelled[label]) for case in bench.cases for label in bench.models for _ in range(n)]
    jobs = jobs_of(requests, options, timeout)
    keys = [_key(bench, job.index, options, isolate) for job in jobs]
    journal = None if path is None else Journal(path)
    completed = {} if journal is None else {k: row for k, row in journal.rows.items() if row.get("error") is None}
    rows = {job.index: completed[key] for job, key in zip(jobs, keys, strict=True) if key in completed}
    missing = [job for job in jobs if job.index not in rows]
    random.Random(seed).shuffle(missing)  # noqa: S311 - an order, no secret
    settings = Settings(concurrency, client, "keep", on_ask, isolate, on_progress, bench.before, bench.after, keep)
    if missing:
        async for outcome in Many(workspace, missing, settings):
            row = rows[outcome.index] = _row(bench, outcome, keys[outcome.index])
            if journal is not None:
                await asyncio.to_thread(journal.add, row)
    return Evaluation([rows[index] for index in sorted(rows)], bench.models)


def _labelled(models: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(models, str) or not models:
        raise TypeError("models= takes a list of models, or a dict of labels and models; for a single one: model=")
    if isinstance(models, Mapping):
        return {str(label): model for label, model in models.items()}
    labels = [_label(model) for model in models]
    if len(set(labels)) < len(labels):
        raise ValueError("a model is listed twice: give a dict of labels and models")
    return dict(zip(labels, models, strict=True))


def _label(model: Any) -> str:
    if model is None:
        return "default"
    return model if isinstance(model, str) else str(model.info.full)


def _request(case: Case, model: Any) -> Any:
    """The case's request, with the model put in unless it is a tool call."""
    request = case.input
    if isinstance(request, str):
        request = {"text": request}
    if not isinstance(request, Mapping) or "tool" in request or model is None:
        return request
    return {**request, "model": model}


def _key(bench: Bench, index: int, options: Mapping[str, Any], isolate: Any) -> str:
    case, model, repeat = bench.at(index)
    fields = [case.digest, model, repeat, options, isolate, sorted(bench.scorers)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=repr).encode()).hexdigest()[:24]


def _row(bench: Bench, outcome: Outcome, key: str) -> dict[str, Any]:
    case, model, repeat = bench.at(outcome.index)
    scores: dict[str, Score] = outcome.extra.get("scores") or {}
    error = outcome.extra.get("scorer") if outcome.error is None else error_text(outcome.error)
    values = [result.value for result in scores.values()]
    good = error is None and bool(values)
    return {
        "key": key,
        "case": case.id,
        "model": model,
        "repeat": repeat,
        "score": sum(values) / len(values) if good else None,
        "passed": all(result.good for result in scores.values()) if good else None,
        "scores": {name: result.value for name, result in scores.items()},
        "why": {name: result.why for name, result in scores.items() if result.why},
        "text": outcome.text,
        "ended": outcome.ended,
        "steps": outcome.steps,
        "calls": outcome.calls,
        "tokens": outcome.tokens,
        "cost": outcome.cost,
        "grading_cost": sum(result.cost for result in scores.values()) or None,
        "seconds": round(outcome.seconds, 4),
        "error": error,
        "session": outcome.session,
        "attempts": outcome.attempts,
        "tags": list(case.tags),
    }
