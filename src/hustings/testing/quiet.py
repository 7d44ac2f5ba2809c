"""When nothing happens in a group, so that a test may skip the time until its own code does more.

Law: in doubt it is not quiet. Time that is played is only slow; time that is skipped although
something would have happened makes a test pass that should fail. So a group is quiet if all members
have been in one and the same state for as long as it could take them to change it, nothing that
chance decides is under way, and no lease is held but the leader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from hustings.core.errors import HustingsError
from hustings.guard.memory import MemoryGuard, Register
from hustings.net.member import Member
from hustings.testing.clock import VirtualLoop
from hustings.testing.memory_network import MemoryNetwork

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

LEAST_S = 3.0  # seconds for which a group is quiet before anything is skipped ...
DELTAS = 40  # ... and at least this many delays ...
LEASES = 2.0  # ... and in addition this many times the length of a lease
_GLANCE = 0.2  # seconds between two looks while it is not quiet


class NotQuiet(HustingsError):
    """Time cannot be skipped: something goes on in the group."""


class WatchedGroup(Protocol):
    """What is looked at."""

    loop: VirtualLoop
    network: MemoryNetwork
    joining: int  # members that are about to join

    @property
    def paused(self) -> list[str]:
        """The members that are paused."""

    @property
    def running(self) -> Mapping[str, Member]:
        """The members that are up, paused or not."""


class QuietTime:
    """Whether it is quiet in one group, and since when."""

    def __init__(self, group: WatchedGroup) -> None:
        self._group = group
        self._clock = group.loop.member_clock
        self._since = 0.0
        self._look_at = 0.0

    def disturb(self) -> None:
        """Something has happened."""
        self._since = self._clock.time()

    def lasts(self) -> bool:
        """Whether time may be skipped now."""
        now = self._clock.time()
        if now < self._look_at:
            return False
        if self.refusal() is not None or self._unfinished():
            self._since = now
        left = max(self._since, self._clock.used) + self._settling() - now
        if left > 0:
            self._look_at = now + min(left, _GLANCE)
        return left <= 0

    def refusal(self) -> str | None:
        """Why waiting alone does not make it quiet, in a sentence."""
        group, network = self._group, self._group.network
        if group.paused:
            return f"{group.paused[0]} is paused: resume it, or kill it"
        if network.has_cuts:
            return "members are cut off from others: heal the network first"
        conditions = network.conditions
        if network.laws is not None:
            return "the environment has laws for delay and loss: chance decides what happens"
        if conditions.loss or conditions.duplicate or conditions.reorder:
            return "the network loses, doubles or reorders datagrams: chance decides what happens"
        for name, member in group.running.items():
            node = member.node
            delta, longest = node.stack.membership.config.delta, conditions.bounds[1]
            if longest > delta:
                return f"datagrams take up to {longest:g} s, and delta is {delta:g} s"
            if node.transport.faults.active:
                return f"faults are switched on at the port of {name}"
            if node.measuring is not None:
                return "members are ranked by what they measure, which changes with time"
            if node.stack.membership.config.partial:
                return "members know only a part of the group, and go on looking for others"
            if member.engine is not None and type(member.engine) is not MemoryGuard:
                return f"the guard of {name} is not memory://: its leases would run out meanwhile"
        if self._leader() is None:
            return "the members do not agree on a leader: let them settle first"
        return None

    # Inside

    def _leader(self) -> str | None:
        """The leader that all know, in one term; "" if nobody is up."""
        leader = ""
        states = [member.state for member in self._group.running.values()]
        for state in states:
            if state.leader is None or state.leader.name not in self._group.running:
                return None
            if (state.leader.name, state.term) != (leader or state.leader.name, states[0].term):
                return None
            leader = state.leader.name
            led = {peer.name for peer in state.leaders}
            if led != {name for name, each in self._group.running.items() if each.is_leader}:
                return None
        return leader

    def _unfinished(self) -> bool:
        """Whether members are doing something that comes to an end by itself."""
        group = self._group
        if group.joining or group.network.connecting:
            return True
        running = group.running
        nodes = [member.node for member in running.values()]
        if len(group.network.everybody()) != len(nodes):
            return True  # members take part that this group does not know
        if any(_is_busy(node) or not _knows_all(node, nodes) for node in nodes):
            return True
        return any(not self._is_steady(register) for register in group.loop.registers.all())

    def _is_steady(self, register: Register) -> bool:
        """Whether a register would be the same later: the leader renews its lease, or it is free.

        The lease of anybody else is played until it is over: only its holder knows what follows.
        """
        running = self._group.running
        guards = [member.engine for member in running.values()]
        theirs = [each for each in guards if isinstance(each, MemoryGuard)]
        theirs = [each for each in theirs if each.register is register]
        held, _ = register.look()
        if held.holder is None:
            return not theirs
        leader = running.get(held.holder)
        if not theirs or leader is None or leader.state.token != held.token:
            return False
        reached = all(not (each.cut or each.deaf or each.delay >= each.timeout) for each in theirs)
        return leader.is_leader and reached and not register.stopped

    def _settling(self) -> float:
        """For how long nothing must have happened."""
        longest = LEAST_S
        for member in self._group.running.values():
            node = member.node
            time = max(LEAST_S, DELTAS * node.stack.membership.config.delta)
            time += node.leadership.settings.preempt_after or 0.0
            if node.lease_layer is not None:
                time += LEASES * node.lease_layer.lease.asked
            longest = max(longest, time)
        return longest


def _is_busy(node: MemberNode) -> bool:
    settled = node.settled.is_set() and node.bootstrap.open and not node.closed
    return not settled or node.runner.stalled is not None


def _knows_all(node: MemberNode, nodes: list[MemberNode]) -> bool:
    """Whether a member knows exactly these members, as they are now, and has their keys."""
    membership, ring = node.stack.membership, node.filter.wire.ring
    if len(membership.view.ids) != len(nodes):
        return False
    for other in nodes:
        entry = membership.circle.entry(other.runner.me.id)
        if entry is None or other.runner.me.id not in membership.view.ids:
            return False
        if (entry.who, entry.incarnation) != (other.runner.me, other.runner.incarnation):
            return False
        others = other.filter.wire.ring
        if (ring is None) != (others is None):
            return False
        if ring is not None and others is not None and ring.ids != others.ids:
            return False
    return True
