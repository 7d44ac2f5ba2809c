"""Durable state of members: terms and lives across restarts, damaged files, full disks."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hustings
from tests.net.kit.crowd import Crowd, one_leader
from tests.net.kit.loops import run, until


def state_file(folder: Path, name: str) -> Path:
    return folder / f"crowd.{name}.state"


def test_terms_and_lives_survive_a_restart_of_the_whole_group(tmp_path: Path) -> None:
    async def story() -> None:
        names = ["a", "b", "c"]
        async with Crowd(protocol="bully", state=tmp_path) as crowd:
            await crowd.add_all(names)
            await crowd.known(3)
            leader = await crowd.agreed()
            for _ in range(3):
                heir = next(each for each in crowd.open() if each is not leader)
                await leader.transfer(heir.name)
                leader = await crowd.agreed(but=leader.name)
            term = leader.term
            lives = {peer.name: peer.incarnation for peer in leader.members()}
        assert all(state_file(tmp_path, name).exists() for name in names)
        async with Crowd(protocol="bully", state=tmp_path) as crowd:
            await crowd.add_all(names)
            await crowd.known(3)
            again = await crowd.agreed()
            assert again.term > term
            assert {peer.name: peer.incarnation for peer in again.members()} == {
                name: life + 1 for name, life in lives.items()
            }

    run(story())


def test_a_member_that_comes_back_at_another_address_is_known_by_its_next_life(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with Crowd(state=tmp_path) as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            leader = await crowd.agreed()
            await leader.kill()
            await crowd.agreed(but=leader.name)
            back = await crowd.add(leader.name)
            await crowd.known(3)
            second = await crowd.agreed()
            places = {peer.name: peer.address for peer in second.members()}
            assert places[back.name] == back.address != leader.address
            assert second.term > leader.term or second.name != leader.name

    run(story())


def test_one_file_serves_one_member_at_a_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with Crowd(state=tmp_path) as crowd:
            member = await crowd.add("a")
            with pytest.raises(hustings.BadInput, match=f"in use by process {os.getpid()}"):
                await crowd.add("a", seeds=[])
            assert not member.closed
            await member.leave()
            await crowd.add("a", seeds=[])

    run(story())


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: b"", lambda data: data[:-4] + b"junk", lambda data: b"x"],
    ids=["cut short", "empty", "changed", "something else"],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, damage: object) -> None:
    assert callable(damage)

    async def story() -> None:
        async with Crowd(state=tmp_path) as crowd:
            member = await crowd.add("a")
            await until(lambda: member.is_leader, "it leads")
            await member.leave()
            path = state_file(tmp_path, "a")
            broken = damage(path.read_bytes())
            path.write_bytes(broken)
            with pytest.raises(hustings.BadInput, match=r"is damaged .* delete it"):
                await crowd.add("a")
            assert path.read_bytes() == broken

    run(story())


def test_a_group_whose_name_is_no_file_name_has_a_file(tmp_path: Path) -> None:
    async def story() -> None:
        async with hustings.join("../billing/eu", name="a", state=tmp_path) as member:
            await until(lambda: member.is_leader, "it leads")
        assert [each.suffix for each in tmp_path.iterdir()].count(".state") == 1
        assert not (tmp_path.parent / "billing").exists()

    run(story())


# A disk that is full


@contextmanager
def no_room() -> Iterator[None]:
    """No file of this process may grow: writing one fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_room_nothing_can_be_written_here(tmp_path: Path) -> None:
    """The fault that the tests below rely on is there."""
    with no_room(), pytest.raises(OSError, match="File too large") as refusal:
        (tmp_path / "file").write_bytes(b"data")
    assert refusal.value.errno == errno.EFBIG


def test_a_member_that_cannot_store_its_state_does_not_start(tmp_path: Path) -> None:
    async def story() -> None:
        with no_room(), pytest.raises(hustings.BadInput, match=r"cannot (write|lock) state file"):
            await hustings.join("crowd", name="a", state=tmp_path).open()
        async with hustings.join("crowd", name="a", state=tmp_path) as member:
            await until(lambda: member.is_leader, "with room it starts")

    run(story())


def test_a_leader_without_room_falls_silent_and_recovers(tmp_path: Path) -> None:
    """What it could not store it must not say; the others go on without it."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add("a", state=tmp_path)
            await crowd.add_all(["b", "c"])
            await crowd.known(3)
            await crowd.agreed()
            a = crowd.named("a")
            others = [each for each in crowd.open() if each is not a]
            leader = one_leader(crowd.open())
            assert leader is not None
            if leader is not a:
                await leader.transfer("a")
                assert await crowd.agreed() is a
            stored = state_file(tmp_path, "a").read_bytes()
            with no_room():
                await a.elect()
                await until(lambda: a.state.reason == "its state cannot be written", "it says so")
                assert not a.is_leader
                assert any("is silent until it can be" in note for note in a.notes)
                sent = a.metrics().frames_sent
                await crowd.agreed(but="a", among=others, within=20)
                assert a.metrics().frames_sent == sent, "it says nothing to anybody"
                await until(lambda: a.metrics().drops["inbox"] > 0, "what it missed is counted")
                assert state_file(tmp_path, "a").read_bytes() == stored
            await until(lambda: "the state can be written again" in a.notes, "there is room again")
            await crowd.known(3, within=20)
            await crowd.settled()

    run(story())


def test_campaigns_end_when_the_state_cannot_be_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", state=tmp_path) as crowd:
            a, _ = await crowd.add_all(["a", "b"])
            await crowd.known(2)
            leader = await crowd.agreed()

            async def work() -> None:
                async with leader.campaign():
                    with no_room():
                        await leader.elect()
                        await asyncio.Event().wait()

            with pytest.raises(hustings.LeadershipLost):
                await work()
            assert a.error is None

    run(story())
