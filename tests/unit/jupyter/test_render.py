"""The settled card: text, HTML and JSON that any reader takes, whatever a tool returned."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.jupyter.cards import wording
from opencode_jupyter.jupyter.cards.call_html import html as call_html
from opencode_jupyter.jupyter.cards.call_json import shown_lines
from opencode_jupyter.jupyter.cards.call_mimebundle import (
    PLAIN_COLUMNS,
    PLAIN_LINES,
    live_text,
    lost_bundle,
    settled_bundle,
)
from opencode_jupyter.jupyter.cards.markdown import markdown
from opencode_jupyter.jupyter.cards.saved_json import CARD_MIME
from opencode_jupyter.jupyter.cards.style import PAPER
from opencode_jupyter.text.visible import readable, visible

DIFF = """--- a/src/clean.py
+++ b/src/clean.py
@@ -12,2 +12,3 @@
 df = pd.read_csv(path)
-df = df.dropna()
+df = df.dropna(subset=["price"])
+df["price"] = 1
"""
HOSTILE: list[str] = json.loads((Path(__file__).parents[2] / "data" / "hostile.json").read_text())
EVIL = "<img src=x onerror=alert(1)></style></pre><script>alert(1)</script>\x1b[31m\x1b]0;t\x07\u202e\u200b\x00&\"'"


def part(state: dict[str, Any] | None = None, ui: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "v": 1, "id": "prt_1", "callID": "call_1", "sessionID": "ses_1", "messageID": "msg_1", "tool": "edit",
        "state": {
            "status": "completed", "input": {"filePath": "a"}, "time": {"start": 1000, "end": 1030}, **(state or {}),
        },
        "ui": {"label": "src/clean.py", "by": "user", "waited": 0, "decisions": [], **(ui or {})},
        **fields,
    }  # fmt: skip


class Elements(HTMLParser):
    """Every element with its attributes, and all text; fails on tags that do not match."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"img", "br", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


ALLOWED = {"style", "div", "span", "b", "small", "details", "summary", "pre", "code", "a", "br", "img", "link"} | {
    "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "dl", "dt", "dd",
}  # fmt: skip


def elements(card: dict[str, Any]) -> Elements:
    """The card's HTML, checked: only known elements, no handlers, no address that runs code."""
    read = Elements(settled_bundle(card)[0]["text/html"])
    for tag, attributes in read.found:
        assert tag in ALLOWED
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "link":
            assert " ".join(f'{name}="{value}"' for name, value in attributes.items()) in PAPER
            continue
        assert not str(attributes.get("href", "")).lower().strip().startswith(("javascript:", "data:", "vbscript:"))
        if tag == "img":
            assert re.match(r"data:image/(png|jpeg|gif|webp);base64,", str(attributes["src"]))
    assert [tag for tag, _ in read.found].count("style") == 0
    return read


def test_bundle_has_three_forms_and_validates() -> None:
    data, metadata = settled_bundle(part({"output": "done\n"}, {"diff": DIFF}))
    assert list(data) == ["text/plain", "text/html", CARD_MIME]
    output = nbformat.v4.new_output("display_data", data=data, metadata=metadata)
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])]))
    assert "<details" in data["text/html"]


@pytest.mark.parametrize(
    ("status", "outcome", "line"),
    [
        ("completed", None, "✓ edit src/clean.py (completed)"),
        ("error", None, "✗ edit src/clean.py (failed)"),
        ("error", "denied by you", "⊘ edit src/clean.py (denied by you)"),
        ("error", "denied by a rule", "✗ edit src/clean.py (denied by a rule)"),
        ("error", "timed out", "✗ edit src/clean.py (timed out)"),
        ("error", "stopped", "■ edit src/clean.py (stopped)"),
        ("error", "interrupted", "■ edit src/clean.py (interrupted by you)"),
        ("error", "invalid arguments", "✗ edit src/clean.py (invalid arguments)"),
        ("running", "ended", "■ edit src/clean.py (ended)"),
    ],
)
def test_states_in_words(status: str, outcome: str | None, line: str) -> None:
    card = part({"status": status}, {"outcome": outcome} if outcome else {})
    assert settled_bundle(card)[0]["text/plain"] == line
    state_name = line.split("(")[1].split(",")[0].rstrip(")")
    assert f"{line[0]} {state_name}" in elements(card).text


@pytest.mark.parametrize(
    ("tool", "metadata", "mark", "detail"),
    [
        ("bash", {"exit": 127}, "✗", "exit code 127"),
        ("bash", {"exit": None}, "✗", "ended early"),
        ("bash", {"exit": None, "signal": "SIGKILL"}, "✗", "ended by SIGKILL"),
        ("bash", {"exit": 0}, "✓", "completed"),
        ("other", {"exit": 3}, "✓", "completed"),
        ("batch", {"failed": 1, "totalCalls": 3}, "✗", "1 of 3 failed"),
        ("batch", {"failed": 0, "unsuccessful": 2, "totalCalls": 3}, "✗", "2 of 3 failed"),
        ("invalid", {}, "✗", "failed"),
        ("batch", {"failed": 0, "totalCalls": 3}, "✓", "completed"),
    ],
)
def test_no_check_mark_on_a_failure(tool: str, metadata: dict[str, Any], mark: str, detail: str) -> None:
    card = part({"metadata": metadata}, tool=tool)
    assert settled_bundle(card)[0]["text/plain"] == f"{mark} {tool} src/clean.py ({detail})"
    assert f"{mark} {detail}" in elements(card).text


def test_a_terminal_shows_how_long_a_call_took() -> None:
    assert settled_bundle(part({}), durations=True)[0]["text/plain"] == "✓ edit src/clean.py (completed, 0.03 s)"


def test_plain_text_tells_output_cut_and_decisions() -> None:
    rule = {"permission": "edit", "pattern": "*", "action": "allow", "origin": "opencode.json"}
    card = part(
        {"output": "one\ntwo\n"},
        {
            "spill": {"path": "/data/tool_1", "bytes": 18432, "lines": 214, "line": 101},
            "waited": 4000,
            "decisions": [
                {"permission": "edit", "patterns": ["a"], "action": "allow", "by": "rule", "rule": rule},
                {"permission": "edit", "patterns": ["a"], "action": "allow", "by": "card", "reply": "always"},
            ],
        },
    )
    card["state"]["time"] = {"start": 0, "end": 4030}
    assert settled_bundle(card)[0]["text/plain"].split("\n") == [
        "✓ edit src/clean.py (completed)",
        "one",
        "two",
        "[214 lines, 18 KB; the rest from line 101 is kept in /data/tool_1]",
        "[rule edit *: allow from opencode.json · allowed for this session by you]",
    ]


def test_plain_text_is_at_most_thirty_lines() -> None:
    lines = settled_bundle(part({"output": "\n".join(map(str, range(1000)))}))[0]["text/plain"].split("\n")
    assert len(lines) == PLAIN_LINES
    assert lines[1:3] == ["0", "1"]
    assert lines[-1] == f"… {1000 - 28:,} more lines"


def test_a_long_output_scrolls_in_its_card_and_is_printed_whole() -> None:
    long, short = (call_html(part({"output": "line\n" * lines})) for lines in (101, 100))
    assert "max-height:480px;overflow-y:auto" in long
    assert "pre{max-height:none!important}" in long
    assert "max-height" not in short


def test_nested_calls_stand_inside() -> None:
    children = [
        part({"output": "x"}, {"label": "data/prices.csv"}, tool="read"),
        part({"status": "error", "error": "File not found: b"}, {"label": "b"}, tool="read"),
    ]
    card = part({}, {"children": children, "label": "2 calls"}, tool="batch")
    assert settled_bundle(card)[0]["text/plain"].split("\n")[1:] == [
        "  ✓ read data/prices.csv (completed)",
        "  ✗ read b (failed)",
        "    File not found: b",
    ]
    assert "File not found: b" in elements(card).text


def test_diff_is_numbered_and_coloured() -> None:
    read = elements(part({}, {"diff": DIFF}))
    assert '13 - df = df.dropna()\n13 + df = df.dropna(subset=["price"])\n' in read.text
    classes = [attributes.get("class") for _, attributes in read.found]
    assert (classes.count("oc-s-add"), classes.count("oc-s-del")) == (2, 1)


def test_hostile_text_stays_text() -> None:
    card = part(
        {"output": EVIL, "error": EVIL + "!", "input": {EVIL: EVIL}, "title": EVIL},
        {
            "label": EVIL, "tail": EVIL, "diff": f"@@ -1 +1 @@\n-{EVIL}\n+x",
            "decisions": [{"permission": EVIL, "patterns": [], "action": "deny", "by": EVIL, "message": EVIL}],
            "spill": {"path": EVIL, "bytes": 1, "lines": 1, "line": 1, "url": "javascript:alert(1)"},
        },
        tool=EVIL,
    )  # fmt: skip
    card["state"]["attachments"] = [
        {"mime": "image/svg+xml", "url": "data:image/svg+xml;base64,AAAA", "filename": EVIL},
        {"mime": "image/png", "url": "https://example.org/a.png"},
        {"mime": "image/png", "url": 'data:image/png;base64,AAAA" onerror="x'},
        {"mime": "image/png", "url": "data:image/png;base64,AAAA"},
    ]
    read = elements(card)
    assert [tag for tag, _ in read.found].count("img") == 1
    assert not [tag for tag, _ in read.found if tag == "a"]
    assert "<script>alert(1)</script>" in read.text
    bundle = settled_bundle(card)[0]
    for text in (read.text, bundle["text/plain"]):
        assert not re.search("[\x00\x07\x1b\u202e]", text)
        assert "\\u202e" in text


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text)[:40])
def test_a_hostile_output_stays_text(text: str) -> None:
    """The live and the saved card are held to the same table in ``labextension/src/__tests__/hostile.test.ts``."""
    rule = {"permission": text, "pattern": text, "action": "ask", "origin": text}
    card = part(
        {"output": text, "error": text + "!", "input": {text: text}, "title": text},
        {
            "label": text, "tail": text, "diff": f"@@ -1 +1 @@\n-{text}\n+x", "files": [text],
            "decisions": [{"permission": text, "patterns": [text], "action": "allow", "by": text, "rule": rule}],
            "table": {"columns": [text], "rows": [[text]], "total": 1},
            "tasks": [{"content": text, "status": "pending", "priority": text}],
        },
        tool=text,
    )  # fmt: skip
    data, _ = settled_bundle(card)
    read = elements(card)
    assert not [tag for tag, _ in read.found if tag in {"a", "img"}]
    for text_form in (read.text, data["text/plain"]):
        assert not re.search("[\x00\x07\x1b\x9b\u202a-\u202e\u2066-\u2069]", text_form)


def test_a_long_line_beside_one_written_over_takes_no_time() -> None:
    assert readable("x" * 1_000_000 + "\r\ngone\rkept\r") == "x" * 1_000_000 + "\nkept\\x0d"


SLOW = {
    "beginnings of strings": "\x90" * 60_000 + "\x1bX",
    "a string in a string": "\x1b]" + "\x9d" * 60_000 + "\x1bX",
    "returns": "\r" * 60_000 + "x",
    "a heading's blanks": "# a" + " " * 60_000 + "b",
    "a heading's marks": "# a" + "#" * 60_000 + "b",
    "a fence's blanks": "```" + " " * 60_000 + "`",
    "a fence's marks": "~" * 60_000 + "`",
    "stars": ("**a " * 490 + "\n") * 30,
    "ticks": ("`a" * 990 + "\n") * 30,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_no_text_holds_up_the_kernel(text: str) -> None:
    """Each took from many seconds to hours, in the thread that answers everything, where ends are looked for again."""
    readable(text)
    markdown(text)


def test_dollars_are_no_formula_where_a_page_has_mathjax() -> None:
    (root,) = (attributes for _, attributes in elements(part({}, {"label": "echo $A $B"})).found[0:1])
    assert {"tex2jax_ignore", "mathjax_ignore"} <= set(str(root["class"]).split())


def test_a_link_is_kept_where_it_is_safe() -> None:
    spill = {"path": "/data/tool_1", "bytes": 1, "lines": 2, "line": 2, "url": "files/a%20b.txt?x=1&y=2"}
    read = elements(part({}, {"spill": spill}))
    assert [attributes["href"] for tag, attributes in read.found if tag == "a"] == ["files/a%20b.txt?x=1&y=2"]
    assert "Open the whole output at line 2" in read.text


def test_a_megabyte_on_one_line_is_cut_and_says_so() -> None:
    card = part({"output": "x" * 1_000_000, "input": {"content": "y" * 1_000_000}}, {"diff": "z" * 1_000_000})
    data, _ = settled_bundle(card)
    assert len(json.dumps(data)) < 700_000
    assert data[CARD_MIME]["state"]["output"].endswith("more characters")
    assert max(map(len, data["text/plain"].split("\n"))) <= PLAIN_COLUMNS
    assert card["state"]["output"] == "x" * 1_000_000


def test_deep_and_odd_json_is_made_plain() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    card = part({"input": {"deep": deep, "nan": float("nan"), "set": {1}, "lone": "\udcff", 3: b"x"}})
    data, _ = settled_bundle(card)
    text = json.dumps(data, allow_nan=False)
    text.encode()
    assert json.loads(text)[CARD_MIME]["state"]["input"]["lone"] == "\\udcff"
    elements(card)


def test_a_saved_card_never_asks_and_carries_no_foreign_file() -> None:
    request = {"id": "per_1", "digest": "d", "permission": "bash", "patterns": ["ls"], "always": [], "asked": 0}
    card = part({"status": "running"}, {"ask": request, "children": [part({}, {"ask": request})]})
    card["state"]["attachments"] = [{"mime": "application/pdf", "url": "data:application/pdf;base64," + "A" * 10_000}]
    bundle = settled_bundle(card)[0][CARD_MIME]
    assert "ask" not in bundle["ui"]
    assert "ask" not in bundle["ui"]["children"][0]["ui"]
    assert bundle["state"]["attachments"] == [{"mime": "application/pdf", "url": ""}]


def test_live_text() -> None:
    assert live_text(part({"status": "running"}, {"label": "sleep 600"}, tool="bash")) == "bash sleep 600: running"
    assert live_text(part({"status": "pending"}, {"label": ""}, tool="bash")) == "bash: pending"
    request = {"permission": "bash", "patterns": ["rm\u202e *", "ls"]}
    asking = part({"status": "running"}, {"label": "rm x", "ask": request}, tool="bash")
    assert live_text(asking) == "bash rm x: waiting for approval: bash rm\\u202e *, ls"


def test_words_are_those_of_the_front_end() -> None:
    assert [wording.duration(ms) for ms in (0, 2.4, 30, 400, 3210, 9960, 12_300, 3_600_000, -5)] == [
        "0 ms", "2 ms", "0.03 s", "0.4 s", "3.2 s", "0:10", "0:12", "1:00:00", "0 ms"
    ]  # fmt: skip
    assert [wording.size(n) for n in (812, 18_432, 1_258_291, 3 * 2**30)] == ["812 B", "18 KB", "1.2 MB", "3.0 GB"]
    assert visible("a\u00adb\U000e0041👩\u200d👧") == "a\\xadb\\u{e0041}👩\\u200d👧"
    assert readable("10%\r20%\ndone\r\n👩\u200d👧") == "20%\ndone\n👩\u200d👧"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    output=st.text(st.characters(), max_size=300),
    given_input=st.dictionaries(st.text(st.characters(), max_size=8), JSON, max_size=4),
    diff=st.text(st.sampled_from("@ -+,1234\n\r\\ax"), max_size=80),
    metadata=JSON,
)
def test_whatever_a_tool_returns_is_shown(output: str, given_input: dict[str, Any], diff: str, metadata: Any) -> None:
    card = part({"output": output, "input": given_input, "metadata": {"x": metadata}}, {"label": output, "diff": diff})
    elements(card)
    data, _ = settled_bundle(card)
    json.dumps(data, allow_nan=False).encode()
    for form in ("text/plain", "text/html"):
        data[form].encode()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", data[form])
    assert data["text/plain"].count("\n") < PLAIN_LINES


def test_the_text_form_has_the_whole_error() -> None:
    """A console shows it nowhere else."""
    message = "word " * 100 + "the end"
    text = settled_bundle(part({"status": "error", "error": message}))[0]["text/plain"]
    assert text.split("\n")[1] == message


def test_the_text_form_of_a_long_table_says_how_long_it_is() -> None:
    table = {"name": "DataFrame", "columns": ["n"], "rows": [[str(n)] for n in range(50)], "total": 1_000, "width": 1}
    text = settled_bundle(part({}, {"printed": "", "tables": [table]}))[0]["text/plain"]
    assert text.split("\n")[-2:] == ["19", "DataFrame · the first 20 of 1,000 rows"]


@pytest.mark.parametrize(("total", "line"), [(0, "DataFrame"), (3, "DataFrame · the first 0 of 3 rows")])
def test_the_text_form_of_an_empty_table_has_no_grid(total: int, line: str) -> None:
    table = {"name": "DataFrame", "columns": [], "rows": [], "total": total, "width": 0}
    text = settled_bundle(part({}, {"printed": "", "tables": [table]}))[0]["text/plain"]
    assert text.split("\n")[1:] == [line]


def test_a_card_of_read_shows_the_lines_without_the_wrapper() -> None:
    inside = "1: x\n2: </content>\n\n(End of file - total 2 lines)"
    output = f"<path>/p/a</path>\n<type>file</type>\n<content>\n{inside}\n</content>"
    for after in ("", "\n\n<system-reminder>\n</content>\n</system-reminder>"):
        line_numbers = shown_lines("read", output + after)
        card = part({"output": output + after}, {"shown": line_numbers}, tool="read")
        data = settled_bundle(card)[0]
        assert data["text/plain"].split("\n")[1:] == ["1: x", "2: </content>", "", "(End of file - total 2 lines)"]
        assert "&lt;path&gt;" not in data["text/html"] and "1: x" in data["text/html"]
        assert data[CARD_MIME]["state"]["output"] == output + after, "the JSON keeps what the model sees"
    listing = "<path>/p</path>\n<type>directory</type>\n<entries>\na.txt\n\n(1 entries)\n</entries>"
    assert shown_lines("read", listing) == [3, 6]
    assert shown_lines("bash", listing) is None
    assert shown_lines("read", "Image read successfully") is None
    assert shown_lines("read", "<path>/p</path>\n<type>file</type>\n<content>\ncut off") is None


def test_policy_says_that_nobody_was_there() -> None:
    decision = {"permission": "bash", "patterns": ["x"], "action": "deny", "by": "policy", "reply": "reject"}
    card = part({"status": "error", "error": "no"}, {"outcome": "denied by policy", "decisions": [decision]})
    text = settled_bundle(card)[0]["text/plain"]
    assert text.startswith("✗ edit src/clean.py (denied by policy)")
    assert text.endswith("[denied by policy (nobody could approve it)]")


def test_a_call_that_waited_when_its_kernel_died_is_not_said_to_have_run() -> None:
    request = {"id": "per_1", "permission": "edit", "patterns": ["a"]}
    bundle = lost_bundle(part({"status": "running", "time": {"start": 1000}}, {"ask": request, "untouched": True}))
    assert "It was waiting for approval when this was written" in bundle["text/html"]
    assert "State unknown" not in bundle["text/html"]
    assert "untouched" not in bundle[CARD_MIME]["ui"]


def test_what_a_dead_kernel_leaves_says_so_and_asks_nothing() -> None:
    request = {"id": "per_1", "permission": "edit", "patterns": ["a"]}
    bundle = lost_bundle(part({"status": "running", "time": {"start": 1000}}, {"ask": request}))
    assert set(bundle) == {"text/html", CARD_MIME}
    assert "State unknown: the kernel ended before the call did." in bundle["text/html"]
    assert "■</span> ended" in bundle["text/html"]
    json_form = bundle[CARD_MIME]
    assert json_form["ui"]["outcome"] == "ended" and "ask" not in json_form["ui"]


def test_each_command_of_a_line_is_listed_with_the_rule_that_decided_it() -> None:
    rules = [
        {"permission": "bash", "pattern": "git *", "action": "allow", "origin": "opencode.json"},
        {"permission": "bash", "pattern": "*", "action": "ask", "origin": "<b>"},
    ]
    decision = {
        "permission": "bash",
        "patterns": ["git status", "make"],
        "action": "allow",
        "by": "card",
        "reply": "once",
    }
    html = settled_bundle(part(ui={"decisions": [{**decision, "rules": rules}]}))[0]["text/html"]
    text = Elements(html).text
    assert "2 parts, each with its rule" in text
    assert "git status  —  rule bash git *: allow from opencode.json" in text
    assert "make  —  rule bash *: ask from <b>" in text
    assert "parts, each" not in settled_bundle(part(ui={"decisions": [decision]}))[0]["text/html"]


def test_trust_is_told_as_what_it_is() -> None:
    trust = {
        "permission": "trust",
        "patterns": [".opencode/tool/a.py"],
        "action": "allow",
        "by": "card",
        "reply": "once",
    }
    trusted = settled_bundle(part(ui={"decisions": [trust]}))[0]
    assert "trusted by you, until it changes" in trusted["text/plain"] and "once" not in trusted["text/plain"]
    refused = settled_bundle(part(ui={"decisions": [{**trust, "action": "deny", "reply": "reject"}]}))[0]
    assert "not trusted by you" in refused["text/plain"]
    unattended = settled_bundle(part(ui={"decisions": [{**trust, "by": "policy"}]}))[0]
    assert "allowed by policy" in unattended["text/plain"]
