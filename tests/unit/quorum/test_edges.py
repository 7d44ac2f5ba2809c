"""The quorum's edges: what reaches the world below, what is said of its state, beginning midway."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from hustings.core.choice import Candidate
from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.core.outcome import NoLeader
from hustings.layers.lease import LeaseHeldMsg
from hustings.quorum import QuorumConfig
from hustings.quorum.epochs import EPOCH_BITS
from hustings.quorum.layer import VotersContext
from hustings.quorum.messages import Ballot, Change, ConfInstallMsg, Lease
from hustings.testing import (
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Send,
    SetTimer,
    persist,
    recording,
)
from tests.unit.quorum.quorum_kit import Booth, Hall

SAID = LeaseHeldMsg(1, 7)


class Asked:
    """Who takes questions to the voters, and notes them."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def acquire(self, ctx: Context, ttl: float, request: int) -> None:
        self.heard.append((ttl, request))

    def release(self, ctx: Context) -> None:
        self.heard.append("back")


@pytest.mark.parametrize(
    "act, effect",
    [
        (lambda ctx: ctx.send(3, SAID), Send(3, SAID)),
        (lambda ctx: ctx.multicast(SAID), Multicast(SAID)),
        (lambda ctx: ctx.set_timer("t", 2.0, eager=True), SetTimer("t", 2.0, eager=True)),
        (lambda ctx: ctx.cancel_timer("t"), CancelTimer("t")),
        (lambda ctx: ctx.persist(token=4), persist(token=4)),
        (lambda ctx: ctx.declare(NoLeader("x")), Declare(NoLeader("x"))),
    ],
)
def test_what_is_not_for_the_guard_goes_below(
    act: Callable[[Context], None], effect: Effect
) -> None:
    asked = Asked()
    with recording(Candidate(1)) as below:
        act(VotersContext(below, asked))
    assert (below.effects, asked.heard) == ([effect], [])


def test_what_is_for_the_guard_goes_to_the_voters() -> None:
    asked = Asked()
    with recording(Candidate(1)) as below:
        ctx = VotersContext(below, asked)
        ctx.acquire(30.0, 4)
        ctx.release(5)
    assert (below.effects, asked.heard) == ([], [(30.0, 4), "back"])


def test_the_longest_lease_is_what_is_asked_for_unless_it_is_set() -> None:
    assert QuorumConfig(voters=(1, 2, 3)).longest_for(30.0) == 30.0
    assert QuorumConfig(voters=(1, 2, 3), max_ttl=40.0).longest_for(30.0) == 40.0
    assert QuorumConfig(voters=(1, 2, 3), max_ttl=30.0).longest_for(30.0) == 30.0
    with pytest.raises(BadInput, match="must not exceed max_ttl=20, and is 30"):
        QuorumConfig(voters=(1, 2, 3), max_ttl=20.0).longest_for(30.0)


def test_the_state_tells_what_is_asked_for_and_who_votes() -> None:
    hall = Hall(4)
    assert hall.of(1).proposer.state() == "idle"
    assert hall.of(1).recovery.state() == "votes promised=0"
    assert hall.of(4).recovery.state().startswith("does not vote")
    hall.call(1)
    state = hall.of(1).proposer.state()
    assert state.endswith(f"round={hall.of(1).proposer.round}")
    assert not state.startswith("idle")
    assert hall.of(1).state().split(" | ")[-2:] == [state, hall.of(1).recovery.state()]


EPOCH = (1 << EPOCH_BITS) + 77
HELD = Lease(2, 1, 3, 30.0)


def installed(booth: Booth, lease: Lease | None, promised: int = 5) -> None:
    message = ConfInstallMsg(1, Change((1, 2, 4), 4, EPOCH), promised, lease)
    booth.run(lambda ctx: booth.acceptor.install(ctx, message))


def test_a_voter_begins_the_next_configuration_with_what_the_last_one_left() -> None:
    booth = Booth()
    booth.now, booth.acceptor.successor_until = 10.0, 99.0
    installed(booth, HELD)
    voter = booth.acceptor
    assert (voter.lease, voter.until, voter.successor_until) == (HELD, 40.0, -inf)
    assert (voter.promised.round, voter.sealed) == (5, None)
    assert voter.epochs == {1: 0, 2: 0, 4: EPOCH}
    assert {"quorum-promised", "quorum-lease", "quorum-births"} <= {*booth.wrote}


def test_without_a_lease_it_is_free_at_once_and_a_larger_promise_stays() -> None:
    booth = Booth()
    booth.acceptor.until, booth.acceptor.promised = 99.0, Ballot(8, 1, 1)
    installed(booth, None, promised=5)
    assert (booth.acceptor.lease, booth.acceptor.until) == (None, -inf)
    assert booth.acceptor.promised.round == 8


def test_a_later_life_of_the_newcomer_is_not_forgotten() -> None:
    booth = Booth()
    later = 2 << EPOCH_BITS
    booth.acceptor.epochs = {4: later}
    installed(booth, None)
    assert booth.acceptor.epochs[4] == later


def test_a_voter_without_a_disk_writes_nothing() -> None:
    booth = Booth()
    booth.acceptor.durable = False
    installed(booth, HELD)
    booth_wrote = list(booth.wrote)
    booth.run(booth.acceptor.keep_promise)
    assert booth_wrote + booth.wrote == []
