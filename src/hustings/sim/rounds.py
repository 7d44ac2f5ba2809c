"""The study of elections that go round by round, in groups too large for certainty.

Such an election may fail in part. So the study counts how many members hold which leader at the
end, the rounds, and the messages of each kind. In each round every member that is up when the round
is opened crashes with probability `p_fail`, at a uniform instant of the round. A pause between two
rounds belongs to neither round.

- `strong`: one live member leads, and all live members hold it. `weak`: the largest part of the
  live members that hold one and the same leader; `weak_live`: that holds a living one;
  `leaderless`: the part that holds no leader.
- `two_leaders`: two live members or more say at the end that they lead; `two_leaders_ever`: at the
  end of some round.
- `rounds`: the highest round that was opened; `reinitiations`: how many messages opened another
  than the first. `ucasts` and `mcasts` are all messages to one member and to the group.
- What the members have counted themselves (`RoundBased.tallies`) is added up over all of them.
"""

from __future__ import annotations

from functools import partial
from math import log, log1p

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected, Outcome
from hustings.core.rounds import RoundBased
from hustings.core.streams import Stream, derive
from hustings.layers.layer import innermost, unwrapped
from hustings.sim.consistency import Metrics, held_by
from hustings.sim.faults import Crash
from hustings.sim.member import SimContext
from hustings.sim.queue import END_OF_TIME, TICKS
from hustings.sim.world import World


class Rounds:
    """Watches the rounds of one run, and lets members crash in them."""

    def __init__(self, p_fail: float) -> None:
        self._p_fail = p_fail
        self._opened: dict[tuple[int, ...], None] = {}
        self._last = 0
        self._ucasts = 0
        self._mcasts = 0
        self._again = 0
        self._claims: dict[MemberId, None] = {}  # members that ever said that they lead
        self._clashed = False  # at the end of some round

    def begin(self, world: World) -> None:
        """Watch from now on."""
        self._claims = {one.id: None for one in world.live() if held_by(one) == one.id}
        world.listen_in(self)
        world.claims.append(self)

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """Count it, and see whether it opens a round."""
        if message.role is Role.DETECTOR:
            return
        if to is None:
            self._mcasts += 1
        else:
            self._ucasts += 1
        election, said = unwrapped(member.election, message)
        if not isinstance(election, RoundBased) or (key := election.opens(said)) is None:
            return
        if key[-1] > 1 and to is None:
            self._again += 1
        if key not in self._opened:
            self._opened[key] = None
            self._last = max(self._last, key[-1])
            live = world.live()
            self._open(world, key, live, election.span(said, len(live)))

    def _open(
        self,
        world: World,
        key: tuple[int, ...],
        live: list[SimContext],
        span: tuple[float, float],
    ) -> None:
        pause, lasts = span
        end = world.now + pause + lasts + 1.0 / TICKS  # when the timers of that instant have fired
        if end <= END_OF_TIME:
            world.at(end, partial(self._look, world))
        if self._p_fail:
            stream = Stream(derive(world.seed, "fail", *key))
            for place in struck(len(live), self._p_fail, stream):
                instant = world.now + pause + lasts * stream.random()
                if instant <= END_OF_TIME:
                    world.at(instant, partial(Crash(member=live[place].id).happen, world))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member says that it leads."""
        self._claims[member.id] = None

    def changed(self, world: World, member: SimContext) -> None:
        """Look at the end of each round which members lead."""

    def _leading(self, world: World) -> int:
        return sum(held_by(world.members[one]) == one for one in self._claims)

    def _look(self, world: World) -> None:
        self._clashed = self._clashed or self._leading(world) > 1

    def metrics(self, world: World) -> Metrics:
        """At the end of a run."""
        found = {**_state(world), "rounds": float(self._last)}
        leading = self._leading(world)
        found["two_leaders"] = float(leading > 1)
        found["two_leaders_ever"] = float(self._clashed or leading > 1)
        found["ucasts"] = float(self._ucasts)
        found["mcasts"] = float(self._mcasts)
        found["reinitiations"] = float(self._again)
        found.update(_tallies(world))
        return found


def struck(members: int, p: float, stream: Stream) -> list[int]:
    """The numbers of the members that are hit, in order: each is hit with probability `p`.

    The gaps between them are geometric, so each hit costs one draw.

    >>> struck(4, 1.0, Stream(1)), struck(4, 0.0, Stream(1))
    ([0, 1, 2, 3], [])
    """
    if p >= 1.0:
        return list(range(members))
    hit: list[int] = []
    place = -1
    while p > 0.0:
        gap = log(1.0 - stream.random()) / log1p(-p)
        if gap >= members - 1 - place:
            break
        place += 1 + int(gap)
        hit.append(place)
    return hit


def _state(world: World) -> Metrics:
    """Which leader each member holds at the end."""
    held: dict[MemberId, int] = {}
    live = nobody = 0
    for member in world.members.values():
        if member.awake:
            live += 1
            outcome = member.outcome
            if outcome.__class__ is Elected:
                leader = outcome.leader
                held[leader] = held[leader] + 1 if leader in held else 1
            else:
                nobody += 1
    if not live:
        return {"strong": 0.0, **dict.fromkeys(("weak", "weak_live", "leaderless"))}
    living = [number for leader, number in held.items() if world.members[leader].up]
    unanimous = not nobody and len(held) == 1 == len(living)
    return {
        "strong": float(unanimous),
        "weak": max(held.values(), default=0) / live,
        "weak_live": max(living, default=0) / live,
        "leaderless": nobody / live,
    }


def _tallies(world: World) -> Metrics:
    found: Metrics = {}
    sums: dict[str, int] = {}
    for member in world.members.values():
        election = getattr(member, "election", None)  # a member that was never up has none
        inside = None if election is None else innermost(election)
        if isinstance(inside, RoundBased):
            for name, number in inside.tallies().items():
                if name not in sums:
                    sums[name] = 0
                sums[name] += number
    found.update({name: float(number) for name, number in sums.items()})
    return found
