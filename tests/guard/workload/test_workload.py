"""The bank for some seconds, and for ten minutes in the soak; and that its judge can see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.guard.workload.__main__ import complaints, run, table
from tests.guard.workload.banks import ACCOUNTS, EACH, Audit, Entry
from tests.guard.workload.judging import Event, Term, judge, overlapping, terms_of, uncovered
from tests.guard.workload.playing import play, unfenced

engines = pytest.mark.parametrize("engine", ["postgres", "valkey"])


@engines
def test_with_the_fence(engine: str) -> None:
    async def faults() -> AsyncIterator[str]:
        for fault in ("stop", "kill", "hold-questions", "restart-engine", "cut"):
            yield fault

    report = asyncio.run(play(engine, fenced=True, seconds=60.0, seed=1, faults=faults()))
    assert report.wrong == [], report
    assert sum(report.faults.values()) == 5
    assert report.terms >= 3


@engines
def test_without_the_fence(engine: str) -> None:
    report = asyncio.run(unfenced(engine, seconds=80.0, seed=1))
    assert report.stale > 0, report
    assert report.overlaps == 0, report  # the guard did what it could


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_for_ten_minutes() -> None:
    reports = asyncio.run(run(["postgres", "valkey"], minutes=10.0, seed=1))
    print(table(reports))
    assert complaints(reports) == [], reports
    assert all(report.refused > 0 for report in reports if report.fenced), reports


def event(what: str, at: float, token: int, **more: object) -> Event:
    return {"what": what, "at": at, "token": token, **more}


def test_leases_are_found() -> None:
    first = [event("granted", 1, 1, deadline=3), event("renewed", 2, 1, deadline=4)]
    lost = [*first, event("lost", 9, 1)]
    released = [*first, event("released", 3, 1)]
    assert terms_of([(first, None)]) == terms_of([(lost, None)]) == [Term(1, 1, 4)]
    assert terms_of([(first, 2.5)]) == [Term(1, 1, 2.5)]
    assert terms_of([(released, None), ([event("granted", 4, 2, deadline=5)], None)]) == [
        Term(1, 1, 3),
        Term(2, 4, 5),
    ]


def test_leases_are_judged() -> None:
    apart, across = [Term(1, 1, 3), Term(2, 4, 6)], [Term(1, 1, 6), Term(2, 2, 3), Term(3, 5, 7)]
    assert (overlapping(apart), overlapping(across)) == (0, 2)
    assert uncovered(apart, 0, 10) == 1 + 1 + 4
    assert uncovered(across, 0, 7) == 1
    assert uncovered([], 2, 5) == 3


def test_the_journal_is_judged() -> None:
    journal = [Entry(1, "a"), Entry(2, "b"), Entry(1, "c"), Entry(2, "d"), Entry(2, "d")]
    said = [event("done", 1, 1, key="a"), event("done", 2, 2, key="lost"), event("refused", 3, 1)]
    audit = Audit(journal, ACCOUNTS * EACH - 7)
    report = judge("postgres", True, [(said, None)], audit, {"stop": 1}, (0.0, 10.0))
    assert (report.stale, report.money, report.forgotten, report.twice) == (1, -7, 1, 1)
    assert (report.refused, report.longest_gap_s, report.idle_s) == (1, 8.0, 10.0)
    assert len(report.wrong) == 4
    good = Audit([Entry(1, "a"), Entry(2, "b")], ACCOUNTS * EACH)
    fine = judge("postgres", True, [(said[:1], None)], good, {}, (0.0, 10.0))
    assert fine.wrong == []
    nothing = judge("postgres", True, [([], None)], Audit([], ACCOUNTS * EACH), {}, (0.0, 10.0))
    assert nothing.wrong == ["nothing was transferred"]
    bare = judge("postgres", False, [(said[:1], None)], good, {}, (0.0, 10.0))
    assert complaints([fine, bare]) == ["postgres: nothing went wrong without the fence"]
    assert "leaderless_s" in table([fine])
