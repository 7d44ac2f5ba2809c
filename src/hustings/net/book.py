"""The address book: where members are, by what gossip says of them and by where they were heard.

A place is a text that gossip passes on: address and name, as `192.0.2.1:7400 web-1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.names import is_member_name
from hustings.layers.gossip.membership import Membership
from hustings.layers.gossip.messages import MAX_PLACE
from hustings.net.addresses import Address, parse_address
from hustings.net.port import Endpoint

_LOST = 64  # addresses of members that were forgotten, in case they are only cut off
_MISSED = 86_400.0  # seconds for which they are looked for: a day
_HEARD = 4096  # members whose last address is kept


class Place(NamedTuple):
    """Where a member is, and what it is called."""

    endpoint: Endpoint
    name: str

    def text(self) -> str:
        """As gossip passes it on.

        >>> Place(("::1", 7400), "web-1").text()
        '[::1]:7400 web-1'
        """
        return f"{Address(*self.endpoint)} {self.name}"


def read_place(text: str) -> Place | None:
    """A place as gossip brings it; None if it is none.

    >>> read_place("192.0.2.1:7400 web-1")
    Place(endpoint=('192.0.2.1', 7400), name='web-1')
    >>> read_place("everywhere web-1"), read_place("[fe80::1%eth0]:7400 web-1")
    (None, None)
    """
    # Whoever sends texts decides what is remembered here: so no more than that of each.
    return _read_place(text) if len(text) <= MAX_PLACE else None


@lru_cache(maxsize=8192)
def _read_place(text: str) -> Place | None:
    where, blank, name = text.partition(" ")
    if not blank or not is_member_name(name):
        return None
    try:
        address = parse_address(where, "place")
    except BadInput:
        return None
    if address.ip is None or address.ip.is_multicast or address.is_wildcard or not address.port:
        return None
    if "%" in address.host:
        return None  # an interface's name means nothing elsewhere
    place = Place((address.host, address.port), name)
    return place if place.text() == text else None  # as written by who is there, and no otherwise


class Book:
    """One member's address book."""

    def __init__(self, me: MemberId, membership: Membership) -> None:
        self._me = me
        self._circle = membership.circle
        self._heard: dict[MemberId, Endpoint] = {}
        self._lost: dict[Endpoint, float | None] = {}  # since when it is looked for; latest last
        self._known: dict[MemberId, Endpoint] = {}  # of the present view
        # Whether a member has shown that it is at an address: else it is not looked for there.
        self.reached: Callable[[MemberId, Endpoint], bool] = lambda member, endpoint: True
        self._owners: dict[Endpoint, MemberId] = {}
        self._version = -1

    def place(self, member: MemberId) -> Place | None:
        """What gossip says about a member."""
        entry = self._circle.entry(member)
        return None if entry is None else read_place(entry.place)

    def endpoint(self, member: MemberId) -> Endpoint | None:
        """Where to send to."""
        place = self.place(member)
        return self._heard.get(member) if place is None else place.endpoint

    def heard(self, member: MemberId, source: Endpoint) -> None:
        """Something came from a member that nobody may have spoken of yet."""
        if self._heard.get(member) == source:
            return
        self._heard.pop(member, None)
        self._heard[member] = source
        if len(self._heard) > _HEARD:
            del self._heard[next(iter(self._heard))]

    @property
    def known(self) -> Mapping[MemberId, Endpoint]:
        """Where the live others are said to be."""
        self._refresh()
        return self._known

    def everybody(self) -> list[Endpoint]:
        """The same, without their names."""
        return list(self.known.values())

    def owner(self, endpoint: Endpoint) -> MemberId | None:
        """Which live member is there."""
        self._refresh()
        return self._owners.get(endpoint)

    def lost(self, now: float) -> list[Endpoint]:
        """Where members were that are in view no longer, and not for too long."""
        self._refresh()
        since = {each: now if at is None else at for each, at in self._lost.items()}
        self._lost = {each: at for each, at in since.items() if now - at < _MISSED}
        return list(self._lost)

    def _refresh(self) -> None:
        view = self._circle.view
        if view.version == self._version:
            return
        self._version = view.version
        before = self._known
        self._known, self._owners = {}, {}
        for member in view.ids:
            place = self.place(member) if member != self._me else None
            if place is not None:
                self._known[member] = place.endpoint
                self._owners[place.endpoint] = member
                self._lost.pop(place.endpoint, None)
        for member, endpoint in before.items():
            lost = member not in self._known and endpoint not in self._owners
            if lost and self.reached(member, endpoint):
                self._lost.pop(endpoint, None)
                self._lost[endpoint] = None
        while len(self._lost) > _LOST:
            del self._lost[next(iter(self._lost))]
