"""The detector of one member, driven by hand: what it sends, arms, reports and forgets."""

import pytest

from hustings.core.choice import Candidate
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import (
    HeartbeatMsg,
    PingMsg,
    PongMsg,
    WatchMsg,
)
from hustings.layers.detector.layer import with_detector
from hustings.testing.effects import CancelTimer, Multicast, Send, SetTimer
from hustings.testing.recorded import RecordedMember, recording, view_of
from tests.unit.layers.detector.listeners import Listener, Note, people
from tests.unit.layers.detector.watchers import Watcher, sends, silence

BEAT = ("beat", 0)


# Beating


def test_heartbeats_leave_at_the_start_and_every_period_with_rising_numbers() -> None:
    watcher = Watcher()
    assert [e for e in watcher.first_effects if isinstance(e, Send)] == [
        Send(member, HeartbeatMsg(1, 1)) for member in (1, 3, 4)
    ]
    assert SetTimer(BEAT, 1.0, eager=True) in watcher.first_effects
    assert watcher.fire(BEAT) == [
        *(Send(member, HeartbeatMsg(1, 2)) for member in (1, 3, 4)),
        SetTimer(BEAT, 1.0, eager=True),
    ]


def test_a_follower_of_a_leader_pattern_rests_and_a_new_leader_begins_at_once() -> None:
    watcher = Watcher("leader-to-all")
    assert watcher.first_effects == []
    assert SetTimer(silence(4), 1.25, eager=False) in watcher.assume_leader(4)
    effects = watcher.assume_leader(2)
    assert sends(effects) == [1, 3, 4]
    assert silence(4) not in watcher.timers
    watcher.assume_leader(3)
    assert watcher.fire(BEAT) == []  # nobody to beat to: it rests again
    assert not watcher.timers.keys() - {silence(3)}


def test_who_is_reborn_numbers_its_heartbeats_under_its_incarnation() -> None:
    watcher = Watcher()
    assert Send(1, HeartbeatMsg(2, 1)) in watcher.restart()


def test_who_leaves_falls_silent_and_suspects_nobody() -> None:
    watcher = Watcher()
    armed = sorted(watcher.timers)
    cancelled = [e.key for e in watcher.leave() if isinstance(e, CancelTimer)]
    assert cancelled == armed == [BEAT, silence(1), silence(3), silence(4)]


# Watching


def test_each_new_heartbeat_restarts_the_timer() -> None:
    watcher = Watcher()
    watcher.clock = 1.0
    assert watcher.beat(3, 1) == [SetTimer(silence(3), 1.25, eager=False)]
    assert watcher.timers[silence(3)].deadline == 2.25


@pytest.mark.parametrize("incarnation, number", [(1, 5), (1, 4), (0, 9)])
def test_a_copy_or_a_straggler_restarts_no_timer(incarnation: int, number: int) -> None:
    watcher = Watcher()
    watcher.beat(3, 5)
    assert watcher.beat(3, number, incarnation) == []


def test_silence_is_reported_once_and_a_heartbeat_takes_it_back() -> None:
    watcher = Watcher()
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]
    assert watcher.suspects == [3]
    watcher.beat(3, 1)
    assert watcher.told() == [("alive", 3)]
    assert watcher.timers[silence(3)].deadline == watcher.clock + 1.25
    assert watcher.suspects == []


def test_any_message_of_a_suspect_takes_the_suspicion_back() -> None:
    watcher = Watcher()
    watcher.fire(silence(3))
    watcher.deliver(3, WatchMsg())
    assert watcher.told() == [("suspect", 3), ("alive", 3)]
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]


def test_but_only_a_heartbeat_moves_the_timer_of_one_that_is_not_suspected() -> None:
    watcher = Watcher()
    assert watcher.deliver(3, WatchMsg()) == []


def test_a_member_that_is_back_before_its_timer_ran_out_is_not_suspected() -> None:
    watcher = Watcher()
    watcher.beat(3, 17, incarnation=1)
    assert watcher.beat(3, 1, incarnation=2) == [SetTimer(silence(3), 1.25, eager=False)]
    assert watcher.beat(3, 18, incarnation=1) == []  # the old one's last, late
    assert watcher.told() == []
    watcher.fire(silence(3))
    watcher.beat(3, 1, incarnation=3)
    assert watcher.told() == [("suspect", 3), ("alive", 3)]


def test_the_first_heartbeat_may_take_the_grace() -> None:
    watcher = Watcher(grace=9.0)
    assert watcher.timers[silence(1)].deadline == 9.0
    watcher.beat(1, 1)
    assert watcher.timers[silence(1)].deadline == 1.25


def test_strangers_are_not_heard() -> None:
    watcher = Watcher()
    assert watcher.beat(9, 1) == []
    assert watcher.deliver(9, WatchMsg()) == []
    assert watcher.told() == []


def test_the_word_of_others_counts_until_the_suspect_is_heard() -> None:
    watcher = Watcher()
    watcher.suspect(3)
    assert watcher.suspects == [3]
    assert silence(3) not in watcher.timers
    watcher.beat(3, 1)
    assert watcher.told() == [("suspect", 3), ("alive", 3)]
    watcher.suspect(3)
    watcher.alive(3)
    assert watcher.told() == [("suspect", 3), ("alive", 3)]
    assert silence(3) in watcher.timers


def test_words_about_strangers_or_oneself_reach_the_election_only() -> None:
    watcher = Watcher()
    before = dict(watcher.timers)
    for member in (2, 9):
        watcher.suspect(member)
        watcher.alive(member)
    assert watcher.told() == [("suspect", 2), ("alive", 2), ("suspect", 9), ("alive", 9)]
    assert watcher.suspects == []
    assert watcher.timers == before


# The view


def test_a_newcomer_is_beaten_to_and_watched() -> None:
    watcher = Watcher(n=3)
    watcher.view = view_of(people(5))
    watcher.view.version = 1
    watcher.beat(5, 1)
    assert sends(watcher.fire(BEAT)) == [1, 3, 4, 5]
    assert {silence(4), silence(5)} <= watcher.timers.keys()


def test_who_leaves_the_view_is_reported_if_watched_and_then_forgotten() -> None:
    watcher = Watcher()
    detector = watcher.monitored.detector
    for member in (1, 3, 4):
        watcher.beat(member, 1)
        watcher.deliver(member, WatchMsg())
    watcher.fire(silence(4))
    assert watcher.told() == [("suspect", 4)]
    watcher.view.remove(3)
    watcher.view.remove(4)
    watcher.beat(1, 2)
    assert watcher.told() == [("suspect", 3)]
    assert watcher.suspects == []
    assert sends(watcher.fire(BEAT)) == [1]
    assert watcher.timers.keys() == {BEAT, silence(1)}
    for table in (detector.monitor.deadlines, detector._latest, detector._askers):
        assert list(table) == [1]


@pytest.mark.parametrize("pattern", ["all-to-all", "ring"])
def test_a_departure_is_reported_though_other_news_comes_first(pattern: str) -> None:
    watcher = Watcher(pattern)
    watcher.suspect(4)
    watcher.told()
    watcher.view.remove(3)
    watcher.beat(4, 1)
    assert watcher.told() == [("alive", 4), ("suspect", 3)]


def test_a_forgotten_member_that_returns_is_a_newcomer() -> None:
    watcher = Watcher()
    watcher.beat(3, 40)
    watcher.view.remove(3)
    watcher.beat(1, 1)
    watcher.view.add(3)
    watcher.beat(3, 1)
    assert watcher.told() == [("suspect", 3)]
    assert silence(3) in watcher.timers


# The ring's questions


def test_a_ring_asks_the_next_member_at_once_and_every_period() -> None:
    watcher = Watcher("ring", n=5, health_max=1.0)  # its timers are fired by hand, and late
    assert sends(watcher.first_effects) == [1]
    effects = watcher.fire(silence(3))
    assert sends(effects, WatchMsg) == [4]
    assert watcher.timers[silence(4)].deadline == watcher.clock + 1.5  # T + D, and D to ask
    assert sends(watcher.fire(BEAT), WatchMsg) == [4]
    effects = watcher.fire(silence(4))
    assert sends(effects, WatchMsg) == [5]
    assert sends(watcher.fire(BEAT), WatchMsg) == [4, 5]
    watcher.beat(4, 1)
    assert sends(watcher.fire(BEAT), WatchMsg) == [4]
    watcher.beat(3, 1)
    assert sends(watcher.fire(BEAT), WatchMsg) == []
    assert watcher.timers.keys() == {BEAT, silence(3)}
    assert watcher.told() == [("suspect", 3), ("suspect", 4), ("alive", 4), ("alive", 3)]


def test_who_asks_is_beaten_to_until_it_stops_asking() -> None:
    watcher = Watcher("ring", n=5)
    watcher.clock = 0.75
    watcher.deliver(4, WatchMsg())
    beats = [sends(watcher.fire(BEAT)) for _ in range(3)]
    assert watcher.clock == 3.0
    assert beats == [[1, 4], [1, 4], [1]]  # the second is just T + D after the question


def test_who_rests_begins_when_asked() -> None:
    watcher = Watcher("leader-to-all")
    assert sends(watcher.deliver(4, WatchMsg())) == [4]
    watcher.clock = 9.0
    assert watcher.fire(BEAT) == []


def test_nobody_is_beaten_to_twice_in_a_period() -> None:
    watcher = Watcher("ring", n=5)
    watcher.deliver(1, WatchMsg())
    assert sends(watcher.fire(BEAT)) == [1]


def test_an_accrual_detector_is_used_the_same_way() -> None:
    journal: list[Note] = []
    # Timers that nobody fires look like a sleep of the watcher: its health is not asked here.
    config = AccrualConfig(T=1.0, D=0.25, delta=0.25, min_samples=3, health_max=1.0)
    watcher = RecordedMember(
        with_detector(lambda: Listener(journal), config), Candidate(2), view_of(people(3))
    )
    watcher.start()
    for number in range(1, 6):
        watcher.clock = number * 2.0
        watcher.deliver(1, HeartbeatMsg(1, number))
    assert watcher.timers[silence(1)].deadline > 12.0  # it has learnt that two periods are usual
    assert watcher.timers[silence(3)].deadline == 1.25
    watcher.deliver(1, HeartbeatMsg(2, 1))
    assert watcher.timers[silence(1)].deadline == 11.25  # of the new incarnation nothing is known


# Its own health


def test_a_timer_that_fires_late_gives_as_much_time_again_and_more_patience() -> None:
    watcher = Watcher()
    detector = watcher.monitored.detector
    watcher.clock = 1.75  # due at 1.25
    watcher.fire(silence(3))
    assert watcher.told() == []
    assert watcher.timers[silence(3)].deadline == pytest.approx(2.75)
    assert detector.health == pytest.approx(1.4)  # late by 0.5 of T + D
    watcher.fire(silence(3))  # now in time, and still silent
    assert watcher.told() == [("suspect", 3)]


def test_who_slept_long_waits_for_a_whole_patience_from_its_waking() -> None:
    watcher = Watcher()
    watcher.clock = 1000.0
    watcher.fire(silence(3))
    assert watcher.told() == []
    assert watcher.timers[silence(3)].deadline == 1000.0 + 8 * 1.25
    watcher.beat(4, 1)  # was there, unread
    assert watcher.timers[silence(4)].deadline == 1000.0 + 8 * 1.25
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]


def test_with_health_off_a_late_timer_is_as_good_as_any() -> None:
    watcher = Watcher(health_max=1.0)
    watcher.clock = 1000.0
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]
    assert watcher.monitored.detector.health == 1.0


def test_a_member_that_is_always_late_suspects_the_dead_all_the_same() -> None:
    watcher = Watcher()
    turns = 0
    while not watcher.told():
        turns += 1
        watcher.clock = watcher.timers[silence(3)].deadline + 0.5
        watcher.fire(silence(3))
    assert turns > 2
    assert watcher.clock < 1.25 * (1 + 16) + 0.5 * turns


def test_a_late_beat_of_its_own_makes_it_more_patient_with_others() -> None:
    watcher = Watcher()
    watcher.clock = 2.25  # the beat was due at 1
    watcher.fire(BEAT)
    assert watcher.monitored.detector.health == 2.0
    watcher.beat(3, 1)
    assert watcher.timers[silence(3)].deadline == 2.25 + 2 * 1.25


def test_patience_that_grew_counts_for_timers_that_were_armed_before() -> None:
    watcher = Watcher()
    watcher.clock = 1.2
    watcher.beat(3, 1)
    watcher.clock = 2.25
    watcher.fire(BEAT)  # late by a whole patience
    watcher.fire(silence(3))  # punctual, at 2.45
    assert watcher.told() == []
    assert 3.5 < watcher.timers[silence(3)].deadline < 1.2 + 2 * 1.25
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]


def test_what_the_world_noticed_counts_before_any_timer_fires() -> None:
    watcher = Watcher(n=3)
    watcher.beat(3, 1)
    watcher.suspect(1)
    watcher.told()
    watcher.clock = 1.0
    with recording(watcher.me, watcher.view, now=1.0) as ctx:
        watcher.monitored.woke(ctx, 0.1)  # usual
    assert ctx.effects == []
    with recording(watcher.me, watcher.view, now=1.0) as ctx:
        watcher.monitored.woke(ctx, 0.5)
    # Not for 1, which is suspected anyway.
    assert ctx.effects == [SetTimer(silence(3), 1.4 * 1.25, eager=False)]


def test_a_gap_that_was_slept_through_is_not_learnt_from() -> None:
    journal: list[Note] = []
    config = AccrualConfig(T=1.0, D=0.25, delta=0.25, tail="peak")
    watcher = RecordedMember(
        with_detector(lambda: Listener(journal), config), Candidate(2), view_of(people(3))
    )
    watcher.start()
    for number in range(1, 20):
        watcher.clock = float(number)
        watcher.deliver(1, HeartbeatMsg(1, number))
        watcher.deliver(3, HeartbeatMsg(1, number))
    watcher.clock = 23.0  # it stood still; 1 is read first, the timer of 3 fires first
    watcher.deliver(1, HeartbeatMsg(1, 20))
    watcher.fire(silence(3))
    watcher.deliver(3, HeartbeatMsg(1, 20))
    for number in range(21, 200):
        watcher.clock += 1.0
        for member in (1, 3):
            watcher.deliver(member, HeartbeatMsg(1, number))
    assert watcher.timers[silence(1)].deadline == pytest.approx(watcher.clock + 1.25)
    assert watcher.timers[silence(3)].deadline == pytest.approx(watcher.clock + 1.25)
    assert journal == []


# Other signs of life


def test_with_life_messages_other_messages_excuse_a_silence_but_not_for_ever() -> None:
    watcher = Watcher(liveness="messages", health_max=1.0)
    while not watcher.told():
        watcher.clock += 1.0
        watcher.deliver(3, WatchMsg())
        while silence(3) in watcher.timers and watcher.timers[silence(3)].deadline < watcher.clock:
            watcher.fire(silence(3))
    assert 12.0 < watcher.clock < 2 * 16 * 1.25  # it talks and does not beat


def test_a_silent_member_is_asked_before_it_is_suspected() -> None:
    watcher = Watcher(ping_timeout=0.5)
    effects = watcher.fire(silence(3))
    assert effects == [Send(3, PingMsg(1)), SetTimer(silence(3), 0.5, eager=False)]
    assert Send(4, PingMsg(2)) in watcher.fire(silence(4))
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]
    watcher.clock = 1.5
    assert watcher.deliver(4, PongMsg(1)) == []  # no answer to this question
    assert watcher.deliver(4, PongMsg(2)) == [SetTimer(silence(4), 1.25, eager=False)]
    assert watcher.deliver(4, PongMsg(2)) == []
    watcher.deliver(3, PongMsg(1))
    assert watcher.told() == [("alive", 3)]


def test_who_answers_and_does_not_beat_is_suspected_in_the_end() -> None:
    watcher = Watcher(ping_timeout=0.5)
    for number in (1, 2):
        assert Send(3, PingMsg(number)) in watcher.fire(silence(3))
        watcher.deliver(3, PongMsg(number))
    watcher.fire(silence(3))
    assert watcher.told() == [("suspect", 3)]


def test_a_heartbeat_closes_the_question() -> None:
    watcher = Watcher(ping_timeout=0.5)
    watcher.fire(silence(3))
    watcher.beat(3, 1)
    assert watcher.timers[silence(3)].deadline == watcher.clock + 1.25
    assert watcher.deliver(3, PongMsg(1)) == []
    assert Send(3, PingMsg(2)) in watcher.fire(silence(3))


def test_questions_are_answered_at_once_and_not_to_strangers() -> None:
    watcher = Watcher("leader-to-all")
    assert watcher.deliver(3, PingMsg(9)) == [Send(3, PongMsg(9))]
    assert watcher.deliver(77, PingMsg(9)) == []
    assert watcher.deliver(77, PongMsg(9)) == []
    watcher.suspect(3)
    watcher.deliver(3, PingMsg(10))
    assert watcher.told() == [("suspect", 3), ("alive", 3)]


# One multicast for all


def test_a_leader_beats_to_all_by_one_multicast() -> None:
    watcher = Watcher("leader-to-all", beat="multicast")
    assert Multicast(HeartbeatMsg(1, 1)) in watcher.assume_leader(2)
    watcher.deliver(3, WatchMsg())  # hears the multicast as well
    assert watcher.fire(BEAT) == [
        Multicast(HeartbeatMsg(1, 2)),
        SetTimer(BEAT, 1.0, eager=True),
    ]


def test_who_beats_to_some_sends_to_each() -> None:
    watcher = Watcher("leader-to-all", beat="multicast")
    watcher.assume_leader(4)
    assert sends(watcher.deliver(3, WatchMsg())) == [3]
    assert sends(Watcher("ring", n=4, beat="multicast").first_effects) == [1]


# Words from outside


def test_a_leader_that_is_certainly_gone_is_believed_gone_until_it_beats_again() -> None:
    watcher = Watcher("leader-to-all")
    watcher.assume_leader(4)
    watcher.beat(4, 7)
    watcher.suspect(4)
    assert watcher.told() == [("suspect", 4)]
    assert watcher.suspects == [4]
    assert silence(4) not in watcher.timers
    assert watcher.beat(4, 7) == []  # a copy from before
    assert watcher.told() == []
    watcher.clock = 5.0
    watcher.beat(4, 1, incarnation=2)
    assert watcher.told() == [("alive", 4)]
    assert watcher.suspects == []
    assert watcher.timers[silence(4)].deadline == 5.0 + 1.25
    watcher.fire(silence(4))
    assert watcher.told() == [("suspect", 4)]
