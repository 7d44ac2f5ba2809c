"""The cells of the announce-listen figures: the thesis's parameters, N from 2 to 500.

T_S = T_A = 1 and Delta = 0.1 throughout, with uniform timers, unless a cell says otherwise. T_L is
infinite where only convergence is measured. The compiled kernels play starts. The event simulator
plays what happens to an established group.
"""

from __future__ import annotations

from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.engines import FAST

NONE, CORRELATED, UNCORRELATED = "none", "correlated", "uncorrelated"

DELAY = 0.1
SLEEP = 0.5  # the mean of the wake-up time
LOSS = 0.4  # the loss of most figures in the thesis

SIZES = (2, 5, 10, 20, 50, 100, 200, 500)

# Extra loss for each message under way, chosen so that AL and LE-S cross where the thesis saw it.
# This is one number fitted to one point: it explains the figure, and does not predict it.
COLLISION = 2.35e-4

CONVERGENCE = ("tmax", "num_msgs")
MESSAGES = ("num_msgs",)  # times vary much more, and need many more runs
FIRST_ROUND = ("first_round",)


def start(
    protocol: str,
    members: int,
    loss_model: str = NONE,
    loss: float = LOSS,
    *,
    collision: float = 0.0,
    delay: float = DELAY,
    aims: tuple[str, ...] = CONVERGENCE,
    **more: str,
) -> Measurement:
    """A simultaneous start."""
    settings = {
        "sup": {"T_S": "1"},
        "al": {"T_A": "1", "T_L": "inf"},
        "le-a": {"T_A": "1", "T_L": "inf"},
    }.get(protocol, {"T_A": "1", "T_S": "1", "T_L": "inf"})
    return Measurement(
        protocol=protocol,
        members=members,
        loss_model=loss_model,
        loss=0.0 if loss_model == NONE else loss,
        collision=collision,
        delay=delay,
        settings=tuple({**settings, **more}.items()),
        engine=FAST,
        aims=aims,
        work=members / 5000,
    )


def starts(
    protocol: str,
    loss_model: str = NONE,
    loss: float = LOSS,
    *,
    sizes: tuple[int, ...] = SIZES,
    collision: float = 0.0,
    delay: float = DELAY,
    aims: tuple[str, ...] = CONVERGENCE,
) -> tuple[Measurement, ...]:
    """Simultaneous starts of growing groups."""
    return tuple(
        start(protocol, members, loss_model, loss, collision=collision, delay=delay, aims=aims)
        for members in sizes
    )


def disturbed(
    scenario: str,
    protocol: str,
    members: int,
    loss_model: str = NONE,
    loss: float = LOSS,
    **more: str,
) -> Measurement:
    """A disturbance of an established group."""
    settings = {"T_A": "1"} if protocol == "le-a" else {"T_A": "1", "T_S": "1"}
    return Measurement(
        protocol=protocol,
        members=members,
        scenario=scenario,
        loss_model=loss_model,
        loss=0.0 if loss_model == NONE else loss,
        delay=DELAY,
        settings=tuple({**settings, **more}.items()),
        aims=("reestablishment_delay",),
        work=members * 0.1,
    )


def watched(members: int, loss_model: str, loss: float, periods: int, until: float) -> Measurement:
    """An established group without disturbance, with T_L of this many periods."""
    return Measurement(
        protocol="le-s",
        members=members,
        scenario="false-departure",
        loss_model=loss_model,
        loss=loss,
        delay=DELAY,
        settings=(("T_A", "1"), ("T_S", "1"), ("T_L", str(periods))),
        until=until,
        aims=("inconsistent_fraction",),
        work=members * until / 1000,
    )
