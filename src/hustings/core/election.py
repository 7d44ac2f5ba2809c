"""The base of every election: handlers in, effects through the context, nothing else.

Law of this file and of everything built on it: no clock, no socket, no global randomness, no
logging, no thread, no await. A protocol learns and does everything through the context of the call.
It keeps no context beyond the call.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.errors import ProtocolBug
from hustings.core.guard import Verdict
from hustings.core.messages import Message, is_reserved, kind_of
from hustings.core.outcome import Elected, GaveUp, Guarantee, NoLeader


class Claim(NamedTuple):
    """What a member says when it says that it leads, or passes on that another one does."""

    term: int
    repeated: bool = False  # it has said so before, and was not contradicted since
    leader: MemberId | None = None  # the one that leads, if the sender passes on a result


E = TypeVar("E")
M = TypeVar("M", bound=Message)
Handler = Callable[[Any, Context, MemberId, Any], None]


def upon(
    *kinds: type[M],
) -> Callable[
    [Callable[[E, Context, MemberId, M], None]], Callable[[E, Context, MemberId, M], None]
]:
    """Mark a method as the handler of one kind of message, or of several similar kinds."""

    def mark(
        handler: Callable[[E, Context, MemberId, M], None],
    ) -> Callable[[E, Context, MemberId, M], None]:
        handler.__dict__["_upon"] = kinds
        return handler

    return mark


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a protocol assumes. A world provides what it can, and warns about the rest."""

    live_view: bool = False  # the view holds the live members only (another part repairs it)
    reliable: bool = True  # every message to a live member arrives within delta
    displaces: bool = True  # a better member that appears takes over from a living leader
    agrees: bool = True  # in the end all members have one leader; a baseline may not need this
    announces: bool = False  # leads by announcing itself: needs no detector
    repeats: bool = True  # a member that announces does so for ever; False: it stops
    partial_views: bool = False  # works where members know only a part of the group
    ranks_by: str | None = None  # what members compare, where that is not the choice function


@dataclass(frozen=True, slots=True)
class About:
    """A protocol's line in the registry."""

    name: str  # as typed: hyphens
    family: str
    paper: str
    idea: str
    model: str
    guarantee: Guarantee
    cost: str
    promises: str  # what holds, and what does not


def explain(error: KeyError) -> None:
    """Say whose mistake it is if a failed lookup was for a kind of message.

    A table of handlers is a plain dict, because that is the quickest. So a world gets a bare
    `KeyError` if a protocol sends a kind that it does not handle.
    """
    kind = error.args[0] if error.args else None
    if isinstance(kind, type) and issubclass(kind, Message):
        raise ProtocolBug(f"a member received {kind_of(kind)}, which it does not handle") from error


class Election(ABC):
    """One member's part in an election.

    A subclass lists its message kinds in `messages` and marks one handler for each with `@upon`. If
    a handler is missing, or there is one too many, or a layer reserves the tag, the class
    definition fails. `leader` and `term` are this member's present belief.
    """

    __slots__ = ("choice", "config", "leader", "term")

    about: ClassVar[About]
    assumptions: ClassVar[Assumptions] = Assumptions()
    Settings: ClassVar[type[Config]] = Config
    messages: ClassVar[tuple[type[Message], ...]] = ()
    handlers: Mapping[type[Message], Handler] = {}

    def __init__(self, config: Config, choice: Choice) -> None:
        self.config = config
        self.choice = choice
        self.leader: MemberId | None = None
        self.term = 0

    @property
    def seats(self) -> int:
        """How many leaders the group should have."""
        return 1

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """All leaders that this member knows of, the best first."""
        return () if self.leader is None else (self.leader,)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found: dict[type[Message], Handler] = {}
        for base in reversed(cls.__mro__):
            for attribute in vars(base).values():
                for kind in getattr(attribute, "_upon", ()):
                    found[kind] = attribute
        missing = [kind_of(kind) for kind in cls.messages if kind not in found]
        if missing:
            raise ProtocolBug(f"{cls.__name__} has no handler for {', '.join(missing)}")
        extra = [kind_of(kind) for kind in found if kind not in cls.messages]
        if extra:
            raise ProtocolBug(f"{cls.__name__} handles {', '.join(extra)}, not in its messages")
        taken = [kind_of(kind) for kind in cls.messages if is_reserved(kind)]
        if taken:
            raise ProtocolBug(
                f"{cls.__name__} has a message with the tag {', '.join(taken)}, which the network "
                "layer reserves: give it another tag"
            )
        cls.handlers = found

    # What a world calls. Each default does nothing, so a protocol overrides what it needs.

    def start(self, ctx: Context) -> None:
        """The member joins, or comes back as a new incarnation."""

    def call(self, ctx: Context) -> None:
        """The owner calls an election; a member runs at most one at a time."""

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        """A timer that this member armed has expired."""

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        """The failure detector suspects a member."""

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        """The failure detector takes a suspicion back."""

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        """The guard answers a request of this member, perhaps late or twice."""

    def woke(self, ctx: Context, gap: float) -> None:
        """The world noticed that this member did not run for `gap`: others may have moved on."""

    def leave(self, ctx: Context) -> None:
        """The member departs in good order."""

    def can_rank(self, candidate: Candidate) -> bool:
        """Whether it can rank a candidate in a message. A world refuses the other candidates."""
        return self.choice.can_rank(candidate)

    def implies(self, message: Message) -> int:
        """The term that a message leads to, if that is none of the message's own numbers; else 0.

        A world that limits terms asks this before it delivers a message.
        """
        return 0

    def claim_of(self, message: Message) -> Claim | None:
        """What a message says of the leader, if it is a claim or a result; else None."""
        return None

    def affirm(self, ctx: Context) -> None:
        """This member was elected a while ago and begins to lead now.

        If others have claimed its term meanwhile, it takes its new term now, and not later.
        """

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        """Begin in the middle: `leader` was elected before this run began."""
        self.leader = leader
        self.term = term

    # What a protocol calls.

    def elect(self, ctx: Context, leader: MemberId, term: int, risk: float | None = None) -> None:
        """Take `leader` for the leader and declare it."""
        self.leader = leader
        self.term = term
        ctx.declare(Elected(leader, term, risk))

    def outranks(self, ctx: Context, one: MemberId | None, other: MemberId | None) -> bool:
        """Whether both are known and the first is better."""
        view = ctx.view
        if one is None or other is None or one not in view or other not in view:
            return False
        return self.choice.better(view.candidate(one), view.candidate(other))

    def remember(self, ctx: Context) -> None:
        """Store the term, so that it grows across restarts, too."""
        ctx.persist(term=self.term)

    def recall(self, ctx: Context) -> None:
        """Load the term that an earlier incarnation stored."""
        stored = ctx.stored.get("term")
        if isinstance(stored, int) and stored > self.term:
            self.term = stored

    def disown(self, ctx: Context, reason: str) -> None:
        """Have no leader any more, and declare it."""
        self.leader = None
        ctx.declare(NoLeader(reason))

    def give_up(self, ctx: Context, reason: str) -> None:
        """Stop trying, because a bound was reached."""
        self.leader = None
        ctx.declare(GaveUp(reason))

    def state(self) -> str:
        """One line for traces and golden scripts; a protocol may say more."""
        return f"leader={self.leader} term={self.term}"
