"""A member seen at its detector: what the detector's tests share."""

from __future__ import annotations

from hustings.core.choice import Candidate, MemberId
from hustings.core.messages import Message
from hustings.layers.detector.heartbeat import HeartbeatConfig, HeartbeatMsg
from hustings.layers.detector.layer import DetectorLayer, with_detector
from hustings.testing.effects import Effect, Send
from hustings.testing.recorded import RecordedMember, view_of
from tests.unit.layers.detector.listeners import Listener, Note, people


class Watcher(RecordedMember):
    """Member 2 of n, with T = 1 and D = 0.25, whose election only takes notes."""

    def __init__(self, pattern: str = "all-to-all", n: int = 4, **settings: object) -> None:
        self.journal: list[Note] = []
        config = HeartbeatConfig.parse(
            {"T": 1.0, "D": 0.25, "delta": 0.25, "pattern": pattern, **settings}
        )
        elect = with_detector(lambda: Listener(self.journal), config)
        super().__init__(elect, Candidate(2), view_of(people(n)))
        self.first_effects = self.start()

    @property
    def monitored(self) -> DetectorLayer:
        assert isinstance(self.election, DetectorLayer)
        return self.election

    @property
    def suspects(self) -> list[MemberId]:
        return sorted(self.monitored.detector.suspects)

    def beat(self, sender: MemberId, number: int, incarnation: int = 1) -> list[Effect]:
        return self.deliver(sender, HeartbeatMsg(incarnation, number))

    def told(self) -> list[tuple[str, MemberId]]:
        """What the election was told since the last time."""
        told = [(note.what, note.about) for note in self.journal]
        self.journal.clear()
        return told


def sends(effects: list[Effect], kind: type[Message] = HeartbeatMsg) -> list[MemberId]:
    return [e.to for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def silence(member: MemberId) -> tuple[str, int]:
    return ("detector", member)
