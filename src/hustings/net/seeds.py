"""Seeds: addresses where a group may be found, by number or by name.

A name is resolved anew every time it is needed, since what stands behind it may have changed. One
that cannot be resolved is no reason to stop: the member says so, once, and tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hustings.net.addresses import Address
from hustings.net.port import Endpoint

Resolve = Callable[[Address], Awaitable[list[Endpoint]]]


class Seeds:
    """The seeds of one member."""

    def __init__(
        self, addresses: Sequence[Address], resolve: Resolve, note: Callable[[str], None]
    ) -> None:
        self.addresses = tuple(addresses)
        self._resolve = resolve
        self._note = note
        self._unresolved: set[Address] = set()  # only asked, never walked through
        self.endpoints: list[Endpoint] = [
            (each.host, each.port) for each in addresses if each.ip is not None
        ]

    async def look_up(self) -> list[Endpoint]:
        """Where the seeds are now."""
        found: dict[Endpoint, None] = {}
        for address in self.addresses:
            numbers = await self._resolve(address)
            if not numbers and address not in self._unresolved:
                self._unresolved.add(address)
                self._note(f"seed {address} cannot be resolved: trying again")
            elif numbers and address in self._unresolved:
                self._unresolved.discard(address)
                self._note(f"seed {address} can be resolved now")
            found.update(dict.fromkeys(numbers))
        self.endpoints = list(found)
        return self.endpoints
