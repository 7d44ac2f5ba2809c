"""What the tests of the papers' sentences share: a small group, played to its end and looked at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from hustings.core.choice import Choice, HighestId, MemberId
from hustings.core.election import Election
from hustings.core.messages import kind_of
from hustings.core.outcome import ELECTING, Elected, GaveUp, NoLeader, Outcome
from hustings.sim.checkers import Verdict, agreed_leader, all_checkers
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Happening
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.play import prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended, World

PROPERTIES = ("uniqueness", "agreement", "validity", "termination")

Ids = tuple[MemberId, ...]
Values = tuple[tuple[str, tuple[float, ...] | None], ...]


@dataclass(frozen=True)
class Declared:
    at: float
    member: MemberId
    outcome: Outcome


class Diary:
    """An observer that writes down what is declared."""

    def __init__(self) -> None:
        self.entries: list[Declared] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.entries.append(Declared(world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        """Only words count here."""


@dataclass(frozen=True)
class Played:
    """A run and what came of it."""

    world: World
    ended: Ended
    verdicts: dict[str, Verdict]
    diary: list[Declared]

    def sent(self, kind: str) -> int:
        return sum(count for each, count in self.world.sent.items() if kind_of(each) == kind)

    @property
    def kinds(self) -> dict[str, int]:
        return {kind_of(each): count for each, count in self.world.sent.items() if count}

    @property
    def messages(self) -> int:
        return sum(self.world.sent.values())

    @property
    def time(self) -> float:
        return max(self.world.last_arrival, self.world.last_declared)

    @property
    def leader(self) -> MemberId | None:
        return agreed_leader(self.world)

    @property
    def outcomes(self) -> dict[MemberId, Outcome | None]:
        return {member.id: member.outcome for member in self.world.live()}

    @property
    def sound(self) -> bool:
        """The lecture's safety and liveness; terms are not its business."""
        return all(self.verdicts[name] is Verdict.HOLDS for name in PROPERTIES)

    @property
    def elected(self) -> list[tuple[float, MemberId, MemberId]]:
        """When, by whom and whom, for everybody that was declared leader."""
        return [
            (entry.at, entry.member, entry.outcome.leader)
            for entry in self.diary
            if isinstance(entry.outcome, Elected)
        ]

    @property
    def claims(self) -> list[MemberId]:
        """Who ever declared itself, in this order."""
        return [member for _, member, leader in self.elected if leader == member]


def played(
    kind: type[Election],
    n: int,
    *,
    crashed: Ids = (),
    detectors: Ids = (),
    initiators: Ids = (),
    extra: tuple[Happening, ...] = (),
    choice: Choice | None = None,
    attributes: Values = (),
    network: Network | None = None,
    oracle: float | None = None,
    until: float | None = None,
    **settings: object,
) -> Played:
    """Initiators make it a group that starts; otherwise its leader is dead and detected."""
    choice = choice or HighestId()
    experiment = Experiment(
        kind,
        n,
        kind.Settings.parse(settings),
        choice=choice,
        attributes=attributes,
        network=network or Network(),
        scenario=Scenario(
            "start" if initiators else "leader-crash", crashed, detectors, initiators, extra
        ),
        oracle=oracle,
    )
    return finish(prepare(experiment, 0), choice, until)


def finish(world: World, choice: Choice, until: float | None = None) -> Played:
    """Let a world run and judge it."""
    checkers = all_checkers(choice)
    diary = Diary()
    world.watch(diary)
    for checker in checkers:
        world.watch(checker)
    ended = world.run(**({} if until is None else {"until": until}), max_events=2_000_000)
    verdicts = {checker.name: checker.judge(world, ended)[0] for checker in checkers}
    return Played(world, ended, verdicts, diary.entries)


def named(outcome: Outcome | None) -> bool:
    """Whether a member ended with a leader, or with a reason for having none."""
    match outcome:
        case Elected():
            return True
        case GaveUp(reason) | NoLeader(reason):
            return reason not in ("", ELECTING)
    return False


def several_ids(n: int) -> list[Ids]:
    """Every set of members that is not empty."""
    members = range(1, n + 1)
    return [ids for size in members for ids in combinations(members, size)]
