"""One leadership in each failover: the leader has one term, and no newcomer displaces it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.layers.leadership.inquiry import ANSWERS
from hustings.layers.leadership.layer import JOIN, OFFICE, LeadershipConfig
from hustings.layers.leadership.messages import MAX_TERM, LeaderInfoMsg
from hustings.protocols import bully_grant, bully_group
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.bully import Bully, CoordinatorMsg, ElectionMsg
from hustings.protocols.bully_assistant import BullyAssistant, IAmLeaderMsg
from hustings.protocols.bully_grant import BullyGrant
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.bully_map import BullyMap, LeaderMsg
from hustings.protocols.ring import ElectedMsg, Ring, RingConfig
from hustings.testing.effects import Effect, Multicast
from tests.unit.layers.leadership.members import (
    LeadingMember,
    bully,
    order,
    people,
    sent,
    told,
)

STICKY = LeadershipConfig(claim_delay=3.0)
OTHERS = people([1, 2, 3])


def le_a() -> Election:
    return LeA(LeA.Settings.parse({"T_A": 4.0, "T_L": 18.0}), order())


def le_s() -> Election:
    return LeS(LeS.Settings.parse({"T_A": 4.0, "T_L": 18.0}), order())


def announced(member: MemberId, term: int) -> AnnounceMsg:
    return AnnounceMsg(term, 1, Candidate(member))


def newcomer(elect: Callable[[], Election], settings: LeadershipConfig = STICKY) -> LeadingMember:
    member = LeadingMember(9, OTHERS, settings, elect=elect)
    member.start()
    return member


def claiming(settings: LeadershipConfig = STICKY) -> LeadingMember:
    """A member that has just claimed term 5, because the leader of term 4 is gone."""
    member = LeadingMember(3, people([1, 2, 9]), settings, elect=le_a)
    member.start()
    member.assume_leader(9, 4)
    effects = [*member.suspect(9), *member.fire("T_S")]
    assert told(effects) == [NoLeader(ELECTING)]
    assert announced_terms(effects) == [5]
    return member


def announced_terms(effects: list[Effect]) -> list[int]:
    """The terms of the announcements among these effects."""
    return [m.term for _, m in sent(effects, AnnounceMsg) if isinstance(m, AnnounceMsg)]


@pytest.mark.parametrize(
    "elect, word", [(le_a, announced(3, 4)), (bully, CoordinatorMsg(4))], ids=["le-a", "bully"]
)
def test_a_newcomer_follows_a_worse_leader_that_it_hears(
    elect: Callable[[], Election], word: Message
) -> None:
    for entered in (False, True):
        member = newcomer(elect)
        if entered:
            member.fire(JOIN)
        effects = member.deliver(3, word)
        assert told(effects) == [Elected(3, 4)]
        assert not any(isinstance(effect, Multicast) for effect in effects)
        assert not sent(effects, ElectionMsg)
        assert member.leadership.leader == 3


CLAIMS: dict[type[Election], list[Message]] = {
    Bully: [CoordinatorMsg(4)],
    BullyAssistant: [CoordinatorMsg(4), IAmLeaderMsg(4)],
    BullyGrant: [bully_grant.CoordinatorMsg(4)],
    BullyGroup: [bully_group.CoordinatorMsg(4, ())],
    BullyMap: [LeaderMsg(4)],
    Ring: [ElectedMsg((4, 3), Candidate(3))],
}


@pytest.mark.parametrize(
    "kind, word",
    [(kind, word) for kind, words in CLAIMS.items() for word in words],
    ids=lambda each: each.__name__ if isinstance(each, type) else type(each).__name__,
)
def test_so_it_does_in_every_election_that_displaces(kind: type[Election], word: Message) -> None:
    """Also if a heartbeat or another message has begun its election before."""
    for begun in (False, True):
        member = newcomer(lambda: kind(kind.Settings(), order()))
        if begun:
            member.ask(lambda layer, ctx: layer.begin(ctx))
        assert set(told(member.deliver(3, word))) == {Elected(3, 4)}
        assert member.leadership.leader == 3


def test_a_newcomer_that_was_told_by_the_leader_asks_no_better_one_to_lead() -> None:
    """They come into its view one after the other."""
    member = LeadingMember(9, people([1, 3]), STICKY, elect=bully)
    member.start()
    assert told(member.deliver(3, CoordinatorMsg(4))) == [Elected(3, 4)]
    member.meet(*people([4, 5, 12]))
    assert sent(member.deliver(1, LeaderInfoMsg((3,), 4)), ElectionMsg) == []


def test_a_result_of_a_ring_is_passed_on() -> None:
    """The members behind the newcomer must hear it, too; whoever sends it need not lead."""
    member = newcomer(lambda: Ring(RingConfig(), order()))
    word = ElectedMsg((4, 3), Candidate(3))
    effects = member.deliver(2, word)
    assert told(effects)[0] == Elected(3, 4)
    assert sent(effects, ElectedMsg) == [(1, word)]


def test_a_result_that_names_a_stranger_waits_until_it_is_known() -> None:
    """A newcomer that knows nobody must not win alone."""
    member = LeadingMember(9, people([1]), STICKY, elect=lambda: Ring(RingConfig(), order()))
    member.start()
    assert told(member.deliver(3, ElectedMsg((4, 3), Candidate(3)))) == []
    member.meet(Candidate(3))
    assert told(member.deliver(1, LeaderInfoMsg((3,), 4))) == [Elected(3, 4)]


@pytest.mark.parametrize("word", [announced(3, 4), announced(3, MAX_TERM + 1)])
def test_where_the_better_displaces_it_does_so_at_once(word: AnnounceMsg) -> None:
    displacing = LeadershipConfig(claim_delay=3.0, preempt_after=0.0)
    member = newcomer(le_a, displacing)
    assert Elected(3, 4) not in told(member.deliver(3, word))


@pytest.mark.parametrize("number, said", [(1, []), (2, [Elected(3, 4)])])
def test_a_newcomer_that_saw_nobody_follows_a_leader_that_has_claimed_before(
    number: int, said: list[Elected]
) -> None:
    member = LeadingMember(9, [], STICKY, elect=le_s)
    member.start()
    assert told(member.fire(JOIN)) == [NoLeader(ELECTING)]
    member.meet(Candidate(3))
    assert told(member.deliver(3, AnnounceMsg(4, number, Candidate(3)))) == said
    assert ("T_S" in member.timers) == (number == 1)


def test_a_newcomer_waits_for_a_leader_that_is_not_in_view_yet() -> None:
    member = newcomer(le_s)
    assert told(member.deliver(7, announced(7, 4))) == []
    assert not member.leadership.begun
    member.fire(JOIN)
    assert told(member.deliver(7, announced(7, 4))) == []
    member.meet(Candidate(7))
    assert told(member.deliver(7, announced(7, 4))) == [Elected(7, 4)]


def test_it_does_not_wait_for_ever() -> None:
    member = newcomer(le_s)
    member.deliver(7, announced(7, 4))
    member.fire(JOIN)
    assert told(member.fire(ANSWERS)) == [NoLeader(ELECTING)]
    member.deliver(7, announced(7, 4))
    assert "T_S" in member.timers


def test_a_member_that_has_claimed_itself_does_not() -> None:
    member = LeadingMember(9, OTHERS, STICKY, elect=le_s)
    member.start()
    member.fire(JOIN)
    member.fire(ANSWERS)
    assert announced_terms(member.fire("T_S")) == [1]
    assert told(member.deliver(3, AnnounceMsg(4, 2, Candidate(3)))) == []


def test_an_announcement_that_is_older_than_what_was_told_changes_nothing() -> None:
    member = newcomer(le_a)
    member.fire(JOIN)
    assert told(member.deliver(1, LeaderInfoMsg((3,), 4))) == [Elected(3, 4)]
    assert told(member.deliver(3, announced(3, 4))) == []
    assert member.leadership.leader == 3


def test_a_claim_that_is_not_repeated_may_be_one_of_several() -> None:
    """All begin together: the newcomer follows the first claim, and then a better one."""
    member = newcomer(le_a)
    assert told(member.deliver(1, announced(1, 1))) == [Elected(1, 1)]
    assert told(member.deliver(3, announced(3, 2))) == [Elected(3, 2)]
    other = newcomer(le_a)
    assert told(other.deliver(1, AnnounceMsg(1, 2, Candidate(1)))) == [Elected(1, 1)]
    assert told(other.deliver(3, announced(3, 2))) == []


def test_a_worse_claim_does_not_make_two_leaderships() -> None:
    member = claiming()
    assert not sent(member.deliver(2, announced(2, 5)), AnnounceMsg)
    effects = member.fire(OFFICE)
    assert told(effects) == []
    assert announced_terms(effects) == [6]
    effects = member.fire(OFFICE)
    assert told(effects) == [Elected(3, 6)]
    assert not sent(effects, AnnounceMsg)
    assert announced_terms(member.fire("T_A")) == [6]


def test_a_late_worse_claim_does_not_either() -> None:
    member = claiming()
    assert not sent(member.fire(OFFICE), AnnounceMsg)
    member.deliver(2, announced(2, 5))
    effects = member.fire(OFFICE)
    assert told(effects) == [Elected(3, 6)]
    assert announced_terms(effects) == [6]


def test_a_leadership_begins_in_a_later_term_than_others_know() -> None:
    member = claiming()
    assert told(member.deliver(2, LeaderInfoMsg((3,), 11))) == []
    assert announced_terms(member.fire(OFFICE)) == [12]
    assert told(member.fire(OFFICE)) == [Elected(3, 12)]


def test_the_wait_is_as_long_as_before() -> None:
    for delay, parts in ((3.0, [2.0, 1.0]), (1.0, [1.0]), (0.5, [0.5])):
        member = LeadingMember(
            3, people([1, 2, 9]), LeadershipConfig(claim_delay=delay), elect=le_a
        )
        member.start()
        member.assume_leader(9, 4)
        member.suspect(9)
        member.fire("T_S")
        waited = []
        while OFFICE in member.timers:
            waited.append(member.timers[OFFICE].deadline - member.clock)
            member.fire(OFFICE)
        assert waited == parts


def test_a_better_claim_ends_the_wait() -> None:
    member = claiming()
    member.fire(OFFICE)
    assert told(member.deliver(9, announced(9, 5))) == [Elected(9, 5)]
    assert OFFICE not in member.timers
