"""Two implementations of one state machine: the protocol and the transcription, event by event.

Random groups with random timers, ties among them, lose random messages and their leader. Sends,
adoptions and time-outs must be the same, at the same instants and in the same order, and so must
the metrics. The last tests show that these would notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agreement.announce import transcription
from tests.agreement.announce.driving import (
    Story,
    crashed,
    events,
    fates,
    measured,
    same_sleeps,
    simulated,
    told_twice,
)
from tests.agreement.announce.transcription import TICKS, Case, Metrics, ticks

ELECTIONS = ("le-a", "le-s", "le-m")
ALL = (*ELECTIONS, "sup", "al", "le-s-printed")


def losses() -> st.SearchStrategy[tuple[str, float]]:
    chances = st.sampled_from([0.1, 0.4, 0.7]) | st.floats(0.01, 0.9)
    models = st.sampled_from(["correlated", "uncorrelated"])
    return st.just(("none", 0.0)) | st.tuples(models, chances)


@st.composite
def stories(draw: st.DrawFn, algorithms: tuple[str, ...] = ALL) -> Story:
    """Any group; delays and timers are such that much happens at one instant."""
    T_A = draw(st.sampled_from([1.0, 0.3, 0.5, 2.5]))
    delta = draw(st.sampled_from([0.0, 0.1, 0.125, T_A / 2, T_A, 2 * T_A]) | st.floats(0, 3))
    T_L = draw(st.sampled_from([inf, T_A, 2 * T_A, 3 * T_A, 2.3 * T_A, T_A + delta]))
    model, loss = draw(losses())
    return Story(
        algorithm=draw(st.sampled_from(algorithms)),
        members=draw(st.integers(2, 12)),
        T_A=T_A,
        T_L=T_L,
        T_S=draw(st.sampled_from([0.0, 0.5, 1.0, T_A, 2.0])),
        delta=round(delta, 8),
        model=model,
        loss=loss,
        seed=draw(st.integers(0, 2**32)),
        relative=draw(st.booleans()),
        coarse=draw(st.booleans()),
    )


@st.composite
def eventful(draw: st.DrawFn) -> Story:
    """Somebody leads already, or nobody does; members crash and join, also at others' instants."""
    story = draw(stories())
    n, T_A = story.members, story.T_A
    moments = st.sampled_from([0.5, 1.0, 2 * T_A, 2 * T_A + story.delta, 3.05, 1.75])
    crashes: dict[int, float] = {}
    if draw(st.booleans()):
        crashes[n] = draw(moments)
        if n > 2 and draw(st.booleans()):
            crashes[n - 1] = draw(moments)
    steady = None
    if story.algorithm in (*ELECTIONS, "le-s-printed") and draw(st.booleans()):
        steady = draw(st.sampled_from([n, n, 1]))
    late = st.integers(1, n).filter(lambda one: one not in crashes and one != steady)
    joins = draw(st.dictionaries(late, moments, max_size=3)) if n > 4 else {}
    return replace(story, crashes=crashes, steady=steady, joins=joins)


def check_events(story: Story) -> None:
    by_protocol, by_transcription = told_twice(story)
    assert by_protocol == by_transcription


@settings(max_examples=180)
@given(eventful())
def test_members_do_the_same(story: Story) -> None:
    check_events(story)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(eventful())
def test_members_do_the_same_in_very_many_stories(story: Story) -> None:
    check_events(story)


def test_members_that_wake_at_one_instant_are_told_apart_by_address() -> None:
    """le-m: instants that were added up in different ways are one instant, whatever rounding does.

    Members 1 and 6 wake at 4.0875, each after another time-out.
    """
    story = Story("le-m", 8, T_A=0.3, T_L=0.3, T_S=0.3, delta=0.15, seed=1, coarse=True, until=4.3)
    story = replace(story, model="uncorrelated", loss=0.4)
    assert {(ticks(4.0875), 1, "send 1"), (ticks(4.0875), 6, "send 1")} <= set(told_twice(story)[0])
    check_events(story)


# Metrics


def in_units(found: Metrics, delta: float) -> dict[str, float]:
    """As the simulator names and scales them."""
    values = {"tmax": found.tmax / TICKS, "num_msgs": float(found.num_msgs)}
    values["sent_by_tmax"] = float(found.sent_by_tmax)
    values["first_round"] = float(found.first_round)
    if found.t_halt is not None:
        values["t_halt"] = found.t_halt / TICKS
    if found.rounds is not None and found.avg_rounds is not None:
        values["rounds"] = float(found.rounds)
        values["avg_rounds"] = float(found.avg_rounds)
        values["leadership_delay"] = (found.tmax + round(delta * TICKS)) / TICKS
    return values


def check_metrics(story: Story) -> None:
    metrics, transcribed = measured(story)
    if transcribed is None:  # too many losses for the time
        assert metrics["tmax"] is None
        return
    expected = in_units(transcribed, story.delta)
    found = {name: metrics.get(name) for name in expected}
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@st.composite
def starts(draw: st.DrawFn) -> Story:
    """Simultaneous starts; with the relative key of le-m a short T_L may change who leads."""
    story = draw(stories((*ELECTIONS, "sup", "al")))
    T_L = inf if story.algorithm == "le-m" else draw(st.sampled_from([inf, inf, story.T_L]))
    return replace(story, T_L=T_L, until=60.0)


@settings(max_examples=120)
@given(starts())
def test_metrics_are_the_same(story: Story) -> None:
    check_metrics(story)


@pytest.mark.soak
@settings(max_examples=10_000)
@given(starts())
def test_metrics_are_the_same_in_very_many_starts(story: Story) -> None:
    check_metrics(story)


@st.composite
def departures(draw: st.DrawFn) -> Story:
    """With delays well below T_L: else a sleeper's own old announcements may win others over.

    By its variable such a sleeper leads, by its word it does not yet, and the two would differ.
    """
    story = draw(stories(("le-a", "le-s")))
    delta = draw(st.sampled_from([0.0, 0.1, story.T_A / 2]))
    story = replace(story, delta=min(delta, story.T_A / 2))
    T_L = draw(st.sampled_from([2.0, 3.0, 4.5])) * story.T_A
    members = draw(st.integers(3, 10))
    loss = min(story.loss, 0.5)
    return replace(story, members=members, T_L=T_L, loss=loss, until=400.0)


def check_departure(story: Story) -> None:
    by_protocol, by_transcription = crashed(story)
    assert by_protocol == pytest.approx(by_transcription, abs=1e-9)


@settings(max_examples=36)
@given(departures())
def test_the_time_without_a_leader_is_the_same(story: Story) -> None:
    check_departure(story)


@pytest.mark.soak
@settings(max_examples=5_000)
@given(departures())
def test_the_time_without_a_leader_is_the_same_in_very_many_groups(story: Story) -> None:
    check_departure(story)


# Would these tests notice? Faults in one of the two must show


FAULTS: dict[str, Callable[[Case], Case]] = {
    "the leader's announcements do not re-arm T_L": lambda case: replace(case, refresh=False),
    "listen timers go before arrivals": lambda case: replace(case, arrivals_first=False),
    "T_L is a tick too long": lambda case: replace(case, T_L=(case.T_L or 0) + 1),
    "announcements take a tick more": lambda case: replace(case, delta=case.delta + 1),
    "the leader crashes a tick later": lambda case: replace(case, crashes={5: 3 * TICKS + 1}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_shows(fault: str) -> None:
    story = Story(*("le-s", 5), T_L=2.0, model="uncorrelated", loss=0.4, steady=5, crashes={5: 3.0})
    trace = simulated(story)
    sleeps = same_sleeps(story.seed, story.T_S)
    case = FAULTS[fault](story.case())
    run = transcription.play(case, sleeps, fates(trace, 5), ticks(story.until))
    assert events(trace, 5) == told_twice(story)[1]
    assert events(trace, 5) != run.events
