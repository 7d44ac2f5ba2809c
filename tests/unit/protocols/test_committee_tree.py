"""Word down the tree and lists through monitors, in lock step without a world."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.bits import Bits, pack
from hustings.protocols.committee.lockstep import Outbox, Program, Spoken
from hustings.protocols.committee.network import CommitteeNetwork, lay_out
from hustings.protocols.committee.roster import distinct
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of
from hustings.protocols.committee.tree import (
    Book,
    Lists,
    Marks,
    Value,
    Word,
    learn,
    plurality,
    send_down,
    to_monitors,
)
from tests.unit.protocols.committee_groups import march

Lies = Callable[[MemberId, int, Spoken], Outbox]


def network(n: int, **given: object) -> CommitteeNetwork:
    return lay_out(tuple(range(1, n + 1)), knobs_of(CommitteeConfig.parse(given), n))


def committees(built: CommitteeNetwork, layer: int, seed: int = 3) -> list[list[Value]]:
    """Some committee for every node up to a layer, out of those that elect it."""
    rng = Stream(seed)
    lists = [list(built.roster.leaves)]
    for each in range(1, layer + 1):
        row: list[Value] = []
        for node in built.layers[each]:
            voters = distinct(lists[-1][below] for below in node.below)
            row.append(tuple(sorted(rng.sample(voters, min(node.most, len(voters))))))
        lists.append(row)
    return lists[1:]


def books(built: CommitteeNetwork, *layers: list[Value]) -> dict[MemberId, Book]:
    """Everybody knows the committees that it helped to elect, as after an honest election."""
    found = {}
    for member in built.roster.members:
        book = Book(built, member)
        for layer, lists in enumerate(layers, 1):
            for node, members in zip(built.layers[layer], lists, strict=True):
                if any(member in book.committee(layer - 1, below) for below in node.below):
                    book.note(layer, node.index, members)
        found[member] = book
    return found


def lying(bad: tuple[MemberId, ...], bits: Bits) -> Lies:
    def speak(member: MemberId, channel: int, mine: Spoken) -> Outbox:
        return dict.fromkeys(mine.outbox, bits) if member in bad else mine.outbox

    return speak


# Reading


def test_plurality() -> None:
    assert plurality([(1,), (2,), (2,), None, None, None]) == (2,)
    assert plurality([(3,), (2,)]) == (2,)
    assert plurality([(), (), (4,)]) == ()
    assert plurality([]) is None


@settings(deadline=None, max_examples=120)
@given(value=st.integers(0, 2**80), length=st.integers(0, 80), most=st.integers(0, 12))
def test_any_bits_read_as_a_list_or_as_nothing(value: int, length: int, most: int) -> None:
    built = network(21)
    bits = Bits(value & (1 << length) - 1, length)
    read = Lists(built, most).read(bits)
    if read is not None:
        assert len(read) <= most
        assert list(read) == sorted(dict.fromkeys(read))
        assert not [member for member in read if member not in built.roster.members]
        assert Lists(built, most).write(read) == bits


def test_lists_come_back() -> None:
    built = network(21)
    codec = Lists(built, 4)
    for value in ((), (1,), (21,), (3, 9, 20, 21)):
        assert codec.read(codec.write(value)) == value
    assert codec.read(codec.write((1, 2, 3, 4, 5))) is None  # more than there can be
    assert codec.read(pack([(3, 5), (3, 5)])) is None
    assert codec.read(pack([(4, 5), (3, 5)])) is None
    assert codec.read(pack([(21, 5)])) is None  # places end at 20
    assert codec.read(Bits(0, 4)) is None
    assert Word(2).read(Word(2).write((3,))) == (3,)
    assert Word(2).read(Bits(1, 1)) is None


# Down


@pytest.mark.parametrize("layers", ["4:4:1", "4:6:1", "2:3:1,2:2:1", "none"])
def test_word_reaches_every_leaf(layers: str) -> None:
    built = network(40, c0=4, layers=layers, d0=2)
    top = built.top
    lists = committees(built, top)
    known = books(built, *lists)
    targets = {(0, node.index): node.leaves for node in built.layers[top]}
    programs = {}
    for member, book in known.items():
        held = {(0, index): (7,) for index in book.seats(top)}
        programs[member] = send_down(book, top, held, targets, Lists(built, 1))
    heard = march(programs)
    for member, at in heard.items():
        assert at == {(0, leaf): (7,) for leaf in built.roster.leaves_of[member]}


def test_lies_hit_only_what_is_below_a_broken_node() -> None:
    built = network(48, c0=4, layers="4:4:1")
    (lists,) = committees(built, 1)
    known = books(built, lists)
    bad = lists[1][: len(lists[1]) // 2 + 1]  # most of one committee
    bad = tuple(each for each in bad if each not in (*lists[0], *lists[2]))
    assert 2 * len(bad) > len(lists[1])
    codec = Lists(built, 1)
    targets = {(0, node.index): node.leaves for node in built.layers[1]}
    programs = {
        member: send_down(book, 1, {(0, index): (7,) for index in book.seats(1)}, targets, codec)
        for member, book in known.items()
    }
    heard = march(programs, lying(bad, codec.write((9,))))
    for member, at in heard.items():
        ((_, leaf),) = at
        under = leaf in built.layers[1][1].leaves
        if member not in bad:
            assert at[0, leaf] == ((9,) if under else (7,)), member


def test_a_minority_of_liars_hits_nobody() -> None:
    built = network(48, c0=4, layers="4:4:1")
    (lists,) = committees(built, 1)
    bad = tuple(member for committee in lists for member in committee[:3])
    assert all(2 * sum(each in bad for each in committee) < len(committee) for committee in lists)
    codec = Lists(built, 1)
    targets = {(0, node.index): node.leaves for node in built.layers[1]}
    programs = {
        member: send_down(book, 1, {(0, i): (7,) for i in book.seats(1)}, targets, codec)
        for member, book in books(built, lists).items()
    }
    for member, at in march(programs, lying(bad, codec.write((9,)))).items():
        if member not in bad:
            assert set(at.values()) == {(7,)}


# Learning


def learnt(
    built: CommitteeNetwork, layer: int, lists: list[list[Value]], lies: Lies | None = None
) -> dict[MemberId, Book]:
    """Everybody after word of a layer's committees has gone down and been learnt."""
    known = books(built, *lists)

    def program(book: Book) -> Program[None]:
        held = {
            (node.index, below): lists[layer - 1][node.index]
            for node in built.layers[layer]
            for below in node.below
            if book.me in book.committee(layer - 1, below)
        }
        most = max(node.most for node in built.layers[layer])
        targets = to_monitors(built, layer)
        at = yield from send_down(book, layer - 1, held, targets, Lists(built, most))
        yield from learn(book, layer, at, Stream(book.me))

    march({member: program(book) for member, book in known.items()}, lies)
    return known


@pytest.mark.parametrize(
    "given, layer",
    [
        ({"c0": 4, "layers": "4:4:1"}, 1),
        ({"c0": 4, "layers": "3:5:1", "d0": 2, "monitors": 2, "fan": 1}, 1),
        ({"c0": 3, "layers": "2:3:1,2:2:1"}, 2),
        ({"c0": 4, "layers": "4:4:1", "profile": "printed", "d0": 2}, 1),
    ],
)
def test_members_of_committees_learn_those_they_will_elect_with(
    given: dict[str, object], layer: int
) -> None:
    built = network(48, **given)
    lists = committees(built, layer)
    known = learnt(built, layer, lists)
    asked = 0
    for book in known.values():
        for node in book.seats(layer):
            for other in built.relatives[layer][node]:
                assert book.committee(layer, other) == lists[layer - 1][other]
                asked += 1
    assert asked > len(built.layers[layer])


def test_strangers_learn_nothing_and_are_told_nothing() -> None:
    built = network(48, c0=4, layers="4:4:1")
    lists = committees(built, 1)
    sitting = {member for committee in lists[0] for member in committee}
    heard: list[MemberId] = []

    def listen(member: MemberId, channel: int, mine: Spoken) -> Outbox:
        if mine.stage.kind == "ask" and member not in sitting:
            return dict.fromkeys(mine.stage.members, Bits(1, 1))  # asks all the same
        if mine.stage.kind == "answer":
            heard.extend(mine.outbox)
        return mine.outbox

    known = learnt(built, 1, lists, listen)
    assert heard
    assert not [member for member in heard if member not in sitting]
    for member, book in known.items():
        if member not in sitting:
            assert sum(book.knows(1, node) for node in range(3)) == 1  # the one it helped to elect


def marks(mine: Spoken, members: tuple[MemberId, ...], most: int = 4) -> Bits:
    """A false list, in the form in which lists go here: these of those who took part."""
    voters = mine.stage.about
    assert voters
    chosen = [each for each in voters if each in members][:most]
    return Marks(voters, most).write(tuple(chosen))


def test_marks_come_back_and_nothing_else_is_a_list_of_marks() -> None:
    codec = Marks((3, 5, 8, 9), 2)
    assert codec.read(codec.write((5, 9))) == (5, 9)
    assert codec.write((5, 9)) == Bits(0b1010, 4)
    assert codec.read(codec.write(())) == ()
    assert codec.read(Bits(0b0111, 4)) is None, "too many"
    assert codec.read(Bits(0b01, 2)) is None
    assert codec.read(Bits(0b00101, 5)) is None


def test_lists_go_as_marks_where_these_are_shorter_and_public() -> None:
    built = network(48, c0=8, layers="2:2:1")
    for node in built.layers[1]:
        assert built.marked(1, node.index) == built.roster.electorates[node.index]
    assert network(64, c0=4, layers="2:2:1,2:2:1").marked(2, 0) == ()
    halved = network(48, c0=8, layers="2:2:3")  # of 16 at most 2, and 6 bits name one
    assert halved.marked(1, 0) == ()
    printed = network(48, profile="printed", c0=8, layers="2:2:1")
    assert printed.marked(1, 0) == ()


def test_a_third_of_lying_guards_misleads_nobody() -> None:
    built = network(48, c0=8, layers="2:2:1", fan=9)
    lists = committees(built, 1)
    bad = tuple(member for leaf in built.roster.leaves for member in leaf[:2])

    def lie(member: MemberId, channel: int, mine: Spoken) -> Outbox:
        if member in bad and mine.stage.kind in ("report", "answer"):
            return dict.fromkeys(mine.outbox, marks(mine, bad))
        return mine.outbox

    for member, book in learnt(built, 1, lists, lie).items():
        for node in book.seats(1):
            if member not in bad:
                for other in built.relatives[1][node]:
                    assert book.committee(1, other) == lists[0][other]


def test_who_owns_the_guards_owns_what_is_learnt() -> None:
    built = network(48, c0=8, layers="2:2:1")
    lists = committees(built, 1)
    bad = tuple(
        member for leaf in built.layers[1][0].monitors for member in built.roster.leaves[leaf]
    )

    def lie(member: MemberId, channel: int, mine: Spoken) -> Outbox:
        if member in bad and mine.stage.kind == "report":
            return dict.fromkeys(mine.outbox, marks(mine, bad))
        return mine.outbox

    misled = 0
    for book in learnt(built, 1, lists, lie).values():
        for node in book.seats(1):
            for other in built.relatives[1][node]:
                right = book.committee(1, other) == lists[0][other]
                assert right == (other != 0 or node == 0)
                misled += not right
    assert misled > 0
