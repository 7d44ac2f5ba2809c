"""From typed texts, `n=10000` or `layers=16:16:2`, to a checked setting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isfinite, log

from hustings.core.config import TooLarge, parse_number
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.committee import network
from hustings.lab.closed_forms.committee.exponents import THIRD
from hustings.lab.closed_forms.form import Parameter, require

LARGEST = 300  # digits of n
PROFILES = {"lean": network.lean, "robust": network.robust}
SMALLEST = 16  # members that make a network

PARAMETERS = (
    Parameter("n", "10000", "members, as 10000 or 1e20"),
    Parameter("b", "0.1", "share of bad members, in [0, 1/3)"),
    Parameter("profile", "lean", "lean or robust: the knobs that are not given"),
    Parameter("c0", "by profile", "members of a leaf"),
    Parameter("d0", "by profile", "leaves of a member"),
    Parameter("layers", "by profile", "q:s:h of each elected layer, as 32:32:2,16:16:4"),
    Parameter("monitors", "by profile", "leaves that a member asks who sits in other nodes"),
    Parameter("fan", "by profile", "members from whom a monitor has each list"),
    Parameter("depth", "by profile", "steps of the random path (D)"),
    Parameter("r_end", "by profile", "candidates at which halving ends (r)"),
    Parameter(
        "poll", "by n; printed L^2", "members that the last step asks: 64 to 160, as the profiles"
    ),
    Parameter("informed", "0.98", "share of good members that know the leader, for step 9"),
    Parameter("c1", "1", "the constant of Lemma 2.2: committees have c1 L^3 members"),
    Parameter("bad", "b r_end", "bad candidates among r_end, for the endgames (x)"),
)
KEYS = tuple(parameter.key for parameter in PARAMETERS)


@dataclass(frozen=True, slots=True)
class CommitteeSetting:
    """A group, its network where there is one, and the questions about both."""

    n: float
    ln_n: float
    b: float
    knobs: network.NetworkNumbers | None  # None: n is too small or too large for a network
    why: str  # why there is none
    r: int
    x: int
    poll: int
    printed_poll: int  # as the paper has it, unless it was given
    informed: float
    c1: float


def read(texts: Mapping[str, str]) -> tuple[CommitteeSetting, dict[str, object]]:
    """Read a setting, and the parameters as used.

    >>> setting, used = read({"n": "1000", "layers": "16:16:2"})
    >>> setting.poll, used["c0"], used["layers"]
    (64, 16, '16:16:2')
    """
    reading.refuse_unknown(texts, KEYS)
    n = _members(texts.get("n", "10000").strip())
    b = _share("b", texts.get("b", "0.1"))
    require(b < THIRD, f"b must be below 1/3, not {b:g}: no agreement is possible from there on")
    informed = _share("informed", texts.get("informed", "0.98"))
    c1 = float(reading.read_number("c1", texts.get("c1", "1")))
    require(c1 > 0, "c1 must be above 0")
    knobs, why = _knobs(texts, n)
    r = knobs.r_end if knobs else _whole("r_end", texts, 128)
    require(r <= 512, f"r_end must be at most 512 here, not {r}")
    x = _whole("bad", texts, round(b * r), least=0)
    require(x <= r, f"bad must be at most r_end = {r}, not {x}")
    poll = _whole("poll", texts, network.polled(n))
    printed = _whole("poll", texts, ceil(log(n) ** 2))
    setting = CommitteeSetting(float(n), log(n), b, knobs, why, r, x, poll, printed, informed, c1)
    used: dict[str, object] = {"n": n if n <= network.LARGEST_GROUP else f"{n:.6g}", "b": b}
    if knobs:
        used |= {
            "profile": texts.get("profile", "lean"),
            "c0": knobs.c0,
            "d0": knobs.d0,
            "layers": ",".join(":".join(map(str, shape)) for shape in knobs.layers),
            "monitors": knobs.monitors,
            "fan": knobs.fan,
            "depth": knobs.depth,
        }
    return setting, used | {
        "r_end": r,
        "poll": poll,
        "informed": informed,
        "c1": c1,
        "bad": x,
    }


def _knobs(texts: Mapping[str, str], n: int) -> tuple[network.NetworkNumbers | None, str]:
    profile = texts.get("profile", "lean").strip()
    if profile not in PROFILES:
        raise UnknownName("profile", profile, list(PROFILES))
    given = [key for key in ("c0", "d0", "layers") if key in texts]
    if n < SMALLEST or n > network.LARGEST_GROUP:
        limit = f"n is below {SMALLEST}" if n < SMALLEST else "n is above 10^9"
        require(not given, f"{', '.join(given)} make no network here: {limit}")
        return None, f"no network is laid out: {limit}"
    knobs = PROFILES[profile](n)
    layers = _layers(texts["layers"]) if "layers" in texts else knobs.layers
    return (
        replace(
            knobs,
            layers=layers,
            **{
                key: _whole(key, texts, getattr(knobs, key))
                for key in ("c0", "d0", "monitors", "fan", "depth", "r_end")
            },
        ),
        "",
    )


def _layers(text: str) -> tuple[network.Shape, ...]:
    shapes = []
    for part in text.split(","):
        if not re.fullmatch(r"[0-9]{1,6}:[0-9]{1,6}:[0-9]{1,2}", part.strip()):
            raise BadInput(f"layers must be q:s:h, several by commas, not {text[:40]!r}")
        q, s, h = (int(number) for number in part.strip().split(":"))
        shapes.append((q, s, h))
    require(len(shapes) <= 8, "layers must be at most 8")
    return tuple(shapes)


def _members(text: str) -> int:
    try:
        n = Fraction(text) if isfinite(parse_number(text)) else Fraction(1, 2)
    except TooLarge:
        n = Fraction(10**LARGEST)
    except ValueError:
        n = Fraction(1, 2)
    if n.denominator != 1:
        raise BadInput(f"n must be a whole number, as 10000 or 1e20, not {text[:40]!r}")
    require(3 <= n < 10**LARGEST, f"n must be between 3 and 10^{LARGEST}, not {text[:40]}")
    return int(n)


def _share(key: str, text: str) -> float:
    value = float(reading.read_number(key, text))
    require(value <= 1, f"{key} must lie in [0, 1], not {value:g}")
    return value


def _whole(key: str, texts: Mapping[str, str], default: int, least: int = 1) -> int:
    return reading.read_int(key, texts[key], least, 1_000_000) if key in texts else default
