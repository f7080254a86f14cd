"""Which addresses are public, and what a URL leads to however it is spelt."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.permission import Rule
from opencode_jupyter.tools.web.public_addresses import is_metadata, not_public, parse_address
from opencode_jupyter.tools.web.url import parse
from opencode_jupyter.tools.webfetch import is_named, names_host

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255"]
PUBLIC_6 = ["2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.9"),
    *("169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1"),
    *("192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200"),
]
PRIVATE_6 = [
    *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::808:808", "100::1", "2001::1", "2001:db8::1", "2001:10::1", "2002:7f00:1::", "2002:c0a8:101::1"),
    *("3fff::1", "4000::1", "5f00::1", "fc00::1", "fd12::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1"),
    *("ff02::1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.1.1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    *("64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254"),
]


@pytest.mark.parametrize("text", [*PUBLIC, *PUBLIC_6])
def test_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert not_public(address) is None


@pytest.mark.parametrize("text", [*PRIVATE, *PRIVATE_6])
def test_not_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert not_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_behind_every_translation(address: IPv4Address) -> None:
    number = int(address)
    if number < 2:
        return
    forms = [(0xFFFF << 32) | number, (0xFFFF << 48) | number, (0x64FF9B << 96) | number, number]
    forms.append((0x2002 << 112) | (number << 80) | 1)
    for form in forms:
        assert bool(not_public(IPv6Address(form))) == bool(not_public(address)), IPv6Address(form)
        assert is_metadata(IPv6Address(form)) == is_metadata(address)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address: IPv4Address | IPv6Address) -> None:
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        assert not_public(address)


SPELLINGS = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0x7F.0x0.0x0.0x1", "0177.0.0.1"),
    *("017700000001", "127.0.0.1.", "①②⑦.0.0.1", "127。0。0。1", "１２７.0.0.1", "0x7f.0.0.01", "00000177.1"),
]


@pytest.mark.parametrize("host", SPELLINGS)
def test_odd_spellings_of_loopback(host: str) -> None:
    target = parse(f"http://{host}/a")
    assert target.address == ip_address("127.0.0.1")
    assert target.url == "http://127.0.0.1/a"


@given(st.ip_addresses(v=4), st.data())
def test_every_spelling_of_an_ipv4_address_is_that_address(address: IPv4Address, data: st.DataObject) -> None:
    number = int(address)
    count = data.draw(st.integers(1, 4))
    parts = [(number >> (24 - 8 * i)) & 255 for i in range(count - 1)]
    parts.append(number & ((1 << (8 * (5 - count))) - 1))
    spelt = [data.draw(st.sampled_from([str(p), f"0x{p:x}", f"0X{p:X}", f"0{p:o}"])) for p in parts]
    assert parse(f"https://{'.'.join(spelt)}:8443/").address == address


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443", "https://example.com/"),
        ("http://example.com:8080?q=a b", "http://example.com:8080/?q=a%20b"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://example.com/a#part", "http://example.com/a"),
        ("http://example.com/%41%2f", "http://example.com/%41%2f"),
        ("http://example.com/a/../b/./c", "http://example.com/b/c"),
        ("http://example.com/open/%2e%2E/private", "http://example.com/private"),
        ("http://example.com/../../etc/..", "http://example.com/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://my_host.example./x", "http://my_host.example/x"),
    ],
)
def test_one_spelling(url: str, canonical: str) -> None:
    assert parse(url).url == canonical


@pytest.mark.parametrize(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://example.com",
            "//example.com",
            "example.com",
            "",
            "http:/example.com",
            "data:,x",
        ),
        *("http://", "http:///path", "http://user@example.com", "http://user:word@example.com/", "http://@example.com"),
        *(
            "http://example.com\\@evil.org/",
            "http:\\\\example.com",
            "http://exa\nmple.com",
            "http://example.com/\r\nX: y",
        ),
        *("http://example.com\t", "http://example.com/\0", "http://exa mple.com/", "http://example.com:99999"),
        *(
            "http://example.com:0/",
            "http://example.com:80:80/",
            "http://example.com:http/",
            "http://[::1",
            "http://::1/",
        ),
        *("http://[fe80::1%25eth0]/", "http://[127.0.0.1]/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://0x7g/"),
        *("http://1.2.3.0x1ffffffff/", "http://09.1.1.1/", "http://./", "http://a..b/", "http://example.com%00/"),
        *("http://127.0.0.1%2f@example.com", "http://" + "a" * 9000, "http://ex%61mple.com/", "http://\ud800.com/"),
        *("http://a/\u2028", "http://exa<mple.com", "http://999999999999/"),
    ],
)
def test_what_is_no_url_is_told(url: str) -> None:
    if url == "http://0x7g/":  # a name that begins like a number
        assert parse(url).host == "0x7g"
        return
    with pytest.raises(ToolError):
        parse(url)


@given(st.text(max_size=40))
def test_any_text_is_a_url_or_an_error(text: str) -> None:
    for url in (f"http://{text}", f"https://example.com/{text}", text):
        try:
            target = parse(url)
        except ToolError:
            continue
        assert target.url.isascii()
        assert parse(target.url).url == target.url


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("http://127.0.0.1:8000/*", "http://127.0.0.1:8000/a?b", True),
        ("http://127.0.0.1:8000/*", "http://0x7f.1:8000/", True),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/deep", True),
        ("http://127.0.0.1:8000/*", "http://127.0.0.1:9000/", False),
        ("http://127.0.0.1:8000/*", "https://127.0.0.1:8000/", False),
        ("http://127.0.0.1:*", "http://127.0.0.1:9000/x", True),
        ("http://127.0.0.1*", "http://127.0.0.1:9000/x", True),
        ("http://127.0.0.1*", "http://127.0.0.11/", False),
        ("http://127.0.0.1*", "http://127.0.0.1.evil.org/", False),
        ("http://127.0.0.1/*", "http://127.0.0.1/x", True),
        ("http://127.0.0.1", "http://127.0.0.1/", True),
        ("http://127.0.0.1", "http://127.0.0.1:81/", False),
        ("127.0.0.1", "https://127.0.0.1:81/", True),
        ("localhost:8888/*", "http://localhost:8888/api", True),
        ("*://localhost/*", "http://localhost/", True),
        ("http://LOCALHOST/*", "http://localhost/", True),
        ("http://[::1]:5000/*", "http://[::1]:5000/", True),
        ("http://localhost/docs/*", "http://localhost/admin", False),
        ("http://localhost/docs/*", "http://localhost/docs/../admin", False),
        ("*", "http://localhost/", False),
        ("http://*", "http://localhost/", False),
        ("http://*/", "http://localhost/", False),
        ("http*://localhost/*", "http://localhost/", False),
        ("http://10.*", "http://10.0.0.1/", False),
        ("http://local*", "http://localhost/", False),
        ("http://?ocalhost/*", "http://localhost/", False),
        ("http://x@localhost/*", "http://localhost/", False),
        ("**", "http://localhost/", False),
        ("", "http://localhost/", False),
    ],
)
def test_a_rule_names_a_host_in_full(pattern: str, url: str, fits: bool) -> None:
    assert names_host(pattern, parse(url)) is fits


def test_rules_that_deny_or_speak_of_something_else_name_nothing() -> None:
    target = parse("http://localhost/")
    assert not is_named([Rule("webfetch", "localhost", "deny"), Rule("bash", "localhost", "allow")], target)
    assert is_named([Rule("webfetch", "localhost", "ask")], target)
    assert is_named([Rule("*", "localhost", "allow")], target)
