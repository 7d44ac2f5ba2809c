"""Observers of ZooKeeper, and servers that are asked in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from aiozk import exc

from hustings.guard import (
    Holding,
    Unreachable,
)
from hustings.guard.observer import SeenLease
from hustings.guard.zookeeper_wire import Ensemble, Lapsed, NoTls, Session, ZookeeperWire
from tests.guard.answers import granted
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_zookeeper import LOST, SILENT, Server
from tests.unit.guard.zookeeper_kit import ADA, BASE, BEN, PATH, TTL, guard, server

__all__ = ["server"]


# Observers


async def until(states: AsyncIterator[Holding], seconds: float) -> Holding | None:
    """The next state, if there is one in time."""
    task = asyncio.ensure_future(anext(states))
    done, _ = await asyncio.wait([task], timeout=seconds)
    if done:
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


def test_an_observer_sees_who_comes_and_goes_at_once(server: Server) -> None:
    async def story() -> None:
        ours, seen = guard(), guard()
        async with seen.observe() as states:
            assert await anext(states) == Holding(None, 0)
            grant = await granted(ours, ADA, TTL)
            began = ours.now()
            assert await anext(states) == Holding("ada", grant.token)
            await ours.release(grant)
            assert await anext(states) == Holding(None, grant.token)
            assert ours.now() - began < 0.1
            server.create(BASE, "1000")
            token = (await granted(ours, BEN, TTL)).token
            assert await anext(states) == Holding("ben", token)
            server.delete(BASE)
            server.delete(PATH)
            assert await anext(states) == Holding(None, token), "the highest that was seen"
        assert all(each.closed for each in server.lines)

    virtually(story())


def test_an_observer_looks_three_times_in_the_life_of_its_session(server: Server) -> None:
    async def story() -> None:
        seen = guard()
        async with seen.observe() as states:
            await anext(states)
            assert await until(states, 60.0) is None
        looks = [each.at for each in server.asked if each.kind == "GetChildren2"][2:]
        gaps = {round(b - a, 1) for a, b in pairwise(looks)}
        assert gaps == {3.3}
        assert [each.timeout for each in server.connects] == [10_000], "on one connection"

    virtually(story())


def test_a_server_with_long_sessions_is_looked_at_as_often_as_any(server: Server) -> None:
    async def story() -> None:
        server.bounds = (30_000, 60_000)
        seen = guard()
        async with seen.observe() as states:
            await anext(states)
            assert await until(states, 60.0) is None
        looks = [each.at for each in server.asked if each.kind == "GetChildren2"][2:]
        assert {round(b - a, 1) for a, b in pairwise(looks)} == {5.0}

    virtually(story())


def test_who_vanishes_while_an_observer_looks_is_not_shown(server: Server) -> None:
    async def story() -> None:
        node = f"{PATH}/{server.stand(PATH, 'foreign')}"
        server.on("GetData", lambda: server.delete(node), path=node)
        async with guard().observe() as states:
            assert await anext(states) == Holding(None, 0)
        assert server.kinds("GetChildren2") == 2

    virtually(story())


def test_an_observer_that_was_cut_off_goes_on_elsewhere_with_what_it_has_seen(
    server: Server,
) -> None:
    async def story() -> None:
        ours = guard()
        grant = await granted(ours, ADA, TTL)
        seen = guard("zookeeper://h:1,h:2")
        async with seen.observe() as states:
            assert await anext(states) == Holding("ada", grant.token)
            newest = server.zxid
            server.hang_up()
            await ours.release(grant)
            assert await anext(states) == Holding(None, grant.token)
        last = server.lines[-1]
        assert last.port == 2
        assert server.connects[-1].last_seen_zxid == newest, "no server that has seen less"
        assert server.connects[-1].session_id == 0, "in a session of its own"

    virtually(story())


@pytest.mark.parametrize("how", ["mute", "silent", "refused", "lapsed", "no tls", "an error"])
def test_an_observer_turns_from_who_does_not_answer(server: Server, how: str) -> None:
    async def story() -> None:
        grant = await granted(guard(), ADA, TTL)
        seen = guard("zookeeper://h:1,h:2")
        match how:
            case "mute":
                server.mute = {1}
            case "refused":
                server.refuses[1] = OSError("refused")
            case "no tls":
                server.refuses[1] = ConnectionResetError()
            case "silent":
                server.on("GetChildren2", lambda: SILENT)
            case "an error":
                server.on("GetChildren2", exc.ZKSystemError)
            case "lapsed":
                server.on("GetChildren2", lambda: server.end_session(2))
        began = seen.now()
        async with seen.observe() as states:
            assert await anext(states) == Holding("ada", grant.token)
        assert seen.now() - began < 2.5
        if how != "silent":  # who greets may be asked again
            assert server.asked[-1].port == 2

    virtually(story())


def test_what_keeps_an_observer_from_looking_is_told(server: Server) -> None:
    async def story() -> None:
        seen = guard("zookeeper://h:1")
        newest = Session(ordered=True)
        async with seen._watch(newest) as feed:
            assert await feed.look() == SeenLease(Holding(None, 0), 0.0)
        server.on("GetChildren2", lambda: SILENT)
        with pytest.raises(Unreachable, match=r"^ZooKeeper did not answer an observer in time$"):
            async with seen._watch(newest) as feed:
                await feed.look()
        server.refuses[1] = OSError("refused")
        with pytest.raises(Unreachable, match=r"^ZooKeeper at zookeeper://h:1 hung up: refused"):
            async with seen._watch(newest):
                pass

    virtually(story())


# Servers in turn


def ensemble(*ports: int, timeout: float = 3.0, account: str | None = None) -> Ensemble:
    return Ensemble([("h", p) for p in ports], shown="them", timeout=timeout, account=account)


async def wait_for_ever(wire: ZookeeperWire) -> None:
    await asyncio.sleep(3600.0)


def test_each_server_has_its_share_of_what_is_left(server: Server) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        server.mute, server.refuses = {1, 3}, {2: OSError("refused")}
        began = loop.time()
        with pytest.raises(Unreachable, match=r"^ZooKeeper at them cannot be used now: no answer"):
            await ensemble(1, 2, 3).converse(Session(), 4000, wait_for_ever)
        assert loop.time() - began == pytest.approx(3.0, abs=0.01)
        began = loop.time()
        with pytest.raises(Unreachable, match=r"no answer within 1 s$"):
            await ensemble(1, timeout=1.0).converse(Session(), 4000, wait_for_ever)
        assert loop.time() - began == pytest.approx(1.0)
        server.mute = {1, 2}
        server.refuses = {}
        began = loop.time()
        both = ensemble(1, 2, 3)

        async def told(wire: ZookeeperWire) -> float:
            return loop.time()

        assert await both.converse(Session(), 4000, told) - began == pytest.approx(2.0, abs=0.01)
        assert all(each.closed for each in server.lines), "all are hung up on"
        began = loop.time()
        assert await both.converse(Session(), 4000, told) - began < 0.1, "who answers is kept to"

    virtually(story())


def test_servers_that_speak_no_tls_are_asked_again_only_as_long_as_there_is_time(
    server: Server,
) -> None:
    async def story() -> None:
        server.refuses = {1: ConnectionResetError("no tls"), 2: OSError("refused")}
        loop = asyncio.get_running_loop()
        with pytest.raises(NoTls, match="refused"):
            await ensemble(1, 2, timeout=1.0).converse(Session(), 4000, wait_for_ever)
        assert 0.9 <= loop.time() <= 1.0
        server.refuses = {2: OSError("refused")}
        with pytest.raises(Unreachable, match="refused"):
            await ensemble(2, timeout=1.0).converse(Session(), 4000, wait_for_ever)

    virtually(story())


def test_a_connection_is_closed_whatever_happens_on_it(server: Server) -> None:
    async def story() -> None:
        session = Session()
        async with ensemble(1, account="ada:secret").line(session, 4000):
            assert server.lines[-1].account == "ada:secret"
            sent = server.asked[-1].request
            assert (sent.type, sent.scheme) == (0, "digest")
            assert not server.connects[-1].read_only, "a server without a majority is no use"
            assert [each.closed for each in server.lines] == [False]
        assert all(each.closed for each in server.lines)
        server.end_sessions()
        with pytest.raises(Lapsed):
            async with ensemble(1).line(session, 4000):
                pass
        assert all(each.closed for each in server.lines)

    virtually(story())


def test_a_conversation_that_is_cut_off_is_begun_again(server: Server) -> None:
    async def story() -> None:
        ours = guard("zookeeper://h:1,h:2")
        server.on("Sync", lambda: LOST)
        await granted(ours, ADA, TTL)
        assert [each.port for each in server.lines] == [1, 2]
        assert [each.session_id for each in server.connects] == [0, 1], "in the same session"

    virtually(story())


def test_sessions_promise_nothing_before_they_are_begun() -> None:
    session = Session()
    assert (session.id, session.granted_s, session.until, session.zxid) == (0, 0.0, 0.0, 0)
    assert not session.ordered
