"""What the tests of chapter 5 share: groups with given sleeps and losses, and what they said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from hustings.core.choice import Candidate, Choice, HighestId, MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Outcome
from hustings.protocols.announce.machine import Machine
from hustings.sim.delay import Fixed
from hustings.sim.loss import Loss, NoLoss, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import World

Said = tuple[float, MemberId, str]
Sleeps = Mapping[MemberId, list[float]]

DELTA = 0.1
NO_LOSS = NoLoss()


class Notes:
    """Writes down what is said and declared."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.declared_at: list[tuple[float, MemberId, Outcome]] = []

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        self.said.append((world.now, member.id, kind_of(message)))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.declared_at.append((world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        """Only words count here."""


@dataclass(frozen=True)
class Group:
    """A world that has begun, and its notes."""

    world: World
    notes: Notes

    def election(self, member: MemberId) -> Election:
        return self.world.members[member].election

    @property
    def leaders(self) -> dict[MemberId, MemberId | None]:
        """The thesis's variable `leader` of every live member."""
        return {member.id: member.election.leader for member in self.world.live()}

    @property
    def said(self) -> list[tuple[float, MemberId]]:
        """When who announced itself."""
        return [(at, who) for at, who, kind in self.notes.said if kind == "ANNOUNCE"]

    def run(self, until: float) -> Group:
        self.world.run(until=until)
        return self

    def agree_at(self, step: float, most: float = 200.0) -> float:
        """Run in steps until all live members hold one living leader."""
        while self.world.now < most:
            self.run(self.world.now + step)
            held = list(self.leaders.values())
            if held[0] is not None and held == [held[0]] * len(held):
                return self.world.now
        raise AssertionError("they never agreed")


def asleep(kind: type[Machine], sleeps: Sleeps) -> type[Machine]:
    """The same election, with given sleeps instead of random ones."""
    left = {member: list(each) for member, each in sleeps.items()}

    def sleep(self: Machine, ctx: Context) -> float:
        return left[ctx.me.id].pop(0)

    return cast("type[Machine]", type("Scripted", (kind,), {"__slots__": (), "sleep": sleep}))


def group(
    kind: type[Election],
    n: int,
    *,
    seed: int = 0,
    loss: Loss = NO_LOSS,
    leader: MemberId | None = None,
    delta: float = DELTA,
    choice: Choice | None = None,
    attributes: Callable[[MemberId], tuple[tuple[str, float], ...]] = lambda _: (),
    later: tuple[MemberId, ...] = (),
    **settings: object,
) -> Group:
    """Members 1..n start at 0 (but for the `later` ones), or are in steady state with a leader."""
    config = kind.Settings.parse({"delta": delta, **settings})
    order = choice or HighestId()
    world = World(
        lambda: kind(config, order),
        [Candidate(i, attributes(i)) for i in range(1, n + 1)],
        seed=seed,
        network=Network(Fixed(delta), loss),
    )
    notes = Notes()
    world.watch(notes)
    world.listen_in(notes)
    first = [ctx for ctx in world.members.values() if ctx.id not in later]
    for ctx in first:
        world.revive(ctx)
    for ctx in first:
        if leader is None:
            ctx.election.start(ctx)
        else:
            ctx.election.assume_leader(ctx, leader, 1)
    return Group(world, notes)


def uncorrelated(p: float) -> Loss:
    return Uncorrelated(p) if p else NO_LOSS
