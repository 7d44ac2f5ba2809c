"""Watcher and flights: states, suspicions, who led, and what became of each message."""

from __future__ import annotations

from io import BytesIO

from hustings.core.choice import Candidate, HighestId
from hustings.core.messages import Role
from hustings.core.outcome import Elected, NoLeader
from hustings.demo.simulated.watch import (
    ARRIVED,
    UNDER_WAY,
    WAITED,
    MemberState,
    MessageFlight,
    Watcher,
    flights_of,
)
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.sim.delay import Fixed
from hustings.sim.faults import Crash, Partition, Pause, Restart, Resume
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.trace_read import read_stream
from hustings.sim.world import World
from tests.unit.demo.deaf import Deaf, ShoutMsg


class Filmed:
    """A world of members that decide nothing, watched and traced."""

    def __init__(self, members: int, detector: HeartbeatConfig | None = None) -> None:
        ids = list(range(1, members + 1))
        self._out = BytesIO()
        self._tracer = Tracer(Header(protocol="deaf", members=ids, seed=0), self._out)
        self._detector = detector
        self.watcher = Watcher(ids)
        self.world = World(
            self._make,
            [Candidate(member) for member in ids],
            network=Network(delay=Fixed(1.0)),
            tracer=self._tracer,
        )
        self.world.watch(self.watcher)

    def _make(self) -> Deaf | DetectorLayer:
        election = Deaf(Deaf.Settings(), HighestId())
        return DetectorLayer(election, Detector(self._detector)) if self._detector else election

    def run(self, until: float) -> None:
        self.world.at(until, lambda: None)  # time passes also where nothing happens
        self.world.run(until=until)

    def declare(self, t: float, member: int, outcome: Elected | NoLeader) -> None:
        self.run(until=t)
        self.world.members[member].declare(outcome)

    def flights(self) -> list[MessageFlight]:
        self._tracer.close(self.world.now, "stopped")
        self._out.seek(0)
        return flights_of(read_stream(self._out), {"SHOUT": Role.ELECTION}, 1.0)


def test_a_message_flies_from_its_send_to_its_arrival() -> None:
    filmed = Filmed(2)
    filmed.world.start()
    filmed.run(2.0)
    filmed.world.members[1].send(2, ShoutMsg())
    filmed.run(5.0)
    assert filmed.flights() == [MessageFlight("SHOUT", Role.ELECTION, 1, 2, 2.0, 3.0, ARRIVED)]


def test_a_multicast_is_a_flight_to_everybody_it_reached_or_missed() -> None:
    filmed = Filmed(3)
    filmed.world.start()
    cut = Partition(sides=((1, 2), (3,)))
    cut.prepare(filmed.world)
    cut.happen(filmed.world)
    filmed.world.members[1].multicast(ShoutMsg())
    filmed.run(5.0)
    flights = sorted((each.to, each.fate, each.lost) for each in filmed.flights())
    assert flights == [(2, ARRIVED, False), (3, "cut", True)]


def test_a_message_to_the_dead_is_lost_where_it_would_have_arrived() -> None:
    filmed = Filmed(2)
    filmed.world.start()
    filmed.world.members[1].send(2, ShoutMsg())
    Crash(member=2).happen(filmed.world)
    filmed.run(5.0)
    (flight,) = filmed.flights()
    assert (flight.ended, flight.fate, flight.lost) == (1.0, "crashed", True)


def test_a_message_to_one_that_stands_still_waits_there() -> None:
    filmed = Filmed(2)
    filmed.world.start()
    filmed.world.members[1].send(2, ShoutMsg())
    Pause(member=2).happen(filmed.world)
    filmed.run(5.0)
    Resume(member=2).happen(filmed.world)
    filmed.world.members[1].send(2, ShoutMsg())
    filmed.run(5.5)
    waited, flying = filmed.flights()
    assert (waited.ended, waited.fate, waited.lost) == (1.0, WAITED, False)
    assert (flying.ended, flying.fate, flying.lost) == (6.0, UNDER_WAY, False)


def test_a_pause_keeps_what_was_declared_and_a_crash_does_not() -> None:
    filmed = Filmed(2)
    world, watcher = filmed.world, filmed.watcher
    assert watcher.state(1) == MemberState()
    world.start()
    filmed.declare(1.0, 1, Elected(1, 1))
    Pause(member=1).happen(world)
    assert watcher.state(1) == MemberState(Status.PAUSED, 1, Elected(1, 1))
    assert watcher.leading[-1] == (1.0, ())
    Resume(member=1).happen(world)
    assert watcher.state(1).leader == 1
    Crash(member=1).happen(world)
    assert watcher.state(1) == MemberState(Status.CRASHED, 1)
    Restart(member=1).happen(world)
    assert watcher.state(1) == MemberState(Status.UP, 2)


def test_the_time_with_two_leaders_is_added_up() -> None:
    filmed = Filmed(3)
    filmed.world.start()
    filmed.declare(1.0, 1, Elected(1, 1))
    filmed.declare(2.0, 2, Elected(2, 2))
    filmed.declare(2.5, 3, Elected(2, 2))
    filmed.declare(3.0, 1, NoLeader("electing"))
    filmed.declare(4.0, 3, Elected(3, 3))
    watcher = filmed.watcher
    assert watcher.leading == [(0.0, ()), (1.0, (1,)), (2.0, (1, 2)), (3.0, (2,)), (4.0, (2, 3))]
    assert watcher.two_leaders(0.0, 4.5) == 1.0 + 0.5
    assert watcher.two_leaders(2.25, 2.75) == 0.5
    assert watcher.two_leaders(0.0, 2.0) == 0.0


def test_saying_the_same_again_is_no_change() -> None:
    filmed = Filmed(2)
    filmed.world.start()
    filmed.declare(1.0, 1, Elected(2, 1))
    filmed.declare(2.0, 1, Elected(2, 2))
    assert filmed.watcher.last_change == 1.0
    filmed.declare(3.0, 1, NoLeader("electing"))
    assert filmed.watcher.last_change == 3.0


def test_suspicions_are_read_off_the_detectors() -> None:
    filmed = Filmed(2, HeartbeatConfig())
    filmed.world.start(1)
    for instant in (4.875, 5.0, 5.125):
        filmed.run(instant)
        filmed.watcher.look(filmed.world)
    assert filmed.watcher.suspects[1] == [(0.0, ()), (5.0, (2,))]
    assert filmed.watcher.suspects[2] == [(0.0, ())]
