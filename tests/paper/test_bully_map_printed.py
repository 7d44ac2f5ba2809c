"""The overhead-aware paper's Fig. 2, executed as printed: what is wrong with it, (a) to (g)."""

from __future__ import annotations

import pytest

from hustings.core.outcome import Elected, GaveUp
from hustings.lab.closed_forms.bully_map import printed_pseudo_code
from hustings.protocols.bully_map import BullyMap
from hustings.protocols.bully_map_printed import BullyMapPrinted
from hustings.sim.checkers import Verdict
from tests.paper.playing import Ids, Played, played


def made_leader(run: Played, detector: int) -> list[int]:
    """Whom the detector's loop made leader, in this order; it also tells itself."""
    named = [leader for _, member, leader in run.elected if member == detector]
    return list(dict.fromkeys(named))


@pytest.mark.parametrize(
    "n, crashed, printed, right", [(4, (3,), 1, 2), (8, (7,), 5, 6), (16, (15, 14), 13, 13)]
)
def test_a_every_second_candidate_is_skipped(
    n: int, crashed: Ids, printed: int, right: int
) -> None:
    """(a) The loop counts down by itself; `i = i-1` after a silence counts down once more.

    n = 4 without 3 and 4 elects 1 instead of 2; n = 8 without 7 and 8 asks 7, then 5. With 14 and
    15 dead the skip falls on a dead one and does no harm.
    """
    run = played(BullyMapPrinted, n, detectors=(1,), crashed=crashed)
    assert made_leader(run, 1)[0] == printed
    assert played(BullyMap, n, detectors=(1,), crashed=crashed).leader == right


def test_a_in_the_smallest_group_nobody_is_elected() -> None:
    """(a) n = 3 without 2 and 3: the loop asks 2, skips 1 and ends; it is said, not hidden."""
    run = played(BullyMapPrinted, 3, detectors=(1,), crashed=(2,))
    assert run.outcomes == {1: GaveUp("the printed loop ended without an OK")}
    assert played(BullyMap, 3, detectors=(1,), crashed=(2,)).leader == 1


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_b_nothing_ends_the_loop_at_the_first_ok(n: int) -> None:
    """(b) Only n is dead (n = 16): 15 ELECTION, 15 OK, 120 LEADER, 15 leaders."""
    run = played(BullyMapPrinted, n, detectors=(1,))
    assert run.kinds == {"ELECTION": n - 1, "OK": n - 1, "LEADER": n * (n - 1) // 2}
    leading = [j for j, outcome in run.outcomes.items() if outcome == Elected(j, n - j + 1)]
    assert leading == list(range(1, n))
    assert run.verdicts["uniqueness"] is Verdict.VIOLATED
    assert n != 16 or run.kinds == {"ELECTION": 15, "OK": 15, "LEADER": 120}


def test_c_a_leader_message_too_many() -> None:
    """(c) n-(n-i) is i: one of them goes to the new leader itself; i-1 is right.

    With 2, 4 and 6 dead too the loop finds 7, and then steps from one dead to the next.
    """
    run = played(BullyMapPrinted, 8, detectors=(1,), crashed=(2, 4, 6))
    assert (made_leader(run, 1), run.sent("LEADER")) == ([7], 7)
    assert played(BullyMap, 8, detectors=(1,), crashed=(2, 4, 6)).sent("LEADER") == 7 - 1


def test_d_the_detector_announces_the_leader() -> None:
    """(d) In Fig. 2 the detector speaks, a round trip later; text and Fig. 3 let the candidate."""
    printed = played(BullyMapPrinted, 8, detectors=(4,))
    assert printed.elected[0] == (2.0, 4, 7)  # 7 itself hears of it at 3
    assert next(at for at, member, _ in printed.elected if member == 7) == 3
    right = played(BullyMap, 8, detectors=(4,))
    assert right.elected[0] == (1.0, 7, 7)  # everybody else hears of it at 2
    assert {at for at, _, _ in right.elected[1:]} == {2}


def test_e_the_detector_asks_itself() -> None:
    """(e) No test whether MAP[i] is the detector: 1 of 2 asks, answers and tells itself."""
    run = played(BullyMapPrinted, 2, detectors=(1,))
    assert run.kinds == {"ELECTION": 1, "OK": 1, "LEADER": 1}
    assert played(BullyMap, 2, detectors=(1,)).kinds == {}


def test_e_the_detector_goes_on_below_itself() -> None:
    """(e) The best of all detects, and makes everybody below leader after itself."""
    run = played(BullyMapPrinted, 6, detectors=(5,))
    assert run.kinds == {"ELECTION": 5, "OK": 5, "LEADER": 15}
    assert played(BullyMap, 6, detectors=(5,)).kinds == {"LEADER": 4}


def test_f_to_must_be_down_to() -> None:
    """(f) "For i = n-1 to 1" read as "down to": the candidates are made leader from the top."""
    run = played(BullyMapPrinted, 6, detectors=(1,))
    assert made_leader(run, 1) == [5, 4, 3, 2, 1]


def test_g_one_name_for_one_message() -> None:
    """(g) The text says COORDINATOR and LEADER for one message; here it is LEADER."""
    for kind in (BullyMap, BullyMapPrinted):
        assert "COORDINATOR" not in played(kind, 6, detectors=(1,)).kinds
        assert "LEADER" in played(kind, 6, detectors=(1,)).kinds


@pytest.mark.parametrize("n", range(2, 12))
def test_the_figure_worked_out_by_hand(n: int) -> None:
    """Whom the loop asks and makes leader, for every single further dead member."""
    for crashed in ((), *((j,) for j in range(2, n))):
        hand = printed_pseudo_code(n, crashed)
        run = played(BullyMapPrinted, n, detectors=(1,), crashed=crashed)
        assert run.sent("ELECTION") == len(hand.asked)
        assert run.sent("OK") == len(hand.leaders)
        assert run.sent("LEADER") == hand.leader_messages
