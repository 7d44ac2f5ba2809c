"""Concord: members that differ about the leader, or have none, come to agree.

Notes are compared by terms: who knows of the later one tells the other, who follows. Each election
and each hand-over takes a term above all that its member knew, so the later term is the newer one
in truth; where two leaders took the same, the better of them insists in the next. Where a better
member displaces the leader, the better of two insists whichever terms they took. No note is
answered by a member that learnt from it, so an exchange ends after one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.outcome import Elected, NoLeader
from hustings.core.thinning import pause
from hustings.layers.leadership.config import LeadershipConfig
from hustings.layers.leadership.context import LeadershipContext
from hustings.layers.leadership.messages import MAX_TERM, AskMsg, HandOverMsg, TidingsMsg
from hustings.layers.leadership.state import ANSWERS, DOUBT, SECURE, Steering

_ASKED = 3  # members in one inquiry
_INQUIRIES = 3  # about a leader that is said to be there and is not in view
_DOUBTED = 8  # leaders of the past that are remembered as dead
_LONGEST = 8  # times the patience, between two calls in vain


class Concord(Steering):
    """Asks, answers, compares; and sees when this member takes office or loses it."""

    def __init__(self, inner: Election, settings: LeadershipConfig) -> None:
        super().__init__(inner, settings)
        self.entered = False  # whether the membership has had its chance
        self.resting = False  # resigned, and nobody else was there
        self.dazed = False  # was away: until it knows who leads, the election inside hears nothing
        self.announced: Elected | None = None  # the last leadership of mine that all were told of
        self.courted = 0.0  # when a favour was given for an office still to be won
        self.bereft = 0.0  # since when there is no leader, or what was tried last
        self.inquiring = False
        self._led = False
        self._known = False  # whether there was a leader when last looked
        self._wait = settings.endurance
        self._inquiries = 0
        self._rumour: MemberId | None = None  # said to lead, and not in view
        self._claimable = 0.0  # from when on it may insist again
        self._notable = 0.0  # from when on it may speak of a conflict again
        self._missing: tuple[MemberId, float] | None = None  # a leader not in view, since when
        self._tided = 0.0  # when observers were told last
        # The leader held and another one, of a later term, that it was told of.
        self._met: tuple[Elected, MemberId, int] | None = None

    # Before and after each handler

    def look(self, ctx: Context) -> Sequence[MemberId]:
        """Bring the electors up to date; whom the election was told to be there."""
        changes = self.electors.refresh(ctx.view, self.standing(ctx.me), ctx.now())
        if self.begun:
            for member in changes.lost:
                self.inner.on_suspect(self.within(ctx), member)
            for member in changes.added:
                self.inner.on_alive(self.within(ctx), member)
        if changes.added:
            self.rise(ctx)
        return changes.added

    def settle(self, ctx: Context) -> None:
        """Has this member taken office, or lost it? Is there a leader?"""
        leads, held = self.leads(ctx.me.id), self.held
        if self._led and not leads:
            self.grip = None
        elif leads and not self._led and self.settings.sticky:
            if self.settings.trial:
                ctx.set_timer(SECURE, self.settings.trial)
            else:
                self.secure(ctx)
        if leads and held is not None and held != self.announced:
            self.announced = held
            self._tell_observers(ctx, held)
        self._led = leads
        if held is not None:
            self.dazed = False
            self.electors.trust(held.leader)
            self._known, self.inquiring, self._inquiries = True, False, 0
            self._wait = self.settings.endurance
        elif self._known:
            self._known = False
            self.bereft = ctx.now()
        self.electorate(ctx)  # as what it stands may have changed

    def secure(self, ctx: Context) -> None:
        """This member has led for a while: from now on the next better one does not unseat it.

        Not at once, as a rule: where several take office together, the best of them shall stay.
        """
        held = self.held
        if held is None or not self.leads(ctx.me.id) or self.base < 0.0 or self.grip is not None:
            return
        self.grip = self.more_favour()
        if not self.announces and len(self.electors.view) > 1:
            ctx.multicast(self.tidings_of(ctx.me.id, held.term))  # gossip would be slower

    def meet_rival(self, ctx: Context, rival: MemberId) -> None:
        """Somebody else says that it leads, as this member does, for good.

        If both have taken a favour with the office, neither knowing of the other, each would think
        itself the better one, and both would announce themselves for ever.
        """
        if self.grip is not None and self.inner.seats == 1 and self.leads(ctx.me.id):
            self.electors.honour(rival)

    def _tell_observers(self, ctx: Context, held: Elected) -> None:
        self._tided = ctx.now()
        if held.leader == ctx.me.id:  # one of several leaders does it for all
            note = self.tidings_of(ctx.me.id, held.term)
            for member in self.electors.observers:
                ctx.send(member, note)

    def tidings_of(self, me: MemberId, term: int) -> TidingsMsg:
        """What a leader says of itself."""
        leaders = self.inner.leaders if self.inner.seats > 1 else (me,)
        return TidingsMsg(leaders or (me,), term, self.wanted_favour)

    # Joining, asking, calling

    def enter(self, ctx: Context) -> None:
        """The membership has had its chance."""
        if self.entered:
            return
        self.entered = True
        if not self.settings.sticky:
            self.begin(ctx)
        if self.held is None:
            self.inquire(ctx)

    def inquire(self, ctx: Context) -> None:
        """Who leads? Some are asked; nobody else to ask is an answer, too."""
        others = self.electors.others(ctx.me.id)
        self._rumour = None
        if not others:
            self.conclude(ctx)
            return
        self.inquiring = True
        self._inquiries += 1
        question = AskMsg(self.highest)
        asked = 1 if self.partial and self.announces else _ASKED  # in a crowd, nobody may know
        for member in ctx.rng.sample(others, min(asked, len(others))):
            ctx.send(member, question)
        wait = self.settings.answers
        late = self._turn(ctx) if self.settings.partial else ctx.rng.uniform(0.0, wait)
        ctx.set_timer(ANSWERS, wait + late)  # not all call at once

    def _ask_on(self, ctx: Context) -> None:
        """Until its turn to call: where turns are long, a lost answer would cost an election."""
        others = self.electors.others(ctx.me.id)
        if self.settings.partial and others:
            ctx.send(ctx.rng.choice(others), AskMsg(self.highest))

    def conclude(self, ctx: Context) -> None:
        """Nobody knows a leader that could be followed: elect one."""
        self.inquiring = self.dazed = False
        self.begin(ctx)
        if self.held is not None or self.resting:
            return
        if self._rumour is not None and self._inquiries < _INQUIRIES:
            self.inquire(ctx)  # perhaps it comes into view
            return
        self._inquiries = 0
        self.bereft = ctx.now()
        self._wait = min(2 * self._wait, _LONGEST * self.settings.endurance)
        self._wait *= ctx.rng.uniform(0.75, 1.0)
        if not self.announces:
            self.inner.call(self.within(ctx))

    def answer(self, ctx: Context, sender: MemberId, term: int) -> None:
        """Somebody asks who leads; it cannot follow into an earlier term than it knows."""
        held = self.held
        if held is not None and held.leader == ctx.me.id and self.inner.seats == 1:
            if term > held.term:
                self.insist(ctx, term)
        held = self.held
        if held is not None:
            self.electorate(ctx)
            ctx.send(sender, self.tidings(held))

    def next_term(self) -> int:
        """Above all terms that this member knows."""
        return min(self.highest + 1, MAX_TERM)

    def insist(self, ctx: Context, above: int) -> None:
        """Lead on, in a term above that one; not too often."""
        now = ctx.now()
        if now < self._claimable:
            return
        self._claimable = now + 2 * self.settings.delta
        term = max(self.next_term(), min(above + 1, MAX_TERM))
        ctx.multicast(HandOverMsg(ctx.me.id, term, self.wanted_favour))
        self.announced = Elected(ctx.me.id, term)
        self.assume(ctx, ctx.me.id, term)

    # Comparing notes

    def compare(self, ctx: Context, sender: MemberId, note: TidingsMsg) -> None:
        """Somebody says who leads."""
        leader = note.leaders[0]
        if leader != ctx.me.id:
            self.electors.tell(leader, note.favour)
        held = self.held
        if held is None:
            self._learn(ctx, sender, note)
        elif self.announces and leader != held.leader:
            return  # announcements settle all but the term
        elif note.term > held.term:
            if leader == held.leader or not self._stands_by(ctx, held, note):
                self._catch_up(ctx, sender, note)
        elif note.term < held.term:
            ctx.send(sender, self.tidings(held))
        elif leader != held.leader:
            self._contend(ctx, leader, held)

    def _learn(self, ctx: Context, sender: MemberId, note: TidingsMsg) -> None:
        """Without a leader: is this one to be followed?"""
        leader, waiting = note.leaders[0], ctx.now() - self.bereft >= self._wait
        later = self.settings.partial and note.term > self.highest  # one has ended since
        if self.resting or not (self.inquiring or waiting or later or not self.entered):
            return  # an election is under way, and will tell
        if leader == ctx.me.id:
            if self.entered and self.base >= 0.0:
                self.begin(ctx, muted=True)
                self._accede(ctx, note)
        elif not self.knows(leader):
            self._rumour = leader
        elif self._outranks(ctx, leader):
            # The election will have this member take over: it does not follow first.
            if self.announces and self.inner.term < note.term <= MAX_TERM:
                self.inner.term = note.term  # and claims a later term than this one
        elif self.credible(ctx, sender, leader):
            self.begin(ctx, muted=True)
            if note.term >= self.highest:
                self.entered = True
                self.assume(ctx, leader, note.term)
            else:
                ctx.send(leader, AskMsg(self.highest))

    def _outranks(self, ctx: Context, leader: MemberId) -> bool:
        """Whether this member is to displace a leader by the election's own rule."""
        if not self.preempts or self.inner.seats > 1 or leader not in self.electors:
            return False
        view = self.electorate(ctx)
        return self.order.better(view.candidate(ctx.me.id), view.candidate(leader))

    def _catch_up(self, ctx: Context, sender: MemberId, note: TidingsMsg) -> None:
        """There is a later term than the one of the leader held."""
        leader, term = note.leaders[0], note.term
        if leader == ctx.me.id:
            self._accede(ctx, note)
        elif self.knows(leader) and self.credible(ctx, sender, leader):
            if term < self.highest:
                ctx.send(leader, AskMsg(self.highest))
                return
            self.assume(ctx, leader, term)
            held = self.held
            if leader != sender and held is not None and self._one_of_all(ctx):
                ctx.send(leader, self.tidings(held))  # if it does not lead, it shall say so

    def _stands_by(self, ctx: Context, held: Elected, note: TidingsMsg) -> bool:
        """Whether the leader held is to displace the one of the later term, as it is the better.

        It insists. A follower tells it of the other one, and holds on to it once: if it lives, it
        will have insisted before the next note comes.
        """
        rival = note.leaders[0]
        if not self.preempts or rival not in self.electors or held.leader not in self.electors:
            return False
        view = self.electorate(ctx)
        if not self.order.better(view.candidate(held.leader), view.candidate(rival)):
            return False
        if held.leader == ctx.me.id:
            self.insist(ctx, note.term)
            return True
        if self.suspected(held.leader) or self._met == (held, rival, note.term):
            return False
        self._met = (held, rival, note.term)
        ctx.send(held.leader, note)
        return True

    def _accede(self, ctx: Context, note: TidingsMsg) -> None:
        """Others were told that this member leads, or never missed it: so it does."""
        if note.favour > self.wanted_favour:
            self.grip = note.favour  # the office came with it
        self.insist(ctx, note.term)

    def _contend(self, ctx: Context, leader: MemberId, held: Elected) -> None:
        """Two leaders in one term: the better insists, and must hear of the other first."""
        if leader not in self.electors or ctx.now() < self._notable:
            return
        self._notable = ctx.now() + self.settings.delta
        view = self.electorate(ctx)
        if held.leader == ctx.me.id and self.order.better(
            view.candidate(ctx.me.id), view.candidate(leader)
        ):
            self.insist(ctx, held.term)
        elif leader != ctx.me.id:
            ctx.send(leader, self.tidings(held))

    def credible(self, ctx: Context, sender: MemberId, leader: MemberId) -> bool:
        """Whether a leader that somebody tells of lives, as far as is known here."""
        if not self.suspected(leader):
            return True
        if sender == leader:
            self.doubted.pop(leader, None)
            self.inner.on_alive(self.within(ctx), leader)
        return sender == leader

    # Where views are partial

    def knows(self, leader: MemberId) -> bool:
        """Whether a leader may be followed: where views are partial, what is said of it will do."""
        return leader in self.electors or self.settings.partial

    def doubt(self, ctx: Context, leader: MemberId) -> bool:
        """Gossip takes the leader for dead, and so do others: one of them calls, not all.

        Whether that waits for this member's turn.
        """
        if not self.settings.partial or leader != self.inner.leader:
            return False
        if leader not in self.doubted:
            self.doubted[leader] = False
            if len(self.doubted) > _DOUBTED:
                del self.doubted[next(iter(self.doubted))]
            ctx.set_timer(DOUBT, self._turn(ctx))
        return not self.doubted[leader]

    def give_up_on(self, ctx: Context) -> None:
        """Nobody else has called meanwhile, and the leader has not been heard of."""
        for leader in [each for each, told in self.doubted.items() if not told]:
            self.doubted[leader] = True
            self.inner.on_suspect(self.within(ctx), leader)

    def _turn(self, ctx: Context) -> float:
        """How long this member waits for somebody else to act; few wait short."""
        size = self._size
        return self.settings.call_spread * (log(max(2.0, size)) + 1) * pause(ctx.rng.random(), size)

    @property
    def _size(self) -> float:
        return max(float(len(self.electors.view)), self.electors.view.estimate or 0.0)

    def _one_of_all(self, ctx: Context) -> bool:
        """Whether this member speaks for the group: about one does, where all have learnt."""
        return not self.settings.partial or ctx.rng.random() * self._size < 1.0

    # From time to time

    def check(self, ctx: Context) -> None:
        """Tell others, or ask them."""
        held, now = self.held, ctx.now()
        if held is None:
            if self.inquiring:
                self._ask_on(ctx)
            elif now - self.bereft >= self._wait:
                self.inquire(ctx)
        elif self.leads(ctx.me.id):
            self._preside(ctx, held)
        else:
            if self.grip is not None and now - self.courted > self.settings.endurance:
                self.grip = None  # an office that it did not win
            self._follow_up(ctx, held)

    def _preside(self, ctx: Context, held: Elected) -> None:
        others = self.electors.others(ctx.me.id)
        if others and not self.announces:
            ctx.send(ctx.rng.choice(others), self.tidings_of(ctx.me.id, held.term))
        # A little early rather than one tick late.
        if ctx.now() - self._tided >= self.settings.tidings - self.settings.period / 2:
            self._tell_observers(ctx, held)

    def _follow_up(self, ctx: Context, held: Elected) -> None:
        """Does the leader know that it leads? About one member of the group asks."""
        leader = held.leader
        if leader in self.electors:
            self._missing = None
            size = self._size if self.settings.partial else len(self.electors.view)
            if ctx.rng.random() * size < 1.0:
                ctx.send(leader, self.tidings(held))
            return
        if self.announces or (self.partial and not self.settings.partial):
            return  # it is missed elsewhere, or known though not in view
        now = ctx.now()
        if self._missing is None or self._missing[0] != leader:
            self._missing = (leader, now)
        elif now - self._missing[1] >= self.settings.endurance:
            self._missing = None
            self.inner.on_suspect(self.within(ctx), leader)

    @property
    def partial(self) -> bool:
        """Whether only a part of the group is known, as far as its size is."""
        size = self.electors.view.estimate
        return size is not None and size > 1.5 * len(self.electors.view)

    # Going and coming back

    def step_down(self, ctx: Context, reason: str) -> None:
        """Lead no more, though nobody else leads; the owner hears why."""
        if self.announces:
            # Without a word: the others may never have missed it.
            self.inner.leave(LeadershipContext(ctx, self, silent=True))
            self.begun = False
        else:
            self.inner.leader = None
        self.grip = None
        self.heed(ctx, NoLeader(reason))

    def rise(self, ctx: Context) -> None:
        """Somebody else is there, or the owner wants it: rest no more."""
        if self.resting:
            self.resting = False
            self.bereft = ctx.now() - self._wait
            self.begin(ctx)

    def best_other(self, ctx: Context) -> MemberId | None:
        """The best elector but this member that does not stand back."""
        view = self.electorate(ctx)
        ranking = view.ranking(self.order).ids
        best = next((each for each in ranking if each != ctx.me.id), None)
        if best is None or self.electors.favour(best) < 0.0:
            return None
        return best
