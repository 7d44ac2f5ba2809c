"""What a diagram shows, before it is drawn."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given

from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, GaveUp, NoLeader
from hustings.sim.selection import Heartbeats, Options, choose, cut, ids_text
from hustings.sim.spacetime import Arrow, Fate, Layout, Life, Mark, Reign, Scale, Sort, lay_out
from hustings.sim.trace import (
    Changed,
    Declared,
    Fired,
    Linked,
    Lost,
    Received,
    Record,
    Sent,
    Told,
)
from tests.unit.sim.traces import Heartbeat, Note, read, records, trace_of, turmoil


def laid(made: list[Record], options: Options | None = None, end: float | None = None) -> Layout:
    return lay_out(trace_of(made, end=end), options)


def flights(layout: Layout) -> list[tuple[int, int, int | None, Fate]]:
    return [(a.number, a.sender, a.receiver, a.fate) for a in layout.arrows]


# --- arrows ---------------------------------------------------------------------------------------


def test_a_message_is_an_arrow_from_its_sending_to_its_end() -> None:
    layout = laid([Sent(1.0, 1, 1, 2, Note("hi")), Received(2.5, 2, 1)])
    assert layout.arrows == [Arrow(1, "NOTE", 'NOTE("hi")', 1, 2, 1.0, 2.5, Fate.ARRIVED)]


def test_every_fate_is_told_apart() -> None:
    layout = laid(
        [
            Sent(0.0, 1, 1, 2, Note()),
            Lost(0.0, 1, 2, "loss"),
            Sent(0.0, 1, 2, 3, Note()),
            Received(1.0, 3, 2),
            Received(1.5, 3, 2),
            Sent(2.0, 2, 3, 1, Note()),
        ]
    )
    assert flights(layout) == [
        (1, 1, 2, Fate.LOST),
        (2, 1, 3, Fate.ARRIVED),
        (2, 1, 3, Fate.ARRIVED),
        (3, 2, 1, Fate.UNKNOWN),
    ]
    assert layout.arrows[0].why == "loss"


def test_a_multicast_has_an_arrow_for_each_receiver() -> None:
    layout = laid(
        [
            Sent(0.0, 1, 1, None, Note()),
            Received(1.0, 2, 1),
            Lost(1.0, 1, 3, "loss"),
            Sent(2.0, 1, 2, None, Note()),
            Lost(2.0, 2, None, "loss"),
            Sent(2.0, 1, 3, None, Note()),
        ]
    )
    assert flights(layout) == [
        (1, 1, 2, Fate.ARRIVED),
        (1, 1, 3, Fate.LOST),
        (2, 1, None, Fate.LOST),
        (3, 1, None, Fate.UNKNOWN),
    ]


def test_heartbeats_are_dimmed_shown_or_hidden() -> None:
    made: list[Record] = [
        Sent(0.0, 1, 1, 2, Heartbeat()),
        Sent(0.0, 1, 2, 2, Note()),
        Received(1.0, 2, 1),
        Received(1.0, 2, 2),
        Fired(2.0, 1, "beat 0"),
        Fired(2.0, 1, str(("probe", 0))),
    ]
    assert [arrow.dim for arrow in laid(made).arrows] == [True, False]
    assert [mark.dim for mark in laid(made).marks] == [True, False]
    shown = laid(made, Options(heartbeats=Heartbeats.SHOWN))
    assert [arrow.dim for arrow in shown.arrows] == [False, False]
    assert [mark.dim for mark in shown.marks] == [False, False]
    hidden = laid(made, Options(heartbeats=Heartbeats.HIDDEN))
    assert [arrow.kind for arrow in hidden.arrows] == ["NOTE"]
    assert [mark.text for mark in hidden.marks] == ["('probe', 0)"]
    assert hidden.left_out == ["failure detectors: 1 messages and 1 timers are hidden"]


# --- lives, reigns, cuts, marks -------------------------------------------------------------------


def test_a_member_lives_pauses_crashes_and_comes_back() -> None:
    layout = laid(
        [
            Changed(0.0, 1, "up", 1),
            Changed(1.0, 1, "paused", 1),
            Changed(2.0, 1, "up", 1),
            Changed(3.0, 1, "crashed", 1),
            Changed(4.0, 1, "up", 2),
            Changed(5.0, 1, "left", 2),
        ],
        end=6.0,
    )
    assert layout.lives == [
        Life(1, 0.0, 1.0, "up"),
        Life(1, 1.0, 2.0, "paused"),
        Life(1, 2.0, 3.0, "up"),
        Life(1, 3.0, 4.0, "crashed"),
        Life(1, 4.0, 5.0, "up"),
        Life(1, 5.0, 6.0, "left"),
    ]
    assert [mark.sort for mark in layout.marks] == [
        Sort.STARTED,
        Sort.PAUSED,
        Sort.RESUMED,
        Sort.CRASHED,
        Sort.RESTARTED,
        Sort.LEFT,
    ]
    assert layout.marks[4].text == "incarnation 2"


def test_a_reign_lasts_until_another_outcome_or_the_end_of_its_member() -> None:
    layout = laid(
        [
            Declared(1.0, 1, Elected(1, 5)),
            Declared(1.0, 2, Elected(1, 5)),
            Declared(2.0, 2, NoLeader("asking")),
            Declared(3.0, 2, Elected(2, 6)),
            Changed(4.0, 1, "crashed", 1),
            Changed(4.0, 2, "paused", 1),
            Declared(5.0, 3, GaveUp("tired")),
        ],
        end=9.0,
    )
    assert layout.reigns == [
        Reign(2, 1.0, 2.0, 1, 5),
        Reign(1, 1.0, 4.0, 1, 5),
        Reign(2, 3.0, 9.0, 2, 6),
    ]
    assert [(mark.sort, mark.text) for mark in layout.marks if mark.t != 4.0] == [
        (Sort.LEADS, "leads, term 5"),
        (Sort.FOLLOWS, "follows 1, term 5"),
        (Sort.NO_LEADER, "has no leader: asking"),
        (Sort.LEADS, "leads, term 6"),
        (Sort.GAVE_UP, "gave up: tired"),
    ]


def test_timers_and_what_members_are_told_are_marks() -> None:
    layout = laid([Fired(1.0, 1, "T1"), Told(2.0, 2, "suspect", 3), Told(3.0, 2, "call")])
    assert layout.marks == [
        Mark(1.0, 1, Sort.TIMER, "T1"),
        Mark(2.0, 2, Sort.TOLD, "suspects 3"),
        Mark(3.0, 2, Sort.TOLD, "calls an election"),
    ]


def test_cuts_last_until_they_are_healed() -> None:
    layout = laid(
        [
            Linked(1.0, "partition", "a", ((1,), (2, 3))),
            Linked(2.0, "one-way", "b", ((1, 2), (3,))),
            Linked(3.0, "heal", "a"),
            Linked(4.0, "heal", "never cut"),
        ],
        end=5.0,
    )
    assert [(one.text, one.begin, one.end) for one in layout.cuts] == [
        ("a: 1 | 2, 3", 1.0, 3.0),
        ("b: 1, 2 > 3", 2.0, 5.0),
    ]


# --- bounds ---------------------------------------------------------------------------------------


def test_too_many_events_are_cut_off_and_told() -> None:
    made: list[Record] = [Fired(float(i), 1, "T") for i in range(5)]
    made += [Sent(5.0, 1, 1, 2, Note()), Received(6.0, 2, 1), Fired(7.0, 1, "T")]
    layout = laid(made, Options(max_events=6))
    assert (layout.begin, layout.end) == (0.0, 5.0)
    assert flights(layout) == [(1, 1, 2, Fate.UNKNOWN)]
    assert layout.left_out == [
        "only the first 6 events are drawn, to t = 5; not drawn: receptions (1), timers (1)"
    ]


def test_the_usual_bounds_hold_for_a_long_run() -> None:
    layout = laid([Fired(float(i), 1, "T") for i in range(10_050)])
    assert len(layout.marks) == 10_000
    assert "not drawn: timers (50)" in layout.left_out[0]


def test_the_busiest_members_are_drawn() -> None:
    made: list[Record] = [Changed(0.0, m, "up", 1) for m in (1, 2, 3)]
    made += [Sent(1.0, 3, 1, 1, Note()), Sent(1.0, 3, 2, 2, Note())]
    made += [Received(2.0, 1, 1), Received(2.0, 2, 2), Fired(2.0, 2, "T")]
    layout = laid(made, Options(max_members=2))
    assert layout.members == [2, 3]
    assert flights(layout) == [(2, 3, 2, Fate.ARRIVED)]
    assert {mark.member for mark in layout.marks} == {2, 3}
    assert layout.left_out == ["members not drawn: the 1 with the fewest events"]


def test_a_window_shows_what_began_before_it() -> None:
    made: list[Record] = [
        Changed(0.0, 1, "up", 1),
        Fired(1.0, 1, "early"),
        Declared(1.0, 1, Elected(1, 2)),
        Sent(2.0, 1, 1, 2, Note()),
        Sent(2.0, 1, 2, 2, Note()),
        Received(3.0, 2, 1),
        Received(5.0, 2, 2),
        Fired(6.0, 1, "inside"),
        Fired(9.0, 1, "late"),
    ]
    layout = laid(made, Options(since=4.0, until=7.0))
    assert (layout.begin, layout.end) == (4.0, 7.0)
    assert [mark.text for mark in layout.marks] == ["inside"]
    assert flights(layout) == [(2, 1, 2, Fate.ARRIVED)]
    assert layout.reigns == [Reign(1, 1.0, 7.0, 1, 2)]
    assert layout.lives == [Life(1, 0.0, 7.0, "up")]
    assert layout.left_out == []


def test_options_are_checked() -> None:
    with pytest.raises(BadInput, match="cannot begin at 3 and end at 2"):
        Options(since=3.0, until=2.0)
    with pytest.raises(BadInput, match="at least one event and one member"):
        Options(max_events=0)


# --- words ----------------------------------------------------------------------------------------


def test_words_from_a_trace_are_made_safe() -> None:
    assert cut("a\x1b[31m\nb\u202e") == "a\ufffd[31m\ufffdb\ufffd"
    assert cut("x" * 100, 10) == "xxxxxxx..."


def test_ids_are_shortened() -> None:
    assert ids_text([3, 1, 2, 9, 7, 8, 20]) == "1-3, 7-9, 20"
    assert ids_text([]) == ""


# --- time -----------------------------------------------------------------------------------------


def test_time_is_true_to_scale_in_usual_delays() -> None:
    made: list[Record] = [Sent(0.0, 1, 1, 2, Note()), Received(0.5, 2, 1), Fired(1.25, 1, "T")]
    scale = Scale(laid(made))
    assert scale.step == 0.5
    assert [scale.place(t) for t in (0.0, 0.25, 0.5, 1.25)] == [0.0, 0.5, 1.0, 2.5]
    assert scale.breaks == []


def test_long_silence_is_shortened_and_close_instants_are_kept_apart() -> None:
    made: list[Record] = [
        Sent(0.0, 1, 1, 2, Note()),
        Received(1.0, 2, 1),
        Fired(1.001, 1, "T"),
        Fired(1000.0, 1, "T"),
    ]
    scale = Scale(laid(made))
    assert scale.breaks == [(1.001, 1000.0)]
    assert scale.place(1.001) - scale.place(1.0) == pytest.approx(Scale.NEAR)
    assert scale.length < 5


@given(records())
def test_places_are_in_the_order_of_time(made: list[Record]) -> None:
    scale = Scale(lay_out(trace_of(made, members=4)))
    places = [scale.place(t) for t in scale.instants]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    for before, after in zip(scale.instants, scale.instants[1:], strict=False):
        middle = scale.place((before + after) / 2)
        assert scale.place(before) <= middle <= scale.place(after)


def test_extreme_times_stay_finite() -> None:
    made: list[Record] = [Fired(0.0, 1, "T"), Fired(5e-324, 1, "T"), Fired(1e308, 1, "T")]
    scale = Scale(laid(made))
    assert 0.0 < scale.length < inf
    assert scale.place(1.7e308) < inf


@given(records())
def test_layouts_are_sound(made: list[Record]) -> None:
    """No arrow, life or reign runs backwards, and none concerns a member that is not drawn."""
    layout = lay_out(trace_of(made, members=4))
    assert all(arrow.left <= arrow.ended for arrow in layout.arrows)
    assert all(life.begin <= life.end for life in layout.lives)
    assert all(reign.begin <= reign.end <= layout.end for reign in layout.reigns)
    assert {mark.member for mark in layout.marks} <= set(layout.members)


def test_a_whole_run_is_chosen_when_it_fits() -> None:
    trace = read(turmoil())
    chosen = choose(trace, Options())
    assert chosen.events == trace.events
    assert chosen.members == [1, 2, 3, 4, 5, 6]
    assert chosen.left_out == []
