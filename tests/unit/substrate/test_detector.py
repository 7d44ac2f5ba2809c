"""The detector of one member, driven by hand: what it sends, arms, reports and forgets."""

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message
from hustings.substrate.accrual import AccrualConfig
from hustings.substrate.heartbeat import HeartbeatConfig, HeartbeatMsg, WatchMsg
from hustings.substrate.monitored import Monitored, monitored
from hustings.testing.effects import CancelTimer, Effect, Send, SetTimer
from hustings.testing.recording import RecordedMember, view_of
from tests.unit.substrate.listeners import Listener, Note, people

BEAT = ("beat", 0)


class Watcher(RecordedMember):
    """Member 2 of n, with T = 1 and D = 0.25, whose election only takes notes."""

    def __init__(self, pattern: str = "all-to-all", n: int = 4, **settings: object) -> None:
        self.journal: list[Note] = []
        config = HeartbeatConfig.parse(
            {"T": 1.0, "D": 0.25, "delta": 0.25, "pattern": pattern, **settings}
        )
        elect = monitored(lambda: Listener(self.journal), config)
        super().__init__(elect, Candidate(2), view_of(people(n)))
        self.first_effects = self.start()

    @property
    def monitored(self) -> Monitored:
        assert isinstance(self.election, Monitored)
        return self.election

    @property
    def suspects(self) -> list[MemberId]:
        return sorted(self.monitored.detector.suspects)

    def beat(self, sender: MemberId, number: int, incarnation: int = 1) -> list[Effect]:
        return self.deliver(sender, HeartbeatMsg(incarnation, number))

    def told(self) -> list[tuple[str, MemberId]]:
        """What the election was told since the last time."""
        told = [(note.what, note.about) for note in self.journal]
        self.journal.clear()
        return told


def sends(effects: list[Effect], kind: type[Message] = HeartbeatMsg) -> list[MemberId]:
    return [e.to for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def silence(member: MemberId) -> tuple[str, int]:
    return ("detector", member)


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
    watcher.clock = 3.0
    assert watcher.beat(3, 1) == [SetTimer(silence(3), 1.25, eager=False)]
    assert watcher.timers[silence(3)].deadline == 4.25


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
    watcher = Watcher("ring", n=5)
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
    config = AccrualConfig(T=1.0, D=0.25, delta=0.25, min_samples=3)
    watcher = RecordedMember(
        monitored(lambda: Listener(journal), config), Candidate(2), view_of(people(3))
    )
    watcher.start()
    for number in range(1, 6):
        watcher.clock = number * 2.0
        watcher.deliver(1, HeartbeatMsg(1, number))
    assert watcher.timers[silence(1)].deadline > 12.0  # it has learnt that two periods are usual
    assert watcher.timers[silence(3)].deadline == 1.25
    watcher.deliver(1, HeartbeatMsg(2, 1))
    assert watcher.timers[silence(1)].deadline == 11.25  # of the new incarnation nothing is known
