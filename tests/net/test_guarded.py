"""Members with a guard, on a virtual clock: who leads is decided by voters, and never two at once.

The guard is the group's own quorum; what a member does is the same with an engine (tests/guard).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hustings
from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.net.campaign import Term
from hustings.net.member_state import LeadershipLost, Peer
from hustings.protocols.registry import BASELINES, CATALOGUE, CONSENSUS, PRINTED, classes
from hustings.testing import Group

TTL = 2.0
NAMES = ("a", "b", "c", "d", "e")
JOINED = [
    kind.about.name
    for kind in classes(CATALOGUE)
    if kind not in (*classes(PRINTED), *classes(BASELINES), *classes(CONSENSUS))
]


def guarded(seed: int = 1, protocol: str = "bully", voters: str = "a,b,c") -> Group:
    guard = f"quorum://{voters}?durable=no"
    return Group(seed=seed, protocol=protocol, guard=guard, ttl=TTL)


@pytest.fixture
def group() -> Iterator[Group]:
    with guarded() as group:
        for name in NAMES:
            group.join(name)
        group.settle(steady=1.0)
        yield group


def others(group: Group, *but: str) -> list[str]:
    return [name for name in NAMES if name not in but]


class Witness:
    """Looks at the members every so often, also at those that stand still."""

    STEP = 0.02

    def __init__(self, group: Group) -> None:
        self.group = group
        self.tokens: list[int] = []

    def look(self) -> None:
        leaders = self.group.leaders
        assert len(leaders) <= 1, f"{leaders} lead at {self.group.now:g}"
        for name in leaders:
            token = self.group.member(name).state.token
            assert token is not None
            if not self.tokens or token != self.tokens[-1]:
                assert token > max(self.tokens, default=0)
                self.tokens.append(token)

    def advance(self, seconds: float) -> None:
        end = self.group.now + seconds
        while self.group.now < end:
            self.look()
            self.group.advance(self.STEP)
        self.look()

    def settle(self, *names: str, within: float = 60.0) -> str:
        """Until these, or all, have agreed for a while."""
        end = self.group.now + within
        while self.group.now < end:
            self.advance(0.5)
            asked = names or tuple(self.group.up)
            said = {leader and leader.name for leader in map(self._leader, asked)}
            if len(said) == 1 and None not in said and self.group.leaders == list(said):
                return self.group.leaders[0]
        raise AssertionError(f"no agreement: {[self._leader(each) for each in asked]}")

    def _leader(self, name: str) -> Peer | None:
        return self.group.member(name).leader


def test_a_leader_has_a_token_and_everybody_knows_it(group: Group) -> None:
    leader = group.settle()
    member = group.member(leader)
    assert member.guarantee is Guarantee.LEASED
    tokens = {group.member(name).state.token for name in NAMES}
    assert len(tokens) == 1
    assert tokens == {member.term}
    assert member.until is not None
    assert 0 < member.until - group.now <= TTL
    assert member.metrics().stale_bound == member.stale_bound < TTL
    assert {group.member(name).metrics().token for name in NAMES} == tokens
    assert all(group.member(name).metrics().guard_answers for name in NAMES)


@pytest.mark.parametrize("protocol", JOINED)
def test_every_election_nominates_and_the_guard_confirms(protocol: str) -> None:
    with guarded(protocol=protocol) as group:
        for name in NAMES:
            group.join(name)
        first = group.settle(steady=1.0)
        token = group.member(first).state.token
        witness = Witness(group)
        witness.look()
        group.kill(first)
        second = witness.settle()
        assert second != first
        after = group.member(second).state.token
        assert token is not None
        assert after is not None
        assert after > token


def test_a_leader_cut_off_from_the_voters_ends_before_another_is_confirmed(group: Group) -> None:
    first, witness = group.settle(), Witness(group)
    group.partition([first], others(group, first))
    second = witness.settle(*others(group, first))
    assert not group.member(first).is_leader
    group.heal()
    assert witness.settle() == second, "who leads goes on leading"


def test_a_side_without_a_majority_of_voters_has_no_leader(group: Group) -> None:
    witness = Witness(group)
    group.partition(["a", "d", "e"], ["b", "c"])
    leader = witness.settle("b", "c")
    witness.advance(3 * TTL)
    assert group.leaders == [leader]
    assert leader in ("b", "c")


def test_two_of_three_voters_gone_and_nobody_leads_until_one_is_back(group: Group) -> None:
    group.kill("a")
    group.kill("b")
    group.advance(3 * TTL)
    assert group.leaders == []
    found = [group.member(name).metrics() for name in group.up]
    silence = [each.guard_silence for each in found if not each.guard_answers]
    assert silence, "whoever is to lead sees that the guard does not answer"
    assert max(each or 0.0 for each in silence) > TTL
    group.restart("a")
    leader = group.settle(steady=0.5)
    assert group.member(leader).metrics().guard_answers


def test_a_pause_beyond_the_lease_and_the_clock_is_looked_at_first(group: Group) -> None:
    first, witness = group.settle(), Witness(group)
    group.pause(first)
    second = witness.settle(*others(group, first))
    assert not group.member(first).is_leader, "it has not run yet, and yet it does not lead"
    group.resume(first)
    assert witness.settle() == second


def test_a_campaign_begins_with_a_token_and_ends_before_the_lease_does(group: Group) -> None:
    first = group.settle()
    member = group.member(first)
    ends: list[tuple[float, float]] = []

    async def work() -> None:
        async with member.campaign() as term:
            assert term.token == member.state.token
            term.check()
            until = math.inf
            try:
                while True:
                    until = group.now + term.remaining
                    await asyncio.sleep(0.01)
            finally:
                ends.append((group.now, until))

    task = group.spawn(first, work())
    group.advance(1.0)
    group.partition([first], others(group, first))
    group.settle(others(group, first))
    with pytest.raises(LeadershipLost):
        group.run(task)
    ((ended, until),) = ends
    assert ended <= until + 0.01


def test_what_is_held_is_given_back_only_when_campaigns_have_ended(group: Group) -> None:
    first = group.settle()
    terms: list[Term] = []
    ended: list[float] = []

    async def work() -> None:
        async with group.member(first).campaign() as term:
            terms.append(term)
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(0.3)
                ended.append(group.now)

    task = group.spawn(first, work())
    group.advance(0.5)
    heir = others(group, first)[0]
    group.run(group.member(first).transfer(heir))
    assert group.settle() == heir
    leading = [each.time for each in group.log if each.member == heir and each.state.leading]
    with pytest.raises(LeadershipLost):
        group.run(task)
    assert ended[0] <= leading[0]
    assert terms[0].remaining == 0


def test_transfer_and_resignation_hand_the_token_on(group: Group) -> None:
    first = group.settle()
    token = group.member(first).state.token
    heir = others(group, first)[0]
    group.run(group.member(first).transfer(heir))
    assert group.settle() == heir
    group.run(group.member(heir).resign())
    last = group.settle(steady=0.5)
    assert last != heir
    after = group.member(last).state.token
    assert token is not None
    assert after is not None
    assert after >= token + 2


def test_an_observer_follows_what_was_confirmed(group: Group) -> None:
    group.join("watcher", observer=True)
    leader = group.settle(steady=1.0)
    watcher = group.member("watcher")
    assert watcher.leader is not None
    assert (watcher.leader.name, watcher.state.token) == (leader, group.member(leader).state.token)


def test_a_voter_that_is_gone_for_good_is_replaced(tmp_path: Path) -> None:
    with Group(seed=3, protocol="bully", guard="quorum://a,b,c", ttl=TTL) as group:
        for name in NAMES:
            (tmp_path / name).mkdir()
            group.join(name, state=tmp_path / name)
        group.settle(steady=1.0)
        witness = Witness(group)
        group.kill("a")
        witness.settle()
        asker = group.member("d")
        with pytest.raises(BadInput, match="does not vote"):
            group.run(asker.replace_voter("d", "e"))
        with pytest.raises(BadInput, match="votes already"):
            group.run(asker.replace_voter("a", "b"))
        group.run(asker.replace_voter("a", "d"))
        witness.settle()
        group.kill("b")  # with a instead of d nobody could be confirmed any more
        leader = witness.settle()
        assert leader in ("c", "d", "e")
        group.kill("c")
        group.advance(3 * TTL)
        assert group.leaders == []


def test_who_says_that_voters_came_later_founds_no_electorate(tmp_path: Path) -> None:
    """x, y and z remember nothing, and say that they follow a, b and c: those vote still."""
    with Group(seed=3, protocol="bully", ttl=TTL) as group:
        for name in "abcxyz":
            (tmp_path / name).mkdir()
        for name in "abc":
            group.join(name, guard="quorum://a,b,c", state=tmp_path / name)
        group.settle(steady=1.0)
        witness = Witness(group)
        for name in "xyz":
            guard = "quorum://x,y,z?initial=a,b,c"
            group.join(name, guard=guard, state=tmp_path / name, protocol="bully")
        witness.advance(3 * TTL)
        for name in "xyz":
            notes = [note for note in group.member(name).notes if "began with others" in note]
            assert len(notes) == 1, group.member(name).notes
        group.partition("abc", "xyz")
        assert witness.settle(*"abc") in "abc"
        witness.advance(2 * TTL)
        assert {*group.leaders} <= {*"abc"}


def test_voters_that_were_replaced_are_found_by_their_names(tmp_path: Path) -> None:
    """Also with the first ones gone; who was a voter before goes by what it remembers."""
    with Group(seed=3, protocol="bully", guard="quorum://a,b,c", ttl=TTL) as group:
        for name in NAMES:
            (tmp_path / name).mkdir()
            group.join(name, state=tmp_path / name)
        group.settle(steady=1.0)
        witness = Witness(group)
        group.kill("a")
        witness.settle()
        group.run(group.member("e").replace_voter("a", "d"))
        witness.settle()
        guard = "quorum://b,c,d?initial=a,b,c"
        (tmp_path / "new").mkdir()
        group.join("new", guard=guard, state=tmp_path / "new")
        for name in "bcd":
            group.kill(name)
            witness.settle()
            group.restart(name, guard=guard, state=tmp_path / name)
            witness.settle()
        witness.advance(2 * TTL)
        for name in "bcd":
            assert "votes promised" in group.member(name).node.stack.state()


def test_only_voters_of_the_group_itself_can_be_replaced() -> None:
    with Group(seed=3, protocol="bully") as group:
        group.join("a")
        with pytest.raises(BadInput, match="only the voters of quorum"):
            group.run(group.member("a").replace_voter("a", "b"))


@pytest.mark.parametrize("seed", range(20))
def test_never_two_in_turmoil(seed: int) -> None:
    """Cuts, pauses, kills and restarts as the seed has them; afterwards there is one leader."""
    with guarded(seed, ("bully", "le-s", "ring", "probabilistic")[seed % 4]) as group:
        for name in NAMES:
            group.join(name)
        group.settle()
        witness = Witness(group)
        for step in range(6):
            name = NAMES[(seed * 7 + step * 3) % len(NAMES)]
            kind = (seed + step) % 4
            if kind == 0:
                group.partition([name], others(group, name))
            elif kind == 1:
                group.pause(name)
            elif kind == 2:
                group.kill(name)
            witness.advance(0.3 + 0.7 * ((seed + step) % 5))
            group.heal()
            if kind == 1:
                group.resume(name)
            elif kind == 2:
                group.restart(name)
        witness.settle()
        assert len({group.member(name).state.token for name in NAMES}) == 1


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"guard": "quorum://a,b,c", "ttl": "100ms"}, "ttl must be at least three round trips"),
        (
            {"guard": "quorum://a,b,c", "ttl": "1s", "guard_settings": {"drift": 0.6}},
            "too short to renew in",
        ),
        ({"ttl": "1s"}, "go with a guard"),
        ({"guard": "quorum://a,b,c,d"}, "3, 5 or 7 voters, not 4"),
        ({"guard": "quorum://n,b,c", "name": "n"}, "give it a state directory"),
        ({"guard": "quorum://a,b,c", "guard_settings": {"tll": 3}}, "tll"),
        ({"guard": "quorum://a,b,c", "protocol": "le-s", "settings": {"leaders": 2}}, "one leader"),
        ({"protocol": "quorum"}, "join with guard='quorum://a,b,c'"),
    ],
)
def test_what_cannot_work_is_told_before_anything_starts(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        hustings.join("g", **options)
