"""The tables: medians, ratios and verdicts, from numbers made up here."""

import json
from pathlib import Path

import pytest

from bench.net import contenders, report
from bench.net.calm import Calm
from bench.net.campaign import FULL, Results
from bench.net.kept import keep, kept
from bench.net.measures import Resources, Samples
from bench.report import with_part


def test_spans_have_quartiles_from_four_samples_and_extremes_below() -> None:
    assert report.span([]) == "-"
    assert report.span([3.0]) == "3.00"
    assert report.span([1.0, 2.0, 12.0]) == "2.00 (1.00-12.0)"
    assert report.span([1.0, 2.0, 3.0, 4.0, 500.0]) == "3.00 (2.00-4.00)"


def results_of(ours: Samples, theirs: Samples) -> Results:
    results = Results(FULL, (3,))
    results.failover[contenders.AT[20].label, 3] = ours
    peer = contenders.tight(20)
    assert peer is not None
    results.failover[peer.label, 3] = theirs
    return results


def verdicts(ours: Samples, theirs: Samples) -> list[str]:
    rows = report.ratio_table(results_of(ours, theirs)).splitlines()[2:]
    return [row.rsplit("|", 2)[1].strip() for row in rows]


THEIRS = Samples(kill=[300.0], pause=[300.0], packets=[20.0])


@pytest.mark.parametrize(
    "ours, expected",
    [
        (Samples(kill=[99.0], pause=[101.0], packets=[20.0]), ["met", "**missed**"]),
        (Samples(kill=[99.0], pause=[99.0], packets=[30.0]), ["**missed**", "**missed**"]),
        (Samples(kill=[99.0], packets=[20.0]), ["met", "**missed**"]),
        (
            Samples(kill=[9.0], pause=[9.0], packets=[20.0], failures=["x"]),
            ["**missed**", "**missed**"],
        ),
    ],
)
def test_a_third_counts_only_within_the_budget_and_without_failures(
    ours: Samples, expected: list[str]
) -> None:
    assert verdicts(ours, THEIRS) == expected


def test_hand_overs_are_held_against_three_round_trips() -> None:
    ours = Samples(transfer=[2.5], transfer_led=[1.0], resign=[2.7], resign_led=[2.0])
    results = results_of(ours, Samples(transfer=[9.0], transfer_led=[8.0]))
    results.round_trips_ms = [0.1, 0.2, 0.3]
    text = report.hand_over_table(results)
    assert "at most 2.60" in text
    assert "| transfer | hustings, 20 pps | 3 | 1.00 | met | 2.50 | met | 1 |" in text
    assert "| resign | hustings, 20 pps | 3 | 2.00 | met | 2.70 | **missed** | 1 |" in text
    assert "| transfer | PySyncObj, best at 20 pps | 3 | 8.00 |  | 9.00 |  | 1 |" in text


def test_packets_are_flat_only_if_every_size_was_measured() -> None:
    results = Results(FULL, (3,))
    results.flat = {("a", 3): [10.0], ("a", 200): [12.0], ("b", 3): [10.0], ("c", 200): [1.0]}
    results.flat["b", 200] = [20.0]
    rows = report.flat_table(results).splitlines()[2:]
    assert [row.rsplit("|", 2)[1].strip() for row in rows] == ["met", "**missed**", "**missed**"]


def test_a_part_replaces_its_own_and_leaves_the_others() -> None:
    old = "# One\n\nfirst\n\n## Inner\n\ntext\n\n# Two\n\nsecond\n"
    assert (
        with_part(old, "# Two\n\nnew\n") == "# One\n\nfirst\n\n## Inner\n\ntext\n\n# Two\n\nnew\n"
    )
    assert with_part(old, "# One\n\nnew\n") == "# One\n\nnew\n\n# Two\n\nsecond\n"
    assert with_part(old, "# Three\n\nx\n") == old + "\n# Three\n\nx\n"
    assert with_part("", "# Three\n\nx\n") == "# Three\n\nx\n"


def test_tight_settings_come_from_the_search_by_size(tmp_path: Path) -> None:
    path = tmp_path / "tight.json"
    assert contenders.tight(20, path) is None
    entry = {"settings": {"autoTickPeriod": 0.003}}
    path.write_text(json.dumps({"budgets": {"20": {"9": entry}}}), encoding="utf-8")
    found = contenders.tight(20, path)
    assert found is not None
    assert found.settings_for(9) == {"autoTickPeriod": 0.003}
    assert found.budget == 20


def test_what_is_kept_of_each_phase_makes_one_report(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    assert kept(path) == (None, {})
    first = results_of(Samples(kill=[99.0], pause=[101.0], packets=[20.0]), THEIRS)
    first.round_trips_ms = [0.1]
    keep("failover", "2026-01-01", first, path)
    many = Results(FULL, (3,), failures=["once"])
    many.thousand.elect = [4000.0]
    keep("thousand", "2026-01-02", many, path)
    quiet = Results(FULL, (3,))
    quiet.calm = [Calm("hustings, 20 pps", 3, False, 1.0, 0, 0, 0, 0.0)]
    quiet.resources["a", 3] = Resources(20.0, 10.0, 0.2)
    quiet.flat["a", 3] = [9.0]
    keep("calm", "2026-01-02", quiet, path)
    many.thousand.elect = [3000.0]
    many.failures = []
    keep("thousand", "2026-01-03", many, path)  # in the place of the first
    whole, days = kept(path)
    assert whole is not None
    assert days == {"failover": "2026-01-01", "thousand": "2026-01-03", "calm": "2026-01-02"}
    assert (whole.failover, whole.round_trips_ms) == (first.failover, [0.1])
    assert (whole.thousand.elect, whole.failures) == ([3000.0], [])
    assert (whole.calm, whole.resources, whole.flat) == (quiet.calm, quiet.resources, quiet.flat)
    assert "thousand on 2026-01-03" in report.dates(days)[0]
