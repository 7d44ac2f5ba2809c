"""One member with a leadership layer, fed anything: it never raises and stays within bounds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.leadership.layer import LeadershipConfig
from hustings.layers.leadership.messages import MAX_TERM, HandOverMsg, LeaderInfoMsg, LeaderQueryMsg
from hustings.layers.leadership.standing import OBSERVER, accepts, with_standing
from hustings.protocols.bully import Bully, CoordinatorMsg, ElectionMsg, OkMsg
from hustings.protocols.registry import ANNOUNCING, COMPARED, LARGE, classes
from hustings.testing.effects import Declare, Effect, Multicast, Send, SetTimer
from tests.unit.layers.leadership.members import LeadingMember, order

MOST = 64  # bytes of what a leadership layer says of one leader

extremes = st.sampled_from([-(2**63) - 1, -1, 0, MAX_TERM, MAX_TERM + 1, 2**63, 2**64 - 1])
terms = st.integers(0, 9) | extremes
ids = st.integers(1, 6) | extremes
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(HandOverMsg, ids, terms),
    st.builds(LeaderInfoMsg, st.lists(ids, max_size=3).map(tuple), terms),
    st.builds(LeaderInfoMsg, st.integers(1, 5).map(lambda i: (i,)), st.integers(1, 9)),
    st.builds(LeaderQueryMsg, terms),
)

Step = Callable[[LeadingMember], list[Effect]]


def fire(place: int) -> Step:
    def step(member: LeadingMember) -> list[Effect]:
        keys = sorted(member.timers, key=str)
        return member.fire(keys[place % len(keys)]) if keys else []

    return step


def wait(time: float) -> Step:
    def step(member: LeadingMember) -> list[Effect]:
        member.clock += time
        return []

    return step


def look_out(other: int, kind: int) -> Step:
    """The world's view changes."""

    def step(member: LeadingMember) -> list[Effect]:
        if kind == 0:
            member.lose(other)
        elif kind == 1:
            member.meet(with_standing(Candidate(other), OBSERVER))
        else:
            member.meet(with_standing(Candidate(other), -(kind % 2)))
        return []

    return step


others = st.integers(2, 5)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda sender, message: lambda m: m.deliver(sender, message), others, messages),
    st.builds(lambda sender, message: lambda m: m.deliver(sender, message), others, messages),
    st.builds(fire, st.integers(0, 9)),
    st.builds(fire, st.integers(0, 9)),
    st.builds(wait, st.floats(0, 60)),
    st.builds(look_out, others, st.integers(0, 5)),
    st.builds(lambda about: lambda m: m.suspect(about), others),
    st.builds(lambda about: lambda m: m.alive(about), others),
    st.builds(lambda to: lambda m: m.ask(lambda h, ctx: h.hand_over(ctx, to)), ids),
    st.builds(lambda gap: lambda m: m.ask(lambda h, ctx: h.woke(ctx, gap)), st.floats(0, 60)),
    st.just(lambda m: m.ask(lambda h, ctx: h.stand_back(ctx))),
    st.just(lambda m: m.ask(lambda h, ctx: h.stand(ctx))),
    st.just(lambda m: m.ask(lambda h, ctx: h.joined(ctx))),
    st.just(lambda m: m.call()),
    st.just(lambda m: m.restart()),
)


def member_of(kind: type[Election], leadership: LeadershipConfig, observes: bool) -> LeadingMember:
    def elect() -> Election:
        inner = kind(kind.Settings(), order())
        if kind.assumptions.announces:
            return inner
        return DetectorLayer(inner, Detector(HeartbeatConfig(pattern="leader-to-all")))

    me = Candidate(1)
    if observes:
        me = with_standing(me, OBSERVER)
    return LeadingMember(me, [Candidate(other) for other in (2, 3, 4, 5)], leadership, elect)


def check(member: LeadingMember, effects: list[Effect], term: int) -> int:
    """Bounds; and the highest term that the owner was told."""
    leadership = member.leadership
    for effect in effects:
        if isinstance(effect, Send | Multicast):
            message = effect.message
            if isinstance(message, HandOverMsg | LeaderQueryMsg):
                assert len(msgspec.msgpack.encode(message)) <= MOST
            if isinstance(effect, Send):
                assert -(2**63) <= effect.to < 2**63
        elif isinstance(effect, SetTimer):
            assert effect.delay >= 0
        elif isinstance(effect, Declare) and isinstance(effect.outcome, Elected):
            assert effect.outcome.term >= term
            term = effect.outcome.term
    directory = leadership.electors.view
    assert directory.ids == sorted(set(directory.ids))
    assert len(directory) + len(leadership.electors.observers) <= 6
    assert leadership.observer or 1 in directory
    assert all(order().can_rank(directory.candidate(each)) for each in directory)
    assert accepts(order())(member.me)
    assert member.leadership.observer or not leadership.observed.leaders
    return term


KINDS = [*classes(COMPARED), *classes(LARGE), *classes(ANNOUNCING)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.about.name)
@given(
    story=st.lists(steps, max_size=40),
    preempt_after=st.sampled_from([None, 0.0, 15.0]),
    observes=st.sampled_from([False, False, False, True]),
)
def test_nothing_that_others_do_raises_or_breaks_a_bound(
    kind: type[Election], story: list[Step], preempt_after: float | None, observes: bool
) -> None:
    member = member_of(kind, LeadershipConfig(preempt_after=preempt_after), observes)
    term = check(member, member.start(), 0)
    for step in story:
        term = check(member, step(member), term)


numbers = st.integers(0, 9)
spoken: st.SearchStrategy[Message] = st.one_of(
    messages,
    st.builds(ElectionMsg, numbers),
    st.builds(OkMsg, numbers),
    st.builds(CoordinatorMsg, numbers),
)
talk: st.SearchStrategy[Step] = st.builds(
    lambda sender, message: lambda m: m.deliver(sender, message), others, spoken
)


@given(st.lists(talk | steps, max_size=60))
def test_an_election_may_speak_between(story: list[Step]) -> None:
    member = member_of(Bully, LeadershipConfig(), observes=False)
    term = check(member, member.start(), 0)
    for step in story:
        term = check(member, step(member), term)
