"""The patch language: what each text means, and what is no patch."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.text.patch import (
    AddFile,
    Chunk,
    DeleteFile,
    Hunk,
    Line,
    PatchFormatError,
    UpdateFile,
    parse,
)


def body(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def chunk(*lines: str, context: str | None = None, end_of_file: bool = False) -> Chunk:
    return Chunk(tuple(Line(line[0], line[1:]) for line in lines), context, end_of_file)  # type: ignore[arg-type]


def test_every_kind_of_hunk() -> None:
    text = body(
        "*** Add File: a b:c.txt",
        "+one",
        "+",
        "+ two",
        "*** Delete File: d",
        "*** Update File: old",
        "*** Move to: new",
        "@@ class A",
        " x",
        "-y",
        "+z",
        "@@",
        "+end",
        "*** End of File",
        "*** Update File: bare",
    )
    assert parse(text) == [
        AddFile("a b:c.txt", "one\n\n two"),
        DeleteFile("d"),
        UpdateFile("old", (chunk(" x", "-y", "+z", context="class A"), chunk("+end", end_of_file=True)), "new"),
        UpdateFile("bare"),
    ]


UPDATE = [UpdateFile("f", (chunk("-a", "+b"),))]


@pytest.mark.parametrize(
    "text",
    [
        body("*** Update File: f", "@@", "-a", "+b"),
        " \ufeff" + body("*** Update File: f", "@@", "-a", "+b") + " \n\n",
        "talk before\n" + body("*** Update File: f", "@@", "-a", "+b") + "\ntalk after",
        body("*** Update File: f", "@@", "-a", "+b").replace("\n", "\r\n"),
        body("", "talk", "  *** Update File:  f  ", "@@  ", "-a", "+b", ""),
        "  *** Begin Patch \t\n*** Update File: f\n@@\n-a\n+b\n  *** End Patch  \n",
        body("*** Update File: f", "-a", "+b"),
        body("*** Update File: f", "", "@@", "-a", "+b", "", "", "*** End of File").replace("*** End of File\n", ""),
        body("*** Update File: f", "--- a/f", "+++ b/f", "@@", "-a", "+b", "\\ No newline at end of file"),
        f"cat <<'EOF'\n{body('*** Update File: f', '@@', '-a', '+b')}\nEOF",
        f'<<"PATCH"\n{body("*** Update File: f", "@@", "-a", "+b")}\nPATCH\n',
        f"<<EOF\n{body('*** Update File: f', '@@', '-a', '+b')}\nEOF",
    ],
)
def test_ways_to_write_one_patch(text: str) -> None:
    assert parse(text) == UPDATE


@pytest.mark.parametrize(
    ("text", "hunks"),
    [
        (body("*** Add File: empty"), [AddFile("empty", "")]),
        (body("*** Add File: f", "+*** End Patch", "+@@"), [AddFile("f", "*** End Patch\n@@")]),
        (body("*** Delete File: f", "-what it was", "*** Delete File: g"), [DeleteFile("f"), DeleteFile("g")]),
        (
            body("*** Update File: f", "@@ a", "@@ b", "-x"),
            [UpdateFile("f", (chunk(context="a"), chunk("-x", context="b")))],
        ),
        (
            body("*** Update File: f", "@@", " *** End Patch", "-x"),
            [UpdateFile("f", (chunk(" *** End Patch", "-x"),))],
        ),
        ("*** Begin Patch\n*** End Patch", []),
        (body("*** Frobnicate File: f"), []),
        (body("*** Add File:  "), []),
        (body("nothing here"), []),
    ],
)
def test_odd_patches(text: str, hunks: list[Hunk]) -> None:
    assert parse(text) == hunks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "^Invalid patch format: missing Begin/End markers$"),
        ("hello", "^Invalid patch format: missing Begin/End markers$"),
        ("*** Begin Patch\n*** Add File: f\n+x", "missing Begin/End markers"),
        ("*** End Patch\n*** Begin Patch", "missing Begin/End markers"),
        ("+*** Begin Patch\n*** End Patch", "missing Begin/End markers"),
        (body("*** Delete File: f", "*** Frobnicate File: g"), r"line 3 is not a valid hunk header: '\*\*\* Frob"),
        (body("+x", "*** Delete File: f"), "line 2 is not a valid hunk header"),
        (body("*** Update File: f", "@@", "-x", "*** Move to: g"), "line 5 is not a valid hunk header"),
        (body("*** Update File: f", "*** Move to: "), "names no file to move f to"),
        (body("*** Add File: f", "+x", "y"), r"line 4, in the new file f, must begin with '\+': 'y'"),
        (body("*** Update File: f", "@@", "-x", "*** End of File", "+y"), "line 6 stands after"),
        (body("*** Delete File: f") + "\n" + body("*** Delete File: g"), "another .* follows"),
    ],
)
def test_what_is_no_patch(text: str, message: str) -> None:
    with pytest.raises(PatchFormatError, match=message):
        parse(text)


def test_unsigned_lines_are_context_first_and_nothing_then() -> None:
    (hunk,) = parse(body("*** Update File: f", "@@", " a", "", "\tb", "-c", ""))
    assert isinstance(hunk, UpdateFile)
    literal, ignoring = hunk.chunks[0].readings()
    assert [text for _, text in literal] == ["a", "", "\tb", "c"]
    assert [text for _, text in ignoring] == ["a", "c"]


def test_unsigned_lines_never_turn_a_change_into_an_addition_at_the_end() -> None:
    (hunk,) = parse(body("*** Update File: f", "@@", "def f():", "+    pass"))
    assert isinstance(hunk, UpdateFile)
    assert hunk.chunks[0].readings() == [(Line(" ", "def f():"), Line("+", "    pass"))]


paths = st.text("abc/._-~ é:", min_size=1).map(str.strip).filter(bool)
texts = st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])), max_size=6)


@st.composite
def hunks(draw: st.DrawFn) -> Hunk:
    kind = draw(st.sampled_from(["add", "delete", "update"]))
    path = draw(paths)
    if kind == "add":
        return AddFile(path, "\n".join(draw(texts.filter(bool))))
    if kind == "delete":
        return DeleteFile(path)
    line = st.builds(Line, st.sampled_from([" ", "-", "+"]), st.text(st.characters(exclude_characters="\n\r")))
    context = st.none() | st.text("abc()", min_size=1)
    lines = st.lists(line, min_size=1, max_size=5).map(tuple)
    chunks = st.lists(st.builds(Chunk, lines, context, st.booleans()), max_size=3).map(tuple)
    return UpdateFile(path, draw(chunks), draw(st.none() | paths))


def patch_lines(hunk: Hunk) -> list[str]:
    """A hunk as the text that should be read as it."""
    match hunk:
        case AddFile():
            return [f"*** Add File: {hunk.path}", *("+" + line for line in hunk.contents.split("\n"))]
        case DeleteFile():
            return [f"*** Delete File: {hunk.path}"]
        case UpdateFile():
            out = [f"*** Update File: {hunk.path}"]
            out += [f"*** Move to: {hunk.move_path}"] if hunk.move_path else []
            for part in hunk.chunks:
                out.append("@@" if part.context is None else f"@@ {part.context}")
                out += [sign + text for sign, text in part.lines]
                out += ["*** End of File"] if part.end_of_file else []
            return out


@given(st.lists(hunks(), max_size=5))
def test_what_is_written_is_read_again(given_hunks: list[Hunk]) -> None:
    assert parse(body(*(line for hunk in given_hunks for line in patch_lines(hunk)))) == given_hunks


@given(st.lists(st.sampled_from(["*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Update File: b", "@@",
                                 "*** Move to: c", "*** Delete File: d", "*** End of File", "+x", "-x", " x", "", "x",
                                 " *** End Patch", "<<EOF", "EOF"]), max_size=15))  # fmt: skip
def test_no_text_breaks_the_reader(lines: list[str]) -> None:
    with contextlib.suppress(PatchFormatError):
        parse("\n".join(lines))


def test_a_patch_that_is_cut_off_anywhere_is_none() -> None:
    patch = body(
        "*** Add File: n", "+x", "*** Update File: m", "*** Move to: k", "@@ f", " a", "-b", "*** Delete File: g"
    )
    for end in range(len(patch)):
        with pytest.raises(PatchFormatError, match="missing Begin/End markers"):
            parse(patch[:end])
