"""A group in memory, driven by hand: messages wait until delivered, timers until fired.

There is no network. The test chooses the order of events, and `settle` chooses the simplest. All
members read one clock, which moves only when a timer fires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import TimerKey
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug, UnknownName
from hustings.core.guard import Verdict
from hustings.core.messages import Message, kind_of
from hustings.core.view import View
from hustings.testing.effects import CancelTimer, Effect, Multicast, Send, SetTimer
from hustings.testing.recorded import RecordedMember
from hustings.testing.script_text import effect_text, link_text, timer_text, verdict_text


class ScriptedStatus(Enum):
    """Whether a member takes part."""

    OUT = "not started"
    UP = "up"
    DOWN = "down"
    LEFT = "gone"


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedMessage:
    """A message under way; two with the same content are two messages."""

    sender: MemberId
    to: MemberId
    message: Message

    def __str__(self) -> str:
        return link_text(self.sender, self.to, self.message)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A timer under way."""

    member: MemberId
    key: TimerKey
    deadline: float

    def __str__(self) -> str:
        return f"{self.member} {timer_text(self.key)} at {self.deadline:g}"


@dataclass(frozen=True, slots=True)
class ScriptedStep:
    """One thing that happened, and its visible effects, a line each.

    Cancelling a timer that was not armed changes nothing and is not shown.
    """

    title: str
    effects: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The title, and below it the effects, indented."""
        return [self.title, *(f"  {effect}" for effect in self.effects)]


class ScriptedGroup:
    """Recorded members, the messages between them, and who is up."""

    def __init__(
        self,
        elect: Callable[[], Election],
        candidates: Sequence[Candidate],
        *,
        seed: int = 0,
        leader: MemberId | None = None,
        down: Sequence[MemberId] = (),
    ) -> None:
        """No member is started yet. Members that start take `leader` for elected in term 1.

        Members in `down` have crashed before the script begins, and are missing from the views if
        the election assumes views of live members only.
        """
        directory = {candidate.id: candidate for candidate in candidates}
        self.members: dict[MemberId, RecordedMember] = {}
        self.standing: dict[MemberId, ScriptedStatus] = {}
        self.flight: list[ScriptedMessage] = []
        self.sent: Counter[str] = Counter()
        self.now = 0.0
        self._leader = leader
        for me in sorted(directory):
            self.members[me] = RecordedMember(
                elect, directory[me], View(directory, sorted(directory)), seed=seed
            )
            self.standing[me] = ScriptedStatus.OUT
        for member in down:
            self.member(member).incarnation = 1
            self.standing[member] = ScriptedStatus.DOWN
            if self.member(member).election.assumptions.live_view:
                self._forget(member)

    # Questions

    def member(self, member: MemberId) -> RecordedMember:
        """A member by id."""
        if member not in self.members:
            raise UnknownName("member", str(member), [str(other) for other in self.members])
        return self.members[member]

    def up(self) -> list[MemberId]:
        """Members that are up, by id."""
        return [member for member, how in self.standing.items() if how is ScriptedStatus.UP]

    def timers(self) -> list[Waiting]:
        """Armed timers as `settle` fires them: by deadline, then eager first, then as armed."""
        found = [
            (armed.deadline, not armed.eager, armed.since, member, place, key)
            for member in self.up()
            for place, (key, armed) in enumerate(self.members[member].timers.items())
        ]
        return [Waiting(it[3], it[5], it[0]) for it in sorted(found, key=lambda it: it[:5])]

    # Events

    def start(self, members: Sequence[MemberId]) -> list[ScriptedStep]:
        """Members join; then each member that starts takes the given leader as elected."""
        for member in members:
            if self._standing(member) is not ScriptedStatus.OUT:
                raise BadInput(f"member {member} is {self._standing(member).value}: use restart")
        steps = []
        for member in members:
            self.standing[member] = ScriptedStatus.UP
            steps.append(self._step(f"{member} starts", member, self.members[member].start))
        if self._leader is not None:
            assumed = [self._assume(member, self._leader) for member in members]
            steps += [step for step in assumed if step.effects]
        return steps

    def restart(self, member: MemberId) -> ScriptedStep:
        """A member that was up before comes back as a new incarnation; all views know it."""
        if self._standing(member) is ScriptedStatus.OUT:
            raise BadInput(f"member {member} has not been started: use start")
        self.standing[member] = ScriptedStatus.UP
        self.members[member].timers.clear()  # they ended with the last incarnation
        for other in self.members.values():
            other.view.add(member)
        number = self.members[member].incarnation + 1
        title = f"{member} restarts, incarnation {number}"
        return self._step(title, member, self.members[member].start)

    def crash(self, member: MemberId) -> ScriptedStep:
        """Fail-stop. What it has sent stays under way."""
        self._must_be_up(member)
        self.standing[member] = ScriptedStatus.DOWN
        return ScriptedStep(f"{member} is down")

    def leave(self, member: MemberId) -> ScriptedStep:
        """A member departs in good order, and all views forget it."""
        self._must_be_up(member)
        step = self._step(f"{member} leaves", member, self.members[member].leave)
        self.standing[member] = ScriptedStatus.LEFT
        self._forget(member)
        return step

    def call(self, member: MemberId) -> ScriptedStep:
        """A member calls an election."""
        self._must_be_up(member)
        return self._step(f"{member} calls", member, self.members[member].call)

    def suspect(self, member: MemberId, about: MemberId) -> ScriptedStep:
        """A member's detector suspects another, rightly or not."""
        self._must_be_up(member)
        title = f"{member} suspects {about}"
        return self._step(title, member, lambda: self.members[member].suspect(about))

    def alive(self, member: MemberId, about: MemberId) -> ScriptedStep:
        """A member's detector takes a suspicion back."""
        self._must_be_up(member)
        title = f"{member} trusts {about} again"
        return self._step(title, member, lambda: self.members[member].alive(about))

    def answer(self, member: MemberId, verdict: Verdict) -> ScriptedStep:
        """The guard answers a member."""
        self._must_be_up(member)
        title = f"{member} is {verdict_text(verdict)}"
        return self._step(title, member, lambda: self.members[member].answer(verdict))

    def deliver(self, envelope: ScriptedMessage) -> ScriptedStep:
        """A message arrives, or is lost because its receiver is down."""
        self._take(envelope)
        receiver = self.members[envelope.to]
        if self.standing[envelope.to] is not ScriptedStatus.UP:
            return ScriptedStep(
                f"{envelope} is lost: {envelope.to} is {self.standing[envelope.to].value}"
            )
        return self._step(
            str(envelope),
            envelope.to,
            lambda: receiver.deliver(envelope.sender, envelope.message),
        )

    def drop(self, envelope: ScriptedMessage) -> ScriptedStep:
        """A message is lost."""
        self._take(envelope)
        return ScriptedStep(f"{envelope} is dropped")

    def duplicate(self, envelope: ScriptedMessage) -> ScriptedStep:
        """The network makes a copy, which travels behind everything now under way."""
        self.flight.append(ScriptedMessage(envelope.sender, envelope.to, envelope.message))
        return ScriptedStep(f"{envelope} is doubled")

    def fire(self, member: MemberId, key: TimerKey) -> ScriptedStep:
        """An armed timer expires; the clock moves to its deadline, never back."""
        self._must_be_up(member)
        driven = self.members[member]
        if key not in driven.timers:
            armed = [timer_text(other) for other in driven.timers]
            raise UnknownName(f"armed timer of member {member}", timer_text(key), armed)
        self.now = max(self.now, driven.timers[key].deadline)
        title = f"{member} {timer_text(key)} fires at {self.now:g}"
        return self._step(title, member, lambda: driven.fire(key), fired=key)

    def settle(self, limit: int) -> tuple[list[ScriptedStep], bool]:
        """Deliver in the order of sending; when nothing is under way, fire the next timer; repeat.

        The second result says whether this came to an end within `limit` steps.
        """
        steps: list[ScriptedStep] = []
        while len(steps) < limit:
            if self.flight:
                steps.append(self.deliver(self.flight[0]))
            elif timers := self.timers():
                steps.append(self.fire(timers[0].member, timers[0].key))
            else:
                return steps, True
        return steps, not self.flight and not self.timers()

    # Inside

    def _standing(self, member: MemberId) -> ScriptedStatus:
        self.member(member)
        return self.standing[member]

    def _must_be_up(self, member: MemberId) -> None:
        if self._standing(member) is not ScriptedStatus.UP:
            raise BadInput(f"member {member} is {self.standing[member].value}")

    def _forget(self, member: MemberId) -> None:
        for other in self.members.values():
            if other.me.id != member:
                other.view.remove(member)

    def _assume(self, member: MemberId, leader: MemberId) -> ScriptedStep:
        title = f"{member} takes {leader} for leader"
        return self._step(title, member, lambda: self.members[member].assume_leader(leader))

    def _take(self, envelope: ScriptedMessage) -> None:
        self.flight = [other for other in self.flight if other is not envelope]

    def _step(
        self,
        title: str,
        member: MemberId,
        act: Callable[[], list[Effect]],
        fired: TimerKey | None = None,
    ) -> ScriptedStep:
        driven = self.members[member]
        driven.clock = self.now
        armed = {key for key in driven.timers if key != fired}
        effects = act()
        shown: list[str] = []
        for effect in effects:
            if isinstance(effect, CancelTimer):
                if effect.key not in armed:
                    continue
                armed.discard(effect.key)
            elif isinstance(effect, SetTimer):
                armed.add(effect.key)
            elif isinstance(effect, Send | Multicast):
                self._post(member, effect)
            shown.append(effect_text(member, effect))
        return ScriptedStep(title, tuple(shown))

    def _post(self, sender: MemberId, effect: Send | Multicast) -> None:
        self.sent[kind_of(effect.message)] += 1
        if isinstance(effect, Send):
            if effect.to not in self.members:
                raise ProtocolBug(f"member {sender} sent to {effect.to}, which does not exist")
            self.flight.append(ScriptedMessage(sender, effect.to, effect.message))
            return
        for member, standing in self.standing.items():
            if member != sender and standing is not ScriptedStatus.LEFT:
                self.flight.append(ScriptedMessage(sender, member, effect.message))
