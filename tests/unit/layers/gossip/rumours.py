"""An election that writes down what the stack below it delivers, and worlds full of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election, upon
from hustings.core.messages import Message, Role
from hustings.layers.gossip.layer import GossipConfig, GossipLayer, with_gossip
from hustings.layers.gossip.membership import Membership
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.member import SimContext, Views
from hustings.sim.network import Network
from hustings.sim.world import World
from tests.unit.layers.detector.listeners import people


class RumourMsg(Message, frozen=True, tag="RUMOUR"):
    """Something to tell everybody, or one member."""

    role: ClassVar[Role] = Role.ELECTION
    number: int


@dataclass(frozen=True)
class Note:
    """At an instant, a member heard of another, or got a rumour from it."""

    at: float
    who: MemberId
    what: str
    about: MemberId
    number: int = 0


class Gossip(Election):
    """Elects nobody; all of one world write into one journal. A call multicasts a new rumour."""

    messages = (RumourMsg,)

    def __init__(self, journal: list[Note]) -> None:
        super().__init__(Config(), HighestId())
        self.journal = journal
        self.told = 0

    def call(self, ctx: Context) -> None:
        self.told += 1
        ctx.multicast(RumourMsg(self.told))

    @upon(RumourMsg)
    def on_rumour(self, ctx: Context, sender: MemberId, message: RumourMsg) -> None:
        self.journal.append(Note(ctx.now(), ctx.me.id, "rumour", sender, message.number))

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.journal.append(Note(ctx.now(), ctx.me.id, "suspect", member))

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.journal.append(Note(ctx.now(), ctx.me.id, "alive", member))


class Town(World):
    """A world of gossips with ids 1..n; started, unless told otherwise."""

    def __init__(
        self,
        n: int,
        config: GossipConfig | None = None,
        *,
        loss: float = 0.0,
        seed: int = 0,
        network: Network | None = None,
        candidates: list[Candidate] | None = None,
        views: Views | None = None,
        debug: bool = False,
        start: bool = True,
    ) -> None:
        self.journal: list[Note] = []
        self.config = config or GossipConfig()
        if network is None:
            fate = Uncorrelated(loss) if loss else NoLoss()
            network = Network(loss=fate)
        super().__init__(
            with_gossip(lambda: Gossip(self.journal), self.config),
            candidates or people(n),
            seed=seed,
            network=network,
            views=views,
            debug=debug,
        )
        if start:
            self.start()

    def notes(self, what: str) -> list[Note]:
        """All notes of one kind, in the order of time."""
        return [note for note in self.journal if note.what == what]

    def stack(self, member: MemberId) -> GossipLayer:
        """The stack of a member."""
        election = self.members[member].election
        assert isinstance(election, GossipLayer)
        return election

    def buffered(self, member: MemberId) -> int:
        """How many multicasts a member holds."""
        multicast = self.stack(member).multicast
        assert multicast is not None
        return multicast.buffered

    def memberships(self) -> Iterator[Membership]:
        """Those of the live members."""
        for member in self.live():
            yield self.stack(member.id).membership

    def estimates(self) -> list[float]:
        """What the live members take for the size of the group."""
        return [one.view.estimate or 0.0 for one in self.memberships()]

    def all_know(self, expected: list[MemberId]) -> bool:
        """Whether every live member has exactly these in view."""
        return all(one.view.ids == expected for one in self.memberships())


class Scales:
    """Weighs everything that is sent."""

    def __init__(self) -> None:
        self.heaviest: dict[type[Message], int] = {}
        self._weigh = msgspec.msgpack.Encoder().encode

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        weight = len(self._weigh(message))
        self.heaviest[type(message)] = max(weight, self.heaviest.get(type(message), 0))
