"""The transport on real sockets: UDP for datagrams, TCP on the same number for streams.

A datagram socket is read and written directly, not through asyncio's transports. Only then can the
kernel's report of a refused datagram be matched with the endpoint that the datagram went to. A
system without such an error queue reports no refusals; all else works there.

For IP multicast a second socket joins a group on the interface that the member is bound to. A group
of IPv6 exists once per interface. The interface may be named after a percent sign, as in
`[ff02::114%eth0]:7400`. Otherwise it is the interface that has the bound address.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from hustings.core.errors import BadInput
from hustings.net.addresses import Address, is_loopback, number_of
from hustings.net.fork import keep_from_children
from hustings.net.limits import Counters, Limits, Reason
from hustings.net.stall_detector import stall_detector_of
from hustings.net.tcp import Connections
from hustings.net.transport import Endpoint, Faults, Receiver, Receivers, Watch

_AT_ONCE = 64  # datagrams that are read before other tasks have a turn
_LARGEST = 65_536
_MOST_STALE = 100_000  # datagrams that can wait at a socket
_TRIES = 8  # attempts to find a number that is free for UDP and TCP
_BUFFER = 4 * 1024 * 1024  # bytes asked of the kernel, so that a pause loses no data
_NOBODYS = ("240.0.0.1", "100::1")  # of each family, an address that no machine should have
_DISCARD = 9  # a port number where one is needed and nothing is sent

# Linux; Python 3.11 does not name them.
_IP_RECVERR, _IPV6_RECVERR, _MSG_ERRQUEUE = 11, 25, 0x2000
_LINUX = sys.platform == "linux"


class UdpTransport:
    """One bound address. Make it with `open_udp`."""

    def __init__(
        self,
        datagrams: socket.socket,
        limits: Limits,
        counters: Counters,
        group: tuple[socket.socket, Endpoint] | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = datagrams
        self._group = group
        self._mapped = datagrams.family == socket.AF_INET6
        self._limits = limits
        self._counters = counters
        self.receivers = Receivers()
        self._outbox: deque[tuple[Endpoint, bytes]] = deque()
        self._closed = False
        self.faults = Faults()
        self.stall_detector = stall_detector_of(self._loop)
        self.endpoint = _endpoint(datagrams.getsockname())
        self.connections = Connections(self, limits, counters)
        for each in self._sockets():
            keep_from_children(each, socket.socket.fileno)
        self._loop.add_reader(datagrams.fileno(), self._readable, datagrams)
        if group is not None:
            self._loop.add_reader(group[0].fileno(), self._readable, group[0])

    @property
    def reaches_all(self) -> bool:
        return self._group is not None

    def attach(self, tag: bytes, receiver: Receiver) -> None:
        self.receivers.attach(tag, receiver)

    def detach(self, tag: bytes) -> None:
        self.receivers.detach(tag)

    # Out

    def send(self, to: Endpoint, data: bytes) -> None:
        if self._closed:
            return
        if not self.faults.active:
            self._send(to, data)
            return
        for after in self.faults.departures(to):
            if after:
                self._loop.call_later(after, self._send, to, data)
            else:
                self._send(to, data)

    def send_all(self, data: bytes) -> None:
        if self._group is not None:
            self.send(self._group[1], data)

    def _send(self, to: Endpoint, data: bytes) -> None:
        if self._closed:
            return
        if self._outbox or not self._sent(to, data):
            self._queue(to, data)

    def _sent(self, to: Endpoint, data: bytes) -> bool:
        """Whether the datagram is out, or can never be sent; False: it has to wait.

        The kernel reports an error about an earlier datagram in place of sending the next one.
        """
        for _ in range(_AT_ONCE):
            try:
                self._socket.sendto(data, self._native(to))
                return True
            except (BlockingIOError, InterruptedError):
                return False
            except ConnectionRefusedError:
                self._loop.call_soon(self._refusals, self._socket)
            except (OSError, ValueError, TypeError):  # the last two: a malformed address
                break
        self._counters.count(Reason.UNSENT)
        return True

    def _queue(self, to: Endpoint, data: bytes) -> None:
        if len(self._outbox) >= self._limits.outbox:
            self._counters.count(Reason.OUTBOX)
            return
        if not self._outbox:
            self._loop.add_writer(self._socket.fileno(), self._writable)
        self._outbox.append((to, data))

    def _writable(self) -> None:
        while self._outbox:
            if not self._sent(*self._outbox[0]):
                return
            self._outbox.popleft()
        self._loop.remove_writer(self._socket.fileno())

    def _native(self, to: Endpoint) -> Endpoint:
        if self._mapped and ":" not in to[0]:
            return (f"::ffff:{to[0]}", to[1])
        return to

    # In

    def _readable(self, source: socket.socket) -> None:
        told = True  # there may be nothing but an error to read
        for turn in range(_AT_ONCE):
            try:
                data, address = source.recvfrom(_LARGEST)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                told = True  # about a sent datagram: see below
                continue
            if not turn:
                told = False
            self._arrived(data, _endpoint(address))
            if self._closed:
                return
        if told:
            self._refusals(source)

    def discard(self) -> None:
        for source in self._sockets():
            for _ in range(_MOST_STALE):
                try:
                    source.recv(_LARGEST)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError:
                    continue

    def _sockets(self) -> list[socket.socket]:
        return [self._socket] if self._group is None else [self._socket, self._group[0]]

    def _arrived(self, data: bytes, source: Endpoint) -> None:
        if self.faults.active and not self.faults.hears(source):
            return
        receiver = self.receivers.of(data)
        if receiver is not None:
            receiver.datagram(data, source)

    def _refusals(self, source: socket.socket) -> None:
        if not _LINUX or self._closed:
            return
        for _ in range(_AT_ONCE):
            try:
                address = source.recvmsg(1, 512, _MSG_ERRQUEUE)[3]
            except OSError:
                return
            if address:
                endpoint = _endpoint(address)
                for receiver in self.receivers.all():
                    receiver.refused(endpoint)

    # Streams

    def stream(self, to: Endpoint, data: bytes, hello: bytes = b"") -> None:
        self.connections.stream(to, data, hello)

    def watch(
        self,
        to: Endpoint,
        hello: Callable[[], bytes | None],
        gone: Callable[[bool], None],
        leisure: Callable[[], float],
    ) -> Watch:
        return self.connections.watch(to, hello, gone, leisure)

    def knock(self, to: Endpoint, refused: Callable[[], None]) -> None:
        self.connections.knock(to, refused)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        sockets = self._sockets()
        if self._outbox:
            self._loop.remove_writer(self._socket.fileno())
        for each in sockets:
            self._loop.remove_reader(each.fileno())
        try:
            await self.connections.close()
        finally:
            for each in sockets:
                each.close()


def _endpoint(address: tuple[object, ...]) -> Endpoint:
    host, port = str(address[0]), address[1]
    if host.startswith("::ffff:") and "." in host:
        host = host[7:]
    return host, port if isinstance(port, int) else 0


async def resolve(address: Address) -> list[Endpoint]:
    """The addresses of a host; none if its name cannot be resolved now."""
    if address.ip is not None:
        return [(address.host, address.port)]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
    except OSError:
        return []
    return list(dict.fromkeys(_endpoint(each[4]) for each in found))


def is_own_host(host: str) -> bool:
    """Whether a numeric host is an address of this machine: only such an address can be bound.

    A multicast or broadcast address, and the one that stands for all, can be bound, too. They are
    addresses of many machines or of none: names that are blocked often resolve to `0.0.0.0`.

    Some machines let processes bind any address (`ip_nonlocal_bind`). There an address is this
    machine's own if the system sends from it to it. A second address of an interface is not
    recognised then.
    """
    ip = number_of(host)
    if ip is None or ip.is_unspecified or ip.is_multicast or not _can_bind(host):
        return False
    source = source_to(host)
    if source is None:
        return False
    return source == host or is_loopback(host) or not _can_bind(_NOBODYS[":" in host])


def source_to(host: str) -> str | None:
    """The address from which the system sends to a host; None if it refuses, as for broadcasts."""
    try:
        with socket.socket(_family(host), socket.SOCK_DGRAM) as trial:
            trial.connect((host, _DISCARD))
            return str(trial.getsockname()[0])
    except OSError:
        return None


def _can_bind(host: str) -> bool:
    try:
        with socket.socket(_family(host), socket.SOCK_DGRAM) as trial:
            trial.bind((host, 0))
    except OSError:
        return False
    return True


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


async def open_udp(
    bind: Address,
    limits: Limits | None = None,
    counters: Counters | None = None,
    multicast: Address | None = None,
) -> UdpTransport:
    """Bind an address for datagrams and for streams; an error is told in a sentence."""
    limits = Limits() if limits is None else limits
    counters = Counters() if counters is None else counters
    numbers = await resolve(bind)
    if not numbers:
        raise BadInput(f"bind address {bind} cannot be resolved: give it by number")
    host = numbers[0][0]
    for last in range(_TRIES - 1, -1, -1):
        datagrams = _bound(host, bind)
        group = None
        try:
            if multicast is not None:
                group = joined(multicast, host, datagrams)
            port = UdpTransport(datagrams, limits, counters, group)
        except BaseException:
            datagrams.close()
            if group is not None:
                group[0].close()
            raise
        try:
            port.connections.listen()
            return port
        except OSError as error:
            await port.close()
            if bind.port or not last:
                raise _refusal(bind, error) from None
    raise AssertionError("the last try returns or raises")


def _bound(host: str, bind: Address) -> socket.socket:
    family = _family(host)
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    try:
        datagrams.setblocking(False)
        if family == socket.AF_INET6 and Address(host, bind.port).is_wildcard:
            datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if _hears_errors():
            if family == socket.AF_INET6:
                datagrams.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
            with suppress(OSError):  # for IPv6 too: it may reach others by IPv4
                datagrams.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
        with suppress(OSError):
            datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        datagrams.bind((host, bind.port))
    except OSError as error:
        datagrams.close()
        raise _refusal(bind, error) from None
    return datagrams


def _hears_errors() -> bool:
    """Whether the socket may be asked for errors: uvloop stops reading at the first one."""
    return _LINUX and not type(asyncio.get_running_loop()).__module__.startswith("uvloop")


def _refusal(bind: Address, error: OSError) -> BadInput:
    if error.errno == errno.EADDRINUSE:
        return BadInput(f"{bind} is in use by another process: choose another port, or 0 for any")
    if error.errno in (errno.EACCES, errno.EPERM):
        return BadInput(f"{bind} may not be bound by this user: choose a port above 1023")
    if error.errno == errno.EADDRNOTAVAIL:
        return BadInput(f"{bind} is not an address of this machine: bind one of its own")
    if "%" in bind.host:
        return BadInput(
            f"{bind} counts on one link only, and others would write it otherwise: bind an address "
            "that all members reach"
        )
    return BadInput(f"cannot bind {bind}: {error.strerror}")


_IP_MULTICAST_ALL = 49
_IPV6_MULTICAST_ALL = 29
_ADDRESSES = "/proc/net/if_inet6"


def joined(group: Address, bound: str, sender: socket.socket) -> tuple[socket.socket, Endpoint]:
    """A socket that hears the group, and the endpoint that `sender`, bound to `bound`, sends to."""
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
    if _LINUX:  # else groups that others joined on another interface would come in here too
        hearing.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    hearing.bind((group.host, group.port))
    member = socket.inet_aton(group.host) + socket.inet_aton(bound)
    hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    return group.host


def _hear_6(hearing: socket.socket, group: Address, bound: str, sender: socket.socket) -> str:
    host, interface = group.host.partition("%")[0], _interface(group, bound)
    if _LINUX:
        with suppress(OSError):  # kernels before 4.20 do not have it
            hearing.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
    hearing.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    hearing.bind((host, group.port, 0, interface))
    member = socket.inet_pton(socket.AF_INET6, host) + struct.pack("@I", interface)
    hearing.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
    return host


def _interface(group: Address, bound: str) -> int:
    """The number of the interface; 0, if it cannot be told, lets the system choose."""
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
