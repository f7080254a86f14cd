"""The index of a project: kept up to date, safe to share, mended when broken; and what it finds."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from opencode_jupyter.tools import ripgrep
from opencode_jupyter.tools.codeindex import project_files, service
from opencode_jupyter.tools.codeindex.ranking import parse_query
from opencode_jupyter.tools.codeindex.service import CodeIndex, Project
from opencode_jupyter.tools.codeindex.store import CorruptIndexError, IndexStore
from opencode_jupyter.workspace import Workspace

pytestmark = pytest.mark.anyio

SHAPES = '''
def surface(figure):
    """Work out how much a figure covers."""

class Circle:
    """Round."""
    def grow(self, factor):
        """Make the circle larger."""
'''
FILES = '''
def fetch_page(address):
    """Get a document from the network."""

def drop_folder(place):
    """Delete a directory with all that is in it."""

def _x(q): return q.wobble().zigzag()
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "shapes.py").write_text(SHAPES)
    (folder / "files.py").write_text(FILES)
    return folder


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Project:
    return Project(root, tmp_path / "data" / "index.db")


async def names(project: Project, query: str, limit: int = 5) -> list[str]:
    return [f"{hit.path}:{hit.symbol}" for hit in await project.search(query, limit)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("remove a directory tree", "files.py:drop_folder"),
        ("download a web page", "files.py:fetch_page"),
        ("enlarge a circle", "pkg/shapes.py:Circle.grow"),
        ("calculate the area of a figure", "pkg/shapes.py:surface"),
        ("fetch_page", "files.py:fetch_page"),
        ("Circle.grow", "pkg/shapes.py:Circle.grow"),
        ("FETCHING pages", "files.py:fetch_page"),
        ("wobble and zigzag", "files.py:_x"),
    ],
)
async def test_finds_by_what_it_does(project: Project, query: str, expected: str) -> None:
    assert (await names(project, query))[0] == expected


@pytest.mark.parametrize(
    "query", ["", "the of and", "!!! ???", "\0", '") OR 1', "zebra", "x" * 100_000, "日本", "\ud800"]
)
async def test_any_query_has_an_answer(project: Project, query: str) -> None:
    assert isinstance(await names(project, query), list)


async def test_follows_every_change(project: Project, root: Path) -> None:
    assert await names(project, "zebra") == []
    new = root / "zoo.py"
    new.write_text("def zebra(): pass\n")
    assert await names(project, "zebra") == ["zoo.py:zebra"]
    new.write_text("def zebru(): pass\n")  # the same size, a moment later
    assert await names(project, "zebra") == []
    assert await names(project, "zebru") == ["zoo.py:zebru"]
    new.rename(root / "pkg" / "zoo.py")
    assert await names(project, "zebru") == ["pkg/zoo.py:zebru"]
    (root / "pkg" / "zoo.py").unlink()
    assert await names(project, "zebru") == []
    (root / "pkg").rename(root / "lib")
    assert "lib/shapes.py:surface" in await names(project, "area of a shape")


async def test_only_what_changed_is_read(project: Project, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await names(project, "circle")
    looked: list[str] = []
    index_file = service.index_file

    def noted(root: str, path: str, digest: bytes | None = None) -> object:
        looked.append(path)
        return index_file(root, path, digest)

    monkeypatch.setattr(service, "index_file", noted)
    await anyio.sleep(0.15)  # what was written a moment ago is looked at once more
    await names(project, "circle")
    looked.clear()
    await names(project, "circle")
    assert looked == []
    (root / "files.py").write_text(FILES + "\ndef later(): pass\n")
    await names(project, "circle")
    assert looked == ["files.py"]


async def test_many_files_are_read_by_children(project: Project, root: Path) -> None:
    for i in range(service.MAX_HERE + 80):
        (root / f"m{i}.py").write_text(f'def handler{i}():\n    """Answer number{i}."""\n')
    states: list[tuple[int, int, str]] = []
    hits = await project.search("handler77", 3, lambda *state: states.append(state))
    assert hits[0].symbol == "handler77"
    assert states[0][0] == 0
    # files of the last moment are read again after that
    assert (service.MAX_HERE + 82, service.MAX_HERE + 82) in [(done, total) for done, total, _ in states]


async def test_a_cancelled_indexing_leaves_a_valid_index(project: Project, root: Path) -> None:
    for i in range(600):
        (root / f"m{i}.py").write_text(f"def handler{i}(): pass\n" * 30)
    with anyio.CancelScope() as scope:
        await project.search("handler5", 3, lambda done, *_: scope.cancel() if done else None)
    assert scope.cancelled_caught
    assert (await project.search("handler599", 3))[0].symbol == "handler599"
    assert [row[0] for row in sqlite3.connect(project.file).execute("PRAGMA integrity_check")] == ["ok"]
    children = subprocess.run(["pgrep", "-f", "build_child.py"], capture_output=True, text=True).stdout.split()
    ours = [pid for pid in children if f"PPid:\t{os.getpid()}\n" in _status(pid)]
    assert ours == []


def _status(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


async def test_two_notebooks_at_once(root: Path, tmp_path: Path) -> None:
    for i in range(200):
        (root / f"m{i}.py").write_text(f"def handler{i}(): pass\n")
    first, second = (Project(root, tmp_path / "data" / "index.db") for _ in range(2))
    results = await asyncio.gather(first.search("handler7", 1), second.search("handler9", 1))
    assert [hits[0].symbol for hits in results] == ["handler7", "handler9"]
    (root / "m7.py").write_text("def other7(): pass\n")
    assert (await first.search("other7", 1))[0].symbol == "other7"
    assert (await second.search("other7", 1))[0].symbol == "other7"
    store = IndexStore(first.file)
    assert len(store.files()) == 202
    pieces = store.connection.execute("SELECT count(*) FROM pieces WHERE symbol LIKE 'handler%'").fetchone()[0]
    assert pieces == 199
    store.close()


@pytest.mark.parametrize("damage", ["garbage", "half", "empty", "other version", "another database", "inside"])
async def test_a_broken_index_is_made_anew(project: Project, root: Path, tmp_path: Path, damage: str) -> None:
    assert await names(project, "enlarge a circle", 1) == ["pkg/shapes.py:Circle.grow"]
    project.close()
    for end in ("-wal", "-shm"):
        Path(f"{project.file}{end}").unlink(missing_ok=True)
    data = project.file.read_bytes()
    if damage == "garbage":
        project.file.write_bytes(b"nonsense" * 1000)
    elif damage == "half":
        project.file.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        project.file.write_bytes(b"")
    elif damage == "inside":
        project.file.write_bytes(data[:8192] + b"\xff" * (len(data) - 8192))
    else:
        connection = sqlite3.connect(project.file)
        if damage == "other version":
            connection.execute("PRAGMA user_version = 12345")
        else:
            connection.executescript("DROP TABLE words; DROP TABLE pieces; PRAGMA user_version = 0;")
        connection.close()
    again = Project(root, project.file)
    assert await names(again, "enlarge a circle", 1) == ["pkg/shapes.py:Circle.grow"]


def test_a_foreign_file_is_told_from_ours(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine(x)")
    connection.close()
    with pytest.raises(CorruptIndexError):
        IndexStore(path)


async def test_an_index_that_vanishes_is_made_anew(project: Project) -> None:
    await names(project, "circle")
    for end in ("", "-wal", "-shm"):
        Path(f"{project.file}{end}").unlink(missing_ok=True)
    assert await names(project, "enlarge a circle", 1) == ["pkg/shapes.py:Circle.grow"]


async def test_which_files_are_searched(project: Project, root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("ignored/\n")
    for number, folder in enumerate(("ignored", "env/lib", ".hidden", "node_modules/x", "kept")):
        (root / folder).mkdir(parents=True)
        (root / folder / "a.py").write_text(f"def zebra(place{number}): pass\n")
    (root / "env" / "pyvenv.cfg").write_text("")
    (root / "data.csv").write_text("zebra\n")
    (root / "binary.py").write_bytes(b"def zebra(binary): pass\n\0")
    (root / "outside.py").symlink_to(root.parent / "other.py")
    (root.parent / "other.py").write_text("def zebra(other): pass\n")
    (root / "loop").symlink_to(root)
    (root / "broken.py").write_text("def zebra(broken, :\n  print 'x'\n")
    (root / "latin.py").write_bytes(b"# \xe9\ndef zebra(latin): pass\n")
    (root / "odd 'name\n.py").write_text("def zebra(odd): pass\n")
    (root / "large.py").write_text("x = 1  # zebra\n" * 200_000)
    symbols = {name for name in await names(project, "zebra", 50) if name.endswith("zebra")}
    expected = {"kept/a.py", "broken.py", "latin.py", "odd 'name\n.py"}
    assert symbols == {f"{name}:zebra" for name in expected}


async def test_works_without_ripgrep(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    assert (await names(project, "enlarge a circle"))[0] == "pkg/shapes.py:Circle.grow"
    assert project.listing.engine_note["engine"].startswith("python")


@pytest.mark.skipif(sys.platform != "linux", reason="the fault reaches a forked process alone")
def test_a_file_that_kills_its_reader_costs_only_itself(root: Path) -> None:
    """Two files end the process that reads them; the others are indexed all the same."""
    for i in range(100):
        (root / f"m{i}.py").write_text(f"def handler{i}(): pass\n")
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "import build_child; sys.path.append(os.path.dirname(sys.argv[1]))\n"
        "from codeindex import extract\n"
        "index_file = extract.index_file\n"
        "killers = 'm50.py', 'm99.py'\n"
        "def index_or_die(root, path, digest):\n"
        "    return os._exit(9) if path in killers else index_file(root, path, digest)\n"
        "extract.index_file = index_or_die\n"
        "asked = [(f'm{i}.py', None) for i in range(100)]\n"
        "for updates in build_child.read_in_processes(sys.argv[2], asked, 2):\n"
        "    for path, _, size, _, rows in updates: print(path, size, len(rows))\n"
    )
    command = [sys.executable, "-c", script, str(Path(service.__file__).parent), str(root)]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    files = [line.split() for line in lines]
    assert [path for path, _, _ in files] == [f"m{i}.py" for i in range(100)]
    assert [path for path, _, rows in files if rows == "0"] == ["m50.py", "m99.py"]
    assert all(int(size) > 0 and rows in ("0", "2") for _, size, rows in files)


async def test_the_children_end_with_the_kernel(root: Path, tmp_path: Path) -> None:
    for i in range(3000):
        (root / f"m{i}.py").write_text(f"def handler{i}(): pass\n" * 40)
    script = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from opencode_jupyter.tools.codeindex.service import Project\n"
        "p = Project(Path(sys.argv[2]), Path(sys.argv[3]))\n"
        "asyncio.run(p.search('x', 1, lambda done, *_: print(done, flush=True)))\n"
    )
    top = Path(service.__file__).parents[3]
    command = [sys.executable, "-c", script, str(top), str(root), str(tmp_path / "x.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    while process.stdout.readline().strip() in (b"0", b""):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        left = subprocess.run(["pgrep", "-f", str(tmp_path / "x.db")], capture_output=True).stdout
        readers = [p for p in Path("/proc").glob("[0-9]*/cwd") if _is_orphan(p.parent, tmp_path)]
        if not left and not readers:
            break
        await anyio.sleep(0.05)
    assert not left and not readers


def _is_orphan(process: Path, tmp_path: Path) -> bool:
    try:
        files = [os.readlink(entry) for entry in (process / "fd").iterdir()]
    except OSError:
        return False
    return any(name.startswith(str(tmp_path)) for name in files)


async def test_a_workspace_has_one_and_closes_it(root: Path, tmp_path: Path) -> None:
    async with Workspace(root, data_dir=tmp_path / "data", store=False) as ws:
        project = ws.service(CodeIndex).project(root)
        assert ws.service(CodeIndex).project(root) is project
        await names(project, "circle")
        assert project.file.is_relative_to(tmp_path / "data")
        assert project.file in open_files()
    assert project.file not in open_files()


def open_files() -> set[Path]:
    return {path.resolve() for path in Path("/proc/self/fd").iterdir()}


def test_a_query_knows_synonyms_and_phrases() -> None:
    concepts = {concept.term: concept.synonyms for concept in parse_query("delete the parse_config, get rid of it")}
    assert "remov" in concepts["delet"] and "the" not in concepts
    assert "delet" in concepts["remov"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's; elsewhere every search looks")
async def test_an_untouched_project_is_not_looked_through(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    await anyio.sleep(0.15)
    await names(project, "circle")
    await names(project, "circle")
    looks: list[int] = []
    monkeypatch.setattr(service, "file_states", lambda root, paths: looks.append(1) or {})
    assert "pkg/shapes.py:Circle" in await names(project, "circle")
    assert looks == []


async def test_changes_are_seen_without_a_watch_too(
    project: Project, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_files, "load_libc", lambda: None)
    await names(project, "circle")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "zoo.py").write_text("def zebra(): pass\n")
    assert await names(project, "zebra") == ["new/deep/zoo.py:zebra"]


async def test_changes_in_folders_that_were_empty_are_seen(project: Project, root: Path) -> None:
    (root / "empty" / "deep").mkdir(parents=True)
    await anyio.sleep(0.15)
    await names(project, "circle")
    await names(project, "circle")
    (root / "empty" / "deep" / "zoo.py").write_text("def zebra(): pass\n")
    assert await names(project, "zebra") == ["empty/deep/zoo.py:zebra"]
    await anyio.sleep(0.15)
    await names(project, "circle")
    (root / "empty" / "more").mkdir()
    await names(project, "circle")
    (root / "empty" / "more" / "ape.py").write_text("def gorilla(): pass\n")
    assert await names(project, "gorilla") == ["empty/more/ape.py:gorilla"]


async def test_a_word_of_the_code_counts_where_many_have_it(project: Project, root: Path) -> None:
    for i in range(40):
        (root / f"m{i}.py").write_text(f'def open_{i}(socket):\n    """Open number {i}."""\n' * 200)
    (root / "other.py").write_text('def begin():\n    """Open."""\n    return socket.quiver()\n')
    assert (await names(project, "open a socket with a quiver"))[0] == "other.py:begin"
