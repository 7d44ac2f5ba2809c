"""The lecture's chapter 15, "How to Detect Failure?", sentence by sentence.

The slide: p sends a heartbeat to q every T; q takes p for failed when none came for T + D; in a
synchronous system that is reliable, in an asynchronous one there may be false alarms and misses.
It gives no latency; specification section 0 does: more than D, at most T + 2D.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.lab.closed_forms import heartbeat as theory
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.sim.delay import Delay, Fixed, PerLink, Uniform
from hustings.sim.faults import (
    Crash,
    Happening,
    Heal,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    schedule,
)
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.queue import TICKS, on_grid
from tests.unit.layers.detector.listeners import Listening, Note

T, D = 1.0, 0.25
MOMENT = 1 / TICKS  # the simulated clock's smallest step
ABOVE, AT_MOST = float(theory.latency_above(T, D)), float(theory.latency_at_most(T, D))

PHASES = [step / 16 for step in range(16)]
DELAYS = [0.0, MOMENT, 0.0625, 0.125, 0.25]


def settings(pattern: str = "all-to-all", **more: object) -> HeartbeatConfig:
    return HeartbeatConfig.parse({"T": T, "D": D, "delta": D, "pattern": pattern, **more})


def accrual(pattern: str = "all-to-all", **more: object) -> AccrualConfig:
    return AccrualConfig.parse({"T": T, "D": D, "delta": D, "pattern": pattern, **more})


def lived(
    happenings: list[Happening],
    delay: Delay | Network,
    config: HeartbeatConfig | None = None,
    *,
    n: int = 2,
    until: float = 30.0,
    seed: int = 0,
) -> Listening:
    """A world of listeners after all that happened to it; heartbeats leave at 0, T, 2T, ..."""
    network = delay if isinstance(delay, Network) else Network(delay)
    world = Listening(n, config or settings(), network, seed=seed)
    schedule(world, happenings)
    world.run(until=until)
    return world


def latency(crash: Crash, at: float, delay: Delay, seed: int = 0) -> float:
    """From the crash of 2 at `at` to the suspicion of 1, which is the only one."""
    (note,) = lived([crash], delay, seed=seed).journal
    assert (note.who, note.what, note.about) == (1, "suspect", 2)
    return note.at - at


# Latency


def test_the_bounds_of_the_example() -> None:
    """Specification 0: T = 1 and D = 1/4 give latencies from 0.25 to 1.5."""
    assert (ABOVE, AT_MOST) == (0.25, 1.5)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("phase", PHASES)
def test_latency_is_what_the_last_heartbeat_leaves(phase: float, delay: float) -> None:
    """A crash at 5 + phase: the last heartbeat left at 5, or at 4 if the crash forestalls it."""
    last = 5.0 if phase else 4.0
    measured = latency(Crash(member=2, at=5.0 + phase), 5.0 + phase, Fixed(delay))
    assert measured == last + delay + T + D - (5.0 + phase)
    assert ABOVE < measured <= AT_MOST or (phase, delay, measured) == (0.0, 0.0, ABOVE)


@pytest.mark.parametrize("delay", DELAYS)
def test_latency_is_longest_right_after_a_heartbeat(delay: float) -> None:
    """T + 2D is reached: the heartbeat of 5 leaves, its sender dies, and it takes all of D."""
    crash = Crash(member=2, at=4.5, after_sends=1)
    assert latency(crash, 5.0, Fixed(delay)) == T + D + delay
    assert (latency(crash, 5.0, Fixed(delay)) == AT_MOST) == (delay == D)


def test_latency_is_shortest_right_before_a_heartbeat() -> None:
    """D is approached: the last heartbeat came at once, and the next was due a moment later."""
    crash = Crash(member=2, at=6.0 - MOMENT)
    assert on_grid(latency(crash, 6.0 - MOMENT, Fixed(0.0))) == on_grid(ABOVE + MOMENT)


@given(phase=st.floats(0.0, T), seed=st.integers(0, 2**32))
def test_latency_keeps_its_bounds_whatever_the_delays(phase: float, seed: int) -> None:
    at = 5.0 + round(phase / MOMENT) * MOMENT
    assert ABOVE < latency(Crash(member=2, at=at), at, Uniform(0.0, D), seed) <= AT_MOST


@pytest.mark.parametrize("crash", [0.0, 0.125, 1.0])
def test_latency_keeps_its_bounds_for_one_that_dies_at_the_start(crash: float) -> None:
    """At 0 it has sent its first heartbeat; its watcher has not heard one yet."""
    assert ABOVE < latency(Crash(member=2, at=crash), crash, Fixed(D)) <= AT_MOST


# Cost


@pytest.mark.parametrize("n", range(1, 10))
def test_messages_per_period(n: int) -> None:
    """Specification 0: ring N, leader to all N - 1, all to all N(N-1)."""
    expected = {
        "ring": theory.ring_messages(n),
        "leader-to-all": theory.leader_messages(n),
        "to-leader": theory.leader_messages(n),
        "all-to-all": theory.all_to_all_messages(n),
    }
    for pattern, count in expected.items():
        world = Listening(n, settings(pattern), Network(Fixed(D)), leader=n)
        world.run(until=5.5)
        assert world.beats(until=6.5) == count
        assert world.beats(until=16.5) == 10 * count
        assert not world.journal


@pytest.mark.parametrize("dead", [1, 2, 3])
def test_a_ring_with_dead_members_in_a_row(dead: int) -> None:
    """The heartbeats of the live and one more, and a question to each that was passed over."""
    crashes: list[Happening] = [Crash(member=3 + i, at=2.0) for i in range(dead)]
    world = lived(crashes, Fixed(D), settings("ring"), n=7, until=20.5)
    assert world.beats(until=21.5) == 7 - dead + 1
    assert world.questions(until=22.5) == dead


# Reliable failure detection for synchronous systems

SYNCHRONOUS = [Fixed(0.0), Fixed(D), Uniform(0.0, D)]
Make = Callable[..., HeartbeatConfig]
DETECTORS = [
    pytest.param(make, id=name) for name, make in (("heartbeat", settings), ("accrual", accrual))
]


def watchers_of(member: MemberId, pattern: str, n: int, dead: set[MemberId]) -> list[MemberId]:
    """Who notices a crash, of those that live on; member n leads."""
    live = [other for other in range(1, n + 1) if other not in dead]
    if pattern == "all-to-all":
        return live
    if pattern == "ring":
        return [max((o for o in live if o < member), default=live[-1])]
    if pattern == "leader-to-all":
        return live if member == n else []
    return [n] if member != n and n in live else []


@pytest.mark.parametrize("make", DETECTORS)
@pytest.mark.parametrize("pattern", ["all-to-all", "ring", "leader-to-all", "to-leader"])
@pytest.mark.parametrize("delay", SYNCHRONOUS, ids=str)
def test_complete_and_accurate(make: Make, pattern: str, delay: Delay) -> None:
    """Whoever watches the dead suspects them, once and for ever; nobody suspects the living."""
    for seed, dead in enumerate([{6}, {1}, {3}, {2, 5}, {1, 2, 4, 6}, {1, 2, 3, 4, 5}]):
        world = Listening(6, make(pattern=pattern), Network(delay), leader=6, seed=seed)
        schedule(world, [Crash(member=m, at=20.0 + m / 8) for m in sorted(dead)])
        world.run(until=20.0)
        assert not world.journal
        world.run(until=60.0)
        assert all(note.what == "suspect" and note.about in dead for note in world.journal)
        for member in dead:
            suspecting = {note.who for note in world.suspicions(member)} - dead
            assert suspecting == set(watchers_of(member, pattern, 6, dead))


@pytest.mark.parametrize("dead", [{3}, {3, 4}, {3, 4, 5}])
def test_a_ring_notices_members_in_a_row_one_after_the_other(dead: set[MemberId]) -> None:
    """The first as soon as anybody; each further one T + 2D later, having been asked in vain."""
    crashes: list[Happening] = [Crash(member=m, at=5.5) for m in sorted(dead)]
    world = lived(crashes, Fixed(D), settings("ring"), n=6)
    assert world.journal == [
        Note(6.5 + i * AT_MOST, 2, "suspect", m) for i, m in enumerate(sorted(dead))
    ]


@pytest.mark.parametrize("phase", PHASES)
def test_a_repaired_ring_keeps_the_bounds(phase: float) -> None:
    """3 is dead and 2 watches 4, which dies later: again more than D and at most T + 2D."""
    at = 15.0 + phase
    crashes: list[Happening] = [Crash(member=3, at=5.0), Crash(member=4, at=at)]
    for delay in SYNCHRONOUS[1:]:
        world = lived(crashes, delay, settings("ring"), n=6)
        (note,) = world.suspicions(4)
        assert note.who == 2
        assert ABOVE < note.at - at <= AT_MOST


def test_a_member_that_stands_still_no_longer_than_the_margin_is_not_suspected() -> None:
    naps: list[Happening] = [Pause(member=2, at=5.0), Resume(member=2, at=5.0 + D)]
    assert lived(naps, Fixed(0.0)).journal == []
    assert lived(naps, Fixed(MOMENT)).journal == []


# Asynchronous systems: inaccurate (false alarms) and incomplete (misses)


def test_false_alarm_when_a_heartbeat_is_lost() -> None:
    """One heartbeat, that of 5, is lost: the timer runs out at 4 + d + T + D, 6 + d is too late."""
    cut: list[Happening] = [
        OneWay(senders=(2,), to=(1,), at=4.75),
        Heal(name="one-way", at=5.75),
    ]
    assert lived(cut, Fixed(0.125)).journal == [
        Note(5.375, 1, "suspect", 2),
        Note(6.125, 1, "alive", 2),
    ]


def test_false_alarm_when_a_heartbeat_is_late() -> None:
    """The first may take T + D; one that takes longer finds its sender suspected."""
    late = Network(PerLink({(2, 1): T + D + MOMENT}, otherwise=D))
    assert lived([], late).journal == [
        Note(T + D, 1, "suspect", 2),
        Note(T + D + MOMENT, 1, "alive", 2),
    ]
    just_in_time = Network(PerLink({(2, 1): T + D}, otherwise=D))
    assert lived([], just_in_time).journal == []


def test_a_miss_while_heartbeats_of_the_dead_are_under_way() -> None:
    """Delays beyond D hide a crash for longer than T + 2D."""
    world = lived([Crash(member=2, at=5.5)], Fixed(4.0), until=5.5 + AT_MOST)
    assert [note for note in world.journal if note.who == 1] == [
        Note(T + D, 1, "suspect", 2),  # before the first one came
        Note(4.0, 1, "alive", 2),
    ]
    world.run(until=30.0)
    assert world.journal[-1] == Note(5.0 + 4.0 + T + D, 1, "suspect", 2)


def test_a_miss_when_a_straggler_of_the_dead_arrives() -> None:
    """A heartbeat that was held back takes a right suspicion back, until its own time is up."""
    network = Network(Fixed(0.125), reorder=0.5, hold_back=8.0)
    missed = 0
    for seed in range(10):
        world = lived([Crash(member=2, at=10.5)], network, seed=seed)
        told = [note for note in world.journal if note.who == 1]
        assert told[-1].what == "suspect"
        before = [note for note in told if note.what == "suspect" and note.at > 10.5 + D]
        missed += len(before) > 1
    assert missed


@pytest.mark.parametrize("make", DETECTORS)
def test_loss_makes_false_alarms_and_the_next_heartbeat_takes_them_back(
    make: Make,
) -> None:
    lossy = Network(Fixed(0.125), Uncorrelated(0.3))
    world = lived([], lossy, make(), n=4, until=200.0)
    suspicions = [note for note in world.journal if note.what == "suspect"]
    assert len(suspicions) > 10
    for member in range(1, 5):
        for other in range(1, 5):
            told = [n.what for n in world.journal if (n.who, n.about) == (member, other)]
            assert told == ["suspect", "alive"] * (len(told) // 2) + ["suspect"] * (len(told) % 2)


def test_the_accrual_detector_learns_to_bear_loss() -> None:
    """The fixed timer cries wolf at every lost heartbeat; the estimate widens after a few."""
    lossy = Network(Fixed(0.125), Uncorrelated(0.1))
    plain = lived([], lossy, settings(), n=4, until=400.0)
    learnt = lived([], lossy, accrual(), n=4, until=400.0)
    assert len(learnt.journal) < len(plain.journal) / 5
    schedule(learnt, [Crash(member=1, at=400.0)])
    learnt.run(until=420.0)
    assert {note.who for note in learnt.suspicions(1) if note.at > 400.0} == {2, 3, 4}


# Suspicions taken back


@pytest.mark.parametrize("pattern", ["all-to-all", "ring"])
@pytest.mark.parametrize("make", DETECTORS)
def test_a_partition_divides_and_its_end_reconciles(make: Make, pattern: str) -> None:
    cut: list[Happening] = [
        Partition(sides=((1, 2), (3, 4, 5)), at=20.0),
        Heal(at=40.0),
    ]
    world = lived(cut, Uniform(0.0, D), make(pattern=pattern), n=5, until=39.0)
    suspected = {(note.who, note.about) for note in world.journal}
    across = {(one, two) for one in (1, 2) for two in (3, 4, 5)}
    across |= {(two, one) for one, two in across}
    assert suspected == (across if pattern == "all-to-all" else suspected & across)
    assert {1, 2} & {who for who, _ in suspected}
    assert {3, 4, 5} & {who for who, _ in suspected}
    world.run(until=50.0)
    back = {(note.who, note.about) for note in world.journal if note.what == "alive"}
    assert back == suspected
    before = len(world.journal)
    world.run(until=80.0)
    assert len(world.journal) == before


@pytest.mark.parametrize("pattern", ["all-to-all", "ring"])
def test_a_restarted_member_is_trusted_again(pattern: str) -> None:
    happenings: list[Happening] = [
        Crash(member=3, at=5.5),
        Crash(member=4, at=5.5),
        Restart(member=4, at=15.25),
        Restart(member=3, at=20.25),
    ]
    world = lived(happenings, Fixed(0.125), settings(pattern), n=5)
    watchers = [2] if pattern == "ring" else [1, 2, 5]
    for member, returned in ((3, 20.25), (4, 15.25)):
        told = [n for n in world.journal if n.about == member and n.who in watchers]
        assert sorted({note.who for note in told}) == watchers
        alive = [note.at for note in told if note.what == "alive"]
        assert len(alive) == len(watchers)
        # A ring's watcher must ask whom it has passed over; in both cases it takes no period more.
        assert all(returned < at <= returned + T + 2 * D for at in alive)


def test_one_that_was_paused_suspects_nobody_whose_heartbeats_waited() -> None:
    """On waking it reads what came before it looks at its timers."""
    naps: list[Happening] = [Pause(member=1, at=5.0), Resume(member=1, at=15.0)]
    world = lived(naps, Fixed(0.125))
    assert [note for note in world.journal if note.who == 1] == []
    assert [note.what for note in world.journal if note.who == 2] == ["suspect", "alive"]
