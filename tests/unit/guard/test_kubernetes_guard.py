"""The guard on Kubernetes, against a server in memory: who is granted what, whoever is quicker."""

from __future__ import annotations

import asyncio
import re

import pytest

from hustings.guard import Grant, HeldBy, Holder, NotGranted, Unreachable
from hustings.guard.kubernetes import ATTEMPTS
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_kubernetes import ADA, BEN, PATH, TTL, Server, opened, server

__all__ = ["server"]

TOO_FAST = "Lease jobs in Kubernetes at kubernetes://h changes too fast"


# --- who is granted ------------------------------------------------------------------------------


def test_the_first_lease_is_as_client_go_writes_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            grant = await granted(guard, ADA, 14.5)
            assert grant.token == int(server.lease["metadata"]["resourceVersion"]) == 101
            begun = server.spec.pop("acquireTime")
            assert begun == server.spec.pop("renewTime")
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", begun)
            assert server.spec == {
                "holderIdentity": "ada#1",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 0,
            }
            assert server.lease["apiVersion"] == "coordination.k8s.io/v1"
            assert server.lease["kind"] == "Lease"
            assert server.marks == {}

    virtually(story())


def test_a_lease_counts_from_when_it_was_first_seen(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(1.0)
            assert await other.acquire(BEN, TTL) == HeldBy("ada", first.token, TTL)
            await asyncio.sleep(TTL - 1.0)
            assert await other.acquire(BEN, TTL) == HeldBy("ada", first.token, 1.0)
            await asyncio.sleep(1.0)
            second = await granted(other, BEN, TTL)
            assert second.token > first.token
            assert server.spec["leaseTransitions"] == 1
            assert server.spec["holderIdentity"] == "ben#1"
            with pytest.raises(NotGranted, match="ada#1"):
                await guard.renew(first, TTL)

    virtually(story())


def test_what_was_written_counts_from_then_on_also_for_who_wrote_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await granted(guard, ADA, TTL)
            await asyncio.sleep(5.0)
            answer = await guard.acquire(BEN, TTL)
            assert isinstance(answer, HeldBy)
            assert answer.remaining == TTL - 5.0

    virtually(story())


def test_who_holds_keeps_its_token_and_is_renewed(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as another:
            first = await granted(guard, ADA, TTL)
            server.spec["renewTime"] = "1999-01-01T00:00:00.000000Z"
            again = await granted(another, ADA, TTL)
            assert again.token == first.token
            assert server.marks == {"hustings/token": "101 ada#1"}
            assert server.spec["renewTime"] > "2000", "people see that it was renewed"
            assert server.spec["leaseTransitions"] == 0
            assert await another.acquire(Holder("ada", 2), TTL) == HeldBy("ada", 101, TTL)
            assert (await granted(guard, ADA, TTL)).token == first.token

    virtually(story())


def test_a_lease_is_renewed_in_its_last_moment(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(TTL - 0.5)
            assert (await granted(guard, ADA, TTL)).token == first.token
            await asyncio.sleep(TTL - 0.5)
            assert (await guard.renew(first, TTL)).token == first.token

    virtually(story())


def test_ones_own_lease_that_has_run_out_is_a_new_period(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            await asyncio.sleep(TTL)
            with pytest.raises(NotGranted, match="the lease of ada#1 has run out"):
                await guard.renew(first, TTL)
            second = await granted(guard, ADA, TTL)
            assert second.token > first.token
            assert server.spec["leaseTransitions"] == 1

    virtually(story())


def test_asking_for_less_takes_nothing_from_what_was_promised(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, 30.0)
            await asyncio.sleep(5.0)
            await guard.renew(first, 2.0)
            assert server.spec["leaseDurationSeconds"] == 25
            await guard.renew(first, 40.5)
            assert server.spec["leaseDurationSeconds"] == 41

    virtually(story())


def test_of_a_foreign_holder_the_version_first_seen_is_the_token(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            begun = {"leaseDurationSeconds": 20, "acquireTime": "then", "leaseTransitions": 3}
            await server.foreign("jobs", "host_1", **begun)
            assert await guard.acquire(ADA, TTL) == HeldBy("host_1", 101, 20.0)
            await server.foreign("jobs", "host_1", renewTime="later")
            assert await guard.acquire(ADA, TTL) == HeldBy("host_1", 101, 20.0)
            await server.foreign("jobs", "host_1", acquireTime="anew")
            assert await guard.acquire(ADA, TTL) == HeldBy("host_1", 103, 20.0)
            await server.foreign("jobs", "host#x")
            assert await guard.acquire(ADA, TTL) == HeldBy("host#x", 104, 20.0)
            await server.foreign("jobs", "host#x", leaseTransitions=4)
            assert await guard.acquire(ADA, TTL) == HeldBy("host#x", 105, 20.0)

    virtually(story())


def test_a_token_that_another_left_behind_is_not_its_successors(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await guard.renew(await granted(guard, ADA, TTL), TTL)
            assert server.marks["hustings/token"] == f"{first.token} ada#1"
            await server.foreign("jobs", "host_1", acquireTime="then")
            answer = await other.acquire(BEN, TTL)
            assert answer == HeldBy("host_1", server.version, TTL)
            server.marks["hustings/token"] = "many host_1"
            answer = await other.acquire(BEN, TTL)
            assert answer == HeldBy("host_1", server.version, TTL)

    virtually(story())


def test_a_lease_without_a_word_in_it_is_free(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            server.leases["default", "jobs"] = {
                "metadata": {"name": "jobs", "resourceVersion": "7", "annotations": None},
                "spec": None,
            }
            assert (await granted(guard, ADA, TTL)).token == 101
            assert server.spec["leaseTransitions"] == 1

    virtually(story())


@pytest.mark.parametrize("seconds", [None, 0])
def test_a_holder_without_a_time_holds_nothing(server: Server, seconds: int | None) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "host_1", leaseDurationSeconds=seconds)
            await granted(guard, ADA, TTL)

    virtually(story())


# --- somebody was quicker ------------------------------------------------------------------------


def test_who_made_the_lease_first_holds_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            create = f"POST {PATH}"
            server.network.before(
                create, lambda: server.foreign("jobs", "zoe", leaseDurationSeconds=9)
            )
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", 101, 9.0)

    virtually(story())


def test_who_took_the_lease_first_holds_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "", leaseDurationSeconds=9)
            server.before_writing(lambda: server.foreign("jobs", "zoe"))
            assert await guard.acquire(ADA, TTL) == HeldBy("zoe", 102, 9.0)

    virtually(story())


def test_a_lease_deleted_before_it_is_written_is_made_anew(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "", leaseDurationSeconds=9)
            server.before_writing(lambda: server.delete("default", "jobs"))
            assert (await granted(guard, ADA, TTL)).token == server.version
            assert server.spec["leaseTransitions"] == 0

    virtually(story())


def test_a_write_of_others_between_does_no_harm(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "", leaseDurationSeconds=9)
            server.before_writing(server.label, times=ATTEMPTS - 1)
            first = await granted(guard, ADA, TTL)
            server.before_writing(server.label, times=ATTEMPTS - 1)
            assert (await guard.renew(first, TTL)).token == first.token
            server.before_writing(server.label, times=ATTEMPTS - 1)
            assert (await granted(guard, ADA, TTL)).token == first.token
            server.before_writing(server.label, times=ATTEMPTS - 1)
            await guard.recover(900)
            server.before_writing(server.label, times=ATTEMPTS - 1)
            await guard.identity()
            server.before_writing(server.label, times=ATTEMPTS - 1)
            await guard.release(first)
            assert server.spec["holderIdentity"] == ""

    virtually(story())


def test_a_lease_that_changes_too_fast_is_given_up(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            for ask in (
                lambda: guard.renew(first, TTL),
                lambda: guard.acquire(ADA, TTL),
                lambda: guard.release(first),
                lambda: guard.recover(900),
                guard.identity,
            ):
                server.before_writing(server.label, times=ATTEMPTS)
                count = server.count("PUT")
                with pytest.raises(Unreachable) as caught:
                    await ask()
                assert str(caught.value) == TOO_FAST
                assert server.count("PUT") - count == ATTEMPTS
            assert (await granted(guard, ADA, TTL)).token == first.token

    virtually(story())


# --- renewing and giving back --------------------------------------------------------------------


def test_a_renewal_is_one_write_where_nobody_else_wrote(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as another:
            first = await granted(guard, ADA, TTL)
            count = len(server.network.asked)
            await guard.renew(first, TTL)
            assert len(server.network.asked) - count == 1
            await another.renew(first, TTL)
            assert len(server.network.asked) - count == 3, "who has not written looks first"
            await guard.renew(first, TTL)
            assert server.marks["hustings/token"] == f"{first.token} ada#1"

    virtually(story())


def test_what_one_guard_wrote_for_another_holder_is_not_taken_for_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await guard.release(first)
            second = await granted(other, BEN, TTL)
            await guard.renew(second, TTL)
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)

    virtually(story())


def test_a_renewal_of_a_lease_that_was_deleted_is_refused(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as another:
            first = await granted(guard, ADA, TTL)
            await server.delete("default", "jobs")
            for each in (guard, another):
                with pytest.raises(NotGranted) as caught:
                    await each.renew(first, TTL)
                assert str(caught.value) == f"ada#1 does not hold {first.token} any more"
                await each.release(first)

    virtually(story())


def test_another_token_renews_and_frees_nothing(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            for other in (Grant(ADA, first.token + 1, 9.0), Grant(BEN, first.token, 9.0)):
                with pytest.raises(NotGranted):
                    await guard.renew(other, TTL)
                await guard.release(other)
            assert server.spec["holderIdentity"] == "ada#1"

    virtually(story())


def test_what_is_given_back_is_free_at_once_and_its_token_is_remembered(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            server.spec["acquireTime"] = server.spec["renewTime"] = "1999"
            await guard.release(first)
            assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
            assert server.spec["acquireTime"] == server.spec["renewTime"] > "2000"
            assert server.marks == {"hustings/token": f"{first.token} "}
            second = await granted(other, BEN, TTL)
            assert second.token > first.token

    virtually(story())


def test_a_place_is_kept_for_who_comes_next_for_as_long_as_the_lease_lasted(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            await guard.release(await granted(guard, ADA, TTL), to="cat")
            assert server.marks["hustings/next"] == "cat"
            assert await other.acquire(BEN, TTL) == HeldBy("cat", 0, TTL)
            await other.recover(900)
            assert await other.acquire(BEN, TTL) == HeldBy("cat", 0, TTL), "whatever is lifted"
            third = await granted(other, Holder("cat", 9), TTL)
            assert "hustings/next" not in server.marks
            await other.release(third, to="dan")
            assert await guard.acquire(ADA, TTL) == HeldBy("dan", 0, TTL)
            await asyncio.sleep(TTL)
            await granted(guard, ADA, TTL)

    virtually(story())


def test_what_others_keep_in_the_lease_stays(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            server.lease["metadata"]["annotations"] = {"team": "billing"}
            server.spec["strategy"] = "Oldest"
            server.lease["more"] = 1
            await server.label()
            await guard.renew(first, TTL)
            await guard.release(first)
            await granted(other, BEN, TTL)
            assert server.marks == {"team": "billing"}
            assert (server.spec["strategy"], server.lease["more"]) == ("Oldest", 1)

    virtually(story())
