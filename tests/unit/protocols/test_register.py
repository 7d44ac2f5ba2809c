"""The register and the catalogue: the same elections, found without loading the others."""

from __future__ import annotations

import pytest

from hustings.core.errors import UnknownName
from hustings.protocols.catalogue import BASELINES, BY_ROUNDS, CONSENSUS, EVERY, PRINTED, names
from hustings.protocols.register import REGISTER, Use, find, use_of


def test_they_list_the_same_in_the_same_order() -> None:
    assert list(REGISTER) == names()
    assert [find(name) for name in REGISTER] == list(EVERY)


def test_what_an_election_is_for_follows_from_its_family() -> None:
    for name in REGISTER:
        kind = find(name)
        if kind in CONSENSUS:
            wanted = Use.GUARD
        elif kind in BY_ROUNDS:
            wanted = Use.ROUNDS
        elif kind in PRINTED or kind in BASELINES:
            wanted = Use.STUDY
        else:
            wanted = Use.JOIN
        assert use_of(name) is wanted, name


def test_an_underscore_stands_for_a_hyphen() -> None:
    assert find("bully_map") is find("bully-map")
    assert use_of("le_s_printed") is Use.STUDY


@pytest.mark.parametrize("look", [find, use_of])
def test_an_unknown_name_is_told_with_the_nearest(look: object) -> None:
    assert callable(look)
    with pytest.raises(UnknownName, match="unknown protocol 'buly': did you mean 'bully'"):
        look("buly")
