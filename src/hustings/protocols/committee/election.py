"""Election by committees: a leader for a large group, some of whose members are Byzantine.

Model      Synchronous rounds, messages between any two members, whose sender is known. A static
           adversary has corrupted fewer than a third. It sees everything, sends last in every
           round, and sends different words to different members. No signatures.
Idea       Members sit in small public leaves. The leaves under a node elect a few of their members
           by lightest bin. These and the committees of neighbouring nodes elect fewer, and so on up
           to the root, where the rest elects one. The result goes down the same tree.
Invariant  If a node is honest, all good participants know the same participants and the same
           result. A broken node affects only those below it, and the bad share that it adds above.
Cost       Measured: `bits` and `rounds` of each member. The number of rounds follows from public
           numbers alone, so all members stay in step; a member with nothing to do waits.
Guarantee  Advisory. A good leader with a probability that depends on the bad share at the root. If
           the root is honest, all good members with an honest way up from most of their leaves know
           the same leader, and no other good member takes itself for it.
Paper      Scalable Leader Election, section 5: LEADER-ELECTION, steps 1 to 9.

The paper leaves some points open and has some errors. The decisions here:
- Silence (step 7): a member falls silent with more than tau committees of one layer, not 8 (see
  `Network.tau`). A silent member still listens and passes word down; it only elects no more.
- If a member notices that more than t of the participants are silent, the election is void: it
  elects no member. With fewer than a third of bad and silent members that never happens. With more
  no result would be reliable.
- Participants are distinct members: two seats give one voice. (HEAVYWEIGHT meets c1 L^13 seats, not
  L^10 as in the paper; it is the sum over all nodes of the last layer.)
- No member is added to a light bin (see `bins`). If all sit in one bin by chance, the first by id
  remain, as many as are allowed.
- After the halvings of an endgame the remaining members play alone and tell the other participants.
- A member that took part at the root believes what it saw there. All others take the plurality over
  their leaves (step 8).
- Step 9: only a member that believes that it leads asks (`conjunction`). If every member asks,
  as printed, a member takes itself for the leader if by chance it asks enough bad ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.outcome import Guarantee
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.adversary import budget, parse_adversary
from hustings.protocols.committee.agreement import Seat, broadcast_rounds, tolerated
from hustings.protocols.committee.bins import halving, one_shot, padded
from hustings.protocols.committee.bits import Bits
from hustings.protocols.committee.endgame import leader_of, leader_rounds
from hustings.protocols.committee.lockstep import (
    Lockstep,
    Outbox,
    Program,
    Script,
    Spoken,
    Stage,
    to_all,
    together,
)
from hustings.protocols.committee.misbehaving import AdversaryScene, infiltrated
from hustings.protocols.committee.network import CommitteeNetwork, CommitteeNode, lay_out
from hustings.protocols.committee.profiles import Knobs
from hustings.protocols.committee.roster import distinct
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of, too_large
from hustings.protocols.committee.tree import (
    MARK,
    Book,
    ListCodec,
    Lists,
    Members,
    Value,
    learn,
    plurality,
    say,
    send_down,
    to_monitors,
)

NOBODY_ELECTED = "the root elected nobody"
NO_WORD = "no word of a leader came down"
NOT_CONFIRMED = "elected, but most of those asked did not confirm it"


class CommitteeResult(msgspec.Struct, frozen=True):
    """What a member came out with; studies read it."""

    believed: MemberId | None  # the member that it takes for elected
    leads: bool  # whether it takes itself for the leader
    in_root: bool  # whether it took part at the root
    chosen: MemberId | None  # the member that the root elected, as a participant saw it
    silenced: int  # the layer on which it fell silent; 0: never
    seats: tuple[int, ...]  # in how many committees of each layer it sat, leaves first


# Scripts of one node


def guarded(
    script: Script[Members], voters: Members, me: MemberId, hushed: bool
) -> Script[Members]:
    """Play a part in an election, silent if `hushed`; none is elected if too many are silent."""
    enough = len(voters) - tolerated(len(voters))
    void = False
    try:
        spoken = next(script)
        while True:
            heard = yield Spoken(spoken.stage, {}) if hushed else spoken
            stage = spoken.stage
            if stage.kind == "vote" and len(stage.members) == len(voters):
                present = sum(each in heard for each in voters if each != me) + (not hushed)
                void = void or present < enough
            spoken = script.send(heard)
    except StopIteration as end:
        return () if void else end.value


def subcommittee(
    seat: Seat, shape: tuple[int, int, int], knobs: Knobs, most: int, rng: Stream
) -> Script[Members]:
    """ELECT-SUBCOMMITTEE: elect at most `most` of the participants."""
    times = shape[2]
    if knobs.bins == "halving":
        chosen = yield from halving(seat, times, rng)
    else:
        chosen = yield from one_shot(seat, 1 << times, rng)
    if knobs.padding:
        chosen = padded(chosen, seat.members, most)
    return tuple(sorted(chosen[:most]))


def subcommittee_rounds(node: CommitteeNode, shape: tuple[int, int, int], knobs: Knobs) -> int:
    """Return the most rounds that an election of this node takes."""
    times = shape[2] if knobs.bins == "halving" else 1
    return times * _most_rounds(node.voters)


@lru_cache(maxsize=64)
def root_rounds(voters: int, knobs: Knobs) -> int:
    """Return the most rounds that the root takes."""
    return max(
        leader_rounds(
            Seat(0, tuple(range(k))),
            knobs.endgame,
            depth=knobs.depth,
            r_end=knobs.r_end,
            apart=True,
        )
        for k in range(1, voters + 1)
    )


@lru_cache(maxsize=64)
def _most_rounds(voters: int) -> int:
    return max(broadcast_rounds(k) for k in range(1, voters + 1))


class Committee(Lockstep):
    """A member of a group that elects by committees."""

    __slots__ = (
        "_book",
        "_config",
        "_me",
        "_network",
        "believed",
        "chosen",
        "in_root",
        "leads",
        "nobody",
        "silenced",
    )

    about = About(
        name="committee",
        family="committee",
        paper="King, Saia, Sanwalani, Vee 2006",
        idea="leaves elect committees, these elect smaller ones, and so on to one leader",
        model="synchronous rounds; fewer than a third of the members are Byzantine, in concert",
        guarantee=Guarantee.ADVISORY,
        cost="a share of the group's square that falls with its size; no signatures",
        promises="a good leader with a probability that falls with b; nearly all know the same one",
    )
    Settings = CommitteeConfig

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        if not isinstance(config, CommitteeConfig):
            raise ProtocolBug("a committee needs its own settings")
        self._config = config
        self._me: MemberId = 0
        self._network: CommitteeNetwork | None = None
        self._book: Book | None = None
        self.believed: MemberId | None = None
        self.chosen: MemberId | None = None
        self.in_root = False
        self.leads = False
        self.nobody = False  # word came that no member was elected
        self.silenced = 0

    # For others to read

    @property
    def network(self) -> CommitteeNetwork:
        """Return the network, once the election has begun."""
        assert self._network is not None
        return self._network

    @property
    def book(self) -> Book:
        """Return what this member knows of the committees."""
        assert self._book is not None
        return self._book

    def result(self) -> CommitteeResult:
        """Return what this member came out with."""
        seats: tuple[int, ...] = ()
        if self._book is not None:
            seats = tuple(len(self.book.seats(layer)) for layer in range(self.network.top + 1))
        return CommitteeResult(
            self.believed, self.leads, self.in_root, self.chosen, self.silenced, seats
        )

    # The election

    def script(self, ctx: Context) -> Program[object]:
        ids = tuple(ctx.view.ids)
        refusal = too_large(self._config, len(ids))
        if refusal is not None:
            raise BadInput(refusal)
        self._me = ctx.me.id
        self._network = lay_out(ids, knobs_of(self._config, len(ids)))
        self._book = Book(self._network, self._me)
        return self.election(ctx.rng)

    def election(self, rng: Stream) -> Program[object]:
        """Run LEADER-ELECTION, from the first layer to the last question."""
        yield from self.climb(rng)
        chosen = yield from self.elect_root(rng)
        yield from self.take_word(chosen)
        yield from self.confirm(rng)
        return None

    def climb(self, rng: Stream) -> Program[None]:
        """Run step 1: one layer after the other."""
        for layer in range(1, self.network.top + 1):
            yield from self.elect_layer(layer, rng)

    def take_word(self, chosen: Value | None) -> Program[None]:
        """Run step 8: set the member that this one takes for elected."""
        if chosen:
            self.chosen = chosen[0]
        word = yield from self.inform(chosen, Lists(self.network, 1))
        self.nobody = word == ()
        self.believed = word[0] if word else None

    def elect_layer(self, layer: int, rng: Stream) -> Program[None]:
        """Run steps 2 to 7: elect a layer, and tell the members that must know its committees."""
        network, book, knobs = self.network, self.book, self.network.knobs
        shape = knobs.layers[layer - 1]
        scripts = {}
        for node in network.layers[layer]:
            voters = self.voters(node)
            if self._me in voters:
                seat = Seat(self._me, voters, node.index)
                part = subcommittee(seat, shape, knobs, node.most, rng)
                scripts[node.index] = guarded(part, voters, self._me, self.hushed)
        rounds = max(subcommittee_rounds(node, shape, knobs) for node in network.layers[layer])
        elected = yield from together(scripts, rounds)
        held: dict[tuple[int, int], Value] = {}
        for index, members in elected.items():
            book.note(layer, index, members)
            for below in network.layers[layer][index].below:
                if self._me in book.committee(layer - 1, below):
                    held[index, below] = members
        if not self.silenced and len(book.seats(layer)) > network.tau(layer):
            self.silenced = layer
        most = max(node.most for node in network.layers[layer])
        targets = to_monitors(network, layer)
        held = yield from send_down(book, layer - 1, held, targets, Lists(network, most))
        yield from learn(book, layer, held, rng)

    def elect_root(self, rng: Stream) -> Program[Value | None]:
        """Run step 5 and return the root's result; None for members that take no part."""
        voters = self.voters(self.network.root)
        scripts = {}
        if self._me in voters:
            self.in_root = True
            part = self.at_root(Seat(self._me, voters), rng)
            scripts[0] = guarded(part, voters, self._me, self.hushed)
        results = yield from together(scripts, self.root_rounds())
        return results.get(0)

    def at_root(self, seat: Seat, rng: Stream) -> Script[Value]:
        """Run the part of the members that have reached the root."""
        knobs = self.network.knobs
        return leader_of(seat, knobs.endgame, rng, depth=knobs.depth, r_end=knobs.r_end, apart=True)

    def root_rounds(self) -> int:
        """Return the most rounds that the root takes."""
        return root_rounds(self.network.root.voters, self.network.knobs)

    @property
    def hushed(self) -> bool:
        """Whether this member elects no more; it stays active if an adversary controls it."""
        return bool(self.silenced) and not self.mute

    def voters(self, node: CommitteeNode) -> Members:
        """Return the known participants in a node's election; none if this member has no part."""
        layer = node.layer - 1
        mine = self.book.seats(layer)
        if not any(below in mine for below in node.below):
            return ()
        return distinct(self.book.committee(layer, below) for below in node.below)

    def inform(self, said: Value | None, codec: ListCodec) -> Program[Value | None]:
        """Run steps 6 and 8: send the root's word down to all, and return this member's reading."""
        network, book, top = self.network, self.book, self.network.top
        held: dict[tuple[int, int], Value] = {}
        if said is not None:
            held = {(0, index): said for index in book.seats(top)}
        targets = {(0, node.index): node.leaves for node in network.layers[top]}
        heard = yield from send_down(book, top, held, targets, codec)
        word = plurality(heard.get((0, leaf)) for leaf in book.seats(0))
        if network.knobs.single:
            word = yield from self._tell_outsiders(said, codec)
        return word if said is None else said

    def _tell_outsiders(self, said: Value | None, codec: ListCodec) -> Program[Value | None]:
        """Tell all other members: a public committee has no tree, so it does this itself."""
        committee, everybody = self.network.roster.leaves[0], self.network.roster.members
        outbox: Outbox = {}
        if said is not None:
            others = [each for each in everybody if each not in committee]
            outbox = to_all(others, self._me, codec.write(said))
        heard = yield from together({0: say(Stage("down", members=committee), outbox)}, 1)
        return self.book.hears(heard[0], committee, None, codec)

    def confirm(self, rng: Stream) -> Program[None]:
        """Run step 9: a self-believed leader asks others, which confirm only their choice."""
        network, me = self.network, self._me
        knobs = network.knobs
        others = [each for each in network.roster.members if each != me]
        elected = self.believed == me and not self.silenced
        asked: Sequence[MemberId] = ()
        if elected or knobs.final == "printed":
            asked = rng.sample(others, knobs.poll)
        question = Stage("poll", members=network.roster.members)
        heard = yield from together({0: say(question, dict.fromkeys(asked, MARK))}, 1)
        answered: dict[MemberId, Bits] = {}
        if self.believed is not None and self.believed != me and self.believed in heard[0]:
            answered = {self.believed: MARK}
        reply = Stage("reply", members=network.roster.members)
        heard = yield from together({0: say(reply, answered)}, 1)
        support = sum(each in heard[0] for each in asked)
        self.leads = bool(asked) and 2 * support > len(asked)

    def conclude(self, ctx: Context, result: object) -> None:
        if self.leads:
            self.elect(ctx, ctx.me.id, 1)
        elif self.believed is None:
            self.give_up(ctx, NOBODY_ELECTED if self.nobody else NO_WORD)
        elif self.believed == ctx.me.id:
            self.give_up(ctx, NOT_CONFIRMED)
        else:
            self.elect(ctx, self.believed, 1)


def cast(
    config: CommitteeConfig,
    choice: Choice,
    members: Sequence[MemberId],
    seed: int,
    make: type[Committee] = Committee,
) -> tuple[Callable[[], Lockstep], AdversaryScene]:
    """Make the members of a world in which the adversary of these settings has its share.

    The bad members depend on the seed, the settings and the ids. The scene knows all inner
    elections by id once the world has started.
    """
    ids = tuple(sorted(members))
    if config.network_seed is None:
        config = msgspec.structs.replace(config, network_seed=derive(seed, "network") >> 2)
    network = lay_out(ids, knobs_of(config, len(ids)))
    adversary = parse_adversary(config.adversary)
    rng = Stream(derive(seed, "adversary"))
    bad = adversary.corrupt(network.roster, budget(config.b, len(ids)), rng) if config.b else ()
    scene = AdversaryScene(bad, rng, network.roster)
    return infiltrated(lambda: make(config, choice), adversary, scene), scene
