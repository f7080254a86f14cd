"""Evaluations from cases to a summary: models side by side, repeats, errors, going on from a file."""

from __future__ import annotations

import asyncio
import builtins
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Request
from opencode_jupyter.batch import Case, command, contains, exact, files_equal, model_graded
from opencode_jupyter.core.errors import ToolAbortedError
from tests.support.saying import Saying, prompt_of, results_of, slow
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({"permission": "allow", "snapshot": False})


CASES = [
    {"input": "1 + 1", "expected": "2", "id": "one"},
    {"input": "2 + 2", "expected": "4", "id": "two", "tags": ["even"]},
    {"input": "3 + 3", "expected": "6", "id": "three"},
    {"input": "4 + 4", "expected": "8", "id": "four"},
]


def right(request: Request) -> str:
    return str(eval(prompt_of(request)))  # the test's own sums


def often(request: Request) -> str:
    return "9" if "3" in prompt_of(request) else right(request)


async def test_models_side_by_side(ws: Workspace) -> None:
    evaluation = await ws.evaluate(CASES, [exact, contains], models={"good": Saying(right), "weak": Saying(often)}, n=2)
    df = evaluation.df
    assert len(df) == 16
    assert list(df.columns[:7]) == ["case", "model", "repeat", "score", "passed", "exact", "contains"]
    assert list(df["case"][:4]) == ["one"] * 4
    assert df[df["model"] == "good"]["score"].tolist() == [1.0] * 8
    assert df["session"].nunique() == 16
    summary = evaluation.summary
    assert list(summary.index) == ["good", "weak"]
    weak = summary.loc["weak"]
    assert (weak["n"], weak["cases"], weak["errors"], weak["mean"], weak["pass_rate"]) == (8, 4, 0, 0.75, 0.75)
    assert weak["stderr"] == pytest.approx(0.25), "four cases, not eight"
    assert weak["low"] == pytest.approx(0.75 - 3.182 * 0.25)
    assert weak["cost"] == pytest.approx(8 * 120e-6)
    assert [row["tags"] for row in evaluation.rows if row["case"] == "two"] == [["even"]] * 4
    assert "<th>pass_rate</th>" in evaluation._repr_html_()
    assert "weak: mean 0.75 ± 0.25, passed 0.75 of 8" in repr(evaluation)


async def test_files_setup_and_a_command_in_a_folder_of_its_own(ws: Workspace, tmp_path: Path) -> None:
    def say(request: Request) -> Any:
        done = len(results_of(request))
        steps: list[Any] = [[("read", {"filePath": "a.txt"})], [("write", {"filePath": "a.txt", "content": "new"})]]
        return steps[done] if done < 2 else "done"

    folders: list[Path] = []

    def look(case: Case, answer: Any, workspace: Workspace) -> bool:
        folders.append(workspace.directory)
        return len(answer.calls) == 2

    cases = [
        Case("change it", {"a.txt": "new"}, {"a.txt": "old"}, "cp a.txt before.txt"),
        Case("change it", {"a.txt": "newer"}, {"a.txt": "old"}),
    ]
    evaluation = await ws.evaluate(cases, [files_equal, command("grep -q old before.txt"), look], model=Saying(say))
    assert [row["scores"] for row in evaluation.rows] == [
        {"files_equal": 1.0, "command": 1.0, "look": 1.0},
        {"files_equal": 0.0, "command": 0.0, "look": 1.0},
    ]
    assert [row["passed"] for row in evaluation.rows] == [True, False]
    assert "not as expected: a.txt" in evaluation.rows[1]["why"]["files_equal"]
    assert len(set(folders)) == 2
    assert not any(folder.exists() for folder in folders)
    assert list(ws.directory.iterdir()) == []
    kept = await ws.evaluate(cases[:1], exact, model=Saying(say), keep=True)
    session = ws.sessions.get(kept.rows[0]["session"])
    assert (Path(session.directory) / "a.txt").read_text() == "new"


async def test_what_fails_is_no_bad_answer(ws: Workspace) -> None:
    def say(request: Request) -> str:
        if prompt_of(request).startswith("1"):
            raise ModelError("no such thing", "bad_request")
        return right(request)

    def picky(case: Case, answer: Any, workspace: Workspace) -> bool:
        if case.id == "two":
            raise RuntimeError("can't say")
        return True

    evaluation = await ws.evaluate(CASES, [exact, picky], model=Saying(say))
    assert [row["error"] for row in evaluation.rows] == [
        "no such thing",
        "the scorer picky failed: RuntimeError: can't say",
        None,
        None,
    ]
    assert len(evaluation.errors) == 2
    summary = evaluation.summary_records[0]
    assert (summary["n"], summary["errors"], summary["mean"]) == (2, 2, 1.0)


async def test_it_goes_on_from_its_file(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    broken = {"3 + 3"}

    def say(request: Request) -> str:
        if prompt_of(request) in broken:
            raise ModelError("not now", "bad_request")
        return right(request)

    model = Saying(say)
    first = await ws.evaluate(CASES, exact, model=model, path=path)
    assert len(first.errors) == 1
    assert model.asked == 4
    broken.clear()
    again = await ws.evaluate(CASES, exact, model=model, path=path)
    assert model.asked == 5, "only the one that failed"
    assert [row["score"] for row in again.rows] == [1.0] * 4
    changed = [{**CASES[0], "expected": "3"}, *CASES[1:]]
    third = await ws.evaluate(changed, exact, model=model, path=path, n=2)
    assert model.asked == 5 + 2 + 3, "the changed case twice, the second repeat of the others"
    assert [row["score"] for row in third.rows[:2]] == [0.0, 0.0]


async def test_stopped_on_the_way_it_goes_on(ws: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    slowly = Saying(lambda request: slow(30 if "3" in prompt_of(request) else 0, right(request)))
    task = asyncio.create_task(ws.evaluate(CASES, exact, model=slowly, path=path))
    while not path.exists() or len(path.read_text().splitlines()) < 4:
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, ToolAbortedError)):
        await task
    quick = Saying(right)
    evaluation = await ws.evaluate(CASES, exact, model=quick, path=path)
    assert quick.asked == 1
    assert evaluation.summary_records[0]["mean"] == 1.0


async def test_the_order_is_the_seeds(ws: Workspace) -> None:
    async def order(seed: int) -> list[str]:
        prompts: list[str] = []

        def say(request: Request) -> str:
            prompts.append(prompt_of(request))
            return right(request)

        await ws.evaluate(CASES, exact, model=Saying(say), seed=seed, concurrency=1)
        return prompts

    first = await order(1)
    assert await order(1) == first
    assert sorted(first) == sorted(case["input"] for case in CASES)
    assert first != await order(2)


async def test_a_model_grades(ws: Workspace) -> None:
    requests: list[Request] = []

    def grade(request: Request) -> Any:
        requests.append(request)
        good = "<answer>\n2\n</answer>" in prompt_of(request)
        name = next(tool.name for tool in request.tools)
        return [(name, {"reason": "it is two" if good else "it is not", "score": 1 if good else 0.2})]

    scorer = model_graded(Saying(grade, "judge"), "The answer is 2.")
    evaluation = await ws.evaluate(CASES[:2], scorer, model=Saying(right))
    assert [row["scores"]["model_graded"] for row in evaluation.rows] == [1.0, 0.2]
    assert evaluation.rows[0]["why"] == {"model_graded": "it is two"}
    assert evaluation.rows[0]["grading_cost"] == pytest.approx(120e-6)
    assert all(len(request.tools) == 1 for request in requests), "the grade is all it can give"
    children = [session for session in ws.sessions.list() if session.title == "Grading"]
    assert {session.parent_id for session in children} == {row["session"] for row in evaluation.rows}


async def test_the_plot(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    evaluation = await ws.evaluate(CASES, exact, models={"good": Saying(right), "weak": Saying(often)})
    axes = evaluation.plot()
    assert [bar.get_height() for bar in axes.patches] == [1.0, 0.75]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["good", "weak"]
    _, own = pyplot.subplots()
    assert evaluation.plot(own) is own
    pyplot.close("all")
    real = builtins.__import__

    def missing(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"opencode-jupyter\[plot\]"):
        evaluation.plot()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, ValueError, "n=0"),
        ({"model": "a", "models": ["b"]}, TypeError, "not both"),
        ({"models": "a"}, TypeError, "takes a list of models"),
        ({"models": ["a", "a"]}, ValueError, "twice"),
    ],
)
async def test_bad_options(ws: Workspace, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        await ws.evaluate(CASES, exact, **options)
