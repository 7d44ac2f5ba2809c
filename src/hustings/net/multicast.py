"""IP multicast: a socket in a group of the network's, on the interface that the member is bound to.

A group of IPv6 exists once per interface. It may be named after a percent sign, as in
`[ff02::114%eth0]:7400`; else it is the one that has the bound address.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress

from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.port import Endpoint

_LINUX = sys.platform == "linux"
_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
_ADDRESSES = "/proc/net/if_inet6"


def joined(group: Address, bound: str, sender: socket.socket) -> tuple[socket.socket, Endpoint]:
    """A socket that hears the group, and where `sender`, bound to `bound`, sends to it."""
    version = 0 if group.ip is None else group.ip.version
    if (":" in bound) != (version == 6):
        raise BadInput(f"multicast group {group} needs an IPv{version} address to be bound")
    hearing = socket.socket(sender.family, socket.SOCK_DGRAM)
    try:
        hearing.setblocking(False)
        hearing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host = (_hear_6 if version == 6 else _hear_4)(hearing, group, bound, sender)
    except OSError as error:
        hearing.close()
        raise BadInput(f"cannot join multicast group {group}: {error.strerror}") from None
    except BaseException:
        hearing.close()
        raise
    return hearing, (host, group.port)


def _hear_4(hearing: socket.socket, group: Address, bound: str, _: socket.socket) -> str:
    if _LINUX:  # else what others joined on another interface would come in here too
        hearing.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    hearing.bind((group.host, group.port))
    member = socket.inet_aton(group.host) + socket.inet_aton(bound)
    hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return group.host


def _hear_6(hearing: socket.socket, group: Address, bound: str, sender: socket.socket) -> str:
    host, interface = group.host.partition("%")[0], _interface(group, bound)
    if _LINUX:
        with suppress(OSError):  # of a kernel before 4.20
            hearing.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
    hearing.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    hearing.bind((host, group.port, 0, interface))
    member = socket.inet_pton(socket.AF_INET6, host) + struct.pack("@I", interface)
    hearing.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
    return host


def _interface(group: Address, bound: str) -> int:
    """The number of the interface; 0 lets the system choose, where nobody can tell."""
    zone = group.host.partition("%")[2] or bound.partition("%")[2]
    if zone:
        try:
            return socket.if_nametoindex(zone)
        except OSError:
            raise BadInput(
                f"multicast group {group} is on interface {zone!r}, which this machine has not"
            ) from None
    wanted = socket.inet_pton(socket.AF_INET6, bound).hex()
    with suppress(OSError), open(_ADDRESSES, encoding="ascii") as lines:
        for line in lines:
            number, index, *_ = line.split()
            if number == wanted:
                return int(index, 16)
    return 0
