"""How a member finds others: through seeds, on its machine, and where it lost sight of members.

A seed is an address where the group may be found, by number or by name. A name is resolved again
each time it is needed, since its addresses may have changed. A name that cannot be resolved is no
reason to stop: the member logs it once and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.names import member_id
from hustings.net.addresses import Address
from hustings.net.clock import member_clock, sleep
from hustings.net.control_messages import ProbeMsg
from hustings.net.transport import Endpoint

if TYPE_CHECKING:
    from hustings.net.local_members import LocalMembers
    from hustings.net.node import MemberNode

# Seconds between two searches until a member has answered, first and last. The first wait is at
# least a round trip.
_ALONE = (0.1, 2.0)
_COMPANY = 2.0  # the same in a group, as long as a member is missing
_GLANCE = 0.1  # seconds to wait for a look-up of names before other addresses are tried
_NONCES = 1 << 53
_STRANGERS = 8  # addresses tried at a time while alone; in a group, one
_GROWTH = 1.5  # a search waits this many times longer than the last, and asks as many times more


class Discovery:
    """How one node finds others."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._approached: dict[int, Endpoint] = {}  # by the number of the question
        self._aliases: dict[Endpoint, MemberId] = {}  # which member answered at an endpoint

    async def seek(self) -> None:
        """Contact the addresses of missing members, as long as there are any.

        One of them is asked to let this member in, and the others only learn that it is there. So a
        large group sends its state to a newcomer once. A member that gets no answer asks more of
        them.
        """
        membership = self._node.stack.membership
        first = max(_ALONE[0], 2 * membership.config.delta)
        wait, looking = first, None
        # The members of this machine are few, and each of them may be the only one that answers.
        asked = float(max(1, min(_STRANGERS, len(self._node.seeds.local_endpoints))))
        try:
            while True:
                company = membership.joined and len(membership.view) > 1
                self._look_here(company)
                if self._node.seeds.names and (looking is None or looking.done()):
                    if not company or self._strangers():
                        looking = asyncio.get_running_loop().create_task(self._node.seeds.look_up())
                        await asyncio.wait([looking], timeout=_GLANCE)
                strangers = self._strangers()
                count = min(len(strangers), 1 if company else _STRANGERS)
                chosen = self._node.runner.rng.sample(strangers, count)
                for place, endpoint in enumerate(chosen):
                    self.approach(endpoint, asks=place < asked)
                await sleep(_COMPANY if company else wait)
                asked = 1.0 if company else _GROWTH * asked
                wait = first if company else max(first, min(_ALONE[1], _GROWTH * wait))
        finally:
            if looking is not None:
                looking.cancel()

    def _look_here(self, company: bool) -> None:
        """Keep this member's file, and look at those of the others while any of them is missing."""
        local, view = self._node.local, self._node.stack.membership.view
        if local is None:
            return
        try:
            local.keep()
        except BadInput as error:
            self._node.rejections.say("local", f"{error}", member_clock().time())
        missing = (each is None or member_id(each.name) not in view for each in local.found)
        if not company or any(missing):
            local.look()

    def _strangers(self) -> list[Endpoint]:
        """The addresses of missing members; until a member has answered, seeds in view too."""
        if self._node.stack.membership.partial:
            return []  # with a partial view, an unknown member is not a missing one
        unanswered = not self._node.stack.membership.joined
        book, now = self._node.address_book, member_clock().time()
        found = dict.fromkeys([*self._node.seeds.endpoints, *book.lost(now)])
        view = self._node.stack.membership.view
        return [
            each
            for each in found
            if not self._node.is_own(each)
            and (unanswered or (book.owner(each) is None and self._aliases.get(each) not in view))
        ]

    def approach(self, endpoint: Endpoint, *, asks: bool = True) -> None:
        """Introduce this member at an endpoint, and ask to be let in."""
        self._node.introduce(endpoint, self._node.stack.membership.card(asks=asks))
        if self._node.config_check is not None:
            self._node.config_check.ask(endpoint)
        if len(self._node.stack.membership.view) > 1:
            # The endpoint may be another address of a known member. A member that is still alone
            # may be refused its name, and must not be heard before that is decided.
            nonce = 1 + self._node.runner.rng.below(_NONCES)
            self._approached[nonce] = endpoint
            if len(self._approached) > _STRANGERS:
                del self._approached[next(iter(self._approached))]
            self._node.introduce(endpoint, ProbeMsg(nonce))

    def met(self, nonce: int, member: MemberId) -> bool:
        """A member answers from an endpoint: do not try it again as long as that member lives.

        A member may be reached at other addresses than its advertised one. Returns whether it was
        asked there.
        """
        endpoint = self._approached.pop(nonce, None)
        if endpoint is not None:
            self._aliases.pop(endpoint, None)
            self._aliases[endpoint] = member
            if len(self._aliases) > self._node.filter.wire.limits.members:
                del self._aliases[next(iter(self._aliases))]
        return endpoint is not None


Resolve = Callable[[Address], Awaitable[list[Endpoint]]]


_PATIENCE = 5.0  # seconds for the look-up of one name


class Seeds:
    """The seeds of one member."""

    def __init__(
        self,
        addresses: Sequence[Address],
        resolve: Resolve,
        note: Callable[[str], None],
        local: LocalMembers | None = None,
    ) -> None:
        self.addresses = tuple(addresses)
        self.local = local
        self._resolve = resolve
        self._note = note
        self._unresolved: set[Address] = set()  # only looked up, never iterated
        self._found: dict[Address, list[Endpoint]] = {
            each: [(each.host, each.port)] for each in addresses if each.ip is not None
        }

    @property
    def endpoints(self) -> list[Endpoint]:
        """The endpoints of the seeds that are known so far, and of members on this machine."""
        known = (each for found in self._found.values() for each in found)
        return list(dict.fromkeys([*self.local_endpoints, *known]))

    def found(self, address: Address) -> list[Endpoint]:
        """The endpoints of one seed that are known so far."""
        return self._found.get(address, [])

    @property
    def local_endpoints(self) -> list[Endpoint]:
        """The endpoints of members that were found on this machine."""
        return [] if self.local is None else self.local.endpoints

    @property
    def names(self) -> list[Address]:
        """The seeds that have to be looked up."""
        return [each for each in self.addresses if each.ip is None]

    async def look_up(self) -> None:
        """Look up all names again. A look-up that hangs delays no other."""
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
