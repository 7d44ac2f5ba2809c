"""An election that says what it is told to say, and a member under a guard to drive it with."""

from __future__ import annotations

from typing import Self

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.guard import Granted, Held
from hustings.core.messages import Message
from hustings.core.outcome import Elected, Outcome
from hustings.layers.lease import LeaseConfig, LeaseHeldMsg, LeaseLayer
from hustings.testing import Effect, RecordedMember, view_of

LEASE = LeaseConfig(ttl=30.0, drift=0.2, retry=3.0)
WINDOW = 20.0  # 30 * 0.8 / 1.2
ME = Candidate(2)
GROUP = [Candidate(1), ME, Candidate(3)]


class SayMsg(Message, frozen=True, tag="SAY"):
    """Makes the puppet that gets it declare something."""

    outcome: Outcome


class Puppet(Election):
    """Says what it is told to say."""

    messages = (SayMsg,)

    def __init__(self) -> None:
        super().__init__(Config(), HighestId())
        self.heard: list[object] = []

    @upon(SayMsg)
    def on_say(self, ctx: Context, sender: MemberId, message: SayMsg) -> None:
        self.heard.append(message)
        ctx.declare(message.outcome)

    def call(self, ctx: Context) -> None:
        self.heard.append("call")

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.heard.append(key)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.heard.append(("suspect", member))

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.heard.append(("alive", member))

    def leave(self, ctx: Context) -> None:
        self.heard.append("leave")


class Driven:
    """A member under a guard, with the inner election's strings in hand."""

    def __init__(self, wrap: type[LeaseLayer] = LeaseLayer) -> None:
        self.member = RecordedMember(lambda: wrap(Puppet(), LEASE), ME, view_of(GROUP))
        self.member.start()

    @property
    def election(self) -> LeaseLayer:
        election = self.member.election
        assert isinstance(election, LeaseLayer)
        return election

    @property
    def heard(self) -> list[object]:
        inner = self.election.inner
        assert isinstance(inner, Puppet)
        return inner.heard

    @property
    def outcome(self) -> Outcome | None:
        return self.member.outcome

    def at(self, clock: float) -> Self:
        self.member.clock = clock
        return self

    def say(self, outcome: Outcome) -> list[Effect]:
        return self.member.deliver(1, SayMsg(outcome))

    def nominate(self) -> list[Effect]:
        return self.say(Elected(ME.id, 1))

    def grant(self, token: int = 7, request: int | None = None, ttl: float = 30.0) -> list[Effect]:
        number = self.election.request if request is None else request
        return self.member.answer(Granted(number, token, ttl))

    def refuse(
        self, holder: int = 3, token: int = 6, remaining: float = 9.0, request: int | None = None
    ) -> list[Effect]:
        number = self.election.request if request is None else request
        return self.member.answer(Held(number, holder, token, remaining))

    def hear(self, leader: int, token: int) -> list[Effect]:
        return self.member.deliver(leader, LeaseHeldMsg(leader, token))


def granted_at_102() -> Driven:
    """Asked at 100, answered at 102: until 120."""
    driven = Driven().at(100.0)
    driven.nominate()
    driven.at(102.0).grant()
    return driven
