"""How a member finds others: by seeds, and where it lost sight of members.

A seed is an address where the group may be found, by number or by name. A name is resolved anew
every time it is needed, since what stands behind it may have changed. A name that cannot be
resolved is no reason to stop: the member says so, once, and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.addresses import Address
from hustings.net.control_messages import ProbeMsg
from hustings.net.transport import Endpoint

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

# Seconds between two looks for others until somebody has answered, first and last: at least what a
# round trip takes.
_ALONE = (0.1, 2.0)
_COMPANY = 2.0  # the same in company, as long as somebody is missing
_GLANCE = 0.1  # seconds that a look-up of names is waited for before others are approached
_NONCES = 1 << 53
_STRANGERS = 8  # approached at a time while alone; one in company
_HASTE = 1.5  # between two looks: so much longer, and so many more are asked


class Discovery:
    """What one host does to find others."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._approached: dict[int, Endpoint] = {}  # by the number of the question
        self._aliases: dict[Endpoint, MemberId] = {}  # who answered there

    async def seek(self) -> None:
        """Approach those who are missing, as long as there are any.

        One of them is asked to be let in, and the others are only told: what it takes to tell a
        newcomer of a large group is spent once. Who gets no answer asks more of them.
        """
        membership = self._node.stack.membership
        first = max(_ALONE[0], 2 * membership.config.delta)
        wait, asked, looking = first, 1.0, None
        try:
            while True:
                company = membership.joined and len(membership.view) > 1
                if self._node.seeds.names and (looking is None or looking.done()):
                    if not company or self._strangers():
                        looking = asyncio.get_running_loop().create_task(self._node.seeds.look_up())
                        await asyncio.wait([looking], timeout=_GLANCE)
                strangers = self._strangers()
                count = min(len(strangers), 1 if company else _STRANGERS)
                chosen = self._node.runner.rng.sample(strangers, count)
                for place, endpoint in enumerate(chosen):
                    self.approach(endpoint, asks=place < asked)
                await asyncio.sleep(_COMPANY if company else wait)
                asked = 1.0 if company else _HASTE * asked
                wait = first if company else max(first, min(_ALONE[1], _HASTE * wait))
        finally:
            if looking is not None:
                looking.cancel()

    def _strangers(self) -> list[Endpoint]:
        """Whom to approach: who is missing, and before anybody has answered, seeds in view too."""
        if self._node.stack.membership.partial:
            return []  # nobody is missing who might only not be known yet
        unanswered = not self._node.stack.membership.joined
        book, now = self._node.address_book, asyncio.get_running_loop().time()
        found = dict.fromkeys([*self._node.seeds.endpoints, *book.lost(now)])
        own = self._node.stack.membership.circle.own.place
        view = self._node.stack.membership.view
        return [
            each
            for each in found
            if each != self._node.transport.endpoint
            and not _is_at(own, each)
            and (unanswered or (book.owner(each) is None and self._aliases.get(each) not in view))
        ]

    def approach(self, endpoint: Endpoint, *, asks: bool = True) -> None:
        """Introduce oneself to whoever is there, and ask to be let in."""
        self._node.introduce(endpoint, self._node.stack.membership.card(asks=asks))
        if self._node.config_check is not None:
            self._node.config_check.ask(endpoint)
        if len(self._node.stack.membership.view) > 1:
            # Perhaps it is one of those known. Who has nobody yet may be refused its name, and
            # must not be heard before that is decided.
            nonce = 1 + self._node.runner.rng.below(_NONCES)
            self._approached[nonce] = endpoint
            if len(self._approached) > _STRANGERS:
                del self._approached[next(iter(self._approached))]
            self._node.introduce(endpoint, ProbeMsg(nonce))

    def met(self, nonce: int, member: MemberId) -> None:
        """Somebody answers from an endpoint: that one need not be approached as long as it lives.

        A member may be reached at other addresses than the one that it advertises.
        """
        endpoint = self._approached.pop(nonce, None)
        if endpoint is not None:
            self._aliases.pop(endpoint, None)
            self._aliases[endpoint] = member
            if len(self._aliases) > self._node.filter.wire.limits.members:
                del self._aliases[next(iter(self._aliases))]


def _is_at(place: str, endpoint: Endpoint) -> bool:
    host, port = endpoint
    return place.startswith((f"{host}:{port} ", f"[{host}]:{port} "))


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
