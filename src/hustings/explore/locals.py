"""One member of an explored group: its states, numbered, and how each input changes them.

A handler is a function of the member's state, the time and the input. So each such triple runs
once, on a copy of the real election, and the result is looked up from then on. Two states are the
same if their canonical encodings are equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Elected, Outcome
from hustings.core.streams import Stream, derive
from hustings.core.view import View
from hustings.explore.encoding import encode

MAX_SETTLING = 10_000  # messages and timers


@dataclass(slots=True)
class LocalState:
    """The whole state of a member at one moment; it never changes once it has its number."""

    member: MemberId
    up: bool
    incarnation: int
    election: Election | None  # None while it is down
    stored: Mapping[str, object]
    timers: dict[TimerKey, tuple[float, bool]]  # deadline, and whether it is eager
    outcome: Outcome | None
    rng: Stream

    @property
    def leads(self) -> bool:
        """Whether the member takes itself for the leader."""
        outcome = self.outcome
        return self.up and isinstance(outcome, Elected) and outcome.leader == self.member


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a handler did: the state after it, and what the member sent."""

    after: int  # the state's number
    stored_only: (
        int  # the state if the member crashes before it sends anything: down, with its storage
    )
    sends: tuple[tuple[MemberId, Message], ...]
    stores: bool
    said: tuple[Outcome, ...]


class ForkContext:
    """The context of one handler call on a copy of a member."""

    __slots__ = ("_group", "_state", "_time", "said", "sends", "stores")

    def __init__(self, group: ExploredGroup, state: LocalState, time: float) -> None:
        self._group = group
        self._state = state
        self._time = time
        self.sends: list[tuple[MemberId, Message]] = []
        self.said: list[Outcome] = []
        self.stores = False

    @property
    def me(self) -> Candidate:
        return self._group.candidates[self._state.member]

    @property
    def view(self) -> View:
        return self._group.view

    @property
    def rng(self) -> Stream:
        return self._state.rng

    @property
    def incarnation(self) -> int:
        return self._state.incarnation

    @property
    def stored(self) -> Mapping[str, object]:
        return self._state.stored

    def now(self) -> float:
        return self._time

    def send(self, to: MemberId, message: Message) -> None:
        self.sends.append((to, message))

    def multicast(self, message: Message) -> None:
        if self._group.multicasts:
            self.sends += [(to, message) for to in self._group.view.ids if to != self._state.member]

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        if not delay >= 0:
            raise ProtocolBug(f"member {self._state.member} armed timer {key!r} with delay {delay}")
        self._state.timers.pop(key, None)
        if delay != float("inf"):
            self._state.timers[key] = self._time + delay, eager

    def cancel_timer(self, key: TimerKey) -> None:
        self._state.timers.pop(key, None)

    def persist(self, **fields: object) -> None:
        self._state.stored = {**self._state.stored, **fields}
        self.stores = True

    def declare(self, outcome: Outcome) -> None:
        self._state.outcome = outcome
        self.said.append(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        raise ProtocolBug(f"member {self._state.member} turns to a guard outside the group")

    def release(self, request: int) -> None:
        raise ProtocolBug(f"member {self._state.member} turns to a guard outside the group")


@dataclass(frozen=True, slots=True)
class Input:
    """Something that happens to one member."""

    what: str  # start, call, timer, message, suspect
    key: TimerKey = ""
    sender: MemberId = 0  # or the member that the input is about
    message: Message | None = None

    def __str__(self) -> str:
        match self.what:
            case "timer":
                name = self.key if isinstance(self.key, str) else f"{self.key[0]} {self.key[1]}"
                return f"timer {name} fires"
            case "message":
                return f"receives {self.message} from {self.sender}"
            case "suspect":
                return f"suspects {self.sender}"
            case _:
                return {"start": "starts", "call": "calls an election"}[self.what]


class OrderMatters(Exception):
    """Two states that differ only in the order of some dict behave differently."""


@dataclass(slots=True)
class ExploredGroup:
    """The members, their states by number, and the known results of handlers.

    Without `ordered`, states that differ only in the order of dicts' entries count as one. Every
    such variant is tried with every input that any of them gets. If two variants ever behave
    differently, `OrderMatters` is raised.
    """

    makers: Mapping[MemberId, Callable[[], Election]]
    candidates: Mapping[MemberId, Candidate]
    seed: int = 0
    multicasts: bool = True  # whether a multicast arrives at all
    ordered: bool = False
    stored: Mapping[MemberId, Mapping[str, object]] = field(default_factory=dict)  # at the start
    view: View = field(init=False)
    states: list[LocalState] = field(default_factory=list)  # one of each kind
    handled: int = 0  # handlers that ran, and were not looked up
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _alike: list[dict[bytes, LocalState]] = field(default_factory=list)  # each one's variants
    _reactions: list[dict[tuple[float, Input], Reaction]] = field(default_factory=list)
    _untried: list[tuple[int, LocalState]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.view = View(dict(self.candidates), sorted(self.candidates))

    def fresh(self, member: MemberId) -> int:
        """A member that is not up yet, with the group's initial contents on its disk."""
        stored = self.stored.get(member, {})
        return self._number(LocalState(member, False, 0, None, stored, {}, None, Stream(0)))

    def react(self, number: int, time: float, given: Input) -> Reaction:
        """What a member in this state does when it gets an input."""
        known = self._reactions[number].get((time, given))
        if known is None:
            found = [self._run(each, time, given) for each in self._alike[number].values()]
            known = self._reactions[number][time, given] = found[0]
            self._compare(known, found[1:])
            self._try_untried()
        return known

    def _try_untried(self) -> None:
        """Give a state in a new order all inputs that its variants have had."""
        while self._untried:
            number, state = self._untried.pop()
            for (time, given), known in list(self._reactions[number].items()):
                self._compare(known, [self._run(state, time, given)])

    def _compare(self, known: Reaction, others: list[Reaction]) -> None:
        if any(other != known for other in others):
            raise OrderMatters

    def crash(self, number: int) -> int:
        """The member goes down; it keeps what it stored."""
        return self._number(_down(self.states[number]))

    def start(self, number: int, time: float, *, wiped: bool = False) -> Reaction:
        """A member that is down comes up as a new incarnation."""
        return self.react(number, time, Input("start", sender=int(wiped)))

    def _run(self, before: LocalState, time: float, given: Input) -> Reaction:
        """Let the handler change a copy of the state."""
        self.handled += 1
        state = self._copy(before) if before.up else self._begun(before, wiped=given.sender == 1)
        if given.what == "timer":
            del state.timers[given.key]  # a timer fires once, unless a handler arms it again
        ctx = ForkContext(self, state, time)
        assert state.election is not None
        _invoke(state.election, ctx, given)
        after = self._number(state)
        return Reaction(
            after=after,
            stored_only=self._number(_down(state)),
            sends=tuple(ctx.sends),
            stores=ctx.stores,
            said=tuple(ctx.said),
        )

    def _begun(self, state: LocalState, *, wiped: bool) -> LocalState:
        incarnation = state.incarnation + 1
        return LocalState(
            member=state.member,
            up=True,
            incarnation=incarnation,
            election=self.makers[state.member](),
            stored={} if wiped else state.stored,
            timers={},
            outcome=None,
            rng=Stream(derive(self.seed, "member", state.member, incarnation)),
        )

    def _number(self, state: LocalState) -> int:
        whole = (
            state.member,
            state.up,
            state.incarnation,
            state.election,
            sorted(state.stored.items()),
            sorted(state.timers.items(), key=lambda timer: str(timer[0])),
            state.outcome,
            state.rng,
        )
        form = encode(whole)
        number = self._numbers.setdefault(
            form if self.ordered else encode(whole, ordered=False), len(self.states)
        )
        if number == len(self.states):
            self.states.append(state)
            self._alike.append({form: state})
            self._reactions.append({})
        elif form not in self._alike[number]:
            self._alike[number][form] = state
            self._untried.append((number, state))
        return number

    def _copy(self, state: LocalState) -> LocalState:
        """A copy to work on; it shares what never changes."""
        assert state.election is not None
        shared: dict[int, object] = {}
        _keep(state.election, shared)
        return LocalState(
            member=state.member,
            up=state.up,
            incarnation=state.incarnation,
            election=deepcopy(state.election, shared),
            stored=state.stored,
            timers=dict(state.timers),
            outcome=state.outcome,
            rng=deepcopy(state.rng),
        )


def _down(state: LocalState) -> LocalState:
    return LocalState(
        state.member, False, state.incarnation, None, state.stored, {}, None, Stream(0)
    )


def settled(group: ExploredGroup) -> dict[MemberId, Mapping[str, object]]:
    """What members have stored when all have started and nothing more can happen.

    Every message arrives, in order; when none is under way, the next timer fires.
    """
    numbers = {member: group.fresh(member) for member in group.view.ids}
    flights: deque[tuple[MemberId, MemberId, Message]] = deque()

    def note(member: MemberId, reaction: Reaction) -> None:
        numbers[member] = reaction.after
        flights.extend((member, to, message) for to, message in reaction.sends)

    for member, number in numbers.items():
        note(member, group.start(number, 0.0))
    now = 0.0
    for _ in range(MAX_SETTLING):
        if flights:
            sender, to, message = flights.popleft()
            heard = Input("message", sender=sender, message=message)
            note(to, group.react(numbers[to], now, heard))
            continue
        armed = [
            (deadline, member, str(key), key)
            for member, number in numbers.items()
            for key, (deadline, _) in group.states[number].timers.items()
        ]
        if not armed:
            return {member: group.states[number].stored for member, number in numbers.items()}
        now, member, _, key = min(armed, key=lambda timer: timer[:3])
        note(member, group.react(numbers[member], now, Input("timer", key=key)))
    raise ProtocolBug(f"{MAX_SETTLING:,} steps do not settle the group")


def _invoke(election: Election, ctx: Context, given: Input) -> None:
    match given.what:
        case "start":
            election.start(ctx)
        case "call":
            election.call(ctx)
        case "timer":
            election.on_timer(ctx, given.key)
        case "suspect":
            election.on_suspect(ctx, given.sender)
        case _:
            message = given.message
            assert message is not None
            handler = election.handlers.get(type(message))
            if handler is None:
                raise ProtocolBug(f"a member received {kind_of(message)}, which it does not handle")
            handler(election, ctx, given.sender, message)


def _keep(election: Election, shared: dict[int, object]) -> None:
    """Share configurations, choices and tables of handlers, in every layer."""
    constant = [election.config, election.choice, election.handlers]
    for value in vars(election).values() if hasattr(election, "__dict__") else ():
        if isinstance(value, Election):
            _keep(value, shared)
        elif isinstance(value, Config | Choice):
            constant.append(value)
    for value in constant:
        shared[id(value)] = value
