"""What a voter tells whoever runs it: that it does not vote, why, and that others vote now."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hustings.guard.quorum import GroupVoters, VoterOptions
from hustings.guard.urls import parse_url
from hustings.layers.gossip.layer import GossipContext
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.quorum.config import Electorate
from hustings.quorum.layer import Move
from tests.net.kit.virtual import now, virtually
from tests.unit.layers.puppets import Puppet

IDS = {name: number for number, name in enumerate("abcdef", 1)}
NAMES = {number: name for name, number in IDS.items()}
LEASE = LeaseConfig(ttl=5.0, delta=0.05)


class Watched:
    """A voter, and what it says when."""

    def __init__(self, me: int = 1) -> None:
        url = parse_url("quorum://a,b,c")
        self.layer = VoterOptions(url, IDS.__getitem__).around(LeaseLayer(Puppet(), LEASE))
        self.host = SimpleNamespace(
            stack=SimpleNamespace(inner=self.layer),
            closed=False,
            runner=SimpleNamespace(me=SimpleNamespace(id=me), run=self.run),
            address_book=SimpleNamespace(place=self.place),
        )
        self.notes: list[tuple[float, str]] = []
        host: Any = self.host
        self.voters = GroupVoters(host, IDS.__getitem__)
        self.voters.watch(lambda note: self.notes.append((now(), note)))

    def place(self, member: int) -> object:
        return SimpleNamespace(name=NAMES[member]) if member in NAMES else None

    def run(self, act: Any) -> object:
        return act(SimpleNamespace(me=self.host.runner.me))

    def said(self) -> list[tuple[float, str]]:
        """What is new since this was asked last."""
        notes, self.notes[:] = list(self.notes), []
        return notes


def test_a_voter_that_does_not_vote_says_so_when_it_lasts_and_once() -> None:
    async def story() -> None:
        watched = Watched()
        await asyncio.sleep(0.9)
        assert watched.said() == []
        await asyncio.sleep(0.2)
        ((at, note),) = watched.said()
        assert at == 1.0
        assert note == "this voter does not vote"
        await asyncio.sleep(60.0)
        assert watched.said() == []

    virtually(story())


def test_a_voter_that_votes_in_time_says_nothing() -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        await asyncio.sleep(60.0)
        assert watched.said() == []

    virtually(story())


def test_who_is_no_voter_says_nothing() -> None:
    async def story() -> None:
        watched = Watched(me=5)
        await asyncio.sleep(60.0)
        assert watched.said() == []

    virtually(story())


def test_another_reason_is_told_with_the_time_left_and_so_is_the_end_of_it() -> None:
    async def story() -> None:
        watched = Watched()
        await asyncio.sleep(1.5)
        watched.said()
        watched.layer.recovery.ready = 44.0
        await asyncio.sleep(10.0)  # looks at 4, 7 and 10
        ((at, note),) = watched.said()
        assert at == 4.0
        assert note.startswith("this voter does not vote")
        assert note.endswith("it waits for 40.0 s more, one lease")
        watched.layer.acceptor.votes = True
        await asyncio.sleep(10.0)
        assert watched.said() == [(13.0, "this voter votes now")]
        watched.layer.acceptor.votes = False
        await asyncio.sleep(3.0)
        ((at, note),) = watched.said()
        assert (at, note[:24]) == (22.0, "this voter does not vote")

    virtually(story())


def test_a_beginning_without_memory_is_told_once() -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        await asyncio.sleep(2.0)
        watched.layer.recovery.founded = True
        await asyncio.sleep(60.0)
        ((at, note),) = watched.said()
        assert at == 4.0
        assert note.startswith("no voter remembered an earlier vote")

    virtually(story())


def test_other_voters_are_told_by_name_with_those_who_say_so() -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        after = Electorate(3, (1, 2, 0xABC))
        watched.layer.moves.append(Move(after, watched.layer.electorate, (1, 3)))
        await asyncio.sleep(60.0)
        assert watched.said() == [
            (
                1.0,
                "the voters are a, b, abc from now on (change 3): so say a, c of the voters "
                "before, a, b, c",
            )
        ]

    virtually(story())


def test_a_change_that_nobody_confirms_is_doubted_once_for_each_change() -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        succession = watched.layer.configurations
        succession.nonce, succession.asked = 7, 3.0
        await asyncio.sleep(3.5)
        assert watched.said() == []
        await asyncio.sleep(1.0)  # the look at 4 is not yet a second after the question
        assert watched.said() == []
        await asyncio.sleep(60.0)
        ((at, note),) = watched.said()
        assert at == 7.0
        assert note.startswith("a member says that the voters have changed")
        watched.layer.electorate = Electorate(1, (1, 2, 4))
        await asyncio.sleep(60.0)
        assert len(watched.said()) == 1, "of another change it is not known yet"

    virtually(story())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_first_change_is_doubted_whatever_its_number(number: int) -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        watched.layer.electorate = Electorate(number, (1, 2, 3))
        watched.layer.configurations.nonce = 7
        await asyncio.sleep(10.0)
        assert len(watched.said()) == 1

    virtually(story())


def test_who_asks_nobody_doubts_nothing() -> None:
    async def story() -> None:
        watched = Watched()
        watched.layer.acceptor.votes = True
        watched.layer.configurations.asked = 0.0
        await asyncio.sleep(60.0)
        assert watched.said() == []

    virtually(story())


def test_a_member_that_has_left_says_nothing_and_looks_no_more() -> None:
    async def story() -> None:
        watched = Watched()
        await asyncio.sleep(0.5)
        watched.host.closed = True
        await asyncio.sleep(10.0)
        watched.host.closed = False
        await asyncio.sleep(60.0)
        assert watched.said() == []

    virtually(story())


def test_a_voter_is_replaced_by_ids_and_within_the_members_context() -> None:
    asked: list[tuple[int, int, int]] = []

    async def story() -> None:
        watched = Watched()

        def replace(ctx: GossipContext, old: int, new: int) -> bool:
            asked.append((ctx.me.id, old, new))
            return False

        with_quorum: Any = watched.layer
        with_quorum.replace = replace
        assert watched.voters.replace("b", "d") is False
        assert asked == [(1, 2, 4)]

    virtually(story())
