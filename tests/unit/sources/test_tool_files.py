"""Tools of files: where they are found, how they are named, which wins, what a broken file does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import UnknownToolError
from opencode_jupyter.core.ids import clean_tool_id
from opencode_jupyter.sources import python_modules
from opencode_jupyter.sources.tool_file_loader import tool_id
from tests.support.tool_files import ToolFolders, call_output, custom, files_of, write

pytestmark = pytest.mark.anyio

TOOL = (
    "from opencode_jupyter import tool\n\n"
    "@tool\ndef {name}() -> str:\n    '''Says where it is.'''\n    return {text!r}\n"
)
DEFINED = (
    "from opencode_jupyter import Tool\n"
    "default = Tool.define('x', {'description': '', 'parameters': {}, 'execute': lambda a, c: 'x'})\n"
)


def tool_code(name: str, text: str = "") -> str:
    return TOOL.format(name=name, text=text or name)


@pytest.fixture
def tool_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolFolders:
    return ToolFolders(tmp_path.resolve(), monkeypatch)


@pytest.mark.parametrize(
    ("file", "text", "ids"),
    [
        # a Tool named like the file, one of another name, and one called default
        ("tool/weather.py", tool_code("weather"), ["weather"]),
        ("tools/weather.py", tool_code("forecast"), ["weather_forecast"]),
        ("tool/weather.py", tool_code("default"), ["weather"]),
        ("tool/weather.py", tool_code("default") + tool_code("weather"), ["weather", "weather_weather"]),
        ("tool/weather.py", tool_code("weather") + tool_code("forecast"), ["weather", "weather_forecast"]),
        ("tool/weather.py", tool_code("b") + tool_code("a"), ["weather_b", "weather_a"]),
        ("tool/my-tool.py", tool_code("my_tool"), ["my-tool"]),
        ("tool/my tool.py", tool_code("my_tool") + tool_code("more"), ["my_tool", "my_tool_more"]),
        ("tool/wétter.py", tool_code("ä"), ["w_tter__"]),
        ("tool/.hidden.py", tool_code("x"), ["_hidden_x"]),
        ("tool/a.b.py", tool_code("x"), ["a_b_x"]),
        # the id of the decorator does not count
        ("tool/weather.py", "import opencode_jupyter as oc\n@oc.tool('other')\ndef f(): ...\n", ["weather_f"]),
        ("tool/weather.py", DEFINED, ["weather"]),
        # single files have no name to give
        ("tool.py", tool_code("weather") + tool_code("forecast"), ["weather", "forecast"]),
        ("tools.py", tool_code("default") + tool_code("weather"), ["tools", "weather"]),
        # without a Tool: public functions with a docstring
        ("tool/text.py", "def up(s: str) -> str:\n    'Up.'\ndef down(s): ...\ndef _no():\n    'No.'\n", ["text_up"]),
        ("tool/text.py", "async def text(s: str) -> str:\n    'Text.'\n", ["text"]),
        ("tool/text.py", "def default(s: str) -> str:\n    return s\n", ["text"]),
        ("tool/text.py", tool_code("up") + "def down(s):\n    'Down.'\n", ["text_up"]),
        # imported names are no exports, unless they are listed
        ("tool/text.py", "from textwrap import dedent\nfrom os import *\n" + tool_code("up"), ["text_up"]),
        ("tool/text.py", "from ._more import shout\n" + tool_code("up"), ["text_up"]),
        ("tool/text.py", "from ._more import *\n" + tool_code("up"), ["text_up"]),
        ("tool/text.py", "from ._more import shout\n__all__ = ['shout']\n" + tool_code("up"), ["text_shout"]),
        ("tool/text.py", "from ._more import shout as s\nshout = s\n", ["text_shout"]),
        ("tool/text.py", "__all__ = ['down']\ndef down(s): ...\n" + tool_code("up"), ["text_down"]),
        ("tool/text.py", "from textwrap import dedent\n", []),
        ("tool/text.py", "", []),
        # not found
        ("tool/_helper.py", tool_code("x"), []),
        ("tool/sub/x.py", tool_code("x"), []),
        ("other/x.py", tool_code("x"), []),
        ("tool/x.txt", tool_code("x"), []),
        ("tool/x.d.ts", "export const x = 1", []),
    ],
)
async def test_names(tool_folders: ToolFolders, file: str, text: str, ids: list[str]) -> None:
    tool_folders.own(file, text)
    if "_more" in text:
        tool_folders.own("tool/_more.py", tool_code("shout"))
    async with tool_folders.open() as ws:
        assert await custom(ws) == ids
        assert ws.registry.unavailable() == []


@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.booleans())
def test_every_id_is_one_that_providers_take(namespace: str, export: str, has_default: bool) -> None:
    id = tool_id(clean_tool_id(namespace), namespace, export, python=True, has_default=has_default)
    assert id == clean_tool_id(id)
    assert len(id) >= len(clean_tool_id(namespace))


async def test_the_look_of_a_file_says_what_it_gives(tool_folders: ToolFolders) -> None:
    """What is shown of a file that is not trusted is what it gives once it is."""
    texts = [
        tool_code("weather") + tool_code("forecast"),
        "from opencode_jupyter import tool as t\n@t('x')\nasync def a(): ...\ndef c(): ...\nb = t('y')(c)\n",
        "def up(s: str) -> str:\n    'Up.'\ndef down(s): ...\n",
        "__all__ = ['down']\ndef down(s): ...\n" + tool_code("up"),
        "def default():\n    return 'x'\n" + tool_code("up"),
    ]
    for i, text in enumerate(texts):
        tool_folders.theirs(f"tool/t{i}.py", text)
    async with tool_folders.open() as ws:
        await ws.registry.prepare()
        guessed = [u.id for u in files_of(ws).unavailable()]
        ws.trust.grant(*files_of(ws).untrusted())
        assert guessed == await custom(ws) != []


async def test_an_odd_id_of_the_decorator_is_told(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/a.py", "from opencode_jupyter import tool\n@tool('mine')\ndef f() -> str:\n    return 'f'\n")
    async with tool_folders.open() as ws:
        assert await call_output(ws, "a_f") == "f"
        assert [p.message for p in files_of(ws).problems()] == [
            '@tool("mine") is a_f here: the names of file and export make the id'
        ]


# ---------------------------------------------------------------------- which wins


async def test_later_folders_win(tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    """See docs/opencode/core.md 14.3: global, project from the nearest on, home, OPENCODE_CONFIG_DIR."""
    deep = tool_folders.project / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(tool_folders.root / "named"))
    folders = {
        "global": tool_folders.config,
        "near": deep / ".opencode",
        "far": tool_folders.project / ".opencode",
        "home": tool_folders.home / ".opencode",
        "named": tool_folders.root / "named",
    }
    for i, (name, folder) in enumerate(folders.items()):
        for other in range(i, len(folders)):
            write(folder / "tool" / f"t{other}.py", tool_code(f"t{other}", name))
    async with tool_folders.open(deep) as ws:
        # the last folder has one file only, the others all of those after them too
        assert [await call_output(ws, f"t{i}") for i in range(5)] == list(folders)
        parents = [Path(a["pattern"]).parts[-4:-2] for a in tool_folders.asked]
        assert {parts[-1] for parts in parents} == {".opencode"}
        assert len(parents) == len({a["pattern"] for a in tool_folders.asked})
        messages = [p.message for p in files_of(ws).problems()]
        assert any("is hidden by that of" in m for m in messages)


async def test_one_order_in_a_folder(tool_folders: ToolFolders) -> None:
    for name in ("tools/a.py", "tool/b.py", "tool/a.py", "tools.py"):
        tool_folders.own(name, tool_code("same" if name == "tools.py" else "default", name))
    tool_folders.own("tools/same.py", tool_code("default", "tools/same.py"))
    async with tool_folders.open() as ws:
        assert await custom(ws) == ["a", "b", "same"]
        assert await call_output(ws, "a") == "tools/a.py"
        assert await call_output(ws, "same") == "tools/same.py"


async def test_a_file_hides_a_builtin_and_registering_hides_a_file(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/read.py", "def read(filePath: str = '') -> str:\n    'Own.'\n    return 'own ' + filePath\n")
    async with tool_folders.open() as ws:
        assert await call_output(ws, "read", filePath="x") == "own x"

        def read() -> str:
            return "registered"

        ws.registry.register(read)
        assert await call_output(ws, "read") == "registered"


async def test_links_are_followed(tool_folders: ToolFolders) -> None:
    elsewhere = write(tool_folders.root / "elsewhere" / "linked.py", tool_code("linked"))
    (tool_folders.config / "tool").mkdir(parents=True)
    (tool_folders.config / "tool" / "one.py").symlink_to(elsewhere)
    (tool_folders.config / "tool" / "broken.py").symlink_to(tool_folders.root / "nowhere")
    (tool_folders.config / "tool" / "folder.py").mkdir()
    (tool_folders.config / "tools").symlink_to(elsewhere.parent, target_is_directory=True)
    async with tool_folders.open() as ws:
        assert await custom(ws) == ["one_linked", "linked"]
        assert await call_output(ws, "one_linked") == "linked"


async def test_the_project_can_be_left_out(tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    tool_folders.theirs("tool/x.py", tool_code("x"))
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
    async with tool_folders.open() as ws:
        await ws.registry.prepare()
        assert files_of(ws).unavailable() == []
        with pytest.raises(UnknownToolError):
            await call_output(ws, "x")


# ---------------------------------------------------------------------- files that are broken


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef (:\n", 2, "SyntaxError"),
        ("x = 1\n\nx.y\n", 3, "AttributeError: 'int' object has no attribute 'y'"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3; a tool file must not end the process"),
        ("raise KeyboardInterrupt\n", 1, "KeyboardInterrupt; a tool file must not"),
        ("raise StopIteration\n", 1, "StopIteration"),
        ("\nimport nowhere_to_be_found\n", 2, "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("\nimport helper\n", 2, "it is beside the file: from . import helper"),
        ("from . import broken\n", 1, "ZeroDivisionError"),
        ("from .. import secrets\n", 1, "ImportError: attempted relative import beyond top-level package"),
        ("\0", None, "null bytes"),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n", 2, "ValueError: signal only works"),
    ],
)
async def test_a_broken_file_is_told_and_stops_nothing(
    tool_folders: ToolFolders, text: str, line: int | None, words: str
) -> None:
    broken = tool_folders.own("tool/bad.py", text)
    tool_folders.own("tool/helper.py", "x = 1\n")
    helper = tool_folders.own("tool/broken.py", "1 / 0\n") if "broken" in text else None
    tool_folders.own("tool/good.py", tool_code("good"))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "good") == "good"
        assert "good" in await custom(ws)
        problem = next(p for p in files_of(ws).problems() if helper is not None or p.path == broken)
        assert words in problem.message
        assert problem.path == (helper or broken)
        assert problem.line == line
        reasons = {u.id: u.reason for u in files_of(ws).unavailable()}
        assert words in reasons["bad_*"]
        with pytest.raises(UnknownToolError, match="The tool bad_x can't be called: ") as raised:
            await call_output(ws, "bad_x")
        assert str(raised.value).endswith(f"[{broken}]")  # which file


async def test_one_bad_export_leaves_the_others(tool_folders: ToolFolders) -> None:
    path = tool_folders.own("tool/t.py", "def a(*args):\n    'A.'\n\ndef b() -> str:\n    'B.'\n    return 'b'\n")
    async with tool_folders.open() as ws:
        assert await custom(ws) == ["t_b"]
        (problem,) = files_of(ws).problems()
        assert (problem.path, problem.line) == (path, 1)
        assert "args" in problem.message
        with pytest.raises(UnknownToolError, match=r"The tool t_a can't be called: .*\*args"):
            await call_output(ws, "t_a")


async def test_a_file_without_tools_says_how_to_make_one(tool_folders: ToolFolders) -> None:
    tool_folders.own("tool/weather.py", "def weather(city):\n    return city\n")
    async with tool_folders.open() as ws:
        for id in ("weather", "weather_weather"):
            with pytest.raises(UnknownToolError, match=f"{id} can't be called: it defines no tool; write @tool above"):
                await call_output(ws, id)
        assert ws.registry.unavailable() == []  # it may be a file of helpers


async def test_an_endless_file_is_given_up(tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_modules, "TIME_LIMIT", 0.3)
    path = tool_folders.own(
        "tool/loop.py", "import time\nseen = []\nwhile True:\n    seen.append(1)\n    seen.clear()\n"
    )
    stubborn = (
        "import time\nwhile True:\n    try:\n        while True: pass\n    except BaseException:\n        break\n"
    )
    tool_folders.own("tool/stubborn.py", stubborn + "ended = True\n")
    tool_folders.own("tool/good.py", tool_code("good"))
    async with tool_folders.open() as ws:
        assert await custom(ws) == ["good"]
        problem = next(p for p in files_of(ws).problems() if p.path == path)
        assert "it did not come to an end in time" in problem.message
        assert problem.line in (3, 4, 5)
        assert await call_output(ws, "good") == "good"  # and the files that failed are not tried again
        for thread in python_modules.threading.enumerate():
            if thread.name == "opencode-tool-file":
                thread.join(5)
                assert not thread.is_alive()


async def test_a_call_that_is_stopped_while_a_file_loads(tool_folders: ToolFolders) -> None:
    import anyio

    tool_folders.own("tool/slow.py", "import time\nwhile True:\n    time.sleep(0.01)\n")
    async with tool_folders.open() as ws:
        with anyio.move_on_after(0.3) as scope:
            await call_output(ws, "slow_x")
        assert scope.cancelled_caught
        tool_folders.own("tool/slow.py", tool_code("x"))
        assert await call_output(ws, "slow_x") == "x"


async def test_modules_are_private(tool_folders: ToolFolders) -> None:
    tool_folders.own(
        "tool/json.py", "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n" + tool_code("json")
    )
    names = set(sys.modules)
    async with tool_folders.open() as ws:
        assert await call_output(ws, "json") == "json"
        assert all(name.startswith(python_modules.PREFIX) for name in set(sys.modules) - names if "json" in name)
        assert sys.modules["json"].__name__ == "json"
        assert not list(tool_folders.config.rglob("__pycache__"))
        (tool_folders.config / "tool" / "json.py").unlink()
        assert "json" not in await custom(ws)
        await ws.registry.prepare()
        assert not [name for name in sys.modules if name.startswith(python_modules.PREFIX) and "json" in name]


async def test_an_unreadable_or_huge_file_is_told(tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    from opencode_jupyter.sources import source_code

    monkeypatch.setattr(source_code, "PYTHON_BYTES", 1000)
    tool_folders.own("tool/huge.py", "#" * 2000)
    path = tool_folders.own("tool/locked.py", tool_code("x"))
    path.chmod(0)
    async with tool_folders.open() as ws:
        await ws.registry.prepare()
        reasons = {u.id: u.reason for u in files_of(ws).unavailable()}
        assert "is 2,000 bytes long" in reasons["huge_*"]
        if os.geteuid() != 0:
            assert "can't be read" in reasons["locked_*"]


async def test_many_files_cost_little(tool_folders: ToolFolders) -> None:
    for i in range(500):
        tool_folders.own(f"tool/many{i:03}.py", tool_code("run", str(i)))
    async with tool_folders.open() as ws:
        assert await call_output(ws, "many123_run") == "123"
        assert len(files_of(ws).tools()) == 1, "only the requested file is loaded"
        assert len(await custom(ws)) == 500


async def test_the_import_of_a_library_is_never_broken_off(
    tool_folders: ToolFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_modules, "TIME_LIMIT", 0.3)
    write(tool_folders.root / "libraries" / "slow_library_of_a_test.py", "import time\ntime.sleep(1)\nx = 'x'\n")
    monkeypatch.syspath_prepend(str(tool_folders.root / "libraries"))
    tool_folders.own("tool/t.py", "import slow_library_of_a_test as s\n" + tool_code("say").replace("'say'", "s.x"))
    async with tool_folders.open() as ws:
        with pytest.raises(UnknownToolError, match=r"what it imports was not loaded in time.* \(line 1\)"):
            await call_output(ws, "t_say")
    for thread in python_modules.threading.enumerate():
        if thread.name == "opencode-tool-file":
            thread.join(5)
    assert "slow_library_of_a_test" in sys.modules


def test_calls_from_many_threads_without_a_loop(tool_folders: ToolFolders) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from opencode_jupyter import Workspace

    for i in range(6):
        tool_folders.own(f"tool/t{i}.py", tool_code("say", str(i)))
    with (
        Workspace(tool_folders.project, data_dir=tool_folders.root / "data", store=False) as ws,
        ThreadPoolExecutor(8) as pool,
    ):
        outputs = list(pool.map(lambda i: ws.call_sync(f"t{i % 6}_say", by="user").output, range(24)))
    assert outputs == [str(i % 6) for i in range(24)]


async def test_files_that_come_and_go_while_they_are_called(tool_folders: ToolFolders) -> None:
    """A file is always called as one of the states it was in; none that it was in before."""
    import anyio

    path = tool_folders.own("tool/t.py", tool_code("say", "0"))
    async with tool_folders.open() as ws:

        async def others() -> None:
            for i in range(15):
                tool_folders.own(f"tools/other{i}.py", tool_code("say"))
                await ws.registry.prepare()

        async with anyio.create_task_group() as group:
            group.start_soon(others)
            for i in range(30):
                fresh = path.with_suffix(".new")
                fresh.write_text(tool_code("say", str(i)))
                fresh.replace(path)
                assert await call_output(ws, "t_say") == str(i)
        assert len(await custom(ws)) == 16
