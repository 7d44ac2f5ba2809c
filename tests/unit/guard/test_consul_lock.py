"""The guard on Consul, against a server in memory: who is granted what, whoever acts in between."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import aiohttp
import pytest

from hustings.core.errors import BadInput
from hustings.guard import (
    Grant,
    Guard,
    HeldBy,
    Holder,
    Holding,
    MemoryLost,
    NotGranted,
    Unreachable,
    make_guard,
)
from hustings.guard.consul import LOCK_FLAGS
from hustings.guard.urls import NET_S
from tests.guard.answers import granted
from tests.guard.fakes.consul import Consul
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_http import Network

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 20.0
LOCK, BASE, IDENTITY = "jobs/.lock", "jobs/.base", "jobs/.identity"
KV = "/v1/kv/"


@pytest.fixture
def consul(network: Network) -> Consul:
    server = Consul()
    network.servers["http://h:8500"] = server
    return server


def opened(options: str = "") -> Guard:
    return make_guard(f"consul://h{options}", "jobs")


def write(consul: Consul, name: str, value: str, **more: Any) -> int:
    """What somebody else writes; the index."""
    consul.index += 1
    old = consul.keys.get(name, {"Key": name, "LockIndex": 0, "Flags": 0})
    encoded = base64.b64encode(value.encode()).decode()
    consul.keys[name] = {**old, "Value": encoded, "ModifyIndex": consul.index, **more}
    return consul.index


def foreign(consul: Consul, value: str = "zoe", session: str = "s-1") -> int:
    """Somebody else takes the lock."""
    consul.sessions[session] = {"ttl": 60.0, "delay": 15.0, "until": consul.now + 60.0}
    lock = consul.keys.get(LOCK, {"LockIndex": 0})
    count = lock["LockIndex"] + 1
    return write(consul, LOCK, value, Session=session, Flags=LOCK_FLAGS, LockIndex=count)


def text(consul: Consul, name: str) -> str | None:
    key = consul.keys.get(name)
    return None if key is None else base64.b64decode(key["Value"] or "").decode()


# --- who is granted ------------------------------------------------------------------------------


def test_one_holds_with_the_index_of_the_key_and_the_other_hears_so(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened("?lock_delay=2.5") as guard, opened() as other:
            grant = await granted(guard, ADA, 12.5)
            lock = consul.keys[LOCK]
            assert grant.token == lock["ModifyIndex"] == consul.index
            assert (lock["Flags"], text(consul, LOCK)) == (LOCK_FLAGS, "ada")
            (created,) = [
                json.loads(each.body)
                for each in network.asked
                if each.path.endswith("session/create") and b"ada" in each.body
            ]
            assert created == {
                "Name": "hustings: ada#1",
                "TTL": "12500ms",
                "LockDelay": "2500ms",
                "Behavior": "release",
            }
            sessions = dict(consul.sessions)
            assert await other.acquire(BEN, TTL) == HeldBy("ada", grant.token, TTL)
            assert await guard.acquire(Holder("ada", 2), TTL) == HeldBy("ada", grant.token, TTL)
            assert consul.sessions == sessions, "who is refused makes no session"

    virtually(story())


def test_a_holder_that_has_written_no_name_is_named_by_its_session(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard:
            token = foreign(consul, "", "s-9")
            assert await guard.acquire(ADA, TTL) == HeldBy("session s-9", token, TTL)
            consul.keys[LOCK]["Value"] = None
            assert await guard.acquire(ADA, TTL) == HeldBy("session s-9", token, TTL)

    virtually(story())


def test_who_holds_keeps_its_token_and_has_its_session_renewed(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            await consul.pass_time(TTL - 1.0)
            assert (await granted(guard, ADA, 15.0)).token == first.token
            await consul.pass_time(TTL - 1.0)
            write(consul, LOCK, "ada")
            assert (await granted(guard, ADA, TTL)).token == first.token, (
                "a mere write changes nothing"
            )
            await guard.renew(first, TTL)
            assert len(consul.sessions) == 1

    virtually(story())


def test_a_session_that_has_ended_holds_no_more(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await consul.pass_time(TTL)
            with pytest.raises(NotGranted, match=f"ada#1 does not hold {first.token} any more"):
                await guard.renew(first, TTL)
            second = await granted(other, BEN, TTL)
            assert second.token > first.token
            assert await guard.acquire(ADA, TTL) == HeldBy("ben", second.token, TTL)

    virtually(story())


def test_a_session_that_ends_between_look_and_renewal_is_not_believed_in(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (session,) = consul.sessions
            renewal = f"PUT /v1/session/renew/{session}"
            network.before(renewal, lambda: consul.pass_time(TTL))
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)
            second = await granted(guard, ADA, TTL)
            assert second.token > first.token
            (session,) = consul.sessions
            network.before(
                f"PUT /v1/session/renew/{session}", lambda: consul.pass_time(TTL), skip=0
            )
            assert (await granted(guard, ADA, TTL)).token > second.token, "of another session"

    virtually(story())


def test_a_lock_that_was_taken_away_is_a_new_one_when_it_is_had_again(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (session,) = consul.sessions
            del consul.keys[LOCK]["Session"]
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)
            second = await granted(guard, ADA, TTL)
            assert second.token > first.token
            assert list(consul.sessions) == [session], "the session is as good as before"
            lock = consul.keys[LOCK]
            lock["LockIndex"] += 1
            lock["ModifyIndex"] = consul.index = consul.index + 1
            with pytest.raises(NotGranted):
                await guard.renew(second, TTL)
            assert (await granted(guard, ADA, TTL)).token == consul.index > second.token

    virtually(story())


def test_who_was_quicker_holds(consul: Consul, network: Network) -> None:
    async def story() -> None:
        async with opened() as guard:
            network.before(f"PUT {KV}{LOCK}", lambda: foreign(consul))
            answer = await guard.acquire(ADA, TTL)
            assert answer == HeldBy("zoe", consul.keys[LOCK]["ModifyIndex"], TTL)

    virtually(story())


@pytest.mark.parametrize("ttl, wait", [(20.0, 10.0), (10.0, 10.0)])
def test_while_a_key_is_delayed_nobody_is_let_in(
    consul: Consul, network: Network, ttl: float, wait: float
) -> None:
    async def story() -> None:
        async with opened() as guard:
            consul.delayed[LOCK] = consul.now + 15.0
            assert await guard.acquire(ADA, ttl) == HeldBy("", 0, wait)
            write(consul, LOCK, "", Flags=LOCK_FLAGS)
            assert await guard.acquire(ADA, ttl) == HeldBy("", 0, wait)
            assert len(consul.sessions) == 1, "its session waits with it"
            consul.now += 15.0
            assert (await granted(guard, ADA, ttl)).token == consul.index

    virtually(story())


def test_a_longer_time_needs_another_session(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            for ask in (guard.renew(first, 25.0), guard.acquire(ADA, 25.0)):
                with pytest.raises(
                    BadInput, match=r"ttl stays what it was at first .* 20 s, not 25"
                ):
                    await ask
            await guard.renew(first, 15.0)
            del consul.keys[LOCK]["Session"]
            await granted(guard, ADA, 25.0)
            assert sorted(each["ttl"] for each in consul.sessions.values()) == [20.0, 25.0]
            assert consul.sessions[consul.keys[LOCK]["Session"]]["ttl"] == 25.0

    virtually(story())


def test_a_waiting_session_that_lasts_longer_than_asked_is_good(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard:
            consul.delayed[LOCK] = consul.now + 5.0
            await guard.acquire(ADA, 25.0)
            consul.now += 24.0
            await granted(guard, ADA, 20.0)
            assert [each["ttl"] for each in consul.sessions.values()] == [25.0]
            assert [each["until"] for each in consul.sessions.values()] == [consul.now + 25.0]

    virtually(story())


def test_another_token_renews_and_frees_nothing(consul: Consul, network: Network) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            count = len(network.asked)
            for other in (Grant(ADA, first.token + 1, 9.0), Grant(BEN, first.token, 9.0)):
                with pytest.raises(NotGranted, match=f"{other.holder} does not hold {other.token}"):
                    await guard.renew(other, TTL)
                await guard.release(other)
            assert len(network.asked) == count
            await guard.renew(first, TTL)

    virtually(story())


# --- giving back ---------------------------------------------------------------------------------


def test_the_key_is_given_back_before_its_session_ends(consul: Consul, network: Network) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            count = len(network.asked)
            await guard.release(first, to="cat")
            assert [each.partition("/v1/")[2][:15] for each in network.requests()[count:]] == [
                "kv/jobs/.lock",
                "session/destroy",
            ]
            assert consul.sessions == {}
            assert "Session" not in consul.keys[LOCK]
            assert (await granted(other, BEN, TTL)).token > first.token
            count = len(network.asked)
            await guard.release(first)
            assert len(network.asked) == count
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)

    virtually(story())


def test_a_release_with_its_answer_lost_is_repeated_before_its_sender_asks(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard:
            first = await granted(guard, ADA, TTL)
            (session,) = consul.sessions
            consul.down = True
            with pytest.raises(Unreachable, match="No cluster leader"):
                await guard.release(first)
            consul.down = False
            second = await granted(guard, ADA, TTL)
            assert second.token > first.token, "the old one may yet be freed by the late release"
            assert session not in consul.sessions
            await guard.release(second)
            third = await granted(guard, ADA, TTL)
            assert network.requests().count(f"PUT /v1/session/destroy/{session}") == 1
            assert (await granted(guard, ADA, TTL)).token == third.token

    virtually(story())


# --- tokens that are known -----------------------------------------------------------------------


def test_nothing_is_kept_below_a_token_that_is_known(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            with pytest.raises(MemoryLost, match="token 900 is known"):
                await guard.acquire(ADA, TTL, 900)
            assert consul.sessions == {}
            assert "Session" not in consul.keys[LOCK]
            first = await granted(other, BEN, TTL)
            assert (await granted(other, BEN, TTL, first.token)).token == first.token
            with pytest.raises(MemoryLost, match=f"its last token is {first.token}, and token"):
                await other.acquire(BEN, TTL, first.token + 1)
            with pytest.raises(NotGranted):
                await other.renew(first, TTL)

    virtually(story())


def test_recovery_lifts_all_later_tokens_and_never_lowers_them(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as other:
            first = await granted(guard, ADA, TTL)
            await other.recover(900)
            assert text(consul, BASE) == "900"
            with pytest.raises(NotGranted):
                await guard.renew(first, TTL)
            second = await granted(guard, ADA, TTL)
            assert second.token == 900 + first.token
            await guard.renew(second, TTL)
            assert await other.acquire(BEN, TTL) == HeldBy("ada", second.token, TTL)
            count = len(network.asked)
            await other.recover(900)
            await other.recover(10)
            assert text(consul, BASE) == "900"
            assert {each.method for each in network.asked[count:]} == {"GET"}
            await other.recover(901)
            assert text(consul, BASE) == "901"
            del consul.keys[BASE]
            assert (await granted(guard, ADA, TTL)).token == first.token

    virtually(story())


def test_a_recovery_that_somebody_else_was_quicker_with_looks_again(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard:
            put = f"PUT {KV}{BASE}"
            network.before(put, lambda: write(consul, BASE, "5000"))
            await guard.recover(900)
            assert text(consul, BASE) == "5000"
            network.before(put, lambda: write(consul, BASE, "5001"))
            await guard.recover(9000)
            assert text(consul, BASE) == "9000"
            assert network.requests().count(put) == 3

    virtually(story())


def test_a_base_that_is_no_number_is_told_of(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as guard:
            write(consul, BASE, "many")
            with pytest.raises(Unreachable, match=r"key jobs/\.base in Consul is not a guard's"):
                await guard.acquire(ADA, TTL)

    virtually(story())


# --- identity ------------------------------------------------------------------------------------


def test_the_first_word_stays_and_all_are_told_it(consul: Consul, network: Network) -> None:
    async def story() -> None:
        async with opened() as one, opened() as two:
            word = await one.identity()
            assert word == text(consul, IDENTITY) != ""
            two.known_as = "old"
            assert await two.identity() == word
            with pytest.raises(MemoryLost):
                await two.acquire(ADA, TTL, 10**6)
            assert await one.identity() == "old", "who knows of a loss gives back the old word"
            consul.keys[IDENTITY]["Value"] = None
            assert await one.identity() == ""
            network.before(f"GET {KV}{IDENTITY}", lambda: consul.keys.pop(IDENTITY))
            with pytest.raises(Unreachable, match=r"keeps no key jobs/\.identity"):
                await one.identity()

    virtually(story())


# --- observers -----------------------------------------------------------------------------------


def test_an_observer_is_told_at_once(consul: Consul, network: Network) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            first = await granted(guard, ADA, TTL)
            assert await following == Holding("ada", first.token)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            await guard.release(first)
            assert await following == Holding(None, first.token)
            assert now() == 2.0
            waits = [each for each in network.asked if "index" in each.query]
            assert {each.query["wait"] for each in waits} == {"5000ms"}
            assert {each.timeout for each in waits} == {7.0}, "the wait comes on top of the timeout"

    virtually(story())


def test_an_observer_knows_the_base_and_the_highest_token_seen(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            write(consul, BASE, "900")
            first = foreign(consul)
            assert await anext(states) == Holding("zoe", 900 + first)
            consul.keys[LOCK]["ModifyIndex"] = 5
            consul.keys[LOCK]["LockIndex"] += 1
            assert await anext(states) == Holding("zoe", 905)
            del consul.keys[LOCK]["Session"]
            assert await anext(states) == Holding(None, 900 + first)
            write(consul, BASE, "5000")
            second = foreign(consul)
            assert await anext(states) == Holding("zoe", 5000 + second), "it was lifted meanwhile"

    virtually(story())


def test_an_observer_without_an_index_to_wait_for_looks_now_and_then(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            consul.index = 0
            assert await anext(states) == Holding(None, 0)
            count = len(network.asked)
            token = foreign(consul)
            assert await anext(states) == Holding("zoe", token)
            assert now() == NET_S
            assert len(network.asked) == count + 2, "for the base and the lock"

    virtually(story())


def test_an_observer_goes_on_after_an_outage(consul: Consul) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            consul.down = True
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(20.0)
            consul.down = False
            token = foreign(consul)
            assert await following == Holding("zoe", token)
            assert now() <= 22.0

    virtually(story())


def test_what_is_not_found_in_the_answer_of_a_broken_server_is_told(
    consul: Consul, network: Network
) -> None:
    async def story() -> None:
        async with opened() as guard:

            async def other(_: Any) -> Any:
                return aiohttp.web.Response(text="<html>welcome</html>")

            network.servers["http://h:8500"] = other
            for ask in (guard.acquire(ADA, TTL), guard.identity(), guard.recover(9)):
                with pytest.raises(Unreachable, match="what answers at consul://h is not Consul"):
                    await ask

    virtually(story())
