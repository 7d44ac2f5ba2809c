"""What the guard on NATS grants, to whom, with which token and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from nats.js.errors import NoStreamResponseError

from hustings.guard import (
    Behind,
    Floor,
    Grant,
    HeldBy,
    Holder,
    MemoryLost,
    NotGranted,
    Unreachable,
)
from hustings.guard.nats import ATTEMPTS, NatsEntry, NatsGuard, NatsRecord
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_nats import (
    ADA,
    BEN,
    LOST,
    SILENT,
    TTL,
    Bucket,
    Server,
    opened,
    record,
    server,
)

__all__ = ["server"]

TOO_FAST = r"^the record in NATS at nats://h changes too fast$"


def write(server: Server, **fields: object) -> int:
    """Somebody else's record; its revision."""
    return server.put(msgspec.json.encode({"ttl": TTL, **fields}).decode())


# Who is let in


def test_the_revision_with_which_holding_began_is_the_token(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        server.put("something", key="other")
        sent = ours.now()
        grant = await granted(ours, ADA, TTL)
        assert grant == Grant(ADA, 2, sent + TTL / ours.slack)
        assert record(server) == NatsRecord(ttl=TTL, holder="ada", incarnation=1)
        sent = ours.now()
        assert await ours.acquire(ADA, TTL) == Grant(ADA, 2, sent + TTL / ours.slack)
        assert record(server) == NatsRecord(ttl=TTL, holder="ada", incarnation=1, token=2)
        assert (await ours.renew(grant, TTL)).token == 2
        assert await far.acquire(BEN, 9.0) == HeldBy("ada", 2, TTL)
        answer = await far.acquire(Holder("ada", 2), TTL)
        assert isinstance(answer, HeldBy), "another incarnation is another holder"

    virtually(story())


def test_who_waits_counts_from_when_it_first_saw_a_revision(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        grant = await granted(ours, ADA, TTL)
        await asyncio.sleep(3.0)
        assert await far.acquire(BEN, TTL) == HeldBy("ada", grant.token, TTL)
        await asyncio.sleep(2.0)
        answer = await far.acquire(BEN, TTL)
        assert isinstance(answer, HeldBy)
        assert answer.remaining == pytest.approx(3.0, abs=0.01)
        await asyncio.sleep(3.0)
        taken = await granted(far, BEN, TTL)
        assert taken.token == 2 > grant.token
        with pytest.raises(NotGranted):
            await ours.renew(grant, TTL)

    virtually(story())


def test_who_comes_back_after_its_time_begins_anew(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)
        await asyncio.sleep(TTL)
        with pytest.raises(NotGranted, match=r"^the lease of ada#1 has run out$"):
            await ours.renew(grant, TTL)
        again = await granted(ours, ADA, TTL)
        assert again.token == grant.token + 1
        assert record(server).token == 0

    virtually(story())


def test_what_was_promised_is_not_cut_short(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, 20.0)
        await asyncio.sleep(5.0)
        await granted(ours, ADA, 4.0)
        assert record(server).ttl == pytest.approx(15.0, abs=0.01)
        await asyncio.sleep(5.0)
        await ours.renew(grant, 4.0)
        assert record(server).ttl == pytest.approx(10.0, abs=0.01)
        await ours.renew(grant, 30.0)
        assert record(server).ttl == 30.0
        await granted(ours, ADA, 40.0)
        assert record(server).ttl == 40.0

    virtually(story())


def test_a_new_holder_promises_no_more_than_it_asked_for(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, 20.0)
        await ours.release(grant)
        await granted(ours, BEN, 4.0)
        assert record(server).ttl == 4.0
        await ours.release(Grant(BEN, 3, 0.0), to="ben")
        await granted(ours, BEN, 2.0)
        assert record(server).ttl == 2.0

    virtually(story())


def test_of_two_who_come_at_once_one_is_let_in(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        first: list[Grant] = []

        async def quicker() -> None:
            first.append(await granted(ours, ADA, TTL))

        server.on("update", quicker)
        assert await far.acquire(BEN, TTL) == HeldBy("ada", first[0].token, TTL)

    virtually(story())


def test_a_grant_whose_answer_is_lost_is_found_again(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        server.on("update", lambda: LOST)
        with pytest.raises(Unreachable, match=r"^NATS at nats://h did not answer in time$"):
            await ours.acquire(ADA, TTL)
        assert (await granted(ours, ADA, TTL)).token == 1
        assert record(server).token == 1

    virtually(story())


def test_a_record_that_somebody_deleted_is_written_anew(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)
        server.delete()
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold 1 any more$"):
            await ours.renew(grant, TTL)
        assert (await granted(ours, ADA, TTL)).token == 3

    virtually(story())


@pytest.mark.parametrize("text", ["", "x", '{"holder":"ada"}', '{"ttl":"long"}'])
def test_a_record_that_is_no_guard_s_is_left_alone(server: Server, text: str) -> None:
    async def story() -> None:
        ours = await opened("nats://h/here")
        server.put(text, bucket="here")
        if not text:
            server.buckets["here"].entries["jobs"].value = None
        with pytest.raises(Unreachable, match=r"^record jobs in bucket here is not a guard's: "):
            await ours.acquire(ADA, TTL)
        assert server.count("update") == 0

    virtually(story())


# Tokens that are known


def test_below_a_known_token_nothing_is_granted_unless_it_is_lifted(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        assert await ours._acquire(ADA, TTL, Floor(1)) == Behind(0)
        write(server)
        assert await ours._acquire(ADA, TTL, Floor(2)) == Behind(1)
        assert server.count("update") == 0
        assert await ours._acquire(ADA, TTL, Floor(1)) == 2
        assert record(server).base == 0
        assert await ours._acquire(ADA, TTL, Floor(3)) == Behind(2), "also to who holds"
        assert await ours._acquire(ADA, TTL, Floor(100, lift=True)) == 103
        assert record(server) == NatsRecord(ttl=TTL, holder="ada", incarnation=1, base=100)
        assert await ours._acquire(ADA, TTL, Floor(103, lift=True)) == 103, "as high as known"
        assert record(server) == NatsRecord(
            ttl=TTL, holder="ada", incarnation=1, token=103, base=100
        )
        assert await ours._acquire(ADA, TTL, Floor(104, lift=True)) == 5 + 104

    virtually(story())


def test_a_base_that_is_higher_than_what_is_known_stays(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        await granted(ours, ADA, TTL)
        write(server, holder="ada", incarnation=1, token=5, base=100)
        assert await ours._acquire(ADA, TTL, Floor(50)) == Behind(5)
        assert await ours._acquire(ADA, TTL, Floor(50, lift=True)) == 103
        write(server, token=5, base=200)
        assert await ours._acquire(ADA, TTL, Floor(150)) == 205, "nobody holds: the base counts"

    virtually(story())


def test_with_whom_nobody_has_to_wait_for_it_goes_on_at_once(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        assert isinstance(await ours.acquire(ADA, TTL, known=50), HeldBy)
        await asyncio.sleep(TTL)
        answer = await ours.acquire(ADA, TTL, known=50)
        assert isinstance(answer, Grant)
        assert answer.token == 51
        with pytest.raises(MemoryLost):
            await ours.acquire(ADA, TTL, known=2**60)

    virtually(story())


# Holding on


def test_a_renewal_asks_only_once(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)
        reads = server.count("get")
        for _ in range(3):
            await asyncio.sleep(4.0)
            sent = ours.now()
            assert await ours.renew(grant, TTL) == Grant(ADA, 1, sent + TTL / ours.slack)
        assert server.count("get") == reads
        assert record(server) == NatsRecord(ttl=TTL, holder="ada", incarnation=1, token=1)

    virtually(story())


def test_a_renewal_of_what_is_not_held_is_refused(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold 7 any more$"):
            await ours.renew(Grant(ADA, 7, 0.0), TTL)
        grant = await granted(ours, ADA, TTL)
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold 2 any more$"):
            await ours.renew(Grant(ADA, 2, 0.0), TTL)
        with pytest.raises(NotGranted, match=r"^ben#1 does not hold 1 any more$"):
            await ours.renew(Grant(BEN, 1, 0.0), TTL)
        assert server.buckets["hustings"].newest == 1, "nothing is written"
        await far.renew(grant, TTL)
        assert (await ours.renew(grant, TTL)).token == 1, "whichever write was the last"
        assert server.buckets["hustings"].newest == 3

    virtually(story())


def test_who_was_overtaken_hears_it_when_it_renews(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)
        write(server, holder="ben", incarnation=1)
        with pytest.raises(NotGranted, match=r"^ada#1 does not hold 1 any more$"):
            await ours.renew(grant, TTL)
        assert record(server).holder == "ben"

    virtually(story())


def test_a_renewal_whose_answer_is_lost_does_no_harm(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        server.put("", key="other")
        grant = await granted(ours, ADA, TTL)
        server.on("update", lambda: LOST)
        with pytest.raises(Unreachable):
            await ours.renew(grant, TTL)
        assert (await ours.renew(grant, TTL)).token == grant.token == 2
        assert record(server) == NatsRecord(ttl=TTL, holder="ada", incarnation=1, token=2)

    virtually(story())


def test_a_base_is_kept_by_whoever_writes(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        write(server, base=100)
        grant = await granted(ours, ADA, TTL)
        assert grant.token == 102
        for write_it in (ours.renew(grant, TTL), ours.acquire(ADA, TTL), ours.release(grant)):
            await write_it
            assert (record(server).base, record(server).token) == (100, 102)
        assert (await granted(ours, BEN, TTL)).token == 106
        assert record(server).base == 100

    virtually(story())


# Letting go


def test_what_is_given_back_is_to_be_had_at_once(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        grant = await granted(ours, ADA, TTL)
        assert isinstance(await far.acquire(BEN, TTL), HeldBy)
        await ours.release(grant)
        assert record(server) == NatsRecord(ttl=TTL, token=1)
        await ours.release(grant)
        await ours.release(Grant(BEN, 1, 0.0))
        assert server.buckets["hustings"].newest == 2, "what is not held is not given back"
        assert (await granted(far, BEN, TTL)).token == 3
        await far.release(Grant(BEN, 2, 0.0))
        assert record(server).holder == "ben"

    virtually(story())


def test_there_is_nothing_to_give_back_where_there_is_no_record(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        await ours.release(Grant(ADA, 0, 0.0))
        assert server.count("update") == 0

    virtually(story())


def test_a_lease_is_kept_for_somebody_as_long_as_it_was(server: Server) -> None:
    async def story() -> None:
        ours, far = await opened(), await opened()
        grant = await granted(ours, ADA, TTL)
        await ours.release(grant, to="ben")
        assert record(server) == NatsRecord(ttl=TTL, token=1, to="ben")
        answer = await ours.acquire(ADA, 9.0)
        assert isinstance(answer, HeldBy)
        assert (answer.holder, answer.token) == ("ben", 0)
        assert answer.remaining == pytest.approx(TTL, abs=0.01)
        taken = await granted(far, BEN, TTL)
        assert taken.token == 3
        assert record(server).to is None
        await far.release(taken, to="ada")
        await asyncio.sleep(TTL - 0.1)
        assert isinstance(await far.acquire(BEN, TTL), HeldBy)
        await asyncio.sleep(0.1)
        await granted(far, BEN, TTL)

    virtually(story())


def test_who_was_overtaken_while_it_gave_back_has_nothing_to_give(server: Server) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)

        def overtake() -> None:
            write(server, holder="ben", incarnation=1)

        server.on("update", overtake)
        await ours.release(grant)
        assert record(server).holder == "ben"

    virtually(story())


# What goes on too fast, or not at all


ASKS: list[Callable[[NatsGuard, Grant], Awaitable[object]]] = [
    lambda ours, grant: ours.acquire(ADA, TTL),
    lambda ours, grant: ours.renew(grant, TTL),
    lambda ours, grant: ours.release(grant),
    lambda ours, grant: ours.recover(1000),
]


@pytest.mark.parametrize("ask", ASKS)
def test_somebody_who_is_quicker_again_and_again_is_given_up_on(
    server: Server, ask: Callable[[NatsGuard, Grant], Awaitable[object]]
) -> None:
    async def story() -> None:
        ours = await opened()
        grant = await granted(ours, ADA, TTL)

        def meanwhile() -> None:
            write(server, holder="ada", incarnation=1, token=1)

        before = server.count("update")
        for nth in range(ATTEMPTS):
            server.on("update", meanwhile, nth=nth + 1)
        with pytest.raises(Unreachable, match=TOO_FAST):
            await ask(ours, grant)
        assert server.count("update") - before == ATTEMPTS
        for nth in range(ATTEMPTS - 1):
            server.on("update", meanwhile, nth=nth + 1)
        await ask(ours, grant)

    virtually(story())


@pytest.mark.parametrize("ask", ASKS)
def test_questions_are_bounded_in_time_and_errors_are_told(
    server: Server, ask: Callable[[NatsGuard, Grant], Awaitable[object]]
) -> None:
    async def story() -> None:
        ours = await opened("nats://h?timeout=3")
        grant = await granted(ours, ADA, 60.0)
        server.on("update", lambda: SILENT)
        began = ours.now()
        with pytest.raises(Unreachable, match=r"^NATS at nats://h did not answer in time$"):
            await ask(ours, grant)
        assert ours.now() - began == pytest.approx(3.0, abs=0.01)
        server.on("update", lambda: OSError("broken"))
        with pytest.raises(Unreachable, match=r"^NATS at nats://h cannot be used now: broken$"):
            await ask(ours, grant)

    virtually(story())


# A bucket that was lost


def test_a_bucket_that_is_gone_is_made_again_and_that_is_told(server: Server) -> None:
    async def story() -> None:
        ours = await opened("nats://h?replicas=3")
        notes: list[str] = []
        ours.note = notes.append
        server.put("", key="other")
        grant = await granted(ours, ADA, TTL)
        server.buckets.clear()
        with pytest.raises(NotGranted):
            await ours.renew(grant, TTL)
        assert notes == ["bucket hustings in NATS at nats://h was gone: it is made again"]
        assert server.buckets["hustings"].replicas == 3
        server.buckets.clear()
        assert (await granted(ours, ADA, TTL)).token == 1
        assert len(notes) == 2

        def replaced() -> Exception:
            server.buckets["hustings"] = Bucket()
            return NoStreamResponseError()

        server.on("update", replaced)
        await granted(ours, ADA, TTL)
        assert len(notes) == 2, "somebody else has made it"

    virtually(story())


def test_entries_reckon_tokens_from_revisions() -> None:
    assert NatsEntry(None, 7).token == 7
    assert (NatsEntry(None, 7).base, NatsEntry(None, 7).is_of(ADA)) == (0, False)
    assert NatsEntry(NatsRecord(ttl=1.0, base=10), 7).token == 17
    assert NatsEntry(NatsRecord(ttl=1.0, base=10, token=3), 7).token == 3
    entry = NatsEntry(NatsRecord(ttl=1.0, holder="ada", incarnation=1), 7)
    assert entry.is_of(ADA)
    assert not entry.is_of(BEN)
    assert not entry.is_of(Holder("ada", 2))
