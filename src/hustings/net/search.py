"""How a member finds those it does not know: seeds, and members that it lost sight of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.courtesy import ProbeMsg
from hustings.net.port import Endpoint

if TYPE_CHECKING:
    from hustings.net.host import Host

# Seconds between two looks for others until somebody has answered, first and last: at least what a
# round trip takes.
_ALONE = (0.1, 2.0)
_COMPANY = 2.0  # the same in company, as long as somebody is missing
_GLANCE = 0.1  # seconds that a look-up of names is waited for before others are approached
_NONCES = 1 << 53
_STRANGERS = 8  # approached at a time while alone; one in company
_HASTE = 1.5  # between two looks: so much longer, and so many more are asked


class Search:
    """What one host does to find others."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._approached: dict[int, Endpoint] = {}  # by the number of the question
        self._aliases: dict[Endpoint, MemberId] = {}  # who answered there

    async def seek(self) -> None:
        """Approach those who are missing, as long as there are any.

        One of them is asked to be let in, and the others are only told: what it takes to tell a
        newcomer of a large group is spent once. Who gets no answer asks more of them.
        """
        membership = self._host.stack.membership
        first = max(_ALONE[0], 2 * membership.config.delta)
        wait, asked, looking = first, 1.0, None
        try:
            while True:
                company = membership.joined and len(membership.view) > 1
                if self._host.seeds.names and (looking is None or looking.done()):
                    if not company or self._strangers():
                        looking = asyncio.get_running_loop().create_task(self._host.seeds.look_up())
                        await asyncio.wait([looking], timeout=_GLANCE)
                strangers = self._strangers()
                count = min(len(strangers), 1 if company else _STRANGERS)
                chosen = self._host.runner.rng.sample(strangers, count)
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
        if self._host.stack.membership.partial:
            return []  # nobody is missing who might only not be known yet
        unanswered = not self._host.stack.membership.joined
        found = dict.fromkeys(
            [*self._host.seeds.endpoints, *self._host.book.lost(asyncio.get_running_loop().time())]
        )
        own = self._host.stack.membership.circle.own.place
        view = self._host.stack.membership.view
        return [
            each
            for each in found
            if each != self._host.port.endpoint
            and not _is_at(own, each)
            and (
                unanswered
                or (self._host.book.owner(each) is None and self._aliases.get(each) not in view)
            )
        ]

    def approach(self, endpoint: Endpoint, *, asks: bool = True) -> None:
        """Introduce oneself to whoever is there, and ask to be let in."""
        self._host.introduce(endpoint, self._host.stack.membership.card(asks=asks))
        if self._host.config_check is not None:
            self._host.config_check.ask(endpoint)
        if len(self._host.stack.membership.view) > 1:
            # Perhaps it is one of those known. Who has nobody yet may be refused its name, and
            # must not be heard before that is decided.
            nonce = 1 + self._host.runner.rng.below(_NONCES)
            self._approached[nonce] = endpoint
            if len(self._approached) > _STRANGERS:
                del self._approached[next(iter(self._approached))]
            self._host.introduce(endpoint, ProbeMsg(nonce))

    def met(self, nonce: int, member: MemberId) -> None:
        """Somebody answers from an endpoint: that one need not be approached as long as it lives.

        A member may be reached at other addresses than the one that it advertises.
        """
        endpoint = self._approached.pop(nonce, None)
        if endpoint is not None:
            self._aliases.pop(endpoint, None)
            self._aliases[endpoint] = member
            if len(self._aliases) > self._host.gate.wire.limits.members:
                del self._aliases[next(iter(self._aliases))]


def _is_at(place: str, endpoint: Endpoint) -> bool:
    host, port = endpoint
    return place.startswith((f"{host}:{port} ", f"[{host}]:{port} "))
