"""What the documents print, and what the specification counts, number by number."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from hustings.core.errors import BadInput
from hustings.lab.closed_forms import bully, bully_grant, bully_map, heartbeat, overhead, stable
from hustings.lab.closed_forms.overhead_table import formulas, table_1
from tests.unit.lab.closed_forms import counting

Formula = Callable[[int], int]

# number: printed at n = 8, 16, 64; counted at n = 8, 16, 64; the same with the leader on top
SPECIFICATION = {
    1: ((56, 240, 4032), (49, 225, 3969), None),
    2: ((20, 72, 1056), (16, 64, 1024), None),
    3: ((4, 6, 18), (3, 5, 17), (4, 6, 18)),
    4: ((47, 191, 3071), (42, 180, 3024), None),
    5: ((12, 40, 544), (12, 40, 544), None),
    6: ((6, 10, 34), (5, 9, 33), (6, 10, 34)),
    7: ((31, 127, 2047), (28, 120, 2016), None),
}


@pytest.mark.parametrize("number", SPECIFICATION)
def test_the_seven_formulas(number: int) -> None:
    printed, counted, on_top = SPECIFICATION[number]
    for place, n in enumerate((8, 16, 64)):
        row = formulas(n)[number - 1]
        assert (row.number, row.printed, row.corrected) == (number, printed[place], counted[place])
        assert row.leader_on_top == (on_top[place] if on_top else None)


CLOSED: list[tuple[Formula, Formula]] = [
    (overhead.printed_1, overhead.printed_1_closed),
    (overhead.printed_2, overhead.printed_2_closed),
    (overhead.printed_4, overhead.printed_4_closed),
    (overhead.printed_5, overhead.printed_5_closed),
    (overhead.printed_7, overhead.printed_7_closed),
]


@pytest.mark.parametrize("terms, closed", CLOSED)
def test_the_printed_sums_have_the_closed_forms(terms: Formula, closed: Formula) -> None:
    for n in range(4, 200, 4):
        assert terms(n) == closed(n)


def overhead_of(tally: counting.Tally) -> int:
    """The paper's overhead."""
    return tally.kinds["ELECTION"] + tally.kinds["OK"]


@pytest.mark.parametrize("n", range(4, 41, 4))
def test_the_corrected_formulas_are_counted(n: int) -> None:
    def run_bully(d: int, crashed: int) -> int:
        return overhead_of(counting.bully(n, range(1, n - crashed + 1), [d]))

    def run_map(d: int, crashed: int) -> int:
        return overhead_of(counting.bully_map(n, range(1, n - crashed + 1), [d]))

    assert overhead.corrected_1(n) == run_bully(1, 1)
    assert overhead.corrected_2(n) == run_bully(n // 2, 1)
    assert overhead.corrected_3(n) == run_map(1, n // 4) == run_map(n // 2, n // 4)
    assert overhead.corrected_3(n, leader_included=False) == run_map(1, n // 4 + 1)
    assert overhead.corrected_4(n) == run_bully(1, n // 4)
    assert overhead.corrected_5(n) == run_bully(n // 2, n // 4)
    assert overhead.corrected_6(n) == run_map(1, n // 2)
    assert overhead.corrected_7(n) == run_bully(1, n // 2)
    assert overhead.corrected_case_4_bully(n) == run_bully(n // 2, n // 2)
    assert overhead.corrected_case_4_map(n) == run_map(n // 2, n // 2)
    if n > 4:
        assert overhead.corrected_6(n, leader_included=False) == run_map(1, n // 2 + 1)


@pytest.mark.parametrize("n", range(4, 41, 4))
def test_table_1_is_counted(n: int) -> None:
    rows = table_1(n)
    assert len(rows) == 12
    for row in rows:
        run = counting.bully if row.election == "bully" else counting.bully_map
        tally = run(n, range(1, n - row.crashed + 1), [row.detector_id])
        assert row.counted == overhead_of(tally), row
        assert (row.verdict.startswith("right")) == (row.printed == row.counted), row


def test_table_1_prints_the_right_orders() -> None:
    """Doubling n multiplies a count by 1, about 2 or about 4, as the printed order says."""
    for small, large in zip(table_1(1024), table_1(2048), strict=True):
        growth = {"2": 1, "O(n)": 2, "O(n^2)": 4}[small.printed_order]
        assert large.counted / small.counted == pytest.approx(growth, rel=0.01), small


def test_4_and_7_happen_to_include_the_coordinator_messages() -> None:
    for n in range(4, 100, 4):
        assert overhead.printed_4(n) == overhead.corrected_4(n) + (3 * n // 4 - 1)
        assert overhead.printed_7(n) == overhead.corrected_7(n) + (n // 2 - 1)


@pytest.mark.parametrize("n", [2, 6, 9])
def test_tables_want_a_group_of_quarters(n: int) -> None:
    for table in (table_1, formulas):
        with pytest.raises(BadInput, match="n must be"):
            table(n)


def test_bully_of_the_lecture() -> None:
    for n in range(3, 65):
        elections, answers = bully.election_messages(n, 1), bully.answer_messages(n, 1)
        assert elections == bully.printed_worst_election_messages(n) == n * (n - 1) // 2
        assert answers == (n - 1) * (n - 2) // 2
        assert elections + answers + n - 2 == bully.worst_messages(n) == n * n - n - 1
        assert bully.best_messages(n) == bully.printed_best_coordinator_messages(n)
    assert (bully.time(64, 1), bully.printed_worst_time()) == (4, 5)
    assert bully.time(64, 63) == bully.printed_best_time() == 1


@pytest.mark.parametrize("n", range(4, 40, 2))
def test_the_middle_detects(n: int) -> None:
    tally = counting.bully(n, range(1, n), [n // 2])
    assert bully.middle_messages(n) == tally.kinds.total()


@pytest.mark.parametrize("n", range(3, 30))
def test_election_and_answer_together(n: int) -> None:
    for m in range(1, n):
        for d in range(1, min(m, n - 2) + 1):
            tally = counting.bully(n, range(1, m + 1), [d])
            assert bully.election_and_answer_messages(n, d, m) == overhead_of(tally)


@pytest.mark.parametrize("n, election, answer", [(4, 11, 4), (8, 55, 36), (64, 4031, 3844)])
def test_the_second_highest_crashes(n: int, election: int, answer: int) -> None:
    crash = bully.second_highest_crashes(n)
    assert (crash.election, crash.answer, crash.coordinator, crash.time) == (
        election,
        answer,
        n - 3,
        16,
    )


def test_map_of_the_paper() -> None:
    assert bully_map.returning_leader_messages(8) == 13
    assert [bully_map.time(8, 1, m) for m in (7, 6, 5)] == [2, 4, 6]
    assert bully_map.printed_pseudo_code(4, [3]).leaders == (1,)
    assert bully_map.printed_pseudo_code(8, [7]).leaders[0] == 5
    whole = bully_map.printed_pseudo_code(16)
    assert (len(whole.asked), len(whole.leaders), whole.leader_messages) == (15, 15, 120)


def test_forms_by_arguments_agree_with_runs() -> None:
    for n in range(3, 14):
        for m in range(1, n):
            for d in range(1, m + 1):
                live = range(1, m + 1)
                asked = counting.bully_map(n, live, [d])
                assert bully_map.election_messages(n, d, m) == asked.kinds["ELECTION"]
                assert bully_map.answer_messages(d, m) == asked.kinds["OK"]
                assert bully_map.leader_messages(m) == asked.kinds["LEADER"]
                assert bully_map.time(n, d, m) == asked.last
                granted = counting.bully_grant(n, live, [d])
                assert bully_grant.messages(n, d, m) == granted.kinds.total()
                if m > 1:
                    assert bully_grant.time(d, m) == granted.last
                run = counting.bully(n, live, [d])
                assert bully.election_messages(n, d, m) == run.kinds["ELECTION"]
                assert bully.answer_messages(n, d, m) == run.kinds["OK"]
                assert bully.time(n, d, m) == run.last
                agreed = counting.stable(n, live, d)
                assert stable.messages(n, m - 1) == agreed.kinds.total()


def test_heartbeat_of_the_lecture() -> None:
    """The specification's example: T = 1 and D = 0.25 give latencies from 0.25 to 1.5."""
    assert heartbeat.latency_above(1, 0.25) == Fraction(1, 4)
    assert heartbeat.latency_at_most(1, 0.25) == Fraction(3, 2)


def test_heartbeat_latencies_on_a_fine_grid() -> None:
    """Crash at any instant of a period, last heartbeat under way for any time up to D."""
    T, D, steps = Fraction(1), Fraction(1, 4), 40
    latencies = [
        (D * travel / steps + T + D) - T * crash / steps
        for crash in range(steps)  # at T itself the next heartbeat would have left
        for travel in range(steps + 1)
    ]
    assert max(latencies) == heartbeat.latency_at_most(T, D)
    assert (
        heartbeat.latency_above(T, D) < min(latencies) <= heartbeat.latency_above(T, D) + T / steps
    )
