"""A notebook and its configuration: broken files, mended files, `%tools reload`, and `%config ToolMagics`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from opencode_jupyter import PermissionDeniedError, Workspace
from opencode_jupyter.core.errors import ConfigError, ToolError
from opencode_jupyter.core.flags import SWITCHES, Flags, describe
from opencode_jupyter.jupyter.settings import Settings, SettingTraits
from tests.support.shells import Shell, shell

BROKEN = '{\n  "permission": {"bash": "deny"\n  "read": "allow"}\n}'


@pytest.fixture
def ip(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    with shell(tmp_path) as instance:
        Path("a.txt").write_text("one\n")
        yield instance


def traceback_text(error: BaseException) -> str:
    return "\n".join(error._render_traceback_())  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", ["%tool read a.txt", "%tools", "%permissions", "%tools doctor"])
def test_a_broken_file_is_shown_and_mended_without_a_restart(ip: Shell, line: str) -> None:
    path = Path("opencode.json").resolve()
    path.write_text(BROKEN)
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            ip.run(line)
        first, source, caret, advice = traceback_text(caught.value).split("\n")
        assert first.startswith(f"ConfigError: {path}:3: ")
        assert source[caret.index("^") :].startswith('"read"') and "no restart is needed" in advice
    path.write_text(BROKEN.replace('"deny"', '"deny",'))
    ip.run(line)
    with pytest.raises(PermissionDeniedError):
        ip.run("%tool bash 'echo x'")


def test_a_folder_with_a_broken_file_is_not_worked_in(ip: Shell) -> None:
    assert "one" in ip.run("%tool read a.txt").output
    folder = Path("other")
    folder.mkdir()
    (folder / "opencode.json").write_text(BROKEN)
    (folder / "b.txt").write_text("two\n")
    before = Path.cwd()
    ip.run("%cd -q other")
    for _ in range(2):  # the second time too: the rules of the old folder must not hold here
        with pytest.raises(ConfigError):
            ip.run("%tool read b.txt")
    assert ip.notebook.workspace.directory == before
    ip.run("%cd -q ..")
    assert "one" in ip.run("%tool read a.txt").output
    (folder / "opencode.json").write_text('{"permission": {"read": {"b.txt": "deny", "other/b.txt": "deny"}}}')
    ip.run("%cd -q other")
    with pytest.raises(PermissionDeniedError):
        ip.run("%tool read b.txt")


def test_a_changed_file_is_told_once_and_read_when_asked(ip: Shell) -> None:
    ip.run("%tool read a.txt")
    path = Path("opencode.json")
    path.write_text('{"permission": {"read": "deny"}, "snapshot": 1}')
    with pytest.warns(UserWarning, match=r"opencode\.json changed since .* %tools reload") as warned:
        ip.run("%tool read a.txt")
    assert {warning.filename for warning in warned} == {"opencode_jupyter"}  # not the cell's generated code
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ip.run("%tool read a.txt")  # told once; and not in force before a person says so
    table = ip.run("%tools reload")
    assert [(row["sets"], row["now"]) for row in table.records] == [("permission", "new")]
    assert "snapshot is 1" in "".join(table.notes)
    with pytest.warns(UserWarning, match="snapshot is 1"), pytest.raises(PermissionDeniedError):
        ip.run("%tool read a.txt")
    path.write_text("{")
    with pytest.raises(ConfigError):
        ip.run("%tools reload")
    with pytest.warns(UserWarning, match="changed since"), pytest.raises(PermissionDeniedError):
        ip.run("%tool read a.txt")  # what was read before stays in force
    path.unlink()
    assert [row["now"] for row in ip.run("%tools reload").records] == ["gone"]
    assert "one" in ip.run("%tool read a.txt").output


def test_broken_files_of_a_project_are_reported_once_and_the_rest_works(ip: Shell) -> None:
    broken = {
        ".opencode/skill/s\x1b[31m/SKILL.md": "---\nname: s\n",
        ".opencode/tool/t.py": "def t(:\n",
    }
    for name, text in broken.items():
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text(text)
    with pytest.raises(ToolError, match=r"Available skills: none"):
        ip.run("%tool skill s")
    ip.run("%tools trust .opencode/tool/t.py")
    with pytest.warns(UserWarning, match="no closing") as warned, pytest.raises(ToolError, match="SyntaxError"):
        ip.run("%tool t")
    tool_file, skill = (str(warning.message) for warning in warned)
    assert r"s\x1b[31m/SKILL.md: " in skill and "tool/t.py:1: SyntaxError" in tool_file
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "one" in ip.run("%tool read a.txt").output
    advice = [row["advice"] for row in ip.run("%tools doctor").records]
    assert any("/SKILL.md" in str(text) for text in advice)


def test_rules_saved_here_are_no_news(ip: Shell) -> None:
    ip.run("%permissions deny bash 'rm *' --project")
    assert Path("opencode.json").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ip.run("%tool read a.txt")


def test_a_workspace_stays_where_its_configuration_is_known(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    bad.mkdir()
    (bad / "opencode.json").write_text(BROKEN)
    with Workspace(good, data_dir=tmp_path / "data", store=False) as ws:
        with pytest.raises(ConfigError):
            ws.change_directory(bad)
        assert ws.directory == good
    with pytest.raises(ConfigError, match=r"opencode\.json:3"):
        Workspace(bad, data_dir=tmp_path / "data", store=False)


# ---- %config ToolMagics


def test_every_setting_has_a_default_limits_and_help() -> None:
    traits = SettingTraits.class_traits(config=True)
    assert traits.keys() == set(Settings.__dataclass_fields__)
    for name, trait in traits.items():
        assert trait.help and trait.default() == getattr(Settings(), name)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("card_after = 1.5", "card_after", 1.5),
        ("prompt_after = 0", "prompt_after", 0),
        ("timeout = 3", "timeout", 3),
        ("quiet = True", "quiet", True),
        ("agent = 'plan'", "agent", "plan"),
    ],
)
def test_settings_are_set_and_used(ip: Shell, line: str, name: str, value: Any) -> None:
    ip.run(f"%config ToolMagics.{line}")
    ip.run("%tool read a.txt")
    assert getattr(ip.notebook.settings, name) == value
    assert len(ip.shown) == (0 if name == "quiet" else len(ip.shown))


@pytest.mark.parametrize(
    "line", ["card_after = -1", "prompt_after = 'soon'", "timeout = -3", "on_ask = 'maybe'", "data_dir = 'x'"]
)
def test_wrong_settings_are_refused(ip: Shell, line: str, caplog: pytest.LogCaptureFixture) -> None:
    ip.run(f"%config ToolMagics.{line}")  # IPython shows the error as a line
    assert len(caplog.messages) == 1 and line.split()[0] in caplog.messages[0]
    ip.run("%tool read a.txt")
    assert ip.notebook.settings == Settings()


def test_the_default_time_limit_ends_a_call(ip: Shell) -> None:
    ip.run("%config ToolMagics.timeout = 0.3")
    with pytest.raises(Exception, match="longer than its limit"):
        ip.run("%tool bash sleep 20")
    assert "x" in ip.run("%tool --timeout 60 bash sleep 0.4; echo x").output  # the line's own goes before


def test_the_data_folder_is_chosen_before_the_first_call(
    ip: Shell, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ip.run(f"%config ToolMagics.data_dir = {str(tmp_path / 'mine')!r}")
    ip.run("%tool read a.txt")
    assert ip.notebook.workspace.data_dir == tmp_path / "mine"
    ip.run("%config ToolMagics.data_dir = '/elsewhere'")
    assert "once the tools are in use" in caplog.text
    assert ip.notebook.settings.data_dir == str(tmp_path / "mine")


def test_settings_of_the_config_file_hold(tmp_path: Path) -> None:
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.ToolMagics.card_after = 9.0
    config.ToolMagics.data_dir = str(tmp_path / "d")
    ip = InteractiveShell.instance(config=config)
    try:
        ip.run_line_magic("load_ext", "opencode_jupyter")
        [magics] = [item for item in ip.configurables if type(item).__name__ == "ToolMagics"]
        assert magics.notebook.settings == Settings(card_after=9.0, data_dir=str(tmp_path / "d"))
    finally:
        ip.run_line_magic("unload_ext", "opencode_jupyter")
        InteractiveShell.clear_instance()


# ---- switches of the environment


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, {"client": "cli", "question": True, "lsp": False, "enable_exa": False, "plan_mode": False}),
        ({"OPENCODE_EXPERIMENTAL": "1"}, {"lsp": True, "enable_exa": True, "plan_mode": True, "question": True}),
        ({"OPENCODE_EXPERIMENTAL": "true", "OPENCODE_CLIENT": "acp"}, {"plan_mode": False, "question": False}),
        ({"OPENCODE_CLIENT": "acp", "OPENCODE_ENABLE_QUESTION_TOOL": "1"}, {"question": True}),
        ({"OPENCODE_CLIENT": "app"}, {"question": True}),
        ({"OPENCODE_CLIENT": "desktop"}, {"question": True}),
        ({"OPENCODE_CLIENT": ""}, {"client": "cli"}),
        ({"OPENCODE_ENABLE_EXA": "TRUE"}, {"enable_exa": True, "lsp": False}),
        ({"OPENCODE_EXPERIMENTAL_EXA": "1"}, {"enable_exa": True}),
        ({"OPENCODE_EXPERIMENTAL_LSP_TOOL": "1"}, {"lsp": True, "plan_mode": False}),
        ({"OPENCODE_EXPERIMENTAL_PLAN_MODE": "1"}, {"plan_mode": True}),
        ({"OPENCODE_EXPERIMENTAL_PLAN_MODE": "1", "OPENCODE_CLIENT": "app"}, {"plan_mode": False}),
        ({"OPENCODE_EXPERIMENTAL": "yes"}, {"lsp": False}),
        ({"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}, {"project_config": False}),
        ({"OPENCODE_DISABLE_CLAUDE_CODE": "1"}, {"external_skills": False}),
        ({"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}, {"default_plugins": False}),
    ],
)
def test_what_each_switch_does(env: dict[str, str], expected: dict[str, Any]) -> None:
    flags = Flags.read(env)
    assert {name: getattr(flags, name) for name in expected} == expected


def test_the_switches_that_are_set_are_described() -> None:
    env = {
        "OPENCODE_ENABLE_EXA": "1",
        "OPENCODE_EXPERIMENTAL": "yes",
        "OPENCODE_CLIENT": "app",
        "OPENCODE_PERMISSION": '{"bash": "s3cr3t"}',
        "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS": "soon",
        "OPENCODE_DISABLE_LPS": "1",
        "OPENCODE_AUTO_SHARE": "1",
        "OPENCODE_CONFIG": "",
        "HOME": "/x",
    }
    rows = {name: (state, does) for name, state, does in describe(env)}
    assert list(rows) == [
        "OPENCODE_CLIENT",
        "OPENCODE_EXPERIMENTAL",
        "OPENCODE_ENABLE_EXA",
        "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS",
        "OPENCODE_PERMISSION",
        "OPENCODE_AUTO_SHARE",
        "OPENCODE_DISABLE_LPS",
    ]
    assert rows["OPENCODE_CLIENT"][0] == "app" and rows["OPENCODE_ENABLE_EXA"][0] == "on"
    assert rows["OPENCODE_EXPERIMENTAL"] == ("off", "only true and 1 switch it on")
    assert "does not count" in rows["OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS"][1]
    assert "s3cr3t" not in str(rows)
    assert "did you mean OPENCODE_DISABLE_LSP?" in rows["OPENCODE_DISABLE_LPS"][1]
    assert "no effect" in rows["OPENCODE_AUTO_SHARE"][1]


def test_every_variable_that_is_read_is_described() -> None:
    import re

    package = Path(__file__).parents[3] / "opencode_jupyter"
    read = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"\"(OPENCODE_[A-Z_]+)\"", path.read_text(encoding="utf-8"))
    }
    assert read - set(SWITCHES) == set()
    assert {name for name in SWITCHES if name not in read} == set()


def test_the_doctor_names_switches(ip: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "OPENCODE_ENABLE_EXA", "1")
    rows = {row["check"]: row["result"] for row in ip.run("%tools doctor").records}
    assert rows["$OPENCODE_ENABLE_EXA"].startswith("on: ")
