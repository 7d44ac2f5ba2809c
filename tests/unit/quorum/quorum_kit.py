"""What tests of the quorum share: members that ask when called, and voters driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.messages import Message, kind_of
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.quorum import QuorumConfig, QuorumLeaseLayer
from hustings.quorum.acceptor import Acceptor
from hustings.quorum.config import Electorate
from hustings.quorum.recovery import ENROLL
from hustings.testing.effects import Effect, Persist, Send
from hustings.testing.recorded import recording
from hustings.testing.scripted_group import ScriptedGroup, ScriptedMessage

THREE = Electorate(0, (1, 2, 3))
FIVE = Electorate(0, (1, 2, 3, 4, 5))
LEASE = LeaseConfig(ttl=30.0, drift=0.0)

A = TypeVar("A")


class Eager(Election):
    """Elects itself when it is called, and another when it is told that that one lives."""

    def call(self, ctx: Context) -> None:
        self.elect(ctx, ctx.me.id, 1)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.elect(ctx, member, 1)


def eager() -> Election:
    """One of them."""
    return Eager(Config(), HighestId())


class Booth:
    """One voter with a disk, a clock and nobody else."""

    def __init__(
        self,
        electorate: Electorate = THREE,
        longest: float = 30.0,
        kind: type[Acceptor] = Acceptor,
    ) -> None:
        self.make: Callable[[], Acceptor] = lambda: kind(electorate, longest)
        self.acceptor = self.make()
        self.now = 0.0
        self.stored: dict[str, object] = {}
        self.effects: list[Effect] = []

    def run(self, act: Callable[[Context], A]) -> A:
        """Let the voter do something; what it stores stays."""
        with recording(Candidate(1), stored=self.stored, now=self.now) as ctx:
            answer = act(ctx)
        self.effects = ctx.effects
        for effect in ctx.effects:
            if isinstance(effect, Persist):
                self.stored.update(dict(effect.fields))
        return answer

    def restart(self) -> None:
        """Another incarnation, with the disk."""
        self.acceptor = self.make()
        self.run(self.acceptor.recall)

    @property
    def wrote(self) -> list[str]:
        """The names of what the last handler stored."""
        return [name for one in self.effects if isinstance(one, Persist) for name, _ in one.fields]


class Hall:
    """A group of members behind a quorum; messages are delivered as a test says."""

    def __init__(
        self,
        members: int = 3,
        *,
        voters: tuple[MemberId, ...] = (1, 2, 3),
        kind: type[QuorumLeaseLayer] = QuorumLeaseLayer,
        durable: bool = True,
        lease: LeaseConfig = LEASE,
        start: bool = True,
        first: tuple[MemberId, ...] = (),
    ) -> None:
        config = QuorumConfig(voters=voters, durable=durable, initial=first)
        self.group = ScriptedGroup(
            lambda: kind(LeaseLayer(eager(), lease), config),
            [Candidate(each) for each in range(1, members + 1)],
        )
        self.voters = voters
        if start:
            self.group.start(list(range(1, members + 1)))
            self.quiet()
            if durable:
                self.enroll()
                self.group.now = 0.0  # tests count from when all vote

    def enroll(self, *but: MemberId) -> None:
        """Let voters that have nothing on their disks wait, and begin."""
        for _ in range(8):
            for voter in self.voters:
                driven = self.group.members[voter]
                if voter not in but and ENROLL in driven.timers:
                    self.group.fire(voter, ENROLL)
                    self.quiet(but)

    def of(self, member: MemberId) -> QuorumLeaseLayer:
        """A member's election."""
        election = self.group.member(member).election
        assert isinstance(election, QuorumLeaseLayer)
        return election

    def leads(self, member: MemberId) -> int:
        """The token that a member leads with by its own word, or 0."""
        inner = self.of(member).inner
        return 0 if inner.until is None else inner.token

    def call(self, member: MemberId) -> None:
        """A member is nominated."""
        self.group.call(member)

    def wait(self, time: float) -> None:
        """Let time go by, in which nothing happens."""
        self.group.now += time

    def wipe(self, member: MemberId) -> None:
        """A member loses its disk and comes back."""
        self.group.crash(member)
        self.group.member(member).stored = {}
        self.group.restart(member)

    def forge(self, sender: MemberId, to: MemberId, message: Message) -> None:
        """Somebody says something in a member's name, or a member lies."""
        self.group.deliver(ScriptedMessage(sender, to, message))

    def sent(self, kind: type[Message], to: MemberId | None = None) -> list[ScriptedMessage]:
        """What is under way."""
        return [
            each
            for each in self.group.flight
            if isinstance(each.message, kind) and to in (None, each.to)
        ]

    def deliver(self, kind: type[Message], to: MemberId | None = None) -> int:
        """Deliver what is under way of a kind."""
        chosen = self.sent(kind, to)
        for each in chosen:
            self.group.deliver(each)
        return len(chosen)

    def drop(self, kind: type[Message], to: MemberId | None = None) -> int:
        """Lose what is under way of a kind."""
        chosen = self.sent(kind, to)
        for each in chosen:
            self.group.drop(each)
        return len(chosen)

    def quiet(self, but: Mapping[MemberId, object] | tuple[MemberId, ...] = ()) -> None:
        """Deliver everything in order until nothing is under way; what goes to `but` is lost."""
        for _ in range(1_000):
            if not self.group.flight:
                return
            first = self.group.flight[0]
            if first.to in but or first.sender in but:
                self.group.drop(first)
            else:
                self.group.deliver(first)
        raise AssertionError("the group does not come to rest")


def replace(hall: Hall, by: MemberId, old: MemberId, new: MemberId) -> None:
    """A member is told to change the voters."""
    act(hall, by, lambda ctx: hall.of(by).replace(ctx, old, new))


def act(hall: Hall, member: MemberId, what: Callable[[Context], None]) -> None:
    """Let a member do something, and its messages be under way."""
    driven = hall.group.member(member)
    hall.group._step("acts", member, lambda: driven._run(what))


def kinds(effects: list[Effect]) -> list[str]:
    """The kinds of what was sent to one member each."""
    return [kind_of(one.message) for one in effects if isinstance(one, Send)]
