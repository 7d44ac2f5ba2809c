"""Turmoil, then calm: the whole catalogue under crashes, returns and every other misfortune.

One seed draws group, network and misfortunes; a failure ends with the line that replays it.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election, upon
from hustings.protocols.bully import ANSWERS, ASKING, WAITING, Bully, OkMsg
from hustings.protocols.consensus import Consensus
from hustings.protocols.registry import CATALOGUE, LARGE, classes
from hustings.protocols.ring_printed import RingPrinted
from tests.swarm.claims import CLAIMS, judge
from tests.swarm.replay import main, replay

SEEDS = 250
MANY_SEEDS = 20_000
SHOWN = 5  # failures that are told in full

EVERY_CLAIM = pytest.mark.parametrize("claim", CLAIMS)
# Those who announce never come to rest, which these claims ask for: see test_announce_turmoil.py;
# those for large groups promise less: see test_probabilistic_turmoil.py. A candidate that dies goes
# round for ever in ring-printed, as the slides say: see tests/paper/test_ring_printed.py. Consensus
# needs a majority of all members, also of the dead: see tests/paper/test_reductions.py.
RESTING = [
    kind
    for kind in classes(CATALOGUE)
    if not kind.assumptions.announces and kind not in (*classes(LARGE), RingPrinted, Consensus)
]
EVERY_PROTOCOL = pytest.mark.parametrize("kind", RESTING, ids=lambda kind: kind.about.name)


def check(claim: str, kind: type[Election], seeds: range) -> None:
    wrong = [(seed, what) for seed in seeds if (what := judge(claim, kind, seed)) is not None]
    lines = [
        f"python -m tests.swarm.replay {claim} {kind.about.name} {seed}  # {what}"
        for seed, what in wrong[:SHOWN]
    ]
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds fail:\n" + "\n".join(lines)


@EVERY_PROTOCOL
@EVERY_CLAIM
def test_the_claim_holds(claim: str, kind: type[Election]) -> None:
    check(claim, kind, range(SEEDS))


@pytest.mark.soak
@EVERY_PROTOCOL
@EVERY_CLAIM
def test_the_claim_holds_for_very_many_seeds(claim: str, kind: type[Election]) -> None:
    check(claim, kind, range(SEEDS, SEEDS + MANY_SEEDS))


# The swarm itself: what is wrong must be found, and replayed as it was


class Deaf(Bully):
    """Believes in its leader whatever the detector says."""

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.dead.add(member)


class Patient(Bully):
    """Waits for a coordinator without an end."""

    @upon(OkMsg)
    def on_ok(self, ctx: Context, sender: MemberId, message: OkMsg) -> None:
        if self.phase == ASKING:
            self.phase = WAITING
            ctx.cancel_timer(ANSWERS)


class Clumsy(Bully):
    """Takes for granted that whoever is suspected is in its view."""

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        ctx.view.candidate(member)
        super().on_suspect(ctx, member)


@pytest.mark.parametrize(
    "claim, kind, complaint",
    [
        ("turmoil", Deaf, "is the best alive"),
        ("dense", Deaf, "is the best alive"),
        ("chaos", Patient, "is left with NoLeader"),
        ("chaos", Clumsy, "KeyError"),
    ],
)
def test_an_election_that_is_wrong_is_found(
    claim: str, kind: type[Election], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint) as failure:
        check(claim, kind, range(100))
    assert f"python -m tests.swarm.replay {claim} bully " in str(failure.value)


@EVERY_CLAIM
def test_a_seed_is_replayed_as_it_was(claim: str) -> None:
    shown, wrong = replay(claim, "bully", 7)
    assert (shown, wrong) == replay(claim, "bully", 7)
    assert "start" in shown
    assert "ended: quiescent" in shown
    assert shown != replay(claim, "bully", 8)[0]


def test_the_line_that_a_failure_prints_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["turmoil", "bully", "7"]) == 0
    assert capsys.readouterr().out.endswith("nothing was wrong\n")


@pytest.mark.parametrize(
    "arguments", [[], ["turmoil", "bully"], ["turmoil", "buly", "1"], ["tumult", "bully", "1"]]
)
def test_a_line_typed_wrongly_gets_a_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
