"""What the helm rests on: whom a member holds for the leader, as what it stands, who is eligible.

The election inside decides by itself. Here it gets its context, is told to follow somebody
(`assume`), and is listened to; what the owner hears passes through.
"""

from __future__ import annotations

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.outcome import ELECTING, Elected, NoLeader, Outcome
from hustings.core.view import View
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.layer import Layer, find, innermost
from hustings.layers.leadership.config import LeadershipConfig
from hustings.layers.leadership.context import LeadershipContext
from hustings.layers.leadership.electors import Electors
from hustings.layers.leadership.messages import TidingsMsg
from hustings.layers.leadership.priority import MAX_FAVOUR, Favoured, favour_of, with_favour

HELM = "helm"

JOIN: TimerKey = (HELM, 0)  # until the membership has had its chance
TICK: TimerKey = (HELM, 1)
ANSWERS: TimerKey = (HELM, 2)  # until those asked have answered
REPEAT: TimerKey = (HELM, 3)  # of a hand-over
PREEMPT: TimerKey = (HELM, 4)
SECURE: TimerKey = (HELM, 5)  # until a new leader is favoured
DOUBT: TimerKey = (HELM, 6)  # until this member does something about a leader's end
OFFICE: TimerKey = (HELM, 7)  # until a member that announces itself leads

TIMERS = (JOIN, TICK, ANSWERS, REPEAT, PREEMPT, SECURE, DOUBT, OFFICE)


class Steering(Layer):
    """An election, what was declared last, and as what this member stands."""

    def __init__(self, inner: Election, settings: LeadershipConfig) -> None:
        super().__init__(inner)
        if not isinstance(inner.choice, Favoured):
            raise ProtocolBug("an election at the helm must choose by favour first: Favoured")
        self.settings = settings
        self.plain = inner.choice.choice  # without favour
        self.order = inner.choice
        self.announces = innermost(inner).assumptions.announces
        # Whether a better member takes over from a living leader, as the election has it.
        self.preempts = not settings.sticky and innermost(inner).assumptions.displaces
        self.electors = Electors()
        self.told: Outcome | None = None
        self.pending: Elected | None = None  # a leadership of mine that is not declared yet
        # Leaders taken for dead, where views are partial, and whether the election was told.
        self.doubted: dict[MemberId, bool] = {}
        self.begun = False  # whether the election inside has been started
        self.base = 0.0  # favour without an office
        self.grip: float | None = None  # favour in office, if it is another
        self._raw = Candidate(0)
        self._standing = Candidate(0)
        self._stood = 0.0  # the favour of that

    # As what this member stands

    @property
    def wanted_favour(self) -> float:
        """The favour that the world shall put among this member's attributes."""
        return self.base if self.grip is None else self.grip

    def standing(self, me: Candidate) -> Candidate:
        """This member as it wants to be seen; the same object while nothing has changed."""
        wanted = self.wanted_favour
        if me is not self._raw or self._stood != wanted:
            self._raw, self._stood = me, wanted
            self._standing = with_favour(me, wanted)
        return self._standing

    def electorate(self, ctx: Context) -> View:
        """Who may be elected, as of the beginning of this handler and with one's own standing."""
        self.electors.stand(self.standing(ctx.me))
        return self.electors.view

    def more_favour(self) -> float:
        """More than anybody has."""
        return min(max(self.electors.top(), 0.0) + 1.0, MAX_FAVOUR)

    # Whom it holds for the leader

    @property
    def held(self) -> Elected | None:
        """The leader, if there is one; one that only sleeps before it announces itself is none."""
        told, leader = self.told, self.inner.leader
        if isinstance(told, Elected) and (self.announces or told.leader == leader):
            return told
        if self.announces or leader is None:
            return None
        return Elected(leader, self.inner.term)

    @property
    def highest(self) -> int:
        """The highest term that this member knows of."""
        told = self.told
        return max(self.inner.term, told.term) if isinstance(told, Elected) else self.inner.term

    def leads(self, me: MemberId) -> bool:
        """Whether this member is a leader."""
        held = self.held
        if held is not None and self.inner.seats > 1:
            return me in self.inner.leaders
        return held is not None and held.leader == me

    def suspected(self, member: MemberId) -> bool:
        """Whether the detector inside, or gossip in its place, takes a member for dead."""
        if member in self.doubted:
            return True
        monitored = find(DetectorLayer, self.inner)
        return monitored is not None and member in monitored.detector.suspects

    def tidings(self, held: Elected) -> TidingsMsg:
        """What this member has to say about the leader."""
        known = self.inner.leaders if self.inner.seats > 1 else ()
        leaders = known if held.leader in known[:1] else (held.leader,)
        favour = 0.0
        if held.leader in self.electors:
            favour = favour_of(self.electors.candidate(held.leader))
        return TidingsMsg(leaders, held.term, favour)

    def leading(self) -> TidingsMsg | None:
        """What gossip says about the leader."""
        held = self.held
        return None if held is None else self.tidings(held)

    # The election inside

    def within(self, ctx: Context) -> LeadershipContext:
        """The context of the election inside."""
        return LeadershipContext(ctx, self)

    def heed(self, ctx: Context, outcome: Outcome) -> None:
        """The election declares something, or the helm does.

        A term that the owner was told is stored, so that it never hears of an earlier one again:
        not every election does that, and none where it assumes a leader.
        """
        if self.pending is not None:
            self.pending = None
            ctx.cancel_timer(OFFICE)
        self.told = outcome
        if isinstance(outcome, Elected):
            stored = ctx.stored.get("term")
            if not isinstance(stored, int) or stored < outcome.term:
                ctx.persist(term=outcome.term)
        ctx.declare(outcome)

    def declared(self, ctx: Context, outcome: Outcome) -> None:
        """The election declares something: heed it, unless others may yet claim the same office.

        Where members announce themselves, all that miss the leader do so before they have heard
        each other. One failover shall be one leadership, that of the best of them.
        """
        leads = isinstance(self.told, Elected) and self.told.leader == ctx.me.id
        wait = 0.0 if leads or self.inner.seats > 1 else self.settings.claim_delay
        mine = outcome if isinstance(outcome, Elected) and outcome.leader == ctx.me.id else None
        if not wait or mine is None or len(self.electors.view) <= 1:
            self.heed(ctx, outcome)
            return
        if self.pending is None:
            if self.told != NoLeader(ELECTING):
                self.heed(ctx, NoLeader(ELECTING))
            ctx.set_timer(OFFICE, wait)
        self.pending = mine

    def take_office(self, ctx: Context) -> None:
        """Nobody better has spoken: this member leads."""
        if self.pending is not None:
            self.heed(ctx, self.pending)

    def begin(self, ctx: Context, *, muted: bool = False) -> None:
        """Start the election inside, once.

        Who is back from a crash and comes to a group whose leader shall stay does not call for an
        election: it seems to be new.
        """
        if not self.begun:
            self.begun = True
            quiet = self.settings.sticky
            self.inner.start(LeadershipContext(ctx, self, muted=muted, quiet=quiet))

    def assume(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Follow somebody, or lead, without an election; the owner is told once."""
        self.begin(ctx, muted=True)
        if term < self.highest:
            return
        self.inner.assume_leader(LeadershipContext(ctx, self, muted=True), leader, term)
        outcome = Elected(leader, term)
        if outcome != self.told:
            self.heed(ctx, outcome)
