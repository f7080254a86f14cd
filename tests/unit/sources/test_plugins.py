"""Plugins: where they come from, in which order, which of equal names counts, and what keeps one from running."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import UnknownToolError
from tests.support.plugin_place import PluginPlace, plugins_of, running, states

pytestmark = pytest.mark.anyio

SAYS = """
    def plugin(input):
        def who() -> str:
            "Says where it is from."
            return {said!r}
        return {{"tool": {{"who": who}}}}
"""


async def test_sources_come_in_order_and_the_last_of_equal_names_counts(plugin_place: PluginPlace) -> None:
    plugin_place.package("acme-tools", SAYS.format(said="package"), {"acme": "acme_tools:plugin"})
    plugin_place.package("beta", SAYS.format(said="beta"), {"beta": "beta"})
    plugin_place.package("late", SAYS.format(said="late"), {"late": "late"})
    lone = plugin_place.write(plugin_place.home / "lone.py", SAYS.format(said="lone"))
    plugin_place.write(plugin_place.own / "opencode.json", {"plugin": [lone.as_uri(), "late@1.2.3"]})
    plugin_place.mine("acme", SAYS.format(said="file"))
    async with plugin_place.open() as ws:
        assert (await ws.call("who", {})).output == "file"
        assert running(ws) == ["beta", "lone", "late", "acme"]
        sources = {row["plugin"]: row["source"] for row in plugins_of(ws).describe()}
    assert sources["beta"] == "beta 1.0 (installed)"
    assert sources["acme"] == str(plugin_place.own / "plugin" / "acme.py")
    assert "late 1.0 (installed), named in " in sources["late"]


async def test_both_folder_names_hold_plugins_and_hidden_files_do_not_count(plugin_place: PluginPlace) -> None:
    plugin_place.mine("one", SAYS.format(said="one"))
    plugin_place.write(plugin_place.own / "plugins" / "two.py", SAYS.format(said="two"))
    plugin_place.mine("_helper", "raise RuntimeError('a helper is no plugin')")
    plugin_place.mine(".one", "raise RuntimeError('an editor left it')")
    async with plugin_place.open() as ws:
        assert (await ws.call("who", {})).output == "two"
        assert list(states(ws)) == ["one", "two"]


async def test_packages_are_named_in_a_config_by_module_name_and_path(plugin_place: PluginPlace) -> None:
    plugin_place.write(plugin_place.site / "plain_module.py", SAYS.format(said="module"))
    plugin_place.write(plugin_place.site / "deep" / "__init__.py", "")
    plugin_place.write(plugin_place.site / "deep" / "inner.py", SAYS.format(said="inner"))
    plugin_place.write(plugin_place.own / "near.py", SAYS.format(said="near"))
    named = ["plain-module", "deep.inner", "./near.py"]
    plugin_place.write(plugin_place.own / "opencode.json", {"plugin": named})
    async with plugin_place.open() as ws:
        assert (await ws.call("who", {})).output == "near"
        assert running(ws) == ["plain-module", "deep.inner", "near"]


async def test_what_can_not_run_here_is_listed_with_the_reason(plugin_place: PluginPlace) -> None:
    plugin_place.write(plugin_place.own / "plugin" / "old.ts", "export default async () => ({})")
    named = ["opencode-helicone-session", "@scope/pkg@1.0", "./gone.py"]
    plugin_place.write(plugin_place.own / "opencode.json", {"plugin": named})
    async with plugin_place.open() as ws:
        await ws.registry.prepare()
        reasons = {one.id: one.reason for one in ws.registry.unavailable()}
        assert set(states(ws).values()) == {"can't run"}
    assert "JavaScript" in reasons["old_*"]
    assert "no Python package of that name" in reasons["opencode-helicone-session_*"]
    assert "npm" in reasons["@scope/pkg_*"]
    assert "can't be read" in reasons["gone_*"]


async def test_an_installed_plugin_can_be_switched_off(
    plugin_place: PluginPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin_place.package("acme-tools", SAYS.format(said="a"), {"acme": "acme_tools", "more": "acme_tools"})
    plugin_place.package("beta", SAYS.format(said="b"), {"beta": "beta"})
    async with plugin_place.open(config={"plugin": ["-beta"]}) as ws:
        await ws.registry.prepare()
        assert states(ws) == {"acme": "runs", "more": "runs", "beta": "switched off"}
    async with plugin_place.open(config={"plugin": ["-acme-tools"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["beta"]
    async with plugin_place.open(config={"plugin": ["-*", "beta"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["beta"]
    plugin_place.mine("own", SAYS.format(said="own"))
    async with plugin_place.open(config={"plugin": ["-own"]}) as ws:
        await ws.registry.prepare()
        assert states(ws) == {"acme": "runs", "more": "runs", "beta": "runs", "own": "switched off"}
    async with plugin_place.open(config={"plugin": ["-own", "beta", "-beta", "beta"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["acme", "more", "beta"]
    (plugin_place.own / "plugin" / "own.py").unlink()
    monkeypatch.setenv("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")
    async with plugin_place.open(config={"plugin": ["acme"]}) as ws:
        await ws.registry.prepare()
        assert running(ws) == ["acme"]


async def test_a_project_can_neither_switch_off_nor_replace_a_plugin_of_the_user(plugin_place: PluginPlace) -> None:
    plugin_place.mine("guard", SAYS.format(said="mine"))
    plugin_place.mine("second", "def plugin(input): pass")
    plugin_place.package("acme", SAYS.format(said="acme"), {"acme": "acme"})
    plugin_place.config(plugin=["-acme", "-*", "-second", "-other"])
    plugin_place.local("other", "def plugin(input): pass")
    plugin_place.local("guard", SAYS.format(said="the project's"))
    async with plugin_place.open() as ws:
        assert (await ws.call("who", {})).output == "mine"
        assert running(ws) == ["acme", "guard", "second"]
        problems = plugins_of(ws).without_effect
        assert [
            said for said in problems if said.startswith('"-second" in ') and "cannot switch your plugins off" in said
        ]
        assert [said for said in problems if said.startswith('"-acme" in ')]
        assert states(ws)["other"] == "switched off"
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "the project's"
        assert running(ws) == ["acme", "second", "guard"]


# ---------------------------------------------------------------------- trust


async def test_a_projects_plugin_runs_once_it_is_trusted_and_until_it_changes(plugin_place: PluginPlace) -> None:
    path = plugin_place.local("here", SAYS.format(said="first"))
    async with plugin_place.open() as ws:
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

        plugin_place.local("here", SAYS.format(said="changed, and longer"))
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "changed, and longer"

        path.unlink()
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        assert states(ws) == {}


async def test_nothing_of_an_untrusted_plugin_is_run(plugin_place: PluginPlace) -> None:
    mark = plugin_place.root / "it ran"
    code = f"open({str(mark)!r}, 'w').close()\n" + "def plugin(input): return {}\n"
    plugin_place.local("file", code)
    plugin_place.write(plugin_place.project / "named.py", code)
    plugin_place.write(plugin_place.site / "named_module.py", code)
    package = plugin_place.site / "deep"
    plugin_place.write(package / "__init__.py", code)
    plugin_place.write(package / "inner.py", code)
    plugin_place.config(plugin=["./named.py", "named-module", "deep.inner"])
    async with plugin_place.open() as ws:
        await ws.registry.prepare()
        assert set(states(ws).values()) == {"waits"}
        assert len(plugins_of(ws).untrusted()) == 4
        assert not mark.exists()
        ws.trust.grant(*plugins_of(ws).untrusted())
        await ws.registry.prepare()
        assert mark.exists()
        assert running(ws) == ["named", "named-module", "deep.inner", "file"]


async def test_a_config_folder_above_the_project_is_not_the_users(plugin_place: PluginPlace) -> None:
    """Without version control config files up to the root count, also those that somebody put into ``/tmp``."""
    here = plugin_place.root / "loose" / "inner"
    here.mkdir(parents=True)
    plugin_place.write(here.parent / ".opencode" / "opencode.json", {"plugin": ["./evil.py"]})
    plugin_place.write(here.parent / ".opencode" / "evil.py", SAYS.format(said="evil"))
    plugin_place.write(here.parent / ".opencode" / "plugin" / "worse.py", SAYS.format(said="worse"))
    (here / ".opencode").symlink_to(plugin_place.write(plugin_place.root / "x" / "plugin" / "l.py", "").parents[1])
    async with Workspace(here, data_dir=plugin_place.root / "data") as ws:
        await ws.registry.prepare()
        assert states(ws) == {"evil": "waits", "worse": "waits", "l": "waits"}


async def test_a_package_in_the_project_is_trusted_as_a_whole(plugin_place: PluginPlace) -> None:
    package = plugin_place.project / "tools_here"
    plugin_place.write(package / "__init__.py", "from .inner import plugin\n")
    inner = plugin_place.write(package / "inner.py", SAYS.format(said="in"))
    plugin_place.config(plugin=["tools_here"])
    sys.path.append(str(plugin_place.project))
    async with plugin_place.open() as ws:
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "in"
        plugin_place.write(inner, SAYS.format(said="other"))
        assert len(plugins_of(ws).untrusted()) == 1


# ---------------------------------------------------------------------- trouble


async def test_a_hanging_plugin_costs_no_call_more_than_its_limit(plugin_place: PluginPlace) -> None:
    release = threading.Event()
    sys.modules["_release_of_test"] = type(sys)("_release_of_test")
    sys.modules["_release_of_test"].event = release  # type: ignore[attr-defined]
    plugin_place.mine("a_import", "import _release_of_test\n_release_of_test.event.wait()\ndef plugin(input): pass\n")
    plugin_place.mine("b_sync", "import _release_of_test\ndef plugin(input): _release_of_test.event.wait()\n")
    plugin_place.mine("c_async", "import asyncio\nasync def plugin(input): await asyncio.Event().wait()\n")
    plugin_place.mine("d_good", SAYS.format(said="good"))
    try:
        async with plugin_place.open() as ws:
            plugins_of(ws).limit = 2
            assert (await ws.call("who", {})).output == "good"
            assert states(ws) == {"a_import": "failed", "b_sync": "failed", "c_async": "failed", "d_good": "runs"}
            assert "did not start within 2 s" in ws.registry.why_not("a_import_x")
    finally:
        release.set()
        del sys.modules["_release_of_test"]


async def test_failing_plugins_are_kept_apart(plugin_place: PluginPlace) -> None:
    plugin_place.mine("syntax", "def plugin(input:\n")
    plugin_place.mine("missing", "import no_such_module_anywhere\n")
    plugin_place.mine("raises", "def plugin(input): raise ValueError('no key')\n")
    plugin_place.mine("leaves", "def plugin(input): raise SystemExit(3)\n")
    plugin_place.mine("leaves_later", "async def plugin(input): raise SystemExit(3)\n")
    plugin_place.mine("empty", "x = 1\n")
    plugin_place.mine("helper", "def clean(text): return 'a text'\n")
    plugin_place.mine(
        "odd",
        "def plugin(input):\n"
        "    given = {'tool': {'x': 5}, 'event': 3, 'surprise': print, 'auth': {}}\n"
        "    return {**given, 'tool.execute.befor': print}\n",
    )
    plugin_place.mine("good", SAYS.format(said="good"))
    plugin_place.package("broken", "", {"broken": "no_such_module_here:x"})
    async with plugin_place.open() as ws:
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


async def test_many_first_calls_start_each_plugin_once(plugin_place: PluginPlace) -> None:
    count = plugin_place.root / "count"
    plugin_place.write(count, "")
    plugin_place.mine(
        "once",
        f"""
        from pathlib import Path
        def plugin(input):
            path = Path({str(count)!r})
            path.write_text(path.read_text() + "x")
        """,
    )
    async with plugin_place.open() as ws:
        await asyncio.gather(*(ws.call("glob", {"pattern": f"*{i}"}) for i in range(8)))
        assert count.read_text() == "x"


async def test_a_stopped_first_call_leaves_the_plugins_to_the_next(plugin_place: PluginPlace) -> None:
    plugin_place.mine("slow", "import asyncio\nasync def plugin(input): await asyncio.sleep(0.3)\n")
    plugin_place.mine("who", SAYS.format(said="here"))
    async with plugin_place.open() as ws:
        with pytest.raises(Exception, match="longer than its limit"):
            await ws.call("who", {}, timeout=0.05)
        assert (await ws.call("who", {})).output == "here"
        assert running(ws) == ["slow", "who"]


def test_calls_without_a_loop_of_their_own_have_plugins_too(plugin_place: PluginPlace) -> None:
    plugin_place.mine("who", SAYS.format(said="sync"))
    with plugin_place.open() as ws:
        assert ws.call_sync("who", {}).output == "sync"
        assert ws.call_sync("who", {}).output == "sync"


def test_a_loop_that_stands_still_while_it_starts_plugins_holds_no_other_up(plugin_place: PluginPlace) -> None:
    plugin_place.mine("slow", "import asyncio\nasync def plugin(input): await asyncio.sleep(0.2)\n")
    plugin_place.mine("who", SAYS.format(said="here"))
    loop = asyncio.new_event_loop()
    with plugin_place.open() as ws:
        with pytest.raises(Exception, match="longer than its limit"):
            loop.run_until_complete(ws.call("who", {}, timeout=0.05))
        assert ws.call_sync("who", {}).output == "here"
        assert loop.run_until_complete(ws.call("who", {})).output == "here"
        loop.run_until_complete(asyncio.sleep(0.3))
        assert running(ws) == ["slow", "who"]
    loop.close()


async def test_a_starting_plugin_may_call_tools(plugin_place: PluginPlace) -> None:
    plugin_place.write(plugin_place.project / "a.txt", "in the file")
    plugin_place.mine(
        "caller",
        """
        async def plugin(input):
            text = (await input.client.call("read", {"filePath": str(input.directory / "a.txt")})).output
            return {"tool": {"said": lambda: text}}
        """,
    )
    async with plugin_place.open() as ws:
        assert "in the file" in (await ws.call("said", {})).output


async def test_every_distinct_function_of_a_module_is_run_once(plugin_place: PluginPlace) -> None:
    plugin_place.mine(
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
    async with plugin_place.open() as ws:
        assert (await ws.call("seen", {})).output == "one,three"


async def test_all_or_the_annotation_says_which_functions_are_plugins(plugin_place: PluginPlace) -> None:
    plugin_place.mine(
        "named",
        """
        __all__ = ["_chosen"]
        def clean(text): raise RuntimeError("not a plugin")
        def _chosen(input): return {"tool": {"a": lambda: "a"}}
        """,
    )
    plugin_place.mine(
        "annotated",
        """
        from opencode_jupyter.core.plugins import PluginInput
        def clean(text): raise RuntimeError("not a plugin")
        def chosen(input: PluginInput): return {"tool": {"b": lambda: "b"}}
        """,
    )
    async with plugin_place.open() as ws:
        assert (await ws.call("a", {})).output + (await ws.call("b", {})).output == "ab"


async def test_without_plugins_a_workspace_is_settled_after_one_look(plugin_place: PluginPlace) -> None:
    async with plugin_place.open() as ws:
        assert not plugins_of(ws).is_fresh()
        await ws.registry.prepare()
        assert plugins_of(ws).is_fresh()
        assert not plugins_of(ws).describe()
        assert not ws.bus.has_subscribers("file.edited")


async def test_packages_are_looked_up_once_per_process(
    plugin_place: PluginPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    real = importlib.metadata.distributions

    def counted() -> Iterable[importlib.metadata.Distribution]:
        looks.append(Path())
        return real()

    monkeypatch.setattr(importlib.metadata, "distributions", counted)
    for _ in range(3):
        async with plugin_place.open() as ws:
            await ws.registry.prepare()
    assert len(looks) == 1


async def test_a_plugin_that_is_late_joins_when_it_is_ready(plugin_place: PluginPlace) -> None:
    plugin_place.mine(
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
    plugin_place.mine(
        "echo",
        "def plugin(input):\n    def echo(said: str = 'alone'): return said\n    return {'tool': {'echo': echo}}\n",
    )
    async with plugin_place.open() as ws:
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


async def test_trust_that_is_taken_back_ends_a_plugin(plugin_place: PluginPlace) -> None:
    plugin_place.local("here", SAYS.format(said="here"))
    async with plugin_place.open() as ws:
        (subject,) = plugins_of(ws).untrusted()
        ws.trust.grant(subject)
        assert (await ws.call("who", {})).output == "here"
        ws.trust.revoke(subject)
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})


async def test_a_plugin_file_imports_from_beside_it_what_was_trusted_with_it(plugin_place: PluginPlace) -> None:
    folder = plugin_place.project / ".opencode" / "plugin"
    plugin_place.local("main", "from ._words import WORD\ndef plugin(input): return {'tool': {'who': lambda: WORD}}\n")
    plugin_place.write(folder / "_words.py", "WORD = 'first'\n")
    async with plugin_place.open() as ws:
        (subject,) = plugins_of(ws).untrusted()
        assert "WORD = 'first'" in subject.shown["content"]
        assert subject.shown["label"] == ".opencode/plugin/main.py"
        ws.trust.grant(subject)
        assert (await ws.call("who", {})).output == "first"
        plugin_place.write(folder / "_words.py", "WORD = 'another'\n")
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})


async def test_another_folder_has_its_own_plugins(plugin_place: PluginPlace) -> None:
    plugin_place.mine("always", "def plugin(input): return {}\n")
    plugin_place.local("here", SAYS.format(said="here"))
    other = plugin_place.root / "other"
    (other / ".git").mkdir(parents=True)
    async with plugin_place.open() as ws:
        ws.trust.grant(*plugins_of(ws).untrusted())
        assert (await ws.call("who", {})).output == "here"
        ws.change_directory(other)
        with pytest.raises(UnknownToolError):
            await ws.call("who", {})
        assert running(ws) == ["always"]


async def test_a_config_folder_that_comes_later_brings_its_plugins(plugin_place: PluginPlace) -> None:
    async with plugin_place.open() as ws:
        await ws.registry.prepare()
        assert states(ws) == {}
        plugin_place.write(plugin_place.project / ".opencode" / "plugin" / "late.py", SAYS.format(said="late"))
        await ws.registry.prepare()
        assert states(ws) == {"late": "waits"}
