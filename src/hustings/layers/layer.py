"""The base of every layer: it stands between an election and its world, and looks like both.

A layer is an election that contains another one, `inner`. To the world it is an election: it has
handlers, a leader and a term. To the inner election it is the world: it passes on events, in a
context that it may have changed. A world need not know how many layers there are.

A subclass says what it adds:

- its own messages, in `messages`, with a handler for each, marked with `@upon`. All other kinds
  belong to the inner election and go to `on_inner`;
- what it changes in the context, and what it does after the inner election has acted, in
  `run_inner`. Each hook of a world that a subclass does not override is passed on through
  `run_inner`;
- its own timers, in `on_timer`. Their keys must differ from those of all elections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import ClassVar, TypeVar

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, Handler
from hustings.core.errors import ProtocolBug
from hustings.core.guard import Verdict
from hustings.core.messages import Message, kind_of

L = TypeVar("L", bound="Layer")


class Layer(Election):
    """`inner` with an addition. Unless a subclass says otherwise, the leader is `inner`'s.

    There are no slots: two instances may hold different elections, so `handlers` belongs to the
    instance and hides the class's.
    """

    adds: ClassVar[str] = "a layer like this"  # an addition that no election needs twice
    # kinds of the inner election that the layer handles
    intercepts: ClassVar[tuple[type[Message], ...]] = ()

    def __init__(self, inner: Election) -> None:
        # The base would set leader and term, which belong to the inner election.
        self.config = inner.config
        self.choice = inner.choice
        self.inner = inner
        self.handlers = routes(type(self), tuple(inner.handlers))

    # What it shows of the inner election

    @property
    def leader(self) -> MemberId | None:
        """The inner election's leader, also during a handler."""
        return self.inner.leader

    @leader.setter
    def leader(self, leader: MemberId | None) -> None:
        self.inner.leader = leader

    @property
    def term(self) -> int:
        """The inner election's term."""
        return self.inner.term

    @term.setter
    def term(self, term: int) -> None:
        self.inner.term = term

    @property
    def seats(self) -> int:
        """The inner election's number of seats."""
        return self.inner.seats

    @property
    def leaders(self) -> tuple[MemberId, ...]:
        """The inner election's leaders."""
        return self.inner.leaders

    def state(self) -> str:
        return self.inner.state()

    # How the inner election is reached

    def run_inner(self, ctx: Context, act: Callable[..., None], *about: object) -> None:
        """Let the inner election act: `act(context, *about)`, in the context made for it."""
        act(ctx, *about)

    def run_at(self, ctx: Context, layer: Election, act: Callable[[Context], None]) -> None:
        """Let a layer further inside act, in the context in which a world would call it."""
        if layer is self:
            act(ctx)
        elif isinstance(self.inner, Layer):
            self.run_inner(ctx, self.inner.run_at, layer, act)
        elif layer is self.inner:
            self.run_inner(ctx, act)
        else:
            raise ProtocolBug(f"{type(layer).__name__} is not among the layers of this member")

    def unwrap(self, message: Message) -> Message:
        """The inner election's message, if this message carries one; else the message itself."""
        return message

    def on_inner(self, ctx: Context, sender: MemberId, message: Message) -> None:
        """Handle a message of the inner election."""
        self.run_inner(ctx, self._hand_on, sender, message)

    def _hand_on(self, ctx: Context, sender: MemberId, message: Message) -> None:
        inner = self.inner
        inner.handlers[type(message)](inner, ctx, sender, message)

    # What a world calls

    def start(self, ctx: Context) -> None:
        self.run_inner(ctx, self.inner.start)

    def call(self, ctx: Context) -> None:
        self.run_inner(ctx, self.inner.call)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.run_inner(ctx, self.inner.on_timer, key)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.run_inner(ctx, self.inner.on_suspect, member)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.run_inner(ctx, self.inner.on_alive, member)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        self.run_inner(ctx, self.inner.on_verdict, verdict)

    def woke(self, ctx: Context, gap: float) -> None:
        self.run_inner(ctx, self.inner.woke, gap)

    def leave(self, ctx: Context) -> None:
        self.run_inner(ctx, self.inner.leave)

    def affirm(self, ctx: Context) -> None:
        self.run_inner(ctx, self.inner.affirm)

    def assume_leader(self, ctx: Context, leader: MemberId, term: int) -> None:
        self.run_inner(ctx, self.inner.assume_leader, leader, term)


@lru_cache(maxsize=256)
def routes(kind: type[Layer], kinds: tuple[type[Message], ...]) -> Mapping[type[Message], Handler]:
    """The handler for each kind of message, in a layer of this class above these kinds.

    Members of one kind share one table.
    """
    clash = [own for own in kind.handlers if own in kinds and own not in kind.intercepts]
    if clash:
        tags = ", ".join(kind_of(each) for each in clash)
        raise ProtocolBug(f"an election that handles {tags} has {kind.adds} already")
    return {**dict.fromkeys(kinds, kind.on_inner), **kind.handlers}


def innermost(election: Election) -> Election:
    """The election inside all layers."""
    while isinstance(election, Layer):
        election = election.inner
    return election


def unwrapped(election: Election, message: Message) -> tuple[Election, Message]:
    """The election inside all layers, and its message inside this one."""
    while isinstance(election, Layer):
        message = election.unwrap(message)
        election = election.inner
    return election, message


def find(kind: type[L], election: Election) -> L | None:
    """The outermost layer of this kind, if there is one."""
    while isinstance(election, Layer):
        if isinstance(election, kind):
            return election
        election = election.inner
    return None
