"""The search: breadth first, so that the first counterexample is a shortest one.

Time is discrete and all clocks agree. Within a tick messages arrive in any order. Each message
arrives within `delay` ticks after its sending. The exceptions are `losses` messages, which are lost
or arrive at any later time. Timers fire when they are due: eager timers before anything else at
their instant, all others before the next tick, in any order with the arrivals.

At most `crashes` times a member goes down: after a handler, or inside one. In a crash inside a
handler, what the handler stored is kept, and what it sent is lost. The member restarts at a later
tick and gets none of the messages that were under way to it, except late ones. With `at_once` it
may also restart in the same tick, and then it gets all of them. At most `wipes` times it restarts
with an empty disk. Between two of its handlers a member does nothing, so a crash there equals a
crash after the first of them.

Other members notice a crash within `delay` ticks, perhaps before the last messages of the crashed
member arrive. A member that receives such a message after it noticed the crash notices the crash
once more, as with any detector.

Before the search `check_explorable` refuses, with a sentence, an election that cannot be explored.
A search judges groups at rest: nothing more can happen, and all members hold one leader that is up.
So an election must come to rest, in every schedule and not only in most.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from math import ceil, floor, inf

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import TimerKey
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.core.rounds import RoundBased
from hustings.core.streams import Stream
from hustings.explore.encoding import encode
from hustings.explore.locals import ExploredGroup, ForkContext, Input, LocalState, Reaction
from hustings.explore.values import (
    LATE,
    Broken,
    Ending,
    HandlerFate,
    InFlight,
    Label,
    Laws,
    Progress,
    SearchLimits,
    SearchResult,
    State,
    Step,
    TokenSeen,
)

MOST_TIMERS = 100  # of a lone member; one that has fired this many never comes to rest


class NotExplorable(BadInput):
    """No schedule of this election can be judged; the sentence says why."""


def check_explorable(kind: type[Election], make: Callable[[], Election]) -> None:
    """Refuse an election about which a search could say nothing."""
    name = kind.about.name
    if issubclass(kind, RoundBased):
        raise NotExplorable(
            f"{name} cannot be explored: it elects one leader with some probability, so schedules "
            f"without one are no defect; hustings sim {name} shows how often that is"
        )
    if not comes_to_rest(make):
        raise NotExplorable(
            f"{name} cannot be explored: its members announce themselves for ever, and a schedule "
            "is judged when nothing is left to happen; "
            f"hustings swarm --protocol {name} draws schedules"
        )


def comes_to_rest(make: Callable[[], Election]) -> bool:
    """Whether a lone member falls silent; found by trying, so it works for any election."""
    me = Candidate(1)
    group = ExploredGroup({1: make}, {1: me})
    election = make()
    state = LocalState(1, True, 1, election, {}, {}, None, Stream(0))
    election.start(ForkContext(group, state, 0.0))
    election.call(ForkContext(group, state, 0.0))
    for _ in range(MOST_TIMERS):
        if not state.timers:
            return True
        key = min(state.timers, key=lambda each: (state.timers[each][0], str(each)))
        due, _ = state.timers.pop(key)
        election.on_timer(ForkContext(group, state, due), key)
    return False


NOBODY = -1
BEGIN: Label = ("begin", 0, "", HandlerFate.LIVES)
Clock = tuple[float, tuple[tuple[int, TimerKey], ...]]  # first eager deadline, and other timers


class Search:
    """All schedules of one group within limits."""

    def __init__(
        self, group: ExploredGroup, limits: SearchLimits, laws: Laws, calls: Sequence[MemberId] = ()
    ) -> None:
        """`calls`: the members that call an election once all have started."""
        self.group = group
        self.limits = limits
        self.laws = laws
        self.ids = group.view.ids
        self.place = {member: place for place, member in enumerate(self.ids)}
        self.calls = tuple(calls)
        self.transitions = 0
        self.rests = 0
        self.cut = 0
        self._instants: list[float] = []
        self._instant_numbers: dict[float, int] = {}
        self._flights: list[InFlight] = []
        self._flight_numbers: dict[bytes, int] = {}
        self._grants: list[TokenSeen] = [TokenSeen(0, 0, 0)]
        self._grant_numbers: dict[TokenSeen, int] = {self._grants[0]: 0}
        self._clocks: list[Clock] = []
        self._arrivals: dict[tuple[int, int, int], tuple[Reaction, tuple[int, ...]] | None] = {}
        self._parents = array("q")
        self._labels: list[Label] = []
        self._same_label: dict[Label, Label] = {}

    # The search

    def run(self, progress: Progress | None = None) -> SearchResult:
        """Try everything, or stop at the first violation or at the limit."""
        try:
            first = self._begin()
        except Broken as error:
            return self._found(Ending.BROKEN, 0, str(error), NOBODY, None)
        met = {_form(first)}
        self._remember(NOBODY, BEGIN)
        layer = [(0, first)]
        depth = 0
        while layer:
            following: list[tuple[int, State]] = []
            for number, state in layer:
                try:
                    choices = self._choices(state, first=number == 0)
                except Broken as error:
                    return self._found(Ending.BROKEN, depth, str(error), number, None)
                for label in choices:
                    self.transitions += 1
                    try:
                        after = self._take(state, label)
                    except Broken as error:
                        return self._found(Ending.BROKEN, depth + 1, str(error), number, label)
                    form = _form(after)
                    if form in met:
                        continue
                    met.add(form)
                    following.append((len(self._labels), after))
                    self._remember(number, label)
                    if len(met) >= self.limits.max_states:
                        return self._found(Ending.MAX_STATES, depth + 1, "", NOBODY, None)
                if progress is not None and not number % 2_000:
                    progress(len(met), len(layer) + len(following))
            layer = following
            depth += bool(layer)
        judged = self.rests or not self.laws.agreed
        ending = Ending.EXHAUSTED if judged else Ending.UNJUDGED
        return self._found(ending, depth, "", NOBODY, None)

    def _remember(self, parent: int, label: Label) -> None:
        self._parents.append(parent)
        self._labels.append(self._same_label.setdefault(label, label))

    def _found(
        self, ending: Ending, depth: int, why: str, number: int, last: Label | None
    ) -> SearchResult:
        return SearchResult(
            ending=ending,
            states=len(self._labels),
            transitions=self.transitions,
            handlers=self.group.handled,
            depth=depth,
            grants=len(self._grants) - 1,
            rests=self.rests,
            cut=self.cut,
            why=why,
            steps=() if ending is not Ending.BROKEN else tuple(self._tell(number, last)),
        )

    # What may happen

    def _choices(self, state: State, *, first: bool) -> list[Label]:
        """All that may happen next; an eager timer that is due leaves no choice."""
        instant, members, flights, crashes, losses, wipes, _ = state
        now = self._instants[instant]
        choices: list[Label] = []
        timers = awake = False
        for place, number in enumerate(members):
            eager, others = self._clock(number)
            if eager <= now:
                key = self._first_eager(number)
                return [("timer", place, key, HandlerFate.LIVES)]
            awake = awake or bool(others) or eager < inf
            for due, key in others:
                if due <= now:
                    timers = True
                    choices += self._fates(state, ("timer", place, key, HandlerFate.LIVES))
        overdue, coming = 0, False
        for place, flight in enumerate(flights):
            due = self._flights[flight].due
            coming = coming or due != LATE
            overdue += LATE < due <= now
            if not place or flights[place - 1] != flight:  # one of two equal messages is enough
                choices += self._fates(state, ("arrive", flight, "", HandlerFate.LIVES))
        if first and crashes:
            for place in range(len(members)):
                choices += [
                    ("crash", place, "", fate) for fate in _deaths(self.limits, wipes, inside=False)
                ]
        if not awake and not coming:
            self._judge_rest(state)
        elif not timers and overdue <= losses:
            if now < self.limits.ticks:
                choices.append(("tick", NOBODY, "", HandlerFate.LIVES))
            else:
                self.cut += 1
        if now < self.limits.ticks and not timers and overdue <= losses:
            for place, number in enumerate(members):
                if not self.group.states[number].up:
                    choices.append(("tick", place, "", HandlerFate.LIVES))
                    if wipes:
                        choices.append(("tick", place, "", HandlerFate.WIPED))
        return choices

    def _fates(self, state: State, label: Label) -> list[Label]:
        """The member that handles it stays up, or crashes inside the handler, or after it."""
        if not state[3]:
            return [label]
        known = self._reaction(state, label)
        if known is None:
            return [label]
        return [
            label,
            *(
                (*label[:3], fate)
                for fate in _deaths(self.limits, state[5], inside=known[0].stores)
            ),
        ]

    def _reaction(self, state: State, label: Label) -> tuple[Reaction, tuple[int, ...]] | None:
        """What the member does, and the messages that it sends; None if it is down."""
        what, number, key, _ = label
        instant = state[0]
        if what == "timer":
            reaction = self.group.react(
                state[1][number], self._instants[instant], Input("timer", key=key)
            )
            return reaction, self._sent(instant, number, reaction)
        place = self.place[self._flights[number].to]
        known = state[1][place], instant, number
        if known not in self._arrivals:
            found = None
            if self.group.states[known[0]].up:
                given = self._flights[number].given
                reaction = self.group.react(known[0], self._instants[instant], given)
                found = reaction, self._sent(instant, place, reaction)
            self._arrivals[known] = found
        return self._arrivals[known]

    def _sent(self, instant: int, place: int, reaction: Reaction) -> tuple[int, ...]:
        due = floor(self._instants[instant]) + self.limits.delay
        member = self.ids[place]
        return tuple(
            self._flight(InFlight(member, to, message, due)) for to, message in reaction.sends
        )

    # The results

    def _begin(self) -> State:
        """All start in the order of their ids, then some call an election."""
        members = tuple(self.group.fresh(member) for member in self.ids)
        limits = self.limits
        first = self._instant(0.0)
        state: State = (first, members, (), limits.crashes, limits.losses, limits.wipes, 0)
        begun = [self.group.start(number, 0.0) for number in members]
        state = (first, tuple(each.after for each in begun), *state[2:])
        for place, reaction in enumerate(begun):  # what each sends arrives: all members are up
            state = self._handled(state, place, reaction)
        for member in self.calls:
            place = self.place[member]
            state = self._handled(
                state, place, self.group.react(state[1][place], 0.0, Input("call"))
            )
        return state

    def _handled(self, state: State, place: int, reaction: Reaction) -> State:
        return self._after(state, place, reaction, self._sent(state[0], place, reaction), state[2])

    def _take(self, state: State, label: Label) -> State:
        """The state after the step."""
        what, number, _, fate = label
        if what == "tick":
            return self._tick(state, number, wiped=fate is HandlerFate.WIPED)
        if what == "crash":
            return self._die(state, number, self.group.crash(state[1][number]), fate)
        known = self._reaction(state, label)
        place = number if what == "timer" else self.place[self._flights[number].to]
        left = state[2] if what == "timer" else _without(state[2], number)
        if known is None:
            return (*state[:2], left, *state[3:])
        reaction, sent = known
        if what == "arrive":
            left = self._suspected_anew(state, self._flights[number], left)
        if fate.inside:
            return self._die((*state[:2], left, *state[3:]), place, reaction.stored_only, fate)
        after = self._after(state, place, reaction, sent, left)
        return (
            after
            if fate is HandlerFate.LIVES
            else self._die(after, place, reaction.stored_only, fate)
        )

    def _after(
        self,
        state: State,
        place: int,
        reaction: Reaction,
        sent: tuple[int, ...],
        flights: tuple[int, ...],
    ) -> State:
        """A member has handled something; its messages are under way to members that are up."""
        instant, members, _, crashes, losses, wipes, last = state
        members = _replaced(members, place, reaction.after)
        if self.laws.leased and reaction.said:
            last = self._judge_claims(members, place, reaction, last)
        if sent:
            flights = tuple(sorted((*flights, *self._to_living(members, sent))))
        return instant, members, flights, crashes, losses, wipes, last

    def _to_living(self, members: tuple[int, ...], sent: tuple[int, ...]) -> list[int]:
        states, flights, place = self.group.states, self._flights, self.place
        return [each for each in sent if states[members[place[flights[each].to]]].up]

    def _die(self, state: State, place: int, down: int, fate: HandlerFate) -> State:
        """A member crashes, and restarts at once or not."""
        instant, members, flights, crashes, losses, wipes, last = state
        dead: State = (
            instant, _replaced(members, place, down), flights, crashes - 1, losses, wipes, last
        )  # fmt: skip
        if fate.returns:
            return self._back(dead, place, wiped=fate.wiped)
        member = self.ids[place]
        left = [
            each
            for each in flights
            if self._flights[each].to != member or self._flights[each].due == LATE
        ]
        if self.laws.agreed:  # other members notice, within the delay of a message
            due = floor(self._instants[instant]) + self.limits.delay
            news = [
                self._flight(InFlight(member, to, None, due)) for to in self.ids if to != member
            ]
            left += self._to_living(dead[1], tuple(news))
        return (*dead[:2], tuple(sorted(left)), *dead[3:])

    def _suspected_anew(
        self, state: State, heard: InFlight, flights: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Suspect a crashed member again once one of its messages has restored trust in it."""
        sender = self.group.states[state[1][self.place[heard.sender]]]
        if not self.laws.agreed or heard.message is None or sender.up:
            return flights
        due = floor(self._instants[state[0]]) + self.limits.delay
        for each in flights:
            flight = self._flights[each]
            if flight.message is None and (flight.sender, flight.to) == (heard.sender, heard.to):
                return flights
        return tuple(sorted((*flights, self._flight(InFlight(heard.sender, heard.to, None, due)))))

    def _back(self, state: State, place: int, *, wiped: bool) -> State:
        """A member restarts; suspicions of it that have not been reported yet are dropped."""
        member = self.ids[place]
        reaction = self.group.start(state[1][place], self._instants[state[0]], wiped=wiped)
        left = tuple(
            each
            for each in state[2]
            if self._flights[each].message is not None or self._flights[each].sender != member
        )
        begun = (*state[:2], left, *state[3:5], state[5] - wiped, state[6])
        return self._handled(begun, place, reaction)

    def _tick(self, state: State, place: int, *, wiped: bool) -> State:
        """Time goes on; messages overdue by now become late, and perhaps a member restarts."""
        instant, members, flights, crashes, losses, wipes, last = state
        now = self._instants[instant]
        left = []
        for number in flights:
            flight = self._flights[number]
            if LATE < flight.due <= now:
                losses -= 1
                left.append(self._flight(InFlight(flight.sender, flight.to, flight.message, LATE)))
            else:
                left.append(number)
        later = min(floor(now) + 1.0, *(self._clock(number)[0] for number in members))
        ticked: State = (
            self._instant(later), members, tuple(sorted(left)), crashes, losses, wipes, last
        )  # fmt: skip
        return ticked if place == NOBODY else self._back(ticked, place, wiped=wiped)

    # What must hold

    def _judge_claims(
        self, members: tuple[int, ...], place: int, reaction: Reaction, last: int
    ) -> int:
        states = self.group.states
        local = states[members[place]]
        for outcome in reaction.said:
            if not isinstance(outcome, Elected) or outcome.leader != local.member:
                continue
            before = self._grants[last]
            grant = TokenSeen(outcome.term, local.member, local.incarnation)
            if grant == before:
                continue
            if grant.token <= before.token:
                raise Broken(
                    f"member {grant.member} leads with token {grant.token} after member "
                    f"{before.member} led with {before.token}"
                )
            last = self._grant_numbers.setdefault(grant, len(self._grants))
            if last == len(self._grants):
                self._grants.append(grant)
        leading = [states[number].member for number in members if states[number].leads]
        if len(leading) > 1:
            raise Broken(f"members {leading[0]} and {leading[1]} lead at one time")
        return last

    def _judge_rest(self, state: State) -> None:
        """Judge a state in which nothing more can happen."""
        self.rests += 1
        if not self.laws.agreed:
            return
        locals_ = [self.group.states[number] for number in state[1]]
        up = [each for each in locals_ if each.up]
        held = {
            each.member: each.outcome.leader if isinstance(each.outcome, Elected) else None
            for each in up
        }
        leaders = list(dict.fromkeys(held.values()))
        if len(leaders) > 1 or None in leaders:
            told = ", ".join(f"{member} holds {leader}" for member, leader in held.items())
            raise Broken(f"nothing is left to happen, and members do not agree: {told}")
        if leaders and leaders[0] not in held:
            raise Broken(f"nothing is left to happen, and the leader {leaders[0]} is down")

    # Numbers

    def _instant(self, time: float) -> int:
        number = self._instant_numbers.setdefault(time, len(self._instants))
        if number == len(self._instants):
            self._instants.append(time)
        return number

    def _flight(self, flight: InFlight) -> int:
        form = encode((flight.sender, flight.to, flight.message, flight.due))
        number = self._flight_numbers.setdefault(form, len(self._flights))
        if number == len(self._flights):
            self._flights.append(flight)
        return number

    def _clock(self, number: int) -> Clock:
        for state in self.group.states[len(self._clocks) : number + 1]:
            timers = state.timers.items()
            self._clocks.append(
                (
                    min((due for _, (due, eager) in timers if eager), default=inf),
                    tuple((ceil(due), key) for key, (due, eager) in timers if not eager),
                )
            )
        return self._clocks[number]

    def _first_eager(self, number: int) -> TimerKey:
        timers = self.group.states[number].timers.items()
        return min((due, str(key), key) for key, (due, eager) in timers if eager)[2]

    # Words

    def _tell(self, number: int, last: Label | None) -> Iterator[Step]:
        """The path to a state, and the step that violates a law there."""
        labels = [] if last is None else [last]
        while number > 0:
            labels.append(self._labels[number])
            number = self._parents[number]
        yield Step(0.0, "all start", ())
        if not labels:
            return  # the start alone violated it
        state = self._begin()
        for place, label in enumerate(reversed(labels), 1):
            if label[0] != "tick" or label[1] != NOBODY:
                yield self._words(state, label)
            if last is None or place < len(labels):
                state = self._take(state, label)

    def _words(self, state: State, label: Label) -> Step:
        what, number, key, fate = label
        now = self._instants[state[0]]
        if what == "tick":
            return Step(floor(now) + 1.0, f"{self.ids[number]} restarts{fate.words}")
        if what == "crash":
            return Step(now, f"{self.ids[number]} starts{fate.words}")
        if what == "timer":
            told = f"{self.ids[number]}: {Input('timer', key=key)}"
        else:
            flight = self._flights[number]
            late = ", late" if flight.due == LATE else ""
            told = f"{flight.to} {flight.given}{late}"
        known = self._reaction(state, label)
        if known is None:
            return Step(now, f"{told}, but is down")
        said = [f"declares {outcome}" for outcome in known[0].said]
        said += [f"sends {message} to {to}" for to, message in known[0].sends]
        return Step(now, told + fate.words, () if fate.inside else tuple(said))


def _deaths(limits: SearchLimits, wipes: int, *, inside: bool) -> list[HandlerFate]:
    """How a member may crash: also `inside` a handler, where that makes a difference."""
    return [
        fate
        for fate in HandlerFate
        if fate not in (HandlerFate.LIVES, HandlerFate.WIPED)
        and (inside or not fate.inside)
        and (limits.at_once or not fate.returns)
        and (wipes or not fate.wiped)
    ]


def _form(state: State) -> bytes:
    """A digest of the canonical encoding: each number stands for one encoding."""
    instant, members, flights, *rest = state
    numbers = array("q", (instant, *rest, *members, NOBODY, *flights))
    return blake2b(numbers.tobytes(), digest_size=16).digest()


def _without(flights: tuple[int, ...], number: int) -> tuple[int, ...]:
    place = flights.index(number)
    return flights[:place] + flights[place + 1 :]


def _replaced(members: tuple[int, ...], place: int, number: int) -> tuple[int, ...]:
    return (*members[:place], number, *members[place + 1 :])
