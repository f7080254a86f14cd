"""What a config file's text may be: comments, references, secrets, keys that stand twice, what is no text."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.config.parse import TOKENS, fill_references, key_positions, parse, without_comments
from opencode_jupyter.core.errors import ConfigError
from tests.support.config_layout import ConfigLayout

SECRET = "sk-very-s3cr3t-0123456789"


def read(text: str, **more: Any) -> dict[str, Any]:
    folder = Path("/nowhere")
    data = parse(text, path=more.pop("path", "x.json"), folder=folder, env=more.pop("env", {}), home=folder).data
    assert isinstance(data, dict)
    return data


# ---- comments


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": "http://x" // {file:gone}\n}', {"a": "http://x"}),
        ('{"a": /* {file:gone} \n */ 1, // "b": 2\n}', {"a": 1}),
        ('/* " */ {"a": "/* no */"} // end', {"a": "/* no */"}),
        ('{"a": [1, 2,], "b": ",]",}', {"a": [1, 2], "b": ",]"}),
        ('{"a": "{env:X}" /* {env:X} */}', {"a": "v"}),
        ('{"a": "it\'s" // it\'s\n, "b": 1}', {"a": "it's", "b": 1}),
    ],
)
def test_comments_are_nothing(text: str, data: dict[str, Any]) -> None:
    assert read(text, env={"X": "v"}) == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('a = "#no" # {file:gone}\n', {"a": "#no"}),
        ("a = '#' # it's {file:gone}\nb = '''\n# \"\"\" {env:X}\n'''\n", {"a": "#", "b": '# """ v\n'}),
        ('a = """\n# \\""" {env:X}""" # {file:gone}', {"a": '# """ v'}),
    ],
)
def test_comments_in_toml_are_nothing(text: str, data: dict[str, Any]) -> None:
    assert read(text, path="config.toml", env={"X": "v"}) == data


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["//", "/*", "*/", ",]", "{}:", '"', "'"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=3)
NOISE = st.sampled_from(["", " ", "\n", "// {x: 'y\n", '/* "],} */', "/**/ // '\n"])


@given(OBJECTS, st.data())
def test_noise_between_tokens_changes_nothing(data: dict[str, Any], draw: st.DataObject) -> None:
    text = json.dumps(data, ensure_ascii=draw.draw(st.booleans()))
    out: list[str] = []
    for piece in TOKENS.findall(text):
        if piece in "}]" and out and draw.draw(st.booleans()) and out[-1] not in ("{", "["):
            out += [",", draw.draw(NOISE)]
        out += [piece, draw.draw(NOISE)] if piece not in ("{", "[") else [piece]
    assert without_comments(text) == text
    if "{env:" not in text and "{file:" not in text and "\\u0000" not in text:
        assert read("".join(out)) == data


def _paths(value: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    paths = []
    for key, entry in items:
        paths += [(*above, str(key))] if isinstance(value, dict) else []
        paths += _paths(entry, (*above, str(key)))
    return paths


@given(OBJECTS)
def test_every_entry_is_found_in_its_place(data: dict[str, Any]) -> None:
    text = json.dumps(data, indent=1)
    positions = list(key_positions(text))
    assert [path for path, _ in positions] == _paths(data)
    assert all(text.startswith(json.dumps(path[-1]), at) for path, at in positions)


# ---- keys that stand twice


def test_a_key_that_stands_twice_is_told(layout: ConfigLayout) -> None:
    path = layout.write(
        layout.here / "opencode.jsonc",
        '{\n"permission": {\n"bash": "deny", // first\n"read": "ask",\n"bash": "allow"\n}}',
    )
    config = layout.load()
    assert [(w.path, w.line, w.key) for w in config.warnings] == [(str(path), 5, "permission.bash")]
    assert "repeated here (first on line 3); only the last one takes effect" in str(config.warnings[0])
    assert config.data["permission"] == {"bash": "allow", "read": "ask"}


def test_lines_are_exact_though_names_come_again(layout: ConfigLayout) -> None:
    layout.write(
        layout.here / "opencode.jsonc",
        '{ // "permission": {"bash": "no"}\n"agent": {"permission": {"prompt": "\\"bash\\": 1"},\n'
        '"x": {"permission": {"bash": "ask"}}},\n'
        '"plugin": ["permission", "bash"],\n"permission": {"edit": "ask", "*": {\n"a": "ask",\n"bash": 5}}}',
    )
    assert [(w.line, w.key) for w in layout.load().warnings] == [(7, "permission.*.bash")]


# ---- references


def test_a_file_that_names_itself_ends_there(layout: ConfigLayout) -> None:
    layout.write(layout.here / "opencode.json", '{"username": "{file:opencode.json}"}')
    assert layout.load().data["username"] == '{"username": "{file:opencode.json}"}'


def test_what_a_reference_brings_is_not_searched(layout: ConfigLayout) -> None:
    layout.env |= {"A": "{file:gone}{env:B}", "B": "b"}
    layout.write(layout.here / "t.txt", "{env:B}{file:gone} // no comment")
    layout.write(layout.here / "opencode.json", '{"username": "{env:A}", "model": "{file:./t.txt}"}')
    data = layout.load().data
    assert data == {"username": "{file:gone}{env:B}", "model": "{env:B}{file:gone} // no comment"}


def test_a_reference_may_stand_for_a_number(layout: ConfigLayout) -> None:
    layout.env["LINES"] = "7"
    layout.write(layout.here / "opencode.json", '{"tool_output": {"max_lines": {env:LINES}}}')
    assert layout.load().data["tool_output"] == {"max_lines": 7}


@pytest.mark.parametrize("name", ["gone.txt", "~/gone.txt", "/gone/x", "gone/x\\\\y"])
def test_a_file_that_is_not_there_names_its_line(layout: ConfigLayout, name: str) -> None:
    path = layout.write(layout.here / "opencode.json", f'{{\n\n"model": "{{file:{name}}}"}}')
    with pytest.raises(ConfigError, match="bad file reference") as caught:
        layout.load()
    assert (caught.value.path, caught.value.line) == (str(path), 3)


@given(st.lists(st.sampled_from(["{env:A}", "{env:LONG}", "{env:NONE}", "ab", "\n", "é"]), max_size=12))
def test_every_place_is_found_again(pieces: list[str]) -> None:
    template = "".join(pieces)
    filled = fill_references(template, path="", folder=Path(), env={"A": "1", "LONG": "two\nlines"}, home=Path())
    assert filled.text == template.replace("{env:A}", "1").replace("{env:LONG}", "two\nlines").replace("{env:NONE}", "")
    for at, char in enumerate(filled.text):
        origin, reference = filled.origin(at)
        assert template.startswith(reference or char, origin)


# ---- secrets


@pytest.mark.parametrize(
    "text",
    [
        '{"snapshot": "{env:KEY}"}',
        '{"snapshot": "{file:key.txt}"}',
        '{"permission": {"bash": "Bearer {env:KEY}"}}',
        '{"permission": {"{env:KEY}": 5}}',
        '{"{env:KEY}": 5}',
        '{"mcp": {"x": {"type": "remote", "url": "https://x", "headers": ["{env:KEY}", 1]}}}',
        '{"mcp": {"x": {"type": "remote", "url": ["pad pad pad pad pad pad pad pad pad", "{env:KEY}"]}}}',
        '{"agent": {"{env:KEY}": {"steps": "{env:KEY}"}}}',
    ],
)
def test_no_secret_in_a_warning(layout: ConfigLayout, text: str) -> None:
    layout.env["KEY"] = SECRET
    layout.write(layout.here / "key.txt", SECRET + "\n")
    layout.write(layout.here / "opencode.json", text)
    config = layout.load()
    assert len(config.warnings) == 1
    assert "s3cr3t" not in str(config.warnings) + repr(config) + str(config.warnings[0])
    assert "{env:KEY}" in str(config.warnings) or "{file:key.txt}" in str(config.warnings)


@pytest.mark.parametrize(
    "text",
    [
        '{"model": "{env:KEY}", "b": }',
        '{"model": "{env:KEY}"\n"b": 1}',
        '{"model": {env:KEY}}',
        '{"model": "{env:QUOTED}"}',
        '{"model": "{env:LINES}"}',
        '["{env:KEY}"]',
        '{"model": "{file:key.txt}" "{env:KEY}"',
    ],
)
def test_no_secret_in_an_error(layout: ConfigLayout, text: str) -> None:
    layout.env |= {"KEY": SECRET, "QUOTED": f'"{SECRET}"', "LINES": f"{SECRET}\n{SECRET}"}
    layout.write(layout.here / "key.txt", SECRET)
    layout.write(layout.here / "opencode.json", text)
    with pytest.raises(ConfigError) as caught:
        layout.load()
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cr3t" not in str(error)
        error = error.__cause__
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_error_shows_the_line_as_it_was_written(layout: ConfigLayout) -> None:
    layout.env["LINES"] = "1\n2\n3"
    layout.write(layout.here / "opencode.json", '{"a": [\n/* {env:LINES}\n*/ 1], "b": "{env:LINES}"}')
    with pytest.raises(ConfigError) as caught:
        layout.load()
    first, source, caret = str(caught.value).split("\n")
    assert "the value of {env:LINES} does not fit here" in first and caught.value.line == 3
    assert source[caret.index("^") :] == '{env:LINES}"}'


def test_a_forced_permission_is_no_place_for_other_keys(layout: ConfigLayout) -> None:
    layout.env["OPENCODE_PERMISSION"] = '"deny", "username": "x"'
    with pytest.raises(ConfigError, match="OPENCODE_PERMISSION"):
        layout.load()
    layout.env |= {"OPENCODE_PERMISSION": '{"bash": "{env:KEY}"}', "KEY": SECRET}
    config = layout.load()
    assert [(w.path, w.key) for w in config.warnings] == [("OPENCODE_PERMISSION", "permission.bash")]
    assert "s3cr3t" not in str(config.warnings[0]) and config.permission_rules[0].action == "ask"


# ---- what is no config


def test_a_very_large_file_is_refused_before_it_is_read(layout: ConfigLayout) -> None:
    path = layout.write(layout.here / "opencode.json", '{"username": "' + "x" * 10_000_000 + '"}')
    with pytest.raises(ConfigError, match=r"it has 10,000,\d+ bytes; at most 1,000,000 are read") as caught:
        layout.load()
    assert caught.value.path == str(path)
    layout.write(layout.here / "opencode.json", f'{{"username": "{{file:{path}.txt}}"}}')
    layout.write(Path(f"{path}.txt"), "x" * 1_000_001)
    with pytest.raises(ConfigError, match=r"bad file reference.*at most"):
        layout.load()


@pytest.mark.timeout(60)
def test_the_largest_file_is_read_in_a_moment(layout: ConfigLayout) -> None:
    entries = "\n".join(f'"key{i}": {{"a": [1, 2, "x"]}}, // {i}' for i in range(20_000))
    layout.write(layout.here / "opencode.jsonc", "{" + entries + "\n}")
    config = layout.load()
    assert len(config.data) == 20_000 and len(config.warnings) == 51
    assert "19950 more mistakes" in str(config.warnings[-1])


@pytest.mark.parametrize("depth", [150, 1_000, 100_000])
@pytest.mark.parametrize("key", ["username", "provider", "permission", "unheard_of"])
def test_deep_nesting_is_refused(layout: ConfigLayout, depth: int, key: str) -> None:
    path = layout.write(layout.here / "opencode.json", f'{{"{key}": ' + '{"a":' * depth + "1" + "}" * depth + "}")
    with pytest.raises(ConfigError, match="nested too deeply") as caught:
        layout.load()
    assert caught.value.path == str(path)
    with pytest.raises(ConfigError, match="nested too deeply"):
        read(".".join(["a"] * depth) + " = 1", path="x.toml") if depth > 1_000 else layout.load()


PIECES = [
    "/*", '"\\', '\\"', "'", ",", "[", "{env:", "{file:", "//", "a.", "[a.", '"""', "'''", "\\'", ", \n", ":",
    "a=\n",
]  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("path", ["x.json", "x.toml"])
def test_no_text_takes_long(piece: str, path: str) -> None:
    many = piece * (100_000 // len(piece))
    with pytest.raises(ConfigError):
        read('{"a": 1, ' + many if path == "x.json" else many + "=", path=path)


def test_nul_bytes_are_told(layout: ConfigLayout) -> None:
    (layout.here / "opencode.json").write_bytes(b'{\n"username": "x"}\n' + b"\0" * 4096)
    with pytest.raises(ConfigError, match="holds NUL bytes") as caught:
        layout.load()
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b'{\n\n"username": "\xff"}', "not UTF-8", 3),
        ('{"a": 1}'.encode("utf-16"), "UTF-16; save it as UTF-8", 1),
        (b"\x89PNG\r\n\x1a\n\0\0", "not UTF-8", 1),
    ],
)
def test_what_is_no_utf8(layout: ConfigLayout, content: bytes, message: str, line: int) -> None:
    (layout.here / "opencode.json").write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        layout.load()
    assert caught.value.line == line


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes of POSIX")
def test_a_pipe_does_not_hang(layout: ConfigLayout) -> None:
    os.mkfifo(layout.here / "pipe")
    layout.write(layout.here / "opencode.json", '{"username": "{file:pipe}"}')
    with pytest.raises(ConfigError, match="no plain file"):
        layout.load()
    (layout.here / "opencode.json").unlink()
    os.mkfifo(layout.here / "opencode.json")
    with pytest.raises(ConfigError, match="no plain file"):
        layout.load()


@given(st.text(alphabet="{}[]:,\"'/*\\ \n\tab01.#=-", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for path in ("x.json", "x.toml"):
        try:
            document = parse(text, path=path, folder=Path("/nowhere"), env={}, home=Path("/nowhere"))
        except ConfigError as error:
            reported = error.path
        else:
            reported = path
            assert isinstance(document.line(("a", "b")), int | None)
        assert reported == path


def test_files_that_changed_since(layout: ConfigLayout) -> None:
    path = layout.write(layout.here / "opencode.json", '{"username": "a"}')
    agent = layout.write(layout.here / ".opencode" / "agent" / "x.md", "Text.")
    config = layout.load()
    assert config.changed() == []
    layout.write(path, '{"username": "bb"}')
    new = layout.write(layout.tree / "opencode.jsonc", "{}")
    agent.unlink()
    assert set(config.changed()) == {path, new, agent, agent.parent}
    path.unlink()
    assert path in config.changed()
    assert layout.load().changed() == []
