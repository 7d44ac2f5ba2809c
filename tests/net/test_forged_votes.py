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
from hustings.net.plausible import bounds
from hustings.quorum import Quorate
from hustings.quorum.lives import LIFE_BITS
from hustings.quorum.messages import (
    KINDS,
    AcceptedMsg,
    AfterMsg,
    Change,
    EnrollMsg,
    FreedMsg,
    FreshMsg,
    InstalledMsg,
    InstallMsg,
    InvitedMsg,
    InviteMsg,
    KnownMsg,
    Lease,
    MovedMsg,
    PrepareMsg,
    PromiseMsg,
    ProposeMsg,
    RefusedMsg,
    ReleaseMsg,
    Sealed,
    SealedMsg,
    SealMsg,
    SurveyedMsg,
    SurveyMsg,
)
from hustings.testing import Group
from tests.net.lies import STRANGER, liar, tell

VOTERS = ("a", "b", "c")
NAMES = (*VOTERS, "d")
TTL = 2.0
GUESS = 77  # a number that somebody else has drawn


def quorate(member: Member) -> Quorate:
    inner = member.host.stack.inner
    assert isinstance(inner, Quorate)
    return inner


def births(life: int) -> tuple[int, int, int]:
    return (life << LIFE_BITS | 5, life << LIFE_BITS | 6, life << LIFE_BITS | 7)


def forged(voter: Quorate, who: MemberId) -> Iterator[Message]:
    """What somebody could say: likely values, and the worst that can be written."""
    end = bounds(time.time(), 1_000_000).end
    first, second, _ = sorted(voter.electorate.voters)
    before = voter.voter.promised
    for config, far in ((0, 1), (1, 2), (2**40, 2**40), (2**62, 2**62)):
        for taken, life, ttl in (
            (before.round, 1, TTL),
            (before.round + 1, 2, 3.0),
            (end, 9, 1e12),
        ):
            ways = (who, before.holder, STRANGER)
            for newcomer in (STRANGER, who):
                voters = tuple(sorted({first, second, newcomer} | {STRANGER}))[:3]
                change = Change(voters, newcomer, births(life)[0])
                yield from about_voters(config, far, taken, before.incarnation, change, life, ttl)
            for holder in ways:
                lease = Lease(holder, before.incarnation, taken, ttl)
                yield from votes(config, taken, before.incarnation, lease, life)
                yield ReleaseMsg(config, taken, before.incarnation, taken, holder)
            for born in (*births(life), *births(2**30 - 1), *voter.voter.known_births()):
                yield EnrollMsg(config, born, GUESS)
                yield EnrollMsg(config, born, GUESS, GUESS)
                yield FreshMsg(config, voter.enrolment.birth, GUESS, born, before.incarnation)
                yield InvitedMsg(config, born)


def votes(config: int, taken: int, life: int, lease: Lease, lives: int) -> Iterator[Message]:
    born, ttl = births(lives), lease.ttl
    yield PrepareMsg(config, taken, life)
    yield PromiseMsg(config, taken, life, born, lease)
    yield ProposeMsg(config, taken, life, taken, ttl, 1)
    yield AcceptedMsg(config, taken, life, 1, born)
    yield RefusedMsg(config, taken, life, taken, lease, ttl)
    yield FreedMsg(config, taken)
    change = Change((1, 2, STRANGER), STRANGER, born[0])
    sealed = Sealed(taken, change)
    yield KnownMsg(config, born[0], GUESS, born[0], taken, lease, born, sealed, counted=True)
    yield KnownMsg(config, born[0], GUESS, born[1], taken, lease, born, None, counted=False)


def about_voters(
    config: int, far: int, taken: int, life: int, change: Change, lives: int, ttl: float
) -> Iterator[Message]:
    lease = Lease(STRANGER, 1, taken, ttl)
    born = births(lives)
    yield MovedMsg(far, change.voters)
    for installed in ((), born):
        install = InstallMsg(far, change, taken, lease, installed)
        yield install
        yield MovedMsg(far, change.voters, GUESS, install)
    yield InstalledMsg(far)
    yield AfterMsg(config, GUESS)
    yield InviteMsg(config, GUESS)
    yield SurveyMsg(config, taken, life)
    yield SurveyedMsg(config, taken, life, born, Sealed(taken, change), GUESS)
    yield SealMsg(config, taken, life, change)
    yield SealMsg(config, taken, life, change, GUESS)
    yield SealedMsg(config, taken, life, born)


def attack(group: Group, kind: type[Message]) -> int:
    """Each voter hears each of these, in the name of everybody; how many there were."""
    told = 0
    members = [group.member(name) for name in NAMES]
    for victim in members:
        for other in members:
            names = (other.id, STRANGER) if other.name == "d" else (other.id,)
            for who in names if other is not victim else ():
                wire = liar(other, who)
                chosen = [each for each in forged(quorate(victim), who) if type(each) is kind]
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
        lives = [quorate(group.member(name)).voter.births for name in VOTERS]
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
            assert quorate(group.member(name)).electorate.number == 0
        assert [quorate(group.member(name)).voter.births for name in VOTERS] == lives
        before = token(group, leader)
        group.kill(next(name for name in VOTERS if name != leader))  # the other two are needed
        group.restart(leader)
        assert token(group, group.settle(steady=1.0, within=60)) > before
