"""Election by consensus: who asks when, whom the others follow, and its settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate, HighestId
from hustings.core.config import Surroundings
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, Guarantee
from hustings.layers.lease import END, LeaseHeldMsg
from hustings.protocols.registry import find
from hustings.quorum.election import STAND, Quorum, QuorumElectionConfig, ResignMsg
from hustings.quorum.messages import AvailableMsg
from hustings.sim.checkers import agreed_leader, attach
from hustings.sim.faults import Crash, Happening, Heal, Leave, Partition, Pause, Restart, Resume
from hustings.sim.faults import schedule as plan
from hustings.sim.safety import Tokens, Windows
from hustings.sim.world import Ended, World
from hustings.testing.recorded import RecordedMember, view_of

ME, GROUP = Candidate(4), [Candidate(each) for each in range(1, 6)]


def test_it_is_in_the_catalogue_and_promises_a_lease() -> None:
    assert find("quorum") is Quorum
    assert Quorum.about.guarantee is Guarantee.LEASED


@pytest.mark.parametrize(
    "settings, why",
    [
        ({"voters": 4}, "1, 3, 5 or 7 voters, not 4"),
        ({"voters": 9}, "voters must be"),
        ({"ttl": 5.0}, "three round trips"),
        ({"ttl": 20.0, "max_ttl": 10.0}, "max_ttl=10"),
        ({"backoff": float("inf")}, "backoff must be finite"),
        ({"drift": 0.9}, "too short to renew in"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        QuorumElectionConfig.parse(settings)


def test_a_small_group_has_one_voter() -> None:
    assert QuorumElectionConfig.for_group(2, Surroundings()) == {"voters": 1}
    assert QuorumElectionConfig.for_group(3, Surroundings()) == {}


# One member


def member() -> RecordedMember:
    made = RecordedMember(lambda: Quorum(QuorumElectionConfig(), HighestId()), ME, view_of(GROUP))
    made.start()
    return made


def test_it_asks_after_a_random_wait() -> None:
    armed = member().timers
    assert list(armed) == [STAND]
    assert 0.0 <= armed[STAND].deadline <= 8.0


def test_whom_a_majority_confirmed_it_follows_for_one_lease() -> None:
    it = member()
    it.deliver(2, LeaseHeldMsg(2, 7))
    assert it.outcome == Elected(2, 7)
    assert 30.0 <= it.timers[STAND].deadline <= 38.1
    it.clock = 20.0
    it.deliver(2, LeaseHeldMsg(2, 7))
    assert it.timers[STAND].deadline >= 50.0, "every renewal counts"


def test_an_older_leader_is_not_followed() -> None:
    it = member()
    it.deliver(2, LeaseHeldMsg(2, 7))
    before = it.timers[STAND].deadline
    it.clock = 20.0
    it.deliver(3, LeaseHeldMsg(3, 6))
    assert it.outcome == Elected(2, 7)
    assert it.timers[STAND].deadline == before


@pytest.mark.parametrize(
    "happens",
    [
        lambda it: it.suspect(2),
        lambda it: it.deliver(2, ResignMsg(7)),
        lambda it: it.deliver(1, AvailableMsg(0, 7)),
    ],
    ids=["it is suspected", "it resigns", "a voter says so"],
)
def test_who_may_be_gone_is_asked_about_soon(happens: Callable[[RecordedMember], object]) -> None:
    it = member()
    it.deliver(2, LeaseHeldMsg(2, 7))
    happens(it)
    assert it.timers[STAND].deadline <= 8.0


@pytest.mark.parametrize(
    "happens",
    [
        lambda it: it.suspect(3),
        lambda it: it.alive(3),
        lambda it: it.deliver(3, ResignMsg(7)),
        lambda it: it.deliver(2, ResignMsg(6)),
        lambda it: it.deliver(5, AvailableMsg(0, 7)),
        lambda it: it.deliver(1, AvailableMsg(0, 6)),
    ],
    ids=["another", "another lives", "resigns for it", "an older", "no voter", "older freed"],
)
def test_what_says_nothing_about_the_leader_changes_nothing(
    happens: Callable[[RecordedMember], object],
) -> None:
    it = member()
    it.deliver(2, LeaseHeldMsg(2, 7))
    happens(it)
    assert it.timers[STAND].deadline >= 30.0
    assert it.outcome == Elected(2, 7)


# Groups


def played(
    *happenings: Happening, members: int = 5, until: float = 200.0, voters: int = 3, seed: int = 1
) -> World:
    config = QuorumElectionConfig.parse({"voters": voters, "ttl": 12.0})
    world = World(
        lambda: Quorum(config, HighestId()),
        [Candidate(each) for each in range(1, members + 1)],
        seed=seed,
        debug=True,
    )
    checkers = [Windows(), Tokens()]
    attach(list(checkers), world)
    world.start()
    plan(world, list(happenings))
    assert world.run(until=until) is Ended.UNTIL
    for checker in checkers:
        verdict, why = checker.judge(world, Ended.UNTIL)
        assert verdict.name == "HOLDS", why
    return world


@pytest.mark.parametrize("members, voters", [(1, 1), (2, 1), (3, 3), (5, 3), (9, 7), (30, 5)])
def test_all_hold_one_leader_and_go_on_doing_so(members: int, voters: int) -> None:
    world = played(members=members, voters=voters)
    leader = agreed_leader(world)
    assert leader is not None
    assert world.members[leader].election.term > 0
    assert world.members[leader].timers[END].deadline > world.now


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_leader_that_is_gone_is_followed_by_another(gone: int) -> None:
    first = agreed_leader(played(until=50.0))
    assert first is not None
    for departure in (Crash(member=first, at=60.0), Leave(member=first, at=60.0)):
        also = (Crash(member=gone, at=61.0),) if gone != first and first > 3 else ()
        world = played(departure, *also)
        assert agreed_leader(world) not in (None, first)


def test_without_a_majority_of_voters_nobody_leads() -> None:
    world = played(Crash(member=1, at=60.0), Crash(member=2, at=60.0))
    held = [member.outcome for member in world.live()]
    assert not any(
        isinstance(outcome, Elected) and outcome.leader == member.id
        for outcome, member in zip(held, world.live(), strict=True)
    )


def test_a_minority_that_was_cut_off_follows_when_it_is_back() -> None:
    cut = Partition(sides=((1, 5), (2, 3, 4)), name="cut", at=50.0)
    during = agreed_leader(played(cut, until=120.0))
    assert during is None
    assert agreed_leader(played(cut, Heal(name="cut", at=120.0))) is not None


def test_a_leader_that_slept_through_its_lease_wakes_up_as_none() -> None:
    first = agreed_leader(played(until=50.0))
    assert first is not None
    world = played(Pause(member=first, at=60.0), Resume(member=first, at=120.0))
    assert agreed_leader(world) not in (None, first)


def test_all_may_restart_at_once() -> None:
    down: list[Happening] = [Crash(member=each, at=60.0) for each in range(1, 6)]
    back: list[Happening] = [Restart(member=each, at=61.0) for each in range(1, 6)]
    before = played(until=59.0).members[1].election.term
    world = played(*down, *back)
    assert agreed_leader(world) is not None
    assert world.members[1].election.term > before
