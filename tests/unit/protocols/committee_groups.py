"""Groups that elect by committees, played to their ends in the simulator and looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import HighestId, MemberId, candidate
from hustings.protocols.committee.bits import Bits
from hustings.protocols.committee.election import Committee, CommitteeResult, cast
from hustings.protocols.committee.lockstep import Lockstep, Outbox, Program, Spoken
from hustings.protocols.committee.misbehaving import AdversaryScene, Traitor, Voice
from hustings.protocols.committee.network import CommitteeNetwork
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.world import Ended, World

T = TypeVar("T")


@dataclass(frozen=True)
class Played:
    """A run that came to rest."""

    world: World
    scene: AdversaryScene
    elections: dict[MemberId, Committee]

    @property
    def good(self) -> dict[MemberId, CommitteeResult]:
        return {
            member: election.result()
            for member, election in self.elections.items()
            if not self.scene.is_bad(member)
        }

    @property
    def network(self) -> CommitteeNetwork:
        return next(iter(self.elections.values())).network

    @property
    def chosen(self) -> set[MemberId | None]:
        """Whom good members saw elected at the root."""
        return {each.chosen for each in self.good.values() if each.in_root}

    @property
    def leader(self) -> MemberId | None:
        """The one whom all good members at the root saw elected, if they agree."""
        chosen = self.chosen
        return chosen.pop() if len(chosen) == 1 else None

    @property
    def informed(self) -> float:
        leader, good = self.leader, self.good
        return sum(each.believed == leader is not None for each in good.values()) / len(good)

    @property
    def leading(self) -> list[MemberId]:
        """Good members that take themselves for the leader."""
        return [member for member, each in self.good.items() if each.leads]

    @property
    def root_bad(self) -> float:
        sitting = [each for each, election in self.elections.items() if election.in_root]
        return sum(self.scene.is_bad(each) for each in sitting) / max(1, len(sitting))


def play(
    n: int,
    seed: int = 1,
    kind: type[Committee] = Committee,
    *,
    voice: Voice | None = None,
    bad: Iterable[MemberId] | None = None,
    debug: bool = False,
    **settings: object,
) -> Played:
    """One election of members 1 to n; `voice` and `bad` replace the adversary of the settings."""
    config = kind.Settings.parse({"N": n, **settings})
    assert isinstance(config, CommitteeConfig)
    ids = range(1, n + 1)
    make, scene = cast(config, HighestId(), ids, seed, kind)
    if bad is not None:
        chosen = AdversaryScene(bad, scene.rng, scene.roster)
        scene.__dict__.update(chosen.__dict__)
    if voice is not None:
        speaker = voice

        def spoken_for() -> Lockstep:
            return Traitor(kind(config, HighestId()), speaker, scene)

        make = spoken_for
    world = World(make, [candidate(each) for each in ids], seed=seed, debug=debug)
    world.start()
    assert world.run() is Ended.QUIESCENT
    elections = {}
    for member, election in scene.members.items():
        assert isinstance(election, Committee)
        elections[member] = election
    return Played(world, scene, elections)


def march(
    programs: Mapping[MemberId, Program[T]],
    lies: Callable[[MemberId, int, Spoken], Outbox] | None = None,
) -> dict[MemberId, T]:
    """Programs of all members in lock step, without a world: what each returns."""
    results: dict[MemberId, T] = {}
    running: dict[MemberId, Mapping[int, Spoken]] = {}
    for member, program in programs.items():
        try:
            running[member] = next(program)
        except StopIteration as end:
            results[member] = end.value
    while running:
        heard: dict[MemberId, dict[int, dict[MemberId, Bits]]] = {
            member: {channel: {} for channel in spoken} for member, spoken in running.items()
        }
        for member, spoken in running.items():
            for channel, mine in spoken.items():
                outbox = mine.outbox if lies is None else lies(member, channel, mine)
                for to, bits in outbox.items():
                    if channel in heard.get(to, {}):
                        heard[to][channel][member] = bits
        still: dict[MemberId, Mapping[int, Spoken]] = {}
        for member in running:
            try:
                still[member] = programs[member].send(heard[member])
            except StopIteration as end:
                results[member] = end.value
        running = still
    return results


class Babble:
    """Says anything of any length to anybody, in every stage."""

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        rng = scene.rng
        outbox = {}
        for to in range(-1, len(scene.members) + 3):
            length = (0, 1, 2, 5, 8, 40, 63)[rng.below(7)]
            outbox[to] = Bits(rng.bits() & (1 << length) - 1, length)
        return outbox
