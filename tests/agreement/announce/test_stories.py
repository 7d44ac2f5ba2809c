"""The transcription does what its programs say: small stories, told in full.

Ticks of 100 to the announce period; sleeps are given, and messages are lost where it says so.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tests.agreement.announce.transcription import (
    Case,
    Event,
    Metrics,
    Run,
    agreed_at,
    disagreement,
    metrics,
    play,
)

THREE = Case("le-s", 3, T_A=100, T_L=None, delta=10)
Sleeps = dict[int, list[int]]
Losses = frozenset[tuple[int, int, int]]  # sender, its how-manieth announcement, receiver


def told(case: Case, sleeps: Sleeps, lost: Losses = frozenset(), until: int = 10**6) -> Run:
    """Play a case with these sleeps of each member."""
    return play(
        case,
        lambda member, nth, now: sleeps[member][nth - 1],
        lambda *fate: fate in lost,
        until,
        settle=until == 10**6,
    )


def test_better_ones_take_over() -> None:
    run = told(THREE, {1: [25], 2: [20], 3: [50]})
    assert run.events == [
        (20, 2, "send 1"),
        (25, 1, "send 1"),  # what 2 has sent is still under way
        (30, 1, "adopt 2"),
        (50, 3, "send 1"),
        (60, 1, "adopt 3"),
        (60, 2, "adopt 3"),
    ]
    assert metrics(run) == Metrics(50, 3, 3, 3, rounds=1, avg_rounds=Fraction(1))


def test_a_lost_announcement_is_repeated_and_the_deaf_go_on() -> None:
    run = told(THREE, {1: [80], 2: [90], 3: [50]}, frozenset({(3, 1, 2)}))
    assert run.events == [
        (50, 3, "send 1"),
        (60, 1, "adopt 3"),
        (90, 2, "send 1"),
        (150, 3, "send 2"),
        (160, 2, "adopt 3"),
    ]
    assert metrics(run) == Metrics(150, 3, 3, 2, rounds=2, avg_rounds=Fraction(3, 2))


def test_who_sends_while_the_last_announcement_travels_counts_up_to_its_arrival() -> None:
    """The same instant is too late, though the send goes before the arrival."""
    case = replace(THREE, members=4)
    run = told(case, {1: [59], 2: [60], 3: [61], 4: [50]})
    assert [event for event in run.events if "send" in event[2]] == [
        (50, 4, "send 1"),
        (59, 1, "send 1"),
        (60, 2, "send 1"),
    ]
    found = metrics(run)
    assert found is not None
    assert (found.sent_by_tmax, found.num_msgs, found.first_round) == (1, 2, 2)


def test_without_delay_the_last_announcement_counts_itself() -> None:
    run = told(replace(THREE, delta=0), {1: [20], 2: [50], 3: [50]})
    assert [event for event in run.events if "send" in event[2]] == [
        (20, 1, "send 1"),
        (50, 2, "send 1"),
        (50, 3, "send 1"),
    ]
    found = metrics(run)
    assert found is not None
    assert (found.sent_by_tmax, found.num_msgs) == (3, 3)


STEADY = Case("le-s", 2, T_A=100, T_L=200, delta=10, steady=2)


def test_an_announcement_in_the_last_instant_is_in_time() -> None:
    """E3: heard at 110, silent at 210, heard again at 310, which is when T_L ends."""
    only_one = frozenset({(2, 3, 1)})
    assert told(STEADY, {1: [5]}, only_one, 399).events == sends(2, [100, 200, 300])
    timer_first = told(replace(STEADY, arrivals_first=False), {1: [5]}, only_one, 399)
    assert (310, 1, "timeout") in timer_first.events
    both = told(STEADY, {1: [5]}, frozenset({(2, 3, 1), (2, 4, 1)}), 399)
    assert both.events == [
        *sends(2, [100, 200, 300]),
        (310, 1, "timeout"),
        (315, 1, "send 1"),
    ]


def sends(who: int, instants: list[int], first: int = 2) -> list[Event]:
    return [(at, who, f"send {number}") for number, at in enumerate(instants, first)]


def test_the_first_silence_counts_from_the_beginning() -> None:
    run = told(STEADY, {1: [50]}, frozenset({(2, 2, 1), (2, 3, 1)}), 299)
    assert run.events == [
        (100, 2, "send 2"),
        (200, 2, "send 3"),
        (200, 1, "timeout"),
        (250, 1, "send 1"),
    ]


def test_the_printed_program_dismisses_a_leader_that_it_hears() -> None:
    """E1: the fraction of the time in disagreement, exactly, over whole cycles."""
    for k, fraction in ((1, (1, 2)), (2, (1, 3)), (3, (1, 4)), (5, (1, 6))):
        case = Case("le-s", 10, 100, 100 * k, 10, steady=10, refresh=False)
        run = play(case, lambda *_: 50, lambda *_: False, 100_000)
        cycle = 100 * (k + 1)
        assert disagreement(run, 10, 10 * cycle, 90 * cycle) == Fraction(*fraction)
        right = play(replace(case, refresh=True), lambda *_: 50, lambda *_: False, 100_000)
        # The first announcement comes a delay later than T_A after the beginning.
        assert not [event for event in right.events if "timeout" in event[2] and event[0] > 100]


def test_a_listener_ignores_the_successor_until_its_own_time_out() -> None:
    """Member 2 has heard the old leader once more than 1, so it wakes to 1's claims late."""
    case = Case("le-s", 3, 100, 250, 10, steady=3, crashes={3: 150})
    run = told(case, {1: [0], 2: [30]}, frozenset({(3, 2, 1)}))
    assert run.events[:7] == [
        (100, 3, "send 2"),
        (250, 1, "timeout"),
        (250, 1, "send 1"),
        (350, 1, "send 2"),
        (360, 2, "timeout"),
        (390, 2, "send 1"),
        (400, 1, "adopt 2"),
    ]
    assert agreed_at(run, [1, 2], 2, 150) == 400


def test_what_a_dead_leader_has_sent_still_arrives() -> None:
    case = Case("le-s", 3, 100, 120, 30, steady=3, crashes={3: 201})
    run = told(case, {1: [5, 10], 2: [5, 5]}, frozenset({(3, 2, 1), (3, 2, 2)}), 400)
    assert run.events == [
        (100, 3, "send 2"),
        (120, 1, "timeout"),
        (120, 2, "timeout"),
        (125, 1, "send 1"),
        (125, 2, "send 1"),
        (155, 1, "adopt 2"),
        (200, 3, "send 3"),
        (225, 2, "send 2"),
        (230, 1, "adopt 3"),  # it had a living leader, and goes back to a dead one
        (230, 2, "adopt 3"),
        (350, 1, "timeout"),
        (350, 2, "timeout"),
        (355, 2, "send 1"),
        (360, 1, "send 1"),
        (385, 1, "adopt 2"),
    ]
    assert agreed_at(run, [1, 2], 2, 201) == 155  # which does not last
    assert agreed_at(run, [1, 2], 2, 230) == 385


def test_who_is_not_there_at_the_arrival_hears_nothing_and_a_joiner_does() -> None:
    case = replace(STEADY, members=3, joins={3: 105}, crashes={1: 109})
    run = told(case, {3: [50]}, until=200)
    assert [entry for entry in run.heard if entry[0] == 110] == [(110, 3, 2, 2)]


def test_le_m_follows_who_woke_first() -> None:
    case = replace(THREE, algorithm="le-m")
    run = told(case, {1: [20], 2: [25], 3: [50]})
    assert run.events == [
        (20, 1, "send 1"),
        (25, 2, "send 1"),
        (30, 2, "adopt 1"),
        (30, 3, "adopt 1"),
    ]
    tied = told(case, {1: [20], 2: [20], 3: [50]})
    assert tied.events[2:] == [
        (30, 3, "adopt 1"),  # the first message to arrive
        (30, 1, "adopt 2"),  # equal keys: the address decides
        (30, 3, "adopt 2"),
    ]


def test_a_late_joiner_of_le_m_takes_over_only_by_its_relative_key() -> None:
    """It sleeps 10 where the leader slept 20, but a hundred ticks later."""
    case = replace(THREE, algorithm="le-m", joins={3: 125})
    sleeps = {1: [20], 2: [95], 3: [10]}
    early = frozenset({(1, 2, 3)})
    absolute = told(case, sleeps, early, 230).events
    assert absolute[-3:] == [(135, 3, "send 1"), (220, 1, "send 3"), (230, 3, "adopt 1")]
    relative = told(replace(case, relative=True), sleeps, early, 230).events
    assert relative[-3:] == [(135, 3, "send 1"), (145, 1, "adopt 3"), (145, 2, "adopt 3")]


def test_sup_sends_once_and_any_message_suppresses() -> None:
    run = told(replace(THREE, algorithm="sup"), {1: [20], 2: [30], 3: [31]}, until=500)
    assert run.events == [(20, 1, "send 1"), (30, 2, "send 1"), (30, 3, "adopt 1")]
    assert metrics(run) == Metrics(30, 2, 2, 2, t_halt=30)
    lonely = told(
        replace(THREE, algorithm="sup"), {1: [20], 2: [40], 3: [90]}, frozenset({(1, 1, 3)}), 500
    )
    assert lonely.events == [(20, 1, "send 1"), (30, 2, "adopt 1"), (90, 3, "send 1")]
    assert metrics(lonely) == Metrics(90, 2, 2, 2, t_halt=90)


def test_al_announces_for_ever_and_le_a_until_it_hears_a_better_one() -> None:
    lost = frozenset({(3, 1, 1), (2, 1, 1)})
    al = told(replace(THREE, algorithm="al"), {}, lost)
    assert al.events == [
        *[(0, j, "send 1") for j in (1, 2, 3)],
        (10, 2, "adopt 3"),
        *[(100, j, "send 2") for j in (1, 2, 3)],
        (110, 1, "adopt 2"),
        (110, 1, "adopt 3"),
    ]
    assert metrics(al) == Metrics(100, 6, 6, 3, rounds=2, avg_rounds=Fraction(3, 2))
    le_a = told(replace(THREE, algorithm="le-a"), {}, lost)
    assert le_a.events == [
        *[(0, j, "send 1") for j in (1, 2, 3)],
        (10, 2, "adopt 3"),
        (100, 1, "send 2"),
        (100, 3, "send 2"),
        (110, 1, "adopt 3"),
    ]
    assert metrics(le_a) == Metrics(100, 5, 5, 3, rounds=2, avg_rounds=Fraction(3, 2))
