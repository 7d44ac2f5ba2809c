"""Tokens and identity of the guard on Kubernetes, against a server in memory."""

from __future__ import annotations

import asyncio

import pytest

from hustings.guard import HeldBy, Unreachable
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_kubernetes import ADA, BEN, TTL, Server, opened, server

__all__ = ["server"]

# --- tokens that are known -----------------------------------------------------------------------


def test_a_cluster_that_is_behind_goes_on_above_what_is_known_after_a_lease(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            assert await guard.acquire(ADA, TTL, 900) == HeldBy("", 0, TTL)
            assert server.leases == {}
            await asyncio.sleep(TTL)
            first = await granted(guard, ADA, TTL, 900)
            assert first.token == 900 + 101
            assert server.marks["hustings/base"] == "900"
            assert (await guard.renew(first, TTL)).token == first.token
            await guard.release(first)
            second = await granted(guard, ADA, TTL, first.token)
            assert second.token == 900 + server.version
            assert server.marks["hustings/base"] == "900"

    virtually(story())


def test_no_lease_is_behind_any_token(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            told: list[str] = []
            guard.note = told.append
            assert await guard.acquire(ADA, TTL, 1) == HeldBy("", 0, TTL)
            assert "its last token is 0, and token 1 is known here" in told[0]

    virtually(story())


def test_a_lease_that_is_there_is_lifted_with_its_taking(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "", leaseDurationSeconds=1)
            assert await guard.acquire(ADA, TTL, 102) == HeldBy("", 0, TTL)
            assert server.version == 101, "nothing is written before it is safe"
            await asyncio.sleep(TTL)
            assert (await granted(guard, ADA, TTL, 102)).token == 102 + 102

    virtually(story())


def test_a_token_as_high_as_what_is_known_is_high_enough(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "", leaseDurationSeconds=1)
            first = await granted(guard, ADA, TTL, 101)
            assert (first.token, server.marks) == (102, {})
            assert (await granted(guard, ADA, TTL, 102)).token == 102

    virtually(story())


def test_a_base_counts_as_a_token_that_was_given(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await guard.recover(900)
            assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
            assert server.marks == {"hustings/base": "900"}
            first = await granted(guard, ADA, TTL, 900)
            assert first.token == 900 + server.version
            await guard.release(first)
            await guard.recover(5000)
            second = await granted(guard, ADA, TTL, 5000)
            assert second.token == 5000 + server.version
            assert server.marks["hustings/base"] == "5000"

    virtually(story())


def test_a_holder_in_its_time_goes_on_at_once_above_what_is_known(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            server.version = 900
            first = await granted(guard, ADA, TTL)
            server.forget()
            again = await granted(guard, ADA, TTL, first.token)
            assert again.token == first.token + server.version

    virtually(story())


def test_a_holder_whose_own_token_is_too_small_takes_another(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            assert await guard.acquire(ADA, TTL, 900) == HeldBy("", 0, TTL)
            assert server.version == first.token, "nothing is written before it is safe"
            await asyncio.sleep(TTL)
            assert (await granted(guard, ADA, TTL, 900)).token == 900 + server.version
            assert (await other.acquire(BEN, TTL)) == HeldBy("ada", 900 + server.version, TTL)
            assert first.token < 900

    virtually(story())


def test_recovery_leaves_who_holds_alone_and_lowers_nothing(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await other.recover(900)
            assert server.marks["hustings/base"] == "900"
            assert await other.acquire(BEN, TTL) == HeldBy("ada", first.token, TTL)
            assert (await guard.renew(first, TTL)).token == first.token
            version = server.version
            await other.recover(900)
            await other.recover(10)
            assert server.version == version
            await other.recover(901)
            assert server.marks["hustings/base"] == "901"

    virtually(story())


@pytest.mark.parametrize("base", ["many", "²", "-5"])
def test_a_base_that_is_no_number_adds_nothing(server: Server, base: str) -> None:
    async def story() -> None:
        async with opened() as guard:
            await guard.recover(900)
            server.marks["hustings/base"] = base
            assert (await granted(guard, ADA, TTL)).token == server.version

    virtually(story())


def test_versions_that_are_no_numbers_are_told_of(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            await server.foreign("jobs", "zoe", leaseDurationSeconds=9)
            server.lease["metadata"]["resourceVersion"] = "abc"
            with pytest.raises(
                Unreachable, match="kubernetes://h has versions that are no numbers"
            ):
                await guard.acquire(ADA, TTL)

    virtually(story())


# --- identity ------------------------------------------------------------------------------------


def test_the_first_word_stays_and_all_are_told_it(server: Server) -> None:
    async def story() -> None:
        async with opened() as one, opened() as two:
            word = await one.identity()
            assert server.marks == {"hustings/identity": word}
            assert (server.spec["holderIdentity"], server.spec["leaseDurationSeconds"]) == ("", 1)
            two.known_as = "old"
            assert await two.identity() == word
            first = await granted(one, ADA, TTL)
            assert server.marks["hustings/identity"] == word
            await two.acquire(BEN, TTL, 10**6)
            assert server.marks["hustings/identity"] == word, "somebody holds: nothing was lost"
            await one.release(first)
            await two.acquire(BEN, TTL, 10**6)
            assert await one.identity() == "old", "who knows of a loss gives back the old word"

    virtually(story())


def test_a_lease_that_is_there_is_given_a_word_and_keeps_its_holder(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            word = await guard.identity()
            assert server.marks["hustings/identity"] == word != ""
            assert (await guard.renew(first, TTL)).token == first.token

    virtually(story())
