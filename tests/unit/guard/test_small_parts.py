"""Small parts that several guards share: returns in doubt, tokens of records, observers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest

from hustings.guard import Grant, Holder, Unreachable
from hustings.guard.base import Holding
from hustings.guard.memory import MemoryGuard, Register
from hustings.guard.nats import NatsEntry, NatsRecord
from hustings.guard.observer import FIRST_PAUSE_S, LONGEST_PAUSE_S, SeenLease, follow
from hustings.guard.pending_releases import PendingReleases
from hustings.testing import VirtualLoop

ADA, BEN = Holder("ada", 1), Holder("ben", 1)


# --- returns in doubt ----------------------------------------------------------------------------


async def settled(
    returns: PendingReleases, holder: Holder
) -> tuple[bool, list[tuple[Holder, int]]]:
    """Whether a release was in doubt, and what was repeated."""
    repeated: list[tuple[Holder, int]] = []

    async def release(who: Holder, token: int, to: str | None) -> None:
        assert to is None
        repeated.append((who, token))

    return await returns.settle(holder, release), repeated


def test_a_release_that_was_not_confirmed_is_repeated_before_its_sender_asks() -> None:
    returns = PendingReleases()
    returns.sent(ADA, 7)
    assert asyncio.run(settled(returns, ADA)) == (True, [(ADA, 7)])
    assert asyncio.run(settled(returns, BEN)) == (False, [])


def test_of_several_the_latest_is_in_doubt() -> None:
    returns = PendingReleases()
    for token in (1, 7, 5):
        returns.sent(ADA, token)
    assert asyncio.run(settled(returns, ADA)) == (True, [(ADA, 7)])


def test_what_was_confirmed_is_in_doubt_no_more() -> None:
    returns = PendingReleases()
    returns.sent(ADA, 7)
    returns.confirmed(ADA, 5)  # an older one, late
    assert asyncio.run(settled(returns, ADA)) == (True, [(ADA, 7)])
    returns.confirmed(ADA, 7)
    assert asyncio.run(settled(returns, ADA)) == (False, [])
    returns.confirmed(BEN, 7)  # nothing was sent: fine


def test_a_token_of_zero_was_sent_too() -> None:
    returns = PendingReleases()
    returns.sent(ADA, 0)
    assert asyncio.run(settled(returns, ADA)) == (True, [(ADA, 0)])


# --- registers and records -----------------------------------------------------------------------


@pytest.mark.parametrize("holder, ahead", [(BEN, 0), (ADA, -1), (ADA, 1), (Holder("ada", 2), 0)])
def test_only_who_holds_this_token_gives_it_back(holder: Holder, ahead: int) -> None:
    async def story() -> None:
        guard = MemoryGuard(Register(), timeout=0.05)
        granted = await guard.acquire(ADA, 60.0)
        assert isinstance(granted, Grant)
        other = msgspec.structs.replace(granted, holder=holder, token=granted.token + ahead)
        await guard.release(other)
        assert (await guard.acquire(BEN, 60.0)).__class__ is not Grant
        await guard.release(granted)
        assert isinstance(await guard.acquire(BEN, 60.0), Grant)

    asyncio.run(story())


def test_the_token_of_a_record() -> None:
    """Its own, or its revision above the base that the bucket was lifted to."""
    assert NatsEntry(None, 0).token == 0
    assert NatsEntry(NatsRecord(ttl=5.0, base=40), 2).token == 42
    assert NatsEntry(NatsRecord(ttl=5.0, base=40, token=9), 2).token == 9


# --- observers -----------------------------------------------------------------------------------


class Played:
    """An engine as an observer meets it: what each look shows, None where it is away."""

    def __init__(self, looks: Sequence[Holding | None]) -> None:
        self.looks = list(looks)
        self.dialled: list[float] = []

    @asynccontextmanager
    async def dial(self) -> AsyncIterator[Played]:
        self.dialled.append(asyncio.get_running_loop().time())
        yield self

    async def look(self) -> SeenLease:
        if (shown := self.looks.pop(0)) is None:
            raise Unreachable("away")
        return SeenLease(shown, 1.0)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def observed(*looks: Holding | None, changes: int) -> tuple[list[Holding], list[float]]:
    """The changes that an observer tells, and the pauses between its connections."""
    played = Played(looks)

    async def story() -> list[Holding]:
        found = []
        async for holding in follow(played.dial, 5.0):
            found.append(holding)
            if len(found) == changes:
                break
        return found

    loop = VirtualLoop()
    try:
        found = loop.run_until_complete(story())
    finally:
        loop.close()
    at = played.dialled
    return found, [later - earlier for earlier, later in pairwise(at)]


NOBODY, ADA_LEADS, BEN_LEADS = Holding(None, 0), Holding("ada", 1), Holding("ben", 2)


def test_an_observer_tells_what_has_changed_and_nothing_twice() -> None:
    looks = (NOBODY, NOBODY, ADA_LEADS, ADA_LEADS, ADA_LEADS, BEN_LEADS)
    assert observed(*looks, changes=3)[0] == [NOBODY, ADA_LEADS, BEN_LEADS]


def test_an_engine_that_is_away_is_tried_ever_less_often_and_then_as_at_first() -> None:
    away = [None] * 7
    found, pauses = observed(*away, NOBODY, None, ADA_LEADS, changes=2)
    assert found == [NOBODY, ADA_LEADS]
    doubling = [min(FIRST_PAUSE_S * 2**k, LONGEST_PAUSE_S) for k in range(7)]
    assert pauses[:7] == pytest.approx(doubling)
    assert pauses[7] == pytest.approx(5.0 + FIRST_PAUSE_S)  # it waited for news in between
