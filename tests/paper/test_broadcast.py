"""The lecture's chapter 15: what any election must do, and its "Trivial Solution"."""

from __future__ import annotations

from typing import Any

import pytest

from hustings.core.choice import parse_choice
from hustings.core.election import Election
from hustings.core.outcome import Elected
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully_map import BullyMap
from hustings.protocols.registry import COMPARED, classes
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.faults import Alive, Call, Crash, Suspect
from hustings.sim.network import Network
from hustings.sim.world import Ended
from tests.paper.playing import named, played, several_ids

by_kind = pytest.mark.parametrize("kind", classes(COMPARED), ids=lambda kind: kind.about.name)

# "Calling for an Election", "Election Problem, Formally": all eight elections


@by_kind
def test_any_process_can_call_for_an_election(kind: type[Election]) -> None:
    """Any process can call, and the result does not depend on which one does."""
    for n in range(1, 10):
        for caller in range(1, n + 1):
            run = played(kind, n, initiators=(caller,))
            assert run.leader == n
            assert run.sound


@by_kind
def test_several_calls_yield_a_single_leader(kind: type[Election]) -> None:
    """Several may call at once; together they must yield one leader."""
    for callers in several_ids(6):
        run = played(kind, 6, initiators=callers)
        assert (run.ended, run.leader) == (Ended.QUIESCENT, 6), callers
        assert run.sound, callers


def one_notice_is_enough(kind: type[Election]) -> dict[str, Any]:
    """The stable election asks for all, unless silence gives consent."""
    return {"belief": "silent"} if kind is Stable else {}


@by_kind
def test_several_detectors_yield_a_single_leader(kind: type[Election]) -> None:
    for detectors in several_ids(6):
        run = played(kind, 7, detectors=detectors, **one_notice_is_enough(kind))
        assert (run.ended, run.leader) == (Ended.QUIESCENT, 6), detectors
        assert run.sound, detectors


@by_kind
def test_at_most_one_election_at_a_time(kind: type[Election]) -> None:
    """A process that calls again before its election is over starts nothing new."""
    once = played(kind, 6, initiators=(2,))
    again = played(kind, 6, initiators=(2,), extra=(Call(member=2), Call(member=2, at=0.5)))
    assert again.kinds == once.kinds


ATTRIBUTES = (
    ("kind", (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)),
    ("load", (0.5, 0.1, 0.7, 0.2, 0.3, 0.3, 0.9)),
    ("rank", (3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0)),
)
# From worst to best, worked out by hand.
ORDERS = {
    "lowest-id": (7, 6, 5, 4, 3, 2, 1),
    "highest:rank": (2, 4, 6, 1, 3, 7, 5),
    "lowest:load": (7, 3, 1, 5, 6, 4, 2),
    "highest:kind,lowest:load": (6, 4, 2, 7, 3, 1, 5),
}


@by_kind
@pytest.mark.parametrize("text", ORDERS)
def test_any_attribute_gives_the_same_counts(kind: type[Election], text: str) -> None:
    """Highest address, fastest cpu, most disk: as with ids, up to who is called what.

    On a ring the places do not move with the names, so there only the leader is compared.
    """
    order = dict(enumerate(ORDERS[text], start=1))  # rank to member
    choice = parse_choice(text)
    for crashed in ((), (6,), (3, 6), (2, 4, 5, 6)):
        for d in (j for j in range(1, 7) if j not in crashed):
            enough = one_notice_is_enough(kind)
            plain = played(kind, 7, crashed=crashed, detectors=(d,), **enough)
            run = played(
                kind,
                7,
                crashed=tuple(order[rank] for rank in crashed),
                detectors=(order[d],),
                choice=choice,
                attributes=ATTRIBUTES,
                **enough,
            )
            assert plain.leader is not None
            assert run.leader == order[plain.leader]
            assert run.sound
            if kind is not Ring:
                assert (run.kinds, run.time) == (plain.kinds, plain.time)


# "Fixing for failures (2)", "Impossibility?": a detector that errs


@by_kind
@pytest.mark.parametrize("period", [0.5, 1.0, 2.0, 3.0, 7.0])
@pytest.mark.parametrize("doubters", [(1,), (4,), (1, 2, 3)])
def test_wrong_suspicions_end_in_a_named_outcome(
    kind: type[Election], period: float, doubters: tuple[int, ...]
) -> None:
    """A live leader is suspected again and again: no hang, and no reason left unsaid."""
    alarms = [
        Suspect(member=one, about=5, at=20 + k * period) for k in range(60) for one in doubters
    ]
    run = played(kind, 5, initiators=(1,), extra=tuple(alarms))
    assert run.ended is Ended.QUIESCENT
    assert all(named(outcome) for outcome in run.outcomes.values()), run.outcomes


@by_kind
def test_the_group_agrees_once_the_detector_is_right_again(kind: type[Election]) -> None:
    """The suspicion is taken back. All agree; only the stable election keeps whom it elected.

    It elected somebody only where all had doubted.
    """
    for doubters in ((1,), (4,), (1, 2, 3, 4)):
        alarms = [Suspect(member=one, about=5, at=20 + k) for k in range(30) for one in doubters]
        sorry = [Alive(member=one, about=5, at=60.0) for one in doubters]
        run = played(kind, 5, initiators=(1,), extra=(*alarms, *sorry))
        assert run.ended is Ended.QUIESCENT
        assert run.leader == (4 if kind is Stable and len(doubters) == 4 else 5), doubters


@pytest.mark.parametrize(
    "kind, settings", [(BullyMap, {}), (Stable, {"belief": "silent"})], ids=["bully-map", "stable"]
)
def test_who_does_not_ask_the_suspect_may_make_a_second_leader(
    kind: type[Election], settings: dict[str, Any]
) -> None:
    """Inaccuracy violates safety where the suspect is passed over: both lead, until it hears."""
    alarm = Suspect(member=1, about=5, at=20.0)
    run = played(kind, 5, initiators=(1,), extra=(alarm,), **settings)
    assert run.outcomes[5] == Elected(5, 1)
    assert run.outcomes[1] == Elected(4, 2)
    assert run.verdicts["uniqueness"] is Verdict.VIOLATED


@by_kind
def test_a_missed_crash_leaves_a_dead_leader(kind: type[Election]) -> None:
    """Incompleteness violates safety, in every election: nobody asks without a detector."""
    run = played(kind, 5, initiators=(1,), extra=(Crash(member=5, at=40.0),))
    assert {
        outcome.leader for outcome in run.outcomes.values() if isinstance(outcome, Elected)
    } == {5}
    assert run.verdicts["validity"] is Verdict.VIOLATED


# "Trivial Solution"


@pytest.mark.parametrize("N", range(1, 40))
def test_everybody_tells_everybody(N: int) -> None:
    """START to all others, then everybody's ID to all others: (N-1) + N(N-1), in 2 delays."""
    for initiator in {1, (N + 1) // 2, N}:
        run = played(Broadcast, N, initiators=(initiator,))
        assert (run.sent("START"), run.sent("ID")) == (N - 1, N * (N - 1))
        assert run.time == (2 if N > 1 else 0)
        assert run.leader == N


@pytest.mark.parametrize("N", range(1, 40))
def test_the_start_may_carry_the_id(N: int) -> None:
    """Then its sender needs no ID of its own: N(N-1) messages."""
    run = played(Broadcast, N, initiators=(1,), combined=True)
    assert run.messages == N * (N - 1)
    assert run.leader == N


def test_a_dead_member_does_not_block_the_others() -> None:
    """Potential problem: "after receiving all IDs" never comes; a timer ends the wait."""
    run = played(Broadcast, 6, initiators=(1,), extra=(Crash(member=6, at=0.5),))
    assert (run.leader, run.time) == (5, 1 + 3)
    assert run.sound


def test_the_best_may_tell_only_some() -> None:
    """Potential problem: 6 dies in the middle of its IDs; the detector mends what differs."""
    crash = Crash(member=6, at=0.5, after_sends=2)
    split = played(Broadcast, 6, initiators=(1,), extra=(crash,))
    held = {outcome.leader for outcome in split.outcomes.values() if isinstance(outcome, Elected)}
    assert held == {5, 6}
    mended = played(Broadcast, 6, initiators=(1,), extra=(crash,), oracle=2.0)
    assert mended.leader == 5
    assert mended.sound


def test_a_timer_that_is_too_short_is_put_right_by_late_ids() -> None:
    """Potential problem: slower than the wait. Who speaks late still counts."""
    run = played(Broadcast, 5, initiators=(1,), network=Network(Fixed(1.0)), T=0.5)
    assert run.leader == 5
    assert run.sound
