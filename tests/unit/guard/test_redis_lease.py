"""The Redis guard on a model of its scripts: who is granted what, for how long, and who waits."""

from __future__ import annotations

import asyncio

import pytest
from redis import exceptions

from hustings.guard import HeldBy, Holder, NotGranted, Unreachable
from hustings.guard.redis import RedisGuard
from tests.guard.answers import granted, refused
from tests.net.kit.virtual import virtually
from tests.unit.guard.redis_model import Server

pytestmark = pytest.mark.usefixtures("own_time")

TTL = 10.0
ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)


def keeping(server: Server) -> RedisGuard:
    return server.guard(keeps=True)


# Who is let in


def test_who_comes_first_gets_token_one_and_who_comes_next_waits() -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        grant = await granted(ada, ADA, TTL)
        assert (grant.holder, grant.token) == (ADA, 1)
        assert grant.deadline == pytest.approx(TTL / ada.slack)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, TTL)
        await asyncio.sleep(4.0)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, 6.0)
        await asyncio.sleep(6.0)
        assert (await granted(ben, BEN, TTL)).token == 2
        assert server.keys == {"hustings:{jobs}:guard"}

    virtually(story())


def test_another_incarnation_of_the_same_member_is_another_holder() -> None:
    async def story() -> None:
        server = Server()
        await granted(keeping(server), ADA, TTL)
        assert await refused(keeping(server), Holder("ada", 2), TTL) == HeldBy("ada", 1, TTL)

    virtually(story())


def test_a_renewal_is_seen_as_a_new_lease_by_who_waits() -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        grant = await granted(ada, ADA, TTL)
        assert (await refused(ben, BEN, TTL)).remaining == TTL
        await asyncio.sleep(8.0)
        renewed = await ada.renew(grant, TTL)
        assert renewed.token == 1
        assert renewed.deadline == pytest.approx(8.0 + TTL / ada.slack)
        await asyncio.sleep(4.0)
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 1, TTL)

    virtually(story())


def test_who_holds_keeps_its_token_and_a_shorter_time_does_not_shorten_what_was_promised() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)
        grant = await granted(ada, ADA, 60.0)
        await asyncio.sleep(10.0)
        assert (await granted(ada, ADA, 5.0)).token == 1
        assert server.hash["ttl"] == "50000000"
        await asyncio.sleep(20.0)
        await ada.renew(grant, 5.0)
        assert server.hash["ttl"] == "30000000"
        await ada.renew(grant, 40.0)
        assert server.hash["ttl"] == "40000000"

    virtually(story())


def test_a_promise_counts_from_the_question() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)

        async def slowly(what: str) -> None:
            await asyncio.sleep(1.0)

        server.after = slowly
        await granted(ada, ADA, TTL)
        await granted(ada, ADA, 1.5)
        assert server.hash["ttl"] == "9000000"
        assert server.words[-1][6] != "", "it says which mark was its own"

    virtually(story())


def test_a_renewal_counts_from_its_question_and_for_others_from_its_answer() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)

        async def slowly(what: str) -> None:
            await asyncio.sleep(1.0)

        grant = await granted(ada, ADA, TTL)
        server.after = slowly
        grant = await ada.renew(grant, TTL)  # asked at 0, answered at 1
        await asyncio.sleep(9.0)  # 10: the lease may be over for who counts from the question
        await ada.renew(grant, TTL)
        assert server.hash["ttl"] == "10000000"
        await asyncio.sleep(10.0)  # 21: its own mark has stood since 11
        with pytest.raises(NotGranted, match="has run out"):
            await ada.renew(grant, TTL)

    virtually(story())


def test_a_part_of_a_microsecond_is_a_whole_one() -> None:
    async def story() -> None:
        server = Server()
        await granted(keeping(server), ADA, 0.0312500001)
        assert server.hash["ttl"] == "31251"

    virtually(story())


@pytest.mark.parametrize("takes", [0.5, 1.0])
def test_a_lease_that_ends_while_it_is_asked_for_is_asked_for_again(takes: float) -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        await granted(ada, ADA, TTL)
        await refused(ben, BEN, TTL)
        await asyncio.sleep(9.5)

        async def slowly(what: str) -> None:
            await asyncio.sleep(takes)

        server.before = slowly
        assert (await granted(ben, BEN, TTL)).token == 2
        assert server.asked[-2:] == ["acquire", "acquire"]

    virtually(story())


def test_who_asks_in_vain_three_times_is_told_that_nothing_is_left_and_no_less() -> None:
    async def story() -> None:
        server = Server()
        ben = keeping(server)
        held = [0, "7", "ada", "99", "5000000"]
        server.answers = [held]
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 7, 5.0)
        await asyncio.sleep(6.0)
        server.answers, server.asked = [held] * 9, []
        assert await refused(ben, BEN, TTL) == HeldBy("ada", 7, 0.0)
        assert server.asked == ["acquire"] * 3
        assert [words[5] for words in server.words[-3:]] == ["99"] * 3

    virtually(story())


@pytest.mark.parametrize("ttl", [TTL, 0.5])
def test_while_something_is_left_it_is_asked_for_once(ttl: float) -> None:
    async def story() -> None:
        server = Server()
        await granted(keeping(server), ADA, ttl)
        server.asked.clear()
        assert (await refused(keeping(server), BEN, TTL)).remaining == ttl
        assert server.asked == ["acquire"]

    virtually(story())


# Giving back


def test_what_is_given_back_is_to_be_had_at_once() -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        grant = await granted(ada, ADA, TTL)
        await ada.release(grant)
        assert "next" not in server.hash
        assert (await granted(ben, BEN, TTL)).token == 2
        await ada.release(grant)  # held no more: nothing happens
        assert await refused(ada, ADA, TTL) == HeldBy("ben", 2, TTL)
        assert server.hash["holder"] == "ben"

    virtually(story())


def test_an_heir_alone_is_let_in_for_a_lease() -> None:
    async def story() -> None:
        server = Server()
        ada, ben, cleo = keeping(server), keeping(server), keeping(server)
        await ada.release(await granted(ada, ADA, TTL), to="cleo")
        assert await refused(ben, BEN, TTL) == HeldBy("cleo", 0, TTL)
        await asyncio.sleep(9.0)
        assert await refused(ben, BEN, TTL) == HeldBy("cleo", 0, 1.0)
        assert (await granted(cleo, CLEO, TTL)).token == 2

    virtually(story())


def test_an_heir_that_does_not_come_is_waited_for_no_longer_than_a_lease() -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        await ada.release(await granted(ada, ADA, TTL), to="cleo")
        await refused(ben, BEN, TTL)
        await asyncio.sleep(TTL)
        assert (await granted(ben, BEN, TTL)).token == 2

    virtually(story())


def test_a_release_without_an_answer_is_repeated_before_the_next_question() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)
        grant = await granted(ada, ADA, TTL)

        async def lost(what: str) -> None:
            if what == "release":
                raise exceptions.ConnectionError("gone")

        server.before = lost
        with pytest.raises(Unreachable, match="cannot be reached: gone"):
            await ada.release(grant)
        assert server.hash["holder"] == "ada"
        with pytest.raises(Unreachable):
            await ada.acquire(ADA, TTL)
        server.before = settled = Recorder()
        assert (await granted(ada, ADA, TTL)).token == 2, (
            "not the old one, which may yet be given back"
        )
        assert settled.seen == ["release", "acquire"]
        assert (await granted(ada, ADA, TTL)).token == 2
        assert settled.seen == ["release", "acquire", "acquire"], "and that once"

    virtually(story())


class Recorder:
    """A hook that lets all pass."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, what: str) -> None:
        self.seen.append(what)


def test_a_release_that_was_answered_is_not_repeated() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)
        await ada.release(await granted(ada, ADA, TTL))
        server.asked.clear()
        await granted(ada, ADA, TTL)
        assert server.asked == ["acquire"]

    virtually(story())


# Renewing what is held no more


def test_what_somebody_else_has_taken_is_not_renewed() -> None:
    async def story() -> None:
        server = Server()
        ada, ben = keeping(server), keeping(server)
        grant = await granted(ada, ADA, TTL)
        server.hash["token"] = "5"
        with pytest.raises(NotGranted, match="ada#1 does not hold token 1 any more"):
            await ada.renew(grant, TTL)
        server.hash["token"] = "1"
        await ada.renew(grant, TTL)
        await ben.acquire(BEN, TTL)

    virtually(story())


def test_who_has_seen_the_end_of_its_own_lease_does_not_ask_to_renew_it() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)
        grant = await granted(ada, ADA, TTL)
        await asyncio.sleep(TTL)
        server.asked.clear()
        with pytest.raises(NotGranted, match="the lease of ada#1 has run out"):
            await ada.renew(grant, TTL)
        assert server.asked == []
        assert (await granted(ada, ADA, TTL)).token == 2, "it stands in line as all others"

    virtually(story())
