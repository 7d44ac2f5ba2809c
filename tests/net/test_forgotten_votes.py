"""All voters of a group lose their state: no two leaders, larger tokens, and a word about it.

On a virtual clock, in many orders; whoever led before is cut off, and no voter.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.testing import Group
from tests.net.test_guarded import TTL, Witness

VOTERS = ("a", "b", "c")
DATE = 1_700_000_000_000
LOOK = 3.0  # seconds after which a voter looks again what there is to say about it


class Election:
    """Three voters with disks, and d, which leads whenever it can and does not vote."""

    def __init__(self, group: Group, place: Path) -> None:
        self.group = group
        self.place = place
        for rank, name in enumerate((*VOTERS, "d"), 1):
            options = {} if name == "d" else {"state": self.disk(name)}
            group.join(name, attributes={"rank": rank}, **options)
        group.settle(steady=TTL, within=60.0)
        if group.leaders != ["d"]:
            leader = group.member(group.leaders[0])
            group.run(group.spawn(group.leaders[0], leader.transfer("d")))
            assert group.settle(steady=TTL) == "d"

    def disk(self, name: str) -> str:
        path = self.place / name
        path.mkdir(exist_ok=True)
        return str(path)

    def wipe(self, name: str) -> None:
        shutil.rmtree(self.place / name)
        self.disk(name)

    def keep_copies(self) -> None:
        for name in VOTERS:
            shutil.copytree(self.place / name, self.place / f"{name}.old")

    def put_back(self, name: str) -> None:
        shutil.rmtree(self.place / name)
        shutil.copytree(self.place / f"{name}.old", self.place / name)


def begin(seed: int, tmp_path: Path, delay: float = 0.001) -> Group:
    guard = "quorum://a,b,c"
    group = Group(
        seed=seed, protocol="bully", guard=guard, ttl=TTL, choice="highest:rank", delay=delay
    )
    return group


@pytest.mark.parametrize("seed", range(6))
def test_never_two_when_all_voters_lost_their_disks(seed: int, tmp_path: Path) -> None:
    stream = Stream(seed)
    with begin(seed, tmp_path, (0.001, 0.01, 0.03)[seed % 3]) as group:
        election = Election(group, tmp_path)
        witness = Witness(group)
        witness.look()
        group.partition(["d"], VOTERS)
        witness.advance(stream.uniform(0.0, 0.6) * TTL)
        order = stream.sample(VOTERS, 3)
        if seed % 2:  # all at once, or one after the other while the others go on
            for name in order:
                group.kill(name)
        for name in order:
            if not seed % 2:
                group.kill(name)
            election.wipe(name)
            group.restart(name, incarnation=DATE)
            witness.advance(stream.uniform(0.0, 0.1))
        second = witness.settle(*VOTERS)
        assert second in VOTERS
        assert min(witness.tokens[1:]) >= DATE
        group.heal()
        witness.settle()
        if not seed % 2:
            return  # some were told by others before those lost theirs
        witness.advance(LOOK)  # a voter may have begun just after it looked
        notes = [note for name in VOTERS for note in group.member(name).notes]
        assert any("no voter remembered an earlier vote" in note for note in notes)
        assert any("it waits for" in note for note in notes)


def test_voters_with_old_copies_of_their_disks_hand_out_no_older_tokens(tmp_path: Path) -> None:
    with begin(1, tmp_path) as group:
        election = Election(group, tmp_path)
        election.keep_copies()
        tokens = []
        for _ in range(3):
            leader = group.member(group.leaders[0])
            tokens.append(leader.state.token or 0)
            heir = next(name for name in VOTERS if name != leader.name)
            group.run(group.spawn(leader.name, leader.transfer(heir)))
            group.settle(steady=0.5)
        for name in (*VOTERS, "d"):  # nobody is left that could know better
            group.kill(name)
        for number, name in enumerate((*VOTERS, "d")):
            if name != "d":
                election.put_back(name)
            group.restart(name, incarnation=DATE + number)
        leader = group.member(group.settle(steady=1.0, within=60.0))
        assert (leader.state.token or 0) > max(DATE, *tokens)


def test_two_of_three_wait_until_the_third_is_emptied_too(tmp_path: Path) -> None:
    with begin(2, tmp_path) as group:
        election = Election(group, tmp_path)
        witness = Witness(group)
        for name in ("a", "b"):
            group.kill(name)
            election.wipe(name)
        for number, name in enumerate(("a", "b")):
            group.restart(name, incarnation=DATE + number)
        witness.advance(5 * TTL)
        assert group.leaders == []
        notes = group.member("a").notes
        assert any("put disks back, or empty the state of all members" in note for note in notes)
        group.kill("c")
        election.wipe("c")
        group.restart("c", incarnation=DATE + 2)
        witness.settle(within=10 * TTL)


def test_a_longest_lease_is_kept_to(tmp_path: Path) -> None:
    with Group(seed=1, guard="quorum://a,b,c?max_ttl=4s&durable=no", ttl=TTL) as group:
        with pytest.raises(BadInput, match="ttl must not exceed max_ttl=4s of quorum://, and is 5"):
            group.join("x", ttl=5.0)
        for name in VOTERS:
            group.join(name)
        began = group.now
        group.settle(within=20.0)
        assert group.now - began >= 0.9
        assert group.now >= 4.0
