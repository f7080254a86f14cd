"""Limits of outputs and their spill files."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import truncation
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.core.truncation import Truncation, cut_units, encode, output


def test_a_text_within_the_limits_passes_through(tmp_path: Path) -> None:
    result = output("a\nb\n", directory=tmp_path)
    assert (result.content, result.truncated, result.output_path) == ("a\nb\n", False, None)
    assert list(tmp_path.iterdir()) == []


def test_exactly_at_the_limits_is_within(tmp_path: Path) -> None:
    assert not output("a\n" * 1999, directory=tmp_path).truncated  # the empty piece after the last LF is line 2000
    assert output("a\n" * 2000, directory=tmp_path).truncated
    assert not output("x" * 51200, directory=tmp_path).truncated
    assert output("x" * 51201, directory=tmp_path).truncated
    assert not output("é" * 25600, directory=tmp_path).truncated
    assert output("é" * 25601, directory=tmp_path).truncated


@pytest.mark.parametrize(
    ("text", "options", "gap", "preview"),
    [
        ("\n".join(f"line {i}" for i in range(100)), {"max_lines": 10}, "...90 lines truncated...", 10),
        ("a" * 1000, {"max_bytes": 100}, "...1000 bytes truncated...", 0),
        ("x\n" * 3000, {}, "...1001 lines truncated...", 2000),
        ("\n".join("x" * 127 for _ in range(3000)), {}, "...332800 bytes truncated...", 400),
    ],
)
def test_worked_numbers(tmp_path: Path, text: str, options: dict[str, int], gap: str, preview: int) -> None:
    cut = output(text, directory=tmp_path, **options)
    preview_text, marker, hint = cut.content.split("\n\n")
    assert marker == gap
    assert preview_text == "\n".join(text.split("\n")[:preview])
    assert hint.startswith("The tool call succeeded but the output was truncated. Full output saved to: ")
    assert cut.output_path is not None
    assert Path(cut.output_path).read_text() == text


def test_the_end_can_be_kept_instead(tmp_path: Path) -> None:
    cut = output("\n".join(map(str, range(20))), 3, direction="tail", directory=tmp_path)
    assert cut.content.startswith("...17 lines truncated...\n\nThe tool call succeeded")
    assert cut.content.endswith("\n\n17\n18\n19")


def test_files_are_private_and_new(tmp_path: Path) -> None:
    first, again, second = (output(text, 1, directory=tmp_path).output_path for text in ("a\nb", "a\nb", "a\nc"))
    assert first == again, "the same output always has the same path"
    assert first is not None
    assert first != second
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "tool-output").st_mode) == 0o700
    assert Path(first).name.startswith("tool_")


def test_the_advice_depends_on_what_the_reader_may_use(tmp_path: Path) -> None:
    def second_line(rules: list[Rule] | None) -> str:
        agent = None if rules is None else SimpleNamespace(permission=rules)
        return output("a\nb", 1, agent=agent, directory=tmp_path).content.rpartition("\n")[2]  # type: ignore[arg-type]

    by_read = "Use Grep to search the full content or Read with offset/limit to view specific sections."
    assert second_line(None) == by_read
    assert second_line([Rule("task", "*", "deny")]) == by_read
    assert second_line([]).startswith("Use the Task tool")
    assert second_line([Rule("*", "*", "allow")]).startswith("Use the Task tool")


def test_limits_from_the_config_and_the_call(tmp_path: Path) -> None:
    limits = Truncation(tmp_path, {"max_lines": 2, "max_bytes": 10})
    assert limits.output("a\nb\nc").truncated
    assert limits.output("x" * 11).truncated
    assert not limits.output("x" * 11, max_bytes=20).truncated
    odd = Truncation(tmp_path, {"max_lines": True, "max_bytes": "many"})
    assert (odd.max_lines, odd.max_bytes) == (2000, 51200)


def test_cleanup_goes_by_the_last_change(tmp_path: Path) -> None:
    folder = tmp_path / "tool-output"
    folder.mkdir()
    long_ago = time.time() - 8 * 86400
    for name, old in (("tool_old", True), ("tool_recent", False), ("other", True)):
        (folder / name).write_text("x")
        if old:
            os.utime(folder / name, (long_ago, long_ago))
    limits = Truncation(tmp_path)
    assert limits.cleanup() == 1
    assert sorted(p.name for p in folder.iterdir()) == ["other", "tool_recent"]
    assert Truncation(tmp_path / "none").cleanup() == 0


def test_a_lone_surrogate_counts_three_bytes(tmp_path: Path) -> None:
    assert len(encode("a\ud800")) == 4
    assert not output("\ud800" * 17066, directory=tmp_path).truncated
    assert output("\ud800" * 17067, directory=tmp_path).truncated


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Truncation(tmp_path)
    (tmp_path / "tool-output").mkdir()
    descriptor = os.open("/dev/full", os.O_WRONLY)
    path = tmp_path / "tool-output" / "tool_x"
    path.touch()
    monkeypatch.setattr(limits, "create", lambda: (descriptor, str(path)))
    with pytest.raises(OSError, match="No space"):
        limits.output("x\n" * 100_000)
    assert not path.exists()


@given(st.text(max_size=60), st.integers(0, 40))
def test_units_are_cut_as_javascript_counts(text: str, units: int) -> None:
    cut = cut_units(text, units)
    assert text.startswith(cut)
    length = len(cut.encode("utf-16-le", "surrogatepass")) // 2
    assert length <= units
    if cut != text:
        following = text[len(cut)]
        assert length + (2 if following > "\uffff" else 1) > units


@given(st.text(max_size=400), st.integers(1, 20), st.integers(1, 200), st.sampled_from(["head", "tail"]))
def test_what_is_kept_is_whole_lines_within_the_limits(
    tmp_path_factory: pytest.TempPathFactory, text: str, lines: int, size: int, direction: truncation.Direction
) -> None:
    folder = tmp_path_factory.mktemp("data")
    cut = output(text, lines, size, direction, directory=folder)
    if not cut.truncated:
        assert cut.content == text
        return
    split = cut.content.partition if direction == "head" else cut.content.rpartition
    preview = split("\n\n...")[0] if direction == "head" else cut.content.split("\n\n", 2)[2]
    assert len(encode(preview)) <= size
    assert preview.count("\n") < lines
    readable = encode(text).decode()
    assert readable.startswith(preview) if direction == "head" else readable.endswith(preview)
