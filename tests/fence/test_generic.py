"""The fence over one's own store, and the judge of all histories."""

from __future__ import annotations

import asyncio
import copy
import random
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.fence import AsyncFence, Fence, FenceBusy, StaleToken, Stamped
from hustings.fence.fence import LARGEST_TOKEN, checked
from tests.fence.judging import Try, complaints, falls


class Versioned:
    """A record with a version, as an object store with ETags has it."""

    def __init__(self) -> None:
        self.record = Stamped(0, 0, 0)
        self.written: list[int] = []
        self._lock = threading.Lock()

    def read(self) -> Stamped[int]:
        return self.record

    def write(self, token: int, value: int, version: object) -> bool:
        with self._lock:
            if version != self.record.version:
                return False
            self.written.append(token)
            self.record = Stamped(token, value, len(self.written))
            return True


class Slow:
    """The same over a network: others come in between everywhere."""

    def __init__(self, seed: int) -> None:
        self.inner = Versioned()
        self._rng = random.Random(seed)

    async def _wander(self) -> None:
        for _ in range(self._rng.randrange(4)):
            await asyncio.sleep(0)

    async def read(self) -> Stamped[int]:
        await self._wander()
        found = self.inner.read()
        await self._wander()
        return found

    async def write(self, token: int, value: int, version: object) -> bool:
        await self._wander()
        done = self.inner.write(token, value, version)
        await self._wander()
        return done


def test_equal_and_larger_pass_and_smaller_do_not() -> None:
    store = Versioned()
    fence = Fence(store)
    fence.write(5, 1)
    assert fence.update(5, lambda value: value + 1) == 2
    fence.write(LARGEST_TOKEN, 3)
    with pytest.raises(StaleToken) as caught:
        fence.write(5, 4)
    assert (caught.value.token, caught.value.highest) == (5, LARGEST_TOKEN)
    assert store.record.value == 3
    again = copy.copy(caught.value)
    assert (again.token, again.highest, str(again)) == (5, LARGEST_TOKEN, str(caught.value))


@pytest.mark.parametrize("bad", [0, -1, LARGEST_TOKEN + 1, True, 1.0, "1", None])
def test_what_is_no_token(bad: Any) -> None:
    with pytest.raises(BadInput, match="token"):
        checked(bad)
    store = Versioned()
    with pytest.raises(BadInput, match="token"):
        Fence(store).write(bad, 1)
    assert not store.written


def test_a_store_that_never_rests() -> None:
    store = Versioned()

    def disturb(value: int) -> int:
        store.record = store.record._replace(version=object())
        return value

    with pytest.raises(FenceBusy):
        Fence(store, tries=3).update(1, disturb)


def test_threads() -> None:
    store, tries = Versioned(), list[Try]()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        fence = Fence(store, tries=10_000)
        for step in range(200):
            token = max(1, step + rng.randrange(-20, 20))
            began = time.monotonic()
            try:
                fence.update(token, lambda value: value + 1)
            except StaleToken as stale:
                tries.append(Try(token, began, time.monotonic(), False, stale.highest))
            else:
                tries.append(Try(token, began, time.monotonic(), True))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    accepted = [each for each in tries if each.accepted]
    assert 0 < len(accepted) < len(tries)
    assert store.record.value == len(accepted)
    assert not falls(store.written)
    assert not complaints(tries)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(0, 2**32))
def test_many_clients(tokens: list[int], seed: int) -> None:
    store = Slow(seed)
    fence = AsyncFence(store)
    refused = list[StaleToken]()

    async def one(token: int) -> None:
        try:
            await fence.update(token, lambda value: value + 1)
        except StaleToken as stale:
            refused.append(stale)

    async def all_of_them() -> None:
        await asyncio.gather(*map(one, tokens))

    asyncio.run(all_of_them())
    assert not falls(store.inner.written)
    assert sorted([*store.inner.written, *(each.token for each in refused)]) == sorted(tokens)
    assert store.inner.record.token == max(tokens)
    assert store.inner.record.value == len(store.inner.written)


def test_the_judge_sees_what_is_wrong() -> None:
    fine = [Try(5, 0, 3, True), Try(6, 1, 2, True), Try(5, 4, 5, False, 6)]
    assert complaints(fine) == []
    assert complaints([*fine, Try(5, 2, 6, True)]) == []  # began when 6 had not ended yet
    assert complaints([*fine, Try(5, 2.1, 6, True)])
    assert complaints([*fine, Try(6, 4, 5, False, 6)])
    assert complaints([*fine, Try(6, 4, 5, False, 7)])
    assert complaints([Try(5, 0, 1, False, 6), Try(6, 2, 3, True)])
    unknown = Try(9, 3.5, 3.6, None)
    assert complaints([*fine, unknown]) == []
    assert complaints([*fine, unknown, Try(6, 4, 5, False, 9)]) == []
    assert complaints([*fine, unknown, Try(6, 3, 3.2, False, 9)])
    assert falls([1, 2, 2, 5]) == []
    assert falls([1, 3, 2]) == [(3, 2)]
