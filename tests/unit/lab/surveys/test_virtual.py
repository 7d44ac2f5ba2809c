"""Surveys of groups in memory, whose conditions are known: the truth comes back, on average, too.

A survey runs on the members' own code, on a virtual clock. So it can be had for many seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from statistics import fmean
from typing import Any

import pytest

from hustings.lab.surveys.asking import CollectedSurvey, Survey
from hustings.lab.surveys.describing import EnvironmentReport, NothingMeasured, describe
from hustings.net.survey import SurveyAnswers
from hustings.sim.delay import Fixed, Lognormal
from hustings.sim.environment import parse_environment
from hustings.sim.loss import Burst
from hustings.sim.sites import SiteDelay, SiteLoss
from hustings.testing import Group

Deed = Callable[[Group], None]


def site_of(address: str, attributes: Mapping[str, float]) -> str:
    number = attributes.get("site")
    return "" if number is None else "ab"[int(number)]


def surveyed(
    environment: str,
    seed: int = 1,
    seconds: float = 60.0,
    members: int = 4,
    sites: tuple[int, ...] = (),
    rate: float = 2.0,
    deeds: Mapping[float, Deed] | None = None,
    **options: Any,
) -> CollectedSurvey:
    """What a survey of a group in memory collects; deeds are done to the group meanwhile."""
    parsed = parse_environment(environment)
    with Group(seed=seed, environment=parsed, most_callbacks=60_000_000) as group:
        for number in range(members):
            site = {"site": float(sites[number])} if sites else {}
            group.join(f"m{number}", attributes=site, **options)
        observer = group.join("observer", observer=True)
        group.advance(3.0)

        async def run() -> CollectedSurvey:
            survey = Survey(observer, seconds, rate=rate, site_of=site_of)
            for after, deed in (deeds or {}).items():
                group.inside.loop.call_later(after, deed, group)
            return await survey.run()

        return group.run(run())


def begin(group: Group, deed: Coroutine[Any, Any, object]) -> None:
    group.inside.loop.create_task(deed)


def described(*args: Any, **options: Any) -> EnvironmentReport:
    return describe(surveyed(*args, **options))


BURSTS = """
[delay]
within = "lognormal:12ms,0.3"
[loss]
rate = "3%"
burst = 4
"""
SEEDS = range(6)


def test_delays_and_bursts_are_unbiased_and_covered() -> None:
    truth = {"one way, median": 0.012, "lost": 0.03, "mean burst": 4.0}
    hits = dict.fromkeys(truth, 0)
    found: dict[str, list[float]] = {"median": [], "sigma": [], "p": [], "length": []}
    for seed in SEEDS:
        made = described(BURSTS, seed=seed)
        for row in made.rows:
            if (what := str(row["what"])) in hits:
                low, high = (float(str(row[end])) for end in ("low", "high"))
                hits[what] += low <= truth[what] <= high
        delay, loss = made.environment.network.delay, made.environment.network.loss
        assert isinstance(delay, Lognormal)
        assert isinstance(loss, Burst)
        for name, value in zip(
            found, (delay.median, delay.sigma, loss.p, loss.length), strict=True
        ):
            found[name].append(value)
    assert fmean(found["median"]) == pytest.approx(0.012, rel=0.02)
    assert fmean(found["sigma"]) == pytest.approx(0.3, abs=0.02)
    assert fmean(found["p"]) == pytest.approx(0.03, rel=0.15)  # three standard errors
    assert fmean(found["length"]) == pytest.approx(4.0, rel=0.12)
    assert min(hits.values()) >= len(SEEDS) - 2, hits


PAUSES = """
[delay]
within = "1ms"
[pauses]
rate = "2/m"
length = "exponential:200ms"
longest = "1s"
"""


def test_pauses_are_unbiased_and_are_neither_loss_nor_delay() -> None:
    rates, means = [], []
    for seed in range(4):
        made = described(PAUSES, seed=seed, seconds=150.0, members=3, rate=0.5)
        law = made.environment.pauses
        assert law is not None
        rates.append(law.rate * 60.0)
        row = next(row for row in made.rows if row["what"] == "mean of those")
        means.append(float(str(row["value"])))
        assert law.longest <= 1.03
        assert made.environment.network.delay == Fixed(0.001)
        assert made.environment.network.loss.p == 0.0
    assert fmean(rates) == pytest.approx(2.0, rel=0.4)  # of 60 pauses
    # Those of 50 ms or more, of at most a second: 50 ms + 200 ms, less what is cut off.
    assert fmean(means) == pytest.approx(0.25 - 0.2 * 2.718281828 ** -((1.0 - 0.05) / 0.2), rel=0.3)


SITES = """
[sites]
a = 2
b = 3
[delay]
within = "lognormal:1ms,0.2"
between."a,b" = "lognormal:20ms,0.1"
[loss]
rate = "0%"
between."a>b" = "6%"
"""


def test_sites_have_laws_of_their_own() -> None:
    made = described(SITES, members=5, sites=(0, 0, 1, 1, 1), seconds=90.0)
    network = made.environment.network
    assert made.environment.sites is not None
    assert (made.environment.sites.names, made.environment.sites.sizes) == (("a", "b"), (2, 3))
    assert isinstance(network.delay, SiteDelay)
    within, between = network.delay.within, network.delay.between[0, 1]
    assert isinstance(within, Lognormal)
    assert isinstance(between, Lognormal)
    assert within.median == pytest.approx(0.001, rel=0.05)
    assert between.median == pytest.approx(0.02, rel=0.05)
    assert isinstance(network.loss, SiteLoss)
    assert network.loss.between[0, 1].p == pytest.approx(0.06, rel=0.25)
    assert network.loss.between[1, 0].p == 0.0  # the two ways are told apart
    assert parse_environment(made.to_toml("g")) == made.environment


def test_what_a_stall_drops_is_not_lost_by_the_network() -> None:
    """Longer than the stall bound: what waits to be read is dropped."""
    deeds: dict[float, Deed] = {}
    for turn in range(6):
        deeds[5.0 + 8 * turn] = lambda group: group.inside.pause("m1")
        deeds[7.5 + 8 * turn] = lambda group: group.inside.resume("m1")
    made = described("[delay]\nwithin = '2ms'", seconds=60.0, deeds=deeds)
    assert made.environment.network.loss.p == 0.0
    assert made.environment.network.delay == Fixed(0.002)
    assert made.environment.pauses is not None
    assert made.environment.pauses.length == Fixed(2.5)
    assert made.environment.pauses.rate == pytest.approx(6 / (4 * 60.0 - 15.0), rel=0.1)


def test_crashes_returns_and_farewells_are_told_apart() -> None:
    deeds: dict[float, Deed] = {
        10.0: lambda group: group.inside.kill("m1"),
        20.0: lambda group: begin(group, group.inside.restart("m1")),
        30.0: lambda group: begin(group, group.inside.leave("m2")),
        40.0: lambda group: group.inside.kill("m3", machine=True),
    }
    found = surveyed("[delay]\nwithin = '2ms'", seconds=80.0, members=5, deeds=deeds)
    by_name = {each.name: who for who, each in found.members.items()}
    assert [crash.member for crash in found.crashes] == [by_name["m1"], by_name["m3"]]
    assert found.left == 1
    assert found.crashes[0].down == pytest.approx(10.0, abs=1.5)
    assert found.crashes[1].down is None
    assert len(found.members[by_name["m1"]].processes) == 2
    assert sorted(found.present) == sorted(by_name[name] for name in ("m0", "m1", "m4"))
    made = describe(found)
    assert made.environment.members == 3
    assert made.environment.crashes is not None
    assert isinstance(made.environment.crashes.back, Fixed)
    assert made.environment.crashes.back.delay == pytest.approx(10.0, abs=1.5)


def test_a_cut_that_heals_is_no_crash() -> None:
    def cut(group: Group) -> None:
        for other in ("m0", "m2", "m3", "observer"):
            group.inside.cut("m1", other)

    deeds: dict[float, Deed] = {10.0: cut, 25.0: lambda group: group.inside.heal()}
    found = surveyed("[delay]\nwithin = '2ms'", seconds=60.0, deeds=deeds)
    assert not found.crashes
    assert found.left == 0


def test_members_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = SurveyAnswers.heard

    def silent(self: SurveyAnswers, got: Any, source: Any) -> None:
        if not self._node.stack.membership.circle.own.place.endswith(" m2"):
            answers(self, got, source)

    monkeypatch.setattr(SurveyAnswers, "heard", silent)
    made = described("[delay]\nwithin = '2ms'", seconds=20.0)
    assert any("m2, which did not answer: an older release" in each for each in made.missing)
    assert made.environment.network.delay == Fixed(0.002)
    assert made.environment.network.loss.p == 0.0  # silence is not loss
    monkeypatch.setattr(SurveyAnswers, "heard", lambda self, got, source: None)
    with pytest.raises(NothingMeasured, match="none of the 4 members"):
        described("[delay]\nwithin = '2ms'", seconds=10.0)


def test_one_member_alone_has_no_ways() -> None:
    with pytest.raises(NothingMeasured, match="no delay could be measured"):
        described("[delay]\nwithin = '2ms'", seconds=10.0, members=1)


def test_a_survey_ends_when_it_is_stopped() -> None:
    environment = parse_environment("[delay]\nwithin = '2ms'")
    with Group(seed=1, environment=environment) as group:
        for name in "abc":
            group.join(name)
        observer = group.join("observer", observer=True)

        async def run() -> CollectedSurvey:
            survey = Survey(observer, 1000.0)
            group.inside.loop.call_later(30.0, survey.stop.set)
            return await survey.run()

        found = group.run(run())
    assert found.stopped
    assert found.seconds == pytest.approx(33.0, abs=1.5)
    assert describe(found).environment.network.delay == Fixed(0.002)
    assert "stopped before its time" in describe(found).to_toml("g")


def test_large_groups_are_asked_at_a_bounded_rate() -> None:
    """And every member tells of its stalls, though not every one measures ways."""
    environment = parse_environment("[delay]\nwithin = '2ms'")
    with Group(seed=1, environment=environment) as group:
        for number in range(70):
            group.join(f"m{number}")
        observer = group.join("observer", observer=True)
        group.advance(5.0)
        before = observer.metrics().messages_sent.get("SURVEY", 0)

        async def run() -> CollectedSurvey:
            return await Survey(observer, 8.0).run()

        found = group.run(run())
        asked = observer.metrics().messages_sent["SURVEY"] - before
        probes = [
            group.member(f"m{n}").metrics().messages_sent.get("SURVEY-PROBE", 0) for n in range(70)
        ]
    assert asked <= 201 * found.seconds
    assert not found.silent
    assert max(probes) <= 101 * found.seconds
    assert 90 <= len(found.ways) <= 96
