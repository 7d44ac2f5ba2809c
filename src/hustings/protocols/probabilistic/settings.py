"""Settings of the probabilistic election, under the names of the paper."""

from __future__ import annotations

from math import inf, log
from typing import Annotated, Literal

from msgspec import Meta

from hustings.core.config import Config, Surroundings
from hustings.core.errors import BadInput
from hustings.protocols.probabilistic.strategy import (
    MAX_ROUNDS,
    Strategy,
    strategy,
)

MOST = 10**15  # members


class ProbabilisticConfig(Config, frozen=True, kw_only=True):
    """The strategy, the filter, the timers, and assumptions about the network."""

    K: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=1e12,
                description="the intended number of relay members in the first round; default 7",
            ),
        ]
        | None
    ) = None
    strategy: Annotated[
        str,
        Meta(
            max_length=400,
            description="K of each round: paper (doubling, the last one N), doubling, or 7,14,28,N",
        ),
    ] = "paper"
    max_rounds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_ROUNDS,
                description="the number of rounds after which a member gives up; default 5",
            ),
        ]
        | None
    ) = None
    K_max: (
        Annotated[
            float, Meta(gt=0, le=1e12, description="the largest K of any round; default none")
        ]
        | None
    ) = None
    N: (
        Annotated[int, Meta(ge=1, le=MOST, description="the size of the group, where it is known")]
        | None
    ) = None
    estimate: (
        Annotated[
            Literal["exact", "gossip", "view"],
            Meta(
                description="N_i: the given N (exact), the estimate from gossip, or the size of "
                "the member's own view; default exact if N is given, otherwise gossip"
            ),
        ]
        | None
    ) = None
    thinning: Annotated[
        Literal["delay", "hash", "all"],
        Meta(
            description="which member asks for the next round: the one with the shortest delay, "
            "those with a small hash (the paper's Figure 3), or all"
        ),
    ] = "delay"
    W: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the window of the random delay before the next round; default 20 T_3",
            ),
        ]
        | None
    ) = None
    relay_by: Annotated[
        Literal["unicast", "multicast"],
        Meta(
            description="how relay members find each other: unicast, in their views; or "
            "multicast, for small views: each tells all members which member it "
            "prefers"
        ),
    ] = "unicast"
    join_on_contact: Annotated[
        bool,
        Meta(
            description="a member that missed the beginning of a round joins when a relay member "
            "contacts it"
        ),
    ] = False
    p_ucastl: (
        Annotated[float, Meta(ge=0, le=1, description="the probability that a unicast is lost")]
        | None
    ) = None
    p_mcastl: (
        Annotated[
            float, Meta(ge=0, le=1, description="the probability that a receiver loses a multicast")
        ]
        | None
    ) = None
    p_fail: Annotated[
        float, Meta(ge=0, le=1, description="the probability that a member crashes in one round")
    ] = 0.0
    view_prob: (
        Annotated[
            float, Meta(gt=0, le=1, description="the probability that a member knows another one")
        ]
        | None
    ) = None
    T_1: (
        Annotated[
            float,
            Meta(
                gt=0, description="the time that members wait for the finals; default T_2 + 2 T_3"
            ),
        ]
        | None
    ) = None
    T_2: (
        Annotated[
            float, Meta(gt=0, description="the length of the relay phase; default 3/2 K delta")
        ]
        | None
    ) = None
    T_3: (
        Annotated[
            float, Meta(gt=0, description="the time in which a multicast arrives; default delta")
        ]
        | None
    ) = None
    group: Annotated[
        str, Meta(max_length=400, description="the name of the group, which is the key of the hash")
    ] = ""
    hash_skew: Annotated[
        float,
        Meta(
            ge=0.05,
            le=20,
            description="the unfairness of the hash: its distribution function is x^(1/hash_skew); "
            "with 1 it is fair, and with more than 1 more than K members pass the filter",
        ),
    ] = 1.0

    @property
    def plan(self) -> Strategy:
        """Return the strategy as an object."""
        return strategy(self.strategy, self.K, self.max_rounds, self.K_max)

    @property
    def counts(self) -> Literal["exact", "gossip", "view"]:
        """Return the source of N_i."""
        if self.estimate is not None:
            return self.estimate
        return "gossip" if self.N is None else "exact"

    @property
    def delivery(self) -> float:
        """Time_Out_3."""
        return self.delta if self.T_3 is None else self.T_3

    def relaying(self, K: float) -> float:
        """Time_Out_2 of a round: at most 3K/2 relay members in a row, each a unicast away."""
        if self.T_2 is not None:
            return self.T_2
        if self.relay_by == "multicast":  # they begin up to T_3 apart, and each tells all once
            return 2 * self.delivery
        return 1.5 * K * self.delta

    def waiting(self, K: float) -> float:
        """Time_Out_1: members learn of a round, and of its end, up to T_3 apart."""
        return self.relaying(K) + 2 * self.delivery if self.T_1 is None else self.T_1

    @property
    def window(self) -> float:
        """How long a member waits at most before it asks for the next round."""
        return 20 * self.delivery if self.W is None else self.W

    @classmethod
    def for_group(cls, members: int, around: Surroundings) -> dict[str, object]:
        known: dict[str, object] = {
            "N": members,
            "p_ucastl": around.p_ucastl,
            "p_mcastl": around.p_mcastl,
            "view_prob": around.view_prob,
        }
        return {name: value for name, value in known.items() if value is not None}

    def surroundings(self) -> Surroundings:
        return Surroundings(
            p_ucastl=self.p_ucastl,
            p_mcastl=self.p_mcastl,
            p_fail=self.p_fail,
            view_prob=self.view_prob,
        )

    def broken_rules(self) -> list[str]:
        broken = []
        try:
            _ = self.plan
        except BadInput as error:
            broken.append(str(error))
        if self.estimate == "exact" and self.N is None:
            broken.append("estimate=exact needs N, the size of the group")
        broken += [
            f"{name} must be finite"
            for name in ("W", "T_1", "T_2", "T_3")
            if getattr(self, name) == inf
        ]
        if not broken and self.waiting(max(self.finite)) == inf:
            broken.append("delta and T_3 are so long that a round would never end")
        try:
            self.group.encode()
        except UnicodeEncodeError:
            broken.append("group must be a text that can be written as UTF-8")
        return broken

    @property
    def finite(self) -> list[float]:
        """Return K of every round, as far as known."""
        sizes = [size for size in self.plan.sizes if size < inf]
        return sizes or [float(self.N or 1)]

    def warnings(self) -> list[str]:
        remarks = []
        first, last = self.finite[0], max(self.finite)
        if self.relay_by == "multicast":
            if self.relaying(last) < 2 * self.delivery:
                remarks.append("T_2 is shorter than 2 T_3: relay members may miss each other")
        elif self.T_2 is not None and 1.5 * last * self.delta > self.T_2:
            remarks.append(
                f"T_2 = {self.T_2:g} is shorter than {1.5 * last:g} delays, the longest way "
                f"through the relay members at K = {last:g}: they may name different leaders"
            )
        if self.T_1 is not None and self.relaying(last) + 2 * self.delivery > self.T_1:
            remarks.append(
                f"T_1 is shorter than T_2 + 2 T_3 at K = {last:g}: members look for finals before "
                "the last is there"
            )
        if self.thinning == "hash":
            remarks.append(
                "thinning=hash: one who alone has noticed that a round failed asks for the next "
                "with probability K/N only; thinning=delay finds nearly all of these"
            )
        elif self.W is not None and 2 * self.delivery > self.W:
            remarks.append("W is not much longer than T_3: many will ask again at once")
        if self.hash_skew != 1.0:
            remarks.append(
                "hash_skew: the hash is not fair, so K relay members are not what K yields, and no "
                "risk of two leaders is stated"
            )
        small = self.view_prob is not None and self.relay_by == "unicast"
        if small and self.view_prob is not None and self.counts != "view":
            degree = first * self.view_prob * (2 - self.view_prob)
            if first > 1 and degree < log(first):
                remarks.append(
                    f"of {first:g} relay members each knows {degree:.2g} others on average: too "
                    "few to be connected; raise K, or let N_i be the view's size (estimate=view)"
                )
        return remarks
