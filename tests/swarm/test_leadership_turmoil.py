"""Turmoil, then calm, with a leadership layer: in the end all agree on one leader that lives.

Members start at different times and alone, crash, pause, are cut off and find each other again,
hand over, resign and stand again, while one message in ten is lost and some come twice or late.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.layers.leadership.inquiry import Inquiry
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.messages import LeaderInfoMsg
from hustings.layers.leadership.reconciliation import Reconciliation
from hustings.protocols.bully import Bully
from hustings.protocols.registry import ANNOUNCING, COMPARED, LARGE, classes
from hustings.protocols.stable import Stable
from tests.swarm.leaderships import Turmoil, judge

# As often as the election has it, never, and after a while.
SETTINGS = (
    LeadershipConfig(),
    LeadershipConfig(preempt_after=0.0),
    LeadershipConfig(preempt_after=15.0),
)
AGREEING = [kind for kind in classes(ANNOUNCING) if kind.assumptions.agrees]
KINDS = [*classes(COMPARED), *classes(LARGE), *AGREEING]
EVERY_PROTOCOL = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.about.name)
SEEDS = len(SETTINGS)
MANY_SEEDS = 300
SHOWN = 5


def check(
    kind: type[Election], seeds: range, leadership: type[LeadershipLayer] = LeadershipLayer
) -> None:
    wrong = []
    for seed in seeds:
        complaint = judge(kind, seed, SETTINGS[seed % len(SETTINGS)], leadership)
        if complaint is not None:
            wrong.append(f"seed {seed}: {complaint}")
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds fail:\n" + "\n".join(wrong[:SHOWN])


@EVERY_PROTOCOL
def test_in_the_end_all_agree(kind: type[Election]) -> None:
    check(kind, range(SEEDS))


@pytest.mark.soak
@EVERY_PROTOCOL
def test_in_the_end_all_agree_for_very_many_seeds(kind: type[Election]) -> None:
    check(kind, range(SEEDS, SEEDS + MANY_SEEDS))


# The swarm itself: what is wrong must be found


class Deaf(Reconciliation):
    """Hears nothing that others say of the leader."""

    def compare(self, ctx: Context, sender: MemberId, info: LeaderInfoMsg) -> None:
        """Never mind."""


class Aloof(LeadershipLayer):
    """Listens to nobody."""

    Reconciling = Deaf


class Idle(Inquiry):
    """Never asks."""

    def begin(self, ctx: Context) -> None:
        """Somebody else will."""


class Listless(LeadershipLayer):
    """Does nothing about having no leader."""

    Inquiring = Idle


class Gullible(LeadershipLayer):
    """Follows whoever was named last, in whatever term."""

    @property
    def highest(self) -> int:
        return 0


@pytest.mark.parametrize(
    "kind, leadership, seeds",
    [
        (Bully, Aloof, range(12, 15)),
        (Stable, Aloof, range(36, 39)),
        (Bully, Listless, range(6, 9)),
        (Bully, Gullible, range(9)),
    ],
)
def test_a_leadership_layer_that_is_wrong_is_found(
    kind: type[Election], leadership: type[LeadershipLayer], seeds: range
) -> None:
    with pytest.raises(AssertionError, match=r"do not agree|term fell"):
        check(kind, seeds, leadership)


def test_a_group_has_its_share_of_misfortune() -> None:
    group = Turmoil(Bully, 1, SETTINGS[0])
    group.run()
    assert group.world.lost["loss"] > 50
    assert len({outcome for _, _, outcome in group.watch.log}) > 4
