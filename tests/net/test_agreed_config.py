"""Members that are configured otherwise: who comes is refused, and groups that meet say so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.guard.config import guard_for
from hustings.net.agreed_config import (
    BARRED,
    ENOUGH,
    LASTING,
    AgreedConfig,
    CompetingGroups,
    CompetingMember,
    Field,
    differing,
    label_of,
)
from hustings.net.control_messages import ConfigMsg
from hustings.testing import Group

TTL = 2.0
ABC = "quorum://a,b,c?durable=no"
DEF = "quorum://d,e,f?durable=no"


@contextmanager
def formed(seed: int = 1, **options: Any) -> Iterator[Group]:
    with Group(seed=seed, **{"protocol": "bully", **options}) as group:
        for name in ("a", "b", "c"):
            group.join(name)
        group.settle(within=60.0)
        yield group


@pytest.mark.parametrize(
    "group, member, words",
    [
        ({"guard": ABC}, {"guard": DEF}, "voters is d,e,f here and a,b,c there"),
        ({"guard": ABC}, {"guard": "quorum://c,b,x?durable=no"}, "voters is b,c,x here and a,b,c"),
        ({"guard": ABC}, {"guard": "memory://"}, "guard is memory here and quorum there"),
        ({"guard": ABC}, {}, "guard is none here and quorum there"),
        ({"guard": ABC}, {"guard": ABC, "ttl": 9.0}, "longest lease is 9s here and 5s there"),
        (
            {"guard": "memory://one"},
            {"guard": "memory://two"},
            "guard engine is two: here and one: there",
        ),
        ({}, {"guard": "memory://x"}, "guard is memory here and none there"),
        ({}, {"choice": "lowest-id"}, "choice is lowest-id here and highest-id there"),
        ({}, {"protocol": "le-s"}, "protocol is le-s here and bully there"),
        ({}, {"multicast": "bimodal"}, "multicast is bimodal here and world there"),
    ],
)
def test_who_comes_and_differs_is_refused(
    group: dict[str, Any], member: dict[str, Any], words: str
) -> None:
    with formed(**group) as there:
        leader = there.settle()
        fresh = {"guard": None, **member}
        with pytest.raises(BadInput, match=f"does not fit group 'test': .*{words}"):
            there.join("x", **fresh)
        there.advance(5.0)
        assert there.settle() == leader, "the group goes on"
        assert sorted(there.up) == ["a", "b", "c"]
        assert len(there.member("a").members()) == 3


@pytest.mark.parametrize(
    "one, other",
    [
        ({"guard": "memory://said", "ttl": 5.0}, {"guard": "memory://said", "ttl": 9.0}),
        ({"settings": {"election_backoff": 1.0}}, {"settings": {"election_backoff": 2.0}}),
    ],
)
def test_what_need_not_be_equal_is_only_said(one: dict[str, Any], other: dict[str, Any]) -> None:
    with formed(**one) as group:
        group.join("x", **other)
        group.settle(within=60.0)
        notes = [note for name in group.up for note in group.member(name).notes]
        told = [note for note in notes if "is configured otherwise" in note]
        assert any(note.startswith("member x at ") for note in told)
        assert any("member x at" not in note for note in told), "both sides say so"


def test_the_same_guard_in_other_words_is_the_same() -> None:
    with formed(guard="quorum://a,b,c?durable=no", ttl=TTL) as group:
        group.join("x", guard="quorum://c,a,b?durable=no&max_ttl=2s")
        group.settle(within=60.0)
        assert len(group.member("a").members()) == 4
        assert not [note for note in group.member("x").notes if "configured" in note]


def test_voters_that_were_replaced_are_named_with_the_first(tmp_path: Path) -> None:
    with Group(seed=1, protocol="bully", guard="quorum://a,b,c", ttl=TTL) as group:
        for name in "abc":
            (tmp_path / name).mkdir()
            group.join(name, state=tmp_path / name)
        group.settle(within=60.0)
        group.join("x", guard="quorum://b,c,d?initial=a,b,c")
        assert len(group.member("a").members()) == 4
        with pytest.raises(BadInput, match="voters is b,c,d here and a,b,c there"):
            group.join("y", guard="quorum://b,c,d")


def test_who_observes_follows_the_group_that_it_finds() -> None:
    with formed(guard="memory://seen", ttl=TTL) as group:
        watcher = group.join("watcher", observer=True, guard="memory://other")
        leader = group.settle(within=60.0)
        assert watcher.leader is not None
        assert watcher.leader.name == leader


class Meeting:
    """Two groups of one name, each with voters of its own, that have never met."""

    def __init__(self, group: Group, *sides: str) -> None:
        self.group = group
        self.sides = sides
        for side in sides:
            for name in side:
                seeds = [group.member(side[0]).address] if name != side[0] else []
                guard = f"quorum://{','.join(side[:3])}?durable=no"
                group.join(name, guard=guard, ttl=TTL, seeds=seeds)
        for side in sides:
            group.settle(side, within=60.0)
        assert len(group.leaders) == 2, "nobody can know"

    def meet(self) -> None:
        """Two that do not lead come across each other."""
        group = self.group
        pair = [next(one for one in side if one not in group.leaders) for side in self.sides]
        group.member(pair[0]).node.search.approach(("127.0.0.1", port_of(group, pair[1])))
        group.advance(0.5)

    def notes(self, side: str) -> list[str]:
        return [
            note
            for name in side
            for note in self.group.member(name).notes
            if "has another configuration: voters is" in note
        ]


def port_of(group: Group, name: str) -> int:
    return int(group.member(name).address.rpartition(":")[2])


@pytest.mark.parametrize("sides", [("abcg", "def"), ("abc", "defg")])
def test_of_two_groups_that_meet_the_smaller_one_leads_no_more(sides: tuple[str, str]) -> None:
    smaller, larger = sorted(sides, key=len)
    with Group(seed=3, protocol="bully") as group:
        meeting = Meeting(group, *sides)
        token = max(group.member(name).state.token or 0 for name in larger)
        meeting.meet()
        group.advance(3.0)
        assert [name for name in group.leaders if name in smaller] == []
        assert len(group.leaders) == 1
        assert {group.member(name).state.token for name in group.leaders} == {token}
        assert any(group.member(name).state.reason == BARRED for name in smaller)
        assert all(meeting.notes(side) for side in sides), "both say why"
        group.advance(30.0)
        assert len(group.leaders) == 1, "as long as the other one is there"
        for name in larger:
            group.kill(name)
        group.settle(smaller, within=30.0)


def test_of_two_groups_as_large_as_each_other_neither_leads() -> None:
    with Group(seed=4, protocol="bully") as group:
        meeting = Meeting(group, "abc", "def")
        meeting.meet()
        group.advance(3.0)
        assert group.leaders == []
        group.advance(30.0)
        assert group.leaders == []
        assert all(meeting.notes(side) for side in meeting.sides)


def test_nobody_is_made_to_stop_by_an_answer_that_it_did_not_ask_for() -> None:
    with formed(guard=ABC, ttl=TTL) as group:
        leader = group.settle()
        host = group.member(leader).node
        forged = ConfigMsg(7, True, True, 1000, True, (("voters", "d,e,f", True),))
        check = host.config_check
        assert check is not None
        check.heard(5, forged, ("127.0.0.1", 9))
        group.advance(3.0)
        assert group.leaders == [leader]
        assert not [note for note in group.member(leader).notes if "configuration" in note]


def test_a_guarded_group_leads_on_beside_a_larger_one_without_a_guard() -> None:
    with Group(seed=5, protocol="bully") as group:
        for name in "abcde":
            seeds = [group.member("a").address] if name != "a" else []
            group.join(name, seeds=seeds)
        for name in "xy":
            seeds = [group.member("x").address] if name != "x" else []
            group.join(name, guard="memory://two", ttl=TTL, seeds=seeds)
        group.settle("abcde", within=60.0)
        leader = group.settle("xy", within=60.0)
        token = group.member(leader).state.token
        group.member("a").node.search.approach(("127.0.0.1", port_of(group, leader)))
        group.member("x").node.search.approach(("127.0.0.1", port_of(group, "a")))
        group.advance(30.0)
        assert group.member(leader).state.token == token
        assert any("does not yield" in note for note in group.member(leader).notes)


def test_who_only_observes_makes_a_group_no_larger() -> None:
    """Observers answer nobody: each group would take itself for the larger one."""
    with Group(seed=6, protocol="bully") as group:
        meeting = Meeting(group, "abcg", "def")
        for name in ("o1", "o2", "o3"):
            seeds = [group.member("d").address]
            group.join(name, observer=True, guard="quorum://d,e,f?durable=no", seeds=seeds)
        group.join("lost", observer=True, seeds=seeds)  # of no group, and not quiet
        group.advance(5.0)
        meeting.meet()
        group.advance(5.0)
        assert [name for name in group.leaders if name in "def"] == []
        assert len(group.leaders) == 1


# The parts


def answered(*answers: tuple[int, int, int], led: bool = True) -> CompetingGroups:
    """Witnesses by port, id and the size that they claim."""
    rivals = CompetingGroups()
    for port, member, members in answers:
        report = CompetingMember(member, "other", members, led)
        rivals.answered(("127.0.0.1", port), report, now=0.0)
    return rivals


def test_a_group_counts_for_those_that_answered() -> None:
    three = answered((1, 1, 900), (2, 2, 900), (3, 3, 900))
    assert [three.outweigh(own, led=True, now=0.0) for own in (2, 3, 4)] == [True, True, False]
    once = answered((1, 1, 900), (2, 1, 900), (3, 1, 900))
    assert not once.outweigh(2, led=True, now=0.0), "one member at three addresses is one"
    same = answered((1, 1, 900), (1, 2, 900), (1, 3, 900))
    assert not same.outweigh(2, led=True, now=0.0), "three names at one address are one"
    assert same.there(0.0) == [("127.0.0.1", 1)]


def test_of_groups_as_large_as_each_other_the_one_that_is_led_goes_on() -> None:
    for theirs, ours, outweighed in [
        (True, True, True),
        (True, False, True),
        (False, False, True),
        (False, True, False),
    ]:
        assert answered((1, 1, 1), led=theirs).outweigh(1, led=ours, now=0.0) is outweighed


def test_groups_that_differ_are_not_added_up() -> None:
    rivals = CompetingGroups()
    for number, config in enumerate(("one", "two")):
        witness = CompetingMember(number, config, 9, True)
        rivals.answered(("127.0.0.1", number), witness, now=0.0)
    assert not rivals.outweigh(2, led=True, now=0.0)
    assert rivals.outweigh(1, led=True, now=0.0)


def test_who_has_answered_counts_for_a_while() -> None:
    rivals = answered((1, 1, 5), (2, 2, 5))
    rivals.answered(("127.0.0.1", 1), CompetingMember(1, "other", 5, True), now=LASTING / 2)
    assert rivals.outweigh(2, led=True, now=LASTING - 0.1)
    assert rivals.there(LASTING) == [("127.0.0.1", 1)]
    assert not rivals.outweigh(2, led=True, now=LASTING)
    assert not rivals.outweigh(1, led=True, now=2 * LASTING)


def test_where_enough_have_answered_what_both_claim_decides() -> None:
    few = answered(*((port, port, 100) for port in range(1, ENOUGH)))
    assert few.outweigh(ENOUGH - 1, led=True, now=0.0)
    assert not few.outweigh(ENOUGH, led=True, now=0.0)
    many = answered(*((port, port, 100) for port in range(1, 10 * ENOUGH)))
    assert [many.outweigh(own, True, now=0.0) for own in (ENOUGH, 99, 100, 101)] == [
        True,
        True,
        True,
        False,
    ]
    assert len(many.there(0.0)) <= 4 * ENOUGH, "so many are remembered"


def test_only_what_must_be_equal_makes_the_digest() -> None:
    one = AgreedConfig((Field("guard", "etcd", True), Field("ttl", "5s", False)))
    for fields in ((Field("guard", "nats", True),), (Field("guard", "etcd", True),)):
        same = fields[0].value == "etcd"
        assert (AgreedConfig(fields).digest == one.digest) is same
    assert label_of("bully", "", "abc") == "bully#abc"


def test_what_others_send_is_shown_harmlessly() -> None:
    told = differing([(Field("choice", "", True), "\x1b[2J\n" + 500 * "x")])
    assert told.isprintable()
    assert len(told) < 200


@pytest.mark.parametrize(
    "url, address, scope",
    [
        ("redis://h", "h:6379", ""),
        ("valkey://user:secret@h:6379/3", "h:6379", "3"),
        ("nats://b:1,a", "a:4222,b:1", ""),
        ("zookeeper://h/x?election=/y", "h:2181", "x election=/y"),
        ("redis://h?identity=prod", "prod", ""),
        ("redis://h/0", "h:6379", ""),
        ("redis://h/007", "h:6379", "7"),
        ("nats://h/hustings", "h:4222", ""),
        ("nats://h/0", "h:4222", "0"),
        ("zookeeper://h/hustings?recipe=kazoo", "h:2181", ""),
        ("zookeeper://h?recipe=curator", "h:2181", "recipe=curator"),
        ("etcd://h/hustings", "h:2379", "hustings"),
    ],
)
def test_what_tells_engines_apart(url: str, address: str, scope: str) -> None:
    chosen = guard_for(url, "g", lambda _: 0)
    assert (chosen.address, chosen.scope) == (address, scope)
    assert "secret" not in f"{chosen.address}{chosen.scope}"
