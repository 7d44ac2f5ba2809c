"""Decides whether a job that ended by itself is started again, and after how long.

Law: bounded. The delay doubles from one restart to the next, up to a longest one. The number of
restarts in a row can be limited. After a run that was long enough, the count begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

LONGEST_DELAY_S = 60.0
HELD_OUT_S = 60.0  # a run of this length, or of the longest delay if that is longer, was no failure


class Restart(Enum):
    """When a command or a job that ended by itself is started again."""

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`most` restarts in a row, the first `delay_s` after the end; None: no limit."""

    when: Restart = Restart.NEVER
    delay_s: float = 1.0
    most: int | None = None


class Restarts:
    """The restarts of one command or job."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._in_a_row = 0

    def succeeded(self) -> None:
        """A run did what it should: the count of restarts in a row begins anew."""
        self._in_a_row = 0

    def after(self, code: int, ran_s: float) -> float | None:
        """Seconds until the command is started again; None: not at all.

        >>> restarts = Restarts(RestartPolicy(Restart.ON_FAILURE, delay_s=1.0, most=3))
        >>> [restarts.after(1, ran_s=0.1) for _ in range(4)], restarts.after(0, ran_s=0.1)
        ([1.0, 2.0, 4.0, None], None)
        """
        policy = self._policy
        if policy.when is Restart.NEVER or (policy.when is Restart.ON_FAILURE and code == 0):
            return None
        longest = max(LONGEST_DELAY_S, policy.delay_s)
        if ran_s >= max(HELD_OUT_S, longest):
            self._in_a_row = 0
        if policy.most is not None and self._in_a_row >= policy.most:
            return None
        self._in_a_row += 1
        doublings = min(self._in_a_row - 1, 60)  # beyond this the longest delay applies anyway
        return min(policy.delay_s * 2.0**doublings, longest)
