"""For how long a leader is confirmed: settings of `Confirmed`, and what follows from them."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from hustings.core.config import Config, Positive


class GuardConfig(Config, frozen=True, kw_only=True):
    """For how long a leader is confirmed, and what is known of clocks."""

    ttl: Annotated[
        Positive | None,
        msgspec.Meta(description="for how long a leader is confirmed at a time [30 delta]"),
    ] = None
    drift: Annotated[
        float,
        msgspec.Meta(ge=0, lt=1, description="every clock's rate lies within 1 +- drift"),
    ] = 0.001
    retry: Annotated[
        Positive | None,
        msgspec.Meta(description="wait for an answer before asking again [3 delta]"),
    ] = None

    margin: Annotated[
        float,
        msgspec.Meta(ge=0, description="lead no more so long before a window ends, to finish in"),
    ] = 0.0
    first_wait: Annotated[
        float,
        msgspec.Meta(ge=0, description="before the first question after a start, to hear others"),
    ] = 0.0

    @property
    def asked(self) -> float:
        """The time asked for."""
        return 30.0 * self.delta if self.ttl is None else self.ttl

    @property
    def patience(self) -> float:
        """How long an answer may take before the question is repeated."""
        return 3.0 * self.delta if self.retry is None else self.retry

    @property
    def shortest(self) -> float:
        """The shortest pause between an answer and the next question: a guard is not flooded."""
        return self.patience / 10.0

    @property
    def renewal(self) -> float:
        """How long after one question was sent, and granted, the next one is."""
        return self.asked / 3.0

    @property
    def slack(self) -> float:
        """By which factor one clock may run faster than another."""
        return (1.0 + self.drift) / (1.0 - self.drift)

    def window(self, ttl: float) -> float:
        """For how long, by one's own clock, a grant of `ttl` by the guard's clock surely lasts.

        >>> GuardConfig(drift=0.0).window(30.0)
        30.0
        >>> round(GuardConfig(drift=0.2).window(30.0), 6)
        20.0
        """
        return ttl / self.slack

    def leading(self, ttl: float) -> float:
        """For how long of that a member leads: the rest is for what it has under way."""
        return self.window(ttl) - self.margin

    def broken_rules(self) -> list[str]:
        broken = []
        if not math.isfinite(self.asked):
            broken.append("ttl must be finite: a leader that crashed would be confirmed for ever")
        if self.asked < 6.0 * self.delta:
            broken.append(
                f"ttl must be at least three round trips (6 delta = {6.0 * self.delta:g}), "
                f"not {self.asked:g}"
            )
        elif self.leading(self.asked) <= self.renewal + 2.0 * self.delta * (1.0 + self.drift):
            margin = f" and margin={self.margin:g}" if self.margin else ""
            verb = "leave" if self.margin else "leaves"
            broken.append(
                f"drift={self.drift:g}{margin} {verb} a window of {self.leading(self.asked):g} of "
                f"ttl={self.asked:g}: too short to renew in"
            )
        return broken
