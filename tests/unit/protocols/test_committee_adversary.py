"""Adversaries by their words, and what those of them say that come after agreement."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import Stream
from hustings.protocols.committee import adversary as module
from hustings.protocols.committee.adversary import (
    BEHAVIOURS,
    CATALOGUE,
    Adversary,
    Compound,
    budget,
    catalogue,
    known,
    parse_adversary,
    register,
)
from hustings.protocols.committee.bits import Bits, pack
from hustings.protocols.committee.corruption import CORRUPTIONS
from hustings.protocols.committee.lockstep import Outbox, Spoken, Stage
from hustings.protocols.committee.misbehaving import AdversaryScene
from hustings.protocols.committee.roster import Roster

ROSTER = Roster(tuple(range(10, 30)), (tuple(range(10, 30)),))


def scene(*bad: MemberId) -> AdversaryScene:
    return AdversaryScene(bad, Stream(1), ROSTER)


def speak(words: str, mine: Spoken, *bad: MemberId) -> Outbox:
    return parse_adversary(words).speak(scene(*bad), bad[0], mine)


@pytest.fixture
def registry() -> Iterator[None]:
    yield
    module._registered.clear()


def test_words() -> None:
    one = parse_adversary("greedy+pack")
    assert isinstance(one, Compound)
    assert (one.corruption, one.behaviours) == ("greedy", ("pack",))
    assert (one.packs, one.lies, one.floods, one.claims) == (True, False, False, False)
    other = parse_adversary(" lie + flood ")
    assert isinstance(other, Compound)
    assert (other.corruption, other.behaviours) == ("random", ("lie", "flood"))
    worst = parse_adversary("mixed")
    assert isinstance(worst, Compound)
    assert worst.behaviours == ("split", "pack", "lie", "flood", "claim")
    assert worst.packs
    assert worst.lies
    assert worst.floods
    assert worst.claims


@pytest.mark.parametrize("text", ["greddy", "random+", "", "pack+lye", "random+pack+x"])
def test_unknown_words_suggest(text: str) -> None:
    with pytest.raises(UnknownName, match="unknown adversary"):
        parse_adversary(text)


def test_one_corruption_only() -> None:
    with pytest.raises(BadInput, match="names two corruptions: leaf and random"):
        parse_adversary("leaf+random")


def test_the_catalogue_lists_all() -> None:
    names = [name for name, _ in CATALOGUE]
    assert names == known() == [*CORRUPTIONS, *BEHAVIOURS]
    assert all(idea for _, idea in CATALOGUE)
    assert catalogue()["leaf"][0] == "corruption"
    assert catalogue()["edge"][0] == "behaviour"
    for name in names:
        parse_adversary(name)


def test_shares_of_a_group() -> None:
    assert [budget(0.1, n) for n in (9, 10, 19, 20)] == [0, 1, 1, 2]
    assert budget(0.3, 10) == 3
    assert all(3 * budget(0.333, n) < n for n in range(1, 200))


def test_corruption_is_the_named_one() -> None:
    members = ROSTER.members
    assert parse_adversary("none").corrupt(ROSTER, 5, Stream(1)) == ()
    bad = parse_adversary("cluster+pack").corrupt(ROSTER, 5, Stream(1))
    assert bad == members[:5]
    assert len(Adversary().corrupt(ROSTER, 5, Stream(1))) == 5


# What they say


def test_a_lie_names_its_own() -> None:
    true = pack([(3, 5), (4, 5), (9, 5)])
    mine = Spoken(Stage("down", 1, 1), {11: true, 13: true})
    lie = pack([(2, 5), (5, 5)])  # 12 and 15: there are no more of them
    assert speak("lie", mine, 12, 15) == {11: lie, 13: lie}
    short = Spoken(Stage("answer"), {11: pack([(3, 5)])})
    assert speak("lie", short, 12, 15) == {11: pack([(2, 5)])}
    assert speak("lie", Spoken(Stage("down"), {11: Bits(0, 0)}), 12) == {11: pack([(2, 5)])}
    assert speak("lie", Spoken(Stage("down"), {11: Bits(1, 1)}), 12) == {11: Bits(0, 1)}
    other = Spoken(Stage("vote", 1, 1), {11: true})
    assert speak("lie", other, 12) == {11: true}


def test_a_lie_about_the_winner() -> None:
    stage = Stage("announce", 0, 0, 2, 1, 3, (11, 12), (11, 12, 13))
    mine = Spoken(stage, {13: Bits(0, 2)})
    assert speak("lie", mine, 12) == {13: Bits(1, 2)}
    assert speak("lie", mine, 17) == {13: Bits(0, 2)}  # none of its own stands


def test_flooding_and_claiming() -> None:
    everybody = tuple(range(10, 30))
    mark = Bits(1, 1)
    reply = Spoken(Stage("reply", members=everybody), {})
    assert speak("flood", reply, 12) == dict.fromkeys(everybody, mark)
    assert speak("claim", reply, 12) == {}
    poll = Spoken(Stage("poll", members=everybody), {})
    assert speak("claim", poll, 12) == dict.fromkeys(everybody, mark)
    assert speak("flood", poll, 12) == {}
    ask = Spoken(Stage("ask", members=everybody), {11: mark})
    assert speak("flood", ask, 12) == dict.fromkeys(everybody, mark)


def test_behaviours_follow_each_other() -> None:
    poll = Spoken(Stage("poll", members=(10, 11)), {})
    assert speak("silent+claim", poll, 12) == {10: Bits(1, 1), 11: Bits(1, 1)}
    assert speak("claim+silent", poll, 12) == {}


# Others


class Parrot(Adversary):
    name = "parrot"
    idea = "says what it would say, twice as often"
    lies = True

    def corrupt(self, roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
        return roster.members[:budget]

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        return {to: Bits(0, 3) for to in mine.outbox}


@pytest.mark.usefixtures("registry")
def test_an_adversary_of_ones_own() -> None:
    with pytest.raises(UnknownName):
        parse_adversary("parrot")
    register(Parrot())
    one = parse_adversary("parrot")
    assert one.lies
    assert not one.packs
    assert one.corrupt(ROSTER, 2, Stream(1)) == (10, 11)
    assert one.speak(scene(12), 12, Spoken(Stage("x"), {11: Bits(7, 3)})) == {11: Bits(0, 3)}
    both = parse_adversary("random+pack+parrot")
    assert both.packs
    assert len(both.corrupt(ROSTER, 2, Stream(1))) == 2
    assert catalogue()["parrot"] == ("adversary", Parrot.idea)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["", "greedy", "lie", "a+b"])
def test_names_must_be_new_words(name: str) -> None:
    kind = type("Other", (Adversary,), {"name": name})
    with pytest.raises(BadInput, match="cannot be called"):
        register(kind())
