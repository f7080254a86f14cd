"""Instructions: which files and pages are read, how much of them, and what is said of those that are not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent.prompt import instructions
from opencode_jupyter.agent.prompt.instructions import MOST_FILES, Instructions, glob_files, whole_characters
from tests.support.site import Connection, Request, Site


class Place:
    """A home, and a repository whose folder ``sub/deep`` is worked in."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.project = top / "project"
        self.here = self.project / "sub" / "deep"
        self.config = self.home / ".config" / "opencode"
        self.data = top / "data"
        for folder in (self.project / ".git", self.here, self.config, self.home / ".claude"):
            folder.mkdir(parents=True)
        self.open: list[Workspace] = []

    def workspace(self, config: dict[str, Any] | None = None) -> Workspace:
        made = Workspace(self.here, config, self.data, store=False)
        self.open.append(made)
        return made

    async def texts(self, config: dict[str, Any] | None = None) -> list[str]:
        """What is read, without the line that says where it is from."""
        return [text.partition("\n")[2] for text in await self.workspace(config).service(Instructions).texts()]


@pytest.fixture
async def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    monkeypatch.setenv("OPENCODE_TEST_HOME", str(made.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("OPENCODE_CONFIG_DIR", raising=False)
    yield made
    for workspace in made.open:
        await workspace.aclose()


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.mark.anyio
async def test_the_first_kind_that_is_found_and_the_nearest_last(layout: Place) -> None:
    (layout.project / "AGENTS.md").write_text("top")
    (layout.here / "AGENTS.md").write_text("near")
    (layout.here / "CLAUDE.md").write_text("never")
    (layout.project.parent / "AGENTS.md").write_text("above the worktree")
    assert await layout.texts() == ["top", "near"]
    (layout.project / "AGENTS.md").unlink()
    (layout.here / "AGENTS.md").unlink()
    assert await layout.texts() == ["never"]
    (layout.here / "CLAUDE.md").unlink()
    (layout.project / "CONTEXT.md").write_text("context")
    assert await layout.texts() == ["context"]


@pytest.mark.anyio
async def test_the_users_own(layout: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (layout.home / ".claude" / "CLAUDE.md").write_text("claude")
    (layout.here / "AGENTS.md").write_text("near")
    assert await layout.texts() == ["claude", "near"]
    monkeypatch.setenv("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT", "1")
    assert await layout.texts() == ["near"]
    (layout.config / "AGENTS.md").write_text("global")
    assert await layout.texts() == ["global", "near"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "AGENTS.md").write_text("own")
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(tmp_path / "own"))
    assert await layout.texts() == ["own", "near"]
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "true")
    assert await layout.texts() == ["own"]


@pytest.mark.anyio
async def test_without_git_only_the_folder_itself(layout: Place) -> None:
    (layout.project / ".git").rmdir()
    (layout.project / "AGENTS.md").write_text("top")
    (layout.here / "AGENTS.md").write_text("near")
    workspace = layout.workspace()
    if str(workspace.worktree) == workspace.worktree.anchor:
        assert [t.partition("\n")[2] for t in await workspace.service(Instructions).texts()] == ["near"]


@pytest.mark.anyio
async def test_what_the_config_names(layout: Place) -> None:
    (layout.project / "docs").mkdir()
    for name in ("b.md", "a.md", "c.txt"):
        (layout.project / "docs" / name).write_text(name)
    (layout.home / "mine.md").write_text("mine")
    (layout.here / "AGENTS.md").write_text("near")
    named = ["docs/*.md", "~/mine.md", str(layout.project / "docs" / "c.txt"), "AGENTS.md", "missing.md"]
    workspace = layout.workspace({"instructions": named})
    own = workspace.service(Instructions)
    assert [t.partition("\n")[2] for t in await own.texts()] == ["near", "a.md", "b.md", "mine", "c.txt"]
    assert own.problems == [f"{layout.here / 'missing.md'} does not exist; the config's instructions name it"]


@pytest.mark.anyio
async def test_new_files_of_a_pattern_are_found(layout: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = layout.workspace({"instructions": ["*.md"]})
    assert await workspace.service(Instructions).texts() == []
    (layout.here / "new.md").write_text("new")
    monkeypatch.setattr(instructions, "GLOB_SECONDS", 0.0)
    assert len(await workspace.service(Instructions).texts()) == 1


@pytest.mark.anyio
async def test_unchanged_files_are_not_opened_again(layout: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = layout.here / "AGENTS.md"
    path.write_text("one")
    own = layout.workspace().service(Instructions)
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a, **k: opened.append(self) or real(self, *a, **k))
    assert await own.texts() == await own.texts()
    assert opened == [path]
    opened.clear()
    path.write_text("two, longer")
    assert "two" in (await own.texts())[0]
    assert opened == [path, path]  # written once, read once


@pytest.mark.anyio
async def test_in_the_midst_of_a_run_files_are_looked_at_now_and_then(
    layout: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = layout.here / "AGENTS.md"
    path.write_text("one")
    own = layout.workspace().service(Instructions)
    first = await own.texts()
    path.write_text("two, longer")
    monkeypatch.setattr(instructions, "CHECK_SECONDS", 1e9)
    assert await own.texts(at_once=False) is first
    assert "two" in (await own.texts())[0]
    path.write_text("three, the longest")
    monkeypatch.setattr(instructions, "CHECK_SECONDS", 0.0)
    assert "three" in (await own.texts(at_once=False))[0]


@pytest.mark.anyio
async def test_what_cannot_be_read_is_named(layout: Place, tmp_path: Path) -> None:
    (layout.here / "AGENTS.md").write_bytes(b"\x7fELF\0\0\0")
    (layout.here / "folder").mkdir()
    os.mkfifo(layout.here / "pipe")
    (layout.here / "latin.md").write_bytes("caf\xe9".encode("latin-1"))
    own = layout.workspace({"instructions": ["folder", "pipe", "latin.md"]}).service(Instructions)
    texts = await own.texts()
    assert texts[0].endswith("(not included: it is not a text file)")
    assert texts[1].endswith("caf\ufffd")
    assert [problem.partition(" ")[2] for problem in own.problems] == [
        "was not read: it is no text",
        "was not read: it is no plain file",
        "was not read: it is no plain file",
    ]


@pytest.mark.anyio
async def test_sizes_are_bounded(layout: Place) -> None:
    for i in range(6):
        (layout.here / f"{i}.md").write_text(f"{i}" * 60_000)
    own = layout.workspace({"instructions": ["*.md"]}).service(Instructions)
    texts = await own.texts()
    assert sum(map(len, texts)) < instructions.MAX_BYTES + 6 * 400
    assert "cut here: the file has 60,000 bytes" in texts[0]
    assert "omitted here because of their length" in texts[-1]
    assert any("larger than 200 kB together" in problem for problem in own.problems)


@pytest.mark.anyio
async def test_a_cloned_project_does_not_get_at_other_files(layout: Place, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("PRIVATE")
    (tmp_path / "notes.md").write_text("shared notes")
    (layout.project / "secrets.txt").write_text("s3cret")
    (layout.here / "AGENTS.md").symlink_to(tmp_path / "id_rsa")
    (layout.here / "link.md").symlink_to(tmp_path / "id_rsa")
    named = [str(tmp_path / "id_rsa"), "link.md", str(tmp_path / "notes.md"), "../../secrets.txt"]
    (layout.project / "opencode.json").write_text(
        json.dumps({"instructions": named, "permission": {"read": {"secrets*": "deny"}}})
    )
    own = layout.workspace().service(Instructions)
    texts = "\n".join(await own.texts())
    assert "PRIVATE" not in texts
    assert "s3cret" not in texts
    assert "shared notes" in texts
    assert len(own.problems) == 4
    assert "leads outside of the project" in own.problems[0]
    assert "PRIVATE" in "\n".join(await layout.texts({"instructions": [str(tmp_path / "id_rsa")]}))  # the user's own


# ---------------------------------------------------------------------- pages


@pytest.mark.anyio
async def test_pages(layout: Place, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.serve("/rules.md", "Use tabs.", "text/markdown")
    site.serve("/keyed", "Keyed.", "text/plain")
    site.serve("/gone", "no", status="404 Not Found")
    site.serve("/picture", b"\x89PNG\r\n\x1a\n" + bytes(8), "image/png")
    site.serve("/long", "x" * 60_000, "text/plain")
    site.redirect("/moved", "/rules.md")
    paths = ("/rules.md", "/gone?key=secret", "/picture", "/long", "/moved", "/keyed?token=secret")
    urls = [f"{site.url}{path}" for path in paths]
    own = layout.workspace({"instructions": urls}).service(Instructions)
    first, long, moved, keyed = await own.texts()
    assert first == f"Instructions from: {urls[0]}\nUse tabs."
    assert "cut here: the page has 60,000 bytes" in long
    assert moved.endswith("Use tabs.")
    assert keyed == f"Instructions from: {site.url}/keyed\nKeyed."
    assert own.problems == [
        f"'{site.url}/gone' could not be fetched: Request failed with status code: 404",
        f"'{site.url}/picture' was not read: it is no text",
    ]
    count = len(site.requests)
    assert (await own.texts())[0] == first
    assert len(site.requests) == count  # kept for a while

    site.serve("/rules.md", "", status="500 Broken")
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() + instructions.FRESH_SECONDS)
    assert (await own.texts())[0] == first  # an old copy is better than none
    assert len(site.requests) > count


@pytest.mark.anyio
async def test_a_slow_page_does_not_hold_a_request_up(
    layout: Place, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    @site.on("/slow")
    async def slow(_: Request, to: Connection) -> None:
        await to.head(content_type="text/plain", content_length=10)
        await to.reader.read()

    monkeypatch.setattr(instructions, "PAGE_SECONDS", 0.2)
    own = layout.workspace({"instructions": [f"{site.url}/slow"]}).service(Instructions)
    assert await own.texts() == []
    assert "timed out after 0.2 seconds" in own.problems[0]


@pytest.mark.anyio
async def test_a_projects_config_does_not_reach_into_the_network(layout: Place, site: Site) -> None:
    site.serve("/x", "inside", "text/plain")
    (layout.project / "opencode.json").write_text(f'{{"instructions": ["{site.url}/x", "http://nowhere.invalid/"]}}')
    own = layout.workspace().service(Instructions)
    assert await own.texts() == []
    assert "can only name public addresses" in own.problems[0]
    assert site.requests == []
    assert len(own.problems) == 2


# ---------------------------------------------------------------------- patterns


def test_patterns(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt", "x/c.md", "x/y/d.md", ".hidden/e.md", "node_modules/f.md", "a[1].md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def names(pattern: str) -> list[str]:
        return [path.relative_to(tmp_path).as_posix() for path in glob_files(pattern, tmp_path)]

    assert names("*.md") == ["a.md", "a[1].md"]
    assert names("**/*.md") == [".hidden/e.md", "a.md", "a[1].md", "x/c.md", "x/y/d.md"]
    assert names("node_modules/*.md") == ["node_modules/f.md"]
    assert names("x/**") == ["x/c.md", "x/y/d.md"]
    assert names("*/c.md") == ["x/c.md"]
    assert names("{a,b}.{md,txt}") == ["a.md", "b.txt"]
    assert names("[!a]*.txt") == ["b.txt"]
    assert names("?.md") == ["a.md"]
    assert names("nowhere/*.md") == names("[z-a]") == []
    assert glob_files(str(tmp_path / "x" / "*.md"), Path("/")) == [tmp_path / "x" / "c.md"]


def test_a_pattern_has_an_end(tmp_path: Path) -> None:
    for i in range(MOST_FILES + 5):
        (tmp_path / f"{i:03}.md").write_text("")
    assert len(glob_files("*.md", tmp_path)) == MOST_FILES


@given(st.text(alphabet="ab*?[]{},!^/.\\", max_size=12))
def test_no_pattern_is_too_odd(pattern: str) -> None:
    assert isinstance(glob_files(pattern, Path("/nowhere")), list)


@given(st.text(max_size=20), st.integers(1, 60))
def test_a_cut_never_splits_a_character(text: str, cut: int) -> None:
    data = text.encode("utf-8", "replace")
    whole = whole_characters(data[:cut])
    assert data.startswith(whole)
    assert text.encode("utf-8", "replace").decode().startswith(whole.decode("utf-8"))
    assert len(data[:cut]) - len(whole) < 4
