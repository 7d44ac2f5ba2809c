"""The error tree: whose mistake it was, and a sentence that helps."""

import pytest

from hustings.core.errors import (
    BadInput,
    BadPeer,
    HustingsError,
    ProtocolBug,
    StaleContext,
    UnknownName,
)


@pytest.mark.parametrize(
    "kind, parent",
    [
        (BadInput, HustingsError),
        (UnknownName, BadInput),
        (ProtocolBug, HustingsError),
        (StaleContext, ProtocolBug),
        (BadPeer, HustingsError),
    ],
)
def test_the_tree(kind: type[Exception], parent: type[Exception]) -> None:
    assert kind.__bases__ == (parent,)


def test_an_unknown_name_suggests_the_nearest() -> None:
    error = UnknownName("protocol", "buly", ["ring", "bully", "bully-map"])
    assert str(error) == (
        "unknown protocol 'buly': did you mean 'bully'? (known: ring, bully, bully-map)"
    )
    assert (error.kind, error.name, error.known) == (
        "protocol",
        "buly",
        ("ring", "bully", "bully-map"),
    )


def test_nothing_near_suggests_nothing() -> None:
    assert str(UnknownName("member", "9", ["1", "2"])) == "unknown member '9' (known: 1, 2)"


def test_nothing_known_says_so() -> None:
    assert str(UnknownName("timer", "T1", [])) == "unknown timer 'T1' (known: none)"
