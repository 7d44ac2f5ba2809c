"""A crowd: members of one group on this machine's loopback, all in one process and on one loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import hustings
from hustings.net.member import Member
from hustings.net.transport import Endpoint, Faults
from tests.net.kit.loops import throughout, until

GROUP = "crowd"
QUIET_S = 1.5  # longer than a member takes that may lead


class Crowd:
    """Opens members that find each other, and closes whatever a test leaves open."""

    def __init__(self, **common: Any) -> None:
        """`common` goes to every `join`. They find each other by seeds alone."""
        self.common = {"group": GROUP, "local": False, **common}
        self.members: list[Member] = []
        self._opened = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.members:
            await member.kill()

    async def add(self, name: str, **more: Any) -> Member:
        """One more member; unless told otherwise, all that are open are its seeds."""
        self._opened += 1
        settings = {
            "name": name,
            "seeds": [each.address for each in self.open()],
            "seed": self._opened,
            **self.common,
            **more,
        }
        group = settings.pop("group")
        member = await hustings.join(group, **settings).open()
        self.members.append(member)
        return member

    async def add_all(self, names: Iterable[str], **more: Any) -> list[Member]:
        """Several, one after the other."""
        return [await self.add(name, **more) for name in names]

    def open(self) -> list[Member]:
        """Those that have not been closed."""
        return [member for member in self.members if not member.closed]

    def named(self, name: str) -> Member:
        """The latest member of this name."""
        return next(each for each in reversed(self.members) if each.name == name)

    async def agreed(
        self, but: str = "", within: float = 10.0, among: Iterable[Member] | None = None
    ) -> Member:
        """Wait until all know one leader, which is one of them, knows it, and is not `but`."""
        crowd = self.open() if among is None else list(among)

        def found() -> Member | None:
            return one_leader(crowd, but)

        leader = await until(found, lambda: f"one leader; {standing(crowd)}", within)
        assert leader is not None
        return leader

    async def seated(self) -> Member:
        """Wait until all know one leader and it is past its probation: nobody unseats it now."""
        await until(
            lambda: any(
                each.is_leader and each.node.leadership.electors.incumbent == each.id
                for each in self.open()
            ),
            lambda: f"a leader that stays; {standing(self.open())}",
        )
        return await self.agreed()

    async def settled(self, lasting: float = 0.5, within: float = 20.0) -> Member:
        """Wait until all have known one leader for a while: after a cut it may change once more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while True:
            leader = await self.agreed(within=deadline - loop.time())
            until_then = loop.time() + lasting
            while one_leader(self.open()) is leader:
                if loop.time() >= until_then:
                    return leader
                await asyncio.sleep(0.005)

    async def known(self, count: int, within: float = 10.0) -> None:
        """Wait until everybody knows so many members."""
        await until(
            lambda: all(len(each.members()) == count for each in self.open()),
            lambda: f"{count} members known; {[len(each.members()) for each in self.open()]}",
            within,
        )


def one_leader(crowd: Iterable[Member], but: str = "") -> Member | None:
    """The member that all of a crowd hold for the only leader, itself too."""
    members = list(crowd)
    names = {None if each.leader is None else each.leader.name for each in members}
    terms = {each.term for each in members}
    if len(names) != 1 or len(terms) != 1 or None in names or but in names:
        return None
    leading = [each for each in members if each.is_leader]
    return leading[0] if len(leading) == 1 and leading[0].name in names else None


def standing(crowd: Iterable[Member]) -> str:
    """What everybody thinks, for a failed test's sentence."""
    return "; ".join(
        f"{each.name}: {each.leader.name if each.leader else each.state.reason!r} "
        f"term {each.term} of {len(each.members())}, {each.node.stack.state()}"
        for each in crowd
    )


def endpoint(member: Member) -> Endpoint:
    """Where a member listens."""
    return member.node.transport.endpoint


def faults(member: Member) -> Faults:
    """The switch at a member's port."""
    return member.node.transport.faults


def cut(here: Iterable[Member], there: Iterable[Member]) -> None:
    """Nothing passes between two parts of a crowd any more."""
    ours, theirs = list(here), list(there)
    for member in ours:
        faults(member).cut(map(endpoint, theirs))
    for member in theirs:
        faults(member).cut(map(endpoint, ours))


def heal(crowd: Iterable[Member]) -> None:
    """Undo all cuts."""
    for member in crowd:
        faults(member).heal()


def dropped(member: Member, reason: str) -> int:
    """How often a member refused something for this reason."""
    return member.metrics().drops[reason]


def note_of(member: Member, *words: str) -> str:
    """The note that has all of these words, if there is one."""
    return next((each for each in member.notes if all(word in each for word in words)), "")


async def gives(member: Member, why: str) -> None:
    """Wait until a member gives this reason."""
    await until(lambda: why in member.state.reason, lambda: f"{why!r} in {member.state.reason!r}")


async def leads_not(*members: Member) -> None:
    """None of them leads for longer than a member takes that may lead."""
    await throughout(QUIET_S, lambda: not any(each.is_leader for each in members), "one leads")
