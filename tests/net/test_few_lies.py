"""A few lies: of any kind, in others' names, with likely and with extreme values. Groups heal.

One seed draws the lies of one group, in memory and on a virtual clock.
"""

from __future__ import annotations

import random
import time
import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import Message
from hustings.net.limits import Reason
from hustings.net.member import Member
from hustings.testing import Group
from tests.net.lies import STRANGER, liar, tell
from tests.net.test_absurd_numbers import IDS

NAMES = ("a", "b", "c")
SETUPS: dict[str, dict[str, Any]] = {
    "bully": {"protocol": "bully"},
    "ring": {"protocol": "ring"},
    "gossip multicast": {"protocol": "bully", "multicast": "gossip"},
    "bimodal multicast": {"protocol": "broadcast", "multicast": "bimodal"},
    "partial views": {
        "protocol": "probabilistic",
        "multicast": "gossip",
        "gossip_settings": {"view_size": 2},
    },
    "quorum": {"protocol": "le-s", "guard": "quorum://a,b,c?durable=no", "ttl": 2.0},
}


class Liar:
    """Draws what is said about one group."""

    def __init__(self, group: Group, seed: int) -> None:
        self.rng = random.Random(seed)
        self.members = [group.member(name) for name in NAMES]
        self.ids = [member.id for member in self.members]
        self.places = [each.node.stack.membership.circle.own.place for each in self.members]

    def number(self) -> int:
        term, now = self.members[0].term, int(time.time() * 1000)
        life = self.rng.choice(self.members).node.filter.wire.incarnation
        likely = [0, 1, 2, 3, term, term + 1, term + 9, life, life + 1]
        extreme = [65_535, now - 33 * 86_400_000, now, now * 1024, life + 10**9, 2**53, 2**62]
        return self.rng.choice(likely + extreme)

    def made(self, kind: Any, name: str = "") -> Any:
        """Any value of a type."""
        rng = self.rng
        plain: dict[Any, list[Any]] = {
            float: [0.0, -1.0, 0.5, 3600.0, 1e300],
            bool: [True, False],
            str: ["", "x", *self.places],
            bytes: [b""],
            type(None): [None],
        }
        if kind in plain:
            return rng.choice(plain[kind])
        if kind is int:
            return rng.choice([*self.ids, STRANGER]) if name in IDS else self.number()
        if kind is Candidate:
            told = [(), (("~standing", 1.0),), (("~standing", -2.0),), (("~standing", -1e6),)]
            return Candidate(rng.choice([*self.ids, STRANGER]), rng.choice(told))
        origin, parts = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.made(parts[0], name)
        if origin in (Union, types.UnionType):
            return self.made(rng.choice(parts), name)
        if origin is tuple and parts[-1] is ...:
            return tuple(self.made(parts[0], name) for _ in range(rng.randrange(3)))
        if origin is tuple:
            return tuple(self.made(part, "id" if at else "") for at, part in enumerate(parts))
        hints = get_type_hints(kind, include_extras=True)
        return kind(**{each: self.made(hints[each], each) for each in kind.__struct_fields__})

    def lie(self, victim: Member) -> Message:
        """Any message; what a multicast carries, and whom gossip speaks of, is likely."""
        stack = victim.node.stack
        message: Any = self.made(self.rng.choice(victim.node.filter.wire.codec.kinds))
        if hasattr(message, "body"):
            carried = self.made(self.rng.choice(list(stack.inner.handlers)))
            message = msgspec.structs.replace(message, body=stack.codec.encode(carried))
        if hasattr(message, "entries"):
            entries = (stack.membership.circle.entry(who) for who in self.ids if who != victim.id)
            told = tuple(self.moved(entry) for entry in entries if entry is not None)
            message = msgspec.structs.replace(message, entries=told)
        assert isinstance(message, Message)
        return message

    def moved(self, entry: Any) -> Any:
        later, higher = self.rng.choice([0, 1, 10**9]), self.rng.choice([0, 5, 10**6])
        return msgspec.structs.replace(
            entry,
            incarnation=entry.incarnation + later,
            counter=entry.counter + higher,
            place=self.rng.choice([entry.place, *self.places]),
        )


def whole(group: Group) -> bool:
    return all(len(group.member(name).members()) == len(NAMES) for name in NAMES)


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("seed", range(8))
def test_a_few_lies_to_each_member_end_nothing_for_good(setup: str, seed: int) -> None:
    with Group(seed=seed, **SETUPS[setup]) as group:
        for name in NAMES:
            group.join(name)
        group.settle(steady=1.0)
        liars = Liar(group, seed)
        for victim in liars.members:
            for _ in range(liars.rng.choice([1, 2, 3])):
                other = liars.rng.choice([each for each in liars.members if each is not victim])
                wire = liar(other, liars.rng.choice([other.id, other.id, STRANGER]))
                frame = wire.write(liars.lie(victim), liars.rng.choice([None, victim.id]))
                if not isinstance(frame, Reason):
                    tell(group, victim, frame.data)
        assert group.settle(steady=2.0, within=120) in NAMES
        assert not any(group.member(name).closed for name in NAMES)
        if not whole(group):
            group.advance(60.0)
        assert whole(group)
