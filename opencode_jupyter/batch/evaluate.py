"""`Workspace.evaluate`: cases, run by models, scored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cases import Case, Journal, cases_of
from .evaluation import Evaluation
from .map import Many
from .options import BatchSettings, EvaluateOptions
from .requests import BatchJob, jobs_of
from .results import Outcome, error_text
from .scorers import Score, Scorer, score, scorers_of

if TYPE_CHECKING:
    from ..core.host import ToolHost


@dataclass
class EvaluationRuns:
    """Prepares each run with its case's files and scores it afterwards. It can be sent to a worker.

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

    def case_of(self, index: int) -> tuple[Case, str, int]:
        """Case, model and repeat of a job."""
        of_case, repeat = divmod(index, self.repeats)
        case, model = divmod(of_case, len(self.models))
        return self.cases[case], self.models[model], repeat

    async def before(self, workspace: ToolHost, job: BatchJob) -> None:
        """Prepare the case's folder."""
        await self.case_of(job.index)[0].prepare(workspace)

    async def after(self, workspace: ToolHost, job: BatchJob, outcome: Outcome) -> None:
        """Score the answer; a scorer's own error is the row's."""
        if outcome.error is not None:
            return
        case = self.case_of(job.index)[0]
        answer = outcome if outcome.answer is None else outcome.answer
        scores: dict[str, Score] = {}
        for name, scorer in self.scorers.items():
            try:
                scores |= await score(name, scorer, case, answer, workspace)
            except Exception as error:
                outcome.extra["scorer"] = f"the scorer {name} failed: {error_text(error)}"
        outcome.extra["scores"] = scores


async def evaluate(workspace: ToolHost, cases: Iterable[Any], scorers: Any, **options: Any) -> Evaluation:
    """Run cases with one or several models, and score the answers.

    Args:
        workspace: whose configuration, tools and store are used.
        cases: `Case` objects, dicts with their names (``input``, ``expected``, ``files``, ``setup``, ``tags``, ``id``,
            ``metadata``), or bare prompts.
        scorers: functions of (case, answer, workspace), plain or async, that return a bool, a number, a `Score` or a
            dict of these; one, a list, or a dict of names. `batch.scorers` has some.
        **options: see `EvaluateOptions`.

    Raises:
        TypeError: something is no case or no scorer.
        ValueError: an option has a wrong value, there is nothing to do, or names are there twice.
        ToolError: `path` is no file of an evaluation, or can't be written.
        ToolAbortedError: it was stopped; the rows that were done are in `path`.
    """
    chosen = EvaluateOptions(**options)
    labelled = _labelled([chosen.model] if chosen.models is None else chosen.models)
    bench = EvaluationRuns(cases_of(cases), scorers_of(scorers), chosen.n, list(labelled))
    defaults = chosen.prompt_options()
    requests = [
        _request(case, labelled[label]) for case in bench.cases for label in bench.models for _ in range(chosen.n)
    ]
    jobs = jobs_of(requests, defaults, chosen.timeout)
    keys = [_key(bench, job.index, defaults, chosen.isolate) for job in jobs]
    journal = None if chosen.path is None else Journal(chosen.path)
    completed = {} if journal is None else {k: row for k, row in journal.rows.items() if row.get("error") is None}
    rows = {job.index: completed[key] for job, key in zip(jobs, keys, strict=True) if key in completed}
    missing = [job for job in jobs if job.index not in rows]
    random.Random(chosen.seed).shuffle(missing)  # noqa: S311 - an order, no secret
    settings = BatchSettings(chosen, before=bench.before, after=bench.after, keep=chosen.keep)
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


def _key(bench: EvaluationRuns, index: int, options: Mapping[str, Any], isolate: Any) -> str:
    case, model, repeat = bench.case_of(index)
    fields = [case.digest, model, repeat, options, isolate, sorted(bench.scorers)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=repr).encode()).hexdigest()[:24]


def _row(bench: EvaluationRuns, outcome: Outcome, key: str) -> dict[str, Any]:
    case, model, repeat = bench.case_of(outcome.index)
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
