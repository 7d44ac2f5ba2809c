"""What a plan is asked: goals and an environment, from words or from one file, with assumptions.

What is not said is assumed, and every assumption is a sentence that the plan shows: what it is, and
what depends on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hustings.core.documents import LARGEST, Document, decoded
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput
from hustings.core.quantities import write_duration
from hustings.lab.plans.goals import NAMES, GroupGoals
from hustings.sim.environment import Environment, parse_environment
from hustings.sim.sites import parse_sites

WITHIN = "500us"  # one way, between members of one site
PAUSES = "6/h"  # of each member, if only the longest pause is said
_PART = 8.0  # of the longest pause: the mean
WORDS = (
    *("members", "sites", "within", "between", "loss", "between-loss", "burst"),
    *("pause-max", "pause", "pause-rate", "drift"),
)
_HEADER = re.compile(r"\s*\[+\s*([A-Za-z0-9_.\"'-]+)\s*\]+\s*(?:#.*)?")


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """Goals, an environment, and what was assumed of it."""

    goals: GroupGoals
    environment: Environment
    assumptions: tuple[str, ...]


def asked_in_words(words: Mapping[str, object]) -> Environment:
    """An environment from the words of a command line.

    >>> asked_in_words({"members": 5, "within": "1ms"}).members
    5
    """
    given = {
        name.replace("_", "-"): value
        for name, value in words.items()
        if value not in (None, (), "", [])
    }
    for name in given:
        if name not in WORDS:
            raise BadInput(f"{name} says nothing of an environment: {', '.join(WORDS)} do")
    if "members" not in given and "sites" not in given:
        raise BadInput("how large is the group? give --members, or --sites a=20,b=20")
    _check_together(given)
    text = "\n".join(_tables(given))
    return parse_environment(text, "the environment that the options say")


def _check_together(given: Mapping[str, object]) -> None:
    """Refuse what contradicts itself, in the words of the options."""
    if "sites" in given:
        sites = parse_sites(str(given["sites"]))
        if "members" in given and int(str(given["members"])) != sites.members:
            raise BadInput(
                f"--members says {given['members']} and --sites holds {sites.members}: say one"
            )
    elif "between" in given or "between-loss" in given:
        raise BadInput("--between goes with --sites: which sites are there?")
    if "burst" in given and "loss" not in given:
        raise BadInput("--burst goes with --loss: how much is lost in all?")
    if "pause-rate" in given and "pause" not in given and "pause-max" not in given:
        raise BadInput("--pause-rate goes with --pause or --pause-max: how long are they?")


def _tables(given: Mapping[str, object]) -> list[str]:
    """The words as an environment file."""
    lines = []
    if "sites" in given:
        sites = parse_sites(str(given["sites"]))
        sizes = zip(sites.names, sites.sizes, strict=True)
        lines += ["[sites]", *(f"{json.dumps(name)} = {size}" for name, size in sizes)]
    else:
        lines.append(f"members = {given['members']}")
    lines += ["[delay]", f"within = {json.dumps(str(given.get('within', WITHIN)))}"]
    lines += [
        f"between.{json.dumps(pair)} = {json.dumps(v)}" for pair, v in _pairs(given, "between")
    ]
    if "loss" in given or "between-loss" in given:
        lines += ["[loss]", f"rate = {json.dumps(str(given.get('loss', '0%')))}"]
        if "burst" in given:
            lines.append(f"burst = {given['burst']}")
        pairs = _pairs(given, "between-loss")
        lines += [f"between.{json.dumps(pair)} = {json.dumps(v)}" for pair, v in pairs]
    if "pause-max" in given or "pause" in given:
        lines += ["[pauses]", *_pauses(given)]
    if "drift" in given:
        lines += ["[clocks]", f"drift = {json.dumps(str(given['drift']))}"]
    return lines


def _pauses(given: Mapping[str, object]) -> list[str]:
    lines = [f"rate = {json.dumps(str(given.get('pause-rate', PAUSES)))}"]
    length = given.get("pause")
    if "pause-max" in given:
        longest = parse_duration(given["pause-max"], "pause-max")
        if not longest:
            raise BadInput("--pause-max must be more than 0: leave it out if nothing ever pauses")
        lines.append(f"longest = {json.dumps(write_duration(longest))}")
        if length is None:
            length = f"exponential:{write_duration(longest / _PART)}"
    return [*lines, f"length = {json.dumps(str(length))}"]


def _pairs(given: Mapping[str, object], name: str) -> list[tuple[str, str]]:
    """`a,b=40ms` texts as pairs of sites and values."""
    values = given.get(name, ())
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list | tuple):
        raise BadInput(f"{name} must be a text or a list of texts, not {values!r}")
    found = []
    for text in values:
        pair, equals, value = str(text).partition("=")
        if not equals or not value.strip() or not pair.strip():
            raise BadInput(f"--{name} {str(text)!r} is not understood: write A,B=VALUE")
        found.append((pair.strip(), value.strip()))
    return found


def assumptions(
    goals: GroupGoals, environment: Environment, said: Mapping[str, object] | None = None
) -> tuple[str, ...]:
    """What is assumed where nothing was said, and what depends on it.

    `said` are the words of a command line; in a file everything that is not said is meant.
    """
    told = []
    words = None if said is None else {name.replace("_", "-") for name, v in said.items() if v}
    if words is not None and "within" not in words:
        told.append(
            f"assumed: a message takes {WITHIN} within a site (--within); all timers must be longer"
        )
    network = environment.network
    if not network.loss.p:
        told.append(
            "assumed: no message is lost (--loss); losses are what ends leaderships wrongly"
        )
    elif words is not None and "burst" not in words:
        told.append(
            "assumed: losses come one by one (--burst); in bursts the same loss ends far more "
            "leaderships"
        )
    if environment.pauses is None:
        told.append(
            "assumed: no member ever stands still (--pause-max); a pause longer than the patience "
            "is a failover"
        )
    elif words is not None and "pause-rate" not in words:
        told.append(
            f"assumed: each member stands still {PAUSES} (--pause-rate), with a mean of an eighth "
            "of the longest pause (--pause); wrong failovers grow with both"
        )
    if goals.engines:
        told.append(
            "assumed: the engine is as far away as the first site, and lives on when a site fails"
        )
    told.append(
        "assumed: leaders end with their processes and with their machines in equal parts; the "
        "slower kind counts"
    )
    return tuple(told)


def asked_in_file(path: Path) -> PlanQuestion:
    """Goals and an environment from one file: the table [goals], and an environment's tables."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot read {path}: {reason}") from None
    document = decoded(str(path), data)
    table = document.data.get("goals")
    if not isinstance(table, dict):
        raise BadInput(f"{path} has no table [goals]: a plan needs goals, as failover-p99 = '5s'")
    goals = _goals(document, table)
    environment = parse_environment(_without_goals(data.decode()), str(path))
    if environment.members is None:
        raise BadInput(f"{path} does not say how large the group is: add members or [sites]")
    return PlanQuestion(goals, environment, assumptions(goals, environment))


def _goals(document: Document, table: Mapping[str, object]) -> GroupGoals:
    """The goals, with the line and the key of what is wrong."""
    for name, value in table.items():
        place = document.place(("goals", name))
        if name not in NAMES:
            raise BadInput(f"{place} is no goal (known: {', '.join(NAMES)})")
        try:
            GroupGoals.parse({name: value})
        except BadInput as error:
            raise BadInput(f"{place}: {error}") from None
    return GroupGoals.parse(table)


def _without_goals(text: str) -> str:
    """The text with empty lines in place of [goals], so that other lines keep their numbers."""
    kept, inside = [], False
    for line in text.split("\n"):
        header = _HEADER.fullmatch(line.rstrip("\r"))
        if header is not None:
            inside = header[1].strip("\"'") == "goals"
        kept.append("" if inside else line)
    return "\n".join(kept)
