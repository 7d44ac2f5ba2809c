"""Settings of the leadership layer: times default to multiples of delta."""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta

from hustings.core.config import Config

TIMER = "leadership"  # all timer keys of this layer begin with it
LEAST_STALL = 0.25  # seconds: any process may have to wait for a while


class LeadershipConfig(Config, frozen=True, kw_only=True):
    """How often members reconcile, how long they wait, and whether a better member takes over."""

    membership_wait: (
        Annotated[
            float,
            Meta(ge=0, description="time for the membership, before the first election; 4 delta"),
        ]
        | None
    ) = None
    reconcile_interval: (
        Annotated[float, Meta(gt=0, description="time between two reconciliations; 5 delta")] | None
    ) = None
    leader_info_interval: (
        Annotated[
            float,
            Meta(gt=0, description="time between two LEADER-INFO to observers; reconcile_interval"),
        ]
        | None
    ) = None
    leaderless_timeout: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="time without a leader before a member calls an election; 20 delta",
            ),
        ]
        | None
    ) = None
    preempt_after: (
        Annotated[
            float,
            Meta(
                ge=0,
                description="time that a better member is up before it takes over; 0: as the "
                "election has it, not given: never while the leader lives",
            ),
        ]
        | None
    ) = None
    probation: (
        Annotated[
            float,
            Meta(ge=0, description="time in office before a better one has to wait; 3 delta"),
        ]
        | None
    ) = None
    claim_delay: Annotated[
        float,
        Meta(
            ge=0,
            description="time after its first announcement in which a member must hear no better "
            "one, to lead",
        ),
    ] = 0.0
    stall_bound: (
        Annotated[
            float,
            Meta(
                ge=0.1,
                description="longest time that a leader may stand still; after more it leads again "
                "only when it knows that no other member leads; default T_L - T_A - delta, "
                "without T_L 5 delta, at least 0.25",
            ),
        ]
        | None
    ) = None
    partial: Annotated[
        bool,
        Meta(description="views hold a part of the group: a leader is followed that is not in it"),
    ] = False
    call_spread: Annotated[
        float,
        Meta(ge=0, description="time within which one of many calls for an election, if partial"),
    ] = 0.0
    transfer_retries: Annotated[
        int, Meta(ge=0, le=100, description="times a hand-over is told to a silent successor")
    ] = 5

    @property
    def joining(self) -> float:
        """How long to wait for the membership."""
        return 4 * self.delta if self.membership_wait is None else self.membership_wait

    @property
    def period(self) -> float:
        """How often members reconcile."""
        return 5 * self.delta if self.reconcile_interval is None else self.reconcile_interval

    @property
    def informing(self) -> float:
        """How often leaders inform observers."""
        return self.period if self.leader_info_interval is None else self.leader_info_interval

    @property
    def leaderless_limit(self) -> float:
        """How long a member accepts to be without a leader."""
        return 20 * self.delta if self.leaderless_timeout is None else self.leaderless_timeout

    @property
    def answers(self) -> float:
        """How long an answer to a question may take: both ways, and some time to process it."""
        return 3 * self.delta

    @property
    def trial(self) -> float:
        """How long a leader leads before the next better member no longer displaces it."""
        return 3 * self.delta if self.probation is None else self.probation

    @property
    def longest_stall(self) -> float:
        """For how long a leader may not run, and still leads while it asks."""
        return self.usual_stall if self.stall_bound is None else self.stall_bound

    @property
    def usual_stall(self) -> float:
        """For how long any member may not run."""
        return max(LEAST_STALL, 5 * self.delta)

    @property
    def unnoticed_stall(self) -> float:
        """For how long a member may not run without any consequence."""
        return min(self.longest_stall, self.usual_stall)

    @property
    def sticky(self) -> bool:
        """Whether a leader stays although a better member appears."""
        return self.preempt_after != 0

    def broken_rules(self) -> list[str]:
        times = {
            "membership_wait": self.membership_wait,
            "reconcile_interval": self.reconcile_interval,
            "leader_info_interval": self.leader_info_interval,
            "leaderless_timeout": self.leaderless_timeout,
            "preempt_after": self.preempt_after,
            "probation": self.probation,
            "stall_bound": self.stall_bound,
            "claim_delay": self.claim_delay,
        }
        return [f"{name} must be finite" for name, value in times.items() if value == math.inf]

    def warnings(self) -> list[str]:
        limit, thrice = self.leaderless_limit, 3 * self.informing
        if limit < thrice:
            return [
                f"leaderless_timeout = {limit:g} is shorter than three periods of leader_info "
                f"({thrice:g}): observers lose sight of a leader that lives"
            ]
        return []
