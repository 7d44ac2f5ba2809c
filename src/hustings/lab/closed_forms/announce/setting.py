"""From typed texts, `N=500` or `loss_model=correlated`, to a checked setting of this family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from hustings.core.errors import UnknownName
from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.announce.laws import EXPONENTIAL, LOSSES, STEEPEST, UNIFORM, Law
from hustings.lab.closed_forms.announce.numerics import LARGEST_GROUP
from hustings.lab.closed_forms.form import Parameter, require

ALL = {
    each.key: each
    for each in (
        Parameter("N", "50", "members; before a departure, before a join"),
        Parameter("l", "0", "probability that a message is lost, in [0, 1)"),
        Parameter("loss_model", "none if l is 0, else uncorrelated", ", ".join(LOSSES)),
        Parameter("T_A", "1", "period of announcements"),
        Parameter("Delta", "0.1", "delay of every message"),
        Parameter("T_S", "1", "longest suppression"),
        Parameter("law", UNIFORM, f"of the suppression timer: {UNIFORM} or {EXPONENTIAL}"),
        Parameter("lam", "5", "steepness of the exponential law"),
        Parameter("T_L", "3 T_A", "listen timer, above 0; inf is allowed"),
        Parameter("k", "1", "agreed leaders"),
        Parameter("link", "0", "of the wake-up time with the place by the criterion: 1 is all"),
        Parameter("eps", "0.01", "chance that the Byes miss a member"),
        Parameter("T_d", "inf", "mean time between departures of any member"),
        Parameter("T_a", "inf", "mean time between joins"),
    )
}

GROUP = ("N", "l", "loss_model", "Delta")
WAKING = ("T_S", "law", "lam")
SETTLED = ("T_L", "eps", "T_d", "T_a")

KEYS = {
    "le-a": (*GROUP, "T_A", *SETTLED),
    "le-s": (*GROUP, "T_A", *WAKING, *SETTLED, "k", "link"),
    "le-m": (*GROUP, "T_A", *WAKING, *SETTLED),
    "sup": (*GROUP, *WAKING),
    "al": (*GROUP, "T_A"),
}


@dataclass(frozen=True, slots=True)
class AnnounceSetting:
    """The left-hand side of the forms: group, loss, timers."""

    N: int
    loss: float
    model: str
    D: float
    T_A: float
    T_L: float
    law: Law
    k: int
    eps: float
    T_d: float
    T_a: float
    link: float = 0.0

    @property
    def shared(self) -> bool:
        """Whether loss is as if correlated: no or correlated loss, or a single receiver."""
        return self.loss == 0 or self.model != "uncorrelated" or self.N <= 2

    @property
    def patient(self) -> bool:
        """Whether no member gives up a leader in a start, or this changes nothing."""
        return inf == self.T_L or self.N <= 2 or (self.loss == 0 and self.T_L >= self.T_A)

    def bears(self, verdict: str) -> str:
        """Return a verdict that holds as long as no member gives a leader up."""
        return verdict if self.patient else f"{verdict}; for T_L = inf"

    @property
    def all_send(self) -> bool:
        """Whether no message can arrive before the last member has woken."""
        return self.law.T_S <= self.D


def read(
    name: str, texts: Mapping[str, str]
) -> tuple[AnnounceSetting, dict[str, object], list[str]]:
    """Read a setting, the parameters as used, and remarks on them.

    >>> setting, used, remarks = read("le-s", {"N": "500", "l": "0.7", "T_L": "inf"})
    >>> setting.model, setting.T_L, used["T_L"]
    ('uncorrelated', inf, 'inf')
    """
    keys = KEYS[name]
    reading.refuse_unknown(texts, keys)
    given = {key: texts.get(key, ALL[key].default) for key in ALL}
    N = reading.read_int("N", given["N"], 1, LARGEST_GROUP)
    typed = given["l"].strip()
    loss = reading.read_number("l", typed.removeprefix("-"))
    require(loss < 1 and typed[:1] != "-", f"l must lie in [0, 1), not {typed}")
    T_A = reading.read_number("T_A", given["T_A"])
    require(T_A > 0, "T_A must be above 0, not 0")
    T_L = 3 * T_A if "T_L" not in texts else _patient("T_L", given["T_L"])
    require(T_L > 0, f"T_L must be above 0, not {given['T_L'].strip()}")
    law, remarks = _law(name, texts, given)
    eps = reading.read_number("eps", given["eps"])
    require(0 < eps <= 1, f"eps must lie in (0, 1], not {given['eps'].strip()}")
    setting = AnnounceSetting(
        N=N,
        loss=float(loss),
        model=_model(texts, loss),
        D=float(reading.read_number("Delta", given["Delta"])),
        T_A=float(T_A),
        T_L=float(T_L),
        law=law,
        k=reading.read_int("k", given["k"], 1, LARGEST_GROUP),
        eps=float(eps),
        T_d=float(_often("T_d", given["T_d"])),
        T_a=float(_often("T_a", given["T_a"])),
        link=_share("link", given["link"]),
    )
    return setting, _used(setting, keys), remarks + _warnings(name, setting)


def _model(texts: Mapping[str, str], loss: Fraction) -> str:
    model = texts.get("loss_model", "uncorrelated" if loss else "none").strip()
    if model not in LOSSES:
        raise UnknownName("loss_model", model, LOSSES)
    require(loss == 0 or model != "none", "l must be 0 where loss_model is none")
    return model


def _law(name: str, texts: Mapping[str, str], given: dict[str, str]) -> tuple[Law, list[str]]:
    if "T_S" not in KEYS[name]:
        return Law(T_S=0.0), []
    T_S = float(reading.read_number("T_S", given["T_S"]))
    word = given["law"].strip()
    if word not in (UNIFORM, EXPONENTIAL):
        raise UnknownName("law", word, (UNIFORM, EXPONENTIAL))
    lam = float(reading.read_number("lam", given["lam"]))
    require(0 < lam <= STEEPEST, f"lam must lie in (0, {STEEPEST:g}], not {given['lam'].strip()}")
    if word == EXPONENTIAL:
        return Law(T_S, lam), []
    return Law(T_S), ["lam is not used: the law is uniform"] if "lam" in texts else []


def _patient(key: str, text: str) -> Fraction | float:
    return inf if text.strip() == "inf" else reading.read_number(key, text)


def _share(key: str, text: str) -> float:
    value = float(reading.read_number(key, text))
    require(value <= 1, f"{key} must lie in [0, 1], not {text.strip()}")
    return value


def _often(key: str, text: str) -> Fraction | float:
    value = _patient(key, text)
    require(value > 0, f"{key} must be above 0, not {text.strip()}")
    return value


def _used(s: AnnounceSetting, keys: tuple[str, ...]) -> dict[str, object]:
    values: dict[str, object] = {
        "N": s.N,
        "l": s.loss,
        "loss_model": s.model,
        "T_A": s.T_A,
        "Delta": s.D,
        "T_S": s.law.T_S,
        "law": EXPONENTIAL if s.law.lam else UNIFORM,
        "lam": s.law.lam,
        "T_L": s.T_L,
        "k": s.k,
        "link": s.link,
        "eps": s.eps,
        "T_d": s.T_d,
        "T_a": s.T_a,
    }
    unused = [key for key, used in (("lam", s.law.lam), ("link", s.link)) if not used]
    wanted = [key for key in ALL if key in keys and key not in unused]
    return {key: _shown(values[key]) for key in wanted}


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "inf" if value == inf else int(value) if value.is_integer() else value
    return value


def _warnings(name: str, s: AnnounceSetting) -> list[str]:
    told = []
    if name in ("le-s", "le-m") and s.T_A < s.law.T_S + s.D:
        told.append(
            f"T_A = {s.T_A:g} is below T_S + Delta = {s.law.T_S + s.D:g}: some repeat before all "
            "have woken; the forms count that, except where they say T_A >= T_S"
        )
    if "T_L" in KEYS[name]:
        if s.T_L < s.T_A:
            told.append(
                f"T_L = {s.T_L:g} is below T_A = {s.T_A:g}: listeners give a living leader up "
                "before its next announcement"
            )
        if not s.patient:
            told.append(
                f"forms for T_L = inf leave T_L = {s.T_L:g} out of account: hustings sim starts a "
                "group with T_L = inf unless it is given"
            )
    return told
