"""What observers of a guard on Kubernetes see, and how their watch begins and ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from hustings.guard import Holding
from hustings.guard.urls import NET_S
from tests.guard.answers import granted
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_kubernetes import ADA, TTL, Server, opened, server

__all__ = ["server"]


def test_an_observer_is_told_at_once_by_one_watch(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher:
            async with watcher.observe() as states:
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
                (stream,) = server.streams
                assert stream.since is None, "there was no Lease to go on from"
                assert not stream.closed
            assert stream.closed

    virtually(story())


def test_a_watch_begins_where_the_last_look_left_off(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            first = await granted(guard, ADA, TTL)
            assert await anext(states) == Holding("ada", first.token)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            assert [each.since for each in server.streams] == ["101"]
            await server.delete("default", "jobs")
            assert await following == Holding(None, first.token), "the last one is known"
            assert now() == 1.0

    virtually(story())


def test_what_was_seen_already_is_not_looked_at_again(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            await granted(guard, ADA, 60.0)
            await anext(states)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            count = server.count("GET")
            await server.streams[0].say(json.dumps(server.events[0][2]).encode())
            await asyncio.sleep(1.0)
            assert server.count("GET") == count
            await server.label()
            await asyncio.sleep(1.0)
            assert server.count("GET") == count + 1, "a change is looked at"
            assert len(server.streams) == 1
            following.cancel()
            await asyncio.wait([following])

    virtually(story())


def test_the_end_of_a_lease_is_noticed_to_the_moment(server: Server) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            first = await granted(guard, ADA, 2 * NET_S + 1.0)
            assert await anext(states) == Holding("ada", first.token)
            assert await anext(states) == Holding(None, first.token)
            assert now() == 2 * NET_S + 1.0
            assert server.count("GET") == 3 + 4 + 1, "three opened or asked, four looks, one watch"

    virtually(story())


@pytest.mark.parametrize(
    "line", [b"", b'{"type": "ERROR", "object": {"code": 410}}\n', b"<html>\n", b"{}\n"]
)
def test_a_watch_that_ends_is_begun_anew(server: Server, line: bytes) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            await server.streams[0].say(line)
            await asyncio.sleep(0.5)
            assert [each.closed for each in server.streams] == [True, False]
            first = await granted(guard, ADA, TTL)
            assert await following == Holding("ada", first.token)
            assert now() == 1.5

    virtually(story())


@pytest.mark.parametrize("status", [300, 403])
def test_a_watch_that_is_refused_is_tried_again_ever_less_often(
    server: Server, status: int
) -> None:
    async def story() -> None:
        server.watch_status = status
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            assert 2 <= len(server.streams) <= 12
            assert all(each.closed for each in server.streams)
            first = await granted(guard, ADA, TTL)
            assert await following == Holding("ada", first.token)

    virtually(story())


def test_an_observer_looks_now_and_then_in_any_case(server: Server) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            server.leases["default", "jobs"] = {
                "metadata": {"resourceVersion": "150"},
                "spec": {"holderIdentity": "zoe", "leaseDurationSeconds": 9},
            }
            assert await anext(states) == Holding("zoe", 150)
            assert now() == NET_S

    virtually(story())


def test_an_observer_goes_on_after_an_outage(server: Server) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            server.down = True
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(20.0)
            server.down = False
            await server.foreign("jobs", "zoe", leaseDurationSeconds=9)
            assert await following == Holding("zoe", 101)
            assert now() <= 22.0

    virtually(story())
