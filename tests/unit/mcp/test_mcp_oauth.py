"""Logins at remote servers, against an authorization server that checks what it is sent."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from opencode_jupyter import Rule, ToolError, Workspace
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.configuration import ServerSpec
from opencode_jupyter.mcp.errors import (
    AuthError,
    LoginFailedError,
    NeedsAuthError,
    NeedsRegistrationError,
    auth_error,
)
from opencode_jupyter.mcp.logins import Login, Logins
from opencode_jupyter.mcp.oauth import auth_for, token_store
from tests.support.auth_server import AuthServer, auth_server, browse
from tests.support.mcp_remote import mcp_remote
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as running:
        yield running


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return await open_workspace({}, store=False)


def spec(server: AuthServer, **more: Any) -> ServerSpec:
    return ServerSpec("tracker", url=server.mcp, **more)


async def ping(ws: Workspace, target: ServerSpec) -> int:
    """The status of a request as a connection makes it: nobody takes part."""
    async with httpx2.AsyncClient(auth=auth_for(ws, target), verify=False) as client:
        return (await client.post(target.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code


async def log_in(ws: Workspace, target: ServerSpec) -> str:
    """Log in as a person with a browser does."""
    login = await ws.service(Logins).begin(target)
    page = await asyncio.to_thread(browse, await login.wait_for_url())
    assert "close this page" in page
    return await login.wait()


async def test_a_login_and_what_comes_after(ws: Workspace, server: AuthServer) -> None:
    with pytest.raises(NeedsAuthError, match="%mcp auth tracker"):
        await ping(ws, spec(server))
    assert await log_in(ws, spec(server)) == "Logged in at tracker."
    assert await ping(ws, spec(server)) == 200
    (client,) = server.clients.values()  # the one that the first try has registered
    assert client["client_name"] == "OpenCode (Jupyter)"
    assert await (await ws.service(Logins).begin(spec(server))).wait() == (
        "You are logged in at tracker already; to change that: %mcp auth tracker --forget"
    )
    assert await ws.service(Logins).forget("tracker")
    assert not await ws.service(Logins).forget("tracker")
    with pytest.raises(NeedsAuthError):
        await ping(ws, spec(server))


async def test_a_login_that_is_given_up_before_it_has_begun(ws: Workspace, server: AuthServer) -> None:
    logins = ws.service(Logins)
    begun = asyncio.create_task(logins.begin(spec(server)))
    await asyncio.sleep(0)
    assert not await logins.cancel("tracker")
    with pytest.raises(AuthError, match="cancelled"):
        await begun
    assert logins.get("tracker") is None


async def test_another_process_goes_on_with_the_tokens(
    open_workspace: OpenWorkspace, ws: Workspace, server: AuthServer
) -> None:
    await log_in(ws, spec(server))
    other = await open_workspace({}, store=False)
    assert await ping(other, spec(server)) == 200
    elsewhere = ServerSpec("tracker", url=server.mcp.replace("127.0.0.1", "localhost"))
    with pytest.raises(AuthError):  # the same name with another address gets nothing
        await ping(other, elsewhere)
    assert token_store(other).load("tracker", elsewhere.url).tokens is None


async def test_a_token_is_renewed_when_its_time_is_over(ws: Workspace, server: AuthServer) -> None:
    server.lifetime = 10  # less than what is renewed early
    await log_in(ws, spec(server))
    first = set(server.access)
    server.requests.clear()
    assert await ping(ws, spec(server)) == 200
    assert server.requests == ["POST /as/token", "POST /mcp"]  # at the server's own address, before a refusal
    assert set(server.access) - first
    entry = token_store(ws).load("tracker", server.mcp)
    assert entry.expires_at is not None
    assert abs(entry.expires_at - time.time() - 10) < 9


@pytest.mark.parametrize("lifetime", [3600, None])
async def test_a_token_that_is_refused_is_renewed(ws: Workspace, server: AuthServer, lifetime: int | None) -> None:
    server.lifetime = lifetime
    await log_in(ws, spec(server))
    server.expire()
    server.requests.clear()
    assert await ping(ws, spec(server)) == 200
    assert server.requests == ["POST /mcp", "POST /as/token", "POST /mcp"]


async def test_a_server_that_refuses_every_token_is_not_asked_for_ever(ws: Workspace, server: AuthServer) -> None:
    await log_in(ws, spec(server))
    server.allowed = lambda _: False  # type: ignore[method-assign]
    server.requests.clear()
    with pytest.raises(NeedsAuthError):
        await ping(ws, spec(server))
    assert server.requests.count("POST /as/token") == 1


async def test_what_another_kernel_renewed_is_taken(
    tmp_path: Path, ws: Workspace, server: AuthServer, project: Path
) -> None:
    await log_in(ws, spec(server))
    mine = auth_for(ws, spec(server))
    async with httpx2.AsyncClient(auth=mine, verify=False) as client:
        assert (await client.post(server.mcp)).status_code == 200
        server.expire()
        async with Workspace(project, data_dir=tmp_path / "data", store=False) as other:
            assert await ping(other, spec(server)) == 200  # which ends the renewal that the first one holds
        assert (await client.post(server.mcp)).status_code == 200
    assert mine is not None
    assert mine.problem is None


async def test_a_renewal_that_is_refused_wants_a_login(ws: Workspace, server: AuthServer) -> None:
    await log_in(ws, spec(server))
    server.expire()
    server.refresh.clear()
    with pytest.raises(NeedsAuthError):
        await ping(ws, spec(server))
    assert await log_in(ws, spec(server)) == "Logged in at tracker."


async def test_a_broken_authorization_server_does_not_end_a_login(ws: Workspace, server: AuthServer) -> None:
    await log_in(ws, spec(server))
    server.expire()
    server.token_status = 503
    with pytest.raises(LoginFailedError, match=r"answered 503. Try again later"):
        await ping(ws, spec(server))
    server.token_status = 200
    assert await ping(ws, spec(server)) == 200


async def test_a_server_that_registers_nobody(ws: Workspace, server: AuthServer) -> None:
    server.registration = False
    for _ in range(2):
        with pytest.raises(NeedsRegistrationError, match='"clientId"') as caught:
            await ping(ws, spec(server))
        assert caught.value.state == "needs_client_registration"
    login = await ws.service(Logins).begin(spec(server))
    with pytest.raises(NeedsRegistrationError):
        await login.wait_for_url()


@pytest.mark.parametrize("methods", [["client_secret_post"], ["client_secret_basic"]])
async def test_a_client_of_the_config(ws: Workspace, server: AuthServer, methods: list[str]) -> None:
    server.registration = False
    server.methods = methods
    uri = "http://127.0.0.1:19999/mine"
    server.add_client("ours", "very-secret", uri)
    target = spec(server, oauth={"clientId": "ours", "clientSecret": "very-secret", "redirectUri": uri})
    assert await log_in(ws, target) == "Logged in at tracker."
    assert "very-secret" not in token_store(ws).path.read_text()
    server.expire()
    assert await ping(ws, target) == 200
    with pytest.raises(NeedsRegistrationError):  # taken out of the config, it is not used any more
        await ping(ws, spec(server))
    with pytest.raises(NeedsAuthError):  # another client's tokens are not this one's
        await ping(ws, spec(server, oauth={"clientId": "other"}))


async def test_scopes(ws: Workspace, server: AuthServer) -> None:
    server.scopes = ["read", "write"]
    login = await ws.service(Logins).begin(spec(server))
    assert "scope=read+write" in await login.wait_for_url()
    login = await ws.service(Logins).begin(spec(server, oauth={"scope": "read"}))
    assert re.search(r"scope=read(&|$)", await login.wait_for_url())


async def test_a_scope_that_was_not_given(ws: Workspace, server: AuthServer) -> None:
    server.scopes = ["read"]
    await log_in(ws, spec(server))
    server.wants = "admin"
    with pytest.raises(AuthError, match=r"more access than was granted \(read admin\); to grant it: %mcp auth tracker"):
        await ping(ws, spec(server))
    server.wants = ""
    assert await ping(ws, spec(server)) == 200, "what was given before counts until more is given"


async def test_a_login_gives_what_was_wanted_in_addition(ws: Workspace, server: AuthServer) -> None:
    server.scopes = ["read"]
    await log_in(ws, spec(server))
    server.wants = "admin"
    with pytest.raises(AuthError, match="more access than was granted"):
        await ping(ws, spec(server))
    server.wants = ""
    login = await ws.service(Logins).begin(spec(server))
    assert "scope=read+admin" in await login.wait_for_url()
    await ws.service(Logins).cancel("tracker")
    assert await ping(ws, spec(server)) == 200, "a login that was given up takes nothing away"
    login = await ws.service(Logins).begin(spec(server))
    address = await login.wait_for_url()
    assert "scope=read+admin" in address
    await asyncio.to_thread(browse, address)
    assert await login.wait() == "Logged in at tracker."
    assert await (await ws.service(Logins).begin(spec(server))).wait() == (
        "You are logged in at tracker already; to change that: %mcp auth tracker --forget"
    ), "it is target once"


async def test_settings_that_make_no_sense(ws: Workspace, server: AuthServer) -> None:
    for uri in ("here", "http://[", "http://127.0.0.1:x/"):
        wrong = spec(server, oauth={"redirectUri": uri})
        with pytest.raises(LoginFailedError, match="is no address"):
            auth_for(ws, wrong)
        with pytest.raises(LoginFailedError, match="is no address"):
            await ws.service(Logins).begin(wrong)
    login = await ws.service(Logins).begin(spec(server, oauth={"scope": ["a", "b"], "clientId": 5}))
    address = await login.wait_for_url()
    assert "scope=a+b" in address
    assert "client_id=5" in address


async def test_no_login_where_none_is_wanted(ws: Workspace, server: AuthServer) -> None:
    assert auth_for(ws, spec(server, oauth=False)) is None
    assert auth_for(ws, ServerSpec("here", command=("x",))) is None
    logins = ws.service(Logins)
    for target in (spec(server, oauth=False), ServerSpec("here", command=("x",))):
        with pytest.raises(AuthError, match="does not use logins"):
            await logins.begin(target)
    server.needed = False
    login = await logins.begin(spec(server))
    assert await login.wait_for_url() == ""
    assert await login.wait() == "tracker wants no login."


async def test_a_pasted_answer(ws: Workspace, server: AuthServer) -> None:
    login = await ws.service(Logins).begin(spec(server))
    back = await asyncio.to_thread(browse, await login.wait_for_url(), follow=False)
    with pytest.raises(LoginFailedError, match="another login"):
        login.redirect.paste(back.replace("state=", "state=x"))
    with pytest.raises(LoginFailedError, match="contains no code"):
        login.redirect.paste("https://example.org/")
    login.redirect.paste(f"  '{back}' \n")
    assert await login.wait() == "Logged in at tracker."
    await ws.service(Logins).forget("tracker")
    login = await ws.service(Logins).begin(spec(server))
    back = await asyncio.to_thread(browse, await login.wait_for_url(), follow=False)
    match = re.search("code=([^&]*)", back)
    assert match is not None
    login.redirect.paste(match[1])
    assert await login.wait() == "Logged in at tracker."


async def test_a_login_that_is_refused_or_given_up(ws: Workspace, server: AuthServer) -> None:
    server.refuse = "access_denied"
    logins = ws.service(Logins)
    login = await logins.begin(spec(server))
    assert "access_denied" in await asyncio.to_thread(browse, await login.wait_for_url())
    with pytest.raises(LoginFailedError, match="refused: access_denied"):
        await login.wait()
    login = await logins.begin(spec(server))
    await login.wait_for_url()
    assert logins.get("tracker") is login
    again = await logins.begin(spec(server))  # a second one takes the first one's place
    await again.wait_for_url()
    with pytest.raises(LoginFailedError, match="cancelled"):
        await login.wait()
    assert await logins.cancel("tracker")
    assert not await logins.cancel("tracker")
    with pytest.raises(LoginFailedError, match="cancelled"):
        await again.wait()
    assert token_store(ws).load("tracker", server.mcp).tokens is None


async def test_a_failed_login_leaves_the_old_one(ws: Workspace, server: AuthServer) -> None:
    await log_in(ws, spec(server))
    before = token_store(ws).load("tracker", server.mcp)
    refresh_tokens = set(server.refresh)
    server.refresh.clear()
    server.expire()
    login = await ws.service(Logins).begin(spec(server))
    await login.wait_for_url()
    await ws.service(Logins).cancel("tracker")
    server.refresh |= refresh_tokens
    assert token_store(ws).load("tracker", server.mcp) == before
    assert await ping(ws, spec(server)) == 200


async def test_two_logins_at_once(ws: Workspace, server: AuthServer) -> None:
    logins = ws.service(Logins)
    begun = [await logins.begin(ServerSpec(name, url=server.mcp)) for name in ("one", "two")]
    assert begun[0].redirect.uri != begun[1].redirect.uri  # the second finds the port taken
    for login in begun:
        assert "close this page" in await asyncio.to_thread(browse, await login.wait_for_url())
        assert (await login.wait()).startswith("Logged in")


async def test_what_happens_then(ws: Workspace, server: AuthServer) -> None:
    done = []

    async def connect() -> None:
        done.append(True)
        raise ValueError("its status says so")

    login = await ws.service(Logins).begin(spec(server), connect)
    await asyncio.to_thread(browse, await login.wait_for_url())
    assert await login.wait() == "Logged in at tracker."
    assert done == [True]


async def test_no_secret_is_shown(
    ws: Workspace, server: AuthServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    server.add_client("ours", "very-secret", "http://127.0.0.1:19876/mcp/oauth/callback")
    good = spec(server, oauth={"clientId": "ours", "clientSecret": "very-secret"})
    shown = []
    await log_in(ws, good)
    server.expire()
    server.refresh.clear()
    for secret, wrong in (("other-secret", False), ("very-secret", True)):
        login = await ws.service(Logins).begin(spec(server, oauth={"clientId": "ours", "clientSecret": secret}))
        back = await asyncio.to_thread(browse, await login.wait_for_url(), follow=False)
        if wrong:
            server.codes.clear()
        login.redirect.paste(back)
        with pytest.raises(LoginFailedError) as caught:
            await login.wait()
        shown += [str(caught.value), repr(caught.value), repr(login), repr(login.auth), repr(login.redirect)]
        shown.append(repr(await login.redirect.wait_for_response()))
        shown.append(back.partition("code=")[0])
        secret_code = back.partition("code=")[2].partition("&")[0]
        assert secret_code not in "".join(shown[:-1])
    shown += [
        repr(token_store(ws)),
        repr(token_store(ws).load("tracker", server.mcp)),
        caplog.text,
        *capfd.readouterr(),
    ]
    for text in shown:
        for secret in [*server.secrets(), "other-secret"]:
            assert secret not in text, text


@pytest.mark.parametrize("older", [False, True])
async def test_a_connection_from_its_login_to_the_end_of_it(ws: Workspace, server: AuthServer, older: bool) -> None:
    with mcp_remote(server, older=older) as url:
        servers = ws.service(McpServers)
        ws.rules.append(Rule("far_*", "*", "allow"))
        assert (await servers.add("far", {"type": "remote", "url": url})).state == "needs_auth"
        login = await ws.service(Logins).begin(servers.specs()["far"], lambda: servers.connect("far"))
        await asyncio.to_thread(browse, await login.wait_for_url())
        assert await login.wait() == "Logged in at far."
        assert servers.status()["far"].state == "connected"
        assert (await ws.call("far_double", {"n": 21})).output == "42"
        server.expire()
        assert (await ws.call("far_double", {"n": 2})).output == "4"
        server.expire()
        server.refresh.clear()
        with pytest.raises(ToolError, match="%mcp auth far"):
            await ws.call("far_double", {"n": 3})
        with pytest.raises(ToolError, match="%mcp auth far"):
            await ws.call("far_double", {"n": 3})
        assert servers.status()["far"].state == "needs_auth"
        await servers.disconnect("far")


def test_errors_are_found_in_groups() -> None:
    inner = NeedsAuthError("tracker")
    wrapped = RuntimeError("transport")
    wrapped.__cause__ = BaseExceptionGroup("tasks", [ValueError("x"), BaseExceptionGroup("more", [inner])])
    assert auth_error(wrapped, "tracker") is inner
    assert auth_error(ValueError("x"), "tracker") is None


async def test_the_library_gets_only_a_web_page_opened(ws: Workspace, server: AuthServer) -> None:
    login = await ws.service(Logins).begin(spec(server))
    await login.wait_for_url()
    with pytest.raises(LoginFailedError, match="not a web page"):
        await login.auth.show("file:///etc/passwd?state=x")
    assert isinstance(login, Login)
    assert json.loads(token_store(ws).path.read_text() if token_store(ws).path.exists() else "{}") == {}
