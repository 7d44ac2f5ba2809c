"""The story in seven acts: elect, crash, partition, heal, return, pause, resume.

Members run the real protocol over a real failure detector (heartbeats, all to all) in the
deterministic world. The seed decides which members call, which side each member is on, and every
delay. An act causes one thing, then lets the world run in slices until the group has settled. The
group has settled when, for a while, every live member holds one live leader that it can reach, and
no message is under way. An act that does not settle ends at a limit, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.messages import Message, Role, kind_of
from hustings.core.streams import Stream, derive
from hustings.demo.simulated.watch import MessageFlight, Watcher, flights_of
from hustings.demo.simulated.words import both, listed, number, when
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import (
    HeartbeatConfig,
    HeartbeatMsg,
    PingMsg,
    PongMsg,
    WatchMsg,
)
from hustings.layers.detector.layer import DetectorLayer
from hustings.sim.checkers import beliefs
from hustings.sim.delay import Uniform
from hustings.sim.faults import Call, Crash, Happening, Heal, Partition, Pause, Restart, Resume
from hustings.sim.faults import schedule as put
from hustings.sim.network import Network
from hustings.sim.queue import on_grid
from hustings.sim.trace import Header, Tracer
from hustings.sim.trace_read import read_stream
from hustings.sim.world import World

FEWEST, MOST = 3, 40

SLICE = 0.125  # time between two looks at the group
CALM = 3.0  # how long a settled group is watched before the next act
QUIET = 25.0  # an act fails after this long with only heartbeats; timers are shorter
LIMIT = 100.0  # the longest act, ...
LIMIT_EACH = 5.0  # ... and this much more for each member
ARRIVALS = 3.0  # members start within this time, before any detector can miss one


@dataclass(slots=True)
class _Scene:
    """An act while it is played."""

    name: str
    what: str
    began: float
    cues: list[Cue]
    before: tuple[MemberId, ...]
    suspects: dict[MemberId, tuple[MemberId, ...]]
    sent: dict[str, int]
    beats: int
    told: set[str] = field(default_factory=set)


def play(kind: type[Election], members: int, seed: int) -> Play:
    """Play all acts; the same arguments give the same play."""
    if not FEWEST <= members <= MOST:
        raise BadInput(f"members must lie between {FEWEST} and {MOST}, not {members}")
    return _Director(kind, members, seed).direct()


class _Director:
    """Runs the world through the acts."""

    def __init__(self, kind: type[Election], members: int, seed: int) -> None:
        self._kind = kind
        self._seed = seed
        self._ids = list(range(1, members + 1))
        self._dice = Stream(derive(seed, "demo"))
        self._detector = HeartbeatConfig()
        self._network = Network(delay=Uniform(0.5, 1.0))
        self._watcher = Watcher(self._ids)
        self._trace = BytesIO()
        header = Header(protocol=kind.about.name, members=self._ids, seed=seed)
        self._tracer = Tracer(header, self._trace)
        self._world = World(
            self._make,
            [Candidate(member) for member in self._ids],
            seed=derive(seed, "demo", "world"),
            network=self._network,
            tracer=self._tracer,
        )
        self._world.watch(self._watcher)
        self._last_sent = 0.0  # end of the last slice in which the protocol sent something
        self._cuts: list[tuple[float, Sides]] = [(0.0, ())]
        self._fallen: MemberId = members  # the member that crashes in act 2 and returns in act 5
        self._frozen: MemberId = members  # the member that pauses in act 6 and goes on in act 7

    def _make(self) -> Election:
        inner = self._kind(self._kind.Settings(), HighestId())
        return DetectorLayer(inner, Detector(self._detector))

    def direct(self) -> Play:
        """Play all acts in order."""
        acts = [act() for act in self._acts()]
        self._tracer.close(self._world.now, "stopped")
        self._trace.seek(0)
        kinds: list[type[Message]] = [
            *self._kind.messages,
            HeartbeatMsg,
            WatchMsg,
            PingMsg,
            PongMsg,
        ]
        roles = {kind_of(kind): kind.role for kind in kinds}
        flights = flights_of(read_stream(self._trace), roles, self._network.delay.bound)
        beats = tuple(flight for flight in flights if flight.role is Role.DETECTOR)
        flights = [flight for flight in flights if flight.role is not Role.DETECTOR]
        return Play(
            kind=self._kind,
            members=len(self._ids),
            seed=self._seed,
            detector=self._detector,
            acts=tuple(_count_lost(act, flights) for act in acts),
            watcher=self._watcher,
            flights=tuple(flights),
            beats=beats,
            cuts=tuple(self._cuts),
        )

    def _acts(self) -> Iterator[Callable[[], SimulatedAct]]:
        yield from (self._elect, self._crash, self._partition, self._heal)
        yield from (self._return, self._pause, self._resume)

    # The acts

    def _elect(self) -> SimulatedAct:
        for member in self._ids:
            start = partial(self._world.start, member)
            self._world.at(self._dice.uniform(0.0, ARRIVALS), start)
        caller = self._dice.choice(self._ids[: max(1, len(self._ids) // 2)])
        opening = f"{number(len(self._ids), 'member')} start; nobody leads yet."
        scene = self._open("elect", f"{caller} calls", opening)
        self._run(ARRIVALS + 1.0)
        scene.began = self._world.now
        put(self._world, [Call(at=self._world.now, member=caller)])
        idea = self._kind.about.idea
        self._cue(scene, f"Member {caller} calls an election. The idea: {idea}.", "opening")
        return self._settle(scene)

    def _crash(self) -> SimulatedAct:
        at = self._rest()
        self._fallen = leader = self._leader()
        text = f"{self._named(leader)} crashes. Nobody knows: it has only fallen silent."
        return self._play("crash", f"{leader} crashes", text, Crash(at=at, member=leader))

    def _partition(self) -> SimulatedAct:
        at = self._rest()
        leader = self._leader()
        sides = self._draw_sides(leader)
        one, other = listed(sides[0]), listed(sides[1])
        text = (
            f"The network breaks: {one} cannot reach {other}. "
            f"{self._named(leader)} is among the first."
        )
        self._cuts.append((at, sides))
        what = f"{one} | {other}"
        return self._play("partition", what, text, Partition(at=at, sides=sides))

    def _heal(self) -> SimulatedAct:
        at = self._rest()
        self._cuts.append((at, ()))
        leading = self._leading()
        text = "The network heals."
        if len(leading) > 1:
            text += f" Members {both(leading)} lead at once, and have yet to hear of each other."
        return self._play("heal", "the cut heals", text, Heal(at=at))

    def _return(self) -> SimulatedAct:
        at, back = self._rest(), self._fallen
        text = f"Member {back} is back from its crash. It has forgotten who leads."
        return self._play("return", f"{back} is back", text, Restart(at=at, member=back))

    def _pause(self) -> SimulatedAct:
        at = self._rest()
        self._frozen = leader = self._leader()
        text = f"{self._named(leader)} stands still: a pause that looks like a crash."
        return self._play("pause", f"{leader} pauses", text, Pause(at=at, member=leader))

    def _resume(self) -> SimulatedAct:
        at, frozen = self._rest(), self._frozen
        text = f"Member {frozen} goes on as if no time had passed."
        if self._watcher.state(frozen).leader == frozen:
            text = f"Member {frozen} goes on, and still takes itself for the leader."
        return self._play("resume", f"{frozen} goes on", text, Resume(at=at, member=frozen))

    # How an act is played

    def _play(self, name: str, what: str, text: str, happening: Happening) -> SimulatedAct:
        scene = self._open(name, what, text)
        put(self._world, [happening])
        return self._settle(scene)

    def _rest(self) -> float:
        """Let some time pass, so that acts may begin anywhere between two heartbeats."""
        self._run(self._dice.uniform(0.5, 2.0))
        return self._world.now

    def _open(self, name: str, what: str, text: str) -> _Scene:
        suspects = {member: history[-1][1] for member, history in self._watcher.suspects.items()}
        scene = _Scene(
            name=name,
            what=what,
            began=self._world.now,
            cues=[],
            before=self._leading(),
            suspects=suspects,
            sent=self._sent(),
            beats=self._beats(),
        )
        self._cue(scene, text, "opening")
        return scene

    def _settle(self, scene: _Scene) -> SimulatedAct:
        """Run until the group has settled for a while, or a limit is reached."""
        world, watcher = self._world, self._watcher
        limit = scene.began + LIMIT + LIMIT_EACH * len(self._ids)
        calm = 0.0
        while calm < CALM and world.now < limit:
            if world.now - max(scene.began, watcher.last_change, self._last_sent) > QUIET:
                break
            self._run(SLICE)
            self._notice(scene)
            under_way = world.now - self._last_sent <= self._network.delay.bound
            settled = self._agreed() and not under_way
            calm = calm + SLICE if settled else 0.0
        agreed_at = max(scene.began, watcher.last_change) if calm >= CALM else None
        return self._close(scene, agreed_at)

    def _run(self, time: float) -> None:
        end = on_grid(self._world.now + time)
        self._world.at(end, _nothing)  # time also passes where nothing happens
        while self._world.now < end:
            before = self._sent()
            self._world.run(until=min(end, self._world.now + SLICE))
            self._watcher.look(self._world)
            if self._sent() != before:
                self._last_sent = self._world.now

    def _notice(self, scene: _Scene) -> None:
        """Tell the first suspicion of an act, and the first that is taken back."""
        since = when(self._world.now - scene.began)
        for member in self._world.live():
            now = self._watcher.suspects[member.id][-1][1]
            before = scene.suspects[member.id]
            missed = [other for other in now if other not in before]
            if missed and "suspicion" not in scene.told:
                patience = self._detector.timeout
                text = (
                    f"{since} later member {member.id} is the first to suspect {both(missed)}: "
                    f"no heartbeat for T + D = {patience:g}."
                )
                self._cue(scene, text, "suspicion")
            back = [other for other in before if other not in now]
            if back and "trust" not in scene.told:
                who = both(back)
                text = f"{since} later member {member.id} is the first to hear from {who} again."
                self._cue(scene, text, "trust")

    def _cue(self, scene: _Scene, text: str, kind: str) -> None:
        scene.told.add(kind)
        scene.cues.append(Cue(self._world.now, text, kind))

    def _close(self, scene: _Scene, settled: float | None) -> SimulatedAct:
        now = self._world.now
        after = self._leading()
        sent = self._sent()
        best = all(leader == max(self._side_of(leader)) for leader in after)
        leaders = [self._world.members[leader] for leader in after]
        two = self._watcher.two_leaders(scene.began, now)
        text, verdict = self._judge(scene, settled, after, best, two)
        end = now if settled is None else max(settled, scene.cues[-1].t)
        scene.cues.append(Cue(end, text, "end"))
        return SimulatedAct(
            name=scene.name,
            what=scene.what,
            began=scene.began,
            ended=now,
            settled=settled,
            before=scene.before,
            after=after,
            term=leaders[0].election.term if len(leaders) == 1 else None,
            best=best,
            messages={
                kind: count - scene.sent.get(kind, 0)
                for kind, count in sent.items()
                if count > scene.sent.get(kind, 0)
            },
            heartbeats=self._beats() - scene.beats,
            lost=0,  # set when the trace is read
            two_leaders=two,
            verdict=verdict,
            cues=tuple(scene.cues),
        )

    def _judge(
        self,
        scene: _Scene,
        settled: float | None,
        after: tuple[MemberId, ...],
        best: bool,
        two: float,
    ) -> tuple[str, str]:
        """The last sentence of an act, and its result in a few words."""
        guarantee = self._kind.about.guarantee.value
        live = len(self._world.live())
        if settled is None:
            others = [
                member
                for member, leader in beliefs(self._world).items()
                if leader not in after or leader is None
            ]
            text = "No agreement: nobody leads"
            if after:
                text = f"No agreement: {both(after)} {'leads' if len(after) == 1 else 'all lead'}"
            text += f", and {listed(others)} know no living leader." if others else "."
            return text, NONE
        took = when(settled - scene.began)
        terms = [f"{leader} (term {self._world.members[leader].election.term})" for leader in after]
        if len(after) > 1:
            text = f"{took} later each side has a leader: {' and '.join(terms)}. "
            text += f"Two leaders: this protocol is {guarantee.upper()}."
            return text, TWO
        text = f"All {live} agree after {took}: member {terms[0]} leads."
        if two:
            text += f" For {when(two)} of that, two led at once."
        elif not best:
            text += " It is not the best alive."
        return text, ONE if best else NOT_BEST

    # The state of the group

    def _agreed(self) -> bool:
        """Whether every member holds a live leader that it can reach, the same on each side."""
        held = beliefs(self._world)
        for side in self._cuts[-1][1] or (tuple(self._ids),):
            live = [member for member in side if member in held]
            leader = held[live[0]] if live else None
            if leader not in live or any(held[member] != leader for member in live):
                return False
        return True

    def _leading(self) -> tuple[MemberId, ...]:
        """Live members that take themselves for the leader, the best first."""
        return tuple(reversed(self._watcher.leading[-1][1]))

    def _leader(self) -> MemberId:
        """The leader; with none or several, the best of them or of the live members."""
        leading = self._leading()
        return leading[0] if leading else self._world.live()[-1].id

    def _named(self, member: MemberId) -> str:
        leading = self._leading()
        if member not in leading:
            return f"Member {member}"
        rank = "the leader" if len(leading) == 1 else f"one of {len(leading)} leaders"
        return f"Member {member}, {rank},"

    def _side_of(self, member: MemberId) -> list[MemberId]:
        sides = self._cuts[-1][1] or (tuple(self._ids),)
        side = next(side for side in sides if member in side)
        return [other for other in side if self._world.members[other].up]

    def _sent(self) -> dict[str, int]:
        return {
            kind_of(kind): count
            for kind, count in self._world.sent.items()
            if kind.role is not Role.DETECTOR
        }

    def _beats(self) -> int:
        sent = self._world.sent.items()
        return sum(count for kind, count in sent if kind.role is Role.DETECTOR)

    def _draw_sides(self, leader: MemberId) -> Sides:
        """Split the circle: a third to a half of it with the leader, and the rest."""
        total = len(self._ids)
        size = total // 3 + self._dice.below(total // 2 - total // 3 + 1)
        first = leader - self._dice.below(size)
        arc = sorted((first + place - 1) % total + 1 for place in range(size))
        return tuple(arc), tuple(member for member in self._ids if member not in arc)


def _nothing() -> None:
    """Marks the end of a wait; does nothing."""


def _count_lost(act: SimulatedAct, flights: list[MessageFlight]) -> SimulatedAct:
    since = act.cues[0].t
    return replace(act, lost=sum(f.lost for f in flights if since <= f.left <= act.ended))


ONE = "one leader"
NOT_BEST = "not the best"  # one leader, but a better member is alive
TWO = "two leaders"
NONE = "no agreement"

Sides = tuple[tuple[MemberId, ...], ...]


@dataclass(frozen=True, slots=True)
class Cue:
    """A sentence of the story, with its time; `kind` says at which point of the act it stands."""

    t: float
    text: str
    kind: str  # "opening", "suspicion", "trust", "end"


@dataclass(frozen=True, slots=True)
class SimulatedAct:
    """What happened in one act, and what it cost."""

    name: str
    what: str  # what happened, in a few words
    began: float
    ended: float
    settled: float | None  # when the last member agreed; None: not all did
    before: tuple[MemberId, ...]  # who led before
    after: tuple[MemberId, ...]
    term: int | None  # of the leader, if there is one
    best: bool  # whether each leader is the best live member that can be reached
    messages: dict[str, int]  # sent, by kind, without the detectors'
    heartbeats: int  # sent
    lost: int  # of the messages
    two_leaders: float  # for how long more than one live member led
    verdict: str
    cues: tuple[Cue, ...]

    @property
    def time(self) -> float | None:
        """From the cause until all agreed."""
        return None if self.settled is None else self.settled - self.began


@dataclass(frozen=True, slots=True)
class Play:
    """A finished run: its acts, and the recording."""

    kind: type[Election]
    members: int
    seed: int
    detector: HeartbeatConfig
    acts: tuple[SimulatedAct, ...]
    watcher: Watcher
    flights: tuple[MessageFlight, ...]  # of the protocol's messages, by sending
    beats: tuple[MessageFlight, ...]  # of the detectors'
    cuts: tuple[tuple[float, Sides], ...]  # the sides since each time; none: no partition
