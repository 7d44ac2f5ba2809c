"""Candidates that lack what the choice ranks by: no message that speaks of one ends a member."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hustings.core.choice import Candidate, candidate, parse_choice
from hustings.core.messages import Message
from hustings.net.limits import Reason
from hustings.net.member import Member
from hustings.net.validation import flaw_of_candidates
from hustings.protocols.broadcast import IdMsg, StartMsg
from hustings.protocols.bully_grant import OkMsg
from hustings.protocols.registry import JOINED
from hustings.protocols.ring import ElectedMsg, ElectionMsg
from hustings.testing import Group
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import believed, datagrams, forged, frame
from tests.net.lies import STRANGER, liar, tell
from tests.net.test_absurd_numbers import made

CHOICE = "highest:cpu"
NAMES = ("a", "b", "c")


def bare(message: Any) -> Any:
    """The same with candidates that have nothing to be ranked by."""
    if isinstance(message, Candidate):
        return Candidate(message.id)
    if isinstance(message, msgspec.Struct):
        fields = {name: bare(getattr(message, name)) for name in message.__struct_fields__}
        return type(message)(**fields)
    return tuple(bare(part) for part in message) if isinstance(message, tuple) else message


@pytest.mark.parametrize("multicast", ["fan-out", "gossip"])
@pytest.mark.parametrize("protocol", JOINED)
def test_no_candidate_without_the_attribute_ends_a_member(protocol: str, multicast: str) -> None:
    with Group(seed=5, protocol=protocol, choice=CHOICE, multicast=multicast) as group:
        for name in NAMES:
            group.join(name, attributes={"cpu": 4.0})
        group.settle(steady=1.0)
        for at, victim in enumerate(map(group.member, NAMES)):
            other = group.member(NAMES[at - 1])
            for who, wire in ((other.id, liar(other, other.id)), (STRANGER, liar(other, STRANGER))):
                for message in lies(victim, who):
                    frame = wire.write(message, victim.id)
                    if not isinstance(frame, Reason):
                        tell(group, victim, frame.data)
        assert group.settle(steady=1.0, within=60) in NAMES
        assert not any(group.member(name).closed for name in NAMES)
        for drops in (group.member(name).metrics().drops for name in NAMES):
            assert drops["unhandled"] == 0, "a handler was not told what it cannot rank"


def lies(victim: Member, who: int) -> list[Message]:
    """Every kind of message, about this term and the next ones, with bare candidates."""
    said: list[Message] = []
    for term in range(victim.term, victim.term + 4):
        for kind in victim.node.filter.wire.codec.kinds:
            message = bare(made(kind, "", term, who))
            said.append(message)
            if victim.node.stack.multicast is not None and kind in victim.node.stack.inner.handlers:
                cast = next(
                    each for each in victim.node.stack.handlers if each.__name__ == "OtherCast"
                )
                body = victim.node.stack.codec.encode(message)
                life = victim.node.filter.wire.incarnation
                said.append(cast(life, 100_000 + len(said), body))
    return said


@pytest.mark.parametrize("insecure", [True, False], ids=["without a key", "by a member"])
@pytest.mark.parametrize("protocol", ["ring", "broadcast", "stable", "bully-grant"])
def test_nor_on_real_sockets(protocol: str, insecure: bool) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, choice=CHOICE, insecure=insecure) as crowd:
            await crowd.add_all(NAMES, attributes={"cpu": 4.0})
            await crowd.known(3)
            await crowd.seated()
            with datagrams() as stranger:
                for victim in crowd.open():
                    wire = forged(victim, STRANGER, victim.node.filter.wire.incarnation)
                    for message in lies(victim, STRANGER):
                        if any(kind in type(message).__name__ for kind in ("Cast", "Leave")):
                            continue
                        stranger.sendto(frame(wire, message, victim.id), endpoint(victim))
            await until(
                lambda: all(dropped(each, "bad-fields") > 0 for each in crowd.open()),
                lambda: f"refused; {[each.metrics().drops for each in crowd.open()]}",
            )
            await crowd.settled(lasting=1.0)
            assert len(crowd.open()) == 3

    with believed():  # the stranger answers, as it can here
        run(story())


# Where candidates stand


class NestedMsg(Message, frozen=True, tag="NESTED"):
    """Of a protocol that somebody else has written."""

    pair: tuple[int, Candidate] | None
    many: tuple[tuple[Candidate, int], ...] = ()
    named: dict[str, Candidate] | None = None


GOOD, BAD = candidate(1, cpu=4.0), Candidate(2)


@pytest.mark.parametrize(
    "message, flaw",
    [
        (ElectionMsg((1, 1), GOOD), None),
        (ElectionMsg((1, 1), BAD), Reason.BAD_FIELDS),
        (ElectedMsg((1, 1), candidate(1, cpu=float("inf"))), Reason.BAD_FIELDS),
        (StartMsg(1, None), None),
        (StartMsg(1, GOOD), None),
        (StartMsg(1, BAD), Reason.BAD_FIELDS),
        (IdMsg(1, Candidate(1, (("cpu", 4.0), ("\x1b", 1.0)))), Reason.BAD_NAME),
        (OkMsg(1, BAD), Reason.BAD_FIELDS),
        (NestedMsg((1, GOOD)), None),
        (NestedMsg((1, BAD)), Reason.BAD_FIELDS),
        (NestedMsg(None, ((GOOD, 1), (BAD, 2))), Reason.BAD_FIELDS),
        (NestedMsg(None, (), {"x": BAD}), Reason.BAD_FIELDS),
        (NestedMsg(None, ((GOOD, 1),), {"x": GOOD}), None),
    ],
)
def test_every_candidate_is_looked_at(message: Message, flaw: Reason | None) -> None:
    assert flaw_of_candidates(message, parse_choice(CHOICE).can_rank) is flaw
