"""References in code (``docs/opencode/core.md 13``) lead to a heading, and so does every link in the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CODE = ("opencode_jupyter", "labextension/src", "tests", "bench")
DOCUMENTS = sorted(
    [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")), *ROOT.glob("docs/**/*.md")]
)

NUMBER = r"\d+(?:\.\d+)*"
REFERENCE = re.compile(rf"(docs/opencode/\w+\.md)\s+({NUMBER}(?:(?:,| and| to)\s+{NUMBER})*)")
UNQUALIFIED = re.compile(r"(?<![\w/.-])(?:reference/)?(?:core|tools|agents|jupyter|DESIGN|LANGUAGE)\.md\b")
"""The name of such a document without its folder, or of one that is not in the repository."""
HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+[^)]*)?\)")
HTML_LINK = re.compile(r"""<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=["']([^"']+)["']""")


def code_files() -> list[Path]:
    """Source files that may refer to the documents."""
    suffixes = (".py", ".ts", ".mjs", ".md")
    return [
        path
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and not {"vendor", "node_modules"} & set(path.parts) and path != Path(__file__)
    ]


def one_line(text: str) -> str:
    """`text` with the line breaks of comments and docstrings as spaces."""
    return re.sub(r"\s*\n\s*(?:[#*]|//)?\s*", " ", text)


def references() -> Iterator[tuple[Path, str, str]]:
    """Every reference of the code: the file, the document, and the number of a section."""
    for path in code_files():
        for document, numbers in REFERENCE.findall(one_line(path.read_text("utf-8"))):
            for number in re.findall(NUMBER, numbers):
                yield path, document, number


@cache
def text_of(path: Path) -> str:
    """A document without its code blocks."""
    return FENCE.sub("", path.read_text("utf-8"))


@cache
def sections(path: Path) -> frozenset[str]:
    """Numbers of the document's headings."""
    matches = (re.match(rf"({NUMBER})\.? ", heading) for heading in HEADING.findall(text_of(path)))
    return frozenset(match[1] for match in matches if match)


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that GitHub gives to a document's headings."""
    counts: dict[str, int] = {}
    out = set()
    for heading in HEADING.findall(text_of(path)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = counts.get(anchor, 0)
        counts[anchor] = number + 1
        out.add(f"{anchor}-{number}" if number else anchor)
    return frozenset(out)


def links(path: Path) -> list[str]:
    """The targets of a document's links, without those to other sites."""
    text = text_of(path)
    targets = [*LINK.findall(INLINE_CODE.sub("", text)), *HTML_LINK.findall(text)]
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:", target)]


def test_references_lead_to_numbered_headings() -> None:
    entries = list(references())
    broken = [
        f"{path.relative_to(ROOT)}: {document} {number}"
        for path, document, number in entries
        if not (ROOT / document).is_file() or number not in sections(ROOT / document)
    ]
    assert len(entries) > 50
    assert broken == []


def test_references_name_the_whole_path() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in code_files()
        for match in UNQUALIFIED.finditer(path.read_text("utf-8"))
    ]
    assert broken == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path: Path) -> None:
    broken = []
    for target in links(path):
        file, _, anchor = target.partition("#")
        destination = (path.parent / file).resolve() if file else path
        if not destination.exists() or (anchor and destination.suffix == ".md" and anchor not in anchors(destination)):
            broken.append(target)
    assert broken == []


def test_architecture_names_files_that_exist() -> None:
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in code_files()]
    names = {
        (path.name, name)
        for path in ROOT.glob("docs/architecture*.md")
        for name in re.findall(r"(?<![\w*/.-])[\w./-]*\w\.(?:py|ts|mjs)\b", path.read_text("utf-8"))
    }
    missing = {
        (document, name)
        for document, name in names
        if not (ROOT / name).is_file() and not any(file.endswith(f"/{name}") for file in files)
    }
    assert len(names) > 50
    assert missing == set()


def test_a_wrong_anchor_or_number_would_be_noticed() -> None:
    core = ROOT / "docs/opencode/core.md"
    assert "3-output-truncation" in anchors(core)
    assert "3-output-cutting" not in anchors(core)
    assert "10.8" in sections(core)
    assert "10.99" not in sections(core)
