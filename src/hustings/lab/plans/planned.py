"""What a plan says: configurations with their evidence, files to run, and when to be alarmed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from hustings.core.config import Config
from hustings.core.durations import show_duration
from hustings.core.quantities import PERIODS
from hustings.lab.plans.bounds import round_trip, timers
from hustings.lab.plans.candidates import FAILOVER, WRONG, Impossible, SettingReason
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.goals import GroupGoals, show_bytes, show_rate
from hustings.lab.plans.search import MET, OPEN, PlayedProposal, Prediction, SearchedPlan
from hustings.lab.plans.sensitivity import Sensitivity, sensitivity
from hustings.lab.plans.verify import Verification
from hustings.lab.tables import Table, as_html, as_notes, plotted
from hustings.net.limits import Limits
from hustings.sim.environment import Environment

FEASIBLE, INFEASIBLE, UNDECIDED = "feasible", "infeasible", "undecided"
MONTHLY = 1.0 / PERIODS["month"]  # wrong failovers that are worth an alarm, at least
DAY = 86_400.0
KEPT = "default; no goal forces it"


@dataclass(frozen=True, slots=True)
class PlannedSetting:
    """One setting of a planned configuration."""

    setting: str
    value: str
    goal: str  # that forces it; "" for a default
    because: str

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "setting": self.setting,
            "value": self.value,
            "goal": self.goal or None,
            "because": self.because,
        }


@dataclass(frozen=True, slots=True)
class Alarm:
    """When to be alarmed."""

    metric: str
    condition: str
    because: str

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {"metric": self.metric, "condition": self.condition, "because": self.because}


@dataclass(frozen=True, slots=True)
class PlannedOption:
    """One configuration of a plan, with all that is known of it."""

    name: str  # A, B, ...
    played: PlayedProposal
    environment: Environment

    @property
    def configuration(self) -> Configuration:
        """What members are told."""
        return self.played.configuration

    @property
    def verdict(self) -> str:
        """met, missed or undecided."""
        return self.played.verdict

    @property
    def changed(self) -> tuple[SettingReason, ...]:
        """The settings that differ from the defaults, with the goal that forces each."""
        return self.played.proposal.reasons

    def settings(self) -> list[PlannedSetting]:
        """Every setting: those that a goal forces, then those that keep their defaults."""
        chosen = [
            PlannedSetting(each.setting, each.value, each.goal, each.because)
            for each in self.changed
        ]
        names = [each.setting for each in chosen]
        return chosen + [each for each in defaults(self.configuration) if each.setting not in names]

    def sensitivity(self) -> list[Sensitivity]:
        """By how much each assumption may worsen."""
        return sensitivity(self.played, self.environment)

    def alarms(self) -> list[Alarm]:
        """Thresholds for the metrics of members."""
        return alarms(self.played, self.environment)

    def to_toml(self) -> str:
        """A `hustings.toml` for the first member; the others have other names."""
        return self.configuration.to_toml()

    def run_lines(self) -> list[str]:
        """`hustings run` for the voters, or the first members of the group.

        None where the lease leaves no time to end a command in: then the work has to be done in
        the member's process, which ends with its leadership.
        """
        if not self.configuration.runs_commands:
            return []
        count = min(3, self.environment.members or 3)
        if self.configuration.voters:
            return [self.configuration.run_line(name=each) for each in self.configuration.voters]
        return [self.configuration.run_line(name=each) for each in range(1, count + 1)]

    def to_json(self) -> dict[str, object]:
        """For scripts."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "survives": not self.played.broken,
            "broken": list(self.played.broken),
            "goals": [told(each) for each in self.played.predictions],
            "settings": [each.to_json() for each in self.settings()],
            "sensitivity": [each.to_json() for each in self.sensitivity()],
            "alarms": [each.to_json() for each in self.alarms()],
            "hustings_toml": self.to_toml(),
            "run": self.run_lines(),
        }


def told(one: Prediction) -> dict[str, object]:
    """A prediction for scripts."""
    return {
        "goal": one.goal,
        "wanted": one.wanted,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "margin": one.margin,
        "verdict": one.verdict or None,
        "method": one.method,
    }


def wanted_words(one: Prediction) -> str:
    """A goal as people write it; "" if it is none."""
    if one.wanted is None:
        return ""
    if one.goal == "two-leaders" and one.wanted == 0.0:
        return "never"
    return one.show(one.wanted)


@dataclass(frozen=True, slots=True)
class GroupPlan(Table):
    """The answer to goals in an environment."""

    goals: GroupGoals
    environment: Environment
    found: SearchedPlan
    impossible: tuple[Impossible, ...]
    assumptions: tuple[str, ...]
    command: str = ""
    verification: Verification | None = None  # of the first configuration, on real processes
    unverified: str = ""  # why there is none, though it was asked for

    @property
    def options(self) -> tuple[PlannedOption, ...]:
        """The configurations, the proposed one first."""
        return tuple(
            PlannedOption(chr(ord("A") + place), each, self.environment)
            for place, each in enumerate(self.found.front)
        )

    @property
    def proposed(self) -> PlannedOption | None:
        """The configuration to run; None if none meets the goals."""
        return self.options[0] if self.verdict == FEASIBLE else None

    @property
    def verdict(self) -> str:
        """feasible, infeasible, or undecided with this effort.

        A plan whose predictions real processes contradict is not feasible.
        """
        verdicts = [each.verdict for each in self.found.front]
        if self.verification is not None and not self.verification.agrees:
            return INFEASIBLE
        if self.unverified:
            return UNDECIDED
        if MET in verdicts:
            return FEASIBLE
        return UNDECIDED if OPEN in verdicts else INFEASIBLE

    def rows(self) -> list[dict[str, object]]:
        """One row for each configuration and goal."""
        return [
            {
                "option": option.name,
                **told(each),
                "wanted": wanted_words(each),
                "predicted": each.show(each.value),
            }
            for option in self.options
            for each in option.played.predictions
        ]

    def notes_html(self) -> str:
        """What is impossible, what was assumed, and the file of the proposed configuration."""
        notes = [f"{each.because}; nearest: {each.nearest}" for each in self.impossible]
        text = as_notes([*notes, *self.assumptions])
        if self.options:
            settings = [each.to_json() for each in self.options[0].settings()]
            text += as_html(settings) + f"<pre>{escape(self.options[0].to_toml())}</pre>"
        return text

    def to_json(self) -> dict[str, object]:
        """As `hustings plan --json` prints it."""
        return {
            "verdict": self.verdict,
            "goals": self.goals.words(),
            "environment": self.environment.to_toml(),
            "assumptions": list(self.assumptions),
            "impossible": [
                {"goal": each.goal, "because": each.because, "nearest": each.nearest}
                for each in self.impossible
            ],
            "candidates": {
                "tried": self.found.tried,
                "pruned": dict(self.found.pruned),
                "played": self.found.played,
                "members_played": self.found.members,
            },
            "protocols_left_out": dict(self.found.space.protocols),
            "options": [each.to_json() for each in self.options],
            "verification": None if self.verification is None else self.verification.to_json(),
            "unverified": self.unverified or None,
            "replay": self.command,
        }

    def plot(self) -> dict[str, bytes]:
        """Failover against wrong failovers; the larger a mark, the more bytes. PNG and SVG."""
        return plotted("plan", self._draw)

    def _draw(self, axes: Any) -> None:
        for option in self.options:
            fail, errs, _, size = option.played.costs
            x = fail if math.isfinite(fail) else option.played.of(FAILOVER).value
            y = max(errs if math.isfinite(errs) else 1.0, 1e-12)
            area = 40.0 + 30.0 * math.log10(max(size, 1.0)) if math.isfinite(size) else 40.0
            axes.scatter([x], [y], s=area, label=f"{option.name}: {option.verdict}")
            axes.annotate(option.name, (x, y), textcoords="offset points", xytext=(8, 4))
        if self.goals.failover_p99 is not None:
            axes.axvline(self.goals.failover_p99, linestyle="--", linewidth=0.8)
        if self.goals.wrong is not None:
            axes.axhline(self.goals.wrong, linestyle="--", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("failover, 99th percentile, upper end (s)")
        axes.set_ylabel("wrong failovers per second, upper end")
        if self.options:
            axes.legend()
        axes.set_title(f"{self.verdict}; dashed: the goals", fontsize=9)


# Defaults


def defaults(configuration: Configuration) -> list[PlannedSetting]:
    """All settings that a configuration leaves to `join`, with the values that they get."""
    made = configuration.configured()
    found = [
        _kept("protocol", configuration.protocol),
        _kept("choice", configuration.choice),
        _kept("detector", configuration.detector if made.detector is not None else "none"),
        _kept("multicast", configuration.multicast),
        _kept("preempt", "no"),
        _kept("measure", configuration.measure or "none"),
        _kept("guard", configuration.guard or "none"),
        _kept("stall-bound", _shown(made.leadership.longest_stall)),
    ]
    tables: list[tuple[str, Config, Mapping[str, object]]] = [
        ("", made.election, configuration.settings),
        ("gossip-settings.", made.stack, configuration.gossip_settings),
        ("leadership-settings.", made.leadership, configuration.leadership_settings),
    ]
    if made.detector is not None:
        tables.append(("detector-settings.", made.detector, configuration.detector_settings))
    if made.lease is not None:
        tables.append(("guard-settings.", made.lease, {"ttl": 0, **configuration.guard_settings}))
        if configuration.grace is not None:
            found.append(_kept("grace", _shown(configuration.grace)))
    for head, values, given in tables:
        found += [
            _kept(f"{head}{name}", _shown(value))
            for name, value in _fields(values).items()
            if name not in given and (head == "" or name != "delta")
        ]
    usual = Limits()
    found += [
        _kept(f"limits.{name}", _shown(getattr(usual, name)))
        for name in usual.__struct_fields__
        if name not in configuration.limits
    ]
    return found


def _fields(config: Config) -> dict[str, object]:
    return {each.name: getattr(config, each.name) for each in msgspec.structs.fields(type(config))}


def _kept(name: str, value: str) -> PlannedSetting:
    return PlannedSetting(name, value, "", KEPT)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "by the others" if value is None else str(value)


# Alarms


def alarms(played: PlayedProposal, environment: Environment) -> list[Alarm]:
    """When the metrics of a group say that it is not what was planned."""
    configuration = played.configuration
    at = timers(configuration, environment)
    fail, errs = played.of(FAILOVER), played.of(WRONG)
    longest = min(max(fail.high, fail.value), DAY)
    often = max(errs.high, errs.wanted or MONTHLY)
    found = [
        Alarm(
            "hustings_is_leader",
            f"sum over the group is 0 for {_seconds(longest)}, or 2",
            "a failover should be over by then; two leaders at one time should not be"
            if configuration.guard is None
            else "a failover should be over by then; with leases there are never two",
        ),
        Alarm(
            "hustings_leaderless_seconds_total",
            f"grows by more than {_seconds(longest)} in one failover",
            "the predicted 99th percentile",
        ),
        Alarm(
            "hustings_leader_changes_total",
            f"grows faster than {show_rate(often)} without a crash",
            "the rate of wrong failovers that is wanted or predicted",
        ),
        Alarm(
            "hustings_network_bytes_total",
            f"grows by more than {show_bytes(1.5 * played.of('bytes').value)} in and out",
            "half as much again as predicted: the group is larger, or does not come to rest",
        ),
    ]
    if at.ttl:
        silence = at.renewal + at.retry + round_trip(configuration, environment)
        found += [
            Alarm(
                "hustings_guard_silence_seconds",
                f"above {_seconds(silence)}",
                "a renewal and one retry had no answer: the lease ends in "
                f"{_seconds(max(0.0, at.window - silence))}",
            ),
            Alarm(
                "hustings_stale_leader_bound_seconds",
                f"above {_seconds(at.ttl)}",
                "another ttl than planned is in use",
            ),
        ]
    if environment.members:
        found.append(
            Alarm(
                "hustings_members",
                f"differs from {environment.members} for {_seconds(max(60.0, at.forgotten))}",
                "a member is gone, or does not find the group",
            )
        )
    return found


def _seconds(value: float) -> str:
    return show_duration(float(f"{value:.2g}"))
