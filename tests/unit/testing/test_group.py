"""The group for users' tests: real members, virtual time, faults on request, one seed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.net.member import Member
from hustings.net.member_state import LeadershipLost
from hustings.testing import Group, NotSettled
from hustings.testing.async_group import SEEDS
from tests.unit.testing.groups import NAMES, fail, lone, three


@pytest.fixture
def group() -> Iterator[Group]:
    with three() as made:
        yield made


def others(group: Group, name: str) -> list[str]:
    return [each for each in group.up if each != name]


# Agreement


def test_members_are_real_and_agree(group: Group) -> None:
    leader = group.settle()
    assert leader in NAMES
    assert group.leaders == [leader]
    for name in NAMES:
        member = group.member(name)
        assert isinstance(member, Member)
        assert member.leader is not None
        assert member.leader.name == leader
        assert [peer.name for peer in member.members()] == list(NAMES)


def test_the_log_tells_who_believed_what_when(group: Group) -> None:
    leader = group.settle()
    times = [entry.time for entry in group.log]
    assert times == sorted(times)
    assert [entry.member for entry in group.log if entry.state.leading][-1] == leader
    last = {entry.member: entry.state for entry in group.log}
    assert last == {name: group.member(name).state for name in NAMES}


@pytest.mark.parametrize("protocol", ["le-s", "bully", "ring", "stable", "probabilistic"])
def test_any_protocol_survives_its_leader(protocol: str) -> None:
    with Group(seed=3, protocol=protocol, delay=(0.001, 0.005)) as group:
        for name in NAMES:
            group.join(name)
        first = group.settle()
        group.kill(first)
        second = group.settle()
        assert second != first
        assert group.up == [name for name in NAMES if name != first]


def test_an_agreement_can_be_asked_to_last(group: Group) -> None:
    group.settle()
    before = group.now
    leader = group.settle(steady=5.0)
    assert group.now >= before + 5.0
    changes = [entry for entry in group.log if entry.time > group.now - 5.0]
    assert all(entry.state.leader and entry.state.leader.name == leader for entry in changes)


def test_who_does_not_agree_is_told_with_all_opinions(group: Group) -> None:
    leader = group.settle()
    group.partition([leader], others(group, leader))
    group.settle(others(group, leader))
    with pytest.raises(NotSettled, match=r"^after 5 s of virtual time the members do not agree:"):
        group.settle(within=5.0)
    group.heal()
    group.settle()


def test_nobody_cannot_agree() -> None:
    with Group() as group, pytest.raises(BadInput, match="no member is up"):
        group.settle()


# Faults


def test_a_killed_process_is_noticed_at_once_and_a_dead_machine_later() -> None:
    took = []
    for machine in (False, True):
        with Group(seed=5, protocol="bully") as group:
            for name in NAMES:
                group.join(name)
            leader = group.settle(steady=3.0)
            began = group.now
            group.kill(leader, machine=machine)
            group.settle()
            took.append(group.now - began)
    assert took[0] < 0.1 < took[1]


def test_a_killed_member_is_silent_and_its_code_stands_still(group: Group) -> None:
    leader = group.settle()
    member = group.member(leader)
    seen: list[float] = []
    ended: list[str] = []

    async def tick() -> None:
        try:
            while True:
                seen.append(group.now)
                await asyncio.sleep(0.5)
        except (asyncio.CancelledError, LeadershipLost):
            ended.append("told")

    group.spawn(leader, tick())
    group.advance(2.0)
    group.kill(leader)
    sent, ticks = member.metrics().frames_sent, list(seen)
    assert len(ticks) >= 4
    group.advance(10.0)
    assert (member.metrics().frames_sent, seen, ended) == (sent, ticks, [])
    assert member.closed
    group.close()
    assert ended == []  # a dead process runs no handlers, not even now


def test_what_a_dead_process_had_open_is_closed_in_the_end() -> None:
    closed: list[str] = []

    async def hold(what: str, patience: float) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            closed.append(what)
            await asyncio.sleep(patience)  # nothing waits for the dead
            closed.append("later")

    with lone() as group:
        group.spawn("a", hold("first", 1.0))
        group.spawn("a", hold("second", 0.0))
        group.advance(1.0)
        group.kill("a")
        group.advance(10.0)
        assert closed == []
    assert sorted(closed) == ["first", "second"]


def test_who_leaves_is_known_to_have_left(group: Group) -> None:
    leader = group.settle()
    group.leave(leader)
    left = group.now
    group.settle()
    assert group.now - left < 0.1
    for name in group.up:
        assert [peer.name for peer in group.member(name).members()] == group.up


def test_a_paused_leader_is_replaced_and_gives_in_when_it_returns(group: Group) -> None:
    first = group.settle()
    group.pause(first)
    second = group.settle()
    assert second != first
    assert sorted(group.leaders) == sorted([first, second])
    sent = group.member(first).metrics().frames_sent
    group.advance(5.0)
    assert group.member(first).metrics().frames_sent == sent
    group.resume(first)
    third = group.settle()
    assert group.leaders == [third]
    assert group.member(first).metrics().frames_sent > sent


def test_timers_of_a_paused_member_wait_even_if_it_was_called_from_outside(group: Group) -> None:
    leader = group.settle()
    follower = group.member(others(group, leader)[0])
    group.run(follower.elect())
    group.pause(follower.name)
    sent = follower.metrics().frames_sent
    group.advance(5.0)
    assert follower.metrics().frames_sent == sent


def test_both_sides_of_a_partition_elect_and_one_leader_stays(group: Group) -> None:
    leader = group.settle()
    rest = others(group, leader)
    group.partition([leader], rest)
    second = group.settle(rest)
    assert sorted(group.leaders) == sorted([leader, second])
    group.heal()
    last = group.settle(steady=1.0)
    assert group.leaders == [last]


def test_a_cut_is_one_way(group: Group) -> None:
    group.settle()
    before = group.member("b").metrics().frames_received
    group.cut("a", "b")
    group.cut("c", "b")
    group.advance(0.5)
    assert group.member("b").metrics().frames_received == before
    heard = group.member("a").metrics().messages_received
    group.advance(2.0)
    assert group.member("a").metrics().messages_received != heard


def test_a_restart_is_a_new_life_at_the_same_place(group: Group) -> None:
    leader = group.settle()
    old = group.member(leader)
    group.kill(leader)
    group.settle()
    new = group.restart(leader)
    assert new is group.member(leader)
    assert new is not old
    assert new.address == old.address
    group.settle()
    seen = group.member(others(group, leader)[0]).members()
    assert {peer.name: peer.incarnation for peer in seen} == {
        name: 2 if name == leader else 1 for name in NAMES
    }


def test_what_is_on_disk_survives_a_restart(tmp_path: Path) -> None:
    with Group(state=tmp_path) as group:
        group.join("a")
        group.settle()
        for life in (2, 3):
            member = group.restart("a")
            group.settle()
            assert [peer.incarnation for peer in member.members()] == [life]
    assert [path.name for path in tmp_path.glob("*.state")] == ["test.a.state"]


def test_a_newcomer_is_told_of_those_who_are_up() -> None:
    with Group(seed=4) as group:
        for number in range(SEEDS + 2):
            group.join(f"m{number}")
        group.settle()
        for name in group.up[:SEEDS]:
            group.kill(name)
        group.join("new")
        assert group.settle(within=10.0) in group.up


def test_a_restart_kills_who_is_up(group: Group) -> None:
    group.settle()
    old = group.member("b")
    group.restart("b")
    assert old.closed
    assert sorted(group.up) == sorted(NAMES)
    group.settle()


def test_a_bad_network_is_survived() -> None:
    with Group(seed=1, delay=(0.001, 0.02), loss=0.2, duplicate=0.1, reorder=0.1) as group:
        for name in NAMES:
            group.join(name)
        first = group.settle()
        group.weather(loss=0.3)
        assert group.network.conditions.loss == 0.3
        assert group.network.conditions.duplicate == 0.1
        group.kill(first)
        assert group.settle(steady=1.0) != first
        assert min(group.network.tally[what] for what in ("lost", "doubled", "refused")) > 0


def test_minutes_take_no_time(group: Group) -> None:
    leader = group.settle()
    group.advance(300)
    assert group.now > 300
    assert group.leaders == [leader]


# Code of one's own


def test_a_campaign_moves_with_the_leader(group: Group) -> None:
    worked: list[tuple[str, int]] = []

    async def work(member: Member) -> None:
        while True:
            try:
                async with member.campaign() as term:
                    while True:
                        worked.append((member.name, term.number))
                        await asyncio.sleep(0.1)
            except LeadershipLost:
                worked.append((member.name, 0))

    for name in NAMES:
        group.spawn(name, work(group.member(name)))
    first = group.settle()
    group.advance(1.0)
    group.pause(first)
    second = group.settle(steady=1.0)
    group.resume(first)
    group.advance(2.0)
    told = list(dict.fromkeys(worked))
    assert [name for name, _ in told if name in (first, second)][:2] == [first, second]
    assert (first, 0) in worked
    assert worked.index((first, 0)) > max(
        place for place, (name, term) in enumerate(worked) if name == first and term == told[0][1]
    )


def test_run_gives_back_what_a_coroutine_returns_and_raises(group: Group) -> None:
    async def name_of_leader() -> str:
        state = [state async for state in group.member("a").observe() if state.leader][0:1]
        return state[0].leader.name if state and state[0].leader else ""

    group.settle()
    group.spawn("a", _leave_after(group.member("a"), 1.0))
    assert group.run(name_of_leader()) in NAMES
    with pytest.raises(KeyError, match="mine"):
        group.run(fail("mine"))


async def _leave_after(member: Member, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await member.leave()


def test_a_story_can_be_told_inside() -> None:
    async def story(group: Group) -> tuple[str, str]:
        inside = group.inside
        for name in NAMES:
            await inside.join(name)
        first = await inside.settle()
        group.kill(first)
        await asyncio.sleep(1.0)
        second = await inside.settle()
        await inside.restart(first)
        await inside.advance(1.0)
        await inside.leave(second)
        return first, await inside.settle()

    with Group(seed=7) as group:
        first, last = group.run(story(group))
        assert last in group.up
        assert first in group.up


def test_waiting_inside_a_coroutine_is_refused_with_the_way_to_do_it(group: Group) -> None:
    async def wrong() -> None:
        group.settle()

    with pytest.raises(BadInput, match=r"inside a coroutine, await group\.inside\.settle"):
        group.run(wrong())


def test_a_process_may_kill_itself(group: Group) -> None:
    leader = group.settle()

    async def fall() -> None:
        await asyncio.sleep(1.0)
        group.kill(leader)
        await asyncio.sleep(1.0)
        raise AssertionError("a dead process has gone on")

    group.spawn(leader, fall())
    group.advance(5.0)
    assert leader not in group.up
    group.settle()
