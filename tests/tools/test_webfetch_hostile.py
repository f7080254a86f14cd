"""webfetch against sites that are broken or mean: sizes, time, garbage, TLS, proxies."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import socket
import sys
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.core.errors import ToolAbortedError, ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.tools.web import page_fetch
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from ..support.site import CERTIFICATE, Connection, Request, Site

LIMIT = page_fetch.LIMIT


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, site: Site) -> Workspace:
    """A workspace whose rules name the site by its address, and site.test by its name."""
    rules = {"*": "allow", f"{site.url}/*": "allow", "http://site.test:*": "allow", "https://site.test:*": "allow"}
    config = {"permission": {"*": "allow", "webfetch": rules}}
    return await open_workspace(config)


async def fetch(ws: Workspace, url: str, **arguments: Any) -> Any:
    return await ws.call("webfetch", {"url": url, **arguments})


# ---- endless and huge


@pytest.mark.anyio
async def test_redirect_loops_end(ws: Workspace, site: Site) -> None:
    site.redirect("/a", "/b")
    site.redirect("/b", "/a")
    with pytest.raises(ToolError, match="redirects more than 10 times"):
        await fetch(ws, f"{site.url}/a")
    assert len(site.requests) == 11


@pytest.mark.anyio
async def test_ten_redirects_are_followed(ws: Workspace, site: Site) -> None:
    for n in range(10):
        site.redirect(f"/{n}", f"/{n + 1}")
    site.serve("/10", "end", "text/plain")
    assert (await fetch(ws, f"{site.url}/0")).output == "end"


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.anyio
async def test_more_than_the_limit(ws: Workspace, site: Site, announced: bool) -> None:
    sent = 0

    @site.on("/big")
    async def big(_: Request, to: Connection) -> None:
        nonlocal sent
        await to.head(content_type="text/plain", **({"content_length": 1 << 40} if announced else {}))
        while sent < 1 << 30:
            await to.send(b"x" * 65536)
            sent += 65536

    with pytest.raises(ToolError, match=r"^Response too large \(exceeds 5MB limit\)$"):
        await fetch(ws, f"{site.url}/big", format="text")
    assert sent < 32 << 20


@pytest.mark.parametrize(("extra", "fits"), [(0, True), (1, False)])
@pytest.mark.anyio
async def test_the_limit_to_the_byte(ws: Workspace, site: Site, extra: int, fits: bool) -> None:
    @site.on("/big")
    async def big(_: Request, to: Connection) -> None:
        await to.head(content_type="text/plain")
        await to.send(b"x" * (LIMIT + extra))

    if fits:
        result = await fetch(ws, f"{site.url}/big")
        assert Path(result.metadata["outputPath"]).stat().st_size == LIMIT
    else:
        with pytest.raises(ToolError, match="too large"):
            await fetch(ws, f"{site.url}/big")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.anyio
async def test_a_bomb_is_counted_as_it_unfolds(ws: Workspace, site: Site, encoding: str) -> None:
    packer = zlib.compressobj(1, wbits=31 if encoding == "gzip" else 15)
    body = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    site.serve("/bomb", body, "text/html", content_encoding=encoding)
    with pytest.raises(ToolError, match="too large"):
        await fetch(ws, f"{site.url}/bomb")


@pytest.mark.anyio
async def test_compressed_nothing_without_end(ws: Workspace, site: Site) -> None:
    @site.on("/empty")
    async def empty(_: Request, to: Connection) -> None:
        await to.head(content_type="text/html", content_encoding="gzip")
        member = gzip.compress(b"") * 1000
        for _ in range(2000):
            await to.send(member)

    with pytest.raises(ToolError, match="more than 10000 parts"):
        await fetch(ws, f"{site.url}/empty")


@pytest.mark.anyio
async def test_compressed_data_that_unfolds_to_nothing_is_counted_too(ws: Workspace, site: Site) -> None:
    @site.on("/empty")
    async def empty(_: Request, to: Connection) -> None:
        await to.head(content_type="text/html", content_encoding="deflate")
        await to.send(b"\x78\x9c")
        for _ in range(1000):
            await to.send(b"\0\0\0\xff\xff" * 13_000)  # stored blocks of no bytes

    with pytest.raises(ToolError, match="too large"):
        await fetch(ws, f"{site.url}/empty")


@pytest.mark.parametrize("what", ["short lines", "wide characters", "bomb", "image"])
@pytest.mark.anyio
async def test_memory(ws: Workspace, site: Site, what: str) -> None:
    body = {
        "short lines": b"ab\n" * (LIMIT // 3),
        "wide characters": "\U0001f600".encode() * (LIMIT // 4),
        "bomb": gzip.compress(bytes(64 << 20)),
        "image": b"\x89PNG\r\n\x1a\n" + bytes(LIMIT - 8),
    }[what]
    kind = "image/png" if what == "image" else "text/plain"
    site.serve("/m", body, kind, content_encoding="gzip" if what == "bomb" else "identity")
    tracemalloc.start()
    try:
        with contextlib.suppress(ToolError):
            await fetch(ws, f"{site.url}/m")
        assert tracemalloc.get_traced_memory()[1] < LIMIT + (64 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.anyio
async def test_huge_headers(ws: Workspace, site: Site) -> None:
    @site.on("/h")
    async def headers(_: Request, to: Connection) -> None:
        await to.send(
            b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(5000)) + b"\r\n"
        )

    with pytest.raises(ToolError, match="not HTTP: its headers are too long"):
        await fetch(ws, f"{site.url}/h")


@pytest.mark.anyio
async def test_trailers_without_end(ws: Workspace, site: Site) -> None:
    @site.on("/t")
    async def trailers(_: Request, to: Connection) -> None:
        await to.head(content_type="text/plain", transfer_encoding="chunked")
        await to.send(b"1\r\na\r\n0\r\n")
        for _n in range(10_000):
            await to.send(b"X: " + b"y" * 6000 + b"\r\n")

    with pytest.raises(ToolError, match="its headers are too long"):
        await fetch(ws, f"{site.url}/t")


@pytest.mark.anyio
async def test_hints_before_the_answer_are_passed_over(ws: Workspace, site: Site) -> None:
    @site.on("/hints")
    async def hints(_: Request, to: Connection) -> None:
        await to.send(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3)
        await to.page("there", "text/plain")

    assert (await fetch(ws, f"{site.url}/hints")).output == "there"


# ---- time


@pytest.mark.parametrize("where", ["head", "body", "redirects", "nothing"])
@pytest.mark.anyio
async def test_one_deadline_holds_for_everything(ws: Workspace, site: Site, where: str) -> None:
    @site.on("/drip")
    async def drip(_: Request, to: Connection) -> None:
        if where == "nothing":
            await asyncio.sleep(30)
        if where == "redirects":
            await asyncio.sleep(0.3)
            await to.head("302 Found", location="/drip", content_length=0)
            return
        if where == "body":
            await to.head(content_type="text/html")
        else:
            await to.send(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(300):
            await to.send(b"y")
            await asyncio.sleep(0.1)

    began = time.perf_counter()
    with pytest.raises(ToolError, match="Request timed out after 1 seconds"):
        await fetch(ws, f"{site.url}/drip", timeout=0.01)
    assert time.perf_counter() - began > 0.9


@pytest.mark.anyio
async def test_waiting_for_a_person_takes_nothing_off_the_deadline(
    open_workspace: OpenWorkspace, site: Site, names: dict[str, list[str]]
) -> None:
    names["other.test"] = ["127.0.0.1"]

    async def late(request: Any) -> str:
        await asyncio.sleep(0.7)
        return "once"

    site.redirect("/a", f"http://other.test:{site.port}/b")
    site.serve("/b", "end", "text/plain")
    rules = {"*": "ask", f"{site.url}/*": "ask", "http://other.test:*": "ask"}
    ws = await open_workspace({"permission": {"webfetch": rules}}, approve=late)
    assert (await fetch(ws, f"{site.url}/a", timeout=1)).output == "end"


@pytest.mark.anyio
async def test_stopping_ends_it_at_once(ws: Workspace, site: Site) -> None:
    @site.on("/hang")
    async def hang(_: Request, to: Connection) -> None:
        await asyncio.sleep(30)

    call = ws.start("webfetch", {"url": f"{site.url}/hang"})
    asyncio.get_running_loop().call_later(0.5, call.abort)
    with pytest.raises(ToolAbortedError):
        await call.run()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists a process's children")
@pytest.mark.anyio
async def test_stopping_leaves_nothing_behind(ws: Workspace, site: Site) -> None:
    """Neither while the body comes nor while it is converted."""
    converting = asyncio.Event()
    loop = asyncio.get_running_loop()

    @site.on("/hang")
    async def hang(_: Request, to: Connection) -> None:
        await to.head(content_type="text/html")
        await to.send(b"<p>x")
        loop.call_soon_threadsafe(converting.set)
        await asyncio.sleep(30)

    @site.on("/dense")
    async def dense(_: Request, to: Connection) -> None:
        await to.page(b"<b>x</b>" * 600_000)

    def note(part: Any) -> None:
        if "converting" in str(getattr(part.state, "metadata", None)):
            converting.set()

    def children() -> set[str]:
        tasks = Path(f"/proc/{os.getpid()}/task")
        return {pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()}

    before, tasks = children(), len(asyncio.all_tasks())
    for path in ("/hang", "/dense"):
        converting.clear()
        call = ws.start("webfetch", {"url": site.url + path}, on_update=note)
        running = asyncio.ensure_future(call.run())
        await asyncio.wait_for(converting.wait(), 20)
        await asyncio.sleep(0.3)
        call.abort()
        with pytest.raises(ToolAbortedError):
            await running
    until = time.monotonic() + 5
    while children() - before and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert children() <= before
    assert len(asyncio.all_tasks()) == tasks


# ---- broken


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "ended before the whole answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ended before the whole answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab", "not HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcde", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabcde", "not HTTP"),
    ],
)
@pytest.mark.anyio
async def test_answers_that_are_broken(ws: Workspace, site: Site, sent: bytes, message: str) -> None:
    @site.on("/b")
    async def broken(_: Request, to: Connection) -> None:
        await to.send(sent)

    with pytest.raises(ToolError, match=message):
        await fetch(ws, f"{site.url}/b")


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200 OK\r\n\r\nhalf a pa"])
@pytest.mark.anyio
async def test_a_connection_that_is_reset(ws: Workspace, site: Site, after: bytes) -> None:
    @site.on("/b")
    async def reset(_: Request, to: Connection) -> None:
        to.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await to.send(after)
        await asyncio.sleep(0.05)
        to.reset()

    with pytest.raises(ToolError, match=r"broke while|without an answer|ended before"):
        await fetch(ws, f"{site.url}/b")


@pytest.mark.anyio
async def test_nobody_there(ws: Workspace, names: dict[str, list[str]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        names["site.test"] = ["127.0.0.1", "127.0.0.1"]
        with pytest.raises(ToolError, match=r"^Unable to connect\. Is the computer able to access the url\?$"):
            await fetch(ws, f"http://site.test:{taken.getsockname()[1]}/")


@pytest.mark.anyio
async def test_the_next_address_is_tried(ws: Workspace, site: Site, names: dict[str, list[str]]) -> None:
    site.serve("/", "second", "text/plain")
    names["site.test"] = ["127.0.0.2", "127.0.0.1"]  # the site listens on the second alone
    assert (await fetch(ws, f"http://site.test:{site.port}/")).output == "second"


@pytest.mark.anyio
async def test_a_name_that_nobody_knows(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", offline)
    with pytest.raises(ToolError, match=r"The host 'nowhere\.test' can't be found .* computer online\?"):
        await fetch(ws, "https://nowhere.test/")


@pytest.mark.anyio
async def test_tls(ws: Workspace, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    with Site(tls=True) as secure:
        secure.serve("/", "sealed", "text/plain")
        url = f"https://site.test:{secure.port}/"
        with pytest.raises(ToolError, match=r"site\.test has no trusted certificate"):
            await fetch(ws, url)
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert (await fetch(ws, url)).output == "sealed"  # the name's certificate, though the address was connected to
        names["wrong.test"] = ["127.0.0.1"]
        ws.rules.append(Rule("webfetch", "https://wrong.test:*", "allow"))
        with pytest.raises(ToolError, match=r"wrong\.test has no trusted certificate.*Hostname mismatch"):
            await fetch(ws, f"https://wrong.test:{secure.port}/")
        with pytest.raises(ToolError, match=r"without an answer|broke"):
            await fetch(ws, f"http://site.test:{secure.port}/")


@pytest.mark.anyio
async def test_tls_where_there_is_none(ws: Workspace) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    ws.rules.append(Rule("webfetch", url, "allow"))
    with pytest.raises(ToolError, match=r"No TLS connection to 127\.0\.0\.1: WRONG_VERSION_NUMBER"):
        await fetch(ws, url, timeout=5)
    server.close()


# ---- proxies


@pytest.mark.parametrize("proxy", ["url", "env", ""])
@pytest.mark.anyio
async def test_a_proxy_is_used_only_if_the_person_says_so(
    ws: Workspace, site: Site, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("OPENCODE_WEB_PROXY", site.url if proxy == "url" else proxy)

    @site.on("http://far.invalid/x")
    async def forward(_: Request, to: Connection) -> None:
        await to.page("through", "text/plain")

    if proxy:
        assert (await fetch(ws, "http://far.invalid/x")).output == "through"
        monkeypatch.setenv("no_proxy", ".invalid")
    with pytest.raises(ToolError, match="can't be found"):
        await fetch(ws, "http://far.invalid/x")
    if proxy:
        with pytest.raises(ToolError, match="Refused"):
            await fetch(ws, "http://10.0.0.1/")
