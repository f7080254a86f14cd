"""Where steps of the load order meet (docs/opencode/core.md 14.1): lists, agents of several kinds, the last word."""

from __future__ import annotations

from pathlib import Path

import pytest

from opencode_jupyter.core.config.load import load_config
from opencode_jupyter.core.errors import ConfigError
from tests.support.config_layout import ConfigLayout


def managed(layout: ConfigLayout) -> Path:
    return Path(layout.env["OPENCODE_TEST_MANAGED_CONFIG_DIR"])


def test_plugins_and_instructions_of_every_source_are_joined(layout: ConfigLayout) -> None:
    layout.env["OPENCODE_CONFIG"] = str(layout.home / "named.json")
    layout.env["OPENCODE_CONFIG_CONTENT"] = '{"plugin": ["e", "a"], "instructions": ["i"]}'
    layout.write(layout.home / ".config" / "opencode" / "opencode.json", {"plugin": ["a", "b"], "instructions": ["g"]})
    layout.write(layout.home / "named.json", {"plugin": ["c"], "skills": {"paths": ["x"]}})
    layout.write(layout.tree / "opencode.json", {"plugin": ["b", "d"], "skills": {"paths": ["y"]}})
    layout.write(managed(layout) / "opencode.json", {"plugin": ["f"]})
    data = layout.load(overrides={"plugin": ["o"]}).data
    assert data["plugin"] == ["a", "b", "c", "d", "e", "o", "f"]
    assert data["instructions"] == ["g", "i"]
    assert data["skills"] == {"paths": ["y"]}  # other lists are replaced


def test_the_environment_has_the_last_word_on_permissions(layout: ConfigLayout) -> None:
    layout.write(layout.tree / "opencode.json", {"permission": {"bash": "allow", "edit": "allow", "read": "allow"}})
    layout.write(managed(layout) / "opencode.jsonc", '{"permission": {"edit": "ask", "bash": "ask"}} // the office')
    layout.env["OPENCODE_PERMISSION"] = '{"bash": "deny"}'
    config = layout.load(overrides={"permission": {"read": "ask"}})
    rules = {rule.permission: (rule.action, Path(rule.origin).name) for rule in config.permission_rules}
    assert rules == {
        "bash": ("deny", "OPENCODE_PERMISSION"),
        "edit": ("ask", "opencode.jsonc"),
        "read": ("ask", "the workspace's config"),
    }


def test_an_agent_is_put_together_from_files_and_markdown(layout: ConfigLayout) -> None:
    folder = layout.here / ".opencode"
    layout.write(
        layout.tree / "opencode.json", {"agent": {"x": {"steps": 1, "temperature": 0.1, "tools": {"bash": False}}}}
    )
    layout.write(folder / "opencode.json", {"agent": {"x": {"steps": 2, "description": "from json"}}})
    layout.write(folder / "agents" / "x.md", "---\ndescription: from markdown\ntools:\n  write: true\n---\nBe x.")
    layout.env["OPENCODE_CONFIG_CONTENT"] = '{"agent": {"x": {"temperature": 0.9}}}'
    config = layout.load()
    assert config.data["agent"]["x"] == {
        "steps": 2,
        "temperature": 0.9,
        "permission": {"bash": "deny", "edit": "allow"},
        "description": "from markdown",
        "prompt": "Be x.",
    }
    assert config.origin("agent", "x", "temperature") == "OPENCODE_CONFIG_CONTENT"
    assert config.origin("agent", "x", "prompt").endswith("x.md")


def test_a_mistake_in_an_agents_file_names_the_file(layout: ConfigLayout) -> None:
    path = layout.write(layout.here / ".opencode" / "agent" / "x.md", "---\nsteps: many\nmode: subagnet\n---\nText.")
    config = layout.load()
    assert {(w.path, w.key) for w in config.warnings} == {(str(path), "agent.x.steps"), (str(path), "agent.x.mode")}
    assert config.data["agent"]["x"] == {"prompt": "Text."}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("---\nmode: all\ndescription: \x1b[31mred\n---\n", 3, r"the front matter holds the character U\+001B"),
        ('---\ndescription: "\\UFFFFFFFF"\n---\n', 2, "a value that can't be read"),
        ("---\nmode: all\n", 1, "no closing"),
        ("\ud800", 1, "is not UTF-8 text"),
    ],
)
def test_the_error_of_a_broken_agents_file_says_where_it_is(
    layout: ConfigLayout, text: str, line: int, problem: str
) -> None:
    for folder in (layout.here / ".opencode" / "agent", layout.home / ".config" / "opencode" / "agent"):
        folder.mkdir(parents=True)
        (folder / "broken.md").write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(ConfigError, match=problem) as caught:  # its rules are not to get lost
            layout.load()
        assert (caught.value.path, caught.value.line) == (str(folder / "broken.md"), line)
        (folder / "broken.md").unlink()


def test_what_the_environment_brings_may_be_wrong(layout: ConfigLayout) -> None:
    for name in ("OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"):
        layout.env[name] = "{"
        with pytest.raises(ConfigError) as caught:
            layout.load()
        assert caught.value.path == name
        layout.env[name] = "[]"
        if name == "OPENCODE_PERMISSION":
            assert [w.key for w in layout.load().warnings] == ["permission"]
            assert layout.load().permission_rules[0].action == "ask"
        else:
            with pytest.raises(ConfigError, match="must be an object"):
                layout.load()
        layout.env[name] = "  "
        assert layout.load().data == ({} if name != "OPENCODE_PERMISSION" else {"permission": {}})


def test_a_config_file_named_twice_is_read_in_both_places(layout: ConfigLayout) -> None:
    path = layout.write(layout.here / "opencode.json", {"username": "project", "plugin": ["a"]})
    layout.write(layout.tree / "opencode.json", {"username": "tree", "plugin": ["b"]})
    layout.env["OPENCODE_CONFIG"] = str(path)
    config = layout.load()
    assert config.data == {"username": "project", "plugin": ["a", "b"]}
    layout.env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
    assert layout.load().data == {"username": "project", "plugin": ["a"]}  # named on purpose


def test_it_records_which_files_came_with_the_project(tmp_path: Path) -> None:
    own = tmp_path / ".config" / "opencode"
    below = tmp_path / "deep" / "below"
    for folder in (own, below, tmp_path / ".opencode"):
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text("{}")
    (tmp_path / "opencode.json").write_text("{}")
    (tmp_path / "extra.json").write_text("{}")
    env = {"OPENCODE_CONFIG": str(tmp_path / "extra.json")}
    files = {str(tmp_path / "opencode.json"), str(below / "opencode.json"), str(tmp_path / "extra.json")}

    versioned = load_config(below, tmp_path, home=tmp_path, env=env)  # the home folder is the project
    assert {str(own / "opencode.json"), str(tmp_path / ".opencode" / "opencode.json")} <= {
        n for n, _ in versioned.sources
    }
    assert versioned.project_sources == files
    alone = load_config(below, "/", home=tmp_path, env=env)  # a folder above may be another user's
    assert alone.project_sources == files


def test_a_named_file_is_the_projects_by_its_name_or_its_target(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    project = home / ".config" / "thing"  # below the user's own folder
    for folder in (project, elsewhere, home / ".config" / "opencode", home / ".opencode" / "inner"):
        folder.mkdir(parents=True)
    for path in (project / "a.json", elsewhere / "b.json", home / ".opencode" / "inner" / "c.json"):
        path.write_text("{}")
    (project / "to_b.json").symlink_to(elsewhere / "b.json")
    (elsewhere / "to_a.json").symlink_to(project / "a.json")
    for directory, name, is_the_projects in (
        (project, project / "a.json", True),
        (project, project / "to_b.json", True),
        (project, elsewhere / "to_a.json", True),
        (project, elsewhere / "b.json", False),
        (home / ".opencode" / "inner", home / ".opencode" / "inner" / "c.json", True),
        (home, home / ".opencode" / "inner" / "c.json", False),
    ):
        config = load_config(directory, directory, home=home, env={"OPENCODE_CONFIG": str(name)})
        assert (str(name) in config.project_sources) == is_the_projects, name


def test_the_users_own_file_stays_theirs_where_it_links_into_the_project(tmp_path: Path) -> None:
    home, dotfiles = tmp_path / "home", tmp_path / "home" / "dotfiles"
    (home / ".config" / "opencode").mkdir(parents=True)
    dotfiles.mkdir()
    (dotfiles / "global.json").write_text("{}")
    (home / ".config" / "opencode" / "opencode.json").symlink_to(dotfiles / "global.json")
    assert load_config(dotfiles, dotfiles, home=home, env={}).project_sources == set()
