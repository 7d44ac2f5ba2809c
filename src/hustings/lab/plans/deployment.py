"""A configuration, deployed in an environment on the virtual clock: real members, drawn by a seed.

Members have the layers of `hustings.join`, sealed frames, and state directories where they vote.
Their number and their sites are the environment's. Names end differently for each seed, because a
name decides on a rank: over many seeds the best member stands at every site. An engine is a guard
in memory, as far away as the site at which it runs; outages of engines are not played.

Candidates that are compared get equal seeds: then links, pauses and deaths have the same random
numbers in all of them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.guard.base import Guard, Unreachable
from hustings.guard.memory import MemoryGuard, Register, register_of
from hustings.guard.quorum import SCHEME as QUORUM
from hustings.lab.plans.configuration import Configuration
from hustings.net.keys import Key
from hustings.net.logs import LOGGER
from hustings.sim.environment import Environment
from hustings.testing import AsyncGroup, Group
from hustings.testing.surroundings import LinkLaws

T = TypeVar("T")

GROUP = "jobs"
MOST_MEMBERS = 1000  # on the virtual clock
MOST_SECONDS = 7 * 86_400.0  # of virtual time, in one run of its clock
MOST_CALLBACKS = 2_000_000_000
RESENT = 0.2  # seconds until a lost question to an engine is sent again, as TCP does
MOST_RESENT = 5
ENGINE_TIMEOUT = 2.0  # seconds
_NUMBERED = re.compile(r"\bm([1-9][0-9]*)\b")


class Deployment:
    """One group, from its start to its end."""

    group: Group

    def __init__(
        self,
        configuration: Configuration,
        environment: Environment,
        seed: int,
        members: int = 0,
        *,
        durable: bool = True,
    ) -> None:
        """`members` counts if the environment leaves their number open.

        Voters that are not durable keep nothing, as in a group whose voters never restart.
        """
        self.configuration = configuration
        self.environment = environment
        self.seed = seed
        self.members = environment.members or members
        check_size(configuration, self.members)
        self._tag = f"{derive(seed, 'names') % 65_536:04x}"
        self._durable = durable and configuration.durable
        self._folder: Path | None = None
        self._guards: list[DistantGuard] = []
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_silence())
            if self.configuration.voters and self._durable:
                folder = stack.enter_context(TemporaryDirectory(prefix="hustings-plan-"))
                self._folder = Path(folder)
            self.group = stack.enter_context(
                Group(
                    seed=self.seed,
                    group=GROUP,
                    # Crashes and outages are played at moments that the caller chooses.
                    environment=replace(self.environment, crashes=None, outages=None),
                    key=Key(derive(self.seed, "key").to_bytes(8, "big") * 4),
                    insecure=False,
                    most_seconds=MOST_SECONDS,
                    most_callbacks=MOST_CALLBACKS,
                    **self._options(),
                )
            )
            self._held = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.__exit__(kind, error, trace)

    def _options(self) -> dict[str, Any]:
        """Options for all members."""
        options = self.configuration.join_options()
        if self.configuration.guard == QUORUM:
            url = self.configuration.url(durable=self._durable)
            options["guard"] = _NUMBERED.sub(lambda found: self.name(int(found[1])), url)
        elif self.configuration.guard is not None:
            del options["guard"]  # each member has another way to it
        return options

    def _options_of(self, number: int) -> dict[str, Any]:
        """Options for one member."""
        guard = self.configuration.guard
        if guard is None:
            return {}
        if guard != QUORUM:
            return {"guard": partial(self._engine, number)}
        if self._folder is not None and number in self.configuration.voters:
            return {"state": self._folder / self.name(number)}
        return {}

    def _engine(self, number: int, group: str) -> Guard:
        """The connection of one member to the engine."""
        laws = LinkLaws(self.environment)
        seed = derive(self.seed, "engine", number)
        register = partial(register_of, "engine", group)
        guard = DistantGuard(register, laws, seed, number, self.place)
        self._guards.append(guard)
        return guard

    @property
    def place(self) -> int:
        """The number of a member at the site where the engine runs."""
        sites, name = self.environment.sites, self.configuration.guard_site
        if sites is None or not name:
            return 1
        if name not in sites.names:
            raise BadInput(f"the engine is to run at site {name!r}, which the environment lacks")
        return 1 + sum(sites.sizes[: sites.names.index(name)])

    def reseed(self, seed: int) -> None:
        """From now on the environment has other random numbers; the past stays as it was."""
        self.inside.reseed(seed)
        for place, guard in enumerate(self._guards):
            guard.stream = Stream(derive(seed, "engine", place))

    @property
    def lease(self) -> float | None:
        """Seconds for which the guard grants the leadership; None without a guard."""
        lease = self.configuration.configured().lease
        return None if lease is None else lease.asked

    # Members

    @property
    def inside(self) -> AsyncGroup:
        """The group, for coroutines on its clock."""
        return self.group.inside

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the group's clock."""
        return self.group.run(work)

    def name(self, number: int) -> str:
        """The name of a member, by its number."""
        return f"m{number}-{self._tag}"

    def number(self, name: str) -> int:
        """The number of a member, by its name."""
        return int(name[1 : name.index("-")])

    def site(self, number: int) -> Sequence[int]:
        """The numbers of all members at the site of this one; of all, if there are no sites."""
        sites = self.environment.sites
        everybody = range(1, self.members + 1)
        if sites is None:
            return everybody
        return [other for other in everybody if sites.of(other) == sites.of(number)]

    async def join(self) -> None:
        """All members come together."""
        numbers = range(1, self.members + 1)
        await asyncio.gather(
            *(self.inside.join(self.name(each), **self._options_of(each)) for each in numbers)
        )


@contextmanager
def _silence() -> Iterator[None]:
    """Members on the virtual clock log nothing: what they do is read from their history."""
    before = LOGGER.level
    LOGGER.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        LOGGER.setLevel(before)


def check_size(configuration: Configuration, members: int) -> None:
    """Refuse a group that cannot be played, or whose voters are not in it."""
    if not 2 <= members <= MOST_MEMBERS:
        raise BadInput(
            f"a group on the virtual clock has from 2 to {MOST_MEMBERS} members, not {members}"
        )
    if configuration.voters and max(configuration.voters) > members:
        raise BadInput(f"member {max(configuration.voters)} is to vote, and there are {members}")


class DistantGuard(MemoryGuard):
    """A guard in memory, with a way to it: the link between two members, over TCP."""

    def __init__(
        self, register: Callable[[], Register], laws: LinkLaws, seed: int, here: int, there: int
    ) -> None:
        super().__init__(register, timeout=ENGINE_TIMEOUT)
        self._laws = laws
        self._here = here
        self._there = there
        self.stream = Stream(seed)

    async def _ask(self, question: Callable[[], T]) -> T:
        out = self._way(self._here, self._there)
        if out >= self.timeout:
            await asyncio.sleep(self.timeout)
            raise Unreachable("the question to the engine was lost")
        await asyncio.sleep(out)
        answer = await super()._ask(question)
        back = self._way(self._there, self._here)
        await asyncio.sleep(min(back, self.timeout - out))
        if out + back >= self.timeout:
            raise Unreachable("the answer of the engine was lost")
        return answer

    def _way(self, sender: int, receiver: int) -> float:
        """Seconds until it gets through; what is lost is sent again, each time later."""
        now, waited, again = 0.0, 0.0, RESENT
        for _ in range(MOST_RESENT):
            if not self._laws.lost(self.stream, now, sender, receiver):
                return waited + self._laws.way(self.stream, now, sender, receiver)
            waited += again
            again *= 2.0
        return self.timeout
