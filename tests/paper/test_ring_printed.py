"""The lecture's ring slides, executed as printed: what is wrong with one flag and one cache."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hustings.core.outcome import ELECTING, NoLeader
from hustings.lab.closed_forms import ring as theory
from hustings.protocols.ring import Ring
from hustings.protocols.ring_printed import RingPrinted
from hustings.sim.checkers import Verdict
from hustings.sim.faults import Call, Happening, Leave
from hustings.sim.scenarios import places_of
from hustings.sim.world import Ended
from tests.paper.playing import Ids, Played, played
from tests.unit.lab.closed_forms import rings


def seated(
    order: Sequence[int],
    initiators: Ids,
    kind: type[Ring] | type[RingPrinted] = RingPrinted,
    extra: tuple[Happening, ...] = (),
    until: float | None = None,
) -> Played:
    """One election on a ring with this clockwise order, all initiators at once."""
    return played(
        kind,
        len(order),
        initiators=initiators,
        attributes=(("seat", places_of(order, len(order))),),
        extra=extra,
        until=until,
        place="seat",
    )


@pytest.mark.parametrize("n", [2, 5, 8])
def test_one_initiator_costs_what_the_slides_say(n: int) -> None:
    """ "Worst-case Analysis" and "Best Case?": 3N-1 and 2N messages and transmission times."""
    best, worst = (played(RingPrinted, n, initiators=(one,)) for one in (n, 1))
    assert best.messages == best.time == theory.printed_best(n)
    assert worst.messages == worst.time == theory.printed_worst(n)
    assert best.leader == worst.leader == n


def test_the_smallest_deadlock_of_two_initiators() -> None:
    """ "Multiple Initiators?": 4 spends its one flag in the run of 1, which 3 suppresses."""
    run = seated((1, 2, 4, 3), (1, 3))
    assert run.ended is Ended.QUIESCENT
    assert run.elected == []
    assert run.outcomes[1] == run.outcomes[3] == NoLeader(ELECTING)
    assert run.verdicts["termination"] is Verdict.VIOLATED
    assert seated((1, 2, 4, 3), (1, 3), Ring).leader == 4


@pytest.mark.parametrize("n", [3, 4, 5])
def test_how_often_nobody_is_elected(n: int) -> None:
    """ "has not forwarded an election message earlier": 13 of 90 cases at n = 4, 154 of 744."""
    dead, cases = 0, 0
    for order in rings.orders(n):
        for initiators in rings.initiator_sets(n):
            run, twin = seated(order, initiators), rings.play(order, initiators, rings.ONE_FLAG)
            assert run.messages == twin.messages
            assert run.leader in (n, None)
            assert (run.leader is None) is not bool(twin.leaders)
            dead, cases = dead + (run.leader is None), cases + 1
    assert (dead, cases) == theory.dead_locked(n)


def test_the_flag_is_never_taken_back() -> None:
    """5 wins and dies; when 2 calls again, nobody but itself may stand, and 3 is better."""
    again = (Leave(member=5, at=50.0), Call(member=2, at=60.0))
    run = seated(range(1, 6), (1,), extra=again)
    assert run.outcomes[2] == NoLeader(ELECTING)
    assert run.sent("ELECTION") == (4 + 5) + 1
    assert seated(range(1, 6), (1,), Ring, again).leader == 4


def test_a_lower_initiator_is_suppressed_for_ever() -> None:
    """ "(All the time) Each process suppresses ... any lower-id initiators": also much later."""
    later = (Call(member=2, at=100.0),)
    run = played(RingPrinted, 5, initiators=(3,), extra=later)
    assert run.outcomes[2] == NoLeader(ELECTING)
    assert run.sent("ELECTION") == 5 + 2 + 1
    assert played(Ring, 5, initiators=(3,), extra=later).leader == 5


def test_a_candidate_that_dies_goes_round_for_ever() -> None:
    """ "Effect of Failures": 5 leaves when its message is on its way, and nobody stops that."""
    run = seated(range(1, 6), (5,), extra=(Leave(member=5, at=1.5),), until=100.0)
    assert run.ended is Ended.UNTIL
    assert run.sent("ELECTION") == theory.orphan_messages(100)
