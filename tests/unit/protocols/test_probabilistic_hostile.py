"""The probabilistic election and what nobody promised: strangers, forgeries, the number one.

The last test sends anything to one member under many settings. No handler raises, nobody is elected
who cannot be ranked, and a member always waits for something or for nothing.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, candidate
from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.protocols.probabilistic.messages import (
    MAX_SEQUENCE,
    MAX_WITHOUT,
    Call,
    FinalMsg,
    InitMsg,
    PreferMsg,
)
from hustings.testing import Effect, RecordedMember, Send, view_of
from tests.paper.relaying import (
    call_of,
    declared,
    elected,
    final,
    finals,
    init,
    inits,
    inside,
    maker,
    member,
    prefer,
    told,
)

CALL = call_of((2, 3))


def test_a_caller_with_a_number_long_past_is_told_what_holds_now() -> None:
    held = Call(9, 2, 1)
    stale = call_of((1,), sequence=3)
    driven = elected(member(1, K=2), held, 5)
    assert driven.deliver(4, init(stale)) == [Send(4, FinalMsg(held, 1, Candidate(5)))]
    caller = member(4, K=2)
    caller.deliver(1, final(held, 5))
    caller.fire("T_1")
    assert caller.outcome == Elected(5, 41)


def test_only_a_few_tell_it() -> None:
    driven = elected(member(2, K=2), Call(9, 2, 1), 5)
    assert driven.deliver(4, init(call_of((1,), sequence=3))) == []


def test_who_holds_nobody_tells_nothing() -> None:
    driven = elected(member(1, K=2, thinning="hash", max_rounds=1), Call(8, 2, 1), 5)
    driven.deliver(1, init(call_of((2, 3), sequence=9)))
    driven.fire("T_1")
    assert driven.election.leader is None
    assert driven.deliver(4, init(call_of((1,), sequence=3))) == []


@pytest.mark.parametrize("sequence", [0, -1, 2**32 + 1, 2**48, 2**200])
def test_absurd_sequence_numbers_teach_nothing(sequence: int) -> None:
    driven = member(1, K=9, join_on_contact=True)
    call = Call(sequence, 2, 7)
    assert driven.deliver(2, init(call)) == []
    assert driven.deliver(2, final(call, 5)) == []
    assert driven.deliver(2, prefer(call, 2, 5)) == []
    assert inside(driven).current.sequence == 0


def test_a_call_that_rules_out_very_many_is_not_heard() -> None:
    driven = member(1, K=9)
    assert driven.deliver(2, init(Call(1, 2, 7, tuple(range(17))))) == []
    assert driven.deliver(2, init(Call(1, 2, 7, tuple(range(100, 116))))) != []


def test_nobody_speaks_in_anothers_name() -> None:
    driven = member(2, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(CALL))
    assert driven.deliver(4, prefer(CALL, 3, 5)) == []


def test_who_cannot_be_ranked_is_not_chosen() -> None:
    group = [candidate(each, cpu=each) for each in (1, 2, 3)]
    for best in (Candidate(9), candidate(9, load=1), Candidate(9, (("cpu", float("nan")),))):
        driven = RecordedMember(
            maker("highest:cpu", N=3, K=9), group[0], view_of(group[:2]), seed=1
        )
        driven.start()
        driven.deliver(2, init(CALL))
        assert driven.deliver(2, PreferMsg(CALL, 1, group[1], best, 3.0)) == []
        assert driven.deliver(3, PreferMsg(CALL, 1, Candidate(3), group[2], 3.0)) == []
        assert told(driven.deliver(2, PreferMsg(CALL, 1, group[1], group[2], 3.0))) == {2: 3}
        assert finals(driven.fire("T_2")) == [3]


def test_nor_is_a_final_that_opens_a_round_with_such_a_name() -> None:
    group = [candidate(each, cpu=each) for each in (1, 2, 3)]
    driven = RecordedMember(maker("highest:cpu", N=3), group[0], view_of(group), seed=1)
    driven.start()
    assert driven.deliver(2, FinalMsg(CALL, 1, Candidate(9))) == []


def test_one_alone_elects_itself() -> None:
    driven = member(1, (1,))
    driven.call()
    for key in ("begin", "T_2", "T_1"):
        driven.fire(key)
    assert driven.outcome == Elected(1, 1)
    assert driven.timers == {}


def test_one_that_knows_nobody_prefers_itself() -> None:
    driven = member(3, (3,), N=5, K=9)
    assert told(driven.deliver(1, init(CALL))) == {}
    assert finals(driven.fire("T_2")) == [3]
    assert declared(driven.fire("T_1")) == [Elected(3, 1)]


def test_terms_grow_with_sequence_and_round() -> None:
    driven = member(1, K=2)
    terms = []
    for sequence, number in ((1, 1), (1, 4), (2, 1), (2, 5), (7, 3)):
        driven.deliver(2, final(Call(sequence, 2, 1), 5, number))
        driven.fire("T_1")
        terms.append(driven.election.term)
    assert terms == [1, 4, 6, 10, 33]


def test_who_begins_in_the_middle_goes_on_counting() -> None:
    driven = member(1, K=9)
    driven.assume_leader(5, 1)
    (opened,) = inits(driven.suspect(5))
    assert (opened.call.sequence, opened.call.without) == (2, (5,))


# Anything at all

ME = 3
SETTINGS: list[dict[str, object]] = [
    {"N": 5},
    {"N": 5, "K": 2, "thinning": "all", "p_mcastl": 0.3},
    {"N": 5, "K": 2, "thinning": "hash", "join_on_contact": True},
    {"estimate": "view", "strategy": "1,N", "T_2": 0.5},
    {"max_rounds": 1, "K": 0.5},
    {"max_rounds": 2, "W": 0.5, "p_mcastl": 1.0, "p_fail": 1.0},
]
values = st.sampled_from([0.0, 0.5, 2.0, -1.0, 1e300, nan, inf, -inf])
candidates = st.builds(
    lambda each, own: Candidate(each, tuple(sorted(own.items()))),
    st.integers(-1, 7),
    st.dictionaries(st.sampled_from(["load", "cpu"]), values, max_size=2),
)
sequences = st.sampled_from([0, 1, 1, 2, 2, 3, -4, 2**48, 2**48 + 1, 2**200])
calls = st.builds(
    Call,
    sequences,
    st.integers(-1, 6),
    st.integers(-1, 2),
    st.lists(st.integers(1, 6), max_size=3).map(tuple),
)
rounds = st.sampled_from([1, 1, 1, 2, 2, 3, 5, 0, -1, 2**200])
moments = st.sampled_from([0.0, 1.0, 3.0, -1.0, 1e300, nan, inf, -inf])
honest = st.integers(1, 6).map(lambda each: Candidate(each, (("load", each / 4),)))
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(InitMsg, calls, rounds, moments),
    st.builds(PreferMsg, calls, rounds, candidates | honest, candidates | honest, moments),
    st.builds(FinalMsg, calls, rounds, candidates | honest),
)
# About the round that the member is in, by members that say who they are: else little happens.
timely = st.tuples(
    st.just("timely"), st.integers(1, 6), st.sampled_from(["init", "prefer", "final"]), honest
)
inputs = st.one_of(
    timely,
    timely,
    st.tuples(st.just("deliver"), st.integers(-1, 6), messages),
    st.tuples(st.just("fire"), st.integers(0, 2)),
    st.tuples(st.just("fire"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["suspect", "alive"]), st.integers(0, 7)),
    st.sampled_from([("call",), ("call",), ("restart",), ("wait",)]),
)


def do(driven: RecordedMember, what: tuple[Any, ...]) -> list[Effect]:
    name, *about = what
    election = inside(driven)
    call, number = election.expected or (election.current, election.round)
    if name == "fire":
        due = sorted(driven.timers, key=lambda key: driven.timers[key].deadline)
        return driven.fire(due[about[0] % len(due)]) if due else []
    if name == "wait":
        driven.clock += 0.25
        return []
    if name == "timely":
        sender, kind, best = about
        call = Call(*call.order, call.without)  # equal, not the same: as from a wire
        me = Candidate(sender, (("load", sender / 4),))
        made: dict[str, Message] = {
            "init": InitMsg(call, number + 1, 1.0),
            "prefer": PreferMsg(call, number, me, best, 1.0),
            "final": FinalMsg(call, number, best),
        }
        return driven.deliver(sender, made[kind])
    return list(getattr(driven, name)(*about))


def check_state(driven: RecordedMember) -> None:
    election = inside(driven)
    due = {"idle": set(), "pausing": {"W"}, "relaying": {"T_2"}, "waiting": {"T_1"}}
    expected = due.get(election.phase, {"T_1"}) | ({"begin"} if election.expected else set())
    assert set(driven.timers) == expected
    assert all(0 <= timer.deadline < inf for timer in driven.timers.values())
    if isinstance(driven.outcome, Elected):
        assert driven.outcome.term >= 1
        assert driven.outcome.leader == election.leader
        assert driven.outcome.risk is None or 0.0 <= driven.outcome.risk <= 1.0
    else:
        assert election.leader is None
    known = [*election.grown.values(), *([election.held] if election.held else [])]
    for other in known:
        assert election.choice.can_rank(other)
    assert ME not in election.relays
    assert election.current.sequence <= MAX_SEQUENCE
    assert len(election.gone) <= MAX_WITHOUT


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@given(data=st.data())
def test_nothing_is_too_strange(settings: dict[str, object], data: st.DataObject) -> None:
    choice = data.draw(st.sampled_from(["highest-id", "lowest-id", "lowest:load"]))
    group = [Candidate(each, (("load", each / 4),)) for each in range(1, 6)]
    ids = data.draw(st.sampled_from([(1, 2, 3, 4, 5), (3, 4), (3,)]))
    driven = RecordedMember(
        maker(choice, **settings),
        group[ME - 1],
        view_of([each for each in group if each.id in ids]),
        seed=1,
    )
    driven.start()
    sequence = 0
    for what in data.draw(st.lists(inputs, max_size=40)):
        do(driven, what)
        check_state(driven)
        assert inside(driven).current.sequence >= sequence
        sequence = inside(driven).current.sequence
