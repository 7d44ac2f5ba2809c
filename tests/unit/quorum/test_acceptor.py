"""A voter's rules, one by one."""

from __future__ import annotations

import msgspec
import pytest

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.quorum.acceptor import MAX_WAITING, Acceptor
from hustings.quorum.messages import (
    AcceptedMsg,
    AcceptMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    ReleaseMsg,
)
from hustings.testing.effects import Persist
from tests.unit.quorum.quorum_kit import Booth

Answer = PromiseMsg | AcceptedMsg | NackMsg


def prepare(booth: Booth, who: MemberId, number: int, life: int = 1) -> Answer:
    return booth.run(lambda ctx: booth.acceptor.prepare(ctx, who, PrepareMsg(0, number, life)))


def propose(
    booth: Booth,
    who: MemberId,
    number: int,
    *,
    token: int | None = None,
    ttl: float = 10.0,
    life: int = 1,
    request: int = 1,
) -> Answer:
    message = AcceptMsg(0, number, life, number if token is None else token, ttl, request)
    return booth.run(lambda ctx: booth.acceptor.propose(ctx, who, message))


def release(
    booth: Booth, who: MemberId, number: int, token: int, to: MemberId | None = None
) -> bool:
    message = ReleaseMsg(0, number, 1, token, to)
    return booth.run(lambda ctx: booth.acceptor.release(ctx, who, message, 4.0))


# Rounds


def test_a_round_is_stored_before_it_is_promised() -> None:
    booth = Booth()
    assert isinstance(prepare(booth, 2, 1), PromiseMsg)
    assert booth.effects == [Persist((("quorum-promised", [1, 2, 1]),))]


def test_a_promise_is_repeated_without_writing() -> None:
    booth = Booth()
    prepare(booth, 2, 1)
    assert isinstance(prepare(booth, 2, 1), PromiseMsg)
    assert booth.effects == []


@pytest.mark.parametrize("who, number, life", [(3, 5, 1), (2, 5, 2), (3, 4, 1), (2, 4, 1)], ids=str)
def test_no_round_is_promised_twice_and_none_below(who: MemberId, number: int, life: int) -> None:
    booth = Booth()
    prepare(booth, 2, 5)
    refused = prepare(booth, who, number, life)
    assert isinstance(refused, NackMsg)
    assert (refused.promised, refused.lease, refused.remaining) == (5, None, 0.0)
    assert isinstance(propose(booth, who, number, life=life), NackMsg)
    assert booth.acceptor.lease is None


def test_a_higher_round_is_promised_as_long_as_nobody_holds() -> None:
    booth = Booth()
    prepare(booth, 2, 5)
    assert isinstance(prepare(booth, 3, 6), PromiseMsg)
    assert isinstance(propose(booth, 2, 5), NackMsg), "the former has lost its round"


def test_round_zero_is_nobodys() -> None:
    booth = Booth()
    assert isinstance(prepare(booth, 0, 0, 0), NackMsg)


def test_a_promise_survives_a_restart() -> None:
    booth = Booth()
    prepare(booth, 2, 5)
    booth.restart()
    assert isinstance(prepare(booth, 3, 5), NackMsg)
    assert isinstance(prepare(booth, 2, 5), PromiseMsg)


def test_unreadable_memory_is_told_and_not_guessed() -> None:
    booth = Booth()
    booth.stored["quorum-promised"] = "5"
    with pytest.raises(BadInput, match="quorum-promised"):
        booth.restart()


# Leases


def test_a_lease_is_stored_before_it_is_accepted() -> None:
    booth = Booth()
    prepare(booth, 2, 5)
    assert isinstance(propose(booth, 2, 5), AcceptedMsg)
    assert booth.effects == [Persist((("quorum-lease", [2, 1, 5, 10.0]),))]


def test_a_higher_round_is_accepted_unasked_and_promised_with_it() -> None:
    booth = Booth()
    assert isinstance(propose(booth, 2, 7), AcceptedMsg)
    assert booth.wrote == ["quorum-promised", "quorum-lease"]
    assert isinstance(prepare(booth, 2, 6), NackMsg)


def test_a_renewal_writes_nothing() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    booth.now = 4.0
    assert isinstance(propose(booth, 2, 5, request=2), AcceptedMsg)
    assert booth.effects == []
    assert booth.acceptor.until == 14.0


@pytest.mark.parametrize("who", [(3, 1), (2, 2)], ids=["another member", "another life"])
def test_who_holds_is_not_replaced_while_the_lease_lives(who: tuple[MemberId, int]) -> None:
    booth = Booth()
    propose(booth, 2, 5)
    booth.now = 9.999
    member, life = who
    for answer in (prepare(booth, member, 9, life), propose(booth, member, 9, life=life)):
        assert isinstance(answer, NackMsg)
        assert answer.lease == Lease(2, 1, 5, 10.0)
        assert answer.remaining == pytest.approx(0.001)
    assert booth.acceptor.promised.round == 5, "no round is promised either"
    booth.now = 10.0
    assert isinstance(prepare(booth, member, 9, life), PromiseMsg)


def test_the_holder_may_have_a_higher_round_and_keeps_its_token() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    promise = prepare(booth, 2, 8)
    assert isinstance(promise, PromiseMsg)
    assert promise.lease == Lease(2, 1, 5, 10.0)
    assert isinstance(propose(booth, 2, 8, token=5), AcceptedMsg)
    assert booth.acceptor.lease == Lease(2, 1, 5, 10.0)


def test_a_renewal_never_shortens() -> None:
    booth = Booth()
    propose(booth, 2, 5, ttl=30.0)
    booth.now = 1.0
    propose(booth, 2, 5, ttl=2.0)
    assert booth.acceptor.until == 30.0
    booth.now = 2.0
    booth.restart()
    assert booth.acceptor.until == 32.0, "neither does a restart"


@pytest.mark.parametrize("token, ttl", [(5, 30.001), (5, 0.0), (6, 1.0), (0, 1.0)])
def test_what_no_honest_member_asks_for_is_refused(token: int, ttl: float) -> None:
    booth = Booth()
    assert isinstance(propose(booth, 2, 5, token=token, ttl=ttl), NackMsg)
    assert booth.acceptor.lease is None
    assert booth.effects == []


def test_after_a_restart_a_lease_lives_for_its_whole_time() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    booth.now = 9.0
    booth.restart()
    booth.now = 18.0
    assert isinstance(prepare(booth, 3, 9), NackMsg)
    assert isinstance(propose(booth, 2, 5, request=2), AcceptedMsg), "its holder may renew"
    booth.now = 28.0
    assert isinstance(prepare(booth, 3, 9), PromiseMsg)


# Giving back


def test_what_is_given_back_is_free_at_once() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    assert release(booth, 2, 5, 5)
    promise = prepare(booth, 3, 6)
    assert isinstance(promise, PromiseMsg)
    assert promise.lease == Lease(2, 1, 5, 0.0), "the token is remembered"
    booth.restart()
    assert not booth.acceptor.is_leased(booth.now)


def test_only_its_holder_gives_a_token_back_and_only_that_one() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    assert not release(booth, 3, 5, 5)
    assert not release(booth, 2, 5, 4)
    assert booth.acceptor.is_leased(booth.now)
    booth.now = 11.0
    assert not release(booth, 2, 5, 5), "it is over by itself"


def test_a_request_that_its_release_overtook_is_not_accepted() -> None:
    booth = Booth()
    prepare(booth, 2, 5)
    release(booth, 2, 5, 5)
    assert isinstance(propose(booth, 2, 5), NackMsg)
    assert isinstance(propose(booth, 2, 6), AcceptedMsg)


def test_who_is_favoured_goes_first_for_a_while() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    release(booth, 2, 5, 5, to=3)
    refused = prepare(booth, 1, 6)
    assert isinstance(refused, NackMsg)
    assert (refused.lease, refused.remaining) == (None, 4.0)
    assert isinstance(prepare(booth, 3, 6), PromiseMsg)
    booth.now = 4.0
    assert isinstance(prepare(booth, 1, 7), PromiseMsg), "but not for ever"


def test_who_was_refused_is_told_when_it_is_given_back() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    prepare(booth, 1, 6)
    prepare(booth, 3, 7)
    release(booth, 2, 5, 5, to=3)
    freed, waiting = booth.acceptor.freed()
    assert freed.token == 5
    assert waiting == [3, 1], "whoever is favoured first"
    assert booth.acceptor.freed()[1] == [], "once"


def test_so_many_are_remembered_and_no_more() -> None:
    booth = Booth()
    propose(booth, 2, 5)
    for member in range(100, 100 + 2 * MAX_WAITING):
        prepare(booth, member, 6)
    assert len(booth.acceptor.waiting) == MAX_WAITING


# What holds the rules up: without any of them the promise above it breaks.


class VolatileStorage(Acceptor):
    def keep_promise(self, ctx: object) -> None:
        """Nothing is stored."""


class Hasty(Acceptor):
    def restart_wait(self, lasting: float) -> float:
        return 0.0


class Generous(Acceptor):
    def is_outdone(self, ballot: object) -> bool:
        return False


def test_without_a_durable_promise_a_round_has_two_owners() -> None:
    booth = Booth(kind=VolatileStorage)
    prepare(booth, 2, 5)
    booth.restart()
    assert isinstance(prepare(booth, 3, 5), PromiseMsg)


def test_without_the_wait_a_restart_frees_a_lease() -> None:
    booth = Booth(kind=Hasty)
    propose(booth, 2, 5)
    booth.restart()
    assert isinstance(prepare(booth, 3, 6), PromiseMsg)


def test_without_comparing_rounds_tokens_fall() -> None:
    booth = Booth(kind=Generous)
    propose(booth, 2, 5)
    booth.now = 10.0
    assert isinstance(propose(booth, 3, 4), AcceptedMsg)


@pytest.mark.parametrize("wrong", [-1, (1 << 62) + 1])
def test_numbers_out_of_bounds_are_not_read(wrong: int) -> None:
    body = msgspec.msgpack.encode(["Q-PREPARE", 0, wrong, 1])
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(body, type=PrepareMsg)
