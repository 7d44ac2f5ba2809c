"""Members that sleep or are overloaded: whom they suspect, with local health and without."""

from __future__ import annotations

from collections import deque
from math import comb

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message
from hustings.core.streams import Stream, derive
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import HeartbeatConfig, HeartbeatMsg, WatchMsg
from hustings.layers.detector.layer import with_detector
from hustings.sim.delay import Uniform
from hustings.sim.faults import Crash, Happening, Heal, OneWay, Pause, Resume, schedule
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.testing.recorded import RecordedMember, view_of
from tests.unit.layers.detector.listeners import Listener, Listening, Note, people, under_watch

T, D = 1.0, 0.25
LEADER, SLEEPER = 5, 2
CONFIGS = [
    pytest.param(HeartbeatConfig, "normal", id="heartbeat"),
    pytest.param(AccrualConfig, "normal", id="accrual"),
    pytest.param(AccrualConfig, "peak", id="peak"),
]


def settings(kind: type[HeartbeatConfig], tail: str, **more: object) -> HeartbeatConfig:
    chosen: dict[str, object] = {"tail": tail} if kind is AccrualConfig else {}
    chosen |= {"T": T, "D": D, "delta": D, "pattern": "leader-to-all"}
    return kind.parse({**chosen, **more})


def latest(tail: str) -> float:
    """From a crash to its suspicion, at most: the patience that is learnt here, and D."""
    return T + (4 if tail == "peak" else 2) * D + D  # delays of up to D, times the safety


def lived(config: HeartbeatConfig, happenings: list[Happening], seed: int) -> Listening:
    world = Listening(5, config, Network(Uniform(0.0, D)), leader=LEADER, seed=seed)
    schedule(world, happenings)
    world.run(until=60.0)
    return world


def suspended(seed: int) -> list[Happening]:
    """Member 2's machine is suspended, and nothing is kept for it meanwhile."""
    stream = Stream(derive(seed, "sleep"))
    start = stream.uniform(15.0, 16.0)
    end = start + stream.uniform(2 * (T + D), 20.0)
    return [
        OneWay(senders=(LEADER,), to=(SLEEPER,), at=start),
        Pause(member=SLEEPER, at=start),
        Heal(name="one-way", at=end),
        Resume(member=SLEEPER, at=end),
    ]


@pytest.mark.parametrize("kind, tail", CONFIGS)
def test_who_wakes_from_a_sleep_suspects_nobody_wrongly(
    kind: type[HeartbeatConfig], tail: str
) -> None:
    careless = 0
    for seed in range(40):
        world = lived(settings(kind, tail), suspended(seed), seed)
        assert world.journal == []
        careless += bool(lived(settings(kind, tail, health_max=1), suspended(seed), seed).journal)
    assert careless > 20  # without health most of these sleeps end in a false alarm


@pytest.mark.parametrize("kind, tail", CONFIGS)
def test_a_sleep_is_forgotten(kind: type[HeartbeatConfig], tail: str) -> None:
    """Twenty periods after the last lateness patience is what it was, also what was learnt."""
    for seed in range(10):
        sleep = [*suspended(seed), Crash(member=LEADER, at=55.0)]
        world = lived(settings(kind, tail, health_half=2.0), sleep, seed)
        noted = [note.at for note in world.journal if note.who == SLEEPER]
        assert len(noted) == 1
        assert 55.0 + D < noted[0] <= 55.0 + latest(tail)
        assert under_watch(world, SLEEPER).detector.health < 1.01


@pytest.mark.parametrize("kind, tail", CONFIGS)
def test_a_leader_that_is_paused_is_suspected_in_time_and_taken_back(
    kind: type[HeartbeatConfig], tail: str
) -> None:
    for seed in range(20):
        pause = 20.0 + seed / 20
        plan: list[Happening] = [Pause(member=LEADER, at=pause), Resume(member=LEADER, at=30.0)]
        world = lived(settings(kind, tail), plan, seed)
        suspicions = [note for note in world.journal if note.what == "suspect"]
        assert [note.who for note in sorted(suspicions, key=lambda note: note.who)] == [1, 2, 3, 4]
        assert all(note.at <= pause + latest(tail) for note in suspicions)
        returns = [note for note in world.journal if note.what == "alive"]
        assert sorted(note.who for note in returns) == [1, 2, 3, 4]
        assert all(30.0 <= note.at <= 30.0 + 2 * D for note in returns)
        assert all(under_watch(world, member).detector.health == 1.0 for member in range(1, 5))


@pytest.mark.parametrize("kind, tail", CONFIGS)
def test_a_crash_that_was_slept_through_is_noticed_after_the_waking(
    kind: type[HeartbeatConfig], tail: str
) -> None:
    config = settings(kind, tail)
    for seed in range(20):
        plan = [*suspended(seed), Crash(member=LEADER, at=16.0)]
        world = lived(config, plan, seed)
        woken = max(happening.at for happening in plan)
        (note,) = [note for note in world.journal if note.who == SLEEPER]
        assert note.at <= woken + (config.health_max + 1) * (T + 2 * D)


def test_clocks_that_drift_are_no_lateness() -> None:
    config = settings(HeartbeatConfig, "", D=2 * D)
    world = Listening(5, config, Network(Uniform(0.0, D)), leader=LEADER)
    for member in world.live():
        member.keep_time(1.0 + (member.id - 3) / 20, member.id * 100.0)
    world.run(until=200.0)
    assert world.journal == []
    assert all(under_watch(world, member.id).detector.health == 1.0 for member in world.live())


# An overloaded event loop


class Loop:
    """One member behind a socket: a turn of its loop reads one datagram, then fires timers.

    The leader beats every T, others talk as well, and the loop is kept from running now and then.
    """

    def __init__(self, config: HeartbeatConfig, seed: int) -> None:
        self.journal: list[Note] = []
        self.stream = Stream(derive(seed, "loop"))
        self.member = RecordedMember(
            with_detector(lambda: Listener(self.journal), config), Candidate(2), view_of(people(3))
        )
        self.member.start()
        self.member.assume_leader(3)
        self.socket: deque[tuple[MemberId, Message]] = deque()

    def run(self, until: float, leader_dies: float = float("inf")) -> None:
        now, beats, talk = 0.0, 0, 0.0
        while now < until:
            stalled = self.stream.random() < 0.01
            now += self.stream.uniform(0.5, 2.5) if stalled else self.stream.uniform(0.0, 0.1)
            arrivals: list[tuple[float, MemberId, Message]] = []
            while beats * T <= min(now, leader_dies):
                beats += 1
                arrivals.append((beats * T - T, 3, HeartbeatMsg(1, beats)))
            while talk <= now:
                arrivals.append((talk, 1, WatchMsg()))
                talk += self.stream.uniform(0.1, 0.4)
            arrivals.sort(key=lambda arrival: arrival[0])
            self.socket.extend((sender, message) for _, sender, message in arrivals)
            self.turn(now)

    def turn(self, now: float) -> None:
        member = self.member
        member.clock = now
        if self.socket:
            member.deliver(*self.socket.popleft())
        for key in [key for key, armed in member.timers.items() if armed.deadline <= now]:
            if key in member.timers and member.timers[key].deadline <= now:
                member.fire(key)


def false_alarms(config: HeartbeatConfig, seeds: range) -> list[int]:
    found = []
    for seed in seeds:
        loop = Loop(config, seed)
        loop.run(200.0)
        found.append(sum(note.what == "suspect" for note in loop.journal))
    return found


@pytest.mark.parametrize("kind, tail", CONFIGS)
def test_an_overloaded_member_cries_wolf_less_often(kind: type[HeartbeatConfig], tail: str) -> None:
    """Sign test over 30 seeds, level 0.001 for each of three detectors."""
    seeds = range(30)
    careful = false_alarms(settings(kind, tail), seeds)
    careless = false_alarms(settings(kind, tail, health_max=1), seeds)
    pairs = list(zip(careful, careless, strict=True))
    wins, losses = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    chance = sum(comb(wins + losses, k) for k in range(losses + 1)) / 2 ** (wins + losses)
    assert chance < 0.001, (careful, careless)
    assert 3 * sum(careful) < sum(careless)


def test_an_overloaded_member_still_notices_a_crash() -> None:
    config = settings(HeartbeatConfig, "")
    for seed in range(20):
        loop = Loop(config, seed)
        loop.run(100.0, leader_dies=50.0)
        assert any(note.what == "suspect" for note in loop.journal)
        assert [note.what for note in loop.journal if note.about == 3][-1] == "suspect"


# Asking before suspecting


def test_a_question_is_worth_more_than_the_same_time_spent_waiting() -> None:
    """With 2 % loss and the same time from silence to suspicion; level 0.001, sign test."""
    network = Network(Uniform(0.0, 0.1), Uncorrelated(0.02))
    waiting: list[int] = []
    asking: list[int] = []
    for seed in range(30):
        for found, more in (
            (waiting, {"D": 0.5}),
            (asking, {"D": 0.25, "ping_timeout": 0.25}),
        ):
            chosen = settings(HeartbeatConfig, "", **more)
            world = Listening(5, chosen, network, leader=LEADER, seed=seed)
            world.run(until=200.0)
            found.append(sum(note.what == "suspect" for note in world.journal))
    pairs = list(zip(asking, waiting, strict=True))
    wins, losses = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    chance = sum(comb(wins + losses, k) for k in range(losses + 1)) / 2 ** (wins + losses)
    assert chance < 0.001, (asking, waiting)
    assert 5 * sum(asking) < sum(waiting)
