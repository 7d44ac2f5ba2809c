"""The guard on NATS: identity, recovery, and what observers see."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from hustings.guard import Grant, HeldBy, Holding, NotGranted, Unreachable
from hustings.guard.base import IDENTITY
from hustings.guard.nats import ATTEMPTS, NatsRecord
from hustings.guard.observer import SeenLease
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_nats import (
    ADA,
    BEN,
    LOST,
    TTL,
    Bucket,
    Server,
    opened,
    record,
    server,
)

__all__ = ["server"]

WORD = "jobs.identity"
NOT_OPEN = r"^the guard on NATS is not open$"


# Identity


def test_the_first_word_stays_until_another_is_put_in_its_place(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        word = await ours.identity()
        assert (len(word), server.found(WORD)) == (16, word)
        assert await far.identity() == word
        assert await far._word(IDENTITY, "other", instead=False) == word
        assert await far._word(IDENTITY, "other", instead=True) == "other"
        assert await ours.identity() == "other"
        server.delete(WORD)
        assert await ours._word(IDENTITY, "third", instead=False) == "third"
        entry = server.buckets["hustings"].entries[WORD]
        for raw, shown in ((None, ""), (b"\xff", "�")):
            entry.value = raw
            assert await ours.identity() == shown

    virtually(story())


def test_a_word_that_vanishes_is_left_anew_a_few_times(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        server.on("get", server.buckets.clear, key=WORD)
        assert await ours._word(IDENTITY, "word", instead=False) == "word"
        server.buckets.clear()
        assert await ours._word(IDENTITY, "other", instead=True) == "other"

        def vanish() -> None:
            server.delete(WORD)

        for attempts in (ATTEMPTS - 1, ATTEMPTS):
            before = server.count("get", WORD)
            for nth in range(attempts):
                server.on("get", vanish, key=WORD, nth=nth + 1)
            if attempts < ATTEMPTS:
                assert await ours._word(IDENTITY, "word", instead=True) == "word"
            else:
                says = "^the identity in NATS at nats://h changes too fast$"
                with pytest.raises(Unreachable, match=says):
                    await ours._word(IDENTITY, "word", instead=True)
            assert server.count("get", WORD) - before == ATTEMPTS

    virtually(story())


# Recovery


def test_an_operator_lifts_tokens_of_whoever_comes_next(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        await far.recover(1000)
        assert record(server) == NatsRecord(ttl=0.0, token=1000, base=1000)
        assert await far.look() == Holding(None, 1000)
        grant = await granted(ours, ADA, TTL)
        assert grant.token == 1002
        await far.recover(2000)
        assert record(server) == NatsRecord(
            ttl=TTL, holder="ada", incarnation=1, token=1002, base=2000
        )
        assert (await ours.renew(grant, TTL)).token == 1002, "who holds keeps its token"
        await far.recover(500)
        assert record(server).base == 2000, "nothing is lowered"
        await ours.release(grant, to="ben")
        await far.recover(3000)
        assert record(server) == NatsRecord(ttl=TTL, token=3000, to="ben", base=3000)
        taken = await granted(far, BEN, TTL)
        assert taken.token == 3008
        await asyncio.sleep(TTL)
        await far.recover(3001)
        assert record(server).token == 3008, "nobody holds: the last token, if it is higher"

    virtually(story())


def test_who_held_before_tokens_were_lifted_comes_back_above_them(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        await granted(ours, ADA, TTL)
        assert isinstance(await far.acquire(BEN, TTL), HeldBy)
        await asyncio.sleep(TTL)
        await far.recover(4000)
        assert record(server) == NatsRecord(ttl=TTL, token=4000, base=4000)
        assert await far.look() == Holding(None, 4000)
        assert (await granted(ours, ADA, TTL)).token == 4003, "token 4000 may be somebody else's"

    virtually(story())


# Observers


def test_an_observer_sees_who_comes_and_goes_at_once(server: Server) -> None:
    async def story() -> None:
        ours, seen = await opened(), await opened()
        async with seen.observe() as states:
            assert await anext(states) == Holding(None, 0)
            grant = await granted(ours, ADA, TTL)
            began = ours.now()
            assert await anext(states) == Holding("ada", 1)
            await ours.release(grant)
            assert await anext(states) == Holding(None, 1)
            grant = await granted(ours, BEN, TTL)
            assert await anext(states) == Holding("ben", 3)
            assert ours.now() - began < 0.1
            assert await anext(states) == Holding(None, 3), "its time is over"
            assert ours.now() - began == pytest.approx(TTL, abs=0.1)
            assert len(server.watchers) == 1
            waits = server.watchers[0].waits
            assert [round(each, 1) for each in waits] == [5.0] * 4
        assert server.watchers == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(story())


def test_an_observer_looks_again_when_a_lease_would_end(server: Server) -> None:
    async def story() -> None:
        ours, seen = await opened(), await opened()
        grant = await granted(ours, ADA, 2.0)
        async with seen.observe() as states:
            assert await anext(states) == Holding("ada", 1)
            following = asyncio.ensure_future(anext(states))
            for _ in range(5):
                await asyncio.sleep(1.5)
                await ours.renew(grant, 2.0)
            renewed = ours.now()
            assert not following.done()
            assert await following == Holding(None, 1)
            assert ours.now() - renewed == pytest.approx(2.0, abs=0.05)

    virtually(story())


def test_an_observer_begins_anew_when_its_connection_was_cut(server: Server) -> None:
    async def story() -> None:
        ours, seen = await opened(), await opened()
        async with seen.observe() as states:
            assert await anext(states) == Holding(None, 0)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(0.5)
            (old,) = server.watchers
            await server.cut()
            await asyncio.sleep(0.5)
            (new,) = server.watchers
            assert new is not old
            assert server.count("watch") == 2
            await asyncio.sleep(10.0)
            assert server.count("watch") == 2, "once for each cut"
            await granted(ours, ADA, TTL)
            assert await following == Holding("ada", 1)
            following = asyncio.ensure_future(anext(states))
            await server.cut()
            server.on("stop", lambda: OSError("broken"))
            await asyncio.sleep(0.5)
            assert server.count("watch") == 3
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    virtually(story())


def test_an_observer_begins_anew_with_a_bucket_that_was_made_again(server: Server) -> None:
    async def story() -> None:
        ours, seen = await opened(), await opened()
        server.put("", key="other")
        await granted(ours, ADA, 60.0)
        async with seen.observe() as states:
            assert await anext(states) == Holding("ada", 2)
            server.buckets["hustings"] = Bucket()
            server.put(msgspec.json.encode(NatsRecord(ttl=60.0, holder="ben")).decode())
            assert await anext(states) == Holding("ben", 1)
            assert server.count("watch") == 2, "nothing comes of the old one"
        assert isinstance(await seen.acquire(ADA, TTL), HeldBy)

    virtually(story())


def test_what_a_feed_cannot_see_is_told(server: Server) -> None:
    async def story() -> None:
        seen = await opened()
        server.put(msgspec.json.encode(NatsRecord(ttl=60.0, holder="ben")).decode())
        server.put(msgspec.json.encode(NatsRecord(ttl=60.0, holder="ben")).decode())
        async with seen._watch() as feed:
            assert (await feed.look()).holding == Holding("ben", 2)
            assert (await feed.look()).remaining == pytest.approx(60.0, abs=0.01)
            server.buckets["hustings"].entries["jobs"].revision = 1
            with pytest.raises(Unreachable, match=r"^the bucket in NATS was made again$"):
                await feed.look()
            before = asyncio.all_tasks()
            await feed.wait(1.0)
            assert asyncio.all_tasks() == before, "nothing waits on"
            waiting = asyncio.ensure_future(feed.wait(60.0))
            await asyncio.sleep(0.1)
            await server.cut()
            with pytest.raises(Unreachable, match=r"^the connection to NATS was cut$"):
                await waiting
        server.on("watch", lambda: LOST)
        with pytest.raises(Unreachable, match="did not answer in time"):
            async with seen._watch():
                pass

    virtually(story())


def test_a_lease_is_one_until_its_last_moment(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        grant = await granted(ours, ADA, TTL)
        await far.look()
        await asyncio.sleep(TTL - 0.5)
        assert await far.look() == Holding("ada", 1)
        await far.recover(1000)
        assert record(server).holder == "ada"
        assert (await granted(ours, ADA, TTL)).token == grant.token, "also after a recovery"
        await asyncio.sleep(TTL - 0.5)
        assert (await granted(ours, ADA, TTL)).token == grant.token

    virtually(story())


def test_tokens_are_lifted_in_the_moment_a_lease_is_over(server: Server) -> None:
    async def story() -> None:
        far = await opened()
        server.put(msgspec.json.encode(NatsRecord(ttl=4.0, holder="ben", token=9)).decode())
        far._clock = lambda: 10.0
        await far.look()
        far._clock = lambda: 14.0
        await far.recover(1000)
        assert record(server) == NatsRecord(ttl=4.0, token=1000, base=1000)

    virtually(story())


def test_a_lease_is_over_in_the_moment_its_time_is(server: Server) -> None:
    async def story() -> None:
        seen = await opened()
        server.put(msgspec.json.encode(NatsRecord(ttl=4.0, holder="ben", token=9)).decode())
        async with seen._watch() as feed:
            await feed.look()
            at = seen.now()
            await asyncio.sleep(at + 4.0 - 0.001 - seen.now())
            seen._clock = lambda: at + 4.0
            assert await feed.look() == SeenLease(Holding(None, 9), 0.0)
            assert (await seen.acquire(ADA, TTL)) == Grant(ADA, 2, at + 4.0 + TTL / seen.slack)
            seen._clock = lambda: at + 4.0 + TTL
            with pytest.raises(NotGranted, match="has run out"):
                await seen.renew(Grant(ADA, 2, 0.0), TTL)
            assert (await granted(seen, ADA, TTL)).token == 3, "its own, too"
            await seen.release(Grant(ADA, 3, 0.0), to="ben")
            assert await feed.look() == SeenLease(Holding(None, 3), 0.0)

    virtually(story())
