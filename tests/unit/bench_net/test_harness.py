"""The small parts of the harness that need no group."""

from pathlib import Path

import pytest

from bench.net.cli import parse
from bench.net.group import last_words
from bench.net.member import name_of, seeds
from bench.net.search import SPREADS, TICKS_S, Trial, best, first_period, settings_of
from bench.net.spaces import loopback_packets

DEVICES = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:  123456     789    0    0    0     0          0         0   123456     789    0    0
  eth0: 9      8    0    0    0     0          0         0        7       6    0    0
"""


def test_packets_are_those_that_loopback_received() -> None:
    assert loopback_packets(DEVICES) == 789
    with pytest.raises(ValueError, match="lo"):
        loopback_packets("eth0: 1 2 3\n")


def test_seeds_are_of_several_processes_and_never_oneself() -> None:
    plan = {"per_process": 50, "n": 1_000, "port": 7_000}
    assert seeds(plan, 7) == ["127.0.0.1:7000", "127.0.0.1:7050", "127.0.0.1:7100"]
    assert seeds(plan, 50) == ["127.0.0.1:7000", "127.0.0.1:7100", "127.0.0.1:7150"]
    assert seeds({"per_process": 1, "n": 3, "port": 9}, 0) == ["127.0.0.1:10", "127.0.0.1:11"]
    assert int(name_of(999)[1:]) == 999


def test_what_processes_wrote_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    with path.open("rb") as log:
        assert last_words(log) == []
    path.write_bytes(b"x" * 5_000 + b"\nTraceback\nValueError: no\n\n")
    with path.open("rb") as log:
        (line,) = last_words(log)
    assert line == "5,027 bytes on standard error, the last line: ValueError: no"


def trial(packets: float | None, kills: list[float], failure: str | None = None) -> Trial:
    return Trial({}, packets, kills, failure)


def test_the_search_prefers_the_quickest_that_keeps_the_budget_and_stays_steady() -> None:
    quick_but_loud = trial(25.0, [1.0])
    quick_but_unsteady = trial(19.0, [2.0], "the leader changed at rest")
    good = trial(20.5, [50.0, 40.0, 60.0])
    slower = trial(18.0, [70.0])
    trials = [quick_but_loud, quick_but_unsteady, slower, good, trial(None, [], "no agreement")]
    assert best(trials, 20, 2) == [good, slower]
    assert best([quick_but_loud], 20, 1) == []


def test_the_first_period_fits_the_budget_by_the_count_of_packets() -> None:
    # Three packets a heartbeat and follower: request, answer, late acknowledgement.
    assert first_period(3, 20) == pytest.approx(0.1)
    # At sixty the answers come so often that they carry the acknowledgements.
    assert first_period(25, 60) == pytest.approx(0.032)


@pytest.mark.parametrize("tick_s", TICKS_S)
@pytest.mark.parametrize("patient", [False, True])
def test_settings_tried_keep_the_rules_of_the_peer(tick_s: float | None, patient: bool) -> None:
    found = settings_of(0.1, tick_s, min(SPREADS), patient)
    assert found["raftMinTimeout"] > 3 * found["appendEntriesPeriod"]
    assert found["raftMaxTimeout"] > found["raftMinTimeout"]
    assert found["connectionTimeout"] >= found["raftMaxTimeout"]
    assert found["leaderFallbackTimeout"] > found["appendEntriesPeriod"]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--sizes", "3,x"], "numbers with commas"),
        (["--sizes", "2"], "at least 3"),
        (["--rounds", "0"], "at least 1"),
        (["--minutes", "0"], "above 0"),
    ],
)
def test_bad_options_get_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err
