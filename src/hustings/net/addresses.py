"""Addresses as people type them, and the rule that says where a member may listen without a key.

The bound and the advertised address of a member may differ: behind a translation of addresses, in a
container, or when the member binds all interfaces.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from hustings.core.errors import BadInput

MOST_PORT = 65_535
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_LONGEST_NAME = 253
_MAPPED = bytes(10) + b"\xff\xff"  # the first bytes of an IPv6 address that stands for one of IPv4


class Number(NamedTuple):
    """An IP address: the part of `ipaddress` that a member needs, without loading the module."""

    packed: bytes

    @property
    def version(self) -> int:
        """4 or 6."""
        return 4 if len(self.packed) == 4 else 6

    @property
    def is_unspecified(self) -> bool:
        """Whether the address stands for all interfaces."""
        return not any(self.packed)

    @property
    def is_multicast(self) -> bool:
        """Whether the address is a multicast group's."""
        return self.packed[0] >> 4 == 0xE if self.version == 4 else self.packed[0] == 0xFF

    @property
    def is_broadcast(self) -> bool:
        """Whether this is the broadcast address of the network."""
        return self.packed == b"\xff" * 4

    @property
    def is_loopback(self) -> bool:
        """Whether the address is this machine's own, also if it is one of IPv4 written as IPv6."""
        own = self.packed.removeprefix(_MAPPED) if self.version == 6 else self.packed
        return own[0] == 127 if len(own) == 4 else own == bytes(15) + b"\1"


@dataclass(frozen=True, slots=True)
class Address:
    """A host, by number or by name, and a port. With port 0 the system chooses a port to bind.

    >>> str(Address("::1", 7400)), str(Address("a.example", 7400))
    ('[::1]:7400', 'a.example:7400')
    """

    host: str
    port: int

    @property
    def ip(self) -> Number | None:
        """The host as a number, if it is one."""
        return number_of(self.host)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. Of names, only `localhost` is known to be so."""
        return self.host.lower() == "localhost" or is_loopback(self.host)

    @property
    def is_wildcard(self) -> bool:
        """Whether the address stands for all interfaces."""
        return self.ip is not None and self.ip.is_unspecified

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.ip is not None and self.ip.version == 6 else self.host
        return f"{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether a numeric host is this machine's own. For a name, ask about the addresses behind it.

    >>> is_loopback("127.8.8.8"), is_loopback("::ffff:127.0.0.1"), is_loopback("10.0.0.1")
    (True, True, False)
    """
    ip = number_of(host)
    return ip is not None and ip.is_loopback


def reaches_family(bound: str, host: str) -> bool:
    """Whether a socket bound to one numeric host can send to another, as far as families go.

    >>> reaches_family("::", "10.0.0.1"), reaches_family("::1", "127.0.0.1")
    (True, False)
    >>> reaches_family("0.0.0.0", "::1"), reaches_family("10.0.0.1", "10.0.0.2")
    (False, True)
    """
    return bound == "::" or (":" in bound) == (":" in host)


def parse_address(text: str, what: str, default_port: int | None = None) -> Address:
    """Parse `host:port` or `[v6]:port`; the port may be missing if there is a default.

    >>> parse_address("[fe80::1%eth0]:7400", "--bind").host
    'fe80::1%eth0'
    >>> parse_address("db.example", "--join", default_port=7400)
    Address(host='db.example', port=7400)
    """
    typed = text.strip()
    if typed.startswith("["):
        form = re.fullmatch(r"\[([^\[\]]+)\](?::([^:]*))?", typed)
        host, port = (form[1], form[2]) if form else ("", None)
        ip = number_of(host)
        if ip is None or ip.version != 6:
            raise BadInput(
                f"{what} {text!r} is not understood: write an IPv6 address as [::1]:PORT"
            )
    elif typed.count(":") > 1:  # as every IPv6 address has
        raise BadInput(f"{what} {text!r} needs brackets around an IPv6 address: [::1]:PORT")
    else:
        host, colon, rest = typed.partition(":")
        port = rest if colon else None
        if number_of(host) is None and not _is_name(host):
            raise BadInput(
                f"{what} {text!r} names no host: write NAME:PORT, 192.0.2.1:PORT or [::1]:PORT"
            )
    if port is None and default_port is None:
        raise BadInput(f"{what} {text!r} has no port: write HOST:PORT")
    host = _spelt(host)
    return Address(host, default_port or 0 if port is None else _port(port, text, what))


def parse_seed(text: str, default_port: int) -> Address:
    """The address of a member that others can be found through.

    >>> parse_seed("db.example", 7400)
    Address(host='db.example', port=7400)
    """
    address = parse_address(text, "seed", default_port)
    if address.is_wildcard:
        raise BadInput(f"seed {text!r} stands for all interfaces: give the address of one member")
    if address.ip is not None and address.ip.is_multicast:
        raise BadInput(
            f"seed {text!r} is a multicast group: give the address of one member, or "
            "multicast=ip:GROUP:PORT"
        )
    if address.ip is not None and address.ip.is_broadcast:
        raise BadInput(f"seed {text!r} stands for every address: give the address of one member")
    if address.port == 0:
        raise BadInput(f"seed {text!r} has port 0: give the port that the member listens at")
    return address


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The address where a member listens, and the address where others find it."""

    bind: Address
    advertise: Address

    def bound(self, port: int) -> Endpoints:
        """The same endpoints, with the port that the system has chosen."""
        bind = Address(self.bind.host, self.bind.port or port)
        return Endpoints(bind, Address(self.advertise.host, self.advertise.port or port))


def endpoints(bind: Address, advertise: Address | None = None) -> Endpoints:
    """The bound and the advertised address. Other members must be able to reach the second."""
    if bind.ip is not None and bind.ip.is_multicast:
        raise BadInput(f"bind address {bind} is a multicast group: bind an interface's address")
    told = bind if advertise is None else advertise
    if told.is_wildcard and advertise is None:
        raise BadInput(
            f"bind address {bind} stands for all interfaces, and others need one to reach: "
            "give an advertise address too"
        )
    if told.is_wildcard or (told.ip is not None and (told.ip.is_multicast or told.ip.is_broadcast)):
        raise BadInput(f"advertise address {told} is not one member's: give one that others reach")
    if advertise is not None and advertise.port == 0 and bind.port != 0:
        raise BadInput(f"advertise address {told} has port 0: give the port that others reach")
    return Endpoints(bind, told)


def permit(bind: Address, sealed: bool, insecure: bool) -> str | None:
    """Refuse with a sentence to listen at an address, or allow it, perhaps with a warning.

    Without a key every process that reaches the port can make and unmake leaders.

    >>> permit(Address("127.0.0.1", 7400), sealed=False, insecure=False)
    """
    if sealed or (bind.is_loopback and not insecure):
        return None
    if not insecure:
        raise BadInput(
            f"without a key only this machine may be listened to, and {bind} is open to others: "
            "make a key with hustings keygen, or say --insecure"
        )
    if bind.is_loopback:
        return "insecure: any process of this machine can decide who leads in this group"
    return (
        f"insecure: {bind} takes messages from all that reach it, so each of them can decide "
        "who leads; make a key with hustings keygen"
    )


@lru_cache(maxsize=8192)
def number_of(host: str) -> Number | None:
    """The number that a text stands for. An IPv6 number may name an interface after a percent sign.

    >>> number_of("fe80::1%eth0").version, number_of("a.example"), number_of("10.0.0.01")
    (6, None, None)
    """
    number, percent, zone = host.partition("%")
    family = socket.AF_INET6 if ":" in number else socket.AF_INET
    if percent and (family == socket.AF_INET or not zone or "%" in zone):
        return None
    try:
        return Number(socket.inet_pton(family, number))
    except (OSError, ValueError):  # ValueError: a text with a zero byte, or not in UTF-8
        return None


def _spelt(host: str) -> str:
    """Give an address its one spelling, since addresses are compared as texts.

    >>> _spelt("2001:DB8:0::1"), _spelt("::ffff:10.0.0.1"), _spelt("fe80::1%eth0"), _spelt("a.b")
    ('2001:db8::1', '10.0.0.1', 'fe80::1%eth0', 'a.b')
    """
    ip, zone = number_of(host), "".join(host.partition("%")[1:])
    if ip is None:
        return host
    packed = ip.packed.removeprefix(_MAPPED)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed) + ("" if family == socket.AF_INET else zone)


def _is_name(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return (
        0 < len(host) <= _LONGEST_NAME
        and all(_LABEL.fullmatch(label) for label in labels)
        and not labels[-1].isdigit()  # a malformed IPv4 address, as 10.0.0 or 300.1.1.1
    )


def _port(digits: str, text: str, what: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", digits) or int(digits) > MOST_PORT:
        raise BadInput(f"{what} {text!r} needs a port from 0 to {MOST_PORT} after the colon")
    return int(digits)
