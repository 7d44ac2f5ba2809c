"""What the thesis's section 5.7 sketches, on top of the machine: Query and Bye.

Query: before it announces itself a member asks. A Query compares like an announcement, so a better
one's Query silences, too, although nobody is declared leader for it; and a leader that hears the
Query of a worse one answers by announcing itself. With query=query everybody asks at once instead
of sleeping, and leaders answer at once. With query=suppress-query members sleep before they ask,
and leaders before they answer, so that one answer serves all who ask meanwhile.

Bye: a departing leader says so, several times if messages may be lost, and who follows it need not
wait for T_L. A member that leads nobody leaves in silence. The Byes stand `bye_gap` apart, so a
leader with a gap takes that long to leave; one that is cut short has sent the first.
"""

from __future__ import annotations

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import upon
from hustings.protocols.announce.machine import ANNOUNCE, ANNOUNCE_TIMER, Machine
from hustings.protocols.announce.messages import AnnounceMsg, ByeMsg, QueryMsg
from hustings.protocols.announce.settings import AnnounceConfig

MESSAGES = (AnnounceMsg, QueryMsg, ByeMsg)

QUERY_TIMER = "T_Q"
ANSWER_TIMER = "answer"
BYE_TIMER = "bye"

QUERY = "query"
GONE = "gone"


class Extended(Machine):
    """The machine with Query and Bye."""

    __slots__ = ("asked", "byes", "departed")

    messages = MESSAGES

    def __init__(self, config: AnnounceConfig, choice: Choice) -> None:
        super().__init__(config, choice)
        self.asked = False  # an answer is due, on its own timer
        self.byes = 0  # Byes still to be sent
        self.departed: tuple[MemberId, int] = (0, 0)  # who said goodbye last, and its term

    # Query

    def wake_up(self, ctx: Context) -> None:
        if self.config.query == "none":
            self.announce(ctx)
            return
        self.phase = QUERY
        ctx.multicast(QueryMsg(self.mine))
        ctx.set_timer(QUERY_TIMER, self.config.wait)

    @upon(QueryMsg)
    def on_query(self, ctx: Context, sender: MemberId, message: QueryMsg) -> None:
        self.hear(ctx, sender, message.candidate, term=0)
        if self.phase != ANNOUNCE or sender == ctx.me.id:
            return
        if self.config.query != "suppress-query":
            self.announce(ctx)
        elif not self.asked:
            self.asked = True
            ctx.set_timer(ANSWER_TIMER, self.sleep(ctx), eager=True)

    def announce(self, ctx: Context) -> None:
        self.asked = False  # every announcement answers whoever has asked
        ctx.cancel_timer(ANSWER_TIMER)
        super().announce(ctx)

    def listen(self, ctx: Context) -> None:
        self.asked = False
        ctx.cancel_timer(ANSWER_TIMER)
        ctx.cancel_timer(QUERY_TIMER)
        super().listen(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key in (QUERY_TIMER, ANSWER_TIMER):
            self.announce(ctx)
        elif key == BYE_TIMER:
            self.say_bye(ctx)
        else:
            super().on_timer(ctx, key)

    # Bye

    def leave(self, ctx: Context) -> None:
        if self.phase != ANNOUNCE:
            return
        self.phase = GONE
        self.forget(ctx)
        for timer in (ANNOUNCE_TIMER, ANSWER_TIMER):
            ctx.cancel_timer(timer)
        self.byes = self.config.byes(len(ctx.view) - 1)
        self.say_bye(ctx)

    def say_bye(self, ctx: Context) -> None:
        """One now and the others later; all at once if there is no gap between them."""
        while self.byes:
            self.byes -= 1
            ctx.multicast(ByeMsg(self.reign))
            if self.byes and self.config.bye_gap:
                ctx.set_timer(BYE_TIMER, self.config.bye_gap, eager=True)
                return

    @upon(ByeMsg)
    def on_bye(self, ctx: Context, sender: MemberId, message: ByeMsg) -> None:
        self.departed = (sender, message.term)
        leader = self.following.of(sender)
        if leader is not None:
            self.lose(ctx, leader)

    def follow(self, ctx: Context, candidate: Candidate, term: int) -> None:
        who, when = self.departed
        overtaken = candidate.id == who and term <= when  # by its own Bye
        if self.phase != GONE and not overtaken:
            super().follow(ctx, candidate, term)
