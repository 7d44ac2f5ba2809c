"""MAP bully as printed: Fig. 2 of the overhead-aware paper, taken literally.

It exists to show how it fails; `bully-map` is the election that the paper's text describes.

Model      As `bully-map`: synchronous, complete, and a detector reports each crash.
Idea       For i = n-1 to 1: ELECTION to MAP[i], wait T for OK; if it came, MAP[i] is the leader
           and LEADER goes to n-(n-i) members; else i = i-1.
Invariant  None of use. The loop ends, since i only ever falls.
Cost       With only the leader dead n-1 ELECTION, n-1 OK, n(n-1)/2 LEADER, and n-1 members that
           consider themselves the leader.
Guarantee  Advisory, and not even that: see below.
Paper      Bani Yassein, Alsaity, Alwidian: An Efficient Overhead-Aware Leader Election Algorithm
           for Distributed Systems, Fig. 2.

What goes wrong:
- The loop counts down by itself, and `i = i-1` counts down again. So the candidate after a silent
  one is never asked: n = 4 with 3 and 4 dead elects 1, not 2; n = 8 with 7 and 8 dead asks 7, then
  5. n = 3 with 2 and 3 dead asks 2 and ends without a leader, which this file reports as giving up.
- The loop does not end at the first OK. So every member below is elected too, one after the other,
  and a member that was told to lead never learns of the next leader.
- Nothing tests whether MAP[i] is the detecting member: it asks itself, answers itself, and goes on.
- n-(n-i) is i, which includes the new leader. And the detecting member sends LEADER, where the text
  and Fig. 3 let the new leader send it. So LEADER must carry a name.

What cannot be taken literally: "to" is read as "down to", or the loop would not run at all. MAP[i]
is the i-th from the worst, as the text numbers members, though its MAP starts with the best.
The wait ends with the OK. The detecting member's messages to itself travel and count like all
others. STOP and the returning leader are not in the figure, so they are not here either: a member
that comes back waits until it is told, and two detecting members run two loops. A called election
runs the loop.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.messages import Message, Role, Term
from hustings.core.outcome import Guarantee

ANSWER = "T"


class ElectionMsg(Message, frozen=True, tag="ELECTION"):
    """Is the receiver alive?"""

    role: ClassVar[Role] = Role.ELECTION
    term: Term


class OkMsg(Message, frozen=True, tag="OK"):
    """The sender is alive."""

    role: ClassVar[Role] = Role.ANSWER
    term: Term


class LeaderMsg(Message, frozen=True, tag="LEADER"):
    """The detecting member says which member leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    leader: MemberId


class BullyMapPrintedConfig(Config, frozen=True, kw_only=True):
    """The figure has one timer."""

    T: Annotated[float, Meta(gt=0, description="wait for one OK; default 2 delta")] | None = None

    @property
    def answer(self) -> float:
        return 2 * self.delta if self.T is None else self.T

    def warnings(self) -> list[str]:
        return ["the pseudo-code is wrong as printed: it is here to be seen failing"]


class BullyMapPrinted(Election):
    """Fig. 2, line by line."""

    __slots__ = ("config", "elected", "i", "map", "running")

    about = About(
        name="bully-map-printed",
        family="bully",
        paper="Bani Yassein, Alsaity, Alwidian, overhead-aware election, Fig. 2",
        idea="the printed pseudo-code, which shows how it fails",
        model="synchronous, complete, crash, failure detector",
        guarantee=Guarantee.ADVISORY,
        cost="2(n-1) + n(n-1)/2 messages if only the leader is dead",
        promises="nothing: it skips live members and elects several; use bully-map",
    )
    assumptions = Assumptions()
    Settings = BullyMapPrintedConfig
    messages = (ElectionMsg, OkMsg, LeaderMsg)
    config: BullyMapPrintedConfig

    def __init__(self, config: BullyMapPrintedConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.running = False
        self.map: tuple[MemberId, ...] = ()  # the worst first, so that map[i - 1] is MAP[i]
        self.i = 0
        self.elected = 0  # how many members this loop has made leader

    # The detecting member's loop

    def call(self, ctx: Context) -> None:
        self.begin(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.leader = None
            self.begin(ctx)

    def begin(self, ctx: Context) -> None:
        """For i = n-1 ..."""
        if not self.running:
            self.running = True
            self.elected = 0
            self.map = ctx.view.ranking(self.choice).ids[::-1]
            self.i = len(self.map) - 1
            self.body(ctx)

    def body(self, ctx: Context) -> None:
        """... to 1: send ELECTION to MAP[i], wait for T time to receive OK."""
        if self.i < 1:
            self.end(ctx)
            return
        ctx.send(self.map[self.i - 1], ElectionMsg(self.term))
        ctx.set_timer(ANSWER, self.config.answer)

    def end(self, ctx: Context) -> None:
        """End the loop: the figure ends here, with or without a leader."""
        self.running = False
        if not self.elected:
            self.give_up(ctx, "the printed loop ended without an OK")

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        """Make MAP[i] the new leader, and send LEADER to n-(n-i) members. There is no break."""
        if not self.running or sender != self.map[self.i - 1]:
            return  # an answer that came after T
        ctx.cancel_timer(ANSWER)
        self.elected += 1
        self.elect(ctx, sender, max(self.term, message.term) + 1)
        news = LeaderMsg(self.term, sender)
        for member in self.map[: self.i]:
            ctx.send(member, news)
        self.i -= 1  # the loop's own step
        self.body(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        """Else i = i-1, and then the loop's own step."""
        self.i -= 1
        self.i -= 1
        self.body(ctx)

    # Every member

    @upon(ElectionMsg)
    def on_election(self, ctx: Context, sender: MemberId, message: ElectionMsg) -> None:
        self.term = max(self.term, message.term)
        ctx.send(sender, OkMsg(self.term))

    @upon(LeaderMsg)
    def on_leader(self, ctx: Context, sender: MemberId, message: LeaderMsg) -> None:
        self.elect(ctx, message.leader, max(self.term, message.term))

    def state(self) -> str:
        loop = f" i={self.i}" if self.running else ""
        return f"leader={self.leader} term={self.term}{loop}"
