"""Scorers, cases, statistics and the file of rows."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.batch import Case, Score, command, contains, exact, files_equal, json_equal, regex
from opencode_jupyter.batch.cases import cases_of
from opencode_jupyter.batch.evaluation import Journal, estimate, t_975
from opencode_jupyter.batch.scorers import score, scorers_of
from opencode_jupyter.core.errors import ToolError

pytestmark = pytest.mark.anyio


def answer_of(text: str, value: Any = None) -> Any:
    return SimpleNamespace(text=text, value=value)


def at(folder: Path) -> Any:
    return SimpleNamespace(directory=folder)


@pytest.mark.parametrize(
    ("scorer", "expected", "text", "value", "passes"),
    [
        (exact, "42", " 42\n", None, True),
        (exact, "42", "it is 42", None, False),
        (exact, {"a": 1}, "", {"a": 1}, True),
        (exact, 42, "42", None, True),
        (contains, "42", "it is 42.", None, True),
        (contains, ["a", "b"], "only a", None, False),
        (regex(r"\b4\d\b"), None, "it is 42.", None, True),
        (regex(), r"^no", "it is 42.", None, False),
        (json_equal, {"a": [1, 2], "b": 0}, '{"b": 0, "a": [1, 2]}', None, True),
        (json_equal, '{"a": 1}', 'Here:\n```json\n{"a": 1}\n```\n', None, True),
        (json_equal, {"a": 1}, "no json", None, False),
        (json_equal, {"a": 1}, "whatever", {"a": 2}, False),
    ],
)
async def test_what_comes_with_the_package(scorer: Any, expected: Any, text: str, value: Any, passes: bool) -> None:
    result = await score("s", scorer, Case("q", expected), answer_of(text, value), at(Path()))
    assert result["s"].good is passes
    assert bool(result["s"].why) is not passes


async def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.bin").write_bytes(b"\x00\xff")
    case = Case("q", {"a.txt": "one\n", "b.bin": b"\x00\xff", "gone.txt": None, "sub/c.txt": "three"})
    result = files_equal(case, answer_of(""), at(tmp_path))
    assert (result.value, result.passed) == (0.75, False)
    assert result.why == "not as expected: sub/c.txt"
    with pytest.raises(TypeError, match="dict of file names"):
        files_equal(Case("q", "text"), answer_of(""), at(tmp_path))


async def test_a_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    good = (await score("c", command("grep -q one a.txt"), Case("q"), answer_of(""), at(tmp_path)))["c"]
    bad = (await score("c", command("echo what is wrong; exit 3"), Case("q"), answer_of(""), at(tmp_path)))["c"]
    slow = (await score("c", command("sleep 30", timeout=0.2), Case("q"), answer_of(""), at(tmp_path)))["c"]
    assert good.good
    assert bad.why == "ended with 3: what is wrong"
    assert "124" in slow.why


async def test_own_scorers() -> None:
    async def later(case: Case, answer: Any, workspace: Any) -> dict[str, Any]:
        return {"length": len(answer.text), "kind": True}

    class Shout:
        def __call__(self, case: Case, answer: Any, workspace: Any) -> bool:
            return bool(answer.text.isupper())

    named = scorers_of([later, Shout(), exact])
    assert list(named) == ["later", "Shout", "exact"]
    assert await score("later", later, Case("q"), answer_of("abc"), at(Path())) == {
        "later.length": Score(3.0),
        "later.kind": Score(1.0),
    }
    assert (await score("x", Shout(), Case("q"), answer_of("ABC"), at(Path())))["x"].value == 1.0
    with pytest.raises(TypeError, match="must return a bool"):
        await score("x", lambda *_: "good", Case("q"), answer_of(""), at(Path()))
    with pytest.raises(TypeError, match="NaN"):
        await score("x", lambda *_: math.nan, Case("q"), answer_of(""), at(Path()))


@pytest.mark.parametrize(
    ("scorers", "error", "message"),
    [
        ([], ValueError, "at least one scorer"),
        ([exact, exact], ValueError, "two scorers are named exact"),
        ([regex], TypeError, r"call it, as in regex\(...\)"),
        ("exact", TypeError, "must be a function"),
    ],
)
def test_what_is_no_scorer(scorers: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        scorers_of(scorers)


def test_cases_in_every_form() -> None:
    @dataclass
    class Mine:
        input: str
        expected: str

    cases = cases_of(["a", {"input": "b", "tags": "easy", "id": "bee"}, Mine("c", "C"), Case("d")])
    assert [(case.id, case.input, case.expected, case.tags) for case in cases] == [
        ("0", "a", None, ()),
        ("bee", "b", None, ("easy",)),
        ("2", "c", "C", ()),
        ("3", "d", None, ()),
    ]


@pytest.mark.parametrize(
    ("cases", "error", "message"),
    [
        ([], ValueError, "no cases"),
        ("text", TypeError, "a list of cases"),
        ([{"inputs": "a"}], TypeError, "case 0 has inputs"),
        ([{"expected": "a"}], TypeError, "case 0 has no 'input'"),
        ([{"input": "a", "id": "x"}, {"input": "b", "id": "x"}], ValueError, "two cases have the id 'x'"),
        ([{"input": "a", "files": {"../a": ""}}], ValueError, "must lie inside"),
        ([{"input": "a", "files": {"/etc/a": ""}}], ValueError, "must lie inside"),
        ([3], TypeError, "case 0 is 3"),
    ],
)
def test_what_is_no_case(cases: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cases_of(cases)


async def test_files_and_setup_are_laid(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "run"
    (kept / "deep").mkdir(parents=True)
    folder.mkdir()
    (kept / "deep" / "x.txt").write_text("x")
    case = Case("q", files={"a/b.txt": "b", "c.bin": b"\xff", "tree": kept}, setup="cat a/b.txt > copied.txt", id="one")
    await case.prepare(at(folder))
    assert (folder / "copied.txt").read_text() == "b"
    assert (folder / "c.bin").read_bytes() == b"\xff"
    assert (folder / "tree" / "deep" / "x.txt").read_text() == "x"
    with pytest.raises(ToolError, match="case one: its setup ended with 4: no luck"):
        await Case("q", setup="echo no luck; exit 4", id="one").prepare(at(folder))
    with pytest.raises(ToolError, match="cannot be copied"):
        await Case("q", files=tmp_path / "none").prepare(at(folder))


def test_a_case_that_changes_is_another(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    case = Case("q", "e", {"a.txt": file})
    before = case.digest
    assert Case("q", "e", {"a.txt": file}).digest == before
    file.write_text("two")
    assert case.digest != before
    assert Case("q", "f", {"a.txt": file}).digest != case.digest


# ---------------------------------------------------------------------- statistics


def test_means_and_errors_by_hand() -> None:
    result = estimate({"a": [1.0], "b": [0.0], "c": [1.0], "d": [1.0]})
    assert result.mean == 0.75
    assert result.stderr == pytest.approx(0.25)  # sd 0.5 of four, over the root of four
    assert result.high == pytest.approx(0.75 + 3.182 * 0.25)
    assert estimate({"a": [1.0, 0.0], "b": [0.0, 0.0]}).mean == 0.25
    assert estimate({"a": [1.0, 0.0], "b": [0.0, 0.0]}).stderr == pytest.approx(0.25)
    assert estimate({"a": [1.0, 0.0, 1.0, 1.0]}).stderr == pytest.approx(0.25), "one case: between its repeats"
    assert estimate({"a": [1.0]}).stderr is None
    assert estimate({}).mean is None


@given(st.integers(1, 500))
def test_students_t_falls_to_the_normal(freedom: int) -> None:
    assert 1.9599 < t_975(freedom + 1) < t_975(freedom) or freedom == 30
    assert t_975(31) == pytest.approx(2.0395, abs=2e-4)
    assert t_975(120) == pytest.approx(1.9799, abs=2e-4)


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=2, max_size=20))
def test_repeats_do_not_count_as_cases(values: list[list[float]]) -> None:
    once = {str(i): [sum(pair) / 2] for i, pair in enumerate(values)}
    twice = {str(i): pair for i, pair in enumerate(values)}
    assert estimate(once) == estimate(twice)


# ---------------------------------------------------------------------- the file


def test_rows_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    journal = Journal(path)
    journal.add({"key": "a", "text": "ä\ud800"})
    journal.add({"key": "b", "error": None})
    assert Journal(path).rows.keys() == {"a", "b"}
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])  # cut in the middle of the last line
    cut = Journal(path)
    assert cut.rows.keys() == {"a"}
    cut.add({"key": "c"})
    assert Journal(path).rows.keys() == {"a", "c"}


@pytest.mark.parametrize("content", ["no json\n", json.dumps({"a": 1}) + "\n", "[1]\n"])
def test_another_file_is_not_written_into(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(content)
    with pytest.raises(ToolError, match="not a file of an evaluation"):
        Journal(path)
    assert path.read_text() == content


def test_the_former_path_still_works() -> None:
    from opencode_jupyter.agent.many import exact as former

    assert former is exact
