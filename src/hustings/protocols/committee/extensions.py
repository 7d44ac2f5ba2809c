"""Further uses of the same parts: agreement of the whole group, and a common coin.

Model      As in the election by committees.
Idea       Agreement: the root is halved to a small set, which is good for more than two thirds if
           the root is. It agrees on a bit and tells the root, and word goes down the tree. Coin:
           the leader, once elected, throws it for all, and the root agrees on what it sent.
Invariant  As in the election: an honest root sends one word, and all members with an honest way up
           from most of their leaves get it.
Cost       Agreement: as the election with one agreement in the small set instead of the endgame.
           Coin: one broadcast at the root and one more way down.
Guarantee  Agreement: nearly all good members decide the same, and if all good members wanted the
           same, they decide it. The set is 2/3 good with a probability that grows with its size.
           Coin: fair if the leader is good, and then nearly all good members see the same; else the
           adversary chooses it. So a fair coin comes as often as a good leader.
Paper      Scalable Leader Election, section 1.2 (sketched there).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.errors import ProtocolBug
from hustings.core.outcome import Guarantee
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import (
    Seat,
    agree_on,
    agreement_rounds,
    broadcast,
    broadcast_rounds,
)
from hustings.protocols.committee.bins import halving, halvings_to
from hustings.protocols.committee.bits import Bits
from hustings.protocols.committee.election import NO_WORD, Committee, root_rounds
from hustings.protocols.committee.lockstep import (
    Program,
    Script,
    Spoken,
    Stage,
    silent,
    to_all,
)
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.protocols.committee.tree import Value, Word, plurality


class GroupAgreementConfig(CommitteeConfig, frozen=True, kw_only=True):
    """The values that members begin with, and the number of members that decide for them."""

    input: Annotated[
        Literal["random", "same", "split"],
        Meta(
            description="the inputs: random bits, all 1, or 0 in the first half of the members "
            "and 1 in the second"
        ),
    ] = "random"
    deciders: (
        Annotated[
            int, Meta(ge=1, le=4096, description="the size of the set that decides; default 8 ln n")
        ]
        | None
    ) = None


def deciders_of(config: CommitteeConfig, n: int) -> int:
    """Return how many members decide at most in a group of n.

    >>> deciders_of(GroupAgreementConfig(), 1000), deciders_of(GroupAgreementConfig(deciders=9), 5)
    (56, 9)
    """
    given = config.deciders if isinstance(config, GroupAgreementConfig) else None
    return max(4, ceil(8 * log(n))) if given is None else given


class Decision(msgspec.Struct, frozen=True):
    """The value that a member wanted, and the value that it takes for decided."""

    wanted: int
    decided: int | None
    in_set: bool  # whether it was one of those that decided


class GroupAgreement(Committee):
    """Byzantine agreement of the whole group, by an elected set."""

    __slots__ = ("_nominees", "decided", "in_set", "wanted")

    about = About(
        name="committee-agreement",
        family="committee",
        paper="King, Saia, Sanwalani, Vee 2006",
        idea="committees elect a small set, which agrees on a bit and sends it down the tree",
        model="synchronous rounds; fewer than a third of the members are Byzantine, in concert",
        guarantee=Guarantee.ADVISORY,
        cost="less than an election: one agreement in a small set instead of the endgame",
        promises="nearly all good members decide the same while the elected set is 2/3 good",
    )
    Settings = GroupAgreementConfig

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.wanted = 0
        self.decided: int | None = None
        self.in_set = False
        self._nominees: tuple[MemberId, MemberId] = (0, 0)  # the members that 0 and 1 stand for

    def script(self, ctx: Context) -> Program[object]:
        config = self._config
        if not isinstance(config, GroupAgreementConfig):
            raise ProtocolBug("a group agreement needs its own settings")
        ids = ctx.view.ids
        self._nominees = ids[0], ids[-1]
        if config.input == "random":
            self.wanted = ctx.rng.below(2)
        else:
            later = 2 * ids.index(ctx.me.id) >= len(ids)
            self.wanted = int(config.input == "same" or later)
        return super().script(ctx)

    @property
    def most(self) -> int:
        """Return how many members decide at most."""
        return deciders_of(self._config, len(self.network.roster.members))

    def election(self, rng: Stream) -> Program[object]:
        """Elect the set, let it agree, send the bit down."""
        yield from self.climb(rng)
        bit = yield from self.elect_root(rng)
        word = yield from self.inform(bit or None, Word(1))
        self.decided = word[0] if word else None
        return None

    def at_root(self, seat: Seat, rng: Stream) -> Script[Value]:
        """Halve, agree among the rest, tell the other participants."""
        me, members, most = seat.me, seat.members, self.most
        left = (yield from halving(seat, halvings_to(len(members), most), rng))[:most]
        self.in_set = me in left
        decided: int | None = None
        if self.in_set:
            (decided,) = yield from agree_on(Seat(me, left), [self.wanted], 2)
        else:
            yield from silent(agreement_rounds(len(left)))
        outbox = {} if decided is None else to_all(members, me, Bits(decided, 1))
        heard = yield Spoken(Stage("decided", 0, 0, 1, 1, 2, left, members), outbox)
        if decided is not None:
            return (decided,)
        words = (heard.get(each) for each in left)
        said = [(word.value,) for word in words if word is not None and word.length == 1]
        return plurality(said) or ()

    def root_rounds(self) -> int:
        return _deciding_rounds(self.network.root.voters, self.most)

    def verdict(self) -> Decision:
        """Return what this member came out with."""
        return Decision(self.wanted, self.decided, self.in_set)

    def conclude(self, ctx: Context, result: object) -> None:
        if self.decided is None:
            self.give_up(ctx, NO_WORD)
        else:
            self.elect(ctx, self._nominees[self.decided], 1)


@lru_cache(maxsize=64)
def _deciding_rounds(voters: int, most: int) -> int:
    return max(
        halvings_to(k, most) * broadcast_rounds(k)
        + max(agreement_rounds(left) for left in range(1, min(k, most) + 1))
        + 1
        for k in range(1, voters + 1)
    )


class CommonCoin(Committee):
    """An election whose leader throws a coin for all members."""

    __slots__ = ("coin",)

    about = About(
        name="committee-coin",
        family="committee",
        paper="King, Saia, Sanwalani, Vee 2006",
        idea="the leader that committees elected throws a coin, and the tree tells all",
        model="synchronous rounds; fewer than a third of the members are Byzantine, in concert",
        guarantee=Guarantee.ADVISORY,
        cost="an election and one broadcast at the root",
        promises="a fair coin that nearly all good members see alike, if the leader is good",
    )

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.coin: int | None = None

    def election(self, rng: Stream) -> Program[object]:
        """Elect a leader; word of the coin follows word of the leader."""
        yield from self.climb(rng)
        both = yield from self.elect_root(rng)
        yield from self.take_word(both if both is None else both[:1])
        coin = yield from self.inform(None if not both else both[1:], Word(1))
        self.coin = coin[0] if coin else None
        yield from self.confirm(rng)
        return None

    def at_root(self, seat: Seat, rng: Stream) -> Script[Value]:
        """Elect the leader, then broadcast its coin; return the leader and the coin."""
        chosen = yield from super().at_root(seat, rng)
        if not chosen:
            yield from silent(broadcast_rounds(len(seat.members)))
            return ()
        mine = rng.below(2) if seat.me == chosen[0] else 0
        (coin,) = yield from broadcast(seat, chosen, mine, 2)
        return (*chosen, coin)

    def root_rounds(self) -> int:
        root = self.network.root.voters
        return root_rounds(root, self.network.knobs) + max(
            broadcast_rounds(k) for k in range(1, root + 1)
        )
