"""From typed texts, `K=40` or `view_prob=0.4`, to a checked round of a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from hustings.core.config import parse_number, parse_whole
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.form import Parameter, require
from hustings.lab.closed_forms.probabilistic.leaders import STRATEGIES, strategy
from hustings.lab.closed_forms.probabilistic.round import LARGEST_K, Round

LARGEST_GROUP = 10**18
MOST_ROUNDS = 50

PARAMETERS = (
    Parameter("K", "7", "members wanted in the relay phase of the first round"),
    Parameter("view_prob", "0.5", "probability that a view lists a member, in (0, 1]"),
    Parameter("p_mcastl", "0", "probability that a multicast is lost at a member"),
    Parameter("p_ucastl", "0", "probability that a unicast is lost"),
    Parameter("p_fail", "0", "probability that a member crashes in a round"),
    Parameter("N", "2000", "members, known to all"),
    Parameter("success", "0.9", "wanted success of a round, for K and N that give it"),
    Parameter(
        "strategy", "paper", "paper: K doubles, the last round has N; doubling; or 7,14,28,N"
    ),
    Parameter("max_rounds", "5", "rounds of the strategy at most"),
    Parameter("tau2", "1", "part of the round before the finals; crashes count there"),
    Parameter("delta", "1", "longest delay of a unicast"),
    Parameter("T_3", "delta", "longest delay of a multicast"),
    Parameter("work", "0", "time to hash one member, of N"),
    Parameter("hash_skew", "1", "the hash's distribution function is x^(1/hash_skew)"),
)
DEFAULTS = {parameter.key: parameter.default for parameter in PARAMETERS}


@dataclass(frozen=True, slots=True)
class ProbabilisticSetting:
    """A first round, the strategy behind it, and the wanted success."""

    first: Round
    steps: list[float]
    wanted: float
    delta: float
    T_3: float
    work: float
    hash_skew: float


def read(texts: Mapping[str, str]) -> tuple[ProbabilisticSetting, dict[str, object]]:
    """Read a setting, and the parameters as used.

    >>> setting, used = read({"K": "40", "view_prob": "0.4", "N": "10000"})
    >>> setting.steps, used["T_3"]
    ([40, 80, 160, 320, 10000], 1)
    """
    reading.refuse_unknown(texts, DEFAULTS)
    given = {key: texts.get(key, default).strip() for key, default in DEFAULTS.items()}
    if "T_3" not in texts:
        given["T_3"] = given["delta"]
    number = {key: _number(key, text) for key, text in given.items() if key not in WORDS}
    N = _group(given["N"])
    rounds = reading.read_int("max_rounds", given["max_rounds"], 1, MOST_ROUNDS)
    require(number["hash_skew"] > 0, f"hash_skew must be above 0, not {given['hash_skew']}")
    require(number["success"] < 1, f"success must lie in [0, 1), not {given['success']}")
    listed = _listed(given["strategy"], N)
    if listed:
        require("K" not in texts, "K goes with a named strategy: a list says itself what K is")
        require(
            "max_rounds" not in texts or rounds == len(listed),
            f"max_rounds is {rounds}, but the strategy has {len(listed)}",
        )
        number["K"], rounds = listed[0], len(listed)
    first = Round(N=N, **{key: number[key] for key in ROUND})
    require(first.K <= LARGEST_K, f"K must be at most {LARGEST_K}, not {given['K']}")
    setting = ProbabilisticSetting(
        first,
        listed or strategy(number["K"], N, rounds, given["strategy"]),
        number["success"],
        number["delta"],
        number["T_3"],
        number["work"],
        number["hash_skew"],
    )
    used: dict[str, object] = {key: number.get(key, given[key]) for key in DEFAULTS}
    return setting, used | {"N": N, "max_rounds": rounds}


ROUND = ("K", "view_prob", "p_mcastl", "p_ucastl", "p_fail", "tau2")
WORDS = ("N", "strategy", "max_rounds")


def _number(key: str, text: str) -> float:
    """Read a decimal, as an int if whole; negative ones break a rule that is reported later."""
    try:
        value = parse_number(text)
    except ValueError:
        value = inf
    if abs(value) > LARGEST_GROUP:
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise BadInput(f"{key} must be a number, not {shown!r}")
    if key in ("success", "delta", "T_3", "work"):
        require(value >= 0, f"{key} must be at least 0, not {text}")
    return int(value) if value.is_integer() else value


def _listed(text: str, N: int) -> list[float]:
    """Read the K of each round from a list such as 7,14,28,N; nothing from a name."""
    if text in STRATEGIES:
        return []
    parts = [part.strip() for part in text.split(",")]
    try:
        steps = [float(N) if part == "N" else parse_number(part) for part in parts]
    except ValueError:
        raise UnknownName("strategy", text, (*STRATEGIES, "7,14,28,N")) from None
    require(len(parts) <= MOST_ROUNDS, f"a strategy has at most {MOST_ROUNDS} rounds")
    require(min(steps) > 0 and max(steps) < inf, "each K of a strategy must be above 0 and finite")
    require(
        all(one < other for one, other in pairwise(steps)),
        f"strategy {text!r} does not grow: each K must exceed the one before",
    )
    return [int(step) if step.is_integer() else step for step in steps]


def _group(text: str) -> int:
    try:
        N = parse_whole(text)
    except ValueError:
        raise BadInput(f"N must be a whole number, not {text[:40]!r}") from None
    require(1 <= N <= LARGEST_GROUP, f"N must be between 1 and 10^18, not {N}")
    return N
