"""The fence in Redis and Valkey: check and write in one script, many clients, crashes."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot

from hustings.core.errors import BadInput
from hustings.fence import FenceBroken, RedisFence, StaleToken
from hustings.fence.fence import LARGEST_TOKEN
from tests.fence.judging import Try, complaints, falls
from tests.guard.engines.valkey import PASSWORD, Engine

EDGES = [1, 9, 10, 2**53 - 1, 2**53, 2**53 + 1, LARGEST_TOKEN - 1, LARGEST_TOKEN]


@pytest.fixture
def client(valkey: Engine) -> Iterator[Any]:
    made = redis.Redis(port=valkey.port, password=PASSWORD, socket_timeout=20.0)
    yield made
    made.close()


def with_async(valkey: Engine, story: Callable[..., Awaitable[None]], count: int = 1) -> None:
    async def tell() -> None:
        made = [
            redis.asyncio.Redis(
                port=valkey.port,
                password=PASSWORD,
                socket_timeout=20.0,
                retry=Retry(NoBackoff(), 0),  # a write that was not answered is not sent again
            )
            for _ in range(count)
        ]
        try:
            await story(*made)
        finally:
            for each in made:
                await each.aclose()

    asyncio.run(tell())


def test_equal_and_larger_pass_and_smaller_do_not(client: Any, resource: str) -> None:
    fence = RedisFence(resource)
    key = fence.key("state")
    assert fence.call(client, 5, "SET", key, "five") == b"OK"
    assert fence.call(client, 5, "APPEND", key, "!") == 5
    assert fence.call(client, 7, "GET", key) == b"five!"
    with pytest.raises(StaleToken) as caught:
        fence.call(client, 6, "SET", key, "six")
    assert (caught.value.token, caught.value.highest) == (6, 7)
    assert client.get(key) == b"five!"
    assert client.get(fence.token_key) == b"7"
    assert fence.call(client, 7, "GET", fence.key("nothing")) is None
    RedisFence(resource + "-other").call(client, 1, "SET", "x", "y")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, LARGEST_TOKEN) | st.sampled_from(EDGES), max_size=6))
def test_large_numbers_are_compared_exactly(client: Any, resource: str, tokens: list[int]) -> None:
    fence, highest = RedisFence(resource), 0
    client.delete(fence.token_key)
    for token in tokens:
        if token >= highest:
            fence.call(client, token, "PING")
            highest = token
        else:
            with pytest.raises(StaleToken) as caught:
                fence.call(client, token, "PING")
            assert caught.value.highest == highest


def test_scripts_of_ones_own(client: Any, valkey: Engine, resource: str) -> None:
    fence = RedisFence(resource)
    move = fence.script("""
        redis.call('DECRBY', KEYS[2], ARGV[2])
        return redis.call('INCRBY', KEYS[3], ARGV[2])
    """)
    keys = [fence.key("a"), fence.key("b")]
    assert move.call(client, 5, keys, [10]) == 10
    assert move.call(client, 6, keys, [10]) == 20
    with pytest.raises(StaleToken):
        move.call(client, 5, keys, [10])
    assert (client.get(keys[0]), client.get(keys[1])) == (b"-20", b"20")
    silent = fence.script("redis.call('SET', KEYS[2], 'x')")
    assert silent.call(client, 6, keys) is None

    async def story(other: Any) -> None:
        client.script_flush()
        await fence.call_async(other, 6, "SET", keys[0], "0")
        assert await move.call_async(other, 6, keys, [1]) == 21
        with pytest.raises(StaleToken):
            await fence.call_async(other, 5, "SET", keys[0], "0")
        with pytest.raises(StaleToken):
            await move.call_async(other, 5, keys, [1])

    with_async(valkey, story)


def test_what_fails_leaves_the_token(client: Any, resource: str) -> None:
    fence = RedisFence(resource)
    client.set(fence.key("text"), "no number")
    with pytest.raises(redis.ResponseError, match="not an integer"):
        fence.call(client, 6, "INCR", fence.key("text"))
    with pytest.raises(StaleToken):  # it passed, and then its command failed
        fence.call(client, 5, "SET", fence.key("text"), "5")


def test_sentences(client: Any, resource: str) -> None:
    fence = RedisFence(resource)
    for bad in ("", "a b", "a{b", "x" * 256, "new\nline", "nul\0"):
        with pytest.raises(BadInput):
            RedisFence(bad)
    with pytest.raises(BadInput, match="command"):
        fence.call(client, 1)
    for token in (0, -1, LARGEST_TOKEN + 1):
        with pytest.raises(BadInput, match="token"):
            fence.call(client, token, "SET", "x", "y")
    for damage in (b"", b"x", b"07", b"-1", b"1.5", b"9" * 20):
        client.set(fence.token_key, damage)
        with pytest.raises(FenceBroken, match="does not hold a token"):
            fence.call(client, LARGEST_TOKEN, "SET", fence.key("x"), "y")
        assert client.get(fence.token_key) == damage
    client.delete(fence.token_key)
    client.rpush(fence.token_key, "1")
    with pytest.raises(FenceBroken, match="does not hold a token"):
        fence.call(client, 1, "SET", fence.key("x"), "y")
    assert not client.exists(fence.key("x"))


def test_one_node_of_a_cluster(resource: str) -> None:
    fence = RedisFence(resource)
    slots = {key_slot(each.encode()) for each in (fence.token_key, fence.key("a"), fence.key("b"))}
    assert len(slots) == 1


def test_threads(valkey: Engine, client: Any, resource: str) -> None:
    fence, tries = RedisFence(resource), list[Try]()

    def work(seed: int) -> None:
        mine = redis.Redis(port=valkey.port, password=PASSWORD, socket_timeout=20.0)
        rng = random.Random(seed)
        for step in range(100):
            token = max(1, step + rng.randrange(-10, 10))
            began = time.monotonic()
            try:
                fence.call(mine, token, "RPUSH", fence.key("journal"), token)
            except StaleToken as stale:
                tries.append(Try(token, began, time.monotonic(), False, stale.highest))
            else:
                tries.append(Try(token, began, time.monotonic(), True))
        mine.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    judge(client, fence, tries)


def judge(client: Any, fence: RedisFence, tries: list[Try]) -> None:
    written = [int(each) for each in client.lrange(fence.key("journal"), 0, -1)]
    assert not falls(written)
    assert not complaints(tries)
    assert len(written) == sum(each.accepted is True for each in tries)
    assert 0 < len(written) < len(tries)


def test_many_clients(valkey: Engine, client: Any, resource: str) -> None:
    fence, tries = RedisFence(resource), list[Try]()

    async def work(mine: Any, seed: int) -> None:
        rng = random.Random(seed)
        for step in range(40):
            token = max(1, step + rng.randrange(-10, 10))
            began = time.monotonic()
            try:
                await fence.call_async(mine, token, "RPUSH", fence.key("journal"), token)
            except StaleToken as stale:
                tries.append(Try(token, began, time.monotonic(), False, stale.highest))
            else:
                tries.append(Try(token, began, time.monotonic(), True))

    async def story(*clients: Any) -> None:
        await asyncio.gather(*(work(each, seed) for seed, each in enumerate(clients)))

    with_async(valkey, story, 10)
    judge(client, fence, tries)


def test_server_killed_again_and_again(valkey: Engine, client: Any, resource: str) -> None:
    fence, accepted = RedisFence(resource), list[int]()

    async def work(mine: Any, first: int) -> None:
        token = first
        while True:
            try:
                await fence.call_async(mine, token, "RPUSH", fence.key("journal"), token)
            except StaleToken as stale:
                token = stale.highest
            except (redis.RedisError, OSError):
                return
            else:
                accepted.append(token)
                token += len(accepted) % 3 == 0

    def story(start: int) -> Callable[..., Awaitable[None]]:
        async def told(*clients: Any) -> None:
            tasks = [asyncio.create_task(work(each, start)) for each in clients]
            while len(accepted) < start * 50:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(valkey.stop, kill=True)
            await asyncio.gather(*tasks)

        return told

    for start in (1, 2, 3):
        with_async(valkey, story(start), 3)
        valkey.start()
    written = [int(each) for each in client.lrange(fence.key("journal"), 0, -1)]
    assert not falls(written)
    assert len(accepted) <= len(written) <= len(accepted) + 9  # written and not heard of
    with pytest.raises(StaleToken) as caught:
        fence.call(client, 1, "RPUSH", fence.key("journal"), 1)
    assert caught.value.highest == written[-1] >= max(accepted)
