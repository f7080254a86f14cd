"""webfetch where a site or a name is hostile: addresses and redirects."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from opencode_jupyter.core.errors import PermissionDeniedError, PermissionRejectedError, ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

from ..support.site import Site
from .conftest import Approver


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, site: Site) -> Workspace:
    """A workspace whose rules name the site by its address, and site.test by its name."""
    rules = {"*": "allow", f"{site.url}/*": "allow", "http://site.test:*": "allow", "https://site.test:*": "allow"}
    config = {"permission": {"*": "allow", "webfetch": rules}}
    return await open_workspace(config)


async def fetch(ws: Workspace, url: str, **arguments: Any) -> Any:
    return await ws.call("webfetch", {"url": url, **arguments})


# ---- addresses


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.1.2.3"]
)
@pytest.mark.anyio
async def test_a_private_host_is_refused_where_no_rule_names_it(
    open_workspace: OpenWorkspace, site: Site, approver: Approver, host: str
) -> None:
    site.serve("/", "secret")
    config = {"permission": {"*": "allow", "webfetch": {"*": "allow", "http://*": "allow", "http://1*": "ask"}}}
    ws = await open_workspace(config, approve=approver)
    with pytest.raises(ToolError, match=r"^Refused: .* unless a rule names the host: %permissions allow webfetch"):
        await fetch(ws, f"http://{host}:{site.port}/")
    if host != "localhost":  # a dry run looks no names up
        with pytest.raises(ToolError, match=r"^Refused"):
            await ws.dry_run("webfetch", {"url": f"http://{host}:{site.port}/"})
    assert site.requests == []


@pytest.mark.anyio
async def test_a_click_does_not_open_a_private_host_and_a_typed_rule_does(
    open_workspace: OpenWorkspace, site: Site, approver: Approver
) -> None:
    site.serve("/", "hello", "text/plain")
    approver.reply = "always"
    ws = await open_workspace({"permission": {"webfetch": "ask"}}, approve=approver)
    for _ in range(2):
        with pytest.raises(ToolError, match="Refused"):
            await fetch(ws, f"{site.url}/")
    assert len(approver.asks) == 1
    ws.rules.append(Rule("webfetch", f"{site.url}/*", "allow"))
    assert (await fetch(ws, f"{site.url}/")).output == "hello"
    ws.rules.append(Rule("webfetch", "http://127.*", "deny"))
    with pytest.raises(PermissionDeniedError):
        await fetch(ws, f"{site.url}/")


@pytest.mark.anyio
async def test_every_address_of_a_name_is_checked(ws: Workspace, site: Site, names: dict[str, list[str]]) -> None:
    names["evil.test"] = ["93.184.216.34", "127.0.0.1"]
    with pytest.raises(ToolError, match=r"evil\.test leads to 127\.0\.0\.1, a loopback address"):
        await fetch(ws, f"http://evil.test:{site.port}/")
    names["six.test"] = ["::ffff:10.0.0.1"]
    with pytest.raises(ToolError, match="IPv4-mapped for"):
        await fetch(ws, f"http://six.test:{site.port}/")
    assert site.requests == []


@pytest.mark.anyio
async def test_a_name_is_looked_up_once_and_its_address_used(
    ws: Workspace, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "site.test":
            hosts.append(host)
            return real("127.0.0.1" if len(hosts) == 1 else "127.0.0.99", *args, **kwargs)
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    site.serve("/", "once", "text/plain")
    assert (await fetch(ws, f"http://site.test:{site.port}/")).output == "once"
    assert hosts == ["site.test"]
    assert site.requests[0].headers["host"] == f"site.test:{site.port}"


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "keys.test"])
@pytest.mark.anyio
async def test_metadata_services_are_refused(ws: Workspace, names: dict[str, list[str]], host: str) -> None:
    names["keys.test"] = names["metadata.google.internal"] = ["169.254.169.254"]
    ws.rules.append(Rule("webfetch", "http://keys.test/*", "allow"))
    with pytest.raises(ToolError, match=r"Refused: .*metadata"):
        await fetch(ws, f"http://{host}/latest/", timeout=1)


@pytest.mark.parametrize(
    "location", ["http://localhost:{port}/s", "http://127.0.0.9:{port}/s", "//2130706434:{port}/s"]
)
@pytest.mark.anyio
async def test_a_redirect_to_a_private_address(ws: Workspace, site: Site, location: str) -> None:
    site.redirect("/r", location.format(port=site.port))
    site.serve("/s", "secret")
    with pytest.raises(ToolError, match="Refused"):
        await fetch(ws, f"{site.url}/r")
    assert [request.path for request in site.requests] == ["/r"]


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "data:text/html,x", "ftp://a/b", "javascript:x", "http:\\\\a"]
)
@pytest.mark.anyio
async def test_a_redirect_to_what_is_no_page(ws: Workspace, site: Site, location: str) -> None:
    site.redirect("/r", location)
    with pytest.raises(ToolError):
        await fetch(ws, f"{site.url}/r")
    assert len(site.requests) == 1


@pytest.mark.anyio
async def test_a_redirect_to_another_host_asks_again(
    open_workspace: OpenWorkspace, site: Site, approver: Approver, names: dict[str, list[str]]
) -> None:
    names["other.test"] = ["127.0.0.1"]
    rules = dict.fromkeys(("*", f"{site.url}/*", "http://site.test:*", "http://other.test:*"), "ask")
    there, other = f"http://site.test:{site.port}", f"http://other.test:{site.port}"
    site.redirect("/a", "/b")
    site.redirect("/b", f"{other}/c")
    site.serve("/c", "end", "text/plain")
    ws = await open_workspace({"permission": {"webfetch": rules}}, approve=approver)
    assert (await fetch(ws, f"{there}/a")).output == "end"
    assert [ask.patterns for ask in approver.asks] == [[f"{there}/a"], [f"{other}/c"]]
    assert approver.asks[1].metadata["url"] == f"{other}/c"
    approver.reply = lambda request: "reject" if "other" in request.patterns[0] else "once"
    count = len(site.requests)
    with pytest.raises(PermissionRejectedError):
        await fetch(ws, f"{there}/a")
    assert len(site.requests) == count + 2


@pytest.mark.anyio
async def test_a_redirect_on_the_same_host_obeys_stricter_rules(ws: Workspace, site: Site) -> None:
    ws.rules.append(Rule("webfetch", f"{site.url}/private/*", "deny"))
    site.redirect("/r", "/open/../private/x")
    site.serve("/private/x", "secret")
    with pytest.raises(PermissionDeniedError):
        await fetch(ws, f"{site.url}/r")
    with pytest.raises(PermissionDeniedError):
        await fetch(ws, f"{site.url}/a/%2E./private/x")
    assert [request.path for request in site.requests] == ["/r"]
