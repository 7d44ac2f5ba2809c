"""Seeds: addresses where a group may be found, by number or by name.

A name is resolved anew every time it is needed, since what stands behind it may have changed. One
that cannot be resolved is no reason to stop: the member says so, once, and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from hustings.net.addresses import Address
from hustings.net.port import Endpoint

Resolve = Callable[[Address], Awaitable[list[Endpoint]]]


_PATIENCE = 5.0  # seconds that one name may take


class Seeds:
    """The seeds of one member."""

    def __init__(
        self, addresses: Sequence[Address], resolve: Resolve, note: Callable[[str], None]
    ) -> None:
        self.addresses = tuple(addresses)
        self._resolve = resolve
        self._note = note
        self._unresolved: set[Address] = set()  # only asked, never walked through
        self._found: dict[Address, list[Endpoint]] = {
            each: [(each.host, each.port)] for each in addresses if each.ip is not None
        }

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where the seeds are, as far as is known."""
        return list(dict.fromkeys(each for found in self._found.values() for each in found))

    @property
    def names(self) -> list[Address]:
        """Those that have to be looked up."""
        return [each for each in self.addresses if each.ip is None]

    async def look_up(self) -> None:
        """Find out anew what is behind the names; one that hangs holds up no other."""
        await asyncio.gather(*(self._look_up(each) for each in self.names))

    async def _look_up(self, address: Address) -> None:
        numbers: list[Endpoint] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                numbers = await self._resolve(address)
        if numbers:
            self._found[address] = numbers
        if not numbers and address not in self._unresolved:
            self._unresolved.add(address)
            self._note(f"seed {address} cannot be resolved: trying again")
        elif numbers and address in self._unresolved:
            self._unresolved.discard(address)
            self._note(f"seed {address} can be resolved now")
