"""What every fence keeps: a smaller token than the highest so far writes nothing.

    fence = Fence(store)
    fence.update(term.token, lambda balance: balance - 10)

The token is written together with the value that it protects, in one step of the store. So there is
no moment between the check and the write. The store must be able to do one thing for that: replace
a record only if it was not replaced since it was read (an ETag, a version column, a transaction).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from hustings.core.errors import BadInput, HustingsError

LARGEST_TOKEN = (1 << 63) - 1
TRIES = 100  # a store that is replaced this often during one write is too busy to write to

V = TypeVar("V")


class StaleToken(HustingsError):
    """The fence has seen a larger token. This token's holder leads no more. Nothing was written."""

    def __init__(self, token: int, highest: int) -> None:
        super().__init__(f"token {token} is stale: {highest} was here, so nothing was written")
        self.token = token
        self.highest = highest

    def __reduce__(self) -> tuple[type[StaleToken], tuple[int, int]]:
        """Support pickling: the error may have to return from a worker process."""
        return type(self), (self.token, self.highest)


class Overtaken(StaleToken):
    """A larger token came while this request was under way. Nothing more of the request passes.

    What the request did before stays done: look before you do it again.
    """

    def __init__(self, token: int, highest: int) -> None:
        HustingsError.__init__(
            self,
            f"token {token} was overtaken by {highest} while its request was under way: "
            "what it did before stays, and nothing more of it passes",
        )
        self.token = token
        self.highest = highest


class FenceBusy(HustingsError):
    """Other writers blocked this write for longer than the wait. Nothing was written; try again."""


class FenceBroken(BadInput):
    """The fence cannot tell which token is the highest, and lets no write pass until it can."""


def checked(token: int) -> int:
    """Return `token` if it is a valid token. Otherwise raise an error with a sentence.

    >>> checked(7)
    7
    """
    if isinstance(token, bool) or not isinstance(token, int):
        raise BadInput(f"a token is a whole number, not {type(token).__name__}")
    if not 0 < token <= LARGEST_TOKEN:
        raise BadInput("a token lies between 1 and 2**63 - 1")
    return token


class Stamped(NamedTuple, Generic[V]):
    """A record as it was read: the highest token, the protected value, and the store's version."""

    token: int  # 0 before the first token
    value: V
    version: object


class Store(Protocol[V]):
    """A store of one record, which the user provides."""

    def read(self) -> Stamped[V]:
        """The record as it is now, or newer than any write that has returned."""

    def write(self, token: int, value: V, version: object) -> bool:
        """Replace the record if its version is still `version`. Return whether it was replaced."""


class AsyncStore(Protocol[V]):
    """The same as `Store`, for asyncio."""

    async def read(self) -> Stamped[V]:
        """The record as it is now, or newer than any write that has returned."""

    async def write(self, token: int, value: V, version: object) -> bool:
        """Replace the record if its version is still `version`. Return whether it was replaced."""


def admitted(token: int, highest: int) -> None:
    """Refuse a token smaller than the highest."""
    if token < highest:
        raise StaleToken(token, highest)


class Fence(Generic[V]):
    """A record in the user's own store that only the newest leader may change."""

    def __init__(self, store: Store[V], *, tries: int = TRIES) -> None:
        self._store = store
        self._tries = tries

    def write(self, token: int, value: V) -> None:
        """Replace the value."""
        self.update(token, lambda _: value)

    def update(self, token: int, change: Callable[[V], V]) -> V:
        """Replace the value with the result of `change`, and return the result.

        `change` is called again for each value that another writer stored meanwhile.
        """
        checked(token)
        for _ in range(self._tries):
            found = self._store.read()
            admitted(token, found.token)
            value = change(found.value)
            if self._store.write(token, value, found.version):
                return value
        raise _crowded(self._tries)


class AsyncFence(Generic[V]):
    """The same as `Fence`, for asyncio."""

    def __init__(self, store: AsyncStore[V], *, tries: int = TRIES) -> None:
        self._store = store
        self._tries = tries

    async def write(self, token: int, value: V) -> None:
        """Replace the value."""
        await self.update(token, lambda _: value)

    async def update(self, token: int, change: Callable[[V], V]) -> V:
        """Replace the value with the result of `change`, and return the result."""
        checked(token)
        for _ in range(self._tries):
            found = await self._store.read()
            admitted(token, found.token)
            value = change(found.value)
            if await self._store.write(token, value, found.version):
                return value
        raise _crowded(self._tries)


def _crowded(tries: int) -> FenceBusy:
    return FenceBusy(f"others wrote {tries} times in between, and nothing was written: try again")
