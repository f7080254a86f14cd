"""Plugins: where they come from, in which order, which of equal names counts, and what keeps one from running."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from opencode_jupyter.core.errors import UnknownToolError
from tests.support.plugin_folders import PluginFolders, plugins_of, running, states
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

SAYS = """
    def plugin(input):
        def who() -> str:
            "Says where it is from."
            return {reply!r}
        return {{"tool": {{"who": who}}}}
"""


async def test_sources_come_in_order_and_the_last_of_equal_names_counts(plugin_folders: PluginFolders) -> None:
    plugin_folders.package("acme-tools", SAYS.format(reply="package"), {"acme": "acme_tools:plugin"})
    plugin_folders.package("beta", SAYS.format(reply="beta"), {"beta": "beta"})
    plugin_folders.package("late", SAYS.format(reply="late"), {"late": "late"})
    lone = plugin_folders.write(plugin_folders.home / "lone.py", SAYS.format(reply="lone"))
    plugin_folders.write(plugin_folders.own / "opencode.json", {"plugin": [lone.as_uri(), "late@1.2.3"]})
    plugin_folders.mine("acme", SAYS.format(reply="file"))
    async with plugin_folders.open() as ws:
        assert (await ws.call("who", {})).output == "file"
        assert running(ws) == ["beta", "lone", "late", "acme"]
        sources = {row["plugin"]: row["source"] for row in plugins_of(ws).describe()}
    assert sources["beta"] == "beta 1.0 (installed)"
    assert sources["acme"] == str(plugin_folders.own / "plugin" / "acme.py")
    assert "late 1.0 (installed), named in " in sources["late"]


async def test_both_folder_names_hold_plugins_and_hidden_files_do_not_count(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("one", SAYS.format(reply="one"))
    plugin_folders.write(plugin_folders.own / "plugins" / "two.py", SAYS.format(reply="two"))
    plugin_folders.mine("_helper", "raise RuntimeError('a helper is no plugin')")
    plugin_folders.mine(".one", "raise RuntimeError('an editor left it')")
    async with plugin_folders.open() as ws:
        assert (await ws.call("who", {})).output == "two"
        assert list(states(ws)) == ["one", "two"]


async def test_packages_are_named_in_a_config_by_module_name_and_path(plugin_folders: PluginFolders) -> None:
    plugin_folders.write(plugin_folders.site / "plain_module.py", SAYS.format(reply="module"))
    plugin_folders.write(plugin_folders.site / "deep" / "__init__.py", "")
    plugin_folders.write(plugin_folders.site / "deep" / "inner.py", SAYS.format(reply="inner"))
    plugin_folders.write(plugin_folders.own / "near.py", SAYS.format(reply="near"))
    named = ["plain-module", "deep.inner", "./near.py"]
    plugin_folders.write(plugin_folders.own / "opencode.json", {"plugin": named})
    async with plugin_folders.open() as ws:
        assert (await ws.call("who", {})).output == "near"
        assert running(ws) == ["plain-module", "deep.inner", "near"]


async def test_what_can_not_run_here_is_listed_with_the_reason(plugin_folders: PluginFolders) -> None:
    plugin_folders.write(plugin_folders.own / "plugin" / "old.ts", "export default async () => ({})")
    named = ["opencode-helicone-session", "@scope/pkg@1.0", "./gone.py"]
    plugin_folders.write(plugin_folders.own / "opencode.json", {"plugin": named})
    async with plugin_folders.open() as ws:
        await ws.registry.prepare()
        reasons = {tool.id: tool.reason for tool in ws.registry.unavailable()}
        assert set(states(ws).values()) == {"can't run"}
    assert "JavaScript" in reasons["old_*"]
    assert "no Python package of that name" in reasons["opencode-helicone-session_*"]
    assert "npm" in reasons["@scope/pkg_*"]
    assert "can't be read" in reasons["gone_*"]


async def test_an_installed_plugin_can_be_switched_off(
    plugin_folders: PluginFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin_folders.package("acme-tools", SAYS.format(reply="a"), {"acme": "acme_tools", "more": "acme_tools"})
    plugin_folders.package("beta", SAYS.format(reply="b"), {"beta": "beta"})
    async with plugin_folders.open(config={"plugin": ["-beta"]}) as ws:
        await ws.registry.prepare()
        assert states(ws) == {"acme": "runs", "more": "runs", "beta": "switched off"}
    async with plugin_folders.open(config={"plugin": ["-acme-tools"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["beta"]
    async with plugin_folders.open(config={"plugin": ["-*", "beta"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["beta"]
    plugin_folders.mine("own", SAYS.format(reply="own"))
    async with plugin_folders.open(config={"plugin": ["-own"]}) as ws:
        await ws.registry.prepare()
        assert states(ws) == {"acme": "runs", "more": "runs", "beta": "runs", "own": "switched off"}
    async with plugin_folders.open(config={"plugin": ["-own", "beta", "-beta", "beta"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["acme", "more", "beta"]
    (plugin_folders.own / "plugin" / "own.py").unlink()
    monkeypatch.setenv("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")
    async with plugin_folders.open(config={"plugin": ["acme"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["acme"]


async def test_a_project_can_neither_switch_off_nor_replace_a_plugin_of_the_user(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("guard", SAYS.format(reply="mine"))
    plugin_folders.mine("second", "def plugin(input): pass")
    plugin_folders.package("acme", SAYS.format(reply="acme"), {"acme": "acme"})
    plugin_folders.config(plugin=["-acme", "-*", "-second", "-other"])
    plugin_folders.local("other", "def plugin(input): pass")
    plugin_folders.local("guard", SAYS.format(reply="the project's"))
    async with plugin_folders.open() as ws:
        assert (await ws.call("who", {})).output == "mine"
        assert running(ws) == ["acme", "guard", "second"]
        problems = plugins_of(ws).without_effect
        assert [
            problem
            for problem in problems
            if problem.startswith('"-second" in ') and "cannot switch your plugins off" in problem
        ]
        assert [problem for problem in problems if problem.startswith('"-acme" in ')]
        assert states(ws)["other"] == "switched off"
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "the project's"
        assert running(ws) == ["acme", "second", "guard"]


# ---------------------------------------------------------------------- trust


async def test_a_projects_plugin_runs_once_it_is_trusted_and_until_it_changes(plugin_folders: PluginFolders) -> None:
    path = plugin_folders.local("here", SAYS.format(reply="first"))
    async with plugin_folders.open() as ws:
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        (waiting,) = ws.registry.unavailable()
        assert (waiting.id, waiting.source) == ("here_*", str(path))
        assert waiting.reason == "not trusted yet; run %tools trust"
        (subject,) = plugins_of(ws).untrusted()
        assert (subject.kind, subject.name) == ("plugin", str(path))
        assert "first" in subject.shown["content"]
        ws.trust.grant(subject)
        assert (await ws.call("who", {})).output == "first"
        assert not plugins_of(ws).untrusted()

        plugin_folders.local("here", SAYS.format(reply="changed, and longer"))
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "changed, and longer"

        path.unlink()
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        assert states(ws) == {}


async def test_nothing_of_an_untrusted_plugin_is_run(plugin_folders: PluginFolders) -> None:
    mark = plugin_folders.root / "it ran"
    code = f"open({str(mark)!r}, 'w').close()\n" + "def plugin(input): return {}\n"
    plugin_folders.local("file", code)
    plugin_folders.write(plugin_folders.project / "named.py", code)
    plugin_folders.write(plugin_folders.site / "named_module.py", code)
    package = plugin_folders.site / "deep"
    plugin_folders.write(package / "__init__.py", code)
    plugin_folders.write(package / "inner.py", code)
    plugin_folders.config(plugin=["./named.py", "named-module", "deep.inner"])
    async with plugin_folders.open() as ws:
        await ws.registry.prepare()
        assert set(states(ws).values()) == {"waits"}
        assert len(plugins_of(ws).untrusted()) == 4
        assert not mark.exists()
        ws.trust.grant(*plugins_of(ws).untrusted())
        await ws.registry.prepare()
        assert mark.exists()
        assert running(ws) == ["named", "named-module", "deep.inner", "file"]


async def test_a_config_folder_above_the_project_is_not_the_users(
    open_workspace: OpenWorkspace, plugin_folders: PluginFolders
) -> None:
    """Without version control config files up to the root count, also those that somebody put into ``/tmp``."""
    here = plugin_folders.root / "loose" / "inner"
    here.mkdir(parents=True)
    plugin_folders.write(here.parent / ".opencode" / "opencode.json", {"plugin": ["./evil.py"]})
    plugin_folders.write(here.parent / ".opencode" / "evil.py", SAYS.format(reply="evil"))
    plugin_folders.write(here.parent / ".opencode" / "plugin" / "worse.py", SAYS.format(reply="worse"))
    (here / ".opencode").symlink_to(plugin_folders.write(plugin_folders.root / "x" / "plugin" / "l.py", "").parents[1])
    ws = await open_workspace({}, directory=here, data_dir=plugin_folders.root / "data")
    await ws.registry.prepare()
    assert states(ws) == {"evil": "waits", "worse": "waits", "l": "waits"}


async def test_a_package_in_the_project_is_trusted_as_a_whole(plugin_folders: PluginFolders) -> None:
    package = plugin_folders.project / "tools_here"
    plugin_folders.write(package / "__init__.py", "from .inner import plugin\n")
    inner = plugin_folders.write(package / "inner.py", SAYS.format(reply="in"))
    plugin_folders.config(plugin=["tools_here"])
    sys.path.append(str(plugin_folders.project))
    async with plugin_folders.open() as ws:
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "in"
        plugin_folders.write(inner, SAYS.format(reply="other"))
        assert len(plugins_of(ws).untrusted()) == 1


# ---------------------------------------------------------------------- trouble


async def test_a_hanging_plugin_costs_no_call_more_than_its_limit(plugin_folders: PluginFolders) -> None:
    release = threading.Event()
    sys.modules["_release_of_test"] = type(sys)("_release_of_test")
    sys.modules["_release_of_test"].event = release  # type: ignore[attr-defined]
    plugin_folders.mine("a_import", "import _release_of_test\n_release_of_test.event.wait()\ndef plugin(input): pass\n")
    plugin_folders.mine("b_sync", "import _release_of_test\ndef plugin(input): _release_of_test.event.wait()\n")
    plugin_folders.mine("c_async", "import asyncio\nasync def plugin(input): await asyncio.Event().wait()\n")
    plugin_folders.mine("d_good", SAYS.format(reply="good"))
    try:
        async with plugin_folders.open() as ws:
            plugins_of(ws).limit = 2
            assert (await ws.call("who", {})).output == "good"
            assert states(ws) == {"a_import": "failed", "b_sync": "failed", "c_async": "failed", "d_good": "runs"}
            assert "did not start within 2 s" in ws.registry.why_not("a_import_x")
    finally:
        release.set()
        del sys.modules["_release_of_test"]


async def test_failing_plugins_are_kept_apart(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("syntax", "def plugin(input:\n")
    plugin_folders.mine("missing", "import no_such_module_anywhere\n")
    plugin_folders.mine("raises", "def plugin(input): raise ValueError('no key')\n")
    plugin_folders.mine("leaves", "def plugin(input): raise SystemExit(3)\n")
    plugin_folders.mine("leaves_later", "async def plugin(input): raise SystemExit(3)\n")
    plugin_folders.mine("empty", "x = 1\n")
    plugin_folders.mine("helper", "def clean(text): return 'a text'\n")
    plugin_folders.mine(
        "odd",
        "def plugin(input):\n"
        "    given = {'tool': {'x': 5}, 'event': 3, 'surprise': print, 'auth': {}}\n"
        "    return {**given, 'tool.execute.befor': print}\n",
    )
    plugin_folders.mine("good", SAYS.format(reply="good"))
    plugin_folders.package("broken", "", {"broken": "no_such_module_here:x"})
    async with plugin_folders.open() as ws:
        assert (await ws.call("who", {})).output == "good"
        rows = {row["plugin"]: row for row in plugins_of(ws).describe()}
        advice = {name: row["advice"] for name, row in rows.items()}
        assert [name for name, row in rows.items() if row["state"] == "runs"] == ["good", "odd"]
    assert "SyntaxError" in advice["syntax"]
    assert "no_such_module_anywhere" in advice["missing"]
    assert "no key" in advice["raises"]
    assert "SystemExit" in advice["leaves"]
    assert "SystemExit" in advice["leaves_later"]
    assert "exports no plugin function" in advice["empty"]
    assert "clean returned str" in advice["helper"]
    assert "no_such_module_here" in advice["broken"]
    for word in (
        "tool x",
        "event must be a function",
        "no hook surprise",
        "auth is not used",
        "There is no hook 'tool.execute.befor'. Did you mean tool.execute.before",
    ):
        assert word in advice["odd"]


async def test_many_first_calls_start_each_plugin_once(plugin_folders: PluginFolders) -> None:
    count = plugin_folders.root / "count"
    plugin_folders.write(count, "")
    plugin_folders.mine(
        "once",
        f"""
        from pathlib import Path
        def plugin(input):
            path = Path({str(count)!r})
            path.write_text(path.read_text() + "x")
        """,
    )
    async with plugin_folders.open() as ws:
        await asyncio.gather(*(ws.call("glob", {"pattern": f"*{i}"}) for i in range(8)))
        assert count.read_text() == "x"


async def test_a_stopped_first_call_leaves_the_plugins_to_the_next(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("slow", "import asyncio\nasync def plugin(input): await asyncio.sleep(0.3)\n")
    plugin_folders.mine("who", SAYS.format(reply="here"))
    async with plugin_folders.open() as ws:
        with pytest.raises(Exception, match="longer than its limit"):
            await ws.call("who", {}, timeout=0.05)
        assert (await ws.call("who", {})).output == "here"
        assert running(ws) == ["slow", "who"]


def test_calls_without_a_loop_of_their_own_have_plugins_too(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("who", SAYS.format(reply="sync"))
    with plugin_folders.open() as ws:
        assert ws.call_sync("who", {}).output == "sync"
        assert ws.call_sync("who", {}).output == "sync"


def test_a_loop_that_stands_still_while_it_starts_plugins_holds_no_other_up(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("slow", "import asyncio\nasync def plugin(input): await asyncio.sleep(0.2)\n")
    plugin_folders.mine("who", SAYS.format(reply="here"))
    loop = asyncio.new_event_loop()
    with plugin_folders.open() as ws:
        with pytest.raises(Exception, match="longer than its limit"):
            loop.run_until_complete(ws.call("who", {}, timeout=0.05))
        assert ws.call_sync("who", {}).output == "here"
        assert loop.run_until_complete(ws.call("who", {})).output == "here"
        loop.run_until_complete(asyncio.sleep(0.3))
        assert running(ws) == ["slow", "who"]
    loop.close()


async def test_a_starting_plugin_may_call_tools(plugin_folders: PluginFolders) -> None:
    plugin_folders.write(plugin_folders.project / "a.txt", "in the file")
    plugin_folders.mine(
        "caller",
        """
        async def plugin(input):
            text = (await input.client.call("read", {"filePath": str(input.directory / "a.txt")})).output
            return {"tool": {"said": lambda: text}}
        """,
    )
    async with plugin_folders.open() as ws:
        assert "in the file" in (await ws.call("said", {})).output


async def test_every_distinct_function_of_a_module_is_run_once(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "several",
        """
        seen = []
        def one(input): seen.append("one")
        two = one
        async def three(input): seen.append("three")
        def _own(input): seen.append("private")
        def helper(a, b): seen.append("helper")
        class Thing: pass
        from os.path import basename
        def last(input):
            return {"tool": {"seen": lambda: ",".join(seen)}}
        """,
    )
    async with plugin_folders.open() as ws:
        assert (await ws.call("seen", {})).output == "one,three"


async def test_all_or_the_annotation_says_which_functions_are_plugins(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "named",
        """
        __all__ = ["_chosen"]
        def clean(text): raise RuntimeError("not a plugin")
        def _chosen(input): return {"tool": {"a": lambda: "a"}}
        """,
    )
    plugin_folders.mine(
        "annotated",
        """
        from opencode_jupyter.core.plugins import PluginInput
        def clean(text): raise RuntimeError("not a plugin")
        def chosen(input: PluginInput): return {"tool": {"b": lambda: "b"}}
        """,
    )
    async with plugin_folders.open() as ws:
        assert (await ws.call("a", {})).output + (await ws.call("b", {})).output == "ab"


async def test_without_plugins_a_workspace_is_settled_after_one_look(plugin_folders: PluginFolders) -> None:
    async with plugin_folders.open() as ws:
        assert not plugins_of(ws).is_fresh()
        await ws.registry.prepare()
        assert plugins_of(ws).is_fresh()
        assert not plugins_of(ws).describe()
        assert not ws.bus.has_subscribers("file.edited")


async def test_packages_are_looked_up_once_per_process(
    plugin_folders: PluginFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    real = importlib.metadata.distributions

    def counted() -> Iterable[importlib.metadata.Distribution]:
        looks.append(Path())
        return real()

    monkeypatch.setattr(importlib.metadata, "distributions", counted)
    for _ in range(3):
        async with plugin_folders.open() as ws:
            await ws.registry.prepare()
    assert len(looks) == 1


async def test_a_plugin_that_is_late_joins_when_it_is_ready(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine(
        "late",
        """
        import asyncio
        ready = asyncio.Event()
        async def plugin(input):
            await ready.wait()
            def before(input, output): output["args"]["said"] = "joined"
            return {"tool.execute.before": before}
        """,
    )
    plugin_folders.mine(
        "echo",
        "def plugin(input):\n    def echo(said: str = 'alone'): return said\n    return {'tool': {'echo': echo}}\n",
    )
    async with plugin_folders.open() as ws:
        plugins_of(ws).limit = 1
        assert (await ws.call("echo", {})).output == "alone"
        assert states(ws) == {"echo": "runs", "late": "failed"}
        assert "join once it has" in ws.registry.why_not("late_x")
        module = next(m for name, m in sys.modules.items() if name.endswith(".late") and hasattr(m, "ready"))
        module.ready.set()
        async with asyncio.timeout(20):
            while plugins_of(ws).is_fresh():
                await asyncio.sleep(0.01)
        assert (await ws.call("echo", {})).output == "joined"
        assert running(ws) == ["echo", "late"]


async def test_trust_that_is_taken_back_ends_a_plugin(plugin_folders: PluginFolders) -> None:
    plugin_folders.local("here", SAYS.format(reply="here"))
    async with plugin_folders.open() as ws:
        (subject,) = plugins_of(ws).untrusted()
        ws.trust.grant(subject)
        assert (await ws.call("who", {})).output == "here"
        ws.trust.revoke(subject)
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})


async def test_a_plugin_file_imports_from_beside_it_what_was_trusted_with_it(plugin_folders: PluginFolders) -> None:
    folder = plugin_folders.project / ".opencode" / "plugin"
    plugin_folders.local(
        "main", "from ._words import WORD\ndef plugin(input): return {'tool': {'who': lambda: WORD}}\n"
    )
    plugin_folders.write(folder / "_words.py", "WORD = 'first'\n")
    async with plugin_folders.open() as ws:
        (subject,) = plugins_of(ws).untrusted()
        assert "WORD = 'first'" in subject.shown["content"]
        assert subject.shown["label"] == ".opencode/plugin/main.py"
        ws.trust.grant(subject)
        assert (await ws.call("who", {})).output == "first"
        plugin_folders.write(folder / "_words.py", "WORD = 'another'\n")
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})


async def test_another_folder_has_its_own_plugins(plugin_folders: PluginFolders) -> None:
    plugin_folders.mine("always", "def plugin(input): return {}\n")
    plugin_folders.local("here", SAYS.format(reply="here"))
    other = plugin_folders.root / "other"
    (other / ".git").mkdir(parents=True)
    async with plugin_folders.open() as ws:
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "here"
        ws.change_directory(other)
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        assert running(ws) == ["always"]


async def test_a_config_folder_that_comes_later_brings_its_plugins(plugin_folders: PluginFolders) -> None:
    async with plugin_folders.open() as ws:
        await ws.registry.prepare()
        assert states(ws) == {}
        plugin_folders.write(plugin_folders.project / ".opencode" / "plugin" / "late.py", SAYS.format(reply="late"))
        await ws.registry.prepare()
        assert states(ws) == {"late": "waits"}
