"""Addresses as typed, and the sentence where one will not do."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.net.addresses import (
    Address,
    Endpoints,
    endpoints,
    is_loopback,
    number_of,
    parse_address,
    permit,
)


@pytest.mark.parametrize(
    "text, host, port",
    [
        ("127.0.0.1:7400", "127.0.0.1", 7400),
        (" host:1 ", "host", 1),
        ("a-b.example.:65535", "a-b.example.", 65535),
        ("svc_1.default:0", "svc_1.default", 0),
        ("[::1]:7400", "::1", 7400),
        ("[fe80::1%eth0]:7400", "fe80::1%eth0", 7400),
        ("[::]:7400", "::", 7400),
        ("0.0.0.0:7400", "0.0.0.0", 7400),
    ],
)
def test_addresses_are_read_and_shown_alike(text: str, host: str, port: int) -> None:
    address = parse_address(text, "--bind")
    assert address == Address(host, port)
    assert str(address) == text.strip()
    assert parse_address(str(address), "--bind") == address


def test_a_default_port_is_used_only_where_none_is_typed() -> None:
    assert parse_address("host", "--join", 7400) == Address("host", 7400)
    assert parse_address("[::1]", "--join", 7400) == Address("::1", 7400)
    assert parse_address("host:0", "--join", 7400) == Address("host", 0)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("host", "has no port: write HOST:PORT"),
        ("[::1]", "has no port"),
        ("::1", "needs brackets"),
        ("::1:7400", "needs brackets"),
        ("a:b:c", "needs brackets"),
        ("[host]:1", "write an IPv6 address as"),
        ("[127.0.0.1]:1", "write an IPv6 address as"),
        ("[::1]7400", "write an IPv6 address as"),
        ("[::1", "write an IPv6 address as"),
        ("", "names no host"),
        (":7400", "names no host"),
        ("300.1.1.1:1", "names no host"),
        ("10.0.0:1", "names no host"),
        ("-a:1", "names no host"),
        ("a..b:1", "names no host"),
        ("a b:1", "names no host"),
        ("a/b:1", "names no host"),
        ("x" * 64 + ":1", "names no host"),
        ("host:", "needs a port from 0 to 65535"),
        ("host:65536", "needs a port from 0 to 65535"),
        ("host:-1", "needs a port from 0 to 65535"),
        ("host:+1", "needs a port from 0 to 65535"),
        ("host:http", "needs a port from 0 to 65535"),
        ("host:\u0661", "needs a port from 0 to 65535"),
    ],
)
def test_what_is_wrong_is_said_with_what_was_typed(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_address(text, "--join")
    assert str(refusal.value).startswith(f"--join {text!r} ")
    assert sentence in str(refusal.value)


@given(st.text(max_size=30) | st.from_regex(r"\[?[0-9a-f:.%]{0,12}\]?:?[0-9]{0,6}"))
def test_any_text_is_an_address_or_a_sentence(text: str) -> None:
    try:
        address = parse_address(text, "--join")
    except BadInput:
        return
    assert parse_address(str(address), "--join") == address
    assert 0 <= address.port <= 65535


@pytest.mark.parametrize(
    "host, answer",
    [
        ("127.0.0.1", True),
        ("127.255.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("::ffff:192.0.2.1", False),
        ("name.example", False),
    ],
)
def test_loopback_is_known_by_number(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
    assert Address(host, 1).is_loopback is answer


def test_without_a_key_only_this_machine_is_listened_to() -> None:
    mine, named, all_of_us = Address("::1", 1), Address("LocalHost", 1), Address("0.0.0.0", 1)
    assert permit(mine, sealed=False, insecure=False) is None
    assert permit(named, sealed=False, insecure=False) is None
    assert permit(all_of_us, sealed=True, insecure=False) is None
    assert permit(all_of_us, sealed=True, insecure=True) is None
    for other in (all_of_us, Address("192.0.2.1", 1), Address("name.example", 1)):
        with pytest.raises(BadInput, match="make a key with hustings keygen, or say --insecure"):
            permit(other, sealed=False, insecure=False)
        warning = permit(other, sealed=False, insecure=True)
        assert warning is not None
        assert warning.startswith(f"insecure: {other} takes messages from all")


def test_what_is_advertised_can_be_reached() -> None:
    bind, wildcard, public = Address("10.0.0.5", 7400), Address("::", 7400), Address("a.example", 9)
    assert endpoints(bind) == Endpoints(bind, bind)
    assert endpoints(wildcard, public) == Endpoints(wildcard, public)
    with pytest.raises(BadInput, match=r"all interfaces.*give an advertise address too"):
        endpoints(wildcard)
    for useless in (Address("0.0.0.0", 1), Address("224.0.0.1", 1)):
        with pytest.raises(BadInput, match=r"advertise address .* is not one member's"):
            endpoints(wildcard, useless)
    with pytest.raises(BadInput, match=r"bind address .* is a multicast group"):
        endpoints(Address("ff02::1", 1), public)
    with pytest.raises(BadInput, match="port 0: give the port that others reach"):
        endpoints(wildcard, Address("a.example", 0))


def test_a_port_that_the_system_chose_is_advertised() -> None:
    free = Address("127.0.0.1", 0)
    chosen = endpoints(free).bound(4711)
    assert chosen == Endpoints(Address("127.0.0.1", 4711), Address("127.0.0.1", 4711))
    mapped = endpoints(free, Address("a.example", 80)).bound(4711)
    assert mapped == Endpoints(Address("127.0.0.1", 4711), Address("a.example", 80))


def as_the_library_has_it(host: str) -> tuple[object, ...] | None:
    try:
        ip = ip_address(host)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    own = ip if mapped is None else mapped
    return ip.packed, ip.version, ip.is_unspecified, ip.is_multicast, own.is_loopback


def as_read_here(host: str) -> tuple[object, ...] | None:
    ip = number_of(host)
    if ip is None:
        return None
    return ip.packed, ip.version, ip.is_unspecified, ip.is_multicast, ip.is_loopback


BLOCKS = st.sampled_from([0, 1, 0x7F000001, 0xE0000001, 0xFF02 << 112, 0xFFFF7F000001, 1 << 32])
NUMBERS = st.one_of(
    st.integers(0, (1 << 32) - 1).map(lambda number: str(IPv4Address(number))),
    st.integers(0, (1 << 128) - 1).map(lambda number: str(IPv6Address(number))),
    BLOCKS.map(lambda number: str(IPv6Address(number))),
    st.text("0127f.:%ex", max_size=16),
    st.sampled_from(["10.0.0.01", "fe80::1%eth0", "::1%", "::1%a%b", "127.0.0.1%lo", "a\0b", ""]),
    st.text(max_size=8),
)


@given(NUMBERS)
def test_numbers_are_read_as_the_standard_library_reads_them(host: str) -> None:
    assert as_read_here(host) == as_the_library_has_it(host)
