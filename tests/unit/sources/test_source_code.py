"""What the text of a tool file says, whatever it holds: files of strangers are read before anybody trusts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.sources.source_code import SourceCodeError, read_source_code
from opencode_jupyter.sources.tool_file_loader import python_exports, script_exports

SCRIPT_PIECES = [
    *("export ", "default ", "const ", "{", "}", "a", "b: ", ",", "module.exports = ", "exports.x = ", "\n", " ", "'"),
    *('"', "`", "//", "/*", "*/", "function ", "async ", "(", ")", "from './x'", "\\", "\0", "é"),
]
PYTHON_PIECES = [
    *(
        "def f():\n",
        "    'Doc.'\n",
        "@tool\n",
        "x = ",
        "tool",
        "(",
        ")",
        ".",
        "\n",
        "__all__ = ",
        "['a']",
        "import a\n",
    ),
    *(
        "from . import b\n",
        "from .c import *\n",
        "class A:\n",
        "    pass\n",
        "\0",
        "\t",
        "default",
        "'''",
        "é",
        "async ",
    ),
]
SCRIPT = st.lists(st.sampled_from(SCRIPT_PIECES)).map("".join)
PYTHON = st.lists(st.sampled_from(PYTHON_PIECES)).map("".join)


@given(st.one_of(SCRIPT, st.text()))
def test_any_script_can_be_looked_at(text: str) -> None:
    names = script_exports(text)
    assert len(names) == len(set(names))
    assert all(name == "default" or name in text for name in names)


@given(st.one_of(PYTHON, st.text()))
def test_any_python_can_be_looked_at(text: str) -> None:
    names = python_exports(text.encode("utf-8", "replace"))
    assert len(names) == len(set(names))


@given(st.binary())
def test_any_bytes_can_be_looked_at(data: bytes) -> None:
    assert isinstance(python_exports(data), list)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("export default tool({})", ["default"]),
        ("export const a = 1; // export const b\n  export async function c() {}", ["a", "c"]),
        ("export let yes = 2\nexport class K {}\nexport function* g() {}", ["yes", "K", "g"]),
        ("export { a, b as c }\nmodule.exports = { one: 1 }", []),
        ("", []),
    ],
)
def test_exports_of_scripts(text: str, names: list[str]) -> None:
    assert script_exports(text) == names


HOSTILE = [
    "\n",
    " ",
    "/*",
    "`",
    "'",
    "from ",
    "from" + " " * 50,
    "export ",
    "export {",
    "(",
    "module.exports = {",
    "a:",
    "-",
    "[",
    "\\",
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_file_takes_no_more_time_than_a_long_one(piece: str, tmp_path: Path) -> None:
    """Where time grew with the square of the length these would take minutes."""
    text = piece * (900_000 // len(piece))
    for name in ("a.py", "a.ts"):
        (tmp_path / name).write_text(text)
        read_source_code(tmp_path / name)
    script_exports(text)
    python_exports(text.encode())


def test_more_code_than_a_tool_has(tmp_path: Path) -> None:
    main = tmp_path / "a.py"
    main.write_text("".join(f"from . import m{i}\n" for i in range(300)))
    for i in range(300):
        (tmp_path / f"m{i}.py").write_text("")
    with pytest.raises(SourceCodeError, match="imports more than 200 files"):
        read_source_code(main)
    main.write_text("from . import m0, m1\n")
    for i in range(2):
        (tmp_path / f"m{i}.py").write_text("#" * 600_000)
    with pytest.raises(SourceCodeError, match="too much code"):
        read_source_code(main)


def test_a_file_that_imports_itself_and_others_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from . import a, b\nfrom .a import x\nfrom .pack.inner import y\nfrom .... import z\n"
    )
    (tmp_path / "b.py").write_text("from . import a\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("from ..b import x\n")
    (tmp_path / "pack" / "inner.py").write_text("from . import c\nfrom .. import d\n")
    (tmp_path / "pack" / "c.py").write_text("")
    (tmp_path / "d.py").write_text("")
    paths = {str(path.relative_to(tmp_path)) for path in read_source_code(tmp_path / "a.py").files}
    assert paths == {"a.py", "b.py", "pack/__init__.py", "pack/inner.py", "pack/c.py", "d.py"}


def test_the_digest_is_of_all_files_and_their_names(tmp_path: Path) -> None:
    main, more, other = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"
    main.write_text("from . import b, c\n")
    more.write_text("1")
    other.write_text("2")
    first = read_source_code(main).digest
    more.write_text("2")
    other.write_text("1")
    second = read_source_code(main).digest
    other.write_text("2")
    more.write_text("1")
    assert read_source_code(main).digest == first != second
    more.unlink()
    assert read_source_code(main).digest not in (first, second)
