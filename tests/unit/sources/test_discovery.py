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
from opencode_jupyter.sources.tool_loader import tool_id
from tests.support.tool_files import Place, custom, files_of, said, write

pytestmark = pytest.mark.anyio

TOOL = (
    "from opencode_jupyter import tool\n\n"
    "@tool\ndef {name}() -> str:\n    '''Says where it is.'''\n    return {text!r}\n"
)
DEFINED = (
    "from opencode_jupyter import Tool\n"
    "default = Tool.define('x', {'description': '', 'parameters': {}, 'execute': lambda a, c: 'x'})\n"
)


def one(name: str, text: str = "") -> str:
    return TOOL.format(name=name, text=text or name)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path.resolve(), monkeypatch)


@pytest.mark.parametrize(
    ("file", "text", "ids"),
    [
        # a Tool named like the file, one of another name, and one called default
        ("tool/weather.py", one("weather"), ["weather"]),
        ("tools/weather.py", one("forecast"), ["weather_forecast"]),
        ("tool/weather.py", one("default"), ["weather"]),
        ("tool/weather.py", one("default") + one("weather"), ["weather", "weather_weather"]),
        ("tool/weather.py", one("weather") + one("forecast"), ["weather", "weather_forecast"]),
        ("tool/weather.py", one("b") + one("a"), ["weather_b", "weather_a"]),
        ("tool/my-tool.py", one("my_tool"), ["my-tool"]),
        ("tool/my tool.py", one("my_tool") + one("more"), ["my_tool", "my_tool_more"]),
        ("tool/wétter.py", one("ä"), ["w_tter__"]),
        ("tool/.hidden.py", one("x"), ["_hidden_x"]),
        ("tool/a.b.py", one("x"), ["a_b_x"]),
        # the id of the decorator does not count
        ("tool/weather.py", "import opencode_jupyter as oc\n@oc.tool('other')\ndef f(): ...\n", ["weather_f"]),
        ("tool/weather.py", DEFINED, ["weather"]),
        # single files have no name to give
        ("tool.py", one("weather") + one("forecast"), ["weather", "forecast"]),
        ("tools.py", one("default") + one("weather"), ["tools", "weather"]),
        # without a Tool: public functions with a docstring
        ("tool/text.py", "def up(s: str) -> str:\n    'Up.'\ndef down(s): ...\ndef _no():\n    'No.'\n", ["text_up"]),
        ("tool/text.py", "async def text(s: str) -> str:\n    'Text.'\n", ["text"]),
        ("tool/text.py", "def default(s: str) -> str:\n    return s\n", ["text"]),
        ("tool/text.py", one("up") + "def down(s):\n    'Down.'\n", ["text_up"]),
        # imported names are no exports, unless they are listed
        ("tool/text.py", "from textwrap import dedent\nfrom os import *\n" + one("up"), ["text_up"]),
        ("tool/text.py", "from ._more import shout\n" + one("up"), ["text_up"]),
        ("tool/text.py", "from ._more import *\n" + one("up"), ["text_up"]),
        ("tool/text.py", "from ._more import shout\n__all__ = ['shout']\n" + one("up"), ["text_shout"]),
        ("tool/text.py", "from ._more import shout as s\nshout = s\n", ["text_shout"]),
        ("tool/text.py", "__all__ = ['down']\ndef down(s): ...\n" + one("up"), ["text_down"]),
        ("tool/text.py", "from textwrap import dedent\n", []),
        ("tool/text.py", "", []),
        # not found
        ("tool/_helper.py", one("x"), []),
        ("tool/sub/x.py", one("x"), []),
        ("other/x.py", one("x"), []),
        ("tool/x.txt", one("x"), []),
        ("tool/x.d.ts", "export const x = 1", []),
    ],
)
async def test_names(place: Place, file: str, text: str, ids: list[str]) -> None:
    place.own(file, text)
    if "_more" in text:
        place.own("tool/_more.py", one("shout"))
    async with place.open() as ws:
        assert await custom(ws) == ids
        assert ws.registry.unavailable() == []


@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.booleans())
def test_every_id_is_one_that_providers_take(namespace: str, export: str, has_default: bool) -> None:
    id = tool_id(clean_tool_id(namespace), namespace, export, python=True, has_default=has_default)
    assert id == clean_tool_id(id)
    assert len(id) >= len(clean_tool_id(namespace))


async def test_the_look_of_a_file_says_what_it_gives(place: Place) -> None:
    """What is shown of a file that is not trusted is what it gives once it is."""
    texts = [
        one("weather") + one("forecast"),
        "from opencode_jupyter import tool as t\n@t('x')\nasync def a(): ...\ndef c(): ...\nb = t('y')(c)\n",
        "def up(s: str) -> str:\n    'Up.'\ndef down(s): ...\n",
        "__all__ = ['down']\ndef down(s): ...\n" + one("up"),
        "def default():\n    return 'x'\n" + one("up"),
    ]
    for i, text in enumerate(texts):
        place.theirs(f"tool/t{i}.py", text)
    async with place.open() as ws:
        await ws.registry.prepare()
        guessed = [u.id for u in files_of(ws).unavailable()]
        ws.trust.grant(*files_of(ws).untrusted())
        assert guessed == await custom(ws) != []


async def test_an_odd_id_of_the_decorator_is_told(place: Place) -> None:
    place.own("tool/a.py", "from opencode_jupyter import tool\n@tool('mine')\ndef f() -> str:\n    return 'f'\n")
    async with place.open() as ws:
        assert await said(ws, "a_f") == "f"
        assert [p.message for p in files_of(ws).problems()] == [
            '@tool("mine") is a_f here: the names of file and export make the id'
        ]


# ---------------------------------------------------------------------- which wins


async def test_later_folders_win(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """See docs/opencode/core.md 14.3: global, project from the nearest on, home, OPENCODE_CONFIG_DIR."""
    deep = place.project / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.setenv("OPENCODE_CONFIG_DIR", str(place.root / "named"))
    folders = {
        "global": place.config,
        "near": deep / ".opencode",
        "far": place.project / ".opencode",
        "home": place.home / ".opencode",
        "named": place.root / "named",
    }
    for i, (name, folder) in enumerate(folders.items()):
        for other in range(i, len(folders)):
            write(folder / "tool" / f"t{other}.py", one(f"t{other}", name))
    async with place.open(deep) as ws:
        # the last folder has one file only, the others all of those after them too
        assert [await said(ws, f"t{i}") for i in range(5)] == list(folders)
        asked = [Path(a["pattern"]).parts[-4:-2] for a in place.asked]
        assert {parts[-1] for parts in asked} == {".opencode"}
        assert len(asked) == len({a["pattern"] for a in place.asked})
        messages = [p.message for p in files_of(ws).problems()]
        assert any("is hidden by that of" in m for m in messages)


async def test_one_order_in_a_folder(place: Place) -> None:
    for name in ("tools/a.py", "tool/b.py", "tool/a.py", "tools.py"):
        place.own(name, one("same" if name == "tools.py" else "default", name))
    place.own("tools/same.py", one("default", "tools/same.py"))
    async with place.open() as ws:
        assert await custom(ws) == ["a", "b", "same"]
        assert await said(ws, "a") == "tools/a.py"
        assert await said(ws, "same") == "tools/same.py"


async def test_a_file_hides_a_builtin_and_registering_hides_a_file(place: Place) -> None:
    place.own("tool/read.py", "def read(filePath: str = '') -> str:\n    'Own.'\n    return 'own ' + filePath\n")
    async with place.open() as ws:
        assert await said(ws, "read", filePath="x") == "own x"

        def read() -> str:
            return "registered"

        ws.registry.register(read)
        assert await said(ws, "read") == "registered"


async def test_links_are_followed(place: Place) -> None:
    elsewhere = write(place.root / "elsewhere" / "linked.py", one("linked"))
    (place.config / "tool").mkdir(parents=True)
    (place.config / "tool" / "one.py").symlink_to(elsewhere)
    (place.config / "tool" / "broken.py").symlink_to(place.root / "nowhere")
    (place.config / "tool" / "folder.py").mkdir()
    (place.config / "tools").symlink_to(elsewhere.parent, target_is_directory=True)
    async with place.open() as ws:
        assert await custom(ws) == ["one_linked", "linked"]
        assert await said(ws, "one_linked") == "linked"


async def test_the_project_can_be_left_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.theirs("tool/x.py", one("x"))
    monkeypatch.setenv("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
    async with place.open() as ws:
        await ws.registry.prepare()
        assert files_of(ws).unavailable() == []
        with pytest.raises(UnknownToolError):
            await said(ws, "x")


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
async def test_a_broken_file_is_told_and_stops_nothing(place: Place, text: str, line: int | None, words: str) -> None:
    broken = place.own("tool/bad.py", text)
    place.own("tool/helper.py", "x = 1\n")
    helper = place.own("tool/broken.py", "1 / 0\n") if "broken" in text else None
    place.own("tool/good.py", one("good"))
    async with place.open() as ws:
        assert await said(ws, "good") == "good"
        assert "good" in await custom(ws)
        found = next(p for p in files_of(ws).problems() if helper is not None or p.path == broken)
        assert words in found.message
        assert found.path == (helper or broken)
        assert found.line == line
        reasons = {u.id: u.reason for u in files_of(ws).unavailable()}
        assert words in reasons["bad_*"]
        with pytest.raises(UnknownToolError, match="The tool bad_x can't be called: ") as raised:
            await said(ws, "bad_x")
        assert str(raised.value).endswith(f"[{broken}]")  # which file


async def test_one_bad_export_leaves_the_others(place: Place) -> None:
    path = place.own("tool/t.py", "def a(*args):\n    'A.'\n\ndef b() -> str:\n    'B.'\n    return 'b'\n")
    async with place.open() as ws:
        assert await custom(ws) == ["t_b"]
        (problem,) = files_of(ws).problems()
        assert (problem.path, problem.line) == (path, 1)
        assert "args" in problem.message
        with pytest.raises(UnknownToolError, match=r"The tool t_a can't be called: .*\*args"):
            await said(ws, "t_a")


async def test_a_file_without_tools_says_how_to_make_one(place: Place) -> None:
    place.own("tool/weather.py", "def weather(city):\n    return city\n")
    async with place.open() as ws:
        for wanted in ("weather", "weather_weather"):
            with pytest.raises(
                UnknownToolError, match=f"{wanted} can't be called: it defines no tool; write @tool above"
            ):
                await said(ws, wanted)
        assert ws.registry.unavailable() == []  # it may be a file of helpers


async def test_an_endless_file_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_modules, "TIME_LIMIT", 0.3)
    path = place.own("tool/loop.py", "import time\nseen = []\nwhile True:\n    seen.append(1)\n    seen.clear()\n")
    stubborn = (
        "import time\nwhile True:\n    try:\n        while True: pass\n    except BaseException:\n        break\n"
    )
    place.own("tool/stubborn.py", stubborn + "ended = True\n")
    place.own("tool/good.py", one("good"))
    async with place.open() as ws:
        assert await custom(ws) == ["good"]
        problem = next(p for p in files_of(ws).problems() if p.path == path)
        assert "it did not come to an end in time" in problem.message
        assert problem.line in (3, 4, 5)
        assert await said(ws, "good") == "good"  # and the files that failed are not tried again
        for thread in python_modules.threading.enumerate():
            if thread.name == "opencode-tool-file":
                thread.join(5)
                assert not thread.is_alive()


async def test_a_call_that_is_stopped_while_a_file_loads(place: Place) -> None:
    import anyio

    place.own("tool/slow.py", "import time\nwhile True:\n    time.sleep(0.01)\n")
    async with place.open() as ws:
        with anyio.move_on_after(0.3) as scope:
            await said(ws, "slow_x")
        assert scope.cancelled_caught
        place.own("tool/slow.py", one("x"))
        assert await said(ws, "slow_x") == "x"


async def test_modules_are_private(place: Place) -> None:
    place.own("tool/json.py", "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n" + one("json"))
    names = set(sys.modules)
    async with place.open() as ws:
        assert await said(ws, "json") == "json"
        assert all(name.startswith(python_modules.PREFIX) for name in set(sys.modules) - names if "json" in name)
        assert sys.modules["json"].__name__ == "json"
        assert not list(place.config.rglob("__pycache__"))
        (place.config / "tool" / "json.py").unlink()
        assert "json" not in await custom(ws)
        await ws.registry.prepare()
        assert not [name for name in sys.modules if name.startswith(python_modules.PREFIX) and "json" in name]


async def test_an_unreadable_or_huge_file_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from opencode_jupyter.sources import source_code

    monkeypatch.setattr(source_code, "PYTHON_BYTES", 1000)
    place.own("tool/huge.py", "#" * 2000)
    path = place.own("tool/locked.py", one("x"))
    path.chmod(0)
    async with place.open() as ws:
        await ws.registry.prepare()
        reasons = {u.id: u.reason for u in files_of(ws).unavailable()}
        assert "is 2,000 bytes long" in reasons["huge_*"]
        if os.geteuid() != 0:
            assert "can't be read" in reasons["locked_*"]


async def test_many_files_cost_little(place: Place) -> None:
    for i in range(500):
        place.own(f"tool/many{i:03}.py", one("run", str(i)))
    async with place.open() as ws:
        assert await said(ws, "many123_run") == "123"
        assert len(files_of(ws).tools()) == 1, "one wanted, one loaded"
        assert len(await custom(ws)) == 500


async def test_the_import_of_a_library_is_never_broken_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_modules, "TIME_LIMIT", 0.3)
    write(place.root / "libraries" / "slow_library_of_a_test.py", "import time\ntime.sleep(1)\nx = 'x'\n")
    monkeypatch.syspath_prepend(str(place.root / "libraries"))
    place.own("tool/t.py", "import slow_library_of_a_test as s\n" + one("say").replace("'say'", "s.x"))
    async with place.open() as ws:
        with pytest.raises(UnknownToolError, match=r"what it imports was not loaded in time.* \(line 1\)"):
            await said(ws, "t_say")
    for thread in python_modules.threading.enumerate():
        if thread.name == "opencode-tool-file":
            thread.join(5)
    assert "slow_library_of_a_test" in sys.modules


def test_calls_from_many_threads_without_a_loop(place: Place) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from opencode_jupyter import Workspace

    for i in range(6):
        place.own(f"tool/t{i}.py", one("say", str(i)))
    with Workspace(place.project, data_dir=place.root / "data", store=False) as ws, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: ws.call_sync(f"t{i % 6}_say", by="user").output, range(24)))
    assert found == [str(i % 6) for i in range(24)]


async def test_files_that_come_and_go_while_they_are_called(place: Place) -> None:
    """A file is always called as one of the states it was in; none that it was in before."""
    import anyio

    path = place.own("tool/t.py", one("say", "0"))
    async with place.open() as ws:

        async def others() -> None:
            for i in range(15):
                place.own(f"tools/other{i}.py", one("say"))
                await ws.registry.prepare()

        async with anyio.create_task_group() as group:
            group.start_soon(others)
            for i in range(30):
                fresh = path.with_suffix(".new")
                fresh.write_text(one("say", str(i)))
                fresh.replace(path)
                assert await said(ws, "t_say") == str(i)
        assert len(await custom(ws)) == 16
