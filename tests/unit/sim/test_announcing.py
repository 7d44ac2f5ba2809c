"""A simultaneous start: when everybody has heard the leader, and what that took."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.sim.announcing import one_delay
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.faults import Crash, Heal, OneWay
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play
from hustings.sim.scenarios import Rates, Scenario
from hustings.sim.world import Ended
from tests.unit.sim.beacons import beacons

METRICS = (
    "tmax",
    "sent_by_tmax",
    "rounds",
    "avg_rounds",
    "leadership_delay",
    "num_msgs",
    "first_round",
)


def found(result: RunResult, *names: str) -> list[float | None]:
    return [result.metrics[name] for name in names or METRICS]


def test_three_wake_one_after_the_other() -> None:
    """1 speaks at 0.2, 2 at 0.5, 3 at 0.7: 1 follows 2, then both follow 3."""
    result = play(beacons(0.2, 0.5, 0.7), 0)
    assert found(result) == [0.7, 3, 1, 1.0, 0.8, 3, 3]
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] == 3
    # 1 leads for 0.4, 2 for 0.3 and 3 for 0.1 of the first 0.8.
    assert result.metrics["simultaneous_leaders"] == pytest.approx(1.0)
    assert result.metrics["simultaneous_leaders_max"] == 2


def test_who_hears_a_better_one_in_time_never_speaks() -> None:
    result = play(beacons(0.2, 0.5, 0.05), 0)
    assert found(result) == [0.05, 1, 1, 1.0, pytest.approx(0.15), 1, 1]


def test_a_message_that_leaves_when_all_have_heard_the_leader_is_too_late_to_count() -> None:
    """At 0.8 member 1 wakes, and speaks before the leader's word arrives at that instant."""
    result = play(beacons(0.8, 5.0, 0.7), 0)
    assert found(result, "num_msgs", "first_round", "leadership_delay") == [1, 1, 0.8]
    assert result.metrics["messages"] == 2
    earlier = play(beacons(0.79, 5.0, 0.7), 0)
    assert found(earlier, "num_msgs", "first_round", "sent_by_tmax") == [2, 2, 1]


DEAF = (OneWay(senders=(3,), to=(1,)), Heal(name="one-way", at=1.0))


def test_the_announcement_that_reaches_the_last_one_counts() -> None:
    """Member 1 cannot hear the leader's first announcement, but its second, at 1.7."""
    result = play(beacons(5.0, 0.5, 0.7, scenario=Scenario(extra=DEAF)), 0)
    # 2 speaks at 0.5 and silences 1, 3 speaks at 0.7 and 1.7.
    assert found(result) == [1.7, 3, 2, 1.5, pytest.approx(1.8), 3, 2]


def test_one_who_heard_the_leader_and_lost_it_again_has_heard_it() -> None:
    """Member 2 hears the leader once, cannot any more, and gives up before 1 has heard it."""
    faults = (
        OneWay(senders=(3,), to=(1,), name="one"),
        OneWay(senders=(3,), to=(2,), name="two", at=1.0),
        Heal(name="one", at=3.0),
    )
    result = play(beacons(9.0, 5.0, 0.7, scenario=Scenario(extra=faults), L=1.5), 0)
    assert result.ended is Ended.STOPPED
    assert found(result, "tmax", "rounds") == [3.7, 4]
    assert result.verdicts["agreement"][0] is Verdict.UNDECIDED
    assert result.verdicts["termination"] == (
        Verdict.UNDECIDED,
        "members 2 had not decided at the stop",
    )


def test_without_delay_the_last_announcement_counts_itself() -> None:
    result = play(beacons(0.2, 0.7, delay=0.0), 0)
    assert found(result) == [0.7, 2, 1, 1.0, 0.7, 2, 2]


def test_alone_one_has_to_hear_nobody() -> None:
    result = play(beacons(0.25), 0)
    assert found(result) == [0.25, 1, 1, 1.0, 0.35, 1, 1]


def test_a_start_that_does_not_come_about_has_no_values() -> None:
    result = play(beacons(0.2, 0.5, network=lost(1.0), until=20.0), 0)
    assert found(result) == [None] * 7
    assert result.ended is Ended.UNTIL
    assert result.metrics["simultaneous_leaders_max"] == 2


def lost(p: float) -> Network:
    return Network(delay=Fixed(0.1), loss=Uncorrelated(p))


def test_with_delays_of_their_own_nobody_knows_which_announcement_was_heard() -> None:
    result = play(beacons(0.2, 0.5, network=Network(delay=Uniform(0.1, 0.2))), 0)
    assert result.ended is Ended.STOPPED
    assert not {"tmax", "rounds", "avg_rounds", "sent_by_tmax"} & result.metrics.keys()
    delay = result.metrics["leadership_delay"]
    assert delay is not None
    assert 0.6 < delay < 0.7
    assert result.metrics["num_msgs"] == 2


def test_one_delay_is_one_for_all_messages() -> None:
    assert one_delay(Network(delay=Fixed(0.3), duplicate=0.5)) == 0.3
    assert one_delay(Network(delay=Fixed(0.3), reorder=0.1, hold_back=1.0)) is None
    assert one_delay(Network(delay=Uniform(0.3, 0.3))) is None


def test_the_dead_need_not_hear_the_leader() -> None:
    faults = (OneWay(senders=(3,), to=(1,)), Crash(member=1, at=2.0))
    result = play(beacons(5.0, 5.0, 0.7, scenario=Scenario(extra=faults)), 0)
    assert found(result, "leadership_delay", "tmax", "rounds") == [2.0, 0.7, 1]


def test_a_leader_that_is_gone_has_been_heard_for_nothing() -> None:
    """3 dies on its way to 1 and 2, and 2 is heard by all that are left."""
    scenario = Scenario(extra=(Crash(member=3, at=0.75),))
    result = play(beacons(0.2, 4.0, 0.7, scenario=scenario, L=1.0), 0)
    # Both follow the dead 3 at 0.8, give up at 1.8, sleep, and 2 speaks at 5.8.
    assert result.metrics["leader"] == 2
    assert result.metrics["leadership_delay"] == pytest.approx(5.9)


# Speaking once


def test_members_that_speak_once_are_done_when_all_have_spoken_or_heard() -> None:
    result = play(beacons(0.2, 0.5, 0.05, once=True), 0)
    assert result.ended is Ended.QUIESCENT
    assert found(result, "tmax", "t_halt", "num_msgs", "first_round") == [
        0.05,
        pytest.approx(0.15),
        1,
        1,
    ]
    assert "rounds" not in result.metrics


def test_the_last_message_is_not_the_last_event() -> None:
    result = play(beacons(0.2, 0.5, 0.45, once=True), 0)
    assert found(result, "tmax", "t_halt", "num_msgs") == [0.5, 0.55, 3]


def test_who_speaks_once_is_told_what_happens_like_any_other() -> None:
    """Its leader cannot be missed, so a script tells who notices."""
    result = play(beacons(0.2, 0.5, 0.7, scenario="leader-crash", once=True), 0)
    assert found(result, "messages", "time") == [1, pytest.approx(0.3)]
    with pytest.raises(BadInput, match="needs a --detection"):
        beacons(0.2, scenario=Scenario("churn", rates=Rates(5.0)), once=True)
