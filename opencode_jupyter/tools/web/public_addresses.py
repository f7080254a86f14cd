"""Which addresses are public: own tables, since Python's `ipaddress` calls several private ones global.

Sources: IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890 and what came after), RFC 6052 (NAT64),
RFC 3056 (6to4), RFC 5214 (ISATAP), RFC 4380 (Teredo), and the cloud providers' manuals for metadata services.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

# fmt: off
NOT_PUBLIC_4: tuple[tuple[IPv4Network, str], ...] = tuple((IPv4Network(network), what) for network, what in (
    ("0.0.0.0/8", "an address of this host"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "a carrier's private address"),
    ("127.0.0.0/8", "a loopback address"),
    ("169.254.0.0/16", "a link-local address"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a protocol address"),
    ("192.0.2.0/24", "a documentation address"),
    ("192.88.99.0/24", "a 6to4 relay's address"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "a benchmarking address"),
    ("198.51.100.0/24", "a documentation address"),
    ("203.0.113.0/24", "a documentation address"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
))
NOT_PUBLIC_6: tuple[tuple[IPv6Network, str], ...] = tuple((IPv6Network(network), what) for network, what in (
    ("::/128", "an address of this host"),
    ("::1/128", "a loopback address"),
    ("64:ff9b:1::/48", "a local translation address"),
    ("100::/64", "a discard address"),
    ("2001::/32", "a Teredo address"),
    ("2001::/23", "a protocol address"),
    ("2001:db8::/32", "a documentation address"),
    ("3fff::/20", "a documentation address"),
    ("5f00::/16", "a segment-routing address"),
    ("fc00::/7", "a private address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a site-local address"),
    ("ff00::/8", "a multicast address"),
))
EMBEDDED: tuple[tuple[IPv6Network, int, str], ...] = tuple((IPv6Network(n), shift, what) for n, shift, what in (
    ("::ffff:0:0/96", 0, "IPv4-mapped"),
    ("::ffff:0:0:0/96", 0, "IPv4-translated"),
    ("64:ff9b::/96", 0, "NAT64"),
    ("2002::/16", 80, "6to4"),
    ("::/96", 0, "IPv4-compatible"),
))
"""Networks whose addresses carry an IPv4 address, and how many bits follow it."""
METADATA: frozenset[Address] = frozenset(map(ip_address, (
    "169.254.169.254",  # AWS, Azure, Google, OpenStack, DigitalOcean, Oracle
    "169.254.169.253",  # AWS: name server
    "169.254.169.123",  # AWS: time
    "169.254.170.2",    # AWS: credentials of containers
    "169.254.170.23",   # AWS: credentials of pods
    "169.254.0.23",     # Tencent
    "168.63.129.16",    # Azure: a public address, answered by the host
    "100.100.100.200",  # Alibaba
    "192.0.0.192",      # Oracle
    "fd00:ec2::254",    # AWS
    "fd00:ec2::23",     # AWS: credentials of pods
    "fd20:ce::254",     # Google
    "fd00:42::42",      # Scaleway
)))
"""Services that hand a machine's keys to whoever asks from it."""
METADATA_NAMES = frozenset((
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
))
# fmt: on
GLOBAL_6 = IPv6Network("2000::/3")
"""All that is handed out for the Internet at large."""
ISATAP = (0x00005EFE, 0x02005EFE)


def parse_address(text: str) -> Address | None:
    """The address that a text is, with or without a zone (``%eth0``); None if it is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.scope_id:
        return IPv6Address(int(address))
    return address


def embedded_ipv4(address: Address) -> tuple[IPv4Address, str] | None:
    """The IPv4 address that an IPv6 address carries, and by which scheme."""
    if isinstance(address, IPv4Address):
        return None
    number = int(address)
    if number > 1:  # :: and ::1 are addresses of their own
        for network, shift, what in EMBEDDED:
            if address in network:
                return IPv4Address((number >> shift) & 0xFFFFFFFF), what
    if (number >> 32) & 0xFFFFFFFF in ISATAP:
        return IPv4Address(number & 0xFFFFFFFF), "ISATAP"
    return None


def not_public(address: Address) -> str | None:
    """The reason why an address is not public ("a loopback address"); None if it is."""
    if address in METADATA:
        return "a cloud metadata address"
    carried = embedded_ipv4(address)
    if carried is not None:
        why = not_public(carried[0])
        if why is not None:
            return f"{carried[1]} for {carried[0]}, {why}"
        if carried[1] != "ISATAP":
            return None
    if isinstance(address, IPv4Address):
        return next((what for network, what in NOT_PUBLIC_4 if address in network), None)
    reason = next((what for network, what in NOT_PUBLIC_6 if address in network), None)
    return reason or (None if address in GLOBAL_6 else "a reserved address")


def is_metadata(address: Address) -> bool:
    """Return whether a cloud's metadata service answers there, also by translation."""
    carried = embedded_ipv4(address)
    return address in METADATA or (carried is not None and carried[0] in METADATA)
