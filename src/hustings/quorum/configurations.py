"""Which configuration is the present one: a majority of the last one's voters must say so.

Model      An attacker with the group's key can forge a sender's name, but does not read messages
           that are sent to another member. Fewer than a majority of the voters lie.
Idea       News of another configuration is only a reason to ask. A member that hears it asks the
           voters of its own configuration (CONF-QUERY), with a random number. Each voter answers
           with the configuration that followed, or with its seal, and with the present voters. If a
           majority says the same, the member believes it.
Invariant  1. A step is believed only if the voters that have begun the next configuration with it,
              and the voters that have sealed it in one round, are a majority together. If one of
              them has begun and does not lie, it has found the same before. If none has begun, a
              majority sealed the same change in one round, and by `reconfiguration` there is no
              other successor.
           2. If too few voters tell of the step, but a majority names the present voters, one of
              that majority does not lie, and these are the voters. A member that jumps there has
              missed what was sealed. It votes only like a voter that has lost its disk.
           3. What the next voters begin with is computed from the same answers. A lease that was
              granted was accepted by one of the voters that sealed, before it sealed. Voters that
              have begun respect the lease. Each new voter computes this for itself, and trusts no
              other result.
           4. Numbers grow by one with each step, one voter differs, and no lease is longer than
              the longest allowed one.
Cost       2 messages per voter for each member, each time that voters change.
Guarantee  One lying voter, and any number of other lying members, change no member's configuration.

A member that was away goes from step to step. The old configuration of each step confirms the step:
voters keep what they know of the last steps, also when they vote no more. If a majority of the
voters that a member knows is gone for good, there is no voter that it could believe. Then an
operator must restart it with the present voters' names and an empty state.
"""

from __future__ import annotations

from math import inf

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.quorum.acceptor import Acceptor, keep, kept
from hustings.quorum.config import Electorate, after
from hustings.quorum.epochs import EpochCheck
from hustings.quorum.messages import ConfInfoMsg, ConfInstallMsg, ConfQueryMsg, Lease

MAX_STEPS = 32  # steps that a member remembers for members that were away


class Configurations:
    """What one member knows of configurations, and what voters tell it of the next one."""

    def __init__(self, electorate: Electorate, longest: float, origin: Electorate) -> None:
        self.electorate = electorate
        self.origin = origin  # the first configuration
        self.longest = longest
        self.steps: dict[int, ConfInstallMsg] = {}  # how the last configurations began, by number
        self.nonce = 0
        self.asked = -inf  # when this member asked last
        self.said: dict[MemberId, ConfInfoMsg] = {}  # answers of voters
        self.epoch_check = EpochCheck()

    def recall(self, ctx: Context) -> Electorate:
        """The last configuration that this member used, whatever the settings name now."""
        if kept(ctx.stored, "birth", int) is not None:  # it was going to vote before, or did vote
            self.electorate = self.origin
        stored = kept(ctx.stored, "config", Electorate)
        if stored is not None and stored.number > self.electorate.number:
            self.electorate = stored
        steps = kept(ctx.stored, "steps", list[ConfInstallMsg]) or []
        self.steps = {each.config: each for each in steps}
        return self.electorate

    def move(self, ctx: Context, electorate: Electorate, step: ConfInstallMsg | None) -> None:
        """Use other voters from now on."""
        self.electorate = electorate
        self.nonce, self.said, self.asked = 0, {}, -inf
        if step is not None:
            self.steps[step.config] = step
            while len(self.steps) > MAX_STEPS:
                del self.steps[min(self.steps)]
        keep(ctx, config=electorate, steps=list(self.steps.values()))

    # Questions

    def ask(self, ctx: Context, pause: float) -> ConfQueryMsg | None:
        """The question for the present voters; none if one is under way."""
        if ctx.now() < self.asked + pause:
            return None
        self.asked = ctx.now()
        self.nonce = (ctx.rng.bits() >> 2) | 1
        self.said, self.epoch_check = {}, EpochCheck()
        return ConfQueryMsg(self.electorate.number, self.nonce)

    def answer(self, ctx: Context, acceptor: Acceptor, question: ConfQueryMsg) -> ConfInfoMsg:
        """What this member knows of the configurations after the one in the question."""
        number, voters = self.electorate.number, self.electorate.voters
        step, sealed = self.steps.get(question.config + 1), acceptor.sealed
        if step is None and question.config == number and sealed is not None and not sealed.told:
            lease, epochs = acceptor.last_lease(ctx), acceptor.known_epochs()
            step = ConfInstallMsg(number + 1, sealed.change, sealed.round, lease, epochs)
        return ConfInfoMsg(number, voters, question.nonce, step)

    # Answers

    def hear(self, sender: MemberId, message: ConfInfoMsg) -> bool:
        """Store a voter's answer, if this member asked for it. Return whether it did."""
        electorate, step = self.electorate, message.step
        if message.nonce != self.nonce or sender not in electorate.voters:
            return False
        if step is not None and not self._may_count(sender, step):
            message = ConfInfoMsg(message.config, message.voters, message.nonce)
        self.said[sender] = message
        return True

    def _may_count(self, sender: MemberId, step: ConfInstallMsg) -> bool:
        """Whether a step can be the next one. Seals from epochs that are over do not count."""
        if step.config != self.electorate.number + 1:
            return False
        if not self.electorate.may_become(step.change):
            return False
        if not step.epochs:
            return True
        void = self.epoch_check.admit(self.electorate, sender, step.epochs)
        for voter in void or ():
            self.said.pop(voter, None)
        return void is not None

    def step(self) -> ConfInstallMsg | None:
        """How the next configuration begins, if a majority says so."""
        steps = [each.step for each in self.said.values() if each.step is not None]
        for one in steps:
            begun = [each for each in steps if each.change == one.change and not each.epochs]
            sealed = [
                each
                for each in steps
                if each.epochs and (each.change, each.promised) == (one.change, one.promised)
            ]
            agreed = begun + sealed
            if len(agreed) >= self.electorate.majority:
                promised = max(each.promised for each in agreed)
                lease = inherited([each.lease for each in agreed], self.longest)
                return ConfInstallMsg(one.config, one.change, promised, lease)
        return None

    def jump(self) -> Electorate | None:
        """The present voters, if a majority names the same voters, and they are later ones."""
        told = [_present(each) for each in self.said.values()]
        for one in told:
            if one.number > self.electorate.number and one.resembles(self.electorate):
                if told.count(one) >= self.electorate.majority:
                    return one
        return None

    def witnesses(self, electorate: Electorate) -> tuple[MemberId, ...]:
        """The members that have named these voters, as the next or as the present ones."""
        told = {who: (_present(each), _next(each)) for who, each in self.said.items()}
        return tuple(sorted(who for who, both in told.items() if electorate in both))

    def furthest(self) -> int:
        """The highest number that any voter has named."""
        return max((each.config for each in self.said.values()), default=0)


def _present(answer: ConfInfoMsg) -> Electorate:
    return Electorate(answer.config, tuple(sorted(answer.voters)))


def _next(answer: ConfInfoMsg) -> Electorate | None:
    return None if answer.step is None else after(answer.step)


def inherited(leases: list[Lease | None], longest: float) -> Lease | None:
    """The lease with which the next configuration begins, from the last voters' answers."""
    known = [lease for lease in leases if lease is not None]
    if not known:
        return None
    last = max(known, key=lambda lease: lease.token)
    live = {(each.holder, each.incarnation, each.token): each for each in known if each.ttl}
    if not live:
        return Lease(last.holder, last.incarnation, last.token, 0.0)
    if len(live) == 1 and (last.holder, last.incarnation, last.token) in live:
        ttl = min(longest, max(each.ttl for each in known))
        return Lease(last.holder, last.incarnation, last.token, ttl)
    return Lease(0, 0, last.token, longest)
