"""Saving a rule and taking it back leaves what a person wrote: comments, and every byte outside of the rules."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.config import load_config, parse
from opencode_jupyter.core.config.json_edit import JsonText
from opencode_jupyter.core.config.save import ConfigFiles, remove_rule
from opencode_jupyter.core.errors import ConfigError, ToolError
from opencode_jupyter.core.permission import evaluate

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
COMMENTS = st.sampled_from(
    [
        '// "permission": {"bash": "deny"}\n',
        '/* "permission": { */',
        "// }\n",
        "/**/",
        "// it's \"\n",
        "/* , */",
        "/*\r\n * é {env:HOME} {file:gone}\r\n */",
    ]
)
BLANKS = st.sampled_from(["", " ", "\n", "\r\n\t", "   \n\n"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["// x", "/* x */", "é", '"', "\\", "a,b", "]}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["permission", "a", "//"]), inner, max_size=3)
    ),
    max_leaves=8,
)
RULES = st.dictionaries(
    st.sampled_from(["bash", "edit", "read"]),
    st.sampled_from(["ask", "allow", "deny"])
    | st.dictionaries(st.sampled_from(["*", "git *", "// *", "/* */"]), st.sampled_from(["ask", "allow"]), max_size=3),
    max_size=3,
)
FILES = st.fixed_dictionaries({"provider": st.fixed_dictionaries({"p": st.fixed_dictionaries({"x": VALUES})})}).flatmap(
    lambda data: st.builds(
        lambda rules, first: {"permission": rules, **data} if first else {**data, "permission": rules},
        RULES,
        st.booleans(),
    )
)


def spread(data: Any, draw: Any, fillers: Any) -> str:
    """The JSON text of some data, with something between its tokens."""
    out = [draw(fillers)]
    for piece in parse.TOKENS.findall(json.dumps(data, ensure_ascii=False)):
        out += [piece, draw(fillers)]
    return "".join(out)


def locations(folder: str) -> tuple[Path, Path, dict[str, Any]]:
    root = Path(folder).resolve()
    home, tree = root / "home", root / "project"
    home.mkdir()
    tree.mkdir()
    return home, tree, {"home": home, "env": {"OPENCODE_TEST_MANAGED_CONFIG_DIR": str(root / "managed")}}


@QUICK
@given(
    data=FILES,
    name=st.sampled_from(["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"]),
    draw=st.data(),
)
def test_a_file_with_comments_keeps_every_byte(data: dict[str, Any], name: str, draw: st.DataObject) -> None:
    text = spread(data, draw.draw, BLANKS | COMMENTS)
    if parse.without_comments(text) == text:
        text += "// at least one"
    with tempfile.TemporaryDirectory() as folder:
        _, tree, where = locations(folder)
        path = tree / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        assert load_config(tree, tree, **where).data["provider"] == data["provider"]
        with contextlib.suppress(ToolError):
            target = ConfigFiles(tree, tree, **where).save_rule("bash", "ls *", "allow")
            assert target != path
            rules = load_config(tree, tree, **where).permission_rules
            assert evaluate("bash", "ls -l", rules).action == "allow"
        assert path.read_bytes() == text.encode()
        for permission, pattern in (("bash", "*"), ("bash", "git *"), ("edit", "*")):
            with contextlib.suppress(ToolError):
                assert not remove_rule(path, permission, pattern)
        assert path.read_bytes() == text.encode()


@QUICK
@given(data=FILES, mark=st.sampled_from([b"", b"\xef\xbb\xbf"]), draw=st.data())
def test_every_byte_outside_of_the_rules_stays(data: dict[str, Any], mark: bytes, draw: st.DataObject) -> None:
    text = spread(data, draw.draw, BLANKS)
    raw = mark + text.encode()
    [(start, end)] = [(begin, stop) for key, begin, stop in _spans(text) if key == "permission"]
    with tempfile.TemporaryDirectory() as folder:
        _, tree, where = locations(folder)
        path = tree / "opencode.json"
        path.write_bytes(raw)
        try:
            target = ConfigFiles(tree, tree, **where).save_rule("bash", "ls *", "allow")
        except ConfigError:
            raise
        except ToolError:
            assert path.read_bytes() == raw
            return
        content = path.read_bytes()
        if target != path:
            assert content == raw
            return
        head, tail = mark + text[:start].encode(), text[end:].encode()
        assert content.startswith(head) and content.endswith(tail)
        inside = json.loads(content[len(head) : len(content) - len(tail)])
        assert inside["bash"]["ls *"] == "allow" if isinstance(inside["bash"], dict) else inside["bash"] == "allow"
        if remove_rule(path, "bash", "ls *"):
            after = path.read_bytes()
            assert after.startswith(head) and after.endswith(tail)


TOML_LINES = st.lists(
    st.sampled_from(
        ["# [permission]", "#", "", "  ", '# bash = "deny" \\', '# it\'s """', 'model = "a/b" # why # not', "\t# é"]
    ),
    max_size=6,
    unique_by=lambda line: line.strip("# \t")[:5] == "model" or object(),
)


@QUICK
@given(above=TOML_LINES, below=TOML_LINES, ending=st.sampled_from(["\n", "\r\n"]))
def test_a_toml_file_keeps_every_byte(above: list[str], below: list[str], ending: str) -> None:
    below = [line for line in below if not line.startswith("model")]
    lines = [*above, "[permission]", 'edit = "ask" # mine', "[permission.bash] # those", '"rm *" = "deny"', *below, ""]
    raw = ending.join(lines).encode()
    with tempfile.TemporaryDirectory() as folder:
        _, tree, where = locations(folder)
        path = tree / ".opencode" / "config.toml"
        path.parent.mkdir()
        path.write_bytes(raw)
        before = load_config(tree, tree, **where).permission_rules
        assert evaluate("bash", "rm x", before).action == "deny"
        with contextlib.suppress(ToolError):
            assert ConfigFiles(tree, tree, **where).save_rule("bash", "ls *", "allow").suffix == ".json"
        assert path.read_bytes() == raw
        assert evaluate("bash", "rm x", load_config(tree, tree, **where).permission_rules).action == "deny"


def _spans(text: str) -> list[tuple[str, int, int]]:
    from opencode_jupyter.core.config.json_edit import top_level_entries

    assert JsonText(text.encode()).data == json.loads(text)
    return list(top_level_entries(text))
