"""Strict types refuse what the walk through a message refuses, and nothing else."""

from __future__ import annotations

import math
import random
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from hustings.core.messages import Message
from hustings.net.limits import Reason
from hustings.net.wire import MAX_INTEGER, MAX_TEXT, _decoder, flaw, strict
from tests.net.parts import PING, PingMsg
from tests.net.test_fuzz import DIALECT, FAST, SAMPLES, thing


class Inner(msgspec.Struct, frozen=True, rename={"count": "n"}):
    count: int
    weight: Annotated[float, Meta(ge=0)] = 0.0


class Tree(msgspec.Struct, frozen=True, array_like=True):
    value: int
    below: tuple[Tree, ...] = ()


class Everything(msgspec.Struct, frozen=True):
    a: int | None = None
    b: dict[str, int] | None = None
    c: list[float] | None = None
    d: frozenset[int] | None = None
    e: tuple[int, str] | None = None
    f: Inner | None = None
    g: tuple[Inner, ...] = ()
    h: bool = False
    i: Tree | None = None


@pytest.mark.parametrize(
    "fields, fine",
    [
        ({"a": MAX_INTEGER - 1}, True),
        ({"a": MAX_INTEGER}, False),
        ({"b": {"x": 1}}, True),
        ({"b": {"x": MAX_INTEGER}}, False),
        ({"b": {str(k): k for k in range(5)}}, False),
        ({"c": [0.5, 1]}, True),
        ({"c": [math.nan]}, False),
        ({"c": [math.inf]}, False),
        ({"c": [0.5] * 5}, False),
        ({"d": [1, 2]}, True),
        ({"d": [1, 2, 3, 4, 5]}, False),
        ({"e": [1, "x"]}, True),
        ({"e": [MAX_INTEGER, "x"]}, False),
        ({"e": [1, "x" * MAX_TEXT]}, True),
        ({"e": [1, "x" * MAX_TEXT + "x"]}, False),
        ({"f": {"n": 1}}, False),
        ({"f": {"n": 1, "weight": 1.0}}, True),
        ({"f": {"n": MAX_INTEGER, "weight": 1.0}}, False),
        ({"f": {"n": 1, "weight": 1.0, "more": 1}}, False),
        ({"g": [{"n": 1, "weight": 1.0}] * 4}, True),
        ({"g": [{"n": 1, "weight": 1.0}] * 5}, False),
        ({"i": [1, []]}, True),
        ({"i": [MAX_INTEGER, []]}, False),
    ],
)
def test_bounds_reach_into_every_type(fields: dict[str, object], fine: bool) -> None:
    whole = {**msgspec.to_builtins(Everything()), **fields}
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=strict(Everything, 4))
    except msgspec.ValidationError:
        assert not fine
    else:
        assert fine


def lengths(value: object) -> object:
    """The shape of nested lists."""
    return [lengths(part) for part in value] if isinstance(value, list | tuple) else None


def by_walking(payload: bytes) -> Message | None:
    """The dumb twin: decode, walk, and compare the shape with that of what was sent."""
    try:
        message = _decoder(DIALECT.kinds).decode(payload)
    except (msgspec.DecodeError, ValueError):
        return None
    whole = lengths(msgspec.to_builtins(message)) == lengths(msgspec.msgpack.decode(payload))
    assert isinstance(message, Message)
    return message if whole and flaw(message, FAST.view) is None else None


def changed(value: object, rng: random.Random) -> object:
    """The same with something else at a random place, at any depth."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        match rng.randrange(8):
            case 0:
                return [*value[:place], thing(rng), *value[place:]]
            case 1:
                return value[:place] + value[place + 1 :]
            case _:
                return [*value[:place], changed(value[place], rng), *value[place + 1 :]]
    return rng.choice([thing(rng), 1, 2**63 - 1, 2**63, 1.5, math.inf, "x", [], None, True])


def test_reading_agrees_with_walking() -> None:
    rng, read = random.Random(11), DIALECT.reader(FAST.view)
    agreed = {True: 0, False: 0}
    for _ in range(8000):
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(rng.choice(SAMPLES)))
        payload = msgspec.msgpack.encode(changed(plain, rng))
        got, want = read(payload), by_walking(payload)
        if want is None:
            assert isinstance(got, Reason), payload
        else:
            assert got == want, payload
            assert type(got) is type(want)
        agreed[want is not None] += 1
    assert min(agreed.values()) > 500, "both ways must have been tried"


def test_a_reader_has_its_own_bound_on_lists() -> None:
    assert PING.reader(5)(msgspec.msgpack.encode(PingMsg(1))) == PingMsg(1)
    long = msgspec.msgpack.encode(PingMsg(1, ids=(1,) * 6))
    assert PING.reader(5)(long) is Reason.TOO_MANY
    assert PING.reader(6)(long) == PingMsg(1, ids=(1,) * 6)
