"""What a play consists of: acts, with their sentences and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.demo.flights import Flight
from hustings.demo.watch import Watcher
from hustings.layers.detector.heartbeat import HeartbeatConfig

ONE = "one leader"
NOT_BEST = "not the best"  # one leader, but a better member lives
TWO = "two leaders"
NONE = "no agreement"

Sides = tuple[tuple[MemberId, ...], ...]


@dataclass(frozen=True, slots=True)
class Cue:
    """A sentence of the story, at its time; `kind` says where in the act it stands."""

    t: float
    text: str
    kind: str  # "opening", "suspicion", "trust", "end"


@dataclass(frozen=True, slots=True)
class Act:
    """What happened in one act, and what it cost."""

    name: str
    what: str  # what happened, in a few words
    began: float
    ended: float
    settled: float | None  # when the last member came to agree; None: they did not
    before: tuple[MemberId, ...]  # who led
    after: tuple[MemberId, ...]
    term: int | None  # of the leader, if there is one
    best: bool  # whether each leader is the best live member that it can reach
    messages: dict[str, int]  # sent, by kind, the detectors' apart
    heartbeats: int  # sent
    lost: int  # of the messages
    two_leaders: float  # for how long more than one live member led
    verdict: str
    cues: tuple[Cue, ...]

    @property
    def time(self) -> float | None:
        """From the cause until all agreed."""
        return None if self.settled is None else self.settled - self.began


@dataclass(frozen=True, slots=True)
class Play:
    """A finished run: its acts, and all that was seen of it."""

    kind: type[Election]
    members: int
    seed: int
    detector: HeartbeatConfig
    acts: tuple[Act, ...]
    watcher: Watcher
    flights: tuple[Flight, ...]  # of the protocol's messages, as they left
    beats: tuple[Flight, ...]  # of the detectors'
    cuts: tuple[tuple[float, Sides], ...]  # which sides there were since when; none: whole
