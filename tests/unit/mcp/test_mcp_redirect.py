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
async def way() -> AsyncIterator[Redirect]:
    made = await open_redirect("http://127.0.0.1:0" + PATH)
    made.uri = f"http://127.0.0.1:{made.port}{PATH}"
    made.expect(STATE)
    yield made
    await made.close()


async def ask(way: Redirect, target: str, *, method: str = "GET", raw: bytes | None = None) -> tuple[int, str, str]:
    """Status, head and body of what the page answers."""
    parts = urlsplit(way.uri)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(raw if raw is not None else f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    data = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    head, _, body = data.partition("\r\n\r\n")
    return int(head.split()[1]) if head else 0, head, body


def target(**query: str) -> str:
    return f"{PATH}?{urlencode(query)}"


async def test_the_right_answer(way: Redirect) -> None:
    status, head, body = await ask(way, target(code="c/1", state=STATE, iss="https://i"))
    assert status == 200
    assert "You can close this page" in body
    assert "Content-Security-Policy: default-src 'none'" in head
    assert "no-store" in head
    answer = await way.answer()
    assert answer == AuthorizationResponse("c/1", STATE, "https://i")
    assert "c/1" not in repr(answer)
    await ask(way, target(code="c2", state=STATE))
    assert (await way.answer()).code == "c/1"  # the first one counts


async def test_what_is_turned_away_does_not_end_the_wait(way: Redirect) -> None:
    for wrong in (target(code="x", state="other"), target(code="x"), target(state=STATE), PATH, target(error="no")):
        assert (await ask(way, wrong))[0] == 400
    assert (await ask(way, "/favicon.ico"))[0] == 404
    assert (await ask(way, target(code="x", state=STATE), method="POST"))[0] == 405
    assert (await ask(way, "", raw=b"nonsense\r\n\r\n"))[0] == 405
    assert (await ask(way, "", raw=b"GET /" + b"x" * 100_000 + b"\r\n\r\n"))[0] == 0
    assert (await ask(way, target(code="c", state=STATE)))[0] == 200
    assert (await way.answer()).code == "c"


async def test_a_refusal(way: Redirect) -> None:
    said = "<script>alert(1)</script>\n" + "x" * 500
    status, _, body = await ask(way, target(error="access_denied", error_description=said, state=STATE))
    assert status == 400
    assert "<script>" not in body
    with pytest.raises(LoginFailedError, match="refused: access_denied: <script>") as caught:
        await way.answer()
    assert len(str(caught.value)) < 300


async def test_time_is_limited(way: Redirect) -> None:
    with pytest.raises(LoginFailedError, match=r"No answer came in 0\.01 s"):
        await way.answer(0.01)
    way.paste("late")  # whoever waits again gets it
    assert (await way.answer(0.01)).code == "late"


async def test_the_end(way: Redirect) -> None:
    port = way.port
    _, writer = await asyncio.open_connection("127.0.0.1", port)  # one who says nothing holds nothing up
    await asyncio.wait_for(way.close(), 5)
    await way.close()
    assert not way.listening
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
async def test_what_is_pasted(way: Redirect, text: str, code: str) -> None:
    way.paste(text)
    assert (await way.answer()).code == code


@pytest.mark.parametrize(
    ("text", "said"),
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
async def test_what_is_pasted_wrongly(way: Redirect, text: str, said: str) -> None:
    with pytest.raises(LoginFailedError, match=said):
        way.paste(text)


async def test_nothing_is_taken_before_there_is_something_to_wait_for() -> None:
    way = await open_redirect("http://127.0.0.1:0" + PATH)
    with pytest.raises(LoginFailedError, match="try again in a moment"):
        way.paste("code")
    await way.close()


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
    for one in (first, second, fixed, elsewhere):
        await one.close()


@settings(max_examples=50, deadline=None)
@given(
    host=st.text(max_size=20),
    query=st.dictionaries(st.sampled_from(["code", "state", "error", "iss"]), st.text(max_size=9)),
    more=st.text(max_size=20),
)
def test_no_address_with_another_state_settles_a_login(host: str, query: dict[str, str], more: str) -> None:
    async def work() -> None:
        way = Redirect("http://127.0.0.1:1/x")
        way.expect(STATE)
        for address in (f"http://{host}?code=x&{urlencode(query)}", f"code={more}", f"{host}?error={more}#{host}"):
            try:
                way.paste(address)
            except LoginFailedError:
                continue
            pytest.fail(f"taken: {address!r}")
        for line in (f"GET {host}?{more} HTTP/1.1", host, f"GET /x?{urlencode(query)}"):
            assert b"200 OK" not in way._reply(line)
        assert not way._answer.done()
        await way.close()

    asyncio.run(work())
