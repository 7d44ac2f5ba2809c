"""Churn: members come and go at random, one not to be told from another.

Arrivals and departures are two Poisson streams with given mean times between events. Who comes is
new, with an id drawn from those not used yet, so it is as likely to be better than another as
worse; who goes is drawn from the living. The last one alive stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.sim.consistency import most_held
from hustings.sim.faults import Call, Crash, Join, Leave
from hustings.sim.instants import END_OF_TIME
from hustings.sim.world import World

MAX_EVENTS = 100_000  # arrivals, and as many departures, that one run may expect


@dataclass(frozen=True, slots=True)
class Rates:
    """Mean times between arrivals and between departures; None: there are none."""

    arrivals: float | None = None
    departures: float | None = None
    orderly: bool = False  # who goes leaves in good order; otherwise it crashes

    def __post_init__(self) -> None:
        for name, mean in (("arrivals", self.arrivals), ("departures", self.departures)):
            if mean is not None and not 0.0 < mean <= END_OF_TIME:
                raise BadInput(
                    f"{name} must be a mean time between 0 and {END_OF_TIME:g}, not {mean:g}"
                )

    def check(self, horizon: float) -> None:
        """Refuse what would be nothing, or too much."""
        if self.arrivals is None and self.departures is None:
            raise BadInput("scenario 'churn' needs --arrivals MEAN, --departures MEAN or both")
        for name, mean in (("arrivals", self.arrivals), ("departures", self.departures)):
            if mean is not None and horizon / mean > MAX_EVENTS:
                raise BadInput(
                    f"{name} every {mean:g} until {horizon:g} are more than {MAX_EVENTS:,}: "
                    "choose a longer mean or a shorter run"
                )


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run draws beforehand: who is there at first, who comes when, when somebody goes."""

    first: tuple[MemberId, ...]  # by id
    arrivals: tuple[tuple[float, MemberId], ...]
    departures: tuple[float, ...]

    @property
    def population(self) -> int:
        """All who are ever in the group."""
        return len(self.first) + len(self.arrivals)


def draw(rates: Rates, members: int, horizon: float, seed: int) -> Plan:
    """The plan of one run; its times count from the beginning of the churn."""
    arrivals = _poisson(rates.arrivals, horizon, Stream(derive(seed, "arrivals")))
    departures = _poisson(rates.departures, horizon, Stream(derive(seed, "departures")))
    ids = list(range(1, members + len(arrivals) + 1))
    Stream(derive(seed, "ids")).shuffle(ids)
    return Plan(
        first=tuple(sorted(ids[:members])),
        arrivals=tuple(zip(arrivals, ids[members:], strict=True)),
        departures=tuple(departures),
    )


def _poisson(mean: float | None, horizon: float, stream: Stream) -> list[float]:
    instants: list[float] = []
    at = 0.0
    while mean is not None:
        at += stream.expovariate(1.0 / mean)
        if at > horizon:
            break
        instants.append(at)
    return instants


class Turnover:
    """Lets the churn of one run happen, and counts it."""

    def __init__(self, plan: Plan, goodbye: float | None, *, call: bool) -> None:
        """`goodbye`: how long who leaves lingers; None: it crashes. `call`: who comes calls."""
        self._plan = plan
        self._goodbye = goodbye
        self._call = call
        self._who: Stream | None = None
        self.arrivals = 0
        self.departures = 0
        self.leader_departures = 0  # of members whom most held as the leader

    def begin(self, world: World) -> None:
        """From now on members come and go."""
        self._who = Stream(derive(world.seed, "who departs"))
        for after, member in self._plan.arrivals:
            if world.now + after <= END_OF_TIME:
                world.at(world.now + after, partial(self._arrive, world, member))
        for after in self._plan.departures:
            if world.now + after <= END_OF_TIME:
                world.at(world.now + after, partial(self._depart, world))

    def _arrive(self, world: World, member: MemberId) -> None:
        self.arrivals += 1
        Join(member=member).happen(world)
        if self._call:
            Call(member=member).happen(world)

    def _depart(self, world: World) -> None:
        live = world.live()
        if len(live) < 2 or self._who is None:
            return
        one = self._who.choice(live)
        self.departures += 1
        self.leader_departures += most_held(world) == one.id
        if self._goodbye is None:
            Crash(member=one.id).happen(world)
        else:
            Leave(member=one.id, linger=self._goodbye).happen(world)

    def metrics(self) -> dict[str, float | None]:
        """At the end of a run."""
        return {
            "arrivals": float(self.arrivals),
            "departures": float(self.departures),
            "leader_departures": float(self.leader_departures),
        }
