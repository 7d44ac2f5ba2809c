"""From what was collected to the file: each number has its comment, and what is missing is said."""

from __future__ import annotations

import random
import tomllib

import pytest

from hustings.core.errors import BadInput
from hustings.lab.measuring import sites_by
from hustings.lab.surveys.asking import (
    CollectedSurvey,
    MeasuredWay,
    SeenCrash,
    SurveyedMember,
    SurveyedProcess,
    chosen_ways,
)
from hustings.lab.surveys.describing import NothingMeasured, describe, written
from hustings.net.control_messages import LinkReport, WayCounts
from hustings.sim.delay import Fixed, Lognormal
from hustings.sim.environment import parse_environment


def collected(members: int = 2, sites: tuple[str, ...] = (), lost: int = 0) -> CollectedSurvey:
    """Ways of 20 ms between all, measured for a minute."""
    rng = random.Random(1)
    made = CollectedSurvey("billing", seconds=60.0)
    for who in range(members):
        process = SurveyedProcess(9, 0.0, 0, watched=60.0)
        process.clocks = [(t * 0.5, 3.0, 0.002) for t in range(120)]
        made.members[who] = SurveyedMember(
            f"web-{who}",
            f"10.0.0.{who}:7400",
            sites[who] if sites else "",
            9,
            0.0,
            60.0,
            100,
            process,
        )
        made.present.append(who)
    for way in chosen_ways(dict.fromkeys(range(members), ""), 1, 96):
        counts = WayCounts(500, lost, lost, lost // 2)
        report = LinkReport(way[1], counts, WayCounts(500 - lost, 0), 0, (), 0)
        trips = [0.04 + 0.002 * rng.random() for _ in range(120)]
        made.ways[way] = MeasuredWay(9, report, trips=trips)
    return made


def test_each_number_has_a_comment_with_its_sample_and_interval() -> None:
    text = describe(collected(lost=20)).to_toml("billing")
    lines = text.splitlines()
    for key in ("within", "rate", "burst"):
        at = next(n for n, line in enumerate(lines) if line.startswith(f"{key} = "))
        assert lines[at - 1].startswith("# ")
        assert " to " in lines[at - 1]
        assert "of " in lines[at - 1]
    assert "of 240 round trips" in text
    assert "of 1,960 probes one way" in text


def test_the_file_is_read_as_the_same_environment() -> None:
    for made in (
        describe(collected()),
        describe(collected(lost=20)),
        describe(collected(4, ("east", "east", "west", "west"), lost=8)),
    ):
        assert parse_environment(made.to_toml("a group")) == made.environment


def test_what_was_not_measured_is_left_out_and_said() -> None:
    made = describe(collected())
    text = made.to_toml("billing")
    assert not {"loss", "pauses", "crashes", "clocks"} & set(tomllib.loads(text))
    said = "; ".join(made.missing)
    for word in ("none of 2,000 probes was lost, so at most", "pauses: none", "crashes: none"):
        assert word in said
    assert "clock drift" in said
    assert all(f"# Not measured: {each}." in text for each in made.missing)


def test_nobody_there_nobody_who_answers_and_nothing_between() -> None:
    with pytest.raises(NothingMeasured, match="no member of group 'billing' was found"):
        describe(CollectedSurvey("billing"))
    made = collected()
    for each in made.members.values():
        each.process = None
    with pytest.raises(NothingMeasured, match="none of the 2 members"):
        describe(made)
    made = collected()
    made.ways.clear()
    with pytest.raises(NothingMeasured, match="that takes two that answer"):
        describe(made)


def test_a_name_from_elsewhere_writes_no_line_of_its_own() -> None:
    text = describe(collected()).to_toml("x'\n[pauses]\nrate = '1/s'\n\x1b[2J")
    assert "pauses" not in tomllib.loads(text)
    assert "\x1b" not in text


def test_sites_need_a_way_between_each_two() -> None:
    made = collected(3, ("east", "east", "west"))
    for way in [way for way in made.ways if 2 in way]:
        del made.ways[way]
    with pytest.raises(NothingMeasured, match="no round trip between sites east and west"):
        describe(made)


def test_a_member_at_no_site_is_left_out_and_said() -> None:
    made = describe(collected(4, ("east", "east", "west", "")))
    assert made.environment.sites is not None
    assert made.environment.sites.sizes == (2, 1)
    assert any("web-3, at none of the sites" in each for each in made.missing)


def test_a_site_of_one_member_each_says_what_stands_for_its_inside() -> None:
    made = describe(collected(2, ("east", "west")))
    assert any("the delay within a site" in each for each in made.missing)
    assert isinstance(made.environment.network.delay.draw(random.Random(1), 1, 2), float)


def test_pauses_are_those_of_all_members_and_the_longest_of_their_lives() -> None:
    made = collected()
    for number, each in enumerate(made.members.values()):
        assert each.process is not None
        each.process.stalls = dict.fromkeys(range(1, 4), 0.2)
        each.process.stall_count = 3
        each.process.longest = 0.2 + number
    found = describe(made).environment.pauses
    assert found is not None
    assert (found.length, found.longest) == (Fixed(0.2), 1.2)
    assert found.rate == pytest.approx(6 / (120.0 - 1.2), rel=0.01)


def test_a_clock_that_runs_away_is_a_drift() -> None:
    made = collected(3)
    process = made.members[1].process
    assert process is not None
    process.clocks = [(t * 0.5, 3.0 + 2e-4 * t * 0.5, 0.002) for t in range(120)]
    assert describe(made).environment.drift == pytest.approx(2e-4, rel=0.01)


def test_crashes_without_a_return_have_a_rate_and_no_law() -> None:
    made = collected()
    made.crashes = [SeenCrash(0, 10.0)]
    found = describe(made)
    assert found.environment.crashes is None
    assert any("1 seen in 120 s of members" in each for each in found.missing)


def test_ways_are_shared_among_all_pairs_of_sites() -> None:
    sites = {who: "abc"[who % 3] for who in range(300)}
    ways = chosen_ways(sites, 5, 90)
    pairs = [(sites[one], sites[other]) for one, other in ways]
    assert {pairs.count(pair) for pair in pairs} == {10}
    assert len(set(pairs)) == 9
    assert ways == chosen_ways(sites, 5, 90)
    assert len(chosen_ways({1: "", 2: "", 3: ""}, 5, 90)) == 6


def test_sites_by_network_the_narrowest_first() -> None:
    site_of = sites_by({"all": ["10.0.0.0/8"], "near": ["10.1.0.0/16", "fd00::/8"]})
    assert site_of("10.1.2.3:7400", {}) == "near"
    assert site_of("10.2.2.3:7400", {}) == "all"
    assert site_of("[fd00::7]:7400", {}) == "near"
    assert site_of("192.0.2.1:7400", {"site": 3.0}) == ""
    assert sites_by({})("192.0.2.1:7400", {"site": 3.0}) == "site3"
    with pytest.raises(BadInput, match="is not understood: write NAME=ADDRESS"):
        sites_by({"a": ["10.0.0.0/99"]})


def test_numbers_as_people_read_them() -> None:
    assert [written(*each) for each in ((0.0123, "s"), (0.031, "%"), (1 / 3600, "1/h"))] == [
        "12.3ms",
        "3.1 %",
        "1/h",
    ]
    assert (written(2e-5, "ppm"), written(5.5, "datagrams"), written(0.3, "")) == (
        "20 ppm",
        "5.5 datagrams",
        "0.3",
    )


def test_the_law_of_narrow_trips_is_half_of_them() -> None:
    law = describe(collected()).environment.network.delay
    assert isinstance(law, Lognormal)
    assert law.median == pytest.approx(0.0205, rel=0.01)
