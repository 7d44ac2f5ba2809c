"""The Redis guard on a model of its scripts: servers that forget, settings, and observers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis import exceptions

from hustings.core.errors import BadInput
from hustings.guard import HeldBy, Holder, Holding, Unreachable
from hustings.guard import redis as module
from hustings.guard.redis import RedisGuard
from tests.guard.answers import granted, refused
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.redis_model import Server

pytestmark = pytest.mark.usefixtures("own_time")

TTL = 10.0
ADA, BEN, CLEO = Holder("ada", 1), Holder("ben", 1), Holder("cleo", 1)


def keeping(server: Server) -> RedisGuard:
    return server.guard(keeps=True)


# An engine's memory


def test_a_server_that_is_behind_says_so_and_is_lifted_when_the_forgotten_must_have_ended() -> None:
    async def story() -> None:
        server = Server()
        ben = keeping(server)
        assert await refused(ben, BEN, TTL, 40) == HeldBy("", 0, TTL)
        assert "token" not in server.hash
        await asyncio.sleep(TTL)
        assert (await granted(ben, BEN, TTL, 40)).token == 41

    virtually(story())


def test_an_operator_lifts_tokens_once_and_for_all() -> None:
    async def story() -> None:
        server = Server()
        guard = keeping(server)
        await guard.recover(100)
        await guard.recover(50)
        assert (await granted(guard, ADA, TTL)).token == 101

    virtually(story())


def test_an_engine_has_one_name_until_it_gets_another() -> None:
    async def story() -> None:
        server = Server()
        one, other = keeping(server), keeping(server)
        name = await one.identity()
        assert len(name) == 16
        assert await other.identity() == name
        other.known_as = "another"
        assert await other.identity() == name
        await other._name_again()
        assert await one.identity() == "another"

    virtually(story())


# Servers that may lose writes


def test_on_a_server_just_met_the_first_holder_waits_for_a_lease() -> None:
    async def story() -> None:
        server = Server()
        guard = server.guard()
        await guard.open()
        await asyncio.sleep(3.0)
        assert await refused(guard, ADA, TTL) == HeldBy("", 0, 7.0)
        await asyncio.sleep(7.0)
        assert (await granted(guard, ADA, TTL)).token == 1

    virtually(story())


def test_a_short_lease_is_waited_for_as_long_as_it_is() -> None:
    async def story() -> None:
        guard = Server().guard()
        assert (await refused(guard, ADA, 0.5)).remaining == 0.5

    virtually(story())


def test_who_did_not_open_it_knows_a_server_since_its_first_answer() -> None:
    async def story() -> None:
        server = Server()
        guard = server.guard()
        await asyncio.sleep(3.0)
        assert (await refused(guard, ADA, TTL)).remaining == TTL
        await asyncio.sleep(4.0)
        assert (await refused(guard, ADA, TTL)).remaining == 6.0

    virtually(story())


def test_who_is_told_that_a_server_is_behind_knows_it_since_then() -> None:
    async def story() -> None:
        guard = Server().guard()
        assert (await refused(guard, ADA, TTL, 7)).remaining == TTL
        await asyncio.sleep(TTL)
        assert (await granted(guard, ADA, TTL, 7)).token == 8

    virtually(story())


def test_where_nothing_tells_runs_apart_nobody_waits() -> None:
    async def story() -> None:
        guard = Server(run="").guard()
        await guard.open()
        assert (await granted(guard, ADA, TTL)).token == 1
        assert module._RUNS == {}, "there is nothing to remember"

    virtually(story())


def test_an_observer_has_heard_of_the_leases_that_it_saw() -> None:
    async def story() -> None:
        server = Server(run="")
        ada, ben = server.guard(), server.guard()
        await granted(ada, ADA, 60.0)
        await ben.look()
        server.run = "new"
        server.hash.clear()
        assert await refused(ben, BEN, 5.0) == HeldBy("", 0, 60.0)

    virtually(story())


def test_after_a_restart_a_newcomer_waits_for_the_longest_lease_it_has_heard_of() -> None:
    async def story() -> None:
        server = Server(run="")
        ada, ben = server.guard(), server.guard()
        await granted(ada, ADA, 60.0)
        assert (await refused(ben, BEN, TTL)).remaining == 60.0
        server.run = "new"
        server.hash.clear()
        assert await refused(ben, BEN, 5.0) == HeldBy("", 0, 60.0)
        await asyncio.sleep(59.0)
        assert (await refused(ben, BEN, 5.0)).remaining == 1.0
        await asyncio.sleep(1.0)
        assert (await granted(ben, BEN, 5.0)).token == 1

    virtually(story())


def test_a_leader_in_its_time_goes_on_at_once_on_a_server_that_has_forgotten_it() -> None:
    async def story() -> None:
        server = Server(run="")
        ada = server.guard()
        assert (await granted(ada, ADA, TTL)).token == 1
        server.run = "new"
        server.hash.clear()
        assert (await granted(ada, ADA, TTL, 1)).token == 2

    virtually(story())


def test_who_has_waited_elsewhere_waits_for_the_run_that_it_has_just_met() -> None:
    """To lift tokens is not to lead: only the last leader passes a run that nobody has settled."""

    async def story() -> None:
        server = Server()
        ben = server.guard()
        assert (await refused(ben, BEN, TTL, 7)).remaining == TTL
        await asyncio.sleep(TTL)
        server.restart(forgets=True)
        assert await refused(ben, BEN, TTL, 7) == HeldBy("", 0, TTL)

    virtually(story())


def test_after_a_restart_who_holds_may_renew_and_nobody_is_let_in_for_a_lease() -> None:
    async def story() -> None:
        server = Server(run="")
        ada, ben = server.guard(), server.guard()
        grant = await granted(ada, ADA, TTL)
        server.run = "new"
        assert (await refused(ben, BEN, TTL)) == HeldBy("", 0, TTL)
        assert (await refused(ada, ADA, TTL, 1)) == HeldBy("", 0, TTL), "not even by asking anew"
        assert (await ada.renew(grant, TTL)).token == 1

    virtually(story())


def test_a_process_remembers_so_many_servers_and_forgets_the_oldest() -> None:
    async def story() -> None:
        for number in range(64):
            assert module._known_for(f"run{number}") == 0.0
        await asyncio.sleep(5.0)
        assert module._known_for("run0") == 5.0
        assert module._known_for("run64") == 0.0
        assert module._known_for("run1") == 5.0
        assert module._known_for("run0") == 0.0, "forgotten: it counts anew"
        assert len(module._RUNS) == 64

    virtually(story())


# Opening


def test_opening_asks_what_a_member_will_ask() -> None:
    async def story() -> None:
        server = Server()
        async with server.guard():
            assert server.asked == ["look", "publish", "run"]
            assert server.published == [("hustings:{jobs}:guard", "")]

    virtually(story())


def test_closing_lets_go_of_the_client() -> None:
    async def story() -> None:
        guard = Server().guard()
        await guard.close()
        client: Any = guard._wire._client
        assert client.closed == 1

    virtually(story())


SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}


@pytest.mark.parametrize(
    "settings, sentence",
    [
        (SAFE, ""),
        ({}, ""),
        (SAFE | {"appendonly": "no"}, "appendonly of redis://cache:7000 is no: CONFIG SET append"),
        (SAFE | {"appendfsync": "everysec"}, "appendfsync of .* is everysec: .*appendfsync always"),
        (SAFE | {"maxmemory-policy": "allkeys-lru", "maxmemory": "100"}, r"evicts keys \(allkeys"),
        (SAFE | {"maxmemory-policy": "allkeys-lfu"}, "when full, evicts keys"),
        (SAFE | {"maxmemory-policy": "allkeys-lru", "maxmemory": "0"}, ""),
        (SAFE | {"maxmemory-policy": "volatile-lru", "maxmemory": "100"}, ""),
    ],
)
def test_a_server_must_keep_what_persistence_always_says(
    settings: dict[str, str], sentence: str
) -> None:
    async def story() -> None:
        server = Server()
        server.settings = settings
        guard = keeping(server)
        if not sentence:
            await guard.open()
            assert server.asked == ["look", "publish"]
            return
        with pytest.raises(BadInput, match=sentence):
            await guard.open()
        await server.guard().open()  # who does not say so is not asked to

    virtually(story())


def test_where_settings_may_not_be_read_they_are_believed() -> None:
    async def story() -> None:
        server = Server()
        server.forbidden = exceptions.NoPermissionError("no CONFIG for you")
        await keeping(server).open()

    virtually(story())


def test_what_is_a_mistake_at_the_start_may_pass_later() -> None:
    async def story() -> None:
        server = Server()
        guard = keeping(server)
        grant = await granted(guard, ADA, TTL)
        server.fails = exceptions.AuthenticationError("wrong password")
        with pytest.raises(BadInput, match="redis://cache:7000 refuses access: wrong password"):
            await guard.open()
        for ask in (guard.renew(grant, TTL), guard.acquire(ADA, TTL), guard.recover(5)):
            with pytest.raises(Unreachable, match="refuses access: wrong password"):
                await ask

    virtually(story())


@pytest.mark.parametrize("ttl", [0.009, 86401.0])
def test_times_that_no_server_can_keep_are_refused(ttl: float) -> None:
    async def story() -> None:
        guard = Server().guard()
        with pytest.raises(BadInput, match="a lease in Redis must lie between"):
            guard.check_ttl(ttl)
        with pytest.raises(BadInput, match="positive time"):
            guard.check_ttl(float("nan"))

    virtually(story())


# Observers


def test_an_observer_sees_who_holds_and_the_end_that_nobody_announces() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)
        await granted(ada, ADA, TTL)
        seen = []
        async with keeping(server).observe() as states:
            async for state in states:
                seen.append((now(), state.holder, state.token))
                if len(seen) == 2:
                    break
        assert seen == [(0.0, "ada", 1), (TTL, None, 1)]
        assert not server.listeners, "it has hung up"

    virtually(story())


def test_an_observer_sees_a_short_lease() -> None:
    async def story() -> None:
        server = Server()
        await granted(keeping(server), ADA, 0.5)
        guard = keeping(server)
        assert await guard.look() == Holding("ada", 1)
        await asyncio.sleep(0.5)
        assert await guard.look() == Holding(None, 1)

    virtually(story())


def test_an_observer_hears_of_a_change_at_once() -> None:
    async def story() -> None:
        server = Server()
        ada = keeping(server)

        async def change() -> None:
            await asyncio.sleep(2.0)
            grant = await granted(ada, ADA, TTL)
            await asyncio.sleep(1.0)
            await ada.release(grant)

        seen = []
        async with keeping(server).observe() as states, asyncio.TaskGroup() as group:
            group.create_task(change())
            async for state in states:
                seen.append((now(), state.holder, state.token))
                if len(seen) == 3:
                    break
        assert seen == [(0.0, None, 0), (2.0, "ada", 1), (3.0, None, 1)]

    virtually(story())


@pytest.mark.parametrize("ttl, poll, looks", [(60.0, 5.0, 5.0), (9.0, 5.0, 3.0)])
def test_an_observer_looks_again_unasked(ttl: float, poll: float, looks: float) -> None:
    """After `poll`, and often enough in a lease's time to see a renewal nobody announced."""

    async def story() -> None:
        server = Server()
        ada = keeping(server)
        await granted(ada, ADA, ttl)
        at: list[float] = []

        async def note(what: str) -> None:
            at.append(now())

        server.before = note
        observer = server.guard(keeps=True, poll=poll)
        async with observer.observe() as states:
            await anext(states)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(looks + 0.5):
                    await anext(states)
        assert at == [0.0, looks]

    virtually(story())


def test_where_nobody_holds_an_observer_looks_after_its_poll() -> None:
    async def story() -> None:
        server = Server()
        at: list[float] = []

        async def note(what: str) -> None:
            at.append(now())

        server.before = note
        async with server.guard(poll=7.0).observe() as states:
            await anext(states)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(7.5):
                    await anext(states)
        assert at == [0.0, 7.0]

    virtually(story())
