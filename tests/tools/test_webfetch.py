"""webfetch against a site on loopback: formats, images, encodings, asks. What must not happen: test_webfetch_guard."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from ..support.site import Connection, Request, Site
from .conftest import Approver

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, site: Site) -> Workspace:
    """A workspace whose rules name the site."""
    config = {"permission": {"*": "allow", "webfetch": {f"{site.url}/*": "allow"}}}
    return await open_workspace(config)


async def fetch(ws: Workspace, url: str, format: str = "markdown", **arguments: Any) -> Any:
    return await ws.call("webfetch", {"url": url, "format": format, **arguments})


PAGE = """<!doctype html><html><head><title>Tom &amp; Jerry</title><meta charset="utf-8"><link rel="x" href="y">
<style>p { color: red }</style><script>if (a < b) alert("no")</script></head><body>
<nav><a href="/home">Home</a></nav><h1>Head <em>one</em></h1><h2>Second</h2>
<p>Hello <b>world</b>, <a href="rel.html">a link</a> &lt;tag&gt; <a href="javascript:alert(1)">bad</a></p><hr>
<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol><li>x</li><li>y</li></ol>
<pre><code class="language-python">def f():
    return 1
</code></pre><img src="data:image/png;base64,AAAA" alt="pic"><table><tr><th>A</th><th>B</th></tr>
<tr><td>1</td><td>2</td></tr></table><noscript>turn it on</noscript><iframe src="/ad">inner</iframe></body></html>"""


@pytest.mark.anyio
async def test_markdown(ws: Workspace, site: Site) -> None:
    site.serve("/p", PAGE, "text/html; charset=utf-8")
    result = await fetch(ws, f"{site.url}/p")
    assert result.title == f"{site.url}/p (text/html; charset=utf-8)"
    lines = result.output.splitlines()
    assert lines[0].rstrip() == "Tom & Jerry"
    expected = ["[Home](/home)", "# Head *one*", "## Second", "---", "- a", "    - b", "1. x", "```python"]
    for line in [*expected, "turn it on", "inner"]:
        assert line in lines
    assert "Hello **world**, [a link](rel.html)" in result.output
    assert "| A | B |" in result.output
    for absent in ("color: red", "alert", "javascript:", "base64,AAAA"):
        assert absent not in result.output
    assert result.metadata == {"truncated": False}


@pytest.mark.anyio
async def test_line_ends_in_running_text_are_blanks(ws: Workspace, site: Site) -> None:
    page = (
        "<h1>Head\none</h1><p>One paragraph\n\n of <b>several</b>\r\n<i>lines</i><br>\nand a break</p>\n"
        "<pre>a\n  b\n\nc</pre>\n<ul>\n<li>x\ny</li>\n</ul><pre><code class=language-sh>d\ne</code></pre><p>f\ng"
    )
    site.serve("/p", page, "text/html")
    assert (await fetch(ws, f"{site.url}/p")).output == (
        "# Head one\n\nOne paragraph of **several** *lines*  \nand a break\n\n```\na\n  b\n\nc\n```\n\n- x y\n\n"
        "```sh\nd\ne\n```\n\nf g"
    )


@pytest.mark.anyio
async def test_text(ws: Workspace, site: Site) -> None:
    site.serve("/p", "<head><style>x</style><script>y</script></head><body>Hello <b>world</b></body>")
    assert (await fetch(ws, f"{site.url}/p", "text")).output == "Hello world"
    site.serve(
        "/q", "\n<script>a</script>one &amp; <p>two\n  three</p><object><p>no</p></object><embed>four<iframe/>five"
    )
    assert (await fetch(ws, f"{site.url}/q", "text")).output == "one & two\n  threefour"


@pytest.mark.anyio
async def test_html_and_other_text_come_as_they_are(ws: Workspace, site: Site) -> None:
    site.serve("/p", "<p>  as is </p>\n")
    assert (await fetch(ws, f"{site.url}/p", "html")).output == "<p>  as is </p>\n"
    for kind in ("text/plain", "application/json", "image/svg+xml", "text/markdown", "application/xml"):
        site.serve("/d", "<b>\u00e9</b>\n", kind)
        for form in ("markdown", "text", "html"):
            result = await fetch(ws, f"{site.url}/d", form)
            assert (result.output, result.title) == ("<b>\u00e9</b>\n", f"{site.url}/d ({kind})")
            assert result.attachments == []


@pytest.mark.anyio
async def test_without_a_content_type(ws: Workspace, site: Site) -> None:
    site.serve("/p", "just text", "")
    result = await fetch(ws, f"{site.url}/p")
    assert (result.output, result.title) == ("just text", f"{site.url}/p ()")
    site.serve("/h", "\n<!DOCTYPE html><h1>Is a page</h1>", "")
    assert (await fetch(ws, f"{site.url}/h")).output == "# Is a page"


@pytest.mark.parametrize(
    ("body", "content_type", "mime"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "IMAGE/PNG; charset=binary", "image/png"),
        (PNG, "image/jpeg", "image/png"),
        (PNG, "application/octet-stream", "image/png"),
        (b"\xff\xd8\xff\xe0rest", "", "image/jpeg"),
        (b"anything", "image/x-other", "image/x-other"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp", "image/webp"),
        (b"%PDF-1.7 rest", "application/pdf", "application/pdf"),
    ],
)
@pytest.mark.anyio
async def test_images_are_attached(ws: Workspace, site: Site, body: bytes, content_type: str, mime: str) -> None:
    site.serve("/i", body, content_type)
    result = await fetch(ws, f"{site.url}/i")
    assert result.output == ("PDF" if "pdf" in mime else "Image") + " fetched successfully"
    [attachment] = result.attachments
    assert (attachment.mime, attachment.data) == (mime, body)
    assert attachment.id.startswith("prt_")
    assert attachment.session_id


@pytest.mark.anyio
async def test_what_only_calls_itself_an_image_is_a_page(ws: Workspace, site: Site) -> None:
    site.serve("/i.png", "<!doctype html><p>Please log in</p>", "image/png")
    result = await fetch(ws, f"{site.url}/i.png")
    assert (result.output, result.attachments) == ("Please log in", [])


@pytest.mark.anyio
async def test_other_binary_data_is_told(ws: Workspace, site: Site) -> None:
    site.serve("/z", b"PK\x03\x04\0\0\0\0", "application/zip")
    with pytest.raises(ToolError, match=r"not text: application/zip, 8 bytes\. Download it"):
        await fetch(ws, f"{site.url}/z")


TEXT = "Grüße, naïve “café” Привет 日本"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é".encode(), "text/html", "é"),
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        ("“é”".encode("cp1252"), 'text/html; charset="latin1"', "“é”"),
        ("Привет".encode("cp1251"), "text/plain; charset=windows-1251", "Привет"),
        ("日本".encode("cp932"), "text/html;charset=Shift_JIS", "日本"),
        (b"<meta charset=gb2312>" + "中文".encode("gb18030"), "text/html", "中文"),
        (
            b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">' + "я".encode("koi8_r"),
            "text/html",
            "я",
        ),
        (b"<meta charset=utf-16>" + "é".encode(), "text/html", "é"),
        ("é".encode("utf-16"), "text/plain", "é"),
        ("é".encode("utf-8-sig"), "text/plain; charset=latin-1", "é"),
        ("é".encode("latin-1"), "text/plain", "\ufffd"),
        ("é".encode("latin-1"), "text/plain; charset=utf-8", "\ufffd"),
        ("é".encode(), "text/plain; charset=no-such-thing", "é"),
        (b"+AGEA-", "text/plain; charset=utf-7", "+AGEA-"),
        (b"abc", "text/plain; charset=unicode_escape", "abc"),
        (b"<meta charset=latin1>" + "é".encode(), "text/plain", "<meta charset=latin1>é"),
        (b"\x81\x8d", "text/plain; charset=latin1", "\ufffd\ufffd"),
    ],
)
@pytest.mark.anyio
async def test_charsets(ws: Workspace, site: Site, body: bytes, content_type: str, text: str) -> None:
    site.serve("/c", body, content_type)
    assert (await fetch(ws, f"{site.url}/c", "text")).output == text


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "raw deflate", "identity", "members"])
@pytest.mark.anyio
async def test_compression_is_undone(ws: Workspace, site: Site, encoding: str) -> None:
    text = (TEXT * 20_000).encode()
    body = {
        "deflate": zlib.compress(text),
        "raw deflate": zlib.compress(text)[2:-4],
        "identity": text,
        "members": gzip.compress(text[:1000]) + gzip.compress(text[1000:]) + bytes(5),
    }.get(encoding, gzip.compress(text))
    named = {"raw deflate": "deflate", "members": "gzip"}.get(encoding, encoding)
    site.serve("/g", body, "text/plain", content_encoding=named)
    result = await fetch(ws, f"{site.url}/g")
    assert Path(result.metadata["outputPath"]).read_bytes() == text
    assert site.requests[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        (b"no gzip at all", "gzip", "damaged"),
        (gzip.compress(b"x" * 100_000, mtime=0)[:-20], "gzip", "cut off"),
        (b"x", "br", "'br', which was not asked for"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "gzip, gzip", "not asked for"),
    ],
)
@pytest.mark.anyio
async def test_compression_that_can_not_be_undone(
    ws: Workspace, site: Site, body: bytes, encoding: str, message: str
) -> None:
    site.serve("/g", body, "text/plain", content_encoding=encoding)
    with pytest.raises(ToolError, match=message):
        await fetch(ws, f"{site.url}/g")


@pytest.mark.anyio
async def test_headers(ws: Workspace, site: Site) -> None:
    site.serve("/p", "x")
    for form in ("markdown", "text", "html"):
        await fetch(ws, f"{site.url}/p?a=1&b=%20#frag", form)
    markdown, text, html = (request.headers for request in site.requests)
    assert {request.path for request in site.requests} == {"/p?a=1&b=%20"}
    assert {request.method for request in site.requests} == {"GET"}
    assert markdown["accept"].startswith(
        "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7"
    )
    assert text["accept"].startswith("text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8")
    assert html["accept"].startswith("text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8")
    assert markdown["host"] == f"127.0.0.1:{site.port}"
    assert "Chrome/" in markdown["user-agent"]
    assert markdown["accept-language"] == "en-US,en;q=0.9"
    assert "cookie" not in markdown


@pytest.mark.parametrize("status", ["204 No Content", "200 OK"])
@pytest.mark.anyio
async def test_an_empty_body(ws: Workspace, site: Site, status: str) -> None:
    @site.on("/e")
    async def empty(_: Request, to: Connection) -> None:
        await to.head(status, content_type="text/html", **({} if "204" in status else {"content_length": 0}))

    for form in ("markdown", "text", "html"):
        assert (await fetch(ws, f"{site.url}/e", form)).output == ""


@pytest.mark.parametrize(
    "status", ["404 Not Found", "500 Oops", "403 Forbidden", "304 Not Modified", "302 Found", "418 T"]
)
@pytest.mark.anyio
async def test_a_status_that_is_no_success(ws: Workspace, site: Site, status: str) -> None:
    site.serve("/e", "why", status=status)
    with pytest.raises(ToolError, match=rf"^Request failed with status code: {status[:3]}$"):
        await fetch(ws, f"{site.url}/e")


@pytest.mark.anyio
async def test_a_bot_check_is_tried_once_more_with_a_plain_name(ws: Workspace, site: Site) -> None:
    @site.on("/c")
    async def check(request: Request, to: Connection) -> None:
        if request.headers["user-agent"] == "opencode":
            await to.page("let in", "text/plain")
        else:
            await to.head("403 Forbidden", cf_mitigated="challenge", content_length=0)

    assert (await fetch(ws, f"{site.url}/c")).output == "let in"
    first, second = (request.headers for request in site.requests)
    assert {k: v for k, v in first.items() if k != "user-agent"} == {
        k: v for k, v in second.items() if k != "user-agent"
    }

    site.serve("/never", "", status="403 Forbidden", cf_mitigated="challenge")
    with pytest.raises(ToolError, match="status code: 403"):
        await fetch(ws, f"{site.url}/never")
    assert len(site.requests) == 4


@pytest.mark.anyio
async def test_redirects_are_followed(ws: Workspace, site: Site) -> None:
    site.redirect("/a", "/b?x=1", "301 Moved")
    site.redirect("/b", f"{site.url}/dir/c", "307 Temporary")
    site.redirect("/dir/c", "é d#part", "308 Permanent")
    site.serve("/dir/%C3%A9%20d", "there", "text/plain")
    result = await fetch(ws, f"{site.url}/a")
    assert (result.output, result.title) == ("there", f"{site.url}/a (text/plain)")
    assert result.metadata["redirected"] == f"{site.url}/dir/%C3%A9%20d"


@pytest.mark.anyio
async def test_the_ask(open_workspace: OpenWorkspace, site: Site, approver: Approver) -> None:
    site.serve("/p", "x", "text/plain")
    config = {"permission": {"webfetch": {"*": "ask", f"{site.url}/*": "ask"}}}
    ws = await open_workspace(config, approve=approver)
    await ws.call("webfetch", {"url": f"{site.url}/p", "timeout": 5})
    await ws.call("webfetch", {"url": f"{site.url}/p", "format": "html"})
    await ws.call("webfetch", {"url": f"http://0x7f.1:{site.port}/p"})
    ruled = await ws.dry_run("webfetch", {"url": f"{site.url}/p"})
    first, second, odd = approver.named("webfetch")
    assert (first.patterns, first.always) == ([f"{site.url}/p"], ["*"])
    assert first.metadata == {"url": f"{site.url}/p", "format": "markdown", "timeout": 5}
    assert second.metadata == {"url": f"{site.url}/p", "format": "html"}
    assert odd.patterns == [f"http://0x7f.1:{site.port}/p", f"{site.url}/p"]
    assert [decision.action for decision in ruled] == ["ask"]
    assert len(site.requests) == 3


@pytest.mark.parametrize(
    "wrong", [{}, {"url": 3}, {"url": "http://a", "format": "pdf"}, {"url": "http://a", "timeout": "x"}]
)
@pytest.mark.anyio
async def test_arguments_that_do_not_fit(ws: Workspace, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await ws.call("webfetch", wrong)


@pytest.mark.anyio
async def test_progress_is_shown(ws: Workspace, site: Site) -> None:
    @site.on("/slow")
    async def slow(_: Request, to: Connection) -> None:
        await to.head(content_type="text/plain", content_length=300_000)
        for _ in range(3):
            await to.send(b"x" * 100_000)
            await asyncio.sleep(0.12)

    reports: list[dict[str, Any]] = []

    def note(part: Any) -> None:
        metadata = getattr(part.state, "metadata", None) or {}
        if "progress" in metadata:
            reports.append(metadata["progress"])

    await ws.call("webfetch", {"url": f"{site.url}/slow"}, on_update=note)
    assert reports[0]["message"] == "asking 127.0.0.1"
    assert any(0 < entry.get("value", 0) < entry.get("total", 0) == 300_000 for entry in reports)
