"""Looking for plugins never fails, whatever a config names; of equal names the last counts, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.core.config import Config
from opencode_jupyter.sources.plugin_discovery import PluginScan, PluginSpec, canonical, locate_module

NAMES = st.sampled_from(
    ["json", "json-decoder", "acme", "acme@1.0", "@a/b@2", "-acme", "-*", "json.decoder", "email.mime"]
)
PATHS = st.sampled_from(["./x.py", "../x.py", "~/x.py", "file:///x.py", "file://host/x.py", "./x.ts", "/", "~", "x.js"])
ENTRIES = st.lists(st.one_of(NAMES, PATHS, st.text(max_size=12)), max_size=8)


def found_plugins(root: Path, entries: list[str], source: str = "in code") -> list[PluginSpec]:
    home = root / "home"
    data = {"plugin": entries}
    config = Config(data=data, sources=[(source, data)], home=home, directories=[home / ".config" / "opencode"])
    config.project_sources = {source} - {"in code"}
    with Workspace(root, data_dir=root / "data", store=False) as workspace:
        workspace.use_config(config)
        return PluginScan(workspace, config, ()).find().plugins


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(entries=ENTRIES, own=st.booleans())
def test_any_list_of_names_is_taken(tmp_path: Path, entries: list[str], own: bool) -> None:
    (tmp_path / "x.py").write_text("x = 1\n")
    specs = found_plugins(tmp_path, entries, "in code" if own else str(tmp_path / "opencode.json"))
    keys = [spec.key for spec in specs if not spec.reason]
    assert len(keys) == len(set(keys))
    for spec in specs:
        assert spec.source
        assert own or spec.reason  # a project's needs trust first
        assert spec.reason or spec.target is not None


def test_of_equal_names_the_last_one_stays_at_its_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(f"# {name}\n")
    (tmp_path / "other.py").write_text("")
    specs = found_plugins(tmp_path, ["./a/same.py", "./other.py", "./b/same.py", "json"])
    assert [spec.name for spec in specs] == ["other", "same", "json"]
    assert specs[1].target == tmp_path / "b" / "same.py"


@pytest.mark.parametrize(
    ("text", "name"),
    [("file://{}/my%20plugin.py", "my plugin"), ("./my plugin.py", "my plugin"), ("{}/my plugin.py", "my plugin")],
)
def test_a_file_in_each_spelling(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "my plugin.py").write_text("")
    (spec,) = found_plugins(tmp_path, [text.format(tmp_path)])
    assert (spec.name, spec.kind, spec.reason) == (name, "file", "")
    assert spec.target == tmp_path / "my plugin.py"


@pytest.mark.parametrize(
    "name", ["os", "sys", "builtins", "no_such_module_at_all", "json.nothing", "a b", "", "1", "email."]
)
def test_what_is_no_module_of_a_file_is_not_located(tmp_path: Path, name: str) -> None:
    located = locate_module(name, tmp_path)
    assert located is None or (name == "os" and located.path.name == "os.py")


def test_locating_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "never_run" / "inner"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("raise SystemExit('it was run')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    located = locate_module("never-run.inner", tmp_path / "elsewhere")
    assert located is not None
    assert (located.name, located.path) == ("never_run.inner", (package / "__init__.py").resolve())


@given(st.text(max_size=20))
def test_a_canonical_name_stays_what_it_is(name: str) -> None:
    assert canonical(canonical(name)) == canonical(name)
    assert canonical(name.upper()) == canonical(name.upper().lower())
