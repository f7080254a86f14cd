"""`Workspace.evaluate`: cases, run by models, scored; its rows and their file, a summary for each model, a plot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import html
import json
import math
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError
from ..core.result import data_frame
from .cases import Case, cases_of
from .jobs import BatchJob, create_jobs
from .map import Batch
from .options import BatchSettings, EvaluateOptions
from .results import Outcome, error_text
from .scorers import Score, Scorer, score, scorers_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from ..core.host import ToolHost


JOURNAL_VERSION = 1
"""The version of the form of the file of rows."""
T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 97.5 % for 1 to 30 degrees of freedom (any table of it); past that `t_975` has a series."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and how sure it is.

    Attributes:
        mean: of the cases' means; None if there is nothing.
        stderr: its standard error; None if there is only one value.
        low: lower end of the 95 % interval; None where `stderr` is.
        high: upper end.
    """

    mean: float | None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None


def t_975(freedom: int) -> float:
    """Student's t at 97.5 %: two-sided 95 % intervals."""
    if freedom < 1:
        raise ValueError("an interval needs at least two values")
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(by_case: Mapping[str, Sequence[float]]) -> Estimate:
    """Mean and standard error of scores.

    Repeats of a case are no cases of their own: the error is taken between the cases' means (as of clusters). With a
    single case it is taken between its repeats, and speaks of that case alone.
    """
    means = [sum(values) / len(values) for values in by_case.values() if values]
    if not means:
        return Estimate(None)
    values: Sequence[float] = means if len(means) > 1 else next(values for values in by_case.values() if values)
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return Estimate(mean)
    stderr = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    half = t_975(n - 1) * stderr
    return Estimate(mean, stderr, mean - half, mean + half)


FIRST_COLUMNS = ("case", "model", "repeat", "score", "passed")
LAST_COLUMNS = (
    *("text", "ended", "steps", "calls", "tokens", "cost", "grading_cost"),
    *("seconds", "error", "session", "tags"),
)


class Evaluation:
    """Rows of an evaluation, one for each case, model and repeat.

    Attributes:
        rows: with ``scores`` and ``why`` (explanations) by scorer.
        models: in the order they were given.
        scorers: names of all scores there are.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], models: Sequence[str]) -> None:
        self.rows = list(rows)
        self.models = list(models)
        self.scorers = list(dict.fromkeys(name for row in self.rows for name in row["scores"]))

    @property
    def records(self) -> list[dict[str, Any]]:
        """One flat dict a row: case, model, repeat, score (the mean of its scores), passed, each score by its scorer's
        name, text, ended, steps, calls, tokens, cost, grading_cost, seconds, error, session, tags.
        """
        return [
            {name: row[name] for name in FIRST_COLUMNS}
            | {name: row["scores"].get(name) for name in self.scorers}
            | {name: row[name] for name in LAST_COLUMNS}
            for row in self.rows
        ]

    @property
    def df(self) -> pandas.DataFrame:
        """`records` as a data frame.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.records, ".df", ".records")

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The rows without a score, because the run or a scorer failed."""
        return [row for row in self.rows if row["error"] is not None]

    @property
    def summary_records(self) -> list[dict[str, Any]]:
        """One dict a model: n (rows with a score), cases, errors, mean, stderr, low and high (the 95 % interval of the
        mean), pass_rate, each scorer's mean, cost (US dollars of all its rows), tokens, steps and seconds (of a run, on
        average). Rows that failed count as errors, not as bad answers.
        """
        return [self._summarise(model) for model in self.models]

    @property
    def summary(self) -> pandas.DataFrame:
        """`summary_records` as a data frame, a row for each model.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.summary_records, ".summary", ".summary_records").set_index("model")

    def _summarise(self, model: str) -> dict[str, Any]:
        rows = [row for row in self.rows if row["model"] == model]
        scored = [row for row in rows if row["error"] is None]
        overall = estimate(_by_case(scored, lambda row: row["score"]))
        costs = [row["cost"] for row in rows if row["cost"] is not None]
        record: dict[str, Any] = {
            "model": model,
            "n": len(scored),
            "cases": len({row["case"] for row in scored}),
            "errors": len(rows) - len(scored),
            "mean": overall.mean,
            "stderr": overall.stderr,
            "low": overall.low,
            "high": overall.high,
            "pass_rate": _mean([float(row["passed"]) for row in scored]),
        }
        for name in self.scorers:
            record[name] = _mean([row["scores"][name] for row in scored if name in row["scores"]])
        record["cost"] = sum(costs) if costs else None
        for name in ("tokens", "steps", "seconds"):
            record[name] = _mean([row[name] for row in scored])
        return record

    def plot(self, ax: Axes | None = None) -> Axes:
        """Each model's mean score as a bar, with its 95 % interval.

        Args:
            ax: where to draw; a new figure if left out.

        Raises:
            ImportError: matplotlib is not installed.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plot() needs matplotlib: pip install opencode-jupyter[plot]") from error
        if ax is None:
            _, ax = pyplot.subplots(figsize=(max(4.0, 1.4 * len(self.models)), 3.2), layout="constrained")
        summary = self.summary_records
        means = [record["mean"] or 0.0 for record in summary]
        halves = [0.0 if record["stderr"] is None else record["high"] - record["mean"] for record in summary]
        ax.bar(self.models, means, yerr=halves, capsize=4, color="#5b8def", ecolor="#333333")
        ax.set_ylabel("mean score, 95 % interval")
        ax.set_ylim(0.0, max([1.0, *(mean + half for mean, half in zip(means, halves, strict=True))]) * 1.05)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _repr_html_(self) -> str:
        records = self.summary_records
        names = list(records[0]) if records else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_format(value))}</td>" for value in record.values()) + "</tr>"
            for record in records
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        lines = [f"<evaluation: {len(self.rows)} rows, {len(self.errors)} errors>"]
        lines += [
            f"  {record['model']}: mean {_format(record['mean'])} ± {_format(record['stderr'])}, "
            f"passed {_format(record['pass_rate'])} of {record['n']}"
            for record in self.summary_records
        ]
        return "\n".join(lines)


def _by_case(rows: Sequence[dict[str, Any]], value: Any) -> dict[str, list[float]]:
    values_by_case: dict[str, list[float]] = {}
    for row in rows:
        values_by_case.setdefault(row["case"], []).append(value(row))
    return values_by_case


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _format(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------- running the cases


@dataclass
class CaseRuns:
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
        ValueError: an option has a wrong value, there is nothing to do, or a name is used twice.
        ToolError: `path` is no file of an evaluation, or can't be written.
        ToolAbortedError: it was stopped; the rows that were done are in `path`.
    """
    run_options = EvaluateOptions(**options)
    models_by_label = _models_by_label([run_options.model] if run_options.models is None else run_options.models)
    runs = CaseRuns(cases_of(cases), scorers_of(scorers), run_options.n, list(models_by_label))
    defaults = run_options.prompt_options()
    requests = [
        _request(case, models_by_label[label])
        for case in runs.cases
        for label in runs.models
        for _ in range(run_options.n)
    ]
    jobs = create_jobs(requests, defaults, run_options.timeout)
    keys = [_key(runs, job.index, defaults, run_options.isolate) for job in jobs]
    journal = None if run_options.path is None else Journal(run_options.path)
    completed = {} if journal is None else {k: row for k, row in journal.rows.items() if row.get("error") is None}
    rows = {job.index: completed[key] for job, key in zip(jobs, keys, strict=True) if key in completed}
    missing = [job for job in jobs if job.index not in rows]
    random.Random(run_options.seed).shuffle(missing)  # noqa: S311 - an order, no secret
    settings = BatchSettings(run_options, before=runs.before, after=runs.after, keep=run_options.keep)
    if missing:
        async for outcome in Batch(workspace, missing, settings):
            row = rows[outcome.index] = _row(runs, outcome, keys[outcome.index])
            if journal is not None:
                await asyncio.to_thread(journal.add, row)
    return Evaluation([rows[index] for index in sorted(rows)], runs.models)


def _models_by_label(models: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
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


def _key(runs: CaseRuns, index: int, options: Mapping[str, Any], isolate: Any) -> str:
    case, model, repeat = runs.case_of(index)
    fields = [case.digest, model, repeat, options, isolate, sorted(runs.scorers)]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=repr).encode()).hexdigest()[:24]


def _row(runs: CaseRuns, outcome: Outcome, key: str) -> dict[str, Any]:
    case, model, repeat = runs.case_of(outcome.index)
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


# ---------------------------------------------------------------------- the file of rows


class Journal:
    """A file of rows.

    A line that a crash cut off is left out when it is read, and the next row begins a new line.

    Raises:
        ToolError: the file can't be read, or is none of an evaluation.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        self.rows: dict[str, dict[str, Any]] = {}
        try:
            data = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ToolError(f"the evaluation's file can't be read: {error}") from error
        self._new = not data
        self._torn = bool(data) and not data.endswith(b"\n")
        for number, line in enumerate(data.split(b"\n")):
            row: Any = None
            with contextlib.suppress(ValueError):
                row = json.loads(line)
            is_object = isinstance(row, dict)
            if number == 0 and line and not (is_object and row.get("evaluation") == JOURNAL_VERSION):
                raise ToolError(f"{self.path} is not a file of an evaluation (of this release); choose another path=")
            if is_object and isinstance(row.get("key"), str):
                self.rows[row["key"]] = row

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row: it is on the disk when this returns.

        Raises:
            ToolError: it can't be written.
        """
        lines = [json.dumps({"evaluation": JOURNAL_VERSION})] if self._new else [""] if self._torn else []
        lines.append(json.dumps(row, default=str, ensure_ascii=False))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ToolError(f"the evaluation's row can't be kept in {self.path}: {error}") from error
        self._new = self._torn = False
        self.rows[row["key"]] = row
