"""Scenarios: how a run begins. Each is a value that sets up a world, or says what is wrong.

Most elections wait for a call or a suspicion, so here a script gives it to certain members.
Elections that announce find out by themselves. For them the event comes at a random instant of
their steady state (`announcing.py`). `measurements.py` says what is measured and when the run is
over.

Churn: arrivals and departures are two Poisson streams with given mean times between events. A
member that comes is new, with an id drawn from those not used yet, so it is better or worse than
another with the same probability. The member that goes is drawn from the live ones. The last live
member stays.

The order round a ring is each member's place. Members are numbered 1 to n; other ids stand for
those of the same rank, because an election only compares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.sim.components import Roaming
from hustings.sim.consistency import most_held
from hustings.sim.faults import (
    Call,
    Crash,
    Happening,
    Heal,
    Join,
    Leave,
    OneWay,
    Partition,
    Suspect,
    schedule,
)
from hustings.sim.measurements import (
    Beginning,
    Churn,
    Departure,
    Joining,
    RunMeasurement,
    Settling,
    Vigil,
)
from hustings.sim.member import SimContext, Status
from hustings.sim.mobility import Mobility
from hustings.sim.queue import END_OF_TIME
from hustings.sim.world import World

MAX_EVENTS = 100_000  # expected arrivals in one run, and the same of departures


@dataclass(frozen=True, slots=True)
class Rates:
    """Mean times between arrivals and between departures; None: there are none."""

    arrivals: float | None = None
    departures: float | None = None
    orderly: bool = False  # members leave in good order; otherwise they crash

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
    """What one run draws beforehand: its first members, the arrivals, and times of departures."""

    first: tuple[MemberId, ...]  # by id
    arrivals: tuple[tuple[float, MemberId], ...]
    departures: tuple[float, ...]

    @property
    def population(self) -> int:
        """All members that are ever in the group."""
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
        """`goodbye`: how long a member that leaves lingers; None: it crashes."""
        self._plan = plan
        self._goodbye = goodbye
        self._call = call
        self._who: Stream | None = None
        self.arrivals = 0
        self.departures = 0
        self.leader_departures = 0  # of members that most held as leader

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


PLACE = "place"  # the attribute, and the setting that names it
RANDOM = "random"
DECREASING = "decreasing"
MOST_SHOWN = 20

Order = str | Sequence[MemberId]


def parse_order(text: str) -> Order:
    """`random`, `decreasing`, or ids in their order clockwise, as `3,32,5,80,6,12`."""
    parts = [part.strip() for part in text.split(",")]
    if not text.strip() or not parts[0][:1].isdecimal():
        return text.strip()
    if any(re.fullmatch(r"[0-9]{1,9}", part) is None for part in parts):
        raise BadInput(f"--order {text!r} is not understood: write ids as 3,32,5,80,6,12")
    return tuple(int(part) for part in parts)


def places_of(order: Order, members: int) -> tuple[float, ...] | None:
    """Each member's place in an order of ids clockwise; None: drawn for each run.

    >>> places_of("decreasing", 4), places_of((3, 32, 5, 80, 6, 12), 6)
    ((4.0, 3.0, 2.0, 1.0), (0.0, 2.0, 4.0, 5.0, 1.0, 3.0))
    """
    if order == RANDOM:
        return None
    if order == DECREASING:
        return tuple(float(place) for place in range(members, 0, -1))
    if isinstance(order, str):
        raise UnknownName("order", order, [RANDOM, DECREASING, "3,32,5,80,6,12"])
    places: dict[MemberId, float] = {}
    for one in order:
        if one in places:
            raise BadInput(f"--order names {one} twice")
        places[one] = float(len(places))
    if len(places) != members:
        raise BadInput(f"--order names {len(places)} ids, and there are {members} members")
    return tuple(places[one] for one in sorted(places))


def renamed(order: Order | None) -> str | None:
    """Which ids the members' numbers stand for, if they are not those ids."""
    if order is None or isinstance(order, str) or sorted(order) == [*range(1, len(order) + 1)]:
        return None
    ids = [str(one) for one in sorted(order)]
    shown = ids if len(ids) <= MOST_SHOWN else [*ids[:3], "...", ids[-1]]
    return (
        f"members 1 to {len(ids)} stand for ids {', '.join(shown)}, also where options and the "
        "report name a member: an election only compares ids"
    )


# What happens in each; what differs for elections that announce comes last.
SCENARIOS = {
    "start": (
        "No member leads; the initiators call an election at 0. Members that announce "
        "start by themselves, and the run ends when all have heard the leader."
    ),
    "leader-crash": (
        "The best member leads and is dead; the detectors notice at 0 (all members, where "
        "all must agree). If members announce, it crashes at a random phase of its period, "
        "and the run ends when all hold a successor."
    ),
    "leader-leave": (
        "As leader-crash, but the leader leaves in good order and says goodbye if it knows how."
    ),
    "join-larger": (
        "One more member, the best of all, joins a group with a leader and calls an "
        "election (a member that announces joins at a random phase and needs no call); -n "
        "does not count it."
    ),
    "join-smaller": "As join-larger, but the new member is the worst of all.",
    "false-departure": (
        "The leader is alive, and the detectors suspect it at 0. If members announce, lost "
        "messages do this, until the time limit."
    ),
    "churn": (
        "Members come and go at random (--arrivals, --departures) until the time limit. "
        "Members that do not announce need a --detection."
    ),
}
JOINING = ("join-larger", "join-smaller")
DEPARTING = ("leader-crash", "leader-leave", "false-departure")  # truly or not
HORIZON = 1000.0  # the time limit of a scenario that has no end of its own


@dataclass(frozen=True, slots=True)
class Scenario:
    """The dead, detecting and calling members; `extra` faults happen, too.

    `crashed` are members that are down from the beginning, in addition to the old leader of
    leader-crash.
    """

    name: str = "start"
    crashed: tuple[MemberId, ...] = ()
    detectors: tuple[MemberId, ...] = ()
    initiators: tuple[MemberId, ...] = ()
    extra: tuple[Happening, ...] = field(default=())
    rates: Rates = field(default_factory=Rates)  # of churn
    linger: float = 0.0  # how long a leaving member stays to say goodbye
    mobility: Mobility | None = None  # how members move about, if they do

    @property
    def joining(self) -> bool:
        """Whether it is about one more member."""
        return self.name in JOINING

    def endless(self, *, announces: bool) -> bool:
        """Whether it goes on until the time limit."""
        moves = self.name == "churn" or self.mobility is not None
        return moves or (announces and self.name == "false-departure")


@dataclass(frozen=True, slots=True)
class Cast:
    """A scenario worked out for one group."""

    leader: MemberId | None  # at the beginning; that of leader-crash is down, unless it announces
    down: tuple[MemberId, ...]  # all that are
    openers: tuple[MemberId, ...]  # members that detect, or call
    later: tuple[MemberId, ...] = ()  # members not in the group yet


def cast(
    scenario: Scenario,
    candidates: list[Candidate],
    choice: Choice,
    *,
    scripted: bool = True,
    announces: bool = False,
    unanimous: bool = False,
    plan: Plan | None = None,
) -> Cast:
    """Check a scenario against a group. The worst live member opens it if no member is named.

    `scripted`: no detector finds out by itself. `unanimous`: a crash counts only if all notice it,
    so all open a departure. `plan`: the members that come and go in churn.
    """
    _check(scenario, candidates, scripted=scripted, announces=announces)
    order = sorted(candidates, key=choice.key)
    later: tuple[MemberId, ...] = ()
    if scenario.joining:
        later = (order.pop(-1 if scenario.name == "join-larger" else 0).id,)
    elif plan is not None:
        later = tuple(member for _, member in plan.arrivals)
        order = [candidate for candidate in order if candidate.id in plan.first]
    # The dead leader of leader-crash may be among those named as crashed.
    buried = scenario.name == "leader-crash" and not announces
    able = order if buried else [one for one in order if one.id not in scenario.crashed]
    leader = able[-1].id if able and scenario.name != "start" else None
    down = tuple(sorted({*scenario.crashed, *([leader] if buried and leader is not None else [])}))
    if len(down) >= len(order):
        raise BadInput(f"{len(down)} of {len(order)} members are crashed: at least one must live")
    if scenario.name in DEPARTING and not buried and len(able) < 2:
        raise BadInput(f"scenario {scenario.name!r} needs a live member in addition to the leader")
    openers = _openers(scenario, leader, down, buried=buried)
    if not openers and not announces and scenario.name != "churn":
        if later:
            openers = later
        elif scripted or scenario.name in ("start", "false-departure"):  # a member has to begin
            idle = (*down, leader)
            openers = tuple(each.id for each in order if each.id not in idle)
            notice = unanimous and scenario.name in ("leader-crash", "leader-leave")
            if not notice and scenario.mobility is None:  # otherwise a component might hear of none
                openers = openers[:1]
            openers = tuple(sorted(openers))
    return Cast(leader, down, openers, later)


def _check(
    scenario: Scenario, candidates: list[Candidate], *, scripted: bool, announces: bool
) -> None:
    """Whether the scenario makes sense at all."""
    name = scenario.name
    if name not in SCENARIOS:
        raise UnknownName("scenario", name, list(SCENARIOS))
    if scenario.mobility is not None:
        _check_mobile(scenario, scripted=scripted, announces=announces)
    ids = {candidate.id: candidate for candidate in candidates}
    for role, members in (
        ("crashed", scenario.crashed),
        ("detector", scenario.detectors),
        ("initiator", scenario.initiators),
    ):
        for member in members:
            if member not in ids:
                raise BadInput(f"{role} {member} is not a member: ids are 1 to {len(ids)}")
    if scenario.detectors and name not in DEPARTING:
        raise BadInput(
            f"scenario {name!r} has no dead leader to detect: name an --initiator, "
            "or use --scenario leader-crash"
        )
    if not 0.0 <= scenario.linger <= END_OF_TIME:
        raise BadInput(f"linger must be a time >= 0, not {scenario.linger:g}")
    if scenario.linger and name != "leader-leave" and not scenario.rates.orderly:
        raise BadInput("--linger goes with --scenario leader-leave, or churn with --orderly")
    if name != "churn":
        if scenario.rates != Rates():
            raise BadInput("--arrivals, --departures and --orderly go with --scenario churn")
        return
    if scenario.initiators or scenario.crashed:
        raise BadInput("scenario 'churn' draws the members: drop --initiator and --crashed")
    if scripted and not announces:
        raise BadInput(
            "scenario 'churn' needs a --detection (perfect, heartbeat, accrual): this "
            "election does not notice by itself that a member is gone"
        )


def _check_mobile(scenario: Scenario, *, scripted: bool, announces: bool) -> None:
    if scenario.name != "start":
        raise BadInput(
            "members that move begin as a group that starts: take --scenario start, and "
            "faults such as --fault crash:8@20"
        )
    if any(isinstance(one, Partition | OneWay | Heal) for one in scenario.extra):
        raise BadInput(
            "where members move, distance decides which of them reach each other: drop the "
            "faults partition, one-way and heal"
        )
    if scripted and not announces:
        raise BadInput(
            "--mobility needs a --detection (heartbeat, accrual) or --composed: this "
            "election does not notice by itself that a member is out of reach"
        )


def _openers(
    scenario: Scenario, leader: MemberId | None, down: tuple[MemberId, ...], *, buried: bool
) -> tuple[MemberId, ...]:
    # In the order of ids: the order of the options must not matter.
    openers = tuple(sorted({*scenario.detectors, *scenario.initiators}))
    for member in openers:
        if member in down:
            raise BadInput(f"member {member} is crashed and can neither detect nor call")
        if member == leader and scenario.name in DEPARTING and not buried:
            raise BadInput(f"member {member} is the leader: others have to notice that it goes")
    return openers


def begin(
    world: World,
    scenario: Scenario,
    cast: Cast,
    *,
    live_view: bool,
    tell: bool,
    guarded: bool = False,
    origin: float = 0.0,
    roaming: Roaming | None = None,
) -> None:
    """Set a world up: the dead are down, the living started, the first event scheduled.

    `live_view`: views hold the living only. `tell`: the openers are told at 0 (a scripted
    detector); otherwise the members' own detector must notice. `guarded`: a guard has to confirm
    the leader first. `origin`: when the scenario's time begins, for a group that has to settle
    first. `roaming`: members move, and that is what is watched.
    """
    fresh = _enter(world, cast, live_view=live_view)
    if roaming is not None:
        roaming.begin(world)
    _start(world, fresh)
    _establish(fresh, cast.leader, guarded=guarded)
    for happenings in (_opening(scenario, cast, tell), list(scenario.extra)):
        schedule(world, [replace(each, at=each.at + origin) for each in happenings])


def begin_announcing(
    world: World,
    scenario: Scenario,
    cast: Cast,
    plan: Plan | None,
    *,
    live_view: bool,
    started: bool,
    guarded: bool,
    repeating: bool,
    displaces: bool,
    settling: float | None = None,
    roaming: Roaming | None = None,
) -> RunMeasurement:
    """Set a world up whose members find out by themselves; the study starts the rest.

    An established group begins in the middle and is not `started`, unless detectors or voters round
    its elections must be started. `guarded`: a guard has to confirm the leader first. `repeating`:
    members announce again and again, not just once. `displaces`: a better member takes over from a
    live leader. `settling`: members may never agree on a leader; a start is over when they have
    agreed for this time. `roaming`: as in `begin`.
    """
    fresh = _enter(world, cast, live_view=live_view)
    leader = cast.leader
    study: RunMeasurement
    if roaming is not None:
        study = roaming
        roaming.begin(world)
        calls = []
    elif leader is None:
        study = (
            Beginning(world, repeating=repeating)
            if settling is None
            else Settling(world, settling, max((one.at for one in scenario.extra), default=0.0))
        )
        calls = [Call(member=member) for member in cast.openers]
    else:
        study = _study_of(world, scenario, cast, leader, plan, displaces=displaces)
        calls = []
    if leader is None or started:
        _start(world, fresh)
    _establish(fresh, leader, guarded=guarded)
    schedule(world, [*calls, *scenario.extra])
    return study


def _study_of(
    world: World,
    scenario: Scenario,
    cast: Cast,
    leader: MemberId,
    plan: Plan | None,
    *,
    displaces: bool,
) -> RunMeasurement:
    """The study of an established group."""
    if plan is not None:
        return Churn(world, turnover(scenario, plan, call=False), leader)
    if scenario.joining:
        takes_over = displaces and scenario.name == "join-larger"
        return Joining(world, leader, cast.later[0], cast.openers, takes_over=takes_over)
    if scenario.name == "false-departure":
        return Vigil(world, leader, cast.openers)
    goodbye = scenario.linger if scenario.name == "leader-leave" else None
    return Departure(world, leader, cast.openers, goodbye)


def turnover(scenario: Scenario, plan: Plan, *, call: bool) -> Turnover:
    """The churn of one run."""
    return Turnover(plan, scenario.linger if scenario.rates.orderly else None, call=call)


def _enter(world: World, cast: Cast, *, live_view: bool) -> list[SimContext]:
    """Take down the dead, leave later members unknown, start all others; return these, by id."""
    for member in cast.down:
        ctx = world.members[member]
        ctx.incarnation = 1  # it lived before this run, so if it comes back it returns
        world.change(ctx, Status.CRASHED)
        if live_view:
            world.everybody_forgets(ctx)
    for member in cast.later:
        world.everybody_forgets(world.members[member])
    absent = {*cast.down, *cast.later}
    fresh = [ctx for ctx in world.members.values() if ctx.id not in absent]
    for ctx in fresh:
        world.revive(ctx)
    return fresh


def _start(world: World, fresh: list[SimContext]) -> None:
    for ctx in fresh:
        world.invoke(ctx, ctx.election.start)


def _establish(fresh: list[SimContext], leader: MemberId | None, *, guarded: bool) -> None:
    """Let all hold the leader, if there is one.

    Behind a guard they hold the confirmed one, later.
    """
    if leader is not None:
        for ctx in fresh:
            ctx.election.assume_leader(ctx, leader, 1)
            if not guarded:
                ctx.outcome = Elected(leader, 1)


def _opening(scenario: Scenario, cast: Cast, tell: bool) -> list[Happening]:
    """What is scheduled at 0."""
    leader, linger = cast.leader, scenario.linger
    if leader is None:
        return [Call(member=member) for member in cast.openers]
    suspicions: list[Happening] = [Suspect(member=one, about=leader) for one in cast.openers]
    match scenario.name:
        case "leader-crash":
            return suspicions if tell else []
        case "leader-leave":
            return [Leave(member=leader, linger=linger), *(suspicions if tell else [])]
        case "false-departure":
            return suspicions  # a detector that errs is a script in every case
        case "join-larger" | "join-smaller":
            joins = [Join(member=member) for member in cast.later]
            return [*joins, *(Call(member=member) for member in cast.openers)]
    return []
