"""Saving a permission rule in the project's configuration: it decides, and nothing else changes or is lost."""

from __future__ import annotations

import codecs
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.config import Config, load_config
from opencode_jupyter.core.config.rule_effects import covers, overlap
from opencode_jupyter.core.config.save import ConfigFiles, remove_rule
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.permission import evaluate
from opencode_jupyter.core.wildcard import match


class Project:
    """A home, and a project with a folder in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree, self.here = root / "home", root / "project", root / "project" / "sub"
        for folder in (self.home, self.here):
            folder.mkdir(parents=True)
        self.env = {"OPENCODE_TEST_MANAGED_CONFIG_DIR": str(root / "managed")}
        self.file = self.tree / "opencode.json"
        self.later = self.tree / ".opencode" / "opencode.json"
        self.user = self.home / ".config" / "opencode" / "opencode.json"

    def write(self, path: Path, content: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def load(self) -> Config:
        return load_config(self.here, self.tree, home=self.home, env=self.env)

    def action(self, permission: str, pattern: str) -> str:
        return evaluate(permission, pattern, self.load().permission_rules).action

    def save(self, permission: str, pattern: str, action: str = "allow", **more: Any) -> Path:
        return ConfigFiles(self.here, self.tree, more.pop("overrides", None), self.home, self.env).save_rule(
            permission, pattern, action, **more
        )

    def permissions(self, path: Path | None = None) -> Any:
        return json.loads((path or self.file).read_bytes())["permission"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def test_a_file_that_is_not_there_is_made(project: Project) -> None:
    assert project.save("bash", "git *") == project.file
    assert project.file.read_text() == (
        '{\n  "$schema": "https://opencode.ai/config.json",\n  "permission": {\n    "bash": {\n'
        '      "git *": "allow"\n    }\n  }\n}\n'
    )
    assert project.action("bash", "git status") == "allow"


def test_without_version_control_the_folder_is_the_project(project: Project) -> None:
    path = ConfigFiles(project.here, Path("/"), home=project.home, env=project.env).save_rule("bash", "git *", "allow")
    assert path == project.here / "opencode.json"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"bash": {"git *": "allow"}}),
        ("ask", {"*": "ask", "bash": {"git *": "allow"}}),
        ({"bash": "ask"}, {"bash": {"*": "ask", "git *": "allow"}}),
        ({"bash": {"ls *": "deny"}}, {"bash": {"ls *": "deny", "git *": "allow"}}),
        ({"bash": {"git *": "ask", "ls": "deny"}}, {"bash": {"git *": "allow", "ls": "deny"}}),
        ({"bash": {"git *": "ask", "*": "ask"}}, {"bash": {"*": "ask", "git *": "allow"}}),
        ({"bash": "ask", "*": "ask"}, {"*": "ask", "bash": {"*": "ask", "git *": "allow"}}),
        ({"edit": "ask", "bash": {"git *": "allow"}, "read": "ask"}, None),
    ],
)
def test_where_the_rule_goes(project: Project, before: Any, after: Any) -> None:
    project.write(project.file, {"permission": before})
    assert project.save("bash", "git *") == project.file
    assert project.permissions() == (after or before)
    assert [list(v) for v in project.permissions().values() if isinstance(v, dict)] == [
        list(v) for v in (after or before).values() if isinstance(v, dict)
    ]
    assert list(project.permissions()) == list(after or before)


def test_an_action_for_all_stays_an_action(project: Project) -> None:
    project.save("webfetch", "*")
    project.write(project.file, {"permission": {**project.permissions(), "edit": "ask"}})
    project.save("edit", "*", "deny")
    assert project.permissions() == {"webfetch": "allow", "edit": "deny"}
    with pytest.raises(ToolError, match="one action for all of webfetch"):
        project.save("webfetch", "https://a/*", "deny")


def test_every_other_byte_stays(project: Project) -> None:
    text = (
        '{\r\n\t"model" : "a/b",\t"numbers": [1.0, 1e3,\r\n 2],\r\n\t"permission": {"edit":"ask"},\r\n'
        '\t"username": "\\u00e9é {env:NAME}",\r\n\t"plugin": []\r\n\r\n}'
    )
    project.write(project.file, codecs.BOM_UTF8 + text.encode())
    project.save("bash", "git *")
    content = project.file.read_bytes().decode("utf-8")
    head, tail = text.split('{"edit":"ask"}')
    assert content == (
        "\ufeff" + head + '{\r\n\t\t"edit": "ask",\r\n\t\t"bash": {\r\n\t\t\t"git *": "allow"\r\n\t\t}\r\n\t}' + tail
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"model":"a/b"}', '{"model":"a/b","permission":{"bash":{"ls":"allow"}}}'),
        ('{"model": "a/b"}\n', '{"model": "a/b", "permission": {"bash": {"ls": "allow"}}}\n'),
        ("", '{\n  "permission": {\n    "bash": {\n      "ls": "allow"\n    }\n  }\n}\n'),
        ("{ }", '{\n  "permission": {\n    "bash": {\n      "ls": "allow"\n    }\n  }\n}'),
        (
            '{\n   "model": "a/b"\n}\n',
            '{\n   "model": "a/b",\n   "permission": {\n      "bash": {\n         "ls": "allow"\n      }\n   }\n}\n',
        ),
    ],
)
def test_the_file_keeps_its_look(project: Project, before: str, after: str) -> None:
    project.write(project.file, before.encode())
    project.save("bash", "ls")
    assert project.file.read_text() == after


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("opencode.json", b'{\n  // mine\n  "permission": {"bash": "ask"},\n}\n'),
        ("opencode.json", b'{"permission": {"bash": "deny"}, "permission": {"bash": "ask"}}'),
        ("opencode.jsonc", b'{"permission": {"bash": "ask"}}'),
        (".opencode/config.toml", b'[permission]\nedit = "ask"\n'),
    ],
)
def test_what_can_not_be_rewritten_is_left_and_the_later_file_has_it(
    project: Project, name: str, content: bytes
) -> None:
    path = project.write(project.tree / name, content)
    bash = project.action("bash", "rm x")
    assert project.save("bash", "git *") == project.later
    assert path.read_bytes() == content
    assert project.action("bash", "git x") == "allow"
    assert project.action("bash", "rm x") == bash  # the action of the other file is not lost under an object


def test_a_later_file_with_comments_is_not_rewritten_either(project: Project) -> None:
    for path in (project.file, project.later):
        project.write(path, b"{} // mine")
    with pytest.raises(ToolError, match=r'add "bash": {"git \*": "allow"}'):
        project.save("bash", "git *")
    assert project.later.read_bytes() == b"{} // mine"


def test_a_rule_that_can_not_win_says_which_one_does(project: Project) -> None:
    content = {"permission": {"bash": {"rm *": "deny"}, "*": "ask"}}
    project.write(project.file, content)
    with pytest.raises(ToolError, match=r"the rule \* \* ask \(opencode.json\) would still decide"):
        project.save("bash", "git *")
    assert json.loads(project.file.read_text()) == content
    assert not project.later.exists()


def test_a_rule_of_the_environment_wins(project: Project) -> None:
    project.env["OPENCODE_PERMISSION"] = '{"bash": {"git *": "deny"}}'
    with pytest.raises(ToolError, match="OPENCODE_PERMISSION"):
        project.save("bash", "git *")
    assert not project.file.exists()
    project.env = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
    with pytest.raises(ToolError, match="OPENCODE_DISABLE_PROJECT_CONFIG"):
        project.save("bash", "git *")


def test_an_action_of_the_users_own_file_still_holds(project: Project) -> None:
    project.write(project.user, {"permission": {"bash": "deny"}})
    project.save("bash", "git *")
    assert [project.action("bash", c) for c in ("git x", "rm x")] == ["allow", "deny"]


def test_a_file_nearer_by_is_overruled_from_the_later_one(project: Project) -> None:
    near = project.write(project.here / "opencode.json", {"permission": {"bash": {"git *": "ask"}}})
    assert project.save("bash", "git *") == project.later
    assert project.action("bash", "git x") == "allow"
    assert json.loads(near.read_text()) == {"permission": {"bash": {"git *": "ask"}}}


def test_denies_stand_if_they_shall(project: Project) -> None:
    project.write(project.file, {"permission": {"bash": {"*": "ask", "git push *": "deny", "npm *": "ask"}}})
    project.save("bash", "git *", keep_denies=True)
    assert list(project.permissions()["bash"]) == ["*", "git *", "git push *", "npm *"]
    assert [project.action("bash", c) for c in ("git push x", "git log")] == ["deny", "allow"]
    with pytest.raises(ToolError, match=r"bash git push \* deny"):
        project.save("bash", "git push *", keep_denies=True)
    project.save("bash", "git push *")  # a rule that is typed may
    assert project.action("bash", "git push x") == "allow"


def test_denies_of_the_users_own_file_stand(project: Project) -> None:
    project.write(project.user, {"permission": {"bash": {"git push *": "deny"}}})
    with pytest.raises(ToolError, match=r"git push \* deny \(~/.config/opencode/opencode.json\) denies a part"):
        project.save("bash", "git *", keep_denies=True)
    project.save("bash", "ls *", keep_denies=True)
    assert [project.action("bash", c) for c in ("git push x", "ls x")] == ["deny", "allow"]


@pytest.mark.parametrize("link", ["opencode.json", ".opencode"])
def test_a_link_out_of_the_project_is_not_followed(project: Project, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = project.write(outside / "opencode.json", {"model": "a/b"})
    if link == ".opencode":
        project.write(project.file, b"{} // mine")
        (project.tree / link).symlink_to(outside)
    else:
        (project.tree / link).symlink_to(target)
        project.write(project.tree / "x", {})
    with pytest.raises(ToolError, match="outside the project"):
        ConfigFiles(project.here, project.tree, home=project.home, env={**project.env}).save_rule("bash", "ls", "allow")
    with pytest.raises(ToolError, match="outside the project"):
        remove_rule(
            project.tree / link / "opencode.json" if link == ".opencode" else project.file,
            "bash",
            "ls",
            root=project.tree,
        )
    assert json.loads(target.read_text()) == {"model": "a/b"}


def test_a_link_within_the_project_stays_a_link(project: Project) -> None:
    actual = project.write(project.here / "shared.json", {})
    project.file.symlink_to(actual)
    assert project.save("bash", "ls") == project.file
    assert project.file.is_symlink()
    assert project.permissions(actual) == {"bash": {"ls": "allow"}}


@pytest.mark.parametrize("content", [b'{"permission": []}', b'{"permission": {"bash": 5}}', b"[1]", b"\xff"])
def test_what_makes_no_sense_is_not_touched(project: Project, content: bytes) -> None:
    project.write(project.file, content)
    with pytest.raises(ToolError):
        project.save("bash", "ls")
    assert project.file.read_bytes() == content
    assert not project.later.exists()


@pytest.mark.parametrize("pattern", ["", "echo {env:HOME}", "cat {file:x}"])
def test_patterns_that_a_file_can_not_hold(project: Project, pattern: str) -> None:
    with pytest.raises(ToolError):
        project.save("bash", pattern)
    assert not project.file.exists()


@pytest.mark.parametrize("pattern", ['say "x" \\d é\n', "~/x/*", "caf\udce9 *", "// x"])
def test_odd_patterns_come_back_as_they_were(project: Project, pattern: str) -> None:
    project.save("bash", pattern)
    assert project.permissions() == {"bash": {pattern: "allow"}}
    assert remove_rule(project.file, "bash", pattern)


def test_a_read_only_file_and_a_folder_in_its_place(project: Project) -> None:
    project.file.mkdir()
    with pytest.raises(ToolError, match="not a regular file"):
        project.save("bash", "ls")
    project.file.rmdir()
    project.write(project.file, {})
    project.file.chmod(0o444)
    if os.access(project.file, os.W_OK):
        return  # root may write it
    with pytest.raises(ToolError, match="No permission to write"):
        project.save("bash", "ls")


def test_taking_a_rule_out(project: Project) -> None:
    project.write(
        project.file,
        {"model": "a/b", "permission": {"bash": {"*": "ask", "~/bin/x": "allow"}, "edit": "ask", "read": {"a": "ask"}}},
    )
    assert remove_rule(project.file, "bash", str(Path.home() / "bin/x"))
    assert remove_rule(project.file, "edit", "*")
    assert remove_rule(project.file, "read", "a")
    assert not remove_rule(project.file, "read", "a")
    assert not remove_rule(project.tree / "none.json", "read", "a")
    assert json.loads(project.file.read_text()) == {"model": "a/b", "permission": {"bash": {"*": "ask"}}}
    project.write(project.file, {"permission": "ask"})
    assert not remove_rule(project.file, "bash", "*")
    assert remove_rule(project.file, "*", "*")
    project.write(project.file, b'{"permission": "ask"} // mine')
    with pytest.raises(ToolError, match="would be lost"):
        remove_rule(project.file, "*", "*")


WORDS = st.text(alphabet="ab*? ", min_size=1, max_size=5)
ACTION = st.sampled_from(["allow", "ask", "deny"])
KEYS = st.sampled_from(["bash", "edit", "*", "b*"])
SECTION = st.one_of(
    ACTION, st.dictionaries(KEYS, st.one_of(ACTION, st.dictionaries(WORDS, ACTION, max_size=4)), max_size=4)
)


@settings(max_examples=200, deadline=None)
@given(
    user=st.none() | SECTION,
    file=st.none() | SECTION,
    later=st.none() | SECTION,
    permission=st.sampled_from(["bash", "edit"]),
    pattern=WORDS,
    action=ACTION,
    keep=st.booleans(),
    texts=st.lists(st.text(alphabet="ab ", max_size=5), min_size=5, max_size=20),
)
def test_the_rule_decides_and_nothing_else_changes(
    user: Any, file: Any, later: Any, permission: str, pattern: str, action: str, keep: bool, texts: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder).resolve())
        for path, section in ((project.user, user), (project.file, file), (project.later, later)):
            if section is not None:
                project.write(path, {"permission": section})
        before = project.load().permission_rules
        try:
            path = project.save(permission, pattern, action, keep_denies=keep)
        except ToolError:
            assert project.load().permission_rules == before
            assume(False)
        after = project.load().permission_rules
        assert evaluate(permission, pattern, after).action == action
        for key in ("bash", "edit", "bin", "read"):
            for text in texts:
                earlier, decision = evaluate(key, text, before), evaluate(key, text, after)
                if key != permission or not match(text, pattern):
                    assert decision.action == earlier.action, (key, text, path)
                elif keep and earlier.action == "deny":
                    assert decision.action == "deny", (key, text, path)


@given(first=WORDS, second=WORDS, text=st.text(alphabet="ab ", max_size=6))
def test_patterns_that_share_a_text_overlap(first: str, second: str, text: str) -> None:
    if match(text, first) and match(text, second):
        assert overlap(first, second)


@given(wide=WORDS, narrow=WORDS, text=st.text(alphabet="ab ", max_size=6))
def test_a_pattern_that_covers_another_fits_all_its_texts(wide: str, narrow: str, text: str) -> None:
    if covers(wide, narrow) and match(text, narrow):
        assert match(text, wide)


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ("git *", "git push *", True),
        ("git *", "ls *", False),
        ("* --force", "git *", True),
        ("ls *", "ls", True),
        ("lsof", "ls *", False),
        ("a?c", "*b*", True),
        ("a?", "*bc", False),
        ("*" * 2000, "?" * 2000, True),
    ],
)
def test_overlap(first: str, second: str, meet: bool) -> None:
    assert overlap(first, second) is meet
    assert overlap(second, first) is meet
