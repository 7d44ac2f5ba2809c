"""One seed draws everything: a group, a network, and what happens to both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import Candidate, Choice, MemberId, candidate, parse_choice
from hustings.core.election import Election
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.sim.delay import Delay, Fixed, Lognormal, Uniform
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Heal,
    Leave,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    Suspect,
    Update,
)
from hustings.sim.loss import Correlated, NoLoss, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.trace import Header, Sink, Tracer
from hustings.sim.world import World

T = TypeVar("T")

CHOICES = ("highest-id", "lowest-id", "highest:cpu", "lowest:load,highest:cpu")
MOST = 8  # members
HIGHEST_ID = 29  # ids are sparse
STRANGER = 99  # nobody's id

WITHIN_DELTA: tuple[Delay, ...] = (
    Fixed(1.0),
    Fixed(0.0),
    Uniform(0.0, 1.0),
    Uniform(0.5, 1.0),
    Uniform(0.9, 1.0),
)
ANYHOW: tuple[Delay, ...] = (
    Fixed(1.0),
    Fixed(0.0),
    Uniform(0.0, 1.0),
    Uniform(0.0, 5.0),
    Lognormal(0.5, 1.0),
)


class Attendance:
    """Notes who has taken part in an election: only to answer is not to take part.

    Who answers waits for nothing.
    """

    def __init__(self) -> None:
        self.took_part: dict[MemberId, None] = {}

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        if message.role is not Role.ANSWER:
            self.took_part[member.id] = None


@dataclass(frozen=True, slots=True)
class Group:
    """A world that has started, and what was drawn with it."""

    world: World
    choice: Choice
    stream: Stream
    attendance: Attendance

    @property
    def ids(self) -> list[MemberId]:
        return list(self.world.members)

    def ranked(self) -> list[MemberId]:
        """All members, best first."""
        key = self.choice.key
        members = self.world.members.values()
        ranked = sorted(members, key=lambda member: key(member.me), reverse=True)
        return [member.id for member in ranked]

    def best_alive(self) -> MemberId | None:
        up = [member for member in self.ranked() if self.world.members[member].up]
        return up[0] if up else None

    def assume(self, leader: Callable[[], MemberId]) -> None:
        """Begin in the middle: each member has a leader already."""
        for member in self.world.live():
            chosen = leader()
            member.election.assume_leader(member, chosen, 1)
            member.outcome = Elected(chosen, 1)


def draw_group(
    kind: type[Election],
    seed: int,
    claim: str,
    network: Callable[[Stream], Network],
    out: Sink | None = None,
    fewest: int = 1,
) -> Group:
    """Sparse ids, attributes with ties, any choice function."""
    stream = Stream(derive(seed, claim))
    choice = parse_choice(stream.choice(CHOICES))
    size = fewest + stream.below(MOST - fewest + 1)
    ids = stream.sample(range(1, HIGHEST_ID + 1), size)
    candidates = [draw_candidate(stream, member) for member in ids]
    header = Header(
        protocol=kind.about.name, members=sorted(ids), seed=seed, settings={"claim": claim}
    )
    tracer = None if out is None else Tracer(header, out)
    attendance = Attendance()
    world = World(
        lambda: kind(kind.Settings(), choice),
        candidates,
        seed=seed,
        network=network(stream),
        tracer=tracer,
        debug=True,
    )
    world.listen_in(attendance)
    world.start()
    return Group(world, choice, stream, attendance)


def draw_candidate(stream: Stream, member: MemberId) -> Candidate:
    return candidate(member, cpu=1 + stream.below(3), load=1 + stream.below(3))


def reliable(stream: Stream) -> Network:
    """Every message arrives within delta, some twice."""
    return Network(delay=stream.choice(WITHIN_DELTA), duplicate=stream.choice((0.0, 0.0, 0.2)))


def unreliable(stream: Stream) -> Network:
    """Messages are late, lost, doubled and out of order."""
    p = stream.choice((0.0, 0.0, 0.1, 0.4, 0.9))
    model = stream.choice((Uncorrelated, Correlated))
    delay = stream.choice(ANYHOW)
    duplicate = stream.choice((0.0, 0.3))
    reorder = stream.choice((0.0, 0.3))
    return Network(
        delay=delay,
        loss=model(p) if p else NoLoss(),
        duplicate=duplicate,
        reorder=reorder,
        hold_back=4.0 if reorder else 0.0,
    )


def weighted(stream: Stream, table: Sequence[tuple[int, T]]) -> T:
    """One of the items, by its weight."""
    draw = stream.below(sum(weight for weight, _ in table))
    for weight, item in table:
        draw -= weight
        if draw < 0:
            return item
    raise AssertionError("the weights were summed up wrongly")


def draw_crash(stream: Stream, member: MemberId, at: float) -> Happening:
    """At once, or in the middle of what it sends."""
    if stream.below(5) < 3:
        return Crash(member=member, at=at)
    return Crash(member=member, at=at, after_sends=1 + stream.below(8))


def draw_trouble(group: Group, horizon: float) -> list[Happening]:
    """Anything that may happen to a group, with its end where it has one."""
    stream, ids = group.stream, group.ids
    at = stream.uniform(0.0, horizon)
    member, other = stream.choice(ids), stream.choice(ids)
    about = stream.choice((other, other, other, STRANGER))
    one = tuple(each for each in ids if stream.below(2))
    sides = (one, tuple(each for each in ids if each not in one))
    end = at + stream.uniform(0.0, 20.0)
    return weighted(
        stream,
        [
            (2, [draw_crash(stream, member, at)]),
            (2, [Restart(member=member, at=at)]),
            (1, [Call(member=member, at=at)]),
            (3, [Suspect(member=member, about=about, at=at)]),
            (1, [Alive(member=member, about=about, at=at)]),
            (1, [Pause(member=member, at=at), Resume(member=member, at=end)]),
            (1, [Partition(sides=sides, at=at), Heal(at=end)]),
            (1, [OneWay(senders=(member,), to=(other,), at=at), Heal(name="one-way", at=end)]),
            (1, [Leave(member=member, at=at)]),
            (1, [Update(member=member, candidate=draw_candidate(stream, member), at=at)]),
        ],
    )
