"""The address book: where members are, were, and may still be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hustings.net.peer_addresses import AddressBook, Place, read_place
from hustings.net.transport import Endpoint

ME = 1


class Circle:
    """Who is in view and what gossip says of them; every change is a new version."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {ME: "192.0.2.9:1 me"}
        self.view = SimpleNamespace(version=0, ids=[ME])

    def put(self, member: int, place: str) -> None:
        self.places[member] = place
        self._changed([*dict.fromkeys([*self.view.ids, member])])

    def drop(self, member: int) -> None:
        self._changed([each for each in self.view.ids if each != member])

    def forget(self, member: int) -> None:
        del self.places[member]
        self.drop(member)

    def _changed(self, ids: list[int]) -> None:
        self.view = SimpleNamespace(version=self.view.version + 1, ids=ids)

    def entry(self, member: int) -> Any:
        place = self.places.get(member)
        return None if place is None else SimpleNamespace(place=place)


def book() -> tuple[AddressBook, Circle]:
    circle = Circle()
    membership: Any = SimpleNamespace(circle=circle)
    return AddressBook(ME, membership), circle


def at(number: int) -> Endpoint:
    return (f"192.0.2.{number}", 7400)


def place(number: int, name: str = "x") -> str:
    return Place(at(number), name).text()


def test_gossip_says_where_a_member_is_before_what_was_heard_of_it() -> None:
    here, circle = book()
    assert here.endpoint(2) is None
    here.heard(2, at(20))
    assert here.endpoint(2) == at(20)
    here.heard(2, at(21))
    assert here.endpoint(2) == at(21), "where it was heard last"
    assert here.place(2) is None
    circle.put(2, place(2, "b"))
    assert here.endpoint(2) == at(2)
    assert here.place(2) == Place(at(2), "b")


def test_only_so_many_are_remembered_by_what_was_heard_and_the_oldest_gives_way() -> None:
    here, _ = book()
    for member in range(100, 4196):
        here.heard(member, at(1))
    here.heard(100, at(2))  # heard again from elsewhere: it is not the oldest any more
    here.heard(9999, at(3))
    assert here.endpoint(100) == at(2)
    assert here.endpoint(9999) == at(3)
    assert here.endpoint(101) is None
    assert here.endpoint(102) == at(1)


def test_the_others_in_view_are_known_and_own_their_addresses() -> None:
    here, circle = book()
    circle.put(2, place(2))
    circle.put(3, place(3))
    circle.put(4, "nowhere at all")
    assert dict(here.known) == {2: at(2), 3: at(3)}, "not this member itself, nor who is nowhere"
    assert here.everybody() == [at(2), at(3)]
    assert here.owner(at(3)) == 3
    assert here.owner(("192.0.2.9", 1)) is None
    circle.put(3, place(30))
    assert here.owner(at(3)) is None
    assert here.owner(at(30)) == 3
    assert dict(here.known)[3] == at(30)


def test_who_was_reached_and_left_the_view_is_looked_for_for_a_day() -> None:
    here, circle = book()
    here.reached = lambda member, endpoint: member != 3
    for member in (2, 3, 4):
        circle.put(member, place(member))
    assert here.lost(0.0) == []
    for member in (2, 3, 4):
        circle.drop(member)
    assert here.lost(100.0) == [at(2), at(4)], "nobody has ever answered at the third"
    circle.put(4, place(4))
    assert here.lost(200.0) == [at(2)], "it is back"
    assert here.lost(100.0 + 86_399.0) == [at(2)]
    assert here.lost(100.0 + 86_400.0) == []
    assert here.lost(0.0) == []


def test_an_address_that_somebody_else_has_now_is_not_lost() -> None:
    here, circle = book()
    circle.put(2, place(2))
    assert here.owner(at(2)) == 2
    circle.drop(2)
    circle.put(3, place(2))
    assert here.lost(0.0) == []
    assert here.owner(at(2)) == 3


def test_who_moved_is_not_missed_where_it_was() -> None:
    here, circle = book()
    circle.put(2, place(2))
    assert here.owner(at(2)) == 2
    circle.put(2, place(22))
    assert here.lost(0.0) == []


def test_of_those_that_are_lost_the_latest_are_kept() -> None:
    here, circle = book()
    for member in range(2, 72):
        circle.put(member, place(member))
    assert len(here.known) == 70
    for member in range(2, 72):
        circle.drop(member)
        here.everybody()
    lost = here.lost(0.0)
    assert lost == [at(member) for member in range(8, 72)]
    circle.put(8, place(8))
    here.everybody()
    circle.drop(8)
    assert here.lost(1.0)[-1] == at(8), "lost once more, so it is the latest"


@pytest.mark.parametrize(
    "text",
    [
        "192.0.2.1:7400",
        "192.0.2.1:7400 ",
        "192.0.2.1:7400 two words\n",
        "host.example:7400 x",
        "224.0.0.1:7400 x",
        "0.0.0.0:7400 x",
        "[::]:7400 x",
        "192.0.2.1:0 x",
        "192.0.2.1 x",
        "192.0.2.1:07400 x",
        "[fe80::1%eth0]:7400 x",
        "[2001:DB8::1]:7400 x",
        "[2001:0db8::1]:7400 x",
        "[::ffff:192.0.2.1]:7400 x",
    ],
)
def test_what_is_no_place(text: str) -> None:
    assert read_place(text) is None


@pytest.mark.parametrize("text", ["192.0.2.1:7400 x", "[2001:db8::1]:7400 web-1"])
def test_what_is_a_place_is_written_as_it_was(text: str) -> None:
    found = read_place(text)
    assert found is not None
    assert found.text() == text
