"""One forged message of each kind of the quorum: voters go on, also after all were restarted.

The group is a durable one in memory. Whoever forges belongs to it, knows all that is no secret
(rounds, tokens, lives) and speaks in its own name and in everybody else's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.core.choice import MemberId
from hustings.core.messages import Message, kind_of
from hustings.net.limits import Reason
from hustings.net.member import Member
from hustings.net.validation import bounds
from hustings.quorum import QuorumLeaseLayer
from hustings.quorum.epochs import EPOCH_BITS
from hustings.quorum.messages import (
    KINDS,
    AcceptedMsg,
    AcceptMsg,
    AvailableMsg,
    Change,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInfoMsg,
    ConfInstalledMsg,
    ConfInstallMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    ConfQueryMsg,
    InvitedMsg,
    InviteMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    RecoveryEmptyMsg,
    RecoveryMsg,
    RecoveryStateMsg,
    ReleaseMsg,
    Sealed,
)
from hustings.testing import Group
from tests.net.lies import STRANGER, liar, tell

VOTERS = ("a", "b", "c")
NAMES = (*VOTERS, "d")
TTL = 2.0
GUESS = 77  # a number that somebody else has drawn


def with_quorum(member: Member) -> QuorumLeaseLayer:
    inner = member.node.stack.inner
    assert isinstance(inner, QuorumLeaseLayer)
    return inner


def epochs(life: int) -> tuple[int, int, int]:
    return (life << EPOCH_BITS | 5, life << EPOCH_BITS | 6, life << EPOCH_BITS | 7)


def forged(voter: QuorumLeaseLayer, who: MemberId) -> Iterator[Message]:
    """What somebody could say: likely values, and the worst that can be written."""
    end = bounds(time.time(), 1_000_000).end
    first, second, _ = sorted(voter.electorate.voters)
    before = voter.acceptor.promised
    for config, far in ((0, 1), (1, 2), (2**40, 2**40), (2**62, 2**62)):
        for taken, life, ttl in (
            (before.round, 1, TTL),
            (before.round + 1, 2, 3.0),
            (end, 9, 1e12),
        ):
            ways = (who, before.holder, STRANGER)
            for newcomer in (STRANGER, who):
                voters = tuple(sorted({first, second, newcomer} | {STRANGER}))[:3]
                change = Change(voters, newcomer, epochs(life)[0])
                yield from about_voters(config, far, taken, before.incarnation, change, life, ttl)
            for holder in ways:
                lease = Lease(holder, before.incarnation, taken, ttl)
                yield from votes(config, taken, before.incarnation, lease, life)
                yield ReleaseMsg(config, taken, before.incarnation, taken, holder)
            for born in (*epochs(life), *epochs(2**30 - 1), *voter.acceptor.known_epochs()):
                yield RecoveryMsg(config, born, GUESS)
                yield RecoveryMsg(config, born, GUESS, GUESS)
                yield RecoveryEmptyMsg(
                    config, voter.recovery.epoch, GUESS, born, before.incarnation
                )
                yield InvitedMsg(config, born)


def votes(config: int, taken: int, life: int, lease: Lease, lives: int) -> Iterator[Message]:
    born, ttl = epochs(lives), lease.ttl
    yield PrepareMsg(config, taken, life)
    yield PromiseMsg(config, taken, life, born, lease)
    yield AcceptMsg(config, taken, life, taken, ttl, 1)
    yield AcceptedMsg(config, taken, life, 1, born)
    yield NackMsg(config, taken, life, taken, lease, ttl)
    yield AvailableMsg(config, taken)
    change = Change((1, 2, STRANGER), STRANGER, born[0])
    sealed = Sealed(taken, change)
    yield RecoveryStateMsg(
        config, born[0], GUESS, born[0], taken, lease, born, sealed, counted=True
    )
    yield RecoveryStateMsg(config, born[0], GUESS, born[1], taken, lease, born, None, counted=False)


def about_voters(
    config: int, far: int, taken: int, life: int, change: Change, lives: int, ttl: float
) -> Iterator[Message]:
    lease = Lease(STRANGER, 1, taken, ttl)
    born = epochs(lives)
    yield ConfInfoMsg(far, change.voters)
    for installed in ((), born):
        install = ConfInstallMsg(far, change, taken, lease, installed)
        yield install
        yield ConfInfoMsg(far, change.voters, GUESS, install)
    yield ConfInstalledMsg(far)
    yield ConfQueryMsg(config, GUESS)
    yield InviteMsg(config, GUESS)
    yield ConfPrepareMsg(config, taken, life)
    yield ConfPromiseMsg(config, taken, life, born, Sealed(taken, change), GUESS)
    yield ConfAcceptMsg(config, taken, life, change)
    yield ConfAcceptMsg(config, taken, life, change, GUESS)
    yield ConfAcceptedMsg(config, taken, life, born)


def attack(group: Group, kind: type[Message]) -> int:
    """Each voter hears each of these, in the name of everybody; how many there were."""
    told = 0
    members = [group.member(name) for name in NAMES]
    for victim in members:
        for other in members:
            names = (other.id, STRANGER) if other.name == "d" else (other.id,)
            for who in names if other is not victim else ():
                wire = liar(other, who)
                chosen = [each for each in forged(with_quorum(victim), who) if type(each) is kind]
                for message in dict.fromkeys(chosen):
                    frame = wire.write(message, victim.id)
                    assert not isinstance(frame, Reason)
                    tell(group, victim, frame.data)
                    told += 1
    return told


def token(group: Group, leader: str) -> int:
    found = group.member(leader).state.token
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS, ids=kind_of)
def test_one_forged_message_changes_nothing_for_good(kind: type[Message], tmp_path: Path) -> None:
    with Group(seed=5, protocol="bully", guard="quorum://a,b,c", ttl=TTL) as group:
        for name in NAMES:
            group.join(name, state=tmp_path)
        before = token(group, group.settle(steady=1.0))
        lives = [with_quorum(group.member(name)).acceptor.epochs for name in VOTERS]
        assert attack(group, kind) >= 6
        group.advance(5 * TTL)
        for name in NAMES:
            group.kill(name)
        for name in NAMES:
            group.restart(name)
        leader = group.settle(steady=1.0, within=60)
        assert group.leaders == [leader]
        assert token(group, leader) > before
        for name in NAMES:
            assert with_quorum(group.member(name)).electorate.number == 0
        assert [with_quorum(group.member(name)).acceptor.epochs for name in VOTERS] == lives
        before = token(group, leader)
        group.kill(next(name for name in VOTERS if name != leader))  # the other two are needed
        group.restart(leader)
        assert token(group, group.settle(steady=1.0, within=60)) > before
