"""What a patch makes of files, without any tool around it."""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import ToolError
from opencode_jupyter.text.patch import Chunk, Line, PatchError, PatchMismatchError, apply, apply_chunks


def body(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(*lines: str) -> str:
    return body("*** Update File: f", *lines)


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        (b"a\nb\nc\n", ["@@", " a", "-b", "+B"], b"a\nB\nc\n"),
        (b"a\nb\nc\nd\n", ["@@", " a", "-b", "+B", "@@", " c", "-d", "+D"], b"a\nB\nc\nD\n"),
        (b"f\n x\ng\n x\n", ["@@ g", "- x", "+ y"], b"f\n x\ng\n y\n"),
        (b"class A\n  f\n  x\nclass B\n  f\n  x\n", ["@@ class B", "@@ f", "-  x", "+  y"],
         b"class A\n  f\n  x\nclass B\n  f\n  y\n"),
        (b"a\nb\n", ["@@", "+c", "+d"], b"a\nb\nc\nd\n"),
        (b"a\nb\n", ["@@ a", "+c"], b"a\nb\nc\n"),
        (b"a\n\n", ["@@", "+c"], b"a\nc\n\n"),
        (b"a\nx\n", ["@@", "+1", "@@", "-a", "+A", "@@", "+2"], b"A\nx\n1\n2\n"),
        (b"", ["@@", "+first"], b"first\n"),
        (b"no newline", ["@@", "-no newline", "+has one"], b"has one\n"),
        (b"a\nb", ["@@", "-a"], b"b\n"),
        (b"a\n", ["@@", "-a"], b""),
        (b"a\n\nb\n\n", ["@@", "-b", "+c"], b"a\n\nc\n\n"),
        (b"\n", ["@@", " ", "+x"], b"\nx\n"),
        (b"x\ny\nx\n", ["@@", "-x", "+end", "*** End of File"], b"x\ny\nend\n"),
        (b"x\ny\n", ["@@", "-x", "+X", "*** End of File"], b"X\ny\n"),
        (b"a\nb\n", ["@@", " a", "-b", "+c", " "], b"a\nc\n"),  # an empty last line that is not there
        (b"a\nb\n", ["@@", " a", "-b", "+c", " ", "+d"], b"a\nc\n\nd\n"),
        (b"a\nb\n", ["@@ -1,2 +1,2 @@", " a", "-b", "+c"], b"a\nc\n"),
        (b"  a\nb  \n", ["@@", " a", "-b", "+c"], b"a\nc\n"),  # context takes the patch's spelling
        (b"\tif x:\n\t\ty\n", ["@@", "     if x:", "-        y", "+\t\tz"], b"    if x:\n\t\tz\n"),
        (b"a\n\nb\na\nb\n", ["@@", " a", "", "-b", "+c"], b"a\n\nc\na\nb\n"),  # an unsigned empty line is context
        (b"a\nb\n", ["@@", " a", "", "-b", "+c"], b"a\nc\n"),  # ... or nothing
        (b"def f():\n    x\n", ["@@", "def f():", "-    x", "+    y"], b"def f():\n    y\n"),
        ("say “hi” — now\n".encode(), ["@@", '-say "hi" - now', "+z"], b"z\n"),
        (b"a\r\nb\r\nc\r\n", ["@@", " a", "-b", "+B", "+X"], b"a\r\nB\r\nX\r\nc\r\n"),
        (b"a\r\nb", ["@@", "-b", "+B", "+C"], b"a\r\nB\r\nC\r\n"),
        (b"a\r\nb\r\n", ["@@", "+c"], b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", ["@@", "-b", "+B", "@@", "-c", "+C"], b"a\r\nB\nC\r\n"),
        (b"a\nb\r\nc\n", ["@@", " a", "+x", " b", "+y", " c"], b"a\nx\nb\r\ny\r\nc\n"),
        (b"\xef\xbb\xbfa\nb\n", ["@@", "-a", "+A"], b"\xef\xbb\xbfA\nb\n"),
        (b"caf\xe9\nb\n", ["@@", " caf\ufffd", "-b", "+B"], b"caf\xe9\nB\n"),
        (b"caf\xe9\nb\n", ["@@", "-b", "+\u00e9"], b"caf\xe9\n\xc3\xa9\n"),
        (b"unchanged", [], b"unchanged"),
    ],
)  # fmt: skip
def test_updates(tmp_path: Path, before: bytes, lines: list[str], after: bytes) -> None:
    (tmp_path / "f").write_bytes(before)
    (change,) = apply(update(*lines), tmp_path)
    assert (tmp_path / "f").read_bytes() == after
    assert change.type == "update" and change.path == change.target == tmp_path / "f"
    # the same patch from a model that writes CRLF
    (tmp_path / "f").write_bytes(before)
    apply(update(*lines).replace("\n", "\r\n"), tmp_path)
    assert (tmp_path / "f").read_bytes() == after


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["@@", "-missing", "+x"], "^Failed to find expected lines in .*/f:\nmissing$"),
        (["@@ nowhere", "-a"], "^Failed to find context 'nowhere' in .*/f$"),
        (["@@", "-b", "@@", "-a"], "^Failed to find expected lines in .*/f:\na$"),  # not in the file's order
        (["@@", "-a", "", "-c"], "^Failed to find expected lines"),
        (["@@", "def g():", "+    pass"], "^Failed to find expected lines in .*/f:\ndef g"),
    ],
)
def test_lines_that_are_not_there(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "f").write_text("a\nb\nc\n")
    with pytest.raises(PatchMismatchError, match=message):
        apply(update(*lines), tmp_path)
    assert (tmp_path / "f").read_text() == "a\nb\nc\n"


def tree(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        (body("*** Add File: d/e/new", "+x", "+y"), {"a": "1\n", "b": "2\n", "d/e/new": "x\ny"}),
        (body("*** Delete File: a", "*** Update File: b", "@@", "-2", "+3"), {"b": "3\n"}),
        (body("*** Update File: a", "*** Move to: d/c", "@@", "-1", "+3"), {"b": "2\n", "d/c": "3\n"}),
        (body("*** Update File: a", "*** Move to: c"), {"b": "2\n", "c": "1\n"}),
        (body("*** Update File: a", "*** Move to: b", "@@", "-1", "+3"), {"b": "3\n"}),
        (body("*** Update File: a", "*** Move to: ./a", "@@", "-1", "+3"), {"a": "3\n", "b": "2\n"}),
        (body("*** Add File: b", "+new"), {"a": "1\n", "b": "new"}),
        # hunks see what those before them did
        (
            body("*** Update File: a", "@@", "-1", "+one", "*** Update File: a", "@@", "-one", "+two"),
            {"a": "two\n", "b": "2\n"},
        ),
        (
            body(
                "*** Add File: n", "+x", "*** Update File: n", "@@", "-x", "+y", "*** Update File: n", "*** Move to: m"
            ),
            {"a": "1\n", "b": "2\n", "m": "y\n"},
        ),
        (
            body("*** Update File: a", "*** Move to: c", "*** Update File: c", "@@", "-1", "+3"),
            {"b": "2\n", "c": "3\n"},
        ),
        (body("*** Add File: n", "+x", "*** Delete File: n"), {"a": "1\n", "b": "2\n"}),
        (body("*** Delete File: a", "*** Add File: a", "+x"), {"a": "x", "b": "2\n"}),
        (body("*** Delete File: a", "*** Add File: a/x", "+x"), {"a/x": "x", "b": "2\n"}),
        (
            body(
                *("*** Update File: a", "*** Move to: t"),
                *("*** Update File: b", "*** Move to: a"),
                *("*** Update File: t", "*** Move to: b"),
            ),
            {"a": "2\n", "b": "1\n"},
        ),
    ],
)
def test_several_files(tmp_path: Path, patch: str, after: dict[str, str]) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    apply(patch, tmp_path)
    assert tree(tmp_path) == after


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["*** Update File: no", "@@", "-a"], "^Failed to read file to update: .*/no$"),
        (["*** Update File: d", "@@", "-a"], "^Failed to read file to update: .*/d$"),
        (["*** Update File: a/b", "@@", "-a"], "^Failed to read file to update: .*/a/b$"),
        (["*** Update File: pipe", "@@", "-a"], "^Failed to read file to update: .*Not a regular file"),
        (["*** Delete File: no"], "^ENOENT: no such file or directory, open '.*/no'$"),
        (["*** Delete File: d"], "^EISDIR: illegal operation on a directory"),
        (["*** Delete File: a", "*** Delete File: a"], "^ENOENT"),
        (["*** Update File: a", "*** Move to: c", "*** Update File: a", "@@", "-1"], "^Failed to read file to update"),
        (["*** Add File: d", "+x"], "directory, not a file"),
        (["*** Add File: a/b", "+x"], "a is a file, not a folder"),
        (["*** Add File: n", "+x", "*** Add File: n/m", "+x"], "n is a file, not a folder"),
        (["*** Add File: n/m", "+x", "*** Add File: n", "+x"], "directory, not a file"),
        (["*** Update File: b", "*** Move to: a/b"], "a is a file, not a folder"),
        (["*** Update File: b", "*** Move to: d"], "directory, not a file"),
        (["*** Update File: a", "*** Move to: link"], "is a link to"),
        ([], "^No files were modified.$"),
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    first = ["*** Add File: first", "+x", "*** Update File: b", "@@", "+3"] if lines else []
    with pytest.raises(Exception, match=message):
        apply(body(*first, *lines), tmp_path)
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "b").read_text() == "2\n"


def test_links(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a\n")
    (tmp_path / "link").symlink_to("real")
    apply(body("*** Update File: link", "@@", "-a", "+b"), tmp_path)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "b\n"
    apply(body("*** Update File: link", "*** Move to: moved", "@@", "-b", "+c"), tmp_path)
    assert tree(tmp_path) == {"real": "b\n", "moved": "c\n"}
    (tmp_path / "link").symlink_to("real")
    apply(body("*** Delete File: link"), tmp_path)
    assert not (tmp_path / "link").is_symlink() and (tmp_path / "real").exists()
    (tmp_path / "link").symlink_to("real")
    apply(body("*** Delete File: link", "*** Add File: link", "+own"), tmp_path)
    assert not (tmp_path / "link").is_symlink() and tree(tmp_path) == {"real": "b\n", "moved": "c\n", "link": "own"}
    (tmp_path / "to").symlink_to("real")
    apply(body("*** Update File: to", "*** Move to: real", "@@", "-b", "+d"), tmp_path)
    assert (tmp_path / "real").read_text() == "d\n" and not os.path.lexists(tmp_path / "to")


def test_a_moved_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x\n")
    (tmp_path / "run").chmod(0o751)
    apply(body("*** Update File: run", "*** Move to: bin/run", "@@", "-x", "+y"), tmp_path)
    assert (tmp_path / "bin/run").stat().st_mode & 0o777 == 0o751


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    names = ["../up", str(tmp_path / "absolute"), "~/mine", "x/../here", "d: e"]
    apply(body(*(line for name in names for line in (f"*** Add File: {name}", "+x"))), work, final_newline=True)
    assert tree(tmp_path) == dict.fromkeys(["absolute", "home/mine", "up", "work/d: e", "work/here"], "x\n")


lines = st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=5), max_size=12)


def chunks_between(old: list[str], new: list[str], cuts: list[bool]) -> list[str]:
    """A patch's lines from `old` to `new`: every line of both, cut into chunks that each hold an old one."""
    signed = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal":
            signed += [" " + line for line in old[i1:i2]]
        else:
            signed += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
    out = ["@@"]
    filled = False
    for line, cut in zip(signed, cuts * len(signed), strict=False):
        if cut and filled and line[0] != "+":
            out.append("@@")
            filled = False
        filled |= line[0] != "+"
        out.append(line)
    return out


@given(lines, lines, st.lists(st.booleans(), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_text_becomes_any_other(
    old: list[str], new: list[str], cuts: list[bool], newline: str, ended: bool
) -> None:
    from opencode_jupyter.text.patch import UpdateFile, parse

    text = newline.join(old) + (newline if old and ended else "")
    if text == "" or (old[-1:] == [""] and not ended):
        old = old[:-1] if old else old
        text = "".join(line + newline for line in old)
    (hunk,) = parse(update(*chunks_between(old, new, cuts)))
    assert isinstance(hunk, UpdateFile)
    end = newline if "\r\n" in text else "\n"
    assert apply_chunks(text, hunk.chunks, "f") == "".join(line + end for line in new)


@given(st.text("ab \n\r", max_size=20), st.lists(st.lists(st.tuples(st.sampled_from(" -+?"), st.sampled_from(["a", "b", "", " "])), max_size=4), max_size=3))  # fmt: skip  # noqa: E501
def test_no_chunk_breaks_it(text: str, given_chunks: list[list[tuple[str, str]]]) -> None:
    chunks = [Chunk(tuple(Line(sign, line) for sign, line in chunk_lines)) for chunk_lines in given_chunks]  # type: ignore[arg-type]
    try:
        out = apply_chunks(text, chunks, "f")
    except PatchError:
        return
    assert out == text if not chunks else out == "" or out.endswith("\n")


signed_lines = st.lists(
    st.builds(Line, st.sampled_from([" ", "-", "+"]), st.sampled_from(["a", "b", "c", ""])), max_size=4
).map(tuple)


@given(
    st.lists(st.sampled_from(["a", "b", "c", " a", ""]), max_size=12),
    st.lists(st.builds(Chunk, signed_lines, st.sampled_from([None, None, "a", "b"])), max_size=3),
)
def test_line_ends_make_no_difference(old: list[str], chunks: list[Chunk]) -> None:
    def outcome(newline: str) -> str:
        try:
            return apply_chunks("".join(line + newline for line in old), chunks, "f").replace("\r\n", "\n")
        except PatchMismatchError as error:
            return str(error)

    assert outcome("\n") == outcome("\r\n")


def test_ten_thousand_chunks_are_applied() -> None:
    count = 10_000
    text = "".join(f"  head {n}\n    body\n\n" for n in range(count))
    chunks = [Chunk((Line(" ", f"head {n}"), Line("-", "    body"), Line("+", f"    new {n}"))) for n in range(count)]
    assert apply_chunks(text, chunks, "f").count("new") == count


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "a" * 40_000])
def test_a_path_that_is_no_file_name_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    patch = body("*** Add File: first", "+x", f"*** Add File: {name}", "+x")
    with pytest.raises(ToolError, match="The path"):
        apply(patch, tmp_path)
    assert not list(tmp_path.iterdir())
