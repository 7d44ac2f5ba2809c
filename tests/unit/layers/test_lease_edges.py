"""A member under a guard at the edges: what is asked again, forgotten, passed on, and when."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from hustings.core.choice import HighestId, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import upon
from hustings.core.guard import Freed
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.core.rounds import RoundBased
from hustings.layers.layer import unwrapped
from hustings.layers.lease import (
    ASK,
    AWAITING,
    END,
    LAPSED,
    LeaseConfig,
    LeaseHeldMsg,
    LeaseLayer,
)
from hustings.protocols.registry import find
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    RecordedMember,
    Release,
    Send,
    SetTimer,
    persist,
    recording,
    view_of,
)
from tests.unit.layers.puppets import GROUP, LEASE, ME, WINDOW, Driven, Puppet, SayMsg


def within(member: RecordedMember, act: Callable[[Context], None]) -> list[Effect]:
    """What a call has for effects that worlds make and the recorded member has no word for."""
    with recording(member.me, member.view, stored=member.stored, now=member.clock) as ctx:
        act(ctx)
    return ctx.effects


def slept(member: RecordedMember, gap: float) -> list[Effect]:
    return within(member, lambda ctx: member.election.woke(ctx, gap))


# Settings


def test_the_pause_between_questions_is_the_one_that_was_set() -> None:
    assert LeaseConfig(retry=7.0).patience == 7.0
    assert LeaseConfig(retry=7.0).shortest == 0.7
    assert LeaseConfig(delta=2.0).patience == 6.0


def test_what_is_kept_for_the_work_under_way_shortens_the_lead() -> None:
    lease = LeaseConfig(ttl=30.0, drift=0.2, margin=4.0)
    assert lease.window(30.0) == pytest.approx(20.0)
    assert lease.leading(30.0) == pytest.approx(16.0)


@pytest.mark.parametrize(
    "settings, complaint",
    [
        ({"ttl": 11.9, "delta": 2.0}, "(6 delta = 12), not 11.9"),
        ({"ttl": 2.9, "delta": 0.5}, "(6 delta = 3), not 2.9"),
        ({"ttl": 30.0, "drift": 0.0, "margin": 18.0}, "drift=0 and margin=18 leave a window of 12"),
        ({"ttl": 30.0, "drift": 0.0, "margin": 18.0}, "of ttl=30: too short to renew in"),
        ({"ttl": 12.0, "drift": 0.5}, "drift=0.5 leaves a window of 4 of ttl=12: too short"),
        ({"ttl": 30.0, "drift": 0.25, "margin": 5.6}, "too short"),
        ({"ttl": 15.0, "drift": 0.0, "delta": 0.5, "margin": 9.0}, "leave a window of 6"),
        ({"ttl": 60.0, "drift": 0.0, "delta": 2.0, "margin": 37.0}, "leave a window of 23"),
    ],
)
def test_a_lease_that_leaves_no_time_says_which_time(
    settings: dict[str, object], complaint: str
) -> None:
    (broken,) = msgspec.convert(settings, LeaseConfig).broken_rules()
    assert complaint in broken


@pytest.mark.parametrize(
    "settings",
    [
        {"ttl": 12.0, "delta": 2.0, "drift": 0.0},
        {"ttl": 3.0, "delta": 0.5, "drift": 0.0},
        {"ttl": 30.0, "drift": 0.0, "margin": 17.9},
        {"ttl": 30.0, "drift": 0.25, "margin": 5.4},
        {"ttl": 60.0, "drift": 0.0, "delta": 2.0, "margin": 35.0},
        {"ttl": 15.0, "drift": 0.0, "delta": 0.5, "margin": 8.9},
    ],
)
def test_a_lease_that_leaves_just_enough_is_taken(settings: dict[str, object]) -> None:
    assert LeaseConfig.parse(settings).broken_rules() == []


# A guard that says it is free


def test_who_waits_asks_at_once_when_the_guard_is_free_and_waits_no_longer_than_at_first(
    driven: Driven,
) -> None:
    driven.at(100.0).nominate()
    for _ in range(3):
        driven.refuse(remaining=1_000.0)
        driven.member.fire(ASK)
    request = driven.election.request
    assert driven.member.answer(Freed(6)) == [
        Acquire(30.0, request + 1),
        SetTimer(ASK, LEASE.patience),
    ]


def test_who_leads_or_was_not_named_asks_nothing_when_the_guard_is_free(
    leading: Driven, driven: Driven
) -> None:
    assert leading.member.answer(Freed(6)) == []
    assert driven.member.answer(Freed(6)) == []


def test_that_the_guard_is_free_is_an_answer_too(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.say(Elected(3, 2))
    driven.at(110.0).nominate()
    assert driven.election.silence(113.0) == 3.0
    driven.at(113.0).member.answer(Freed(6))
    assert driven.election.silence(115.0) == 2.0, "since the question that it led to"


# Questions and their answers


def test_a_grant_makes_the_next_pause_short_again(driven: Driven) -> None:
    driven.at(100.0).nominate()
    for _ in range(3):
        driven.refuse(remaining=1_000.0)
        driven.member.fire(ASK)
    driven.grant()
    driven.member.fire(ASK)
    effects = driven.refuse(holder=3, token=9, remaining=1_000.0)  # taken from it
    assert effects[-1] == SetTimer(ASK, 2 * LEASE.patience)  # the renewal was one question more


def test_a_new_nomination_makes_the_next_pause_short_again(driven: Driven) -> None:
    driven.at(100.0).nominate()
    for _ in range(3):
        driven.refuse(remaining=1_000.0)
        driven.member.fire(ASK)
    driven.say(Elected(3, 2))
    assert driven.nominate()[-1] == SetTimer(ASK, LEASE.patience)


def test_questions_too_old_to_be_granted_anything_are_forgotten(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.at(100.0 + WINDOW).member.fire(ASK)
    assert set(driven.election.pending) == {2}
    driven.at(100.0 + 2 * WINDOW - 0.1).member.fire(ASK)
    assert set(driven.election.pending) == {2, 3}


def test_a_second_leadership_lasts_as_long_as_its_first(leading: Driven) -> None:
    """A token that is new makes a leadership that is renewed like any other."""
    leading.at(120.0).member.fire(END)
    leading.member.fire(ASK)
    leading.grant(token=8)
    leading.member.fire(ASK)
    assert Release(leading.election.request + 1) not in leading.grant(token=8)
    assert leading.outcome == Elected(2, 8)


def test_a_newer_token_begins_its_own_window_even_if_that_is_shorter(leading: Driven) -> None:
    """The guard has counted on: what the older token would have lasted is of no use."""
    leading.at(110.0).member.fire(ASK)
    leading.at(111.0).grant(token=9, ttl=6.0)
    assert leading.election.until == pytest.approx(110.0 + 4.0)


def test_a_first_grant_counts_as_new_whatever_its_token(driven: Driven) -> None:
    driven.nominate()
    assert driven.grant(token=1)[-1] == Declare(Elected(2, 1))


def test_who_is_told_of_a_newer_token_while_it_works_gives_back_nothing_twice(
    leading: Driven,
) -> None:
    leading.election.engaged = 1
    leading.say(Elected(3, 2))
    leading.election.engaged = 0
    assert leading.member.alive(1) == [Release(2)]
    assert leading.member.alive(1) == [], "once is enough"


def test_the_owner_that_has_ended_its_work_gives_back_at_once(leading: Driven) -> None:
    leading.election.engaged = 1
    leading.say(Elected(3, 2))
    leading.election.engaged = 0
    assert within(leading.member, leading.election.settle_up) == [Release(2)]


def test_what_a_forgetful_guard_granted_is_given_back_with_all_that_it_may_grant_yet(
    driven: Driven,
) -> None:
    driven.hear(3, 6)
    driven.nominate()
    driven.member.fire(ASK)
    assert driven.grant(token=5, request=1) == [Release(3)]
    assert driven.grant(token=8, request=2) == []
    assert driven.outcome == NoLeader(AWAITING)


def test_a_timer_that_comes_late_ends_nothing_that_was_not_begun(driven: Driven) -> None:
    driven.nominate()
    driven.member.timers[END] = driven.member.timers[ASK]
    assert driven.member.fire(END) == []
    assert driven.outcome == NoLeader(AWAITING)


def test_the_end_is_not_passed_on_to_the_inner_election(leading: Driven) -> None:
    heard = list(leading.heard)
    assert leading.member.fire(END) == [CancelTimer(END), Declare(NoLeader(LAPSED))]
    assert leading.heard == heard


# A leader that is suspected


def test_who_suspects_a_leader_does_not_believe_in_it_because_its_time_is_not_over(
    driven: Driven,
) -> None:
    driven.hear(3, 6)
    driven.member.suspect(3)
    driven.nominate()
    driven.refuse(holder=3, token=6)
    assert driven.outcome == NoLeader(AWAITING)


def test_a_doubt_stays_when_another_is_suspected_too(driven: Driven) -> None:
    driven.hear(3, 6)
    driven.member.suspect(3)
    driven.member.suspect(1)
    driven.nominate()
    driven.refuse(holder=3, token=6)
    assert driven.outcome == NoLeader(AWAITING)


def test_who_suspects_another_believes_in_the_holder(driven: Driven) -> None:
    driven.hear(3, 6)
    driven.member.suspect(1)
    driven.nominate()
    driven.refuse(holder=3, token=6)
    assert driven.outcome == Elected(3, 6)


def test_a_suspected_leader_is_believed_in_with_a_new_token(driven: Driven) -> None:
    driven.hear(3, 6)
    driven.member.suspect(3)
    driven.nominate()
    driven.refuse(holder=3, token=7)
    assert driven.outcome == Elected(3, 7)


# A member that slept


def test_after_sleep_the_rest_of_the_window_counts(leading: Driven) -> None:
    assert slept(leading.at(115.0).member, 10.0) == [SetTimer(END, 5.0, eager=True)]
    assert leading.outcome == Elected(2, 7)


def test_after_a_long_sleep_the_lead_is_over(leading: Driven) -> None:
    assert slept(leading.at(120.0).member, 18.0) == [CancelTimer(END), Declare(NoLeader(LAPSED))]


def test_who_does_not_lead_only_hands_the_sleep_on(driven: Driven) -> None:
    assert slept(driven.at(50.0).member, 3.0) == []


# What the inner election gets and does


class Busy(Puppet, RoundBased):
    """Does everything that a context is for, whatever it is called for."""

    def act(self, ctx: Context) -> None:
        ctx.send(3, SayMsg(NoLeader(ELECTING)))
        ctx.multicast(SayMsg(NoLeader("nobody")))
        ctx.set_timer("own", 4.0, eager=True)
        ctx.cancel_timer("own")
        ctx.persist(round=5)

    def start(self, ctx: Context) -> None:
        self.act(ctx)
        ctx.declare(NoLeader("start"))

    def call(self, ctx: Context) -> None:
        self.act(ctx)
        ctx.declare(NoLeader("call"))

    def woke(self, ctx: Context, gap: float) -> None:
        ctx.declare(NoLeader(f"woke {gap:g}"))

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        ctx.declare(NoLeader(f"timer {key}"))

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        ctx.declare(NoLeader(f"suspect {member}"))

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        ctx.declare(NoLeader(f"alive {member}"))

    def opens(self, message: Message) -> tuple[int, ...] | None:
        return (4, 2)

    def span(self, message: Message, members: int) -> tuple[float, float]:
        return 0.0, 0.0


DONE: list[Effect] = [
    Send(3, SayMsg(NoLeader(ELECTING))),
    Multicast(SayMsg(NoLeader("nobody"))),
    SetTimer("own", 4.0, eager=True),
    CancelTimer("own"),
    persist(round=5),
]


def test_what_the_inner_election_does_happens() -> None:
    member = RecordedMember(lambda: LeaseLayer(Busy(), LEASE), ME, view_of(GROUP))
    assert member.start() == [*DONE, Declare(NoLeader("start"))]
    assert member.call() == [*DONE, Declare(NoLeader("call"))]


@pytest.mark.parametrize(
    "act, said",
    [
        (lambda member: member.suspect(3), "suspect 3"),
        (lambda member: member.alive(1), "alive 1"),
        (lambda member: slept(member, 2.0), "woke 2"),
    ],
)
def test_what_the_inner_election_says_is_heard_whatever_it_was_called_for(
    act: Callable[[RecordedMember], list[Effect]], said: str
) -> None:
    member = RecordedMember(lambda: LeaseLayer(Busy(), LEASE), ME, view_of(GROUP))
    member.start()
    assert act(member) == [Declare(NoLeader(said))]


def test_a_part_of_the_inner_election_acts_as_if_the_world_had_called_it(leading: Driven) -> None:
    name = Elected(3, 4)
    effects = within(
        leading.member,
        lambda ctx: leading.election.run_inner(ctx, lambda inner: inner.declare(name)),
    )
    assert effects[-2:] == [Declare(NoLeader(AWAITING)), Release(2)]


def test_before_it_acts_the_clock_is_looked_at(leading: Driven) -> None:
    leading.at(120.0)
    effects = within(
        leading.member, lambda ctx: leading.election.run_inner(ctx, lambda inner: None)
    )
    assert effects == [CancelTimer(END), Declare(NoLeader(LAPSED))]


class Mute(Puppet):
    """Says nothing, whatever it is told to say."""

    @upon(SayMsg)
    def on_say(self, ctx: Context, sender: MemberId, message: SayMsg) -> None:
        self.heard.append(message)


def test_a_message_that_comes_to_nothing_changes_nothing() -> None:
    member = RecordedMember(lambda: LeaseLayer(Mute(), LEASE), ME, view_of(GROUP))
    member.start()
    member.deliver(3, LeaseHeldMsg(3, 6))
    assert member.deliver(1, SayMsg(Elected(2, 1))) == []
    assert member.outcome == Elected(3, 6)


def test_which_elections_a_message_opens_is_the_inner_elections_to_say() -> None:
    inner, said = unwrapped(LeaseLayer(Busy(), LEASE), LeaseHeldMsg(1, 1))
    assert isinstance(inner, Busy)
    assert inner.opens(said) == (4, 2)


def test_settings_and_choice_are_the_inner_elections() -> None:
    kind = find("bully")
    inner = kind(kind.Settings.parse({"delta": 2.5}), HighestId())
    election = LeaseLayer(inner, LEASE)
    assert election.config is inner.config
    assert election.choice is inner.choice


def test_the_state_tells_how_long_it_leads(leading: Driven) -> None:
    assert leading.election.state().startswith("confirmed=2 token=7 until=120 | ")


def test_silence_is_never_negative(driven: Driven) -> None:
    driven.at(100.0).nominate()
    assert driven.election.silence(99.0) == 0.0
    assert driven.election.silence(100.5) == 0.5
