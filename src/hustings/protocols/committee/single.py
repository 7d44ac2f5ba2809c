"""One public committee: the whole group agrees on a bit, or elects a part of itself.

Model      All members form one committee in the order of their ids, in synchronous rounds; fewer
           than a third of them are bad.
Idea       The parts of the committee election, each as an election of its own, to be watched and
           measured: `agreement` runs one batch of agreements, `lightest-bin` one election by bins,
           with an endgame if the settings ask for it.
Invariant  All good members take the same number of rounds. It depends only on n and the settings,
           and for the endgame on what all of them agreed on.
Cost       Agreement: about 14n bits per member and instance (recursive), about n^2 (phase king).
           Lightest bin: an agreement with as many instances as candidates for each halving.
Guarantee  Agreement: with at most t bad members all good members declare the same, and what they
           all wanted, if they all wanted the same. Lightest bin: with fewer than a third of bad
           members all good members declare the same; how many of the elected are good is chance.
Paper      Scalable Leader Election, section 2.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.outcome import Guarantee
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import Method, Seat, agree_on, tolerated
from hustings.protocols.committee.bins import Members, halving, one_shot, padded
from hustings.protocols.committee.endgame import DEPTH, R_END, leader_of
from hustings.protocols.committee.lockstep import Lockstep, Program, Script, together

PAPER = "Scalable Leader Election (2006), section 2"
MODEL = "synchronous rounds; fewer than a third are Byzantine, send last and know everything"

Count = Annotated[int, Meta(ge=1, le=4096)]
Liars = Annotated[
    int, Meta(ge=0, description="the number of liars to tolerate; default as many as possible")
]


class CommitteeOfAll(Config, frozen=True, kw_only=True):
    """What both elections share: the agreement below them, and the adversary."""

    protocol: Annotated[Method, Meta(description="phase king, or the recursive protocol")] = (
        "recursive"
    )
    t: Liars | None = None
    adversary: Annotated[
        str, Meta(description="which members are bad, and what they do, joined by +")
    ] = "none"
    bad: Annotated[int, Meta(ge=0, description="the number of bad members; default t")] | None = (
        None
    )

    def seat(self, me: MemberId, members: Members) -> Seat:
        """Return a member's seat, if the group is large enough for this many bad members."""
        if self.t is not None and self.t > tolerated(len(members)):
            raise BadInput(
                f"t = {self.t} needs more than {3 * self.t} members, and there are {len(members)}"
            )
        return Seat(me, members, method=self.protocol, t=self.t)

    def liars(self, members: int) -> int:
        """Return how many are bad in a group of this size; 0 without an adversary."""
        if self.bad is not None:
            return self.bad
        return tolerated(members) if self.t is None else self.t


class AgreementConfig(CommitteeOfAll, frozen=True, kw_only=True):
    """The values that members begin with."""

    input: Annotated[
        Literal["random", "same", "split"],
        Meta(
            description="the inputs: random bits, all 1, or 0 in the first half of the members "
            "and 1 in the second"
        ),
    ] = "random"
    instances: Annotated[Count, Meta(description="the number of agreements in one batch")] = 1


class LightestBinConfig(CommitteeOfAll, frozen=True, kw_only=True):
    """How many bins how often, and what follows."""

    halvings: Annotated[
        int, Meta(ge=0, le=20, description="the number of elections with two bins")
    ] = 1
    bins: (
        Annotated[int, Meta(ge=2, le=4096, description="one election with this many bins instead")]
        | None
    ) = None
    style: Annotated[
        Literal["none", "full", "small", "baton", "feige"],
        Meta(description="the endgame that makes one of the elected members the leader"),
    ] = "none"
    depth: Annotated[int, Meta(ge=1, le=4096, description="the number of steps of a path")] = DEPTH
    r_end: Annotated[
        int,
        Meta(ge=1, description="the number of candidates to which bins reduce before the endgame"),
    ] = R_END
    pad: Annotated[
        int,
        Meta(
            ge=0,
            description="the number of candidates up to which the lowest ids are added, as printed",
        ),
    ] = 0


class Agreement(Lockstep):
    """Byzantine agreement on bits; the first decides between the first member and the last."""

    __slots__ = ("config", "decided", "inputs", "nominees")

    about = About(
        name="agreement",
        family="committee",
        paper=PAPER,
        idea="all vote and propose; a member in doubt follows a king, or a half that has agreed",
        model=MODEL,
        guarantee=Guarantee.ADVISORY,
        cost="about 14n bits per member and bit, 1.5n rounds; phase king n^2 bits, n rounds",
        promises="with at most t < n/3 bad members all good ones decide the same, and what all of "
        "them wanted if it was the same; nothing with more",
    )
    Settings = AgreementConfig
    config: AgreementConfig

    def __init__(self, config: AgreementConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.inputs: tuple[int, ...] = ()
        self.decided: tuple[int, ...] | None = None
        self.nominees: tuple[MemberId, MemberId] = (0, 0)  # the members that 0 and 1 stand for

    def script(self, ctx: Context) -> Program[object]:
        me, members = ctx.me.id, tuple(ctx.view.ids)
        self.nominees = members[0], members[-1]
        self.inputs = self._wanted(members.index(me), len(members), ctx.rng)
        script = agree_on(self.config.seat(me, members), self.inputs, 2)
        results = yield from together({0: script})
        return results[0]

    def _wanted(self, place: int, members: int, rng: Stream) -> tuple[int, ...]:
        instances = range(self.config.instances)
        if self.config.input == "same":
            return tuple(1 for _ in instances)
        if self.config.input == "split":
            return tuple(int(2 * place >= members) for _ in instances)
        return tuple(rng.below(2) for _ in instances)

    def conclude(self, ctx: Context, result: object) -> None:
        if not isinstance(result, list):
            raise ProtocolBug("an agreement ended without values")
        self.decided = tuple(result)
        self.elect(ctx, self.nominees[self.decided[0]], 1)

    def result(self) -> tuple[int, ...] | None:
        """Return what was decided, by instance; None before the end."""
        return self.decided


class LightestBin(Lockstep):
    """A lightest-bin election of the whole group, and one leader of it by an endgame."""

    __slots__ = ("chosen", "config")

    about = About(
        name="lightest-bin",
        family="committee",
        paper=PAPER,
        idea="every member throws itself into a bin; the bin with the fewest is elected",
        model=MODEL,
        guarantee=Guarantee.ADVISORY,
        cost="for each halving an agreement on the choices of all left: 28n^2 bits per member",
        promises="all good members declare the same; the elected are nearly as good as the group; "
        "whether the one leader is good depends on the endgame",
    )
    Settings = LightestBinConfig
    config: LightestBinConfig

    def __init__(self, config: LightestBinConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.chosen: Members | None = None

    def script(self, ctx: Context) -> Program[object]:
        me, members = ctx.me.id, tuple(ctx.view.ids)
        results = yield from together({0: self._elect(self.config.seat(me, members), ctx.rng)})
        return results[0]

    def _elect(self, seat: Seat, rng: Stream) -> Script[tuple[Members, MemberId]]:
        config = self.config
        if config.bins is not None:
            chosen = yield from one_shot(seat, config.bins, rng)
        else:
            chosen = yield from halving(seat, config.halvings, rng)
        chosen = padded(chosen, seat.members, config.pad)
        if config.style == "none":
            return chosen, min(chosen)
        (leader,) = yield from leader_of(
            seat, config.style, rng, depth=config.depth, r_end=config.r_end, candidates=chosen
        )
        return chosen, leader

    def conclude(self, ctx: Context, result: object) -> None:
        match result:
            case (tuple() as chosen, int() as leader):
                self.chosen = chosen
                self.elect(ctx, leader, 1)
            case _:
                raise ProtocolBug("an election by bins ended and elected no member")

    def result(self) -> Members | None:
        """Return the elected, before the endgame; None before the end."""
        return self.chosen
