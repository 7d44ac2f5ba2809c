"""Hirschberg and Sinclair, 1980: probes go both ways round a ring, twice as far each time.

Model      A ring in both directions, of the members in view; every message to a live one arrives.
Idea       A candidate asks 1, 2, 4, ... members on either side whether they know a better one. A
           better member swallows the probe. A probe that comes home has gone all the way round.
Invariant  A candidate of phase k is the best of the 2^k - 1 members on either side.
Cost       at most 8 N (1 + log N) messages and N to tell the result.
Guarantee  Advisory.
Paper      Hirschberg and Sinclair, Decentralized extrema-finding in circular configurations of
           processors, Communications of the ACM 23 (11), 1980.

A protocol that is not part of hustings: wherever one is named, name the class in this file.

    hustings sim examples/hirschberg_sinclair.py:HirschbergSinclair -n 16 --initiator 1-16
    hustings check examples/hirschberg_sinclair.py:HirschbergSinclair -n 3
    hustings run jobs --protocol examples/hirschberg_sinclair.py:HirschbergSinclair -- ./worker
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import ELECTING, Guarantee

RESULT = "result"


class ProbeMsg(Message, frozen=True, tag="HS-PROBE"):
    """Is a member within `hops` hops better than this candidate?"""

    role: ClassVar[Role] = Role.ELECTION
    term: int
    candidate: Candidate
    phase: int
    hops: int  # that it may go yet
    clockwise: bool


class ReplyMsg(Message, frozen=True, tag="HS-REPLY"):
    """Nobody is, on this side. It goes back the way that the probe came."""

    role: ClassVar[Role] = Role.ANSWER
    term: int
    candidate: MemberId
    phase: int
    clockwise: bool


class ElectedMsg(Message, frozen=True, tag="HS-ELECTED"):
    """The result, once round."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: int
    leader: MemberId


class HirschbergSinclairConfig(Config, frozen=True, kw_only=True):
    """One bound of its own."""

    max_runs: Annotated[int, Meta(ge=1, description="elections in a row before giving up")] = 16


class HirschbergSinclair(Election):
    """One member of the ring; the ring is everybody in view, by increasing id."""

    about = About(
        name="hirschberg-sinclair",
        family="ring",
        paper="Hirschberg and Sinclair 1980",
        idea="probes go both ways round a ring, twice as far each time",
        model="asynchronous ring, reliable links, crash, failure detector repairs the ring",
        guarantee=Guarantee.ADVISORY,
        cost="at most 8 N (1 + log N) messages, and N for the result",
        promises="one leader, the best alive, while the detector is right",
    )
    assumptions = Assumptions(live_view=True)
    Settings = HirschbergSinclairConfig
    messages = (ProbeMsg, ReplyMsg, ElectedMsg)
    config: HirschbergSinclairConfig

    def __init__(self, config: HirschbergSinclairConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.phase = -1  # of my own candidacy in this term; -1: I am none
        self.replies = 0  # to my probes of this phase
        self.dead: set[MemberId] = set()
        self.runs = 0

    # Calling an election

    def start(self, ctx: Context) -> None:
        self.recall(ctx)
        if ctx.incarnation > 1:
            self.stand(ctx, self.term + 1)

    def call(self, ctx: Context) -> None:
        self.runs = 0
        self.stand(ctx, self.term + 1)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.dead.add(member)
        if self.leader in (member, None):  # a probe or a result may have died with it
            self.stand(ctx, self.term + 1)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.dead.discard(member)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.stand(ctx, self.term + 1)

    def stand(self, ctx: Context, term: int) -> None:
        """Be a candidate in a new term."""
        self.runs += 1
        if self.runs > self.config.max_runs:
            self.give_up(ctx, f"no result after {self.config.max_runs} elections")
            return
        self.enter(ctx, term)
        self.phase = 0
        self.probe(ctx)

    def enter(self, ctx: Context, term: int) -> None:
        """What belongs to earlier terms is over."""
        self.term = term
        self.phase, self.replies = -1, 0
        self.remember(ctx)
        self.disown(ctx, ELECTING)
        ctx.set_timer(RESULT, 8 * len(ctx.view) * self.config.delta)

    def probe(self, ctx: Context) -> None:
        self.replies = 0
        if self.neighbour(ctx, clockwise=True) is None:
            self.win(ctx)
            return
        for clockwise in (True, False):
            message = ProbeMsg(self.term, ctx.me, self.phase, 2**self.phase - 1, clockwise)
            self.pass_on(ctx, message, clockwise=clockwise)

    # Messages

    @upon(ProbeMsg)
    def on_probe(self, ctx: Context, sender: MemberId, message: ProbeMsg) -> None:
        if message.term < self.term:
            return
        if message.term > self.term:
            self.enter(ctx, message.term)
        if message.candidate.id == ctx.me.id:
            self.win(ctx)  # it has gone all the way round
        elif self.choice.better(ctx.me, message.candidate):
            if self.phase < 0 and self.leader is None:
                self.stand(ctx, self.term)
        elif message.hops > 0:
            onward = ProbeMsg(
                message.term,
                message.candidate,
                message.phase,
                message.hops - 1,
                message.clockwise,
            )
            self.pass_on(ctx, onward, clockwise=message.clockwise)
        else:
            reply = ReplyMsg(
                message.term, message.candidate.id, message.phase, not message.clockwise
            )
            self.pass_on(ctx, reply, clockwise=not message.clockwise)

    @upon(ReplyMsg)
    def on_reply(self, ctx: Context, sender: MemberId, message: ReplyMsg) -> None:
        if message.term != self.term:
            return
        if message.candidate != ctx.me.id:
            self.pass_on(ctx, message, clockwise=message.clockwise)
        elif message.phase == self.phase:
            self.replies += 1
            if self.replies == 2:
                self.phase += 1
                self.probe(ctx)

    @upon(ElectedMsg)
    def on_elected(self, ctx: Context, sender: MemberId, message: ElectedMsg) -> None:
        if message.term < self.term or message.leader == ctx.me.id:
            return
        self.settle(ctx, message.leader, message.term)
        self.pass_on(ctx, message, clockwise=True)

    def win(self, ctx: Context) -> None:
        if self.leader is None:
            self.settle(ctx, ctx.me.id, self.term)
            self.pass_on(ctx, ElectedMsg(self.term, ctx.me.id), clockwise=True)

    def settle(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.phase, self.replies, self.runs = -1, 0, 0
        ctx.cancel_timer(RESULT)
        self.elect(ctx, leader, term)
        self.remember(ctx)

    # The ring

    def neighbour(self, ctx: Context, *, clockwise: bool) -> MemberId | None:
        """The next live member on one side; None where nobody else is left."""
        others = sorted(each for each in ctx.view if each not in {*self.dead, ctx.me.id})
        if not others:
            return None
        above = [each for each in others if each > ctx.me.id]
        below = [each for each in others if each < ctx.me.id]
        ring = above + below  # clockwise, from me
        return ring[0] if clockwise else ring[-1]

    def pass_on(self, ctx: Context, message: Message, *, clockwise: bool) -> None:
        to = self.neighbour(ctx, clockwise=clockwise)
        if to is not None:
            ctx.send(to, message)


def main() -> None:
    """The same class, in the simulator and as members that join."""
    # Here, since a member that runs this class needs no simulator.
    from hustings.sim.experiment import Description, build  # noqa: PLC0415 (memory of members)
    from hustings.sim.play import play  # noqa: PLC0415 (memory of members)
    from hustings.sim.scenarios import Scenario  # noqa: PLC0415 (memory of members)
    from hustings.testing import Group  # noqa: PLC0415 (memory of members)

    for members in (4, 16, 64):
        everybody = Scenario(initiators=tuple(range(1, members + 1)))
        described = Description(kind=HirschbergSinclair, members=members, scenario=everybody)
        result = play(build(described), run=0)
        told = {name: result.metrics[name] for name in ("messages", "time", "leader")}
        print(f"simulated, {members} members: {told}")
    with Group(protocol=HirschbergSinclair) as group:
        for name in ("ada", "ben", "cyn"):
            group.join(name)
        first = group.settle()
        group.kill(first)
        print(f"joined: {first} leads; after its crash {group.settle()} does")


if __name__ == "__main__":
    main()
