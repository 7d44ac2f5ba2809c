"""Heartbeats more often to whoever is to lead next, and what that one makes of them."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.layers.detector.accrual import AccrualConfig, PeakEstimator, PhiEstimator
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import (
    HeartbeatConfig,
    HeartbeatMsg,
    Pace,
    PingMsg,
    WatchMsg,
)
from hustings.layers.detector.layer import DetectorLayer, with_detector
from hustings.testing.effects import Effect, Multicast, Send
from hustings.testing.recorded import RecordedMember, view_of
from tests.unit.layers.detector.listeners import people
from tests.unit.layers.detector.test_detector_layer import bully

BEAT = ("beat", 0)
SETTINGS: dict[str, object] = {
    "T": 1.0,
    "D": 0.25,
    "delta": 0.25,
    "pattern": "leader-to-all",
    "beat": "multicast",
    "successor_period": 0.25,
}


def member(me: MemberId, n: int = 4, **settings: object) -> RecordedMember:
    """One of 1 to n with a bully: the highest leads, and the next is its heir."""
    config = HeartbeatConfig.parse({**SETTINGS, **settings})
    found = RecordedMember(with_detector(bully, config), Candidate(me), view_of(people(n)))
    found.start()
    return found


def leading(me: MemberId = 4, **settings: object) -> RecordedMember:
    found = member(me, 4, **settings)
    found.assume_leader(me)
    return found


def detector(of: RecordedMember) -> Detector:
    assert isinstance(of.election, DetectorLayer)
    return of.election.detector


def beats(effects: list[Effect]) -> list[tuple[MemberId | None, MemberId | None]]:
    """To whom, and who is called the heir."""
    found: list[tuple[MemberId | None, MemberId | None]] = []
    for each in effects:
        if isinstance(each, Send | Multicast) and isinstance(each.message, HeartbeatMsg):
            found.append((each.to if isinstance(each, Send) else None, each.message.heir))
    return found


def waits(of: RecordedMember, leader: MemberId) -> float:
    return of.timers["detector", leader].deadline - of.clock


def test_the_heir_has_a_heartbeat_each_haste_and_all_have_one_each_period() -> None:
    leader = leading()
    rounds = []
    for _ in range(9):
        leader.clock = leader.timers[BEAT].deadline
        rounds.append(beats(leader.fire(BEAT)))
    hasty, all_of_them = [(3, 3)], [(None, 3)]
    assert rounds == [hasty, hasty, hasty, all_of_them] * 2 + [hasty]
    assert leader.clock == pytest.approx(9 * 0.25)


def test_where_each_is_sent_its_own_the_others_take_turns() -> None:
    leader = leading(beat="send")  # the first went to all
    rounds = []
    for _ in range(8):
        leader.clock = leader.timers[BEAT].deadline
        rounds.append([to for to, _ in beats(leader.fire(BEAT))])
    assert rounds == [[3], [3, 1], [3], [3, 2], [3], [3, 1], [3], [3, 2]]


def test_who_takes_turns_still_answers_those_who_asked_and_asks_suspects() -> None:
    leader = leading(3, beat="send", successor_period=0.5)
    leader.suspect(1)
    leader.clock = leader.timers[BEAT].deadline
    effects = leader.fire(BEAT)
    leader.clock = leader.timers[BEAT].deadline
    effects += leader.fire(BEAT)
    assert [each.to for each in effects if isinstance(each, Send)].count(4) == 2
    assert [each for each in effects if isinstance(each, Send) and each.message == WatchMsg()] == [
        Send(1, WatchMsg())
    ]


def test_without_haste_nobody_is_called_the_heir() -> None:
    leader = leading(successor_period=None)
    assert beats(leader.fire(BEAT)) == [(None, None)]
    assert leader.timers[BEAT].deadline == leader.clock + 1.0


def test_who_leads_alone_has_no_heir_and_says_nothing() -> None:
    leader = member(1, n=1)
    leader.assume_leader(1)
    assert BEAT not in leader.timers


def test_who_is_the_heir_expects_the_next_one_sooner_the_others_give_it_time() -> None:
    heir, other = member(3), member(2)
    for each in (heir, other):
        each.assume_leader(4)
        each.deliver(4, HeartbeatMsg(1, 1, heir=3))
    assert waits(heir, 4) == 0.25 + 0.25
    assert waits(other, 4) == 1.0 + 1.0  # a period more: by then the heir leads


def test_who_has_no_haste_set_waits_a_period_whatever_the_leader_says() -> None:
    heir = member(3, successor_period=None)
    heir.assume_leader(4)
    heir.deliver(4, HeartbeatMsg(1, 1, heir=3))
    assert waits(heir, 4) == 1.25


def test_a_leader_that_falls_silent_is_replaced_by_its_heir_without_a_question() -> None:
    heir = member(3, ping_timeout=0.5)
    heir.assume_leader(4)
    heir.deliver(4, HeartbeatMsg(1, 1, heir=3))
    heir.fire(("detector", 4))
    assert heir.outcome == Elected(3, 2)


def test_the_others_still_ask_before_they_suspect() -> None:
    other = member(2, ping_timeout=0.5)
    other.assume_leader(4)
    other.deliver(4, HeartbeatMsg(1, 1, heir=3))
    assert Send(4, PingMsg(1)) in other.fire(("detector", 4))


def test_another_heir_is_told_at_once_and_the_old_one_for_a_period() -> None:
    leader = member(3, n=5)
    leader.view.remove(5)
    leader.assume_leader(3)
    leader.clock = 10.0
    assert beats(leader.fire(BEAT)) == [(None, 4)]
    leader.view.add(5)
    assert beats(leader.deliver(1, PingMsg(1))) == [(None, 5)]
    told = []
    for _ in range(6):
        leader.clock = leader.timers[BEAT].deadline
        told.append(beats(leader.fire(BEAT)))
    both = [(5, 5), (4, 5)]
    assert told == [both, both, both, [(None, 5)], [(5, 5)], [(5, 5)]]


def test_an_heir_of_before_waits_for_the_next_round() -> None:
    heir = member(3)
    heir.assume_leader(4)
    heir.deliver(4, HeartbeatMsg(1, 1, heir=3))
    heir.deliver(4, HeartbeatMsg(1, 2, heir=2))
    assert waits(heir, 4) == 2.0


def test_a_suspect_is_nobodys_heir() -> None:
    leader = leading()
    leader.suspect(3)
    assert beats(leader.fire(BEAT))[0][1] == 2


def test_who_leads_no_more_beats_to_nobody() -> None:
    leader = leading(3)
    leader.assume_leader(4)
    leader.fire(BEAT)
    assert BEAT not in leader.timers


def test_a_new_leader_may_wait_with_its_first_heartbeat() -> None:
    leader = member(4, first_beat_delay=0.5)
    assert not beats(leader.assume_leader(4))
    assert leader.timers[BEAT].deadline == leader.clock + 0.5
    leader.clock += 0.5
    assert beats(leader.fire(BEAT)) == [(None, 3)]


def test_own_lateness_is_judged_by_the_pace_of_an_heir() -> None:
    config = HeartbeatConfig.parse(SETTINGS)
    health = config.health()
    assert health.late(10.0, by=0.5)
    assert health.factor(10.0) == 2.0
    assert health.factor(10.0 + 6 * 0.5) == 1.5


# What is learnt at one pace


def test_a_peak_is_the_machines_whatever_the_pace() -> None:
    config = AccrualConfig(
        T=1.0, D=0.25, tail="peak", successor_period=0.1, pattern="leader-to-all"
    )
    estimator = PeakEstimator(config)
    for instant in (0.0, 1.0, 2.2):
        estimator.heard(instant)
    assert estimator.peak == pytest.approx(0.2)
    estimator.keep_to(Pace(0.1, 0.25))
    estimator.heard(2.3)  # from one pace to the other: nothing to be learnt
    assert estimator.wait() == pytest.approx(0.1 + 3 * 0.2)
    # It fades by time, not by heartbeats, of which there are ten times as many.
    for step in range(1, 11):
        estimator.heard(2.3 + 0.1 * step)
    assert estimator.peak == pytest.approx(0.2 * 0.5 ** (1 / 500))


def test_gaps_of_another_pace_are_forgotten() -> None:
    config = AccrualConfig(
        T=1.0, D=0.25, successor_period=0.1, pattern="leader-to-all", min_samples=2
    )
    estimator = PhiEstimator(config)
    for instant in (0.0, 1.0, 2.0, 3.0):
        estimator.heard(instant)
    assert len(estimator.gaps) == 3
    estimator.keep_to(Pace(0.1, 0.25))
    estimator.heard(3.1)
    assert not estimator.gaps
    assert estimator.wait() == 0.1 + 0.25
    estimator.keep_to(Pace(0.1, 0.25))  # the same: nothing is forgotten
    estimator.heard(3.2)
    assert len(estimator.gaps) == 1


# Settings


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"successor_period": 2.0}, "successor_period = 2 must not exceed T = 1"),
        ({"pattern": "all-to-all"}, "successor_period needs pattern leader-to-all, not all-to-all"),
        ({"successor_period": 0.0}, "successor_period"),
        ({"first_beat_delay": -1.0}, "first_beat_delay"),
        ({"first_beat_delay": float("inf")}, "first_beat_delay must be finite"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        HeartbeatConfig.parse({**SETTINGS, **settings})
