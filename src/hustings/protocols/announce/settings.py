"""Settings of the announce-listen elections, under the names of the thesis."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, expm1, inf, isinf, log, log1p
from typing import Annotated, Literal

from msgspec import Meta

from hustings.core.config import Config
from hustings.protocols.announce.laws import Law

# Scenarios that measure only convergence: no crash is to be noticed meanwhile.
CONVERGENCE = ("start", "join-larger", "join-smaller")


Period = Annotated[float, Meta(ge=1e-6, description="announcements are repeated every T_A")]
Interval = Annotated[
    float, Meta(ge=0, description="the suppression interval, in which members wake up")
]
NamedLaw = Annotated[
    Law, Meta(description="the distribution of the wake-up time: uniform, or truncated exponential")
]
Lambda = Annotated[
    float,
    Meta(
        gt=0,
        le=500,
        description="lambda of the exponential distribution: the larger, the "
        "more members wake up late",
    ),
]


def endless(config: Config, *names: str) -> list[str]:
    """List sentences about timers that would never expire."""
    return [f"{name} must be finite" for name in names if getattr(config, name) == inf]


def hasty(T_A: float, T_L: float) -> list[str]:
    """Return a sentence if a listener does not wait for the next announcement."""
    if T_L >= T_A:
        return []
    return [
        f"T_L = {T_L:g} is shorter than T_A = {T_A:g}: listeners give a living leader up before "
        f"its next announcement, and are wrong for {1 - T_L / T_A:.0%} of the time at least; "
        f"set T_L >= {T_A:g}"
    ]


class AnnounceConfig(Config, frozen=True, kw_only=True):
    """Timers and extensions that all variants have."""

    T_A: Period = 1.0
    T_L: (
        Annotated[
            float,
            Meta(gt=0, description="the silence after which a leader is given up; default 3 T_A"),
        ]
        | None
    ) = None
    leaders: Annotated[
        int, Meta(ge=1, le=100, description="the number of leaders that the group should have (k)")
    ] = 1
    aged: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="the number of steps in which a silent leader expires; 1: all at once",
        ),
    ] = 1
    bye: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=MAX_BYES,
                description="the number of Byes that a departing leader sends; default none",
            ),
        ]
        | None
    ) = None
    bye_loss: (
        Annotated[
            float,
            Meta(ge=0, lt=1, description="the loss from which the number of Byes is computed"),
        ]
        | None
    ) = None
    bye_eps: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="with bye_loss: the probability that a member hears none of the Byes",
        ),
    ] = 0.01
    bye_gap: Annotated[float, Meta(ge=0, description="the time between two Byes")] = 0.0
    query: Annotated[
        Literal["none", "query", "suppress-query"],
        Meta(
            description="query: a member asks for a leader before it announces itself; "
            "suppress-query: it asks after suppression"
        ),
    ] = "none"
    T_Q: (
        Annotated[
            float,
            Meta(gt=0, description="the wait for an answer to a query; default 2.5 delta (+ T_S)"),
        ]
        | None
    ) = None

    @classmethod
    def for_scenario(cls, scenario: str) -> dict[str, object]:
        return {"T_L": inf} if scenario in CONVERGENCE else {}

    @classmethod
    def for_network(cls, delta: float, given: Collection[str] = ()) -> dict[str, object]:
        """Make a leader be given up after four lost announcements in a row; leavers send Bye."""
        usual: dict[str, object] = {"delta": delta, "T_A": 4 * delta, "T_L": 18 * delta}
        return usual if "bye_loss" in given else {**usual, "bye": 1}

    @property
    def T_S(self) -> float:
        """The suppression interval: zero, unless a variant has one."""
        return 0.0

    @property
    def interval(self) -> float:
        """The interval in use; a query that is sent at once needs no sleep."""
        return 0.0 if self.query == "query" else self.T_S

    @property
    def listen(self) -> float:
        """How long a listener waits for its leader in total."""
        return 3 * self.T_A if self.T_L is None else self.T_L

    @property
    def patience(self) -> float:
        """How long a listener waits before the leader ages by one step."""
        return self.listen / self.aged

    @property
    def answers_within(self) -> float:
        """How long a query's answer may take: a round trip, and the answering leader's sleep."""
        return 2 * self.delta + (self.T_S if self.query == "suppress-query" else 0.0)

    @property
    def wait(self) -> float:
        """How long a query waits for an answer."""
        return self.answers_within + self.delta / 2 if self.T_Q is None else self.T_Q

    def byes(self, receivers: int) -> int:
        """Return how many Byes a departing leader sends."""
        if self.bye_loss is not None:
            return byes_for(self.bye_loss, receivers, self.bye_eps)
        return self.bye or 0

    def broken_rules(self) -> list[str]:
        broken = endless(self, "T_A", "T_S", "T_Q", "bye_gap")
        if self.aged > 1 and isinf(self.listen):
            broken.append("aged needs a finite T_L: a leader that never expires does not age")
        if self.query != "none" and self.wait < 2 * self.delta:
            broken.append(
                f"T_Q = {self.wait:g} must be at least a round trip, 2 delta = {2 * self.delta:g}"
            )
        if self.bye is not None and self.bye_loss is not None:
            broken.append("bye and bye_loss both say how many Byes to send: give one of them")
        return broken

    def warnings(self) -> list[str]:
        told = hasty(self.T_A, self.listen)
        least = self.interval + self.delta
        if self.interval and least > self.T_A * (1.0 + 1e-5):  # practically no delay does not count
            told.append(
                f"T_A = {self.T_A:g} is shorter than T_S + delta = {least:g}: a member may repeat "
                "itself before it can hear who woke after it, which costs a few more messages; "
                f"set T_A >= {least:g}, or a shorter T_S"
            )
        if self.aged > 1 and self.patience < self.T_A <= self.listen:
            told.append(
                f"with aged = {self.aged} a leader ages every {self.patience:g}, more often than "
                f"it announces itself (T_A = {self.T_A:g}): a living leader is doubted; "
                f"set aged <= {int(self.listen / self.T_A)}, or a longer T_L"
            )
        if self.query != "none" and self.wait < self.answers_within:
            told.append(
                f"T_Q = {self.wait:g} ends before a suppressed answer can arrive "
                f"({self.answers_within:g}): members announce though a leader lives; "
                "set T_Q >= 2 delta + T_S"
            )
        if self.bye_gap and (self.bye or self.bye_loss):
            told.append(
                f"Byes stand bye_gap = {self.bye_gap:g} apart: a leader that is gone at once sends "
                "only the first, unless it is given the time to linger"
            )
        return told

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        told: list[str] = []
        if "T_Q" in given and self.query == "none":
            told.append("T_Q has no effect without a query: set query=query or suppress-query")
        return told + self._unused_byes(given, leaving=leaving)

    def _unused_byes(self, given: Collection[str], *, leaving: bool) -> list[str]:
        names = [name for name in ("bye", "bye_loss", "bye_eps", "bye_gap") if name in given]
        if names and not leaving:
            return [
                f"{_have(names)} no effect where no member leaves in good order: take scenario "
                "leader-leave, churn with --orderly, or --fault leave:..."
            ]
        told: list[str] = []
        if "bye_eps" in given and self.bye_loss is None:
            told.append("bye_eps has no effect without bye_loss, from which it works out the Byes")
        if "bye_gap" in given and self.bye_gap and not self.bye_loss and (self.bye or 0) < 2:
            told.append("bye_gap has no effect with less than two Byes: set bye or bye_loss")
        return told


class LeAConfig(AnnounceConfig, frozen=True, kw_only=True):
    """Immediate announcements, without suppression."""

    def broken_rules(self) -> list[str]:
        broken = super().broken_rules()
        if self.query == "suppress-query":
            broken.append("query=suppress-query needs a suppression interval: use le-s")
        return broken


class SuppressConfig(AnnounceConfig, frozen=True, kw_only=True):
    """Settings of a suppression phase."""

    T_S: Interval = 1.0
    law: NamedLaw = "uniform"
    lam: Lambda = 5.0

    @classmethod
    def for_network(cls, delta: float, given: Collection[str] = ()) -> dict[str, object]:
        return {**super().for_network(delta, given), "T_S": 2 * delta}

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        """Also of those that say how long a member sleeps.

        >>> SuppressConfig().unused(["lam"], leaving=False)
        ['lam has no effect with law=uniform: set law=exponential']
        """
        return _unused_sleep(self, given) + super().unused(given, leaving=leaving)


class LeSConfig(SuppressConfig, frozen=True, kw_only=True):
    """Suppression with any choice function."""

    wake: Annotated[
        Literal["random", "criterion", "linked"],
        Meta(
            description="the wake-up time: random; by the place in the view, better members "
            "earlier (criterion); or random so that better members are probably "
            "earlier (linked)"
        ),
    ] = "random"
    link: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="with wake=linked: from 0 (only chance) to 1 (only the place in the view)",
        ),
    ] = 0.5

    @property
    def orders(self) -> bool:
        """Whether better members should wake earlier, so that it matters if the best was first."""
        return self.wake != "random"


class LeMConfig(SuppressConfig, frozen=True, kw_only=True):
    """Suppression whose wake-up time is the criterion."""

    key: Annotated[
        Literal["absolute", "relative"],
        Meta(
            description="what is compared: the time of waking up (absolute), or the length of the "
            "sleep (relative)"
        ),
    ] = "absolute"

    def broken_rules(self) -> list[str]:
        broken = super().broken_rules()
        if self.key == "relative" and self.leaders > 1:
            broken.append(
                "several leaders need key=absolute: who sleeps again would overtake its leaders"
            )
        return broken


class SupConfig(Config, frozen=True, kw_only=True):
    """Settings of suppression alone."""

    T_S: Interval = 1.0
    law: NamedLaw = "uniform"
    lam: Lambda = 5.0

    def broken_rules(self) -> list[str]:
        return endless(self, "T_S")

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        return _unused_sleep(self, given)


class AlConfig(Config, frozen=True, kw_only=True):
    """Settings of announcements alone."""

    T_A: Period = 1.0
    T_L: (
        Annotated[
            float, Meta(gt=0, description="the silence after which a state expires; default 3 T_A")
        ]
        | None
    ) = None

    @classmethod
    def for_scenario(cls, scenario: str) -> dict[str, object]:
        return {"T_L": inf} if scenario in CONVERGENCE else {}

    @property
    def listen(self) -> float:
        """How long a state is held without a new announcement."""
        return 3 * self.T_A if self.T_L is None else self.T_L

    def broken_rules(self) -> list[str]:
        return endless(self, "T_A")

    def warnings(self) -> list[str]:
        return hasty(self.T_A, self.listen)


class SupAlConfig(AlConfig, frozen=True, kw_only=True):
    """Settings of suppression followed by announcements."""

    T_S: Interval = 1.0
    law: NamedLaw = "uniform"
    lam: Lambda = 5.0
    yields: Annotated[
        bool,
        Meta(
            description="whether a member that announces itself also gives way to every member "
            "that it hears"
        ),
    ] = True

    def broken_rules(self) -> list[str]:
        return [*super().broken_rules(), *endless(self, "T_S")]

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        return _unused_sleep(self, given)


class SupAlRandomConfig(AlConfig, frozen=True, kw_only=True):
    """Settings of a new suppression in every interval of T_A."""

    T_L: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the silence after which a state expires; default 3 T_A for "
                "each member",
            ),
        ]
        | None
    ) = None
    T_S: Annotated[
        float,
        Meta(
            ge=0,
            description="the first part of each interval, in which members wake up; at most T_A",
        ),
    ] = 0.5
    law: NamedLaw = "uniform"
    lam: Lambda = 5.0
    suppress: Annotated[
        bool,
        Meta(
            description="whether a member that hears another one skips its turn; false: every "
            "member takes its turn"
        ),
    ] = True

    def broken_rules(self) -> list[str]:
        broken = [*super().broken_rules(), *endless(self, "T_S")]
        if self.T_S > self.T_A:
            broken.append(
                f"T_S = {self.T_S:g} must not exceed T_A = {self.T_A:g}: members sleep in every "
                "interval of T_A"
            )
        return broken

    def unused(self, given: Collection[str], *, leaving: bool) -> list[str]:
        return _unused_sleep(self, given)


SLEEP = ("T_S", "law", "lam", "wake", "link")  # what says how long a member sleeps


def _unused_sleep(
    config: SuppressConfig | SupConfig | SupAlConfig | SupAlRandomConfig, given: Collection[str]
) -> list[str]:
    """Sentences about settings that say how long a member sleeps, and change nothing."""
    told: list[str] = []
    asks = isinstance(config, SuppressConfig) and config.query == "query"
    names = [name for name in SLEEP if name in given and (asks or name != "T_S")]
    if names and (asks or config.T_S == 0):
        why = "query=query: members ask at once" if asks else "T_S=0: nobody sleeps"
        told.append(f"{_have(names)} no effect with {why}")
    elif "lam" in given and config.law == "uniform":
        told.append("lam has no effect with law=uniform: set law=exponential")
    if "link" in given and getattr(config, "wake", None) != "linked":
        told.append("link has no effect without wake=linked")
    return told


def _have(names: list[str]) -> str:
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'}"


MAX_BYES = 10_000


def byes_for(loss: float, receivers: int, eps: float) -> int:
    """Return the fewest Byes so that all `receivers` get one, except with probability `eps`.

    Each receiver loses each message independently, which is the worst case. All receive one of B
    with probability (1 - loss**B)**receivers.

    >>> byes_for(0.4, 49, 0.01), byes_for(0.0, 49, 0.01)
    (10, 1)
    """
    if receivers < 1:
        return 0
    if loss <= 0.0:
        return 1
    missed = -expm1(log1p(-eps) / receivers)  # the permitted probability for one receiver
    return min(MAX_BYES, max(1, ceil(log(missed) / log(loss))))
