"""The PostgreSQL guard on a model of its functions: who is granted what, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from hustings.guard import HeldBy, Holder, NotGranted, Unreachable
from tests.guard.answers import granted, refused
from tests.net.kit.virtual import virtually
from tests.unit.guard.postgres_model import Database

TTL = 10.0
ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)


# Who is let in


def test_who_comes_first_gets_token_one_and_who_comes_next_waits(database: Database) -> None:
    async def story() -> None:
        ada, ben = database.guard(), database.guard()
        grant = await granted(ada, ADA, TTL)
        assert (grant.holder, grant.token) == (ADA, 1)
        assert grant.deadline == pytest.approx(TTL / ada.slack)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, TTL)
        await asyncio.sleep(4.0)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, 6.0)
        assert await refused(ada, Holder("ada", 2), TTL) == HeldBy("ada", 1, 6.0), (
            "another incarnation"
        )
        await asyncio.sleep(6.0)
        assert (await granted(ben, BEN, TTL)).token == 2
        assert database.groups == {"jobs"}

    virtually(story())


def test_a_renewal_is_seen_as_a_new_lease_by_who_waits(database: Database) -> None:
    async def story() -> None:
        ada, ben = database.guard(), database.guard()
        grant = await granted(ada, ADA, TTL)
        await refused(ben, BEN, TTL)
        await asyncio.sleep(8.0)
        renewed = await ada.renew(grant, TTL)
        assert renewed.token == 1
        assert renewed.deadline == pytest.approx(8.0 + TTL / ada.slack)
        await asyncio.sleep(4.0)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, TTL)

    virtually(story())


def test_a_shorter_time_does_not_shorten_what_was_promised(database: Database) -> None:
    async def story() -> None:
        ada = database.guard()
        grant = await granted(ada, ADA, 60.0)
        await asyncio.sleep(10.0)
        assert (await granted(ada, ADA, 5.0)).token == 1
        assert database.row["ttl"] == 50.0
        await asyncio.sleep(20.0)
        await ada.renew(grant, 5.0)
        assert database.row["ttl"] == 30.0
        await ada.renew(grant, 40.0)
        assert database.row["ttl"] == 40.0

    virtually(story())


def test_promises_count_from_the_question_and_for_others_from_the_answer(
    database: Database,
) -> None:
    async def slowly(what: str) -> None:
        await asyncio.sleep(1.0)

    async def story() -> None:
        ada = database.guard()
        database.after = slowly
        grant = await granted(ada, ADA, TTL)  # asked at 0, answered at 1
        await granted(ada, ADA, 1.5)
        assert database.row["ttl"] == 9.0
        grant = await ada.renew(grant, TTL)  # asked at 2, answered at 3
        await asyncio.sleep(9.5)
        await ada.renew(grant, TTL)  # asked at 12.5: the mark has stood since 3
        await asyncio.sleep(TTL)
        with pytest.raises(NotGranted, match="has run out"):
            await ada.renew(grant, TTL)

    virtually(story())


@pytest.mark.parametrize("takes", [0.5, 1.0])
def test_a_lease_that_ends_while_it_is_asked_for_is_asked_for_again(
    database: Database, takes: float
) -> None:
    async def slowly(what: str) -> None:
        await asyncio.sleep(takes)

    async def story() -> None:
        ada, ben = database.guard(), database.guard()
        await granted(ada, ADA, TTL)
        await refused(ben, BEN, TTL)
        await asyncio.sleep(9.5)
        database.before = slowly
        assert (await granted(ben, BEN, TTL)).token == 2
        assert database.asked[-2:] == ["acquire", "acquire"]

    virtually(story())


def test_who_asks_in_vain_three_times_is_told_that_nothing_is_left_and_no_less(
    database: Database,
) -> None:
    async def story() -> None:
        ben = database.guard()
        held = {"granted": False, "holder": "ada", "token": 7, "mark": 99, "ttl": 5.0}
        database.answers = [held]
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 7, 5.0)
        await asyncio.sleep(6.0)
        database.answers, database.asked = [held] * 9, []
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 7, 0.0)
        assert database.asked == ["acquire"] * 3
        assert [words[6] for words in database.arguments[-3:]] == [99] * 3

    virtually(story())


@pytest.mark.parametrize("ttl", [TTL, 0.5])
def test_while_something_is_left_it_is_asked_for_once(database: Database, ttl: float) -> None:
    async def story() -> None:
        await granted(database.guard(), ADA, ttl)
        database.asked.clear()
        assert (await refused(database.guard(), BEN, TTL)).remaining == ttl
        assert database.asked == ["acquire"]

    virtually(story())


# Giving back


def test_what_is_given_back_is_to_be_had_at_once(database: Database) -> None:
    async def story() -> None:
        ada, ben = database.guard(), database.guard()
        grant = await granted(ada, ADA, TTL)
        await ada.release(grant)
        assert (await granted(ben, BEN, TTL)).token == 2
        await ada.release(grant)  # held no more: nothing happens
        assert database.row["holder"] == "ben"
        database.asked.clear()
        await refused(ada, ADA, TTL)
        assert database.asked == ["acquire"], "both were answered"

    virtually(story())


def test_an_heir_alone_is_let_in_and_for_a_lease(database: Database) -> None:
    async def story() -> None:
        ada, ben, cleo = database.guard(), database.guard(), database.guard()
        await ada.release(await granted(ada, ADA, TTL), to="cleo")
        assert await refused(ben, BEN, TTL) == HeldBy("cleo", 0, TTL)
        grant = await granted(cleo, CLEO, TTL)
        assert grant.token == 2
        await cleo.release(grant, to="dan")
        await refused(ben, BEN, TTL)
        await asyncio.sleep(TTL)
        assert (await granted(ben, BEN, TTL)).token == 3

    virtually(story())


def test_a_release_without_an_answer_is_repeated_before_the_next_question(
    database: Database,
) -> None:
    async def lost(what: str) -> None:
        if what == "release":
            raise ConnectionResetError("gone")

    async def fine(what: str) -> None:
        seen.append(what)

    seen: list[str] = []

    async def story() -> None:
        ada = database.guard()
        grant = await granted(ada, ADA, TTL)
        database.before = lost
        with pytest.raises(Unreachable, match="cannot be asked: gone"):
            await ada.release(grant)
        with pytest.raises(Unreachable):
            await ada.acquire(ADA, TTL)
        assert database.row["holder"] == "ada"
        database.before = fine
        assert (await granted(ada, ADA, TTL)).token == 2, (
            "not the old one, which may yet be given back"
        )
        assert seen == ["connect", "release", "acquire"]
        await granted(ada, ADA, TTL)
        assert seen == ["connect", "release", "acquire", "acquire"], "and that once"

    virtually(story())


# Renewing what is held no more


def test_what_is_held_no_more_is_not_renewed(database: Database) -> None:
    async def story() -> None:
        ada = database.guard()
        grant = await granted(ada, ADA, TTL)
        database.row["token"] = 5
        with pytest.raises(NotGranted, match="ada#1 does not hold token 1 any more"):
            await ada.renew(grant, TTL)
        database.row["token"] = 1
        await asyncio.sleep(TTL)
        database.asked.clear()
        with pytest.raises(NotGranted, match="the lease of ada#1 has run out"):
            await ada.renew(grant, TTL)
        assert database.asked == [], "it has seen the end itself"
        assert (await granted(ada, ADA, TTL)).token == 2

    virtually(story())


# An engine's memory


def test_a_row_that_is_behind_is_lifted_when_the_forgotten_must_have_ended(
    database: Database,
) -> None:
    async def story() -> None:
        ben = database.guard()
        assert await refused(ben, BEN, TTL, 40) == HeldBy("", 0, TTL)
        assert database.row["holder"] is None
        await asyncio.sleep(TTL)
        assert (await granted(ben, BEN, TTL, 40)).token == 41

    virtually(story())


def test_an_operator_lifts_tokens_once_and_for_all(database: Database) -> None:
    async def story() -> None:
        guard = database.guard()
        await guard.recover(100)
        await guard.recover(50)
        assert (await granted(guard, ADA, TTL)).token == 101

    virtually(story())


def test_an_engine_has_one_name_until_it_gets_another(database: Database) -> None:
    async def story() -> None:
        one, other = database.guard(), database.guard()
        name = await one.identity()
        assert len(name) == 16
        other.known_as = "another"
        assert await other.identity() == name
        await other._name_again()
        assert await one.identity() == "another"

    virtually(story())
