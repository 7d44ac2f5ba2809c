"""Whatever peers, detectors and owners do, an announcing member goes on.

Random inputs, most of them nonsense, to one member of every announcing election under many
settings. No handler raises; nobody is followed that cannot be ranked or is not the sender; the
timers are those of the phase; terms never fall.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, parse_choice
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.protocols.announce.le_s_printed import LeSPrinted
from hustings.protocols.announce.machine import (
    ANNOUNCE,
    GONE,
    LISTEN,
    MAX_TERM,
    QUERY,
    SUPPRESS,
    Machine,
)
from hustings.protocols.announce.messages import AnnounceMsg, ByeMsg, QueryMsg
from hustings.protocols.announce.sup_al import SupAl
from hustings.protocols.registry import ANNOUNCING, classes, find
from hustings.testing import Declare, RecordedMember, view_of

ME = 3
KINDS: list[type[Election]] = [*classes(ANNOUNCING), LeSPrinted, SupAl]
SETTINGS: dict[str, list[dict[str, object]]] = {
    "le-a": [{}, {"query": "query"}, {"leaders": 2}, {"bye": 2, "bye_gap": 0.5}],
    "le-s": [
        {},
        {"T_S": 0},
        {"wake": "criterion"},
        {"wake": "linked", "link": 0.7},
        {"law": "exponential", "aged": 3},
        {"query": "suppress-query", "leaders": 3},
        {"bye_loss": 0.5, "T_L": inf},
        {"leaders": 2, "aged": 2},
    ],
    "le-m": [{}, {"key": "relative"}, {"leaders": 2}, {"query": "suppress-query", "aged": 2}],
    "sup": [{}],
    "al": [{}, {"T_L": 3}],
    "le-s-printed": [{}],
    "sup-al": [{}, {"yields": False}, {"T_L": inf, "law": "exponential"}],
    "sup-al-random": [{}, {"suppress": False}, {"T_L": 3, "T_S": 0}],
}
CASES = [(name, given) for name, every in SETTINGS.items() for given in every]

values = st.sampled_from([0.0, 0.25, 0.5, 0.75, -1.0, 1e300, nan, inf, -inf])
attributes = st.sampled_from(["load", "wake", "other"])
candidates = st.builds(
    lambda member, own: Candidate(member, tuple(sorted(own.items()))),
    st.integers(-1, 6),
    st.dictionaries(attributes, values, max_size=2),
)
terms = st.sampled_from([0, 1, 2, 3, 7, -5, MAX_TERM - 1, MAX_TERM, MAX_TERM + 1, 2**200])
numbers = st.sampled_from([1, 2, 0, -1, 2**200])
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(AnnounceMsg, terms, numbers, candidates),
    st.builds(QueryMsg, candidates),
    st.builds(ByeMsg, terms),
)
# Most senders say who they are: else nothing would ever be heard.
honest = st.builds(
    lambda sender, term, load: (
        "deliver",
        sender,
        AnnounceMsg(term, 1, Candidate(sender, (("load", load), ("wake", load)))),
    ),
    st.integers(1, 6),
    terms,
    values,
)
inputs = st.one_of(
    honest,
    honest,
    st.tuples(st.just("deliver"), st.integers(-1, 6), messages),
    st.tuples(st.just("fire"), st.integers(0, 3)),
    st.tuples(st.just("fire"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["suspect", "alive"]), st.integers(0, 7)),
    st.sampled_from([("call",), ("leave",), ("start",)]),
)


def member_of(kind: type[Election], settings: dict[str, object], choice: str) -> RecordedMember:
    group = [Candidate(i, (("load", i / 4),)) for i in range(1, 6)]
    config = kind.Settings.parse(settings)
    return RecordedMember(
        lambda: kind(config, parse_choice(choice)), group[ME - 1], view_of(group), seed=1
    )


def do(member: RecordedMember, what: tuple[Any, ...]) -> list[Any]:
    name, *about = what
    if name == "fire":
        armed = sorted(member.timers.items(), key=lambda item: item[1].deadline)
        if not armed:
            return []
        key, timer = armed[about[0] % len(armed)]
        if timer.deadline == inf:
            return []
        member.clock = max(member.clock, timer.deadline)
        return list(member.fire(key))
    if name == "deliver" and type(about[1]) not in member.election.messages:
        return []
    return list(getattr(member, name)(*about))


def check_machine(member: RecordedMember, election: Machine) -> None:
    mine = {key for key, timer in member.timers.items() if timer.deadline < inf}
    own = {key for key in mine if key in ("T_S", "T_A", "T_Q")}
    expected = {SUPPRESS: {"T_S"}, ANNOUNCE: {"T_A"}, QUERY: {"T_Q"}, LISTEN: set(), GONE: set()}
    assert own == expected[election.phase]
    followed = election.following.leaders
    assert (election.phase == LISTEN) == (len(followed) == election.config.leaders)
    if election.config.listen < inf:
        assert {leader.timer for leader in followed} <= mine
    assert "answer" not in mine or election.phase == ANNOUNCE
    for leader in followed:
        assert leader.id == leader.candidate.id != ME
        assert all(-inf < value < inf for value in election.order.key(leader.candidate))
    assert election.leader == (followed[0].id if followed else ME)


@pytest.mark.parametrize("name, settings", CASES, ids=str)
@given(data=st.data())
def test_nothing_is_too_strange(
    name: str, settings: dict[str, object], data: st.DataObject
) -> None:
    choice = data.draw(st.sampled_from(["highest-id", "lowest-id", "lowest:load"]))
    member = member_of(find(name), settings, choice)
    member.start()
    term = 0
    here = True
    for what in data.draw(st.lists(inputs, max_size=30)):
        here = (here or what == ("start",)) and what != ("leave",)
        effects = do(member, what) if here or what == ("leave",) else []
        for effect in effects:
            if isinstance(effect, Declare) and isinstance(effect.outcome, Elected):
                assert term <= effect.outcome.term <= MAX_TERM
                term = effect.outcome.term
        election = member.election
        assert 0 <= election.term <= MAX_TERM
        if isinstance(election, Machine) and here:
            check_machine(member, election)


def test_every_kind_is_tried() -> None:
    assert {kind.about.name for kind in KINDS} == set(SETTINGS)


def heard(message: Message, sender: int, **settings: object) -> Machine:
    member = member_of(find("le-s"), settings, "lowest:load")
    member.start()
    member.deliver(sender, message)
    assert isinstance(member.election, Machine)
    return member.election


def test_a_stranger_is_followed_by_what_it_says_of_itself() -> None:
    """Member 9 is in nobody's view."""
    stranger = Candidate(9, (("load", 0.1),))
    assert heard(AnnounceMsg(1, 1, stranger), 9).leader == 9
    assert heard(AnnounceMsg(1, 1, Candidate(9, (("load", 0.9),))), 9).leader == ME


@pytest.mark.parametrize(
    "message, sender",
    [
        (AnnounceMsg(1, 1, Candidate(2, (("load", 0.1),))), 1),  # in somebody else's name
        (AnnounceMsg(1, 1, Candidate(2)), 2),  # without what we rank by
        (AnnounceMsg(1, 1, Candidate(2, (("load", nan),))), 2),
        (AnnounceMsg(1, 1, Candidate(2, (("load", -inf),))), 2),
        (AnnounceMsg(0, 1, Candidate(2, (("load", 0.1),))), 2),  # a claim to no term
        (AnnounceMsg(-3, 1, Candidate(2, (("load", 0.1),))), 2),
        (AnnounceMsg(9, 1, Candidate(ME, (("load", 0.1),))), ME),  # an echo of oneself
    ],
)
def test_what_is_not_heard(message: Message, sender: int) -> None:
    election = heard(message, sender)
    assert (election.leader, election.term, election.contested) == (ME, 0, False)


def test_a_forged_term_teaches_nothing_but_its_sender_is_followed() -> None:
    election = heard(AnnounceMsg(2**200, 1, Candidate(1, (("load", 0.1),))), 1)
    assert (election.leader, election.term) == (1, 0)


def test_the_last_term_of_all_can_still_be_led_in() -> None:
    member = member_of(find("le-s"), {}, "highest-id")
    member.start()
    member.deliver(1, AnnounceMsg(MAX_TERM, 1, Candidate(1)))
    member.fire("T_S")
    assert (member.election.leader, member.election.term) == (ME, MAX_TERM)


def test_an_echo_of_ones_own_question_is_not_answered() -> None:
    member = member_of(find("le-s"), {"query": "query"}, "highest-id")
    member.start()
    member.fire("T_S")
    member.fire("T_Q")
    assert member.deliver(ME, QueryMsg(Candidate(ME))) == []
    assert member.deliver(1, QueryMsg(Candidate(1))) != []
