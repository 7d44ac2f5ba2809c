"""What the live demo is asked for, how far it has come, and the result of each act."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from hustings.core.errors import BadInput
from hustings.demo.live.measuring import Board
from hustings.demo.live.member_process import MemberPlan, joining

FEWEST, MOST = 3, 100
NAMES = ("start", "kill", "restart", "pause", "resume", "cut", "heal", "transfer")
LIMIT = 15.0  # seconds for an act, ...
LIMIT_EACH = 0.1  # ... and this much more for each member


@dataclass(frozen=True, slots=True)
class LivePlan:
    """The settings of a show. `BadInput` if they are impossible."""

    members: int
    protocol: str
    seconds: float
    seed: int
    preempt: bool = False  # a better member displaces the leader

    def __post_init__(self) -> None:
        if not FEWEST <= self.members <= MOST:
            raise BadInput(f"members must lie between {FEWEST} and {MOST}, not {self.members}")
        joining(self.part(1, "demo"))

    def part(self, number: int, group: str, seeds: tuple[str, ...] = ()) -> MemberPlan:
        """The settings of the member with this number."""
        width = len(str(self.members))
        name = f"m{number:0{width}}"
        return MemberPlan(group, name, number, self.protocol, self.seed, seeds, self.preempt)

    @property
    def limit(self) -> float:
        """Seconds that an act may take."""
        return LIMIT + LIMIT_EACH * self.members


@dataclass(frozen=True, slots=True)
class LiveAct:
    """One act, after its end."""

    name: str
    what: str  # in a few words
    began: float  # seconds since the demo began
    noticed: float | None  # seconds until the first member took another one for the leader, or none
    agreed: float | None  # seconds until all agreed; None: they did not in time
    before: tuple[str, ...]  # who led before
    after: tuple[str, ...]
    term: int
    members: int  # members that had to agree
    failure: str = ""


@dataclass(slots=True)
class LiveScene:
    """How far the demo has come; an audience may look at it."""

    plan: LivePlan
    board: Board
    group: str
    act: int = 0  # the index of the present act in NAMES
    elapsed: float = 0.0
    sentence: str = ""
    acts: list[LiveAct] = field(default_factory=list)
    at_rest: list[float] = field(default_factory=list)  # messages per second of a member
    unasked: int = 0  # changes of leader between two acts, though nothing was done
    failure: str = ""  # why the demo ended early, or a wait that failed

    @property
    def quiet_rate(self) -> float | None:
        """Messages that a member sends in a second while nothing happens."""
        return median(self.at_rest) if self.at_rest else None

    @property
    def fine(self) -> bool:
        """Whether all acts were played, and no wait failed."""
        played = len(self.acts) == len(NAMES) and all(act.agreed is not None for act in self.acts)
        return played and not self.failure


class Audience(Protocol):
    """What watches the demo."""

    def hear(self, scene: LiveScene) -> None:
        """There is a new sentence."""

    def look(self, scene: LiveScene) -> None:
        """A good time to look; called often."""
