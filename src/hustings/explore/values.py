"""The values of an exploration: its limits, what it looks at, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hustings.core.choice import MemberId
from hustings.core.context import TimerKey
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.explore.locals import Input

LATE = -1  # a message that missed its time, and may come at any time or never
MAX_STATES = 100_000_000
MOST = 1_000  # ticks, crashes, ...


class Ending(Enum):
    """How a search ended."""

    EXHAUSTED = "exhausted"  # every schedule was tried, and none violates a law
    BROKEN = "broken"  # a schedule violates a law
    MAX_STATES = "max-states"  # the search reached the limit first
    UNJUDGED = "unjudged"  # every schedule was cut off by the time limit before it could be judged


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What is explored."""

    ticks: int = 8
    delay: int = 0
    crashes: int = 0
    losses: int = 0
    wipes: int = 0
    at_once: bool = False  # whether a member that crashes may restart in the same tick
    max_states: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("ticks", "delay", "crashes", "losses", "wipes"):
            value = getattr(self, name)
            if not 0 <= value <= MOST:
                raise BadInput(f"{name} must lie between 0 and {MOST:,}, not {value:,}")
        if not 1 <= self.max_states <= MAX_STATES:
            raise BadInput(
                f"max-states must lie between 1 and {MAX_STATES:,}, not {self.max_states:,}"
            )
        if self.wipes > self.crashes:
            raise BadInput("a disk is lost in a crash: wipes cannot exceed crashes")


@dataclass(frozen=True, slots=True)
class Laws:
    """What must hold."""

    leased: bool = False  # two members never lead at one time; later grants have larger tokens
    agreed: bool = False  # when nothing more can happen, all that are up hold one that is up


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened, in words."""

    time: float
    what: str
    said: tuple[str, ...] = ()  # the results


@dataclass(frozen=True, slots=True)
class SearchResult:
    """How a search ended, and how much it saw."""

    ending: Ending
    states: int
    transitions: int
    handlers: int  # calls of real handlers; later calls are looked up
    depth: int  # steps to the farthest state
    grants: int  # different leaders, with their tokens, that were met
    rests: int  # states in which nothing more can happen
    cut: int = 0  # states that the time limit ends, though more could happen
    why: str = ""  # which law is violated, and how
    steps: tuple[Step, ...] = ()  # a shortest way there


Progress = Callable[[int, int], None]  # called with the states met and those still to expand

# The whole group at one moment, as numbers of values that are kept once: the instant, the members'
# states, the messages under way (sorted), the crashes, losses and wipes left, the last grant.
State = tuple[int, tuple[int, ...], tuple[int, ...], int, int, int, int]


class HandlerFate(Enum):
    """What becomes of the member that handles an event."""

    LIVES = ""
    INSIDE = " and crashes before anything it sends leaves"
    INSIDE_BACK = " and crashes before anything it sends leaves, and restarts"
    INSIDE_WIPED = " and crashes before anything it sends leaves, and restarts with an empty disk"
    AFTER = " and crashes"
    AFTER_BACK = " and crashes, and restarts"
    AFTER_WIPED = " and crashes, and restarts with an empty disk"
    WIPED = " with an empty disk"  # when it restarts at a tick

    @property
    def words(self) -> str:
        """The text for a report."""
        return self.value

    @property
    def inside(self) -> bool:
        """Whether it crashes before its messages leave."""
        return self in (HandlerFate.INSIDE, HandlerFate.INSIDE_BACK, HandlerFate.INSIDE_WIPED)

    @property
    def returns(self) -> bool:
        """Whether it restarts at once."""
        return self in (
            HandlerFate.INSIDE_BACK,
            HandlerFate.INSIDE_WIPED,
            HandlerFate.AFTER_BACK,
            HandlerFate.AFTER_WIPED,
        )

    @property
    def wiped(self) -> bool:
        """Whether its disk is lost."""
        return self in (HandlerFate.INSIDE_WIPED, HandlerFate.AFTER_WIPED, HandlerFate.WIPED)


# An event: a word, a member's place or a message's number, a timer's key, and the fate of the
# member that handles it.
Label = tuple[str, int, TimerKey, HandlerFate]


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message under way; without a message, `to` is about to suspect `sender`."""

    sender: MemberId
    to: MemberId
    message: Message | None
    due: int  # the last tick at which it arrives

    @property
    def given(self) -> Input:
        """The input that its receiver gets."""
        if self.message is None:
            return Input("suspect", sender=self.sender)
        return Input("message", sender=self.sender, message=self.message)


@dataclass(frozen=True, slots=True)
class TokenSeen:
    """A member led with a token."""

    token: int
    member: MemberId
    incarnation: int


class Broken(Exception):
    """A law does not hold; the text says how."""
