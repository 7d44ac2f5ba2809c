"""A group of processes whose members are replaced, one by one, by those of another release."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.net.kit.plain import Plain, Plains, overlapping
from tests.net.kit.ports import free_address
from tests.net.kit.releases import Release

_CALM = 0.3  # seconds for which the others agree before a new member starts
WAITS = "nobody leads here until members of another wire version have ended"


class Refused(Exception):
    """A member was not let into the group, for the reason that is the text."""


class Rollout:
    """A group whose members are replaced one by one, at addresses that stay."""

    def __init__(self, plains: Plains, size: int, seeded: bool) -> None:
        self._plains = plains
        self._addresses = [free_address() for _ in range(size)] if seeded else [None] * size
        self.members: dict[int, Plain] = {}

    def start(self, which: Release, *places: int, **more: Any) -> list[Plain]:
        """Members of a release at these places."""
        made = self.prepare(which, *places, **more)
        for each in made:
            each.go()
        return made

    def prepare(self, which: Release, *places: int, **more: Any) -> list[Plain]:
        """The same, which have not joined yet."""
        environment = {"PYTHONPATH": str(which.place)}
        made = []
        for place in places:
            options: dict[str, Any] = {"name": f"{place}-{which.name}", **more}
            if (address := self._addresses[place]) is not None:
                options |= {"bind": address, "seeds": self._addresses, "local": False}
            made += self._plains.prepare(environment=environment, **options)
            self.members[place] = made[-1]
        return made

    def agreed(self) -> Plain:
        return self._plains.agreed(list(self.members.values()))

    def steady(self, among: list[Plain] | None = None, lasting: float = 1.0) -> float:
        """Wait until these members have agreed for so long, and return since when."""
        members = list(self.members.values()) if among is None else among

        def latest() -> float:
            self._plains.agreed(members)
            return float(max(each.states[-1]["at"] for each in members))

        self._plains.wait(lambda: time.monotonic() > latest() + lasting, "nothing changes")
        return latest()

    def upgrade(
        self,
        which: Release,
        leader_first: bool,
        end: Callable[[Plain], None],
        look: Callable[[Plain, list[Plain]], None] = lambda new, left: None,
    ) -> bool:
        """Replace each member by one of this release, the leader of that moment first or last.

        The others have agreed on a leader before the new member starts. Otherwise a better member
        that starts while they elect may lead at once, in the same release, too.

        Returns whether the members of both releases were one group. If not, the new ones have said
        that they wait. `look` gets each new member and those that are left of the old release.
        """
        old, new, bridged = dict(self.members), list[Plain](), True
        while old:
            led = self._plains.agreed([*old.values(), *(new if bridged else [])])
            others = [place for place, each in old.items() if each is not led]
            own = [place for place, each in old.items() if each is led]
            place = own[0] if own and (leader_first or not others) else others[0]
            end(old.pop(place))
            if rest := [*old.values(), *(new if bridged else [])]:
                self.steady(rest, _CALM)
            new += self.start(which, place)
            if old:
                bridged = self._joins(new[-1])
                look(new[-1], list(old.values()))
        self.agreed()
        return bridged

    def _joins(self, new: Plain) -> bool:
        def waits() -> bool:
            return any(WAITS in note for note in new.notes)

        self._plains.wait(lambda: new.leader or new.refused or waits(), "it joins or waits")
        if new.refused:
            raise Refused(new.refused)
        return not waits()

    @property
    def leaderless(self) -> float:
        """The longest time without a leader between the first leadership and the last."""
        spans = sorted(span for each in self._plains.all for span in each.led())
        ends = [max(end for _, end in spans[: place + 1]) for place in range(len(spans))]
        gaps = [start - end for end, (start, _) in zip(ends, spans[1:], strict=False)]
        return max([0.0, *gaps])

    def story(self) -> str:
        """What all members have said, in order."""
        said = [
            (each["at"], member.name, each) for member in self._plains.all for each in member.said
        ]
        return "\n".join(
            f"{at:.4f} {name} {each}" for at, name, each in sorted(said, key=lambda x: x[0])
        )

    def together(self, since: float = 0.0) -> list[tuple[str | None, str | None]]:
        """Pairs of members that led at one moment since this time."""
        return overlapping(self._plains.all, since)
