"""An election that only writes down what its detector tells it, and worlds full of them."""

from dataclasses import dataclass

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.layers.detector.heartbeat import HeartbeatConfig, HeartbeatMsg, WatchMsg
from hustings.layers.detector.layer import DetectorLayer, with_detector
from hustings.sim.network import Network
from hustings.sim.world import World


@dataclass(frozen=True)
class Note:
    """At an instant, a member was told of another."""

    at: float
    who: MemberId
    what: str
    about: MemberId


class Listener(Election):
    """Elects nobody; all listeners of one world write into one journal."""

    def __init__(self, journal: list[Note]) -> None:
        super().__init__(Config(), HighestId())
        self.journal = journal

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.journal.append(Note(ctx.now(), ctx.me.id, "suspect", member))

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.journal.append(Note(ctx.now(), ctx.me.id, "alive", member))


class Listening(World):
    """A world of listeners with ids 1..n, each with a detector; started, perhaps with a leader."""

    def __init__(
        self,
        n: int,
        config: HeartbeatConfig,
        network: Network | None = None,
        *,
        leader: MemberId | None = None,
        seed: int = 0,
        debug: bool = False,
    ) -> None:
        self.journal: list[Note] = []
        elect = with_detector(lambda: Listener(self.journal), config)
        super().__init__(elect, people(n), network=network, seed=seed, debug=debug)
        self.start()
        if leader is not None:
            for member in self.live():
                member.election.assume_leader(member, leader, 1)

    def beats(self, until: float) -> int:
        """Runs on; how many heartbeats that took."""
        return self.counted(HeartbeatMsg, until)

    def questions(self, until: float) -> int:
        """Runs on; how many requests to be watched that took."""
        return self.counted(WatchMsg, until)

    def counted(self, kind: type[Message], until: float) -> int:
        before = self.sent[kind]
        self.run(until=until)
        return self.sent[kind] - before

    def suspicions(self, about: MemberId) -> list[Note]:
        """All suspicions of one member, in the order of time."""
        return [note for note in self.journal if note.about == about and note.what == "suspect"]


def people(n: int) -> list[Candidate]:
    return [Candidate(member) for member in range(1, n + 1)]


def under_watch(world: World, member: MemberId) -> DetectorLayer:
    """The detector-and-election of a member."""
    election = world.members[member].election
    assert isinstance(election, DetectorLayer)
    return election
