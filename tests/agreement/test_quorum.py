"""Leases by majority: the closed forms set against what the simulator counts."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from statistics import fmean, stdev

import pytest

from hustings.core.choice import MemberId
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Elected, Outcome
from hustings.lab.closed_forms import quorum as theory
from hustings.quorum.election import Quorum
from hustings.sim.experiment import Description, build
from hustings.sim.faults import Crash, Leave
from hustings.sim.member import SimContext
from hustings.sim.play import prepare
from hustings.sim.world import World
from tests.unit.cli.commands import Hustings, in_process

TTL = 30
BACKOFF = 3_000.0  # so long that no two members ask within a round trip of each other
PERIOD = TTL / 3


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)


class Watch:
    """Notes every message, and who begins to hold whom."""

    def __init__(self) -> None:
        self.sent_at: list[tuple[float, MemberId, str]] = []
        self.held_at: list[tuple[float, MemberId, MemberId]] = []

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        self.sent_at.append((world.now, member.id, kind_of(type(message))))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected):
            self.held_at.append((world.now, member.id, outcome.leader))

    def changed(self, world: World, member: SimContext) -> None:
        """Who comes or goes is known."""


class Group:
    """A group that has had one leader for a while, at the instant of its last renewal's multicast.

    Nothing else is on its way then.
    """

    def __init__(self, v: int, members: int, seed: int = 1, **more: float) -> None:
        settings = {"voters": v, "backoff": BACKOFF, "ttl": TTL, **more}
        described = Description(kind=Quorum, members=members, settings=settings, seed=seed)
        self.v = v
        self.world = prepare(build(described), 0)
        self.watch = Watch()
        self.world.listen_in(self.watch)
        self.world.watch(self.watch)
        self.world.run()  # until all have heard the leader
        self.leader = self.watch.held_at[-1][2]
        self.world.run(until=self.world.now + 4 * PERIOD)
        words = [at for at, who, kind in self.watch.sent_at if kind == "LEASE-HELD"]
        self.world.run(until=words[-1] + PERIOD)
        self.watch.sent_at.clear()

    def lease(self, member: MemberId, retry: float = 3.0) -> theory.LeaseSetting:
        """Where this member asks, and the first leader may be dead."""
        dead = 0 if self.world.members[self.leader].up else int(self.leader <= self.v)
        return theory.LeaseSetting(
            v=self.v,
            down=dead,
            voter=member <= self.v,
            retry=Fraction(retry),
            ttl=TTL,
            backoff=Fraction(BACKOFF),
        )

    def next_lease(self) -> tuple[MemberId, float, float, float]:
        """Who asks next, when it asks, when it holds, and when all do."""
        start, live = self.world.now, len(self.world.live())
        held: list[tuple[float, MemberId, MemberId]] = []
        while len(held) < live:
            assert self.world.now < start + BACKOFF + 4 * TTL, "nobody leads again"
            self.world.run(until=self.world.now + 1.0)
            held = [each for each in self.watch.held_at if each[0] > start]
        self.world.run(until=held[-1][0] + 2.5)  # the last answers to repeated questions
        asked = [each for each in self.watch.sent_at if each[2] == "Q-PREPARE"]
        assert len({who for _, who, _ in asked}) == 1, "two have asked: no case for these forms"
        return asked[0][1], asked[0][0], held[0][0], held[-1][0]


GROUPS = [(3, 3), (3, 6), (5, 6), (7, 8)]


@pytest.mark.parametrize("v, members", GROUPS)
@pytest.mark.parametrize("retry", [3.0, 4.0, 2.0, 0.5, 0.25])
def test_a_lease_after_a_crash(v: int, members: int, retry: float) -> None:
    group = Group(v, members, retry=retry)
    Crash(member=group.leader).happen(group.world)
    who, asked, held, known = group.next_lease()
    lease = group.lease(who, retry)
    said = [kind for at, _, kind in group.watch.sent_at if at >= asked]
    assert len(said) == theory.acquisition_messages(lease)
    assert said.count("LEASE-HELD") == 1 + theory.repeats(lease)[1]
    assert held - asked == pytest.approx(theory.acquisition_time(lease))
    assert known - held == pytest.approx(1)


@pytest.mark.parametrize("v, members", [*GROUPS, (1, 4)])
def test_renewals(v: int, members: int) -> None:
    group = Group(v, members)
    group.world.run(until=group.world.now + 20 * PERIOD - 0.5)
    lease = group.lease(group.leader)
    words = [at for at, _, kind in group.watch.sent_at if kind == "LEASE-HELD"]
    asked = [at for at, _, kind in group.watch.sent_at if kind == "Q-ACCEPT"]
    assert len(group.watch.sent_at) == 19 * theory.renewal_messages(lease) + lease.pair
    assert words[1] - words[0] == pytest.approx(PERIOD)
    assert words[0] - asked[0] == pytest.approx(theory.renewal_time(lease))
    rate = theory.renewal_messages(lease) / (words[1] - words[0])
    assert rate == pytest.approx(float(theory.renewal_rate(lease)))


@pytest.mark.parametrize("since", [0.0, 3.0, 7.9])
@pytest.mark.parametrize("v, members", GROUPS)
def test_how_long_nobody_leads(v: int, members: int, since: float) -> None:
    """The wait of the first follower is taken from the run; all else is the form's."""
    group = Group(v, members)
    word = group.world.now
    group.world.run(until=word + since)
    Crash(member=group.leader).happen(group.world)
    crashed = group.world.now
    who, asked, held, _ = group.next_lease()
    lease = group.lease(who)
    wait = asked - word - 1 - float(lease.outlasted)
    assert 0 <= wait <= BACKOFF
    expected = theory.failover_time(lease, Fraction(since), Fraction(wait))
    assert held - crashed == pytest.approx(float(expected), abs=1e-6)


def test_the_wait_is_the_shortest_of_k() -> None:
    """5 followers, 120 runs, within 4 standard errors."""
    waits = []
    for seed in range(120):
        group = Group(3, 6, seed, backoff=60.0)
        word = group.world.now
        Crash(member=group.leader).happen(group.world)
        while not (asked := [at for at, _, k in group.watch.sent_at if k == "Q-PREPARE"]):
            assert group.world.now < word + 60.0 + 2 * TTL
            group.world.run(until=group.world.now + 1.0)
        waits.append(asked[0] - word - 1 - float(theory.LeaseSetting(ttl=TTL).outlasted))
    lease = theory.LeaseSetting(ttl=TTL, backoff=60, k=5)
    mean = theory.failover_mean(lease) - theory.failover_time(lease, Fraction(4), 0)
    assert abs(fmean(waits) - float(mean)) <= 4 * stdev(waits) / sqrt(len(waits))


@pytest.mark.parametrize("v, members", GROUPS)
def test_a_leader_that_resigns(v: int, members: int) -> None:
    """The others ask after one delay and a random time: no lease is waited for."""
    group = Group(v, members)
    lease = group.lease(group.leader)
    Leave(member=group.leader).happen(group.world)
    assert len(group.watch.sent_at) == theory.resignation_messages(lease)
    left = group.world.now
    _, asked, _, _ = group.next_lease()
    assert left + 1 <= asked <= left + 1 + BACKOFF


def test_the_command_prints_them(hustings: Hustings) -> None:
    told = json.loads(hustings("theory", "quorum", "--set", "v=5", "--set", "down=1", "--json").out)
    lease = theory.LeaseSetting(v=5, down=1)
    assert told["corrected"]["acquisition_messages"] == theory.acquisition_messages(lease)
    assert told["params"]["voter"] is False


@pytest.mark.parametrize(
    "setting, complaint",
    [
        ("v=4", "v must be 1, 3, 5 or 7, not 4"),
        ("down=2", "down must be a minority of v = 3"),
        ("retry=0", "retry must be above 0"),
        ("ttl=5", "ttl must be at least three round trips, 6, not 5"),
        ("voter=maybe", "voter must be true or false"),
        ("n=4", "unknown setting 'n'"),
    ],
)
def test_a_bad_setting_gets_a_sentence(hustings: Hustings, setting: str, complaint: str) -> None:
    assert complaint in hustings("theory", "quorum", "--set", setting).complaint
