"""The way back of a login: what the page takes, what it turns away, and when it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.mcp.errors import LoginFailedError
from opencode_jupyter.mcp.redirect import PATH, AuthorizationResponse, Redirect, open_redirect

pytestmark = pytest.mark.anyio
STATE = "the-state"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def redirect() -> AsyncIterator[Redirect]:
    redirect = await open_redirect("http://127.0.0.1:0" + PATH)
    redirect.uri = f"http://127.0.0.1:{redirect.port}{PATH}"
    redirect.expect_state(STATE)
    yield redirect
    await redirect.close()


async def ask(
    redirect: Redirect, target: str, *, method: str = "GET", raw: bytes | None = None
) -> tuple[int, str, str]:
    """Status, head and body of what the page answers."""
    parts = urlsplit(redirect.uri)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(raw if raw is not None else f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    data = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    head, _, body = data.partition("\r\n\r\n")
    return int(head.split()[1]) if head else 0, head, body


def target(**query: str) -> str:
    return f"{PATH}?{urlencode(query)}"


async def test_the_right_answer(redirect: Redirect) -> None:
    status, head, body = await ask(redirect, target(code="c/1", state=STATE, iss="https://i"))
    assert status == 200
    assert "You can close this page" in body
    assert "Content-Security-Policy: default-src 'none'" in head
    assert "no-store" in head
    response = await redirect.wait_for_response()
    assert response == AuthorizationResponse("c/1", STATE, "https://i")
    assert "c/1" not in repr(response)
    await ask(redirect, target(code="c2", state=STATE))
    assert (await redirect.wait_for_response()).code == "c/1"  # the first one counts


async def test_what_is_turned_away_does_not_end_the_wait(redirect: Redirect) -> None:
    for wrong in (target(code="x", state="other"), target(code="x"), target(state=STATE), PATH, target(error="no")):
        assert (await ask(redirect, wrong))[0] == 400
    assert (await ask(redirect, "/favicon.ico"))[0] == 404
    assert (await ask(redirect, target(code="x", state=STATE), method="POST"))[0] == 405
    assert (await ask(redirect, "", raw=b"nonsense\r\n\r\n"))[0] == 405
    assert (await ask(redirect, "", raw=b"GET /" + b"x" * 100_000 + b"\r\n\r\n"))[0] == 0
    assert (await ask(redirect, target(code="c", state=STATE)))[0] == 200
    assert (await redirect.wait_for_response()).code == "c"


async def test_a_refusal(redirect: Redirect) -> None:
    description = "<script>alert(1)</script>\n" + "x" * 500
    status, _, body = await ask(redirect, target(error="access_denied", error_description=description, state=STATE))
    assert status == 400
    assert "<script>" not in body
    with pytest.raises(LoginFailedError, match="refused: access_denied: <script>") as caught:
        await redirect.wait_for_response()
    assert len(str(caught.value)) < 300


async def test_time_is_limited(redirect: Redirect) -> None:
    with pytest.raises(LoginFailedError, match=r"No answer came in 0\.01 s"):
        await redirect.wait_for_response(0.01)
    redirect.paste("late")  # whoever waits again gets it
    assert (await redirect.wait_for_response(0.01)).code == "late"


async def test_the_end(redirect: Redirect) -> None:
    port = redirect.port
    _, writer = await asyncio.open_connection("127.0.0.1", port)  # one who says nothing holds nothing up
    await asyncio.wait_for(redirect.close(), 5)
    await redirect.close()
    assert not redirect.listening
    writer.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("http://127.0.0.1:19876/mcp/oauth/callback?code=a%2Fb&state=the-state", "a/b"),
        ("  'http://127.0.0.1:1/x?state=the-state&code=c'  ", "c"),
        ("code=c&state=the-state", "c"),
        ("?code=c&state=the-state", "c"),
        ("4/0AbC-d_e", "4/0AbC-d_e"),
        ("  c \n", "c"),
    ],
)
async def test_what_is_pasted(redirect: Redirect, text: str, code: str) -> None:
    redirect.paste(text)
    assert (await redirect.wait_for_response()).code == code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no code"),
        ("two words", "contains no code"),
        ("https://example.org/", "contains no code"),
        ("http://127.0.0.1:1/x?state=the-state&code=", "no code in this answer"),
        ("http://127.0.0.1:1/x?code=c&state=other", "another login"),
        ("http://127.0.0.1:1/x?code=c", "another login"),
        ("http://127.0.0.1:1/x?error=access_denied&state=the-state", "refused: access_denied"),
    ],
)
async def test_what_is_pasted_wrongly(redirect: Redirect, text: str, message: str) -> None:
    with pytest.raises(LoginFailedError, match=message):
        redirect.paste(text)


async def test_nothing_is_taken_before_there_is_something_to_wait_for() -> None:
    redirect = await open_redirect("http://127.0.0.1:0" + PATH)
    with pytest.raises(LoginFailedError, match="try again in a moment"):
        redirect.paste("code")
    await redirect.close()


async def test_ports() -> None:
    first = await open_redirect("http://127.0.0.1:0" + PATH)
    taken = f"http://127.0.0.1:{first.port}{PATH}"
    second = await open_redirect(taken)
    assert second.listening
    assert second.uri != taken
    fixed = await open_redirect(taken, fixed=True)  # a registered address can't be another: the answer is pasted
    assert not fixed.listening
    assert fixed.uri == taken
    elsewhere = await open_redirect("https://example.org/back", fixed=True)
    assert not elsewhere.listening
    assert elsewhere.uri == "https://example.org/back"
    for listener in (first, second, fixed, elsewhere):
        await listener.close()


@settings(max_examples=50, deadline=None)
@given(
    host=st.text(max_size=20),
    query=st.dictionaries(st.sampled_from(["code", "state", "error", "iss"]), st.text(max_size=9)),
    more=st.text(max_size=20),
)
def test_no_address_with_another_state_settles_a_login(host: str, query: dict[str, str], more: str) -> None:
    async def work() -> None:
        redirect = Redirect("http://127.0.0.1:1/x")
        redirect.expect_state(STATE)
        for address in (f"http://{host}?code=x&{urlencode(query)}", f"code={more}", f"{host}?error={more}#{host}"):
            try:
                redirect.paste(address)
            except LoginFailedError:
                continue
            pytest.fail(f"taken: {address!r}")
        for line in (f"GET {host}?{more} HTTP/1.1", host, f"GET /x?{urlencode(query)}"):
            assert b"200 OK" not in redirect.page_for(line)
        with pytest.raises(LoginFailedError, match="No answer came"):
            await redirect.wait_for_response(0)
        await redirect.close()

    asyncio.run(work())
