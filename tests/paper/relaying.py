"""What the tests of the probabilistic election share: one member, and rounds with chosen relays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from hustings.core.choice import Candidate, MemberId, parse_choice
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.hashing import Blake2
from hustings.protocols.probabilistic.messages import Call, FinalMsg, InitMsg, PreferMsg
from hustings.testing import Declare, Effect, Multicast, RecordedMember, Send, SetTimer, view_of

FIVE = (1, 2, 3, 4, 5)
T_3 = 1.0  # delta, unless set


def maker(choice: str = "highest-id", **settings: object) -> Callable[[], Probabilistic]:
    config = Probabilistic.Settings.parse(settings)
    return lambda: Probabilistic(config, parse_choice(choice))


def member(
    me: MemberId, ids: Iterable[MemberId] = FIVE, *, choice: str = "highest-id", **settings: object
) -> RecordedMember:
    """A started member that knows `ids`; it takes the group to be of their number unless told."""
    known = [Candidate(each) for each in ids]
    settings.setdefault("N", len(known))
    made = RecordedMember(maker(choice, **settings), Candidate(me), view_of(known), seed=1)
    made.start()
    return made


def inside(driven: RecordedMember) -> Probabilistic:
    assert isinstance(driven.election, Probabilistic)
    return driven.election


def hash_of(each: MemberId, call: Call, number: int = 1) -> float:
    """The hash of a member with a round, worked out from scratch."""
    text = b".".join(b"%d" % part for part in (*call.order, number))
    return Blake2("").of(each, text)


@cache
def call_of(
    relays: tuple[MemberId, ...],
    *,
    among: tuple[MemberId, ...] = FIVE,
    K: float = 2,
    number: int = 1,
    sequence: int = 1,
    without: tuple[MemberId, ...] = (),
) -> Call:
    """A call by member 1 in whose round `number` just these members of the group pass the filter.

    They are those whose hash times the size of the group is less than K.
    """
    for nonce in range(100_000):
        call = Call(sequence, 1, nonce, without)
        passed = tuple(each for each in among if hash_of(each, call, number) * len(among) < K)
        if passed == relays:
            return call
    raise AssertionError(f"no call lets {relays} pass")


def init(call: Call, number: int = 1, wait: float = T_3) -> InitMsg:
    return InitMsg(call, number, wait)


def prefer(
    call: Call, sender: MemberId, best: MemberId, number: int = 1, left: float = 3.0
) -> PreferMsg:
    return PreferMsg(call, number, Candidate(sender), Candidate(best), left)


def final(call: Call, best: MemberId, number: int = 1) -> FinalMsg:
    return FinalMsg(call, number, Candidate(best))


# What effects say


def told(effects: list[Effect]) -> dict[MemberId, MemberId]:
    """To whom which choice was sent; twice to the same member is an error."""
    sent = [
        (each.to, each.message.best.id)
        for each in effects
        if isinstance(each, Send) and isinstance(each.message, PreferMsg)
    ]
    assert len(dict(sent)) == len(sent)
    return dict(sent)


def multicasts(effects: list[Effect]) -> list[Message]:
    return [each.message for each in effects if isinstance(each, Multicast)]


def finals(effects: list[Effect]) -> list[MemberId]:
    return [each.best.id for each in multicasts(effects) if isinstance(each, FinalMsg)]


def inits(effects: list[Effect]) -> list[InitMsg]:
    return [each for each in multicasts(effects) if isinstance(each, InitMsg)]


def declared(effects: list[Effect]) -> list[Outcome]:
    return [each.outcome for each in effects if isinstance(each, Declare)]


def armed(effects: list[Effect]) -> dict[object, float]:
    return {each.key: each.delay for each in effects if isinstance(each, SetTimer)}


def elected(driven: RecordedMember, call: Call, leader: MemberId) -> RecordedMember:
    """Bring a member to hold a leader by the first round of a call."""
    driven.deliver(leader, final(call, leader))
    driven.fire("T_1")
    assert driven.election.leader == leader
    return driven
