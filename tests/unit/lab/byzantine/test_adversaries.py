"""Adversaries by entry point: loaded once, called by their names, refused if they are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine import adversaries
from hustings.protocols.committee import adversary
from hustings.protocols.committee.adversary import Adversary, parse_adversary


class Meek(Adversary):
    """Does nothing."""

    name = "meek"
    idea = "does nothing"
    lies = True


@dataclass
class Entry:
    """What importlib finds."""

    name: str
    found: object
    loads: int = 0

    def load(self) -> object:
        self.loads += 1
        return self.found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    entries: list[Entry] = []

    def entry_points(*, group: str) -> list[Entry]:
        assert group == "hustings.adversaries"
        return entries

    monkeypatch.setattr(adversaries, "entry_points", entry_points)
    monkeypatch.setattr(adversary, "_registered", {})
    adversaries.load.cache_clear()
    yield entries
    adversaries.load.cache_clear()


@pytest.mark.parametrize("found", [Meek, Meek()], ids=["class", "instance"])
def test_it_can_be_called_by_its_name(found: object, installed: list[Entry]) -> None:
    with pytest.raises(UnknownName):
        parse_adversary("meek")
    installed.append(Entry("meek", found))
    adversaries.load()
    assert parse_adversary("meek").lies
    assert not parse_adversary("meek").packs
    assert adversary.catalogue()["meek"] == ("adversary", "does nothing")


def test_it_is_loaded_once(installed: list[Entry]) -> None:
    entry = Entry("meek", Meek)
    installed.append(entry)
    for _ in range(3):
        adversaries.load()
    assert entry.loads == 1


@pytest.mark.parametrize(
    "name, found, words",
    [
        ("odd", object(), "entry point 'odd' of hustings.adversaries is no Adversary"),
        ("odd", int, "is no Adversary"),
        ("mild", Meek, "calls itself 'meek': both must be the same word"),
    ],
)
def test_others_are_refused(name: str, found: object, words: str, installed: list[Entry]) -> None:
    installed.append(Entry(name, found))
    with pytest.raises(BadInput) as caught:
        adversaries.load()
    assert words in str(caught.value)


def test_no_word_of_ours_is_taken_away(installed: list[Entry]) -> None:
    class Greedy(Adversary):
        """Another one by a name that is taken."""

        name = "greedy"

    installed.append(Entry("greedy", Greedy))
    with pytest.raises(BadInput, match="cannot be called 'greedy'"):
        adversaries.load()
