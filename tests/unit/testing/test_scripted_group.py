"""The group in memory: views, standing, and the order of things."""

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.context import Context
from hustings.core.errors import BadInput, ProtocolBug, UnknownName
from hustings.testing import ScriptedGroup, ScriptedStatus
from tests.unit.testing.toys import HailMsg, Nag, Toy, ToyConfig

THREE = [Candidate(3), Candidate(1), Candidate(2)]


def group_of(kind: type[Toy], down: tuple[MemberId, ...] = (), seed: int = 0) -> ScriptedGroup:
    return ScriptedGroup(lambda: kind(ToyConfig(), HighestId()), THREE, down=down, seed=seed)


def views(group: ScriptedGroup) -> dict[MemberId, list[MemberId]]:
    return {member: group.members[member].view.ids for member in group.up()}


def test_the_dead_stay_in_the_views_unless_the_election_assumes_live_views() -> None:
    dead_known, dead_unknown = group_of(Toy, down=(3,)), group_of(Nag, down=(3,))
    for group in (dead_known, dead_unknown):
        group.start([1, 2])
    assert views(dead_known) == {1: [1, 2, 3], 2: [1, 2, 3]}
    assert views(dead_unknown) == {1: [1, 2], 2: [1, 2]}
    dead_unknown.restart(3)
    assert views(dead_unknown) == {1: [1, 2, 3], 2: [1, 2, 3], 3: [1, 2, 3]}


def test_a_crash_leaves_the_views_alone_and_a_departure_does_not() -> None:
    group = group_of(Toy)
    group.start([1, 2, 3])
    group.crash(2)
    assert views(group) == {1: [1, 2, 3], 3: [1, 2, 3]}
    group.leave(3)
    assert views(group) == {1: [1, 2]}
    assert group.standing == {1: ScriptedStatus.UP, 2: ScriptedStatus.DOWN, 3: ScriptedStatus.LEFT}
    group.restart(3)
    assert views(group) == {1: [1, 2, 3], 3: [1, 2, 3]}


def test_timers_of_a_crashed_member_are_gone() -> None:
    group = group_of(Toy)
    group.start([1, 2, 3])
    group.call(2)
    assert [str(timer) for timer in group.timers()] == ["2 wait/2 at 3"]
    group.crash(2)
    assert group.timers() == []
    group.restart(2)
    assert [str(timer) for timer in group.timers()] == ["2 back at 1"]


def test_equal_messages_are_taken_one_at_a_time() -> None:
    group = group_of(Toy)
    group.start([1, 2, 3])
    group.call(1)
    group.duplicate(group.flight[0])
    group.drop(group.flight[0])
    assert [str(envelope) for envelope in group.flight] == ["1->3 HAIL", "1->2 HAIL"]


def test_members_draw_from_streams_of_one_seed() -> None:
    def draws(seed: int) -> list[int]:
        group = group_of(Toy, seed=seed)
        group.start([1, 2, 3])
        return [member.rng.bits() for member in group.members.values()]

    assert draws(1) == draws(1)
    assert len({*draws(1), *draws(2)}) == 6


def test_a_message_to_a_stranger_is_a_bug() -> None:
    class Lost(Toy):
        def call(self, ctx: Context) -> None:
            ctx.send(9, HailMsg())

    group = group_of(Lost)
    group.start([1])
    with pytest.raises(ProtocolBug, match="member 1 sent to 9, which does not exist"):
        group.call(1)


def test_mistakes_of_the_test_are_told() -> None:
    group = group_of(Toy)
    with pytest.raises(UnknownName, match="unknown member '4'"):
        group.call(4)
    with pytest.raises(BadInput, match="member 1 is not started"):
        group.call(1)
    group.start([1])
    with pytest.raises(UnknownName, match="unknown armed timer of member 1 'T'"):
        group.fire(1, "T")
