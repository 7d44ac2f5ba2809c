"""What observers of a guard on etcd see, and what their watch costs."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from aetcd import rpc

from hustings.guard import Holder, Holding
from hustings.guard.urls import NET_S
from tests.guard.answers import granted
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.fakes_etcd import Etcd, failure, opened

ADA, BEN = Holder("ada", 1), Holder("ben", 1)
TTL = 60.0


def test_an_observer_is_told_at_once_by_one_watch(etcd: Etcd) -> None:
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
                assert await following == Holding(None, first.token), "the last one is known"
                assert now() == 2.0
                second = await granted(guard, BEN, TTL)
                assert await anext(states) == Holding("ben", second.token)
            watches = [each for each in etcd.asked if each.method == "Watch"]
            assert len(watches) == 1
            assert dict(watches[0].metadata)["hasleader"] == "true"
            assert etcd.streams[0].cancelled, "nobody watches any more"
            assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(story())


def test_an_observer_looks_now_and_then_in_any_case(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            etcd.keys[b"jobs/1"] = rpc.KeyValue(key=b"jobs/1", value=b"zoe", create_revision=7)
            assert await anext(states) == Holding("zoe", 7)
            assert now() == NET_S
            etcd.keys.clear()
            assert await anext(states) == Holding(None, 7)
            assert now() == 2 * NET_S

    virtually(story())


def test_who_holds_is_not_looked_at_without_need(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            etcd.write("jobs/1", "zoe")
            assert (await anext(states)).holder == "zoe"
            count = len(etcd.asked)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(states), 3.5 * NET_S)
            assert len(etcd.asked) == count + 3

    virtually(story())


@pytest.mark.parametrize(
    "end",
    [
        grpc.aio.EOF,
        failure(rpc.StatusCode.UNAVAILABLE, "etcdserver: no leader"),
        rpc.WatchResponse(canceled=True),
        asyncio.InvalidStateError(),
    ],
)
def test_a_watch_that_ends_is_begun_anew(etcd: Etcd, end: object) -> None:
    async def story() -> None:
        async with opened() as guard, opened() as watcher, watcher.observe() as states:
            assert await anext(states) == Holding(None, 0)
            following = asyncio.ensure_future(anext(states))
            await asyncio.sleep(1.0)
            etcd.streams[0].put(end)
            await asyncio.sleep(0.5)
            assert len(etcd.streams) == 2
            assert etcd.streams[0].cancelled
            first = await granted(guard, ADA, TTL)
            assert await following == Holding("ada", first.token)
            assert now() == 1.5

    virtually(story())


def test_tokens_that_were_seen_are_not_taken_back_by_a_smaller_one(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            etcd.write("jobs/1", "zoe")
            etcd.write("jobs/2", "yan")
            etcd.erase("jobs/1")
            assert await anext(states) == Holding("yan", 3)
            etcd.forget()
            etcd.write("jobs/1", "zoe")
            assert await anext(states) == Holding("zoe", 2)
            etcd.erase("jobs/1")
            assert await anext(states) == Holding(None, 3)

    virtually(story())


def test_what_happens_while_the_watch_begins_is_not_missed(etcd: Etcd) -> None:
    async def story() -> None:
        async with opened() as watcher, watcher.observe() as states:
            etcd.after("Txn", lambda: etcd.write("jobs/1", "zoe"))
            assert await anext(states) == Holding(None, 0)
            assert await anext(states) == Holding("zoe", 2)
            assert now() == 0.0

    virtually(story())
