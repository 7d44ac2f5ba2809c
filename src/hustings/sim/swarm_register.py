"""A resource that leaders write to, and what a stale write is.

Whoever leads by its own word writes now and then, and what it writes arrives late. Fenced, the
register refuses a token below the highest it has seen; that is all it knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from hustings.core.outcome import Elected
from hustings.core.streams import Stream
from hustings.sim.guarding import Grant, Holder
from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Write:
    """What a leader asks of the register."""

    holder: Holder
    token: int


@dataclass(slots=True)
class Register:
    """Executes what leaders send; `fenced`, it refuses a token below the highest seen."""

    fenced: bool = True
    highest: int = 0
    accepted: list[Write] = field(default_factory=list)
    refused: int = 0

    def arrive(self, write: Write) -> None:
        """A write gets here."""
        if self.fenced and write.token < self.highest:
            self.refused += 1
            return
        self.highest = max(self.highest, write.token)
        self.accepted.append(write)

    def complaint(self, grants: list[Grant], *, ordered: bool) -> str | None:
        """A write that was accepted and should not have been, if there is one.

        `ordered`: the list is in the order of granting, so a write of an older holder after one of
        a newer is stale. Otherwise the order is that of the tokens. Either way two holders that
        write with one token are one too many.
        """
        place = {(grant.token, grant.holder): number for number, grant in enumerate(grants)}
        first: dict[int, Holder] = {}
        newest = -1
        for write in self.accepted:
            holder = first.setdefault(write.token, write.holder)
            if holder != write.holder:
                return f"{_told(write)} and member {holder.member} wrote with one token"
            age = place.get((write.token, write.holder), -1) if ordered else write.token
            if age < newest:
                return f"{_told(write)} wrote after a newer holder"
            newest = age
        return None


def _told(write: Write) -> str:
    return f"member {write.holder.member} with token {write.token}"


def write_now_and_then(world: World, register: Register, stream: Stream, end: float) -> None:
    """Until `end`, whoever leads sends writes, of which many come late or very late."""
    at = 0.0
    while at < end:
        at += stream.uniform(0.5, 4.0)
        delay = stream.choice((0.0, 0.5, stream.uniform(0.0, 20.0)))
        world.at(at, partial(_write, world, register, delay))


def _write(world: World, register: Register, delay: float) -> None:
    for member in world.live():
        outcome = member.outcome
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            write = Write(Holder(member.id, member.incarnation), outcome.term)
            world.at(world.now + delay, partial(register.arrive, write))
