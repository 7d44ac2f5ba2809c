"""From what a survey has collected to an environment file in which each number says what it is.

A comment above a number gives its sample and its interval, at 95 %. What could not be measured is
not in the file, and a sentence says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TypeVar

from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.quantities import PERIODS, parse_rate
from hustings.lab.plans.intervals import CONFIDENCE, Interval, poisson_rate
from hustings.lab.surveys.asking import CollectedSurvey, Way, added
from hustings.lab.surveys.fitting import (
    FEWEST_TRIPS,
    DelayFit,
    LossFit,
    loss,
    one_way,
    pauses,
    rounded_time,
    slope,
)
from hustings.net.control_messages import WayCounts
from hustings.net.stall_detector import LEAST_STALL
from hustings.sim.delay import Delay, Exponential, Fixed
from hustings.sim.environment import HEADERS, Crashes, Environment
from hustings.sim.loss import Loss, NoLoss
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses
from hustings.sim.sites import SITE, SiteDelay, SiteLoss, Sites

F = TypeVar("F")
Key = tuple[str, str]  # table and key of an environment file
Pair = tuple[str, str]  # sites

_FEWEST_BACK = 3  # returns that the law of a down-time rests on
_PERIODS = ("h", "day", "month", "year")
_NAMED = 8  # names in a sentence
_ALONE = ""  # the site of all members, where there are no sites


class NothingMeasured(Exception):
    """Nobody answered, or there was nothing to measure."""


@dataclass(slots=True)
class EnvironmentReport:
    """An environment, what each of its numbers rests on, and what is not in it."""

    environment: Environment
    seconds: float
    stopped: bool
    comments: dict[Key, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)  # quantity, value, low, high, ...

    def say(self, key: Key, what: str, unit: str, value: Interval, samples: int, of: str) -> None:
        """Note a number with its interval, and write it above its key."""
        row: dict[str, object] = {"what": what, "unit": unit, "value": value.value}
        self.rows.append(row | {"low": value.low, "high": value.high, "samples": samples})
        low, high = (written(each, unit) for each in (value.low, value.high))
        said = f"{what}: {written(value.value, unit)} ({low} to {high}), of {samples:,} {of}"
        self.comments[key] = "; ".join(filter(None, (self.comments.get(key), said)))

    def to_toml(self, group: str) -> str:
        """The environment file, with its comments."""
        ended = ", stopped before its time" if self.stopped else ""
        head = [f"Measured in group {group!r} for {self.seconds:.0f} s{ended}."]
        head.append("The numbers in parentheses are the ends of 95 % intervals.")
        head += [f"Not measured: {each}." for each in self.missing]
        lines = [f"# {ascii(each)[1:-1]}" for each in head]
        table = ""
        for line in self.environment.to_toml().splitlines():
            if form := re.fullmatch(r"\[(.+)\]", line):
                table = form[1]
            comment = self.comments.get((table, line.partition(" = ")[0].strip('"')))
            if comment:
                lines += [f"# {each}" for each in comment.split("; ")]
            lines.append(line)
        return "\n".join(lines) + "\n"


def written(value: float, unit: str) -> str:
    """A number as people read it."""
    if unit == "s":
        return show_duration(float(f"{value:.3g}")) if value < 1e9 else "no end"
    if unit == "%":
        return f"{100 * value:.3g} %"
    if unit == "1/h":
        return f"{3600 * value:.3g}/h"
    if unit == "ppm":
        return f"{1e6 * value:.3g} ppm"
    return f"{value:.3g}{unit and ' '}{unit}"


def describe(collected: CollectedSurvey) -> EnvironmentReport:
    """The environment of a group, from a survey; `NothingMeasured` says why there is none."""
    answered = {who: each for who, each in collected.members.items() if each.processes}
    if not collected.members:
        raise NothingMeasured(
            f"no member of group {collected.group!r} was found: is it up, and is the key its own?"
        )
    if not answered:
        raise NothingMeasured(
            f"none of the {len(collected.members)} members of group {collected.group!r} answered: "
            "a release that knows no survey does not"
        )
    made = EnvironmentReport(
        Environment(Network(delay=Fixed(0.001))), collected.seconds, collected.stopped
    )
    sites = _sites(made, collected)
    fits = _by_pair(collected, sites)
    delays = {pair: fit for pair, (_, trips) in fits.items() if (fit := one_way(trips)) is not None}
    if not delays:
        raise NothingMeasured(
            f"no delay could be measured between the {len(collected.members)} members of group "
            f"{collected.group!r}: that takes two that answer, and {FEWEST_TRIPS} round trips"
        )
    if silent := collected.silent:
        made.missing.append(
            f"anything at {_some(silent)}, which did not answer: an older release, or cut off"
        )
    losses = {pair: lost for pair, (sent, _) in fits.items() if (lost := loss(sent)) is not None}
    made.environment = _environment(made, collected, sites, delays, losses)
    return made


def _environment(
    made: EnvironmentReport,
    collected: CollectedSurvey,
    sites: Mapping[int, str],
    delays: Mapping[Pair, DelayFit],
    losses: Mapping[Pair, LossFit],
) -> Environment:
    names = list(dict.fromkeys(sorted(sites.values())))
    there = [site for who, site in sites.items() if who in collected.present]
    sizes = tuple(max(1, there.count(each)) for each in names)
    place = Sites(tuple(names), sizes) if len(names) > 1 else None
    network = _network(made, place, names, delays, losses)
    hosts = [each.address for each in collected.members.values()]
    return Environment(
        network=network,
        members=sum(sizes),
        sites=place,
        pauses=_pauses(made, collected),
        crashes=_crashes(made, collected),
        drift=_drift(made, collected),
        header=HEADERS[6 if hosts and all(each.startswith("[") for each in hosts) else 4],
    )


def _sites(made: EnvironmentReport, collected: CollectedSurvey) -> dict[int, str]:
    """The site of each member; if none has one, all are at one place without a name."""
    found = {who: each.site for who, each in collected.members.items()}
    if not any(found.values()):
        return dict.fromkeys(found, _ALONE)
    if lacking := [collected.members[who].name for who, site in found.items() if not site]:
        made.missing.append(f"anything at {_some(lacking)}, at none of the sites")
    placed = {who: site for who, site in found.items() if site}
    if wrong := [site for site in placed.values() if re.fullmatch(SITE, site) is None]:
        raise BadInput(f"site {wrong[0]!r} is no name: write a letter, then letters and digits")
    return placed


def _some(names: list[str]) -> str:
    """Names as a sentence has them, not all if they are many."""
    return ", ".join(names[:_NAMED]) + " and others" * (len(names) > _NAMED)


# Delays and losses


def _by_pair(
    collected: CollectedSurvey, sites: Mapping[int, str]
) -> dict[Pair, tuple[WayCounts, list[float]]]:
    """Counts of each way between two sites, and the round trips, which count for both ways."""
    found: dict[Pair, tuple[WayCounts, list[float]]] = {}

    def add(way: Way, counts: WayCounts, trips: Iterable[float]) -> None:
        pair = sites[way[0]], sites[way[1]]
        before = found.get(pair, (WayCounts(), []))
        found[pair] = added(before[0], counts), [*before[1], *trips]

    for (one, other), measured in collected.ways.items():
        if one not in sites or other not in sites:
            continue
        out, back = measured.counts
        add((one, other), out, measured.trips)
        add((other, one), back, measured.trips if sites[one] != sites[other] else ())
    return found


def _network(
    made: EnvironmentReport,
    place: Sites | None,
    names: list[str],
    delays: Mapping[Pair, DelayFit],
    losses: Mapping[Pair, LossFit],
) -> Network:
    within = _within(made, names, delays, losses)
    if place is None:
        return Network(delay=within[0], loss=within[1])
    between: dict[tuple[int, int], Delay] = {}
    lost: dict[tuple[int, int], Loss] = {}
    for a, one in enumerate(names):
        for b, other in enumerate(names):
            if a == b:
                continue
            fit = delays.get((one, other)) or delays.get((other, one))
            if fit is None:
                raise NothingMeasured(
                    f"no round trip between sites {one} and {other} was measured: measure for a "
                    "longer time, or without sites"
                )
            # A round trip does not tell its two ways apart, so both have one law.
            first = (min(one, other), max(one, other))
            fit = delays.get(first, fit)
            between[a, b] = fit.law
            if a < b:
                _say_delay(made, ("delay.between", f"{one},{other}"), f"{one} to {other}", fit)
            if (found := losses.get((one, other))) is not None:
                lost[a, b] = found.law
    for (one, other), found in losses.items():
        if one != other:
            both = losses.get((other, one))
            same = both is not None and both.law == found.law
            key = f"{one},{other}" if same else f"{one}>{other}"
            if not same or one < other:
                _say_loss(made, ("loss.between", key), f"{one} to {other}", found)
    loss_law = within[1]
    if any(each != loss_law for each in lost.values()):
        loss_law = SiteLoss.of(place, loss_law, lost)
    return Network(delay=SiteDelay(place, within[0], between), loss=loss_law)


def _within(
    made: EnvironmentReport,
    names: list[str],
    delays: Mapping[Pair, DelayFit],
    losses: Mapping[Pair, LossFit],
) -> tuple[Delay, Loss]:
    """Delay and loss within sites, of all of them together: the slowest counts if they differ."""
    inside = [delays[name, name] for name in names if (name, name) in delays]
    if not inside:
        made.missing.append(
            "the delay within a site, as no site has two members that answer: the shortest "
            "between two sites stands for it"
        )
        inside = [min(delays.values(), key=lambda fit: fit.median.value)]
        found = losses.get(next(pair for pair, fit in delays.items() if fit is inside[0]))
    else:
        counts = WayCounts()
        for name in names:
            if (name, name) in losses:
                counts = added(counts, losses[name, name].counts)
        found = loss(counts)
    slowest = max(inside, key=lambda fit: fit.law.bound)
    _say_delay(
        made, ("delay", "within"), "one way" if len(inside) == 1 else "slowest site", slowest
    )
    if found is None:
        made.missing.append("losses, as no probe was settled")
        return slowest.law, NoLoss()
    _say_loss(made, ("loss", "rate"), "lost", found)
    return slowest.law, found.law


def _say_delay(made: EnvironmentReport, key: Key, what: str, fit: DelayFit) -> None:
    made.say(key, f"{what}, median", "s", fit.median, fit.samples, "round trips")
    made.say(key, f"{what}, spread of the logarithm", "", fit.sigma, fit.samples, "round trips")


def _say_loss(made: EnvironmentReport, key: Key, what: str, fit: LossFit) -> None:
    sent = fit.counts.sent
    if isinstance(fit.law, NoLoss):
        made.missing.append(
            f"losses{'' if what == 'lost' else ' from ' + what}: none of {sent:,} probes was lost, "
            f"so at most {written(fit.share.high, '%')} are"
        )
        row: dict[str, object] = {"what": what, "unit": "%", "value": 0.0, "low": 0.0}
        made.rows.append(row | {"high": fit.share.high, "samples": sent})
        return
    made.say(key, what, "%", fit.share, sent, "probes one way")
    if (length := fit.length) is not None:
        burst = ("loss", "burst") if key == ("loss", "rate") else key
        made.say(burst, "mean burst", "datagrams", length, fit.counts.after_loss, "after a loss")


# Members


def _pauses(made: EnvironmentReport, collected: CollectedSurvey) -> Pauses | None:
    processes = [each for member in collected.members.values() for each in member.processes]
    lengths = [length for each in processes for length in each.stalls.values()]
    count = sum(each.stall_count for each in processes)
    watched = sum(each.watched for each in processes)
    longest = max((each.longest for each in processes), default=0.0)
    fit = pauses(lengths, count, watched, longest)
    least = written(LEAST_STALL, "s")
    if fit is None:
        seen = f"{count} of {least} or more" if count else f"none of {least} or more"
        before = f"; the longest since they began took {written(longest, 's')}" if longest else ""
        most = poisson_rate(count, max(watched, 1e-9)).high
        made.missing.append(
            f"pauses: {seen} in {watched:,.0f} s of members, so at most {written(most, '1/h')} of "
            f"each member{before}"
        )
        return None
    of = f"pauses of {least} or more, in {watched:,.0f} s of members"
    made.say(("pauses", "rate"), "pauses of each member", "1/h", fit.rate, count, of)
    made.say(("pauses", "length"), "mean of those", "s", fit.mean, fit.samples, "pauses")
    made.comments["pauses", "longest"] = (
        "the longest that was seen since the members began: a longer one may come"
    )
    return Pauses(_round_rate(fit.rate.value), fit.law, rounded_time(fit.longest))


def _round_rate(rate: float) -> float:
    """A rate as a whole number in the shortest period in which there are ten or more."""
    text = next(
        (f"{rate * PERIODS[each]:.0f}/{each}" for each in _PERIODS if rate * PERIODS[each] >= 10),
        "",
    )
    return parse_rate(text) if text else rate


def _crashes(made: EnvironmentReport, collected: CollectedSurvey) -> Crashes | None:
    watched = sum(max(0.0, each.seen - each.since) for each in collected.members.values())
    count = len(collected.crashes)
    rate = poisson_rate(count, max(watched, 1e-9))
    down = [each.down for each in collected.crashes if each.down is not None]
    if not count:
        made.missing.append(
            f"crashes: none in {watched:,.0f} s of members, so at most "
            f"{written(rate.high, '1/h')} of each member"
        )
        return None
    if not down:
        made.missing.append(
            f"crashes: {count} seen in {watched:,.0f} s of members ({written(rate.value, '1/h')} "
            "of each member), and none was back, so there is no law of the time until then"
        )
        return None
    of = f"crashes in {watched:,.0f} s of members"
    made.say(("crashes", "rate"), "crashes of each member", "1/h", rate, count, of)
    mean = rounded_time(max(fmean(down), 1e-3))
    made.comments["crashes", "back"] = f"mean of {len(down)} returns"
    return Crashes(
        _round_rate(rate.value), Exponential(mean) if len(down) >= _FEWEST_BACK else Fixed(mean)
    )


def _drift(made: EnvironmentReport, collected: CollectedSurvey) -> float:
    """The largest rate at which a clock runs away from the median of all."""
    clocks = [each.process.clocks for each in collected.members.values() if each.process]
    # All of them are right with this confidence, so the largest one is, too.
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(1, len(clocks))
    slopes = [found for each in clocks if (found := slope(each, confidence)) is not None]
    if not slopes:
        made.missing.append("clock drift, as there were too few comparisons of clocks")
        return 0.0
    middle = median([0.0, *(each.value for each in slopes)])  # the survey's own clock counts, too
    largest = max(slopes, key=lambda each: abs(each.value - middle))
    off, half = abs(largest.value - middle), (largest.high - largest.low) / 2.0
    found = Interval(off, max(0.0, off - half), off + half, largest.method)
    if off <= half:
        made.missing.append(
            f"clock drift, as it is too small for so short a time: at most "
            f"{written(found.high, 'ppm')} between {len(slopes) + 1} clocks"
        )
        return 0.0
    made.say(("clocks", "drift"), "largest", "ppm", found, len(slopes) + 1, "clocks")
    return float(f"{found.high:.3g}")
