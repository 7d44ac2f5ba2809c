"""What was typed and changes nothing is told: one note each, on stderr and in the JSON."""

from __future__ import annotations

import json
import re

import pytest

from tests.unit.cli.commands import Hustings

NOTE = "hustings: note: "
LEAVE = "--scenario leader-leave --set T_L=3"

# What is typed after `hustings sim`, and the one note about what has no effect.
IDLE = [
    ("le-s --initiator 3", "--initiator has no effect here: members of le-s start unasked"),
    ("sup --initiator 3", "--initiator has no effect here: members of sup start unasked"),
    ("le-s --set lam=5", "lam has no effect with law=uniform: set law=exponential"),
    ("sup --set lam=3", "lam has no effect with law=uniform: set law=exponential"),
    ("le-m --set T_S=0 --set law=exponential", "law has no effect with T_S=0: nobody sleeps"),
    (
        "le-s --set query=query --set T_S=2 --set lam=3",
        "T_S, lam have no effect with query=query: members ask at once",
    ),
    ("le-s --set T_Q=5", "T_Q has no effect without a query"),
    ("le-s --set bye=2", "bye has no effect where no member leaves in good order"),
    (
        "le-a --scenario leader-crash --set bye_loss=0.1 --set bye_gap=1",
        "bye_loss, bye_gap have no effect where no member leaves in good order",
    ),
    (f"le-s {LEAVE} --set bye=2 --set bye_eps=0.1", "bye_eps has no effect without bye_loss"),
    (f"le-s {LEAVE} --set bye=1 --set bye_gap=1", "bye_gap has no effect with less than two Byes"),
    (f"le-s {LEAVE}", "who leaves says no goodbye, so to the others it is as a crash: --set bye"),
    ("al --scenario leader-leave", "who leaves says no goodbye, so to the others it is as a crash"),
    (
        "le-s --scenario churn --departures 30 --orderly --until 90",
        "who leaves says no goodbye, so to the others it is as a crash: --set bye",
    ),
    ("le-s --fault leave:3@1", "who leaves says no goodbye"),
    ("bully --attribute cpu=random", "--attribute cpu has no effect: --choice highest-id does not"),
    (
        "bully --choice highest:cpu --attribute cpu=random --attribute age=random",
        "--attribute age has no effect: --choice highest:cpu does not ask it",
    ),
    ("le-m --choice lowest-id", "--choice has no effect here: le-m goes by the time of waking"),
    ("sup --choice lowest-id", "--choice has no effect here: sup goes by who is heard first"),
    ("le-s --loss-model correlated", "--loss-model correlated has no effect without --loss"),
    ("bully --fifo", "--fifo has no effect: with fixed delays"),
    ("bully --fault restart:3@1", "restart:3 at 1 has no effect: member 3 is alive then"),
    ("bully --fault resume:3@1", "resume:3 at 1 has no effect: member 3 was not paused before"),
    ("bully --fault heal:@1", "heal:partition at 1 has no effect: no partition was there before"),
    (
        "bully --fault one-way:1>2@1 --fault heal:one-way:1>3@2",
        "heal:one-way:1>3 at 2 has no effect: no one-way:1>3 was there before",
    ),
    ("bully --crashed 3 --fault pause:3@1", "pause:3 at 1 has no effect: member 3 is down"),
    (
        "bully --scenario leader-crash --fault crash:8@1",
        "crash:8 at 1 has no effect: member 8 is down",
    ),
    ("bully --until 5 --fault crash:3@6", "crash:3 at 6 never happens: the time limit is 5"),
]
IDLE_WORDS = re.compile(r"no effect|never happens|says no goodbye")


def idle_notes(err: str) -> list[str]:
    notes = [line.removeprefix(NOTE) for line in err.splitlines() if line.startswith(NOTE)]
    return [note for note in notes if IDLE_WORDS.search(note)]


@pytest.mark.parametrize("typed, words", IDLE, ids=[typed for typed, _ in IDLE])
def test_what_has_no_effect_is_told(typed: str, words: str, hustings: Hustings) -> None:
    result = hustings("sim", *typed.split(), "--json")
    assert result.code == 0, result.err
    notes = idle_notes(result.err)
    assert len(notes) == 1, result.err
    assert notes[0].startswith(words)
    assert notes[0] in json.loads(result.out)["warnings"]


# The same options where they do something.
BUSY = [
    "le-s --scenario leader-crash --initiator 3",
    "bully --initiator 3",
    "le-s --set law=exponential --set lam=3",
    "le-s --set query=suppress-query --set T_Q=4 --set T_S=0.5",
    f"le-s {LEAVE} --set bye_loss=0.1 --set bye_eps=0.1 --set bye_gap=0.1 --linger 1",
    f"le-s {LEAVE} --set bye=2 --set bye_gap=0.1 --linger 1",
    "le-s --scenario churn --departures 30 --orderly --until 90 --set bye=1",
    "le-s --set bye=1 --fault leave:8@1",
    "bully --choice highest:cpu --attribute cpu=random",
    "le-m --scenario leader-crash --choice lowest-id",
    "le-s --choice lowest-id",
    "le-s --loss-model correlated --loss 0.1",
    "le-s --loss-model adjusted --collision 0.01",
    "bully --fifo --delay uniform:0.5,1",
    "bully --fault crash:3@1 --fault restart:3@2",
    "bully --crashed 3 --fault restart:3@2 --fault crash:3@3",
    "bully --scenario leader-crash --fault restart:8@2",
    "le-s --scenario leader-crash --fault restart:8@9",
    "bully --fault pause:3@1 --fault resume:3@2",
    "bully --fault partition:1,2|3-8@1 --fault heal:@2",
    "bully --fault one-way:1>2@1 --fault heal:one-way@2",
    "bully --fault one-way:1>2@1 --fault one-way:2>1@1 --fault heal:one-way@2",
    "bully --fault one-way:1>2@1 --fault one-way:2>1,3@1 --fault heal:one-way:2>3,1@2",
]


@pytest.mark.parametrize("typed", BUSY)
def test_what_has_an_effect_is_not_told(typed: str, hustings: Hustings) -> None:
    result = hustings("sim", *typed.split())
    assert result.code == 0, result.err
    assert idle_notes(result.err) == []


def test_a_comparison_tells_it_once(hustings: Hustings) -> None:
    result = hustings("compare", "bully", "ring", "--attribute", "cpu=random")
    assert len(idle_notes(result.err)) == 1


def test_a_setting_of_another_election_is_refused(hustings: Hustings) -> None:
    assert "unknown setting 'key'" in hustings("sim", "le-s", "--set", "key=relative").complaint


# A loss that lets nothing through

HOPELESS = [
    ("le-s --loss 1", "so 8 members never agree"),
    ("le-a --loss 1 --loss-model correlated -n 2", "so 2 members never agree"),
    ("al --loss 1 --crashed 1,2", "so 6 members never agree"),
    ("le-m --loss 1 -n 3 --scenario leader-crash", "so 2 members never agree"),
    ("le-s --loss 1 -n 1 --scenario join-smaller", "so 2 members never agree"),
]


@pytest.mark.parametrize("typed, words", HOPELESS, ids=[typed for typed, _ in HOPELESS])
def test_a_wait_without_end_is_refused(typed: str, words: str, hustings: Hustings) -> None:
    complaint = hustings("sim", *typed.split()).complaint
    assert words in complaint
    assert "--until" in complaint


@pytest.mark.parametrize(
    "typed",
    [
        "le-s --loss 1 -n 1",
        "le-s --loss 1 -n 2 --scenario leader-crash --set T_L=1",
        "le-s --loss 1 -n 2 --fault crash:2@3",
        "le-s --loss 1 --until 9",
        "le-s --loss 1 --max-events 50",
        "le-s --loss 1 --scenario false-departure --until 20",
        "sup --loss 1",
        "bully --loss 1",
    ],
)
def test_a_loss_of_all_is_no_mistake_where_runs_end(typed: str, hustings: Hustings) -> None:
    assert hustings("sim", *typed.split()).code == 0


# The time series of the number of leaders


def test_a_course_is_given_as_lists_of_one_length(hustings: Hustings) -> None:
    typed = "sim le-a -n 6 --loss 0.4 --delay 0.1 --runs 20 --time-series 0.5 --json"
    shown = json.loads(hustings(*typed.split()).out)
    assert list(shown["time_series"]) == ["simultaneous_leaders"]
    time_series = shown["time_series"]["simultaneous_leaders"]
    assert list(time_series) == ["time", "mean", "stderr", "max", "under_way"]
    assert {len(column) for column in time_series.values()} == {len(time_series["time"])}
    assert time_series["time"][:3] == [0.0, 0.5, 1.0]
    assert (time_series["mean"][0], time_series["stderr"][0], time_series["max"][0]) == (
        6.0,
        0.0,
        6,
    )
    assert time_series["under_way"] == sorted(time_series["under_way"], reverse=True)
    assert time_series["under_way"][0] == 20


@pytest.mark.parametrize("scenario", ["start", "leader-crash", "join-larger", "false-departure"])
def test_a_course_is_shown_in_at_most_twenty_lines(scenario: str, hustings: Hustings) -> None:
    typed = f"sim le-s -n 6 --delay 0.1 --scenario {scenario} --until 30 --time-series 0.1"
    out = hustings(*typed.split()).out
    table = out.partition("Simultaneous leaders over time")[2].partition("uniqueness")[0]
    rows = [line for line in table.splitlines() if re.match(r" +[0-9.]+ +[0-9.]+ +- ", line)]
    assert 1 <= len(rows) <= 20
    assert "A run that has ended counts as it ended." in table


def test_without_the_option_there_is_no_course(hustings: Hustings) -> None:
    assert "time_series" not in json.loads(hustings("sim", "le-s", "--json").out)


def test_a_series_of_churn_needs_no_announcements(hustings: Hustings) -> None:
    typed = (
        "sim bully --scenario churn --departures 30 --until 90 --detection perfect --time-series 5"
    )
    shown = json.loads(hustings(*typed.split(), "--json").out)
    assert len(shown["time_series"]["simultaneous_leaders"]["time"]) == 19


def test_a_course_cut_short_is_told(hustings: Hustings) -> None:
    result = hustings("sim", "le-s", "--time-series", "1e-4", "--json")
    told = [
        note for note in json.loads(result.out)["warnings"] if "the time series ends at 0.2" in note
    ]
    assert len(told) == 1
    assert told[0] in result.err


@pytest.mark.parametrize(
    "typed, words",
    [
        ("le-s --time-series 0", "time series must be a time step"),
        ("le-s --time-series nan", "'nan' is not a valid float"),
        ("bully --time-series 1", "leaders that come and go by themselves"),
        ("le-s --scenario false-departure --time-series 0.1", "more than 2,000 of them"),
    ],
)
def test_a_course_that_cannot_be_is_refused(typed: str, words: str, hustings: Hustings) -> None:
    assert words in hustings("sim", *typed.split()).complaint
