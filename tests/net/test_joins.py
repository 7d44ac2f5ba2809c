"""Joining: alone, by seeds that come later, under a name or at a port that is taken."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import hustings
from hustings.core.names import member_id
from hustings.joining import default_name
from hustings.net.logs import notes_of
from tests.net.kit.crowd import Crowd, dropped
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.ports import free_address, free_port


def test_a_member_without_seeds_is_alone_and_leads_at_once() -> None:
    async def story() -> None:
        async with hustings.join("billing", name="web-1", protocol="bully") as member:
            await until(lambda: member.is_leader, "it leads")
            peers = member.members()
            assert [(peer.name, peer.me, peer.leader) for peer in peers] == [("web-1", True, True)]
            assert peers[0].address == member.address
            assert peers[0].id == member.id == member_id("web-1")
        assert member.closed

    run(story())


def test_a_seed_that_comes_up_later_is_found() -> None:
    async def story() -> None:
        port = free_port()
        async with Crowd() as crowd:
            early = await crowd.add("early", seeds=[f"127.0.0.1:{port}"])
            await throughout(0.5, lambda: not early.is_leader, "it leads alone")
            await crowd.add("late", seeds=[], bind=f"127.0.0.1:{port}")
            await crowd.known(2)
            await crowd.agreed()

    run(story())


def test_members_that_name_each_other_meet_whoever_is_first() -> None:
    async def story() -> None:
        seeds = [free_address() for _ in range(3)]
        async with Crowd(seeds=seeds) as crowd:
            await asyncio.gather(*(crowd.add(f"m{i}", bind=seeds[i]) for i in range(3)))
            await crowd.known(3)
            await crowd.agreed()

    run(story())


def test_two_groups_at_one_seed_do_not_meet() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            billing = await crowd.add("a", group="billing")
            shipping = await crowd.add("b", group="shipping", seeds=[billing.address], alone=True)
            await until(lambda: dropped(billing, "other-group"), "the stranger is counted")
            await until(lambda: billing.is_leader and shipping.is_leader, "each leads its own")
            assert len(billing.members()) == len(shipping.members()) == 1

    run(story())


def test_a_seed_by_name_is_resolved() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            first = await crowd.add("a")
            port = first.address.rpartition(":")[2]
            await crowd.add("b", seeds=[f"localhost:{port}"])
            await crowd.known(2)

    run(story())


def test_a_seed_that_cannot_be_resolved_is_told_once_and_tried_again() -> None:
    async def story() -> None:
        said: list[str] = []
        with notes_of("crowd", said.append):
            async with Crowd() as crowd:
                member = await crowd.add("a", seeds=["nowhere.invalid:7400"])
                await until(lambda: len(said) == 2, "it says why it waits")
                assert "nowhere.invalid:7400 cannot be resolved: trying again" in said[0]
                assert "nobody leads here until another member answers (nowhere.invalid" in said[1]
                await throughout(
                    1.5, lambda: len(said) == 2 and not member.is_leader, "each is said once"
                )

    run(story())


def test_a_member_that_restarts_under_its_name_replaces_its_former_life() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            leader = await crowd.agreed()
            before = crowd.named("b" if leader.name != "b" else "c")
            await before.kill()
            after = await crowd.add(before.name)
            await until(
                lambda: all(
                    {peer.name: peer.address for peer in each.members()}.get(after.name)
                    == after.address
                    for each in crowd.open()
                ),
                "everybody knows the new life's address",
            )
            await crowd.known(3)
            assert await crowd.agreed() is leader

    run(story())


def test_a_leader_that_restarts_at_once_under_its_name_and_port_leaves_one_leader() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            for name in ("a", "b", "c"):
                await crowd.add(name, bind=free_address())
            await crowd.known(3)
            leader = await crowd.agreed()
            await leader.kill()
            seeds = [each.address for each in crowd.open()]
            await crowd.add(leader.name, bind=leader.address, seeds=seeds)
            await crowd.known(3)
            await crowd.agreed()

    run(story())


def test_a_name_that_a_living_member_has_is_refused_and_that_one_stays() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            leader = await crowd.agreed()
            for seeds in (
                [crowd.named("a").address],
                [crowd.named("b").address],
                [each.address for each in crowd.open()],
            ):
                with pytest.raises(hustings.BadInput, match=r"'b' is the name of a member of"):
                    await crowd.add("b", seeds=seeds)
            await throughout(0.5, lambda: len(crowd.open()) == 3, "nobody is driven out")
            await crowd.known(3)
            assert await crowd.agreed() is leader

    run(story())


def test_two_members_of_one_group_cannot_have_one_port_and_two_groups_can() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a", group="billing")
            port = member.node.transport
            other = await crowd.add("b", group="shipping", transport=port, seeds=[])
            assert other.address == member.address
            with pytest.raises(hustings.BadInput, match="cannot share a port"):
                await crowd.add("c", group="billing", transport=port, seeds=[])
            await until(lambda: member.is_leader and other.is_leader, "both groups work on")

    run(story())


def test_groups_that_share_ports_each_have_their_leader() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as billing, Crowd(protocol="ring") as shipping:
            first = await billing.add_all(["a", "b", "c"], group="billing")
            for member in first:
                await shipping.add(
                    member.name,
                    group="shipping",
                    transport=member.node.transport,
                    seeds=[first[0].address],
                )
            await shipping.known(3)
            leader = await shipping.agreed()
            await billing.agreed()
            assert [dropped(each, "other-group") for each in first] == [0, 0, 0]
            await leader.leave()
            await shipping.agreed(but=leader.name)
            await billing.agreed()

    run(story())


def test_two_lives_that_begin_at_once_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from the date, in milliseconds, and some chance beside it."""
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)

    async def story() -> None:
        async with Crowd() as crowd:
            lives = [
                each.incarnation
                for member in await crowd.add_all(["a", "b", "c", "d"])
                for each in member.members()
                if each.me
            ]
            assert len(set(lives)) > 1
            assert all(life // 1024 == 1_800_000_000_000 for life in lives)

    run(story())


@pytest.mark.parametrize("lives", [(5, 6), (6, 5)], ids=str)
def test_of_two_that_join_under_one_name_at_once_one_remains(lives: tuple[int, int]) -> None:

    async def story() -> None:
        async with Crowd() as crowd:
            await crowd.add("a")
            seeds = [crowd.members[0].address]
            ends = await asyncio.gather(
                *(crowd.add("x", seeds=seeds, incarnation=life) for life in lives),
                return_exceptions=True,
            )
            opened = [end for end in ends if isinstance(end, hustings.Member)]
            await until(lambda: len([each for each in opened if not each.closed]) == 1, "one stays")
            refusals = [end for end in ends if isinstance(end, BaseException)]
            refusals += [each.error for each in opened if each.error is not None]
            assert [type(error) for error in refusals] == [hustings.BadInput]
            await crowd.known(2)
            await crowd.agreed()

    run(story())


def test_attributes_that_cannot_be_told_are_refused_at_once() -> None:
    """Gossip carries so many and no more, and some of them are the project's own."""

    async def story() -> None:
        many = {f"x{number}": 1.0 for number in range(20)}
        with pytest.raises(hustings.BadInput, match="attributes"):
            hustings.join("billing", attributes=many)
        async with Crowd(protocol="bully") as crowd:
            a, b = await crowd.add_all(["a", "b"])
            with pytest.raises(hustings.BadInput, match="attributes"):
                await b.update(many)
            most = next(
                count
                for count in range(20, 0, -1)
                if accepted({f"x{number}": 1.0 for number in range(count)})
            )
            leader = await crowd.agreed()
            other = a if leader is b else b
            await leader.update({f"x{number}": 2.0 for number in range(most)})
            await until(
                lambda: [len(peer.attributes) for peer in other.members() if peer.leader] == [most],
                "a leader with as many as it may have is told of",
            )

    run(story())


def accepted(attributes: dict[str, float]) -> bool:
    try:
        hustings.join("billing", attributes=attributes)
    except hustings.BadInput:
        return False
    return True


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM], ids=["udp", "tcp"])
def test_a_port_in_use_is_one_sentence(kind: socket.SocketKind) -> None:
    async def story() -> None:
        with socket.socket(socket.AF_INET, kind) as taken:
            taken.bind(("127.0.0.1", 0))
            if kind is socket.SOCK_STREAM:
                taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(hustings.BadInput, match=f"127.0.0.1:{port} is in use by another"):
                await hustings.join("billing", bind=f"127.0.0.1:{port}").open()

    run(story())


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    async def story() -> None:
        with pytest.raises(hustings.BadInput, match="is not an address of this machine"):
            await hustings.join("billing", bind="192.0.2.1:0", insecure=True).open()

    run(story())


def test_an_address_of_one_link_cannot_be_bound() -> None:
    async def story() -> None:
        with pytest.raises(hustings.BadInput, match="counts on one link only"):
            await hustings.join("billing", bind="[fe80::1%lo]:0", insecure=True).open()

    run(story())


def test_without_a_key_only_this_machine_is_listened_to_unless_told_otherwise() -> None:
    async def story() -> None:
        with pytest.raises(hustings.BadInput, match="key"):
            await hustings.join("billing", bind="0.0.0.0:0").open()
        joining = hustings.join(
            "billing", bind="0.0.0.0:0", advertise="127.0.0.1:0", insecure=True, seeds=[]
        )
        async with joining as member:
            assert member.address.startswith("127.0.0.1:")
            assert any("insecure" in note or "key" in note for note in member.notes)

    run(story())


def test_a_state_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        notes: list[str] = []
        folder = tmp_path / "a.d"
        with notes_of("billing", notes.append):
            async with hustings.join("billing", name="a", state=folder):
                assert folder.stat().st_mode & 0o777 == 0o700
                assert list(folder.glob("*.state"))
        made = f"state directory {folder} was not there and is made"
        assert notes.count(made) == 1
        with notes_of("billing", notes.append):
            async with hustings.join("billing", name="a", state=folder):
                pass
        assert notes.count(made) == 1

    run(scenario())


def test_a_state_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(hustings.BadInput, match="run mkdir -p "):
            await hustings.join("billing", name="a", state=tmp_path / "none" / "a").open()
        with pytest.raises(hustings.BadInput, match="state needs a name"):
            hustings.join("billing", state=tmp_path)
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").touch()
        with pytest.raises(hustings.BadInput, match="is no directory"):
            await hustings.join("billing", name="a", state=tmp_path / "file").open()

    run(story())


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"name": "two words"}, "name 'two words' does not do"),
        ({"name": ""}, "does not do"),
        ({"name": "x" * 65}, "does not do"),
        ({"protocol": "bulli"}, "protocol"),
        ({"settings": {"T_A": "soon"}}, "T_A"),
        ({"settings": {"T_X": 1}}, "T_X"),
        ({"choice": "highest:cpu"}, "cpu"),
        ({"attributes": {"cpu": float("nan")}}, "must be finite"),
        ({"attributes": {"cpu": "fast"}}, "must be a number"),
        ({"attributes": {"~standing": 1}}, "begin with ~ are taken"),
        ({"seeds": ["10.0.0.1:port"]}, "seed"),
        ({"seeds": ""}, "seeds must be a list of addresses"),
        ({"seeds": "10.0.0.1:7400"}, "seeds must be a list of addresses"),
        ({"seeds": None}, "seeds must be a list of addresses"),
        ({"seeds": ["255.255.255.255:7400"]}, "stands for every address"),
        ({"name": "a", "state": ""}, "state names no directory"),
        ({"bind": "127.0.0.1:99999"}, "bind address"),
        ({"multicast": "shout"}, "multicast 'shout' is not understood"),
        ({"multicast": "ip:10.0.0.1:7400"}, "not a multicast address"),
        ({"multicast": "ip:[fe80::1]:7400"}, "not a multicast address"),
        ({"multicast": "ip:[ff02::114%lo]:0"}, "port"),
        ({"multicast": "ip:239.1.2.3"}, "port"),
        ({"detector": "psychic"}, "detector"),
        ({"detector_settings": {"phi": 3}}, "has no detector"),
        ({"limits": {"rate": 0}}, "limit rate"),
        ({"limits": {"rated": 1}}, "rated"),
        ({"preempt_after": "-1s"}, "preempt_after"),
        ({"stall_bound": "-1s"}, "stall_bound"),
        ({"stall_bound": "soon"}, "stall_bound 'soon' is not a duration"),
        ({"stall_bound": "99ms"}, "stall_bound must be"),
        (
            {"stall_bound": "1s", "leadership_settings": {"stall_bound": 2}},
            "stall_bound is given twice",
        ),
        ({"key": "no such file"}, "key file"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_bad_input_is_refused_before_anything_starts(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(hustings.BadInput) as refusal:
        hustings.join("billing", **wrong)
    said = str(refusal.value)
    assert sentence in said
    assert "\n" not in said


def test_a_group_needs_a_name_that_can_be_told() -> None:
    with pytest.raises(hustings.BadInput, match="group"):
        hustings.join(" billing ")


def test_default_names_are_this_processs_own_and_differ() -> None:
    assert default_name() != default_name()
    hustings.join("billing", name=default_name())


def test_opening_that_is_cancelled_closes_everything() -> None:
    async def story() -> None:
        port = free_port()
        opening = asyncio.ensure_future(
            hustings.join(
                "billing", bind=f"127.0.0.1:{port}", seeds=[f"127.0.0.1:{free_port()}"]
            ).open()
        )
        await asyncio.sleep(0.05)  # it waits for its seed, at least a second
        assert not opening.done()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with hustings.join("billing", bind=f"127.0.0.1:{port}"):
            pass  # the port is free again

    run(story())


def test_leaving_twice_is_fine_and_a_closed_member_says_so() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            await until(lambda: member.is_leader, "it leads")
            await member.leave()
            await member.leave()
            assert member.closed
            assert not member.is_leader
            assert (member.leader, member.state.reason) == (None, "left")
            for act in (member.elect(), member.resign(), member.stand(), member.update({})):
                with pytest.raises(hustings.NotLeader, match="has left group"):
                    await act

    run(story())
