"""The bully's `election_backoff`: after a COORDINATOR a member answers, and begins none."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId
from hustings.core.messages import Message
from hustings.net.composition import DELTA, Design, configure
from hustings.protocols.bully import Bully, BullyConfig, CoordinatorMsg, ElectionMsg, OkMsg
from hustings.testing.effects import Effect, Send
from hustings.testing.recorded import RecordedMember, view_of

GROUP = [Candidate(member) for member in (1, 2, 3, 4)]


def second(backoff: float) -> RecordedMember:
    """Member 2 of four, which has followed 4 since now."""
    config = BullyConfig(election_backoff=backoff)
    member = RecordedMember(lambda: Bully(config, HighestId()), GROUP[1], view_of(GROUP))
    member.start()
    member.deliver(4, CoordinatorMsg(1))
    return member


def sent(effects: list[Effect]) -> list[tuple[int, Message]]:
    return [(each.to, each.message) for each in effects if isinstance(each, Send)]


ANSWER = [(1, OkMsg(1))]
BEGINS = [*ANSWER, (4, ElectionMsg(1)), (3, ElectionMsg(1))]


def test_the_lectures_bully_always_begins_an_election() -> None:
    assert sent(second(backoff=0.0).deliver(1, ElectionMsg(1))) == BEGINS


def test_soon_after_the_coordinators_word_it_only_answers() -> None:
    member = second(backoff=2.0)
    member.clock += 1.9
    assert sent(member.deliver(1, ElectionMsg(1))) == ANSWER
    assert member.election.leader == 4


def test_later_it_begins_one() -> None:
    member = second(backoff=2.0)
    member.clock += 2.0
    assert sent(member.deliver(1, ElectionMsg(1))) == BEGINS


def test_its_own_suspicion_does_not_rest() -> None:
    effects = second(backoff=2.0).suspect(4)
    assert sent(effects) == [(4, ElectionMsg(1)), (3, ElectionMsg(1))]


@pytest.mark.parametrize("leader", [3, 4])
def test_what_others_say_of_the_leader_counts_too(leader: int) -> None:
    member = second(backoff=2.0)
    member.clock += 5.0
    member.assume_leader(leader, 2)
    assert sent(member.deliver(1, ElectionMsg(2))) == [(1, OkMsg(2))]


@pytest.mark.parametrize("given", [{}, {"delta": 0.1}])
def test_on_a_network_it_rests_for_a_round_trip(given: dict[str, float]) -> None:
    settings = configure(Design(Bully, HighestId(), settings=given)).election
    assert isinstance(settings, BullyConfig)
    assert settings.delta == given.get("delta", DELTA)
    assert settings.election_backoff == 2 * settings.delta
