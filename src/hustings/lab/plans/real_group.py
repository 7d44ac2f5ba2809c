"""A group of real processes on this machine, on a network that an environment's laws decide.

Everything happens inside `turn` and the methods that call it: packets are passed on, and reports
are read. What happened is kept as a group in memory keeps it (`testing.Logged` and `MemberChange`),
so both are judged by the same code (`history.py`).

Times are those of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from hustings.core.errors import BadInput
from hustings.lab.plans import member_process
from hustings.lab.plans.configuration import PORT, Configuration, member_name
from hustings.lab.plans.namespaces import EnvironmentLaws, Switch, address, obstacle
from hustings.net.member_state import Leadership, Peer
from hustings.sim.environment import Environment
from hustings.testing import Logged, MemberChange

GROUP = "verify"
MOST_MEMBERS = 60  # real processes at a time
_SEEDS = 5  # members that a newcomer is told of
_TOGETHER = 8  # processes that start at one time
_START = 30.0  # seconds for a process to join
_UNREAD = 1 << 20  # bytes of an incomplete report


class NotVerified(Exception):
    """Real processes cannot be run here, or the group did not come up."""


@dataclass(slots=True)
class RealMember:
    """One member, as far as its reports tell."""

    number: int
    name: str
    address: str
    wire: socket.socket | None = None
    namespace: int = -1
    pid: int = 0
    joined: bool = False
    paused: bool = False
    leader: str | None = None
    leading: bool = False
    unread: bytes = b""
    asked: bool = False  # to say that it is awake

    @property
    def up(self) -> bool:
        """Whether its process runs, paused or not, and has joined."""
        return self.joined and self.wire is not None


class RealGroup:
    """Starts, pauses, kills and hears members in processes of their own."""

    def __init__(
        self, configuration: Configuration, environment: Environment, members: int, seed: int
    ) -> None:
        if why := obstacle():
            raise NotVerified(
                f"this system allows no network namespaces ({why}): run as root, or allow "
                "unprivileged user namespaces and /dev/net/tun"
            )
        self.members = [
            RealMember(each, member_name(each), address(each)) for each in range(1, members + 1)
        ]
        self.log: list[Logged] = []
        self.changes: list[MemberChange] = []
        self.failed: list[str] = []
        self._options = _options(configuration)
        self._key = os.urandom(32).hex()
        numbers = {each.address: each.number for each in self.members}
        self.switch = Switch(seed, EnvironmentLaws(environment, numbers, seed))
        self._selector = selectors.DefaultSelector()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders = ours
        words = [sys.executable, "-m", member_process.__name__, str(theirs.fileno())]
        self._nursery = subprocess.Popen(
            words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self.members:
            self._end(each)
        self._orders.close()
        self._nursery.kill()  # what it has started ends with it
        self._nursery.wait()
        self.switch.close()
        self._selector.close()

    # Questions

    @property
    def now(self) -> float:
        """Seconds of the clock that all processes share."""
        return time.monotonic()

    @property
    def there(self) -> list[RealMember]:
        """The members that are up."""
        return [each for each in self.members if each.up]

    def leader_of(self, among: Collection[RealMember]) -> RealMember | None:
        """The only one of these that leads, if all that are not paused follow it."""
        awake = [each for each in among if each.up and not each.paused]
        leading = [each for each in awake if each.leading]
        if len(leading) != 1 or any(each.leader != leading[0].name for each in awake):
            return None
        return leading[0]

    def bytes(self) -> Mapping[str, int]:
        """Bytes that each member has sent and received so far, with heads of IP and UDP or TCP."""
        traffic = self.switch.traffic
        return {each.name: traffic.get(each.address, 0) for each in self.members}

    # Deeds

    def start(self, members: Sequence[RealMember]) -> None:
        """Start processes, some at a time, and wait until they have joined."""
        alone = 0 if self.there else 1  # the first has nobody to look for
        batches = [members[:alone]] if alone else []
        batches += [members[at : at + _TOGETHER] for at in range(alone, len(members), _TOGETHER)]
        for some in batches:
            for each in some:
                self._fork(each)
            self.wait(partial(_joined, some), _START, "a member joins")

    def _fork(self, member: RealMember) -> None:
        self._end(member)
        self.switch.heal_for(member.address)
        seeds = [f"{each.address}:{PORT}" for each in self.there[:_SEEDS]]
        own = {"group": GROUP, "name": member.name, "bind": f"{member.address}:{PORT}"}
        given: dict[str, Any] = {**self._options, **own, "seeds": seeds}
        order = {"address": member.address, "join": given, "key": self._key}
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._orders, [json.dumps(order).encode()], [theirs.fileno()])
        except OSError as error:
            ours.close()
            raise NotVerified(f"the process that starts members has ended: {error}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        member.wire, member.unread = ours, b""
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(member))

    def kill(self, member: RealMember, *, machine: bool) -> float:
        """End a process at once; with its `machine`, nothing answers for it. When that was."""
        if machine:
            others = [each.address for each in self.members if each is not member]
            self.switch.cut([member.address], others)
        at = self.now
        with suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)
        self._note(member, "killed", at)
        member.joined = member.leading = member.paused = False
        member.leader = None
        self._close_wire(member)
        return at

    def cut(self, here: Sequence[RealMember], there: Sequence[RealMember]) -> None:
        """Nothing passes between these members any more."""
        self.switch.cut([each.address for each in here], [each.address for each in there])

    def heal(self) -> None:
        """Undo all cuts."""
        self.switch.heal()

    def pause(self, member: RealMember) -> None:
        """A process stands still."""
        os.kill(member.pid, signal.SIGSTOP)
        member.paused = True
        self._note(member, "paused", self.now)

    def resume(self, member: RealMember) -> None:
        """It goes on; it counts as awake when it has found out what it missed."""
        os.kill(member.pid, signal.SIGCONT)
        member.asked = True
        if member.wire is not None:
            with suppress(OSError):
                member.wire.send(b"\n")

    def wait(self, condition: Callable[[], bool], within: float, what: str) -> None:
        """Let time pass until a condition holds; `NotVerified` if it does not in time."""
        if not self.holds(condition, within):
            raise NotVerified(f"not within {within:g} s: {what}{self._why()}")

    def holds(self, condition: Callable[[], bool], within: float) -> bool:
        """Let time pass until a condition holds; whether it does in time."""
        end = self.now + within
        while not condition():
            left = end - self.now
            if left <= 0 or self.failed:
                return False
            self.turn(min(left, 0.05))
        return True

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self.holds(lambda: False, seconds)
        self.check()

    def check(self) -> None:
        """Raise `NotVerified` if a member has failed."""
        if self.failed:
            raise NotVerified(f"a member has failed{self._why()}")

    def turn(self, most: float) -> None:
        """Pass packets on and read reports, for so many seconds at most."""
        soon = self.switch.due(self.now)
        ready = self._selector.select(most if soon is None else max(0.0, min(most, soon)))
        for key, _ in ready:
            key.data()
        self.switch.due(self.now)

    # Inside

    def _why(self) -> str:
        return f" ({self.failed[0]})" if self.failed else ""

    def _note(self, member: RealMember, what: str, at: float) -> None:
        self.changes.append(MemberChange(at, member.name, what))

    def _hear(self, member: RealMember) -> None:
        wire = member.wire
        assert wire is not None
        try:
            data, descriptors, _, _ = socket.recv_fds(wire, 65_536, 2)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if len(descriptors) == 2:
            self._plug(member, *descriptors)
        if not data or len(member.unread) > _UNREAD:
            if member.joined:
                self.failed.append(f"the process of {member.name} has ended by itself")
            self._close_wire(member)
            return
        *lines, member.unread = (member.unread + data).split(b"\n")
        for line in lines:
            self._told(member, json.loads(line))

    def _plug(self, member: RealMember, device: int, namespace: int) -> None:
        member.namespace = namespace
        self.switch.plug(member.address, device)
        self._selector.register(
            device, selectors.EVENT_READ, lambda: self.switch.read(member.address, self.now)
        )

    def _told(self, member: RealMember, report: dict[str, Any]) -> None:
        at = float(report["at"])
        match report["what"]:
            case "born":
                member.pid = int(report["pid"])
            case "joined":
                member.joined = True
                self._note(member, "joined", at)
            case "state":
                member.leader, member.leading = report["leader"], bool(report["leading"])
                self.log.append(Logged(at, member.name, _leadership(member, report["term"])))
            case "awake" if member.asked:
                member.asked = member.paused = False
                self._note(member, "resumed", at)
            case "failed":
                self.failed.append(f"{member.name}: {report['why']}")

    def _close_wire(self, member: RealMember) -> None:
        if member.wire is not None:
            self._selector.unregister(member.wire)
            member.wire.close()
            member.wire = None

    def _end(self, member: RealMember) -> None:
        """End a member's process, and its machine."""
        if member.pid and member.wire is not None:
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)
        self._close_wire(member)
        device = self.switch.devices.get(member.address)
        if device is not None:
            with suppress(KeyError):
                self._selector.unregister(device)
            self.switch.unplug(member.address)
        if member.namespace >= 0:
            os.close(member.namespace)
        member.pid, member.namespace = 0, -1
        member.joined = member.leading = member.paused = member.asked = False
        member.leader = None


def _joined(members: Sequence[RealMember]) -> bool:
    return all(each.joined for each in members)


def _options(configuration: Configuration) -> dict[str, Any]:
    """What each process is told, as JSON has it."""
    if configuration.guard not in (None, "quorum"):
        raise BadInput(
            f"a plan with {configuration.guard} is not verified on processes of this machine "
            "alone: its engine would have to run, too"
        )
    return configuration.join_options(durable=False)


def _leadership(member: RealMember, term: int) -> Leadership:
    leader = None
    if member.leader is not None:
        leader = Peer(
            id=0,
            name=member.leader,
            address="",
            attributes={},
            incarnation=0,
            observer=False,
            me=member.leading,
            leader=True,
        )
    return Leadership(
        group=GROUP,
        term=term,
        leader=leader,
        leaders=() if leader is None else (leader,),
        leading=member.leading,
        reason="",
    )
