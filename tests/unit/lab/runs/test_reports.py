"""Many runs: the same report on one process or two, and nothing left behind by an interruption."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import pytest

from hustings.core.errors import BadInput
from hustings.lab.runs.engines import EventsPlayer, report, summarise
from hustings.lab.runs.playing import Progress
from hustings.lab.simulation import run_all
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended

EXPERIMENT = Experiment(
    Bully,
    6,
    BullyConfig(),
    network=Network(delay=Uniform(0.2, 1.0), loss=Uncorrelated(0.2)),
    scenario=Scenario("leader-crash"),
    seed=5,
    until=40.0,
    digest=True,
)


def test_two_processes_report_what_one_does() -> None:
    seen: list[int] = []
    alone = run_all(EXPERIMENT, 21)
    shared = run_all(EXPERIMENT, 21, jobs=2, tell=lambda reached: seen.append(reached.runs))
    assert shared == alone
    assert seen == sorted(seen)
    assert seen[-1] == 21
    assert multiprocessing.active_children() == []


def test_a_run_is_the_same_alone_and_among_others() -> None:
    runs = [play(EXPERIMENT, run) for run in range(6)]
    assert EventsPlayer(EXPERIMENT).in_full(0, 6) == runs
    assert EventsPlayer(EXPERIMENT).in_full(4, 6) == runs[4:]
    assert run_all(EXPERIMENT, 6) == report(runs)
    assert len({result.digest for result in runs}) == 6


def test_a_report_counts_verdicts_and_endings_and_quotes_the_first_reason() -> None:
    def result(messages: float, verdict: Verdict, reason: str, ended: Ended) -> RunResult:
        return RunResult({"messages": messages, "leader": None}, {"law": (verdict, reason)}, ended)

    quiescent, until = Ended.QUIESCENT, Ended.UNTIL
    made = report(
        [
            result(1.0, Verdict.HOLDS, "fine", quiescent),
            result(2.0, Verdict.UNDECIDED, "too short", until),
            result(6.0, Verdict.VIOLATED, "two leaders", quiescent),
        ]
    )
    assert made.runs == 3
    assert made.metrics == {"messages": summarise([1.0, 2.0, 6.0]), "leader": None}
    assert made.verdicts == {"law": {"holds": 1, "undecided": 1, "violated": 1}}
    assert made.reasons == {"law": "undecided in run 1: too short"}
    assert made.endings == {"quiescent": 2, "until": 1}
    assert made.digest is None
    assert made.violated
    assert not report([result(1.0, Verdict.UNDECIDED, "", until)]).violated


def test_the_digest_of_one_run_is_its_own_and_that_of_many_depends_on_all() -> None:
    assert run_all(EXPERIMENT, 1).digest == play(EXPERIMENT, 0).digest
    three = run_all(EXPERIMENT, 3).digest
    assert three not in (None, run_all(EXPERIMENT, 2).digest, run_all(EXPERIMENT, 4).digest)
    assert three != run_all(replace(EXPERIMENT, seed=6), 3).digest


def test_progress_is_told_after_every_run_when_alone() -> None:
    seen: list[int] = []
    run_all(EXPERIMENT, 4, tell=lambda reached: seen.append(reached.runs))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_leaves_no_process_behind(jobs: int) -> None:
    def interrupt(reached: Progress) -> None:
        if reached.runs:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(EXPERIMENT, 200, jobs=jobs, tell=interrupt)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mistake_of_the_user_stays_one_sentence_on_any_number_of_processes(jobs: int) -> None:
    wrong = Scenario("leader-crash", extra=(Crash(member=99, at=1.0),))
    with pytest.raises(BadInput, match="unknown member '99'"):
        run_all(replace(EXPERIMENT, scenario=wrong), 4, jobs=jobs)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("runs", [0, -1, 10_000_001])
def test_a_number_of_runs_out_of_bounds_is_refused(runs: int) -> None:
    with pytest.raises(BadInput, match="runs must lie between 1 and"):
        run_all(EXPERIMENT, runs)


@pytest.mark.parametrize("jobs", [0, -1, 257])
def test_a_number_of_jobs_out_of_bounds_is_refused(jobs: int) -> None:
    with pytest.raises(BadInput, match="jobs must lie between 1 and"):
        run_all(EXPERIMENT, 1, jobs)
