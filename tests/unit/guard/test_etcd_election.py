"""The guard on etcd, against a cluster in memory: who is granted what, whoever acts in between."""

from __future__ import annotations

import asyncio

import pytest
from aetcd import rpc

from hustings.guard import (
    Grant,
    HeldBy,
    Holder,
    NotGranted,
    Unreachable,
    make_guard,
)
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_etcd import Etcd, failure, opened

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 5.0


def foreign(etcd: Etcd, value: str, lease: int = 0, key: str = "jobs/1f") -> int:
    return etcd.write(key, value, lease)


# --- who is granted ------------------------------------------------------------------------------


def test_one_holds_with_the_revision_of_its_key_and_the_other_hears_so(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            grant = await granted(guard, ADA, TTL)
            (key,) = etcd.standing("jobs")
            assert etcd.text(key) == "ada"
            assert grant.token == etcd.revision == 2
            assert list(etcd.leases) == [int(key.partition("/")[2], 16)]
            assert [until for _, until in etcd.leases.values()] == [TTL]
            assert "LeaseKeepAlive" not in etcd.methods(), "what was granted now needs no renewal"
            await asyncio.sleep(1.5)
            assert await other.acquire(BEN, TTL) == HeldBy("ada", 2, 4.0)
            assert etcd.revision == 2, "who is refused has written nothing"
            assert len(etcd.leases) == 1

    virtually(story())


def test_who_holds_keeps_its_token_at_any_guard_and_is_renewed(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as another:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(3.0)
            again = await granted(another, ADA, TTL)
            assert again.token == first.token
            assert [until for _, until in etcd.leases.values()] == [8.0]
            assert isinstance(await another.acquire(Holder("ada", 2), TTL), HeldBy)
            assert isinstance(await another.acquire(Holder("ad", 1), TTL), HeldBy)

    virtually(story())


def test_leases_are_whole_seconds_rounded_up(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            await granted(guard, ADA, 2.1)
            assert [seconds for seconds, _ in etcd.leases.values()] == [3]

    virtually(story())


def test_who_was_quicker_between_look_and_entry_holds(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            etcd.before("Txn", lambda: foreign(etcd, "zoe"), skip=1)
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", 2, TTL)
            assert etcd.leases == {}, "a lease without a key is given back"
            assert etcd.standing("jobs") == ["jobs/1f"]

    virtually(story())


def test_of_two_who_ask_at_once_one_is_granted(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as one, opened() as two:
            answers = await asyncio.gather(one.acquire(ADA, TTL), two.acquire(BEN, TTL))
            assert sorted(type(each).__name__ for each in answers) == ["Grant", "HeldBy"]
            assert len(etcd.standing("jobs")) == 1
            assert len(etcd.leases) == 1

    virtually(story())


def test_a_lease_that_ends_frees_the_place(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as one, opened() as two:
            first = await granted(one, ADA, TTL)
            await asyncio.sleep(TTL)
            second = await granted(two, BEN, TTL)
            assert second.token > first.token
            with pytest.raises(NotGranted, match=f"ada#1 does not hold {first.token} any more"):
                await one.renew(first, TTL)

    virtually(story())


def test_a_foreign_candidate_that_came_first_holds_whoever_is_bound_to_nothing(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            token = foreign(etcd, "zoe", key="jobs/not-hex")
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", token, TTL)
            etcd.grant(77, 9)
            foreign(etcd, "early", 77, "jobs/0")
            await asyncio.sleep(0.5)
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", token, TTL), "who came first"
            etcd.erase("jobs/not-hex")
            assert await guard.acquire(ADA, TTL) == HeldBy("early", token + 1, 9.0)

    virtually(story())


def test_a_key_is_of_who_wrote_it_not_of_a_namesake_of_its_lease(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            await granted(guard, ADA, TTL)
            (key,) = etcd.standing("jobs")
            etcd.keys[key.encode()].value = b"zoe"
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", 2, TTL)

    virtually(story())


def test_a_holder_whose_lease_is_gone_already_is_told_how_long(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            etcd.grant(31, 4)
            foreign(etcd, "zoe", 31)
            etcd.before("LeaseTimeToLive", etcd.leases.clear)
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", 2, 0.0)

    virtually(story())


# --- one's own key -------------------------------------------------------------------------------


def test_a_lease_that_ends_before_its_renewal_is_held_no_more(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            etcd.before("LeaseKeepAlive", etcd.leases.clear)
            assert await guard.acquire(ADA, TTL) == HeldBy("ada", first.token, 0.0)
            with pytest.raises(NotGranted, match="the lease of ada#1 has run out"):
                await guard.renew(first, TTL)
            assert etcd.leases == {}, "nothing is granted for it any more"

    virtually(story())


def test_a_renewal_counts_from_now_and_keeps_the_token(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(4.0)
            again = await guard.renew(first, TTL)
            assert again.token == first.token
            assert [until for _, until in etcd.leases.values()] == [9.0]
            assert all(stream.cancelled for stream in etcd.streams), "no renewal stays open"

    virtually(story())


@pytest.mark.parametrize("ttl, seconds", [(5.0, 5), (5.5, 6), (12.0, 12)])
def test_a_longer_lease_is_another_one_for_the_same_key(
    etcd: Etcd, ttl: float, seconds: int
) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            again = await guard.renew(first, ttl)
            assert again.token == first.token
            assert [each for each, _ in etcd.leases.values()] == [seconds]
            assert await other.acquire(BEN, TTL) == HeldBy("ada", first.token, float(seconds))
            assert (await granted(other, ADA, ttl)).token == first.token
            await guard.release(again)
            assert etcd.leases == {}

    virtually(story())


def test_the_shortest_lease_is_renewed_and_made_longer(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, 1.0)
            await asyncio.sleep(0.5)
            assert (await guard.renew(first, 1.0)).token == first.token
            assert [until for _, until in etcd.leases.values()] == [1.5]
            assert (await guard.renew(first, 3.0)).token == first.token
            assert [until for _, until in etcd.leases.values()] == [3.5]
        assert all(each.closed for each in etcd.channels)

    virtually(story())


def test_a_key_that_vanishes_while_its_lease_is_made_longer_is_lost(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (lease,) = etcd.leases
            (key,) = etcd.standing("jobs")
            etcd.before("Txn", lambda: etcd.erase(key), skip=1)
            with pytest.raises(NotGranted, match="run out"):
                await guard.renew(first, 9.0)
            assert etcd.standing("jobs") == []
            assert list(etcd.leases) == [lease], "the longer lease was given back"

    virtually(story())


def test_the_old_lease_may_have_ended_when_the_longer_one_is_there(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (old,) = etcd.leases
            etcd.before("LeaseRevoke", lambda: etcd.leases.pop(old))
            assert (await guard.renew(first, 9.0)).token == first.token
            assert etcd.methods().count("LeaseKeepAlive") == 1, "it is not begun anew"

    virtually(story())


def test_a_lease_that_cannot_be_given_back_is_no_success(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)

            def refuse() -> None:
                raise failure(rpc.StatusCode.PERMISSION_DENIED, "not yours")

            etcd.before("LeaseRevoke", refuse)
            with pytest.raises(Unreachable, match="not yours"):
                await guard.release(first)

    virtually(story())


def test_another_token_renews_and_frees_nothing(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            for other in (Grant(ADA, first.token - 1, 9.0), Grant(BEN, first.token, 9.0)):
                with pytest.raises(NotGranted, match=f"{other.holder} does not hold"):
                    await guard.renew(other, TTL)
                await guard.release(other)
            assert (await granted(guard, ADA, TTL)).token == first.token
            assert len(etcd.standing("jobs")) == 1

    virtually(story())


# --- giving back ---------------------------------------------------------------------------------


def test_what_is_given_back_is_free_at_once(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await guard.release(first)
            assert (etcd.keys, etcd.leases) == ({}, {})
            assert (await granted(other, BEN, TTL)).token > first.token
            await guard.release(first)
            assert len(etcd.standing("jobs")) == 1, "what is another's stays"

    virtually(story())


def test_a_release_with_its_answer_lost_is_repeated_before_its_sender_asks(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened("?timeout=1") as guard:
            first = await granted(guard, ADA, TTL)
            etcd.silent.add("h:2379")
            with pytest.raises(Unreachable):
                await guard.release(first)
            etcd.silent.clear()
            second = await granted(guard, ADA, TTL)
            assert second.token > first.token, "the old one may yet be freed by the late release"
            await guard.release(second)
            count = len(etcd.asked)
            await granted(guard, ADA, TTL)
            assert etcd.methods()[count:] == ["Txn", "LeaseGrant", "Txn", "Txn"], "not repeated"

    virtually(story())


def test_a_place_is_kept_for_who_comes_next(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(1.5)
            await guard.release(first, to="cat")
            assert etcd.standing("jobs") == []
            assert etcd.text("jobs.next") == "cat"
            assert await other.acquire(BEN, TTL) == HeldBy("cat", 0, 4.0)
            assert len(etcd.leases) == 1, "the lease of who was refused is given back"
            second = await granted(other, Holder("cat", 7), TTL)
            assert second.token > first.token
            assert etcd.text("jobs.next") is None, "it is kept only once"

    virtually(story())


def test_a_place_that_is_kept_is_free_when_the_lease_is_over(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            await guard.release(await granted(guard, ADA, TTL), to="cat")
            await asyncio.sleep(TTL)
            await granted(other, BEN, TTL)

    virtually(story())


def test_a_place_no_longer_kept_at_the_second_look_is_asked_for_again(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            etcd.write("jobs.next", "cat")
            etcd.before("Range", lambda: etcd.erase("jobs.next"))
            assert await guard.acquire(ADA, TTL) == HeldBy("", 0, 0.0)
            await granted(guard, ADA, TTL)

    virtually(story())


def test_a_key_made_anew_meanwhile_is_not_withdrawn(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (key,) = etcd.standing("jobs")

            def replace() -> None:
                etcd.erase(key)
                etcd.write(key, "ada")

            etcd.before("Txn", replace, skip=1)
            await guard.release(first)
            assert etcd.standing("jobs") == [key]

    virtually(story())


# --- attempts that were heard after all ----------------------------------------------------------


def test_a_lease_whose_grant_went_unheard_is_used_by_the_next_attempt(etcd: Etcd) -> None:
    async def story() -> None:
        async with make_guard("etcd://h,i", "jobs") as guard:

            def lose() -> None:
                raise failure(rpc.StatusCode.UNAVAILABLE, "broken pipe")

            etcd.after("LeaseGrant", lose)
            grant = await granted(guard, ADA, TTL)
            assert [each.target for each in etcd.asked if each.method == "LeaseGrant"] == [
                "h:2379",
                "i:2379",
            ]
            assert len(etcd.leases) == 1
            assert grant.token == 2

    virtually(story())


def test_a_key_whose_creation_went_unheard_is_found_again(etcd: Etcd) -> None:
    async def story() -> None:
        async with make_guard("etcd://h,i", "jobs") as guard:

            def lose() -> None:
                raise failure(rpc.StatusCode.UNAVAILABLE, "broken pipe")

            etcd.after("Txn", lose, skip=1)
            assert (await granted(guard, ADA, TTL)).token == 2
            assert len(etcd.standing("jobs")) == len(etcd.leases) == 1

    virtually(story())


def test_a_lease_that_is_refused_is_no_lease(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as guard:

            def refuse() -> None:
                raise failure(rpc.StatusCode.OUT_OF_RANGE, "too large lease TTL")

            etcd.before("LeaseGrant", refuse)
            with pytest.raises(Unreachable, match="too large lease TTL"):
                await guard.acquire(ADA, TTL)
            assert etcd.standing("jobs") == []

    virtually(story())
