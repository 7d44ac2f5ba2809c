"""A candidate's rules: what it counts, from when on, and which token it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context
from hustings.core.guard import Freed, Granted, Held, Verdict
from hustings.core.messages import Message
from hustings.quorum.epochs import EPOCH_BITS
from hustings.quorum.messages import (
    AcceptedMsg,
    AcceptMsg,
    AvailableMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    ReleaseMsg,
)
from hustings.quorum.proposer import AGAIN, IDLE, MAX_SENT, Proposer
from hustings.testing.effects import Effect, SetTimer
from hustings.testing.recorded import recording
from tests.unit.quorum.quorum_kit import FIVE, THREE

ME = 9  # no voter: all votes come by message
UNKNOWN = (0, 0, 0)
M = TypeVar("M", bound=Message)
FIRST, SECOND = (1 << EPOCH_BITS) + 7, (2 << EPOCH_BITS) + 7


def _tell(
    hear: Callable[[Context, MemberId, M], None], voter: MemberId, message: M, ctx: Context
) -> None:
    hear(ctx, voter, message)


class Desk:
    """A petition with a clock, and what comes out of it."""

    def __init__(self, kind: type[Proposer] = Proposer, voters: int = 3) -> None:
        self.proposer = kind(THREE if voters == 3 else FIVE, 1.0)
        self.epochs = UNKNOWN if voters == 3 else (0,) * 5
        self.effects: list[Effect] = []

    def acquire(self, request: int = 1, ttl: float = 30.0) -> list[Message]:
        self._run(lambda ctx: self.proposer.acquire(ctx, ttl, request))
        return self.said()

    def release(self, to: MemberId | None = None) -> list[Message]:
        self._run(lambda ctx: self.proposer.release(ctx, to))
        return self.said()

    def again(self) -> list[Message]:
        self._run(self.proposer.again)
        return self.said()

    def promise(
        self,
        *voters: MemberId,
        number: int | None = None,
        lease: Lease | None = None,
        epochs: tuple[int, ...] | None = None,
    ) -> list[Message]:
        own = self.proposer.round if number is None else number
        message = PromiseMsg(0, own, 1, self.epochs if epochs is None else epochs, lease)
        for voter in voters:
            self._run(partial(_tell, self.proposer.on_promise, voter, message))
        return self.said()

    def accept(
        self, *voters: MemberId, request: int = 1, epochs: tuple[int, ...] | None = None
    ) -> Sequence[Verdict]:
        known = self.epochs if epochs is None else epochs
        message = AcceptedMsg(0, self.proposer.round, 1, request, known)
        for voter in voters:
            self._run(partial(_tell, self.proposer.on_accepted, voter, message))
        return self.heard()

    def refuse(
        self,
        *voters: MemberId,
        promised: int = 0,
        lease: Lease | None = None,
        remaining: float = 0.0,
    ) -> Sequence[Verdict]:
        message = NackMsg(0, self.proposer.round, 1, promised, lease, remaining)
        for voter in voters:
            self._run(partial(_tell, self.proposer.on_refused, voter, message))
        return self.heard()

    def said(self) -> list[Message]:
        said, self.proposer.outbox = self.proposer.outbox, []
        return said

    def heard(self) -> list[Verdict]:
        heard, self.proposer.verdicts = self.proposer.verdicts, []
        return heard

    def _run(self, act: Callable[[Context], None]) -> None:
        with recording(Candidate(ME)) as ctx:
            act(ctx)
        self.effects = ctx.effects


def holder(voters: int = 3) -> Desk:
    """It holds token 1, granted in round 1."""
    desk = Desk(voters=voters)
    desk.acquire()
    desk.promise(1, 2, 3)
    assert desk.accept(1, 2, 3) == [Granted(1, 1, 30.0)]
    desk.said()
    return desk


# The way to a lease


def test_a_round_then_the_lease() -> None:
    desk = Desk()
    assert desk.acquire() == [PrepareMsg(0, 1, 1)]
    assert desk.promise(1) == []
    assert desk.promise(2) == [AcceptMsg(0, 1, 1, 1, 30.0, 1)]
    assert desk.accept(1) == []
    assert desk.accept(3) == [Granted(1, 1, 30.0)]
    assert desk.accept(2) == [], "once"


def test_a_renewal_is_one_question() -> None:
    desk = holder()
    assert desk.acquire(2) == [AcceptMsg(0, 1, 1, 1, 30.0, 2)]
    assert desk.accept(1, 2, request=2) == [Granted(2, 1, 30.0)]


def test_a_round_is_above_everything_heard_of() -> None:
    desk = Desk()
    desk.acquire()
    desk.refuse(1, 2, promised=41)
    assert desk.said() == [PrepareMsg(0, 42, 1)]
    desk.promise(1, 2)
    assert desk.accept(1, 2) == [Granted(1, 42, 30.0)], "and the round is the token"


def test_no_rounds_are_left_after_the_last() -> None:
    desk = Desk()
    desk.proposer.highest = 1 << 62
    assert desk.acquire() == []


# Counting


@pytest.mark.parametrize("voters, few, enough", [(3, 1, 2), (5, 2, 3)])
def test_less_than_a_majority_decides_nothing(voters: int, few: int, enough: int) -> None:
    desk = Desk(voters=voters)
    desk.acquire()
    assert desk.promise(*range(1, few + 1)) == []
    assert desk.promise(enough) != []
    assert desk.accept(*range(1, few + 1)) == []
    assert desk.accept(enough) != []


def test_a_voter_counts_once_however_often_it_speaks() -> None:
    desk = Desk()
    desk.acquire()
    assert desk.promise(1, 1, 1) == []
    desk.promise(2)
    assert desk.accept(1, 1, 1) == []


def test_who_does_not_vote_does_not_count() -> None:
    desk = Desk()
    desk.acquire()
    assert desk.promise(4, 5, ME, 0) == []
    desk.promise(1, 2)
    assert desk.accept(4, 5, ME, 0) == []


@pytest.mark.parametrize(
    "config, number, life", [(1, 1, 1), (0, 2, 1), (0, 0, 1), (0, 1, 2)], ids=str
)
def test_votes_for_something_else_do_not_count(config: int, number: int, life: int) -> None:
    desk = Desk()
    desk.acquire()

    def hear(ctx: Context) -> None:
        for voter in (1, 2, 3):
            desk.proposer.on_promise(ctx, voter, PromiseMsg(config, number, life, UNKNOWN, None))
            desk.proposer.on_accepted(ctx, voter, AcceptedMsg(config, number, life, 1, UNKNOWN))
            refusal = NackMsg(config, number, life, 99, None, 0.0)
            desk.proposer.on_refused(ctx, voter, refusal)

    desk._run(hear)
    assert (desk.said(), desk.heard(), desk.proposer.highest) == ([], [], 1)


def test_half_of_the_voters_would_be_two_majorities() -> None:
    class Half(Proposer):
        def majority(self) -> int:
            return len(self.electorate.voters) // 2

    desk = Desk(Half)
    desk.acquire()
    desk.promise(1)
    assert desk.accept(1) == [Granted(1, 1, 30.0)]


# From when on


def test_votes_for_an_earlier_request_grant_no_later_one() -> None:
    desk = Desk()
    desk.acquire(1)
    desk.promise(1, 2)
    desk.acquire(2)
    assert desk.accept(1, request=2) == []
    assert desk.accept(2, request=1) == [Granted(1, 1, 30.0)], "since the first, not the second"
    assert desk.accept(2, request=2) == [Granted(2, 1, 30.0)]


def test_late_votes_for_what_was_granted_since_say_nothing_new() -> None:
    desk = holder()
    desk.acquire(2)
    desk.accept(1, 2, request=2)
    assert desk.accept(3, request=1) == []


def test_a_request_that_was_not_proposed_is_not_granted() -> None:
    desk = Desk()
    desk.acquire(1)
    desk.promise(1, 2)
    assert desk.accept(1, 2, 3, request=7) == []


def test_only_so_many_requests_are_remembered() -> None:
    desk = holder()
    for request in range(2, 3 * MAX_SENT):
        desk.acquire(request)
    assert len(desk.proposer.sent) == MAX_SENT


# Tokens


def test_a_holder_that_is_outdone_keeps_its_token_in_a_higher_round() -> None:
    desk = holder()
    desk.acquire(2)
    desk.refuse(3, promised=7)
    desk.accept(1, 2, request=2)
    assert desk.acquire(3) == [PrepareMsg(0, 8, 1)]
    assert desk.promise(1, 3, lease=Lease(ME, 1, 1, 30.0)) == [AcceptMsg(0, 8, 1, 1, 30.0, 3)]


def test_a_token_is_kept_if_a_majority_knows_of_no_higher() -> None:
    desk = holder(5)
    desk.acquire(2)
    desk.refuse(5, promised=7)
    desk.acquire(3)
    desk.promise(1, lease=Lease(ME, 1, 1, 30.0))
    desk.promise(2)
    assert desk.promise(3) == [AcceptMsg(0, 8, 1, 1, 30.0, 3)]


def test_a_token_is_not_kept_once_somebody_may_have_had_a_higher() -> None:
    desk = holder()
    desk.acquire(2)
    desk.refuse(3, promised=7)
    desk.acquire(3)
    desk.promise(1, lease=Lease(ME, 1, 1, 30.0))
    assert desk.promise(3, lease=Lease(4, 1, 7, 0.0)) == [AcceptMsg(0, 8, 1, 8, 30.0, 3)]


def test_what_was_given_back_is_never_asked_for_again() -> None:
    desk = holder()
    assert desk.release(to=2) == [ReleaseMsg(0, 1, 1, 1, 2)]
    assert desk.acquire(3) == [PrepareMsg(0, 2, 1)]
    own = Lease(ME, 1, 1, 30.0)
    assert desk.promise(1, 2, lease=own) == [AcceptMsg(0, 2, 1, 2, 30.0, 3)]
    assert desk.accept(1, 2, request=1) == [], "nor counted"


def test_giving_nothing_back_says_nothing() -> None:
    assert Desk().release() == []


# EpochCheck of voters


def test_votes_of_a_life_that_is_over_do_not_count() -> None:
    desk = Desk()
    desk.acquire()
    desk.promise(1, epochs=(FIRST, FIRST, FIRST))
    assert desk.promise(2, epochs=(SECOND, FIRST, FIRST)) == [], "2 knows that 1 began anew"
    assert desk.promise(1, epochs=(FIRST, FIRST, FIRST)) == []
    assert desk.promise(1, epochs=(SECOND, FIRST, FIRST)) != []


def test_whoever_votes_from_a_later_life_takes_its_promise_back() -> None:
    desk = Desk()
    desk.acquire()
    epochs = (FIRST, FIRST, FIRST)
    desk.promise(1, 2, epochs=epochs)
    assert desk.accept(1, epochs=epochs) == []
    assert desk.accept(2, epochs=(FIRST, SECOND, FIRST)) == []
    assert desk.said() == [], "too few promises are left ..."
    assert desk.again() == [PrepareMsg(0, 2, 1)], "... so it takes another round, after a while"


def test_births_that_contradict_are_not_counted_together() -> None:
    desk = Desk()
    desk.acquire()
    desk.promise(1, epochs=(FIRST, 0, 0))
    assert desk.promise(2, epochs=(FIRST + 1, FIRST, 0)) == []


def test_votes_with_births_of_another_electorate_do_not_count() -> None:
    desk = Desk()
    desk.acquire()
    assert desk.promise(1, 2, 3, epochs=(FIRST,)) == []


# Refusals


def test_who_holds_is_told_when_a_majority_says_the_same() -> None:
    desk = Desk()
    desk.acquire()
    lease = Lease(4, 2, 7, 30.0)
    assert desk.refuse(1, promised=7, lease=lease, remaining=5.0) == []
    assert desk.refuse(2, promised=7, lease=lease, remaining=9.0) == [Held(1, 4, 7, 9.0)]
    assert desk.proposer.phase == IDLE


def test_a_holder_that_only_some_voters_know_is_not_told() -> None:
    desk = Desk()
    desk.acquire()
    desk.refuse(1, promised=7, lease=Lease(4, 1, 7, 30.0), remaining=5.0)
    assert desk.refuse(2, promised=8, lease=Lease(5, 1, 8, 30.0), remaining=9.0) == []
    timers = [one for one in desk.effects if isinstance(one, SetTimer)]
    assert [timer.key for timer in timers] == [AGAIN]
    assert 5.0 <= timers[0].delay <= 6.0, "until the first of them is over"


def test_a_lease_of_nobodys_is_no_holder() -> None:
    desk = Desk()
    desk.acquire()
    assert desk.refuse(1, 2, 3, lease=Lease(0, 0, 7, 30.0), remaining=9.0) == []


def test_two_that_ask_at_once_draw_lots() -> None:
    desk = Desk()
    desk.acquire()
    desk.refuse(1, 2, promised=1)
    assert desk.said() == []
    assert any(isinstance(one, SetTimer) and one.delay >= 2.0 for one in desk.effects)
    assert desk.acquire(2) == [], "it rests, whatever it is asked meanwhile"
    assert desk.again() == []
    assert desk.heard() == [Freed(0)], "then a new request is wanted: the old one is out of date"
    assert desk.acquire(3) == [PrepareMsg(0, 2, 1)]


def test_a_voter_that_is_silent_is_not_waited_for() -> None:
    desk = Desk()
    desk.acquire()
    desk.refuse(1, promised=7, lease=Lease(4, 1, 7, 30.0), remaining=5.0)
    assert [one.key for one in desk.effects if isinstance(one, SetTimer)] == [AGAIN]
    desk.again()
    assert desk.heard() == [Freed(0)]
    assert desk.acquire(2) == [PrepareMsg(0, 8, 1)]


def test_who_fails_gives_back_what_some_had_accepted() -> None:
    desk = Desk()
    desk.acquire()
    desk.promise(1, 2)
    desk.accept(1)
    desk.refuse(2, 3, promised=5)
    assert desk.said()[0] == ReleaseMsg(0, 1, 1, 1, None)


def test_who_is_free_again_is_told_to_who_waits() -> None:
    desk = Desk()
    desk.acquire()
    desk.refuse(1, 2, promised=7, lease=Lease(4, 1, 7, 30.0), remaining=5.0)
    desk.heard()
    desk.proposer.on_freed(4, AvailableMsg(0, 7))
    assert desk.heard() == [], "not by somebody who does not vote"
    desk.proposer.on_freed(3, AvailableMsg(0, 7))
    assert desk.heard() == [Freed(7)]
